//! Settings of the front door: how clients reach the node, and what they are held to.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use model::Cidr;
use server::{Origin, ProxyHeader, RatesMax, TlsFiles};

use super::Config;
use super::settings::{Setting, count, read_into, switch};
use crate::failure::Failure;

const CONNECTIONS_MAX_MAX: usize = 1_000_000;
const RATE_MAX_MAX: u32 = 1_000_000;

/// How clients reach the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Front {
    pub tls_cert: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    pub tls_client_ca: Option<PathBuf>,
    /// Other machines may connect without TLS.
    pub plain_http: bool,
    /// Where targets report that take attempts over; none: where this node listens.
    pub public_url: Option<String>,
    pub trusted_proxies: Vec<Cidr>,
    pub proxy_header: ProxyHeader,
    pub cors_origins: Vec<Origin>,
    pub connections_max: usize,
    pub connections_share: u8,
    pub rates_max: RatesMax,
}

impl Default for Front {
    fn default() -> Self {
        Self {
            tls_cert: None,
            tls_key: None,
            tls_client_ca: None,
            plain_http: false,
            public_url: None,
            trusted_proxies: Vec::new(),
            proxy_header: ProxyHeader::default(),
            cors_origins: Vec::new(),
            connections_max: server::Bounds::default().connections_max,
            connections_share: server::Bounds::default().connections_share,
            rates_max: RatesMax {
                of_key: 10_000,
                of_address: 10_000,
                of_refused: 100,
            },
        }
    }
}

impl Front {
    /// Where the certificates are, if there are any.
    pub(crate) fn tls_files(&self) -> Option<TlsFiles> {
        Some(TlsFiles {
            cert: self.tls_cert.clone()?,
            key: self.tls_key.clone()?,
            client_ca: self.tls_client_ca.clone(),
        })
    }
}

impl Config {
    /// `https` or `http`.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.front.tls_cert.is_some() {
            "https"
        } else {
            "http"
        }
    }

    /// Without keys only this machine may connect; without TLS others may only if the operator says so.
    pub(crate) fn check_listen(&self) -> Result<(), Failure> {
        let front = &self.front;
        let missing = match (&front.tls_cert, &front.tls_key) {
            (Some(_), None) => Some(("--tls-cert", "its key: name it with --tls-key")),
            (None, Some(_)) => Some(("--tls-key", "its certificate: name it with --tls-cert")),
            (None, None) if front.tls_client_ca.is_some() => Some((
                "--tls-client-ca",
                "TLS: name the node's own with --tls-cert and --tls-key",
            )),
            (Some(_), Some(_)) | (None, None) => None,
        };
        if let Some((flag, fix)) = missing {
            return Err(Failure::usage(format!("{flag} needs {fix}")));
        }
        if self.listen.ip().is_loopback() {
            return Ok(());
        }
        let listen = self.listen;
        if self.insecure_no_auth {
            return Err(Failure::usage(format!(
                "{listen} is reachable from other machines, and --insecure-no-auth would let them do everything: listen \
                 on 127.0.0.1, or leave it out and use keys"
            )));
        }
        if front.tls_cert.is_some() || front.plain_http {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "{listen} is reachable from other machines, and keys would travel as they are: give it a certificate with \
             --tls-cert and --tls-key, or say --plain-http if something that speaks TLS stands in front"
        )))
    }

    /// Settings of the front door that do not go together.
    pub(super) fn contradictions_of_front(&self) -> Vec<String> {
        let front = &self.front;
        let is_set = |name: &str| self.origins.contains_key(name);
        let mut found = Vec::new();
        if front.plain_http && front.tls_cert.is_some() {
            found.push(
                "plain_http changes nothing beside a certificate: this node speaks TLS only"
                    .to_owned(),
            );
        } else if front.plain_http && !self.listen.ip().is_loopback() {
            found.push(format!(
                "{} is reachable from other machines without TLS, and keys travel as they are: let only what speaks \
                 TLS in front of it connect",
                self.listen
            ));
        }
        if is_set("proxy_header") && front.trusted_proxies.is_empty() {
            found.push("proxy_header changes nothing without trusted_proxies".to_owned());
        }
        found
    }
}

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "tls_cert",
        flag: "tls-cert",
        value: "FILE",
        help: "The node's certificate and those between it and its authority, PEM: it then speaks TLS and nothing else; read again when it changes",
        secret: false,
        set: |config, text| read_into(&mut config.front.tls_cert, path(text)),
        show: |config| shown(&config.front.tls_cert),
    },
    Setting {
        name: "tls_key",
        flag: "tls-key",
        value: "FILE",
        help: "The private key of --tls-cert, PEM",
        secret: false,
        set: |config, text| read_into(&mut config.front.tls_key, path(text)),
        show: |config| shown(&config.front.tls_key),
    },
    Setting {
        name: "tls_client_ca",
        flag: "tls-client-ca",
        value: "FILE",
        help: "Authorities, PEM: only clients with a certificate of one of them are let in; they need a key besides",
        secret: false,
        set: |config, text| read_into(&mut config.front.tls_client_ca, path(text)),
        show: |config| shown(&config.front.tls_client_ca),
    },
    Setting {
        name: "plain_http",
        flag: "plain-http",
        value: "",
        help: "Listen without TLS on an address that other machines can reach: for behind a proxy that speaks TLS",
        secret: false,
        set: |config, text| read_into(&mut config.front.plain_http, switch(text)),
        show: |config| config.front.plain_http.to_string(),
    },
    Setting {
        name: "public_url",
        flag: "public-url",
        value: "URL",
        help: "Where targets reach this node or its fleet to report on work that they took over, such as https://jobs.example.com; where it listens unless said otherwise",
        secret: false,
        set: |config, text| read_into(&mut config.front.public_url, public_url(text)),
        show: |config| config.front.public_url.clone().unwrap_or_default(),
    },
    Setting {
        name: "trusted_proxies",
        flag: "trusted-proxies",
        value: "RANGES",
        help: "Addresses of proxies, such as 10.0.0.0/8,192.0.2.7: what they say in --proxy-header about whose request it is counts",
        secret: false,
        set: |config, text| read_into(&mut config.front.trusted_proxies, list(text)),
        show: |config| listed(&config.front.trusted_proxies),
    },
    Setting {
        name: "proxy_header",
        flag: "proxy-header",
        value: "NAME",
        help: "Where --trusted-proxies say whose request it is: forwarded or x-forwarded-for; the other is not looked at",
        secret: false,
        set: |config, text| read_into(&mut config.front.proxy_header, proxy_header(text)),
        show: |config| match config.front.proxy_header {
            ProxyHeader::Forwarded => "forwarded".to_owned(),
            ProxyHeader::XForwardedFor => "x-forwarded-for".to_owned(),
        },
    },
    Setting {
        name: "cors_origins",
        flag: "cors-origins",
        value: "ORIGINS",
        help: "Origins, such as https://app.example, whose pages may call this node from a browser, with a key; none unless given",
        secret: false,
        set: |config, text| read_into(&mut config.front.cors_origins, list(text)),
        show: |config| listed(&config.front.cors_origins),
    },
    Setting {
        name: "connections_max",
        flag: "connections-max",
        value: "COUNT",
        help: "How many clients may be connected at once; more wait",
        secret: false,
        set: |config, text| {
            read_into(
                &mut config.front.connections_max,
                count(text, CONNECTIONS_MAX_MAX),
            )
        },
        show: |config| config.front.connections_max.to_string(),
    },
    Setting {
        name: "connections_share",
        flag: "connections-share",
        value: "PERCENT",
        help: "How much of connections_max one address may have, in percent; more are closed at once. Trusted proxies may have all",
        secret: false,
        set: |config, text| read_into(&mut config.front.connections_share, percent(text)),
        show: |config| config.front.connections_share.to_string(),
    },
    Setting {
        name: "rate_key_max",
        flag: "rate-key-max",
        value: "COUNT",
        help: "How many requests a second a node takes with one key; 0 for any number",
        secret: false,
        set: |config, text| read_into(&mut config.front.rates_max.of_key, rate(text)),
        show: |config| config.front.rates_max.of_key.to_string(),
    },
    Setting {
        name: "rate_address_max",
        flag: "rate-address-max",
        value: "COUNT",
        help: "How many requests a second a node takes from one address; 0 for any number",
        secret: false,
        set: |config, text| read_into(&mut config.front.rates_max.of_address, rate(text)),
        show: |config| config.front.rates_max.of_address.to_string(),
    },
    Setting {
        name: "rate_refused_max",
        flag: "rate-refused-max",
        value: "COUNT",
        help: "How many requests a second without a valid key a node answers as such from one address; more are refused for a while, those with a valid key are not; 0 for any number",
        secret: false,
        set: |config, text| read_into(&mut config.front.rates_max.of_refused, rate(text)),
        show: |config| config.front.rates_max.of_refused.to_string(),
    },
];

fn percent(text: &str) -> Result<u8, String> {
    let read = text.parse().ok().filter(|share| (1..=100).contains(share));
    read.ok_or_else(|| "write a whole number from 1 to 100".to_owned())
}

fn path(text: &str) -> Result<Option<PathBuf>, String> {
    if text.contains(char::is_control) {
        return Err("a file's name is one line of text".to_owned());
    }
    Ok((!text.is_empty()).then(|| PathBuf::from(text)))
}

fn shown(path: &Option<PathBuf>) -> String {
    path.as_ref()
        .map_or_else(String::new, |path| path.display().to_string())
}

/// What stands between commas.
fn list<T: FromStr<Err = String>>(text: &str) -> Result<Vec<T>, String> {
    let parts = text.split(',').map(str::trim).filter(|it| !it.is_empty());
    parts.map(str::parse).collect()
}

fn listed<T: Display>(list: &[T]) -> String {
    let parts: Vec<String> = list.iter().map(T::to_string).collect();
    parts.join(",")
}

fn rate(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|rate| *rate <= RATE_MAX_MAX);
    number.ok_or_else(|| format!("{text:?} is not a number from 0 to {RATE_MAX_MAX}"))
}

fn proxy_header(text: &str) -> Result<ProxyHeader, String> {
    match text.to_ascii_lowercase().as_str() {
        "forwarded" => Ok(ProxyHeader::Forwarded),
        "x-forwarded-for" => Ok(ProxyHeader::XForwardedFor),
        _ => Err(format!(
            "{text:?} is not one of the headers: write forwarded or x-forwarded-for"
        )),
    }
}

/// An address that others can be sent to: with its scheme and its host, a path perhaps, and nothing else.
fn public_url(text: &str) -> Result<Option<String>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let refused = || format!("{text:?} is not an address such as https://jobs.example.com");
    let url: hyper::Uri = text.parse().map_err(|_| refused())?;
    let is_http = matches!(url.scheme_str(), Some("http" | "https"));
    let has_user = url.authority().is_some_and(|it| it.as_str().contains('@'));
    if !is_http || url.host().is_none_or(str::is_empty) || url.query().is_some() || has_user {
        return Err(refused());
    }
    Ok(Some(text.trim_end_matches('/').to_owned()))
}
