//! The names under which a node answers. A browser lets any page call `http://name:port/` if the name leads here, and
//! whoever owns a name decides where it leads: on a loopback address only names that nobody else can own are answered,
//! and those that the operator gave.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Request, Uri, Version, header};

use crate::problem::{Kind, Problem};

#[derive(Debug, Clone)]
pub(super) struct Hosts {
    /// Only this machine can connect.
    is_loopback: bool,
    /// Allowed besides, in lower case.
    names: Arc<[String]>,
}

impl Hosts {
    pub(super) fn new(listens_on: Option<SocketAddr>, names: &[String]) -> Self {
        Self {
            is_loopback: listens_on.is_some_and(|address| address.ip().is_loopback()),
            names: names.iter().map(|name| name.to_ascii_lowercase()).collect(),
        }
    }

    /// Refuses a request that does not say once, and readably, whom it is for, or that is for somebody else.
    pub(super) fn check<B>(&self, request: &Request<B>) -> Result<(), Problem> {
        let named = header_of(request.headers())?;
        let is_missing = match request.version() {
            Version::HTTP_11 => named.is_none(),
            Version::HTTP_09 | Version::HTTP_10 => false,
            // HTTP/2 has its own field for it.
            _ => named.is_none() && request.uri().authority().is_none(),
        };
        if is_missing {
            return Err(invalid("a request names the host it is for: send Host"));
        }
        // A request line with a whole URL names the host as well, and then that one counts.
        let authorities = named.iter().chain(request.uri().authority());
        if let Some(foreign) = authorities.into_iter().find(|it| !self.allows(it)) {
            return Err(unknown(foreign));
        }
        Ok(())
    }

    fn allows(&self, authority: &Authority) -> bool {
        if !self.is_loopback {
            return true;
        }
        let host = authority.host();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse::<IpAddr>() {
            return address.to_canonical().is_loopback();
        }
        let name = host.strip_suffix('.').unwrap_or(host);
        let mut known = std::iter::once("localhost").chain(self.names.iter().map(String::as_str));
        known.any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// What the one `Host` says, if there is one.
fn header_of(headers: &HeaderMap) -> Result<Option<Authority>, Problem> {
    let mut values = headers.get_all(header::HOST).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(invalid("Host is given more than once"));
    }
    let read = Authority::try_from(value.as_bytes()).ok();
    let read = read.filter(|authority| !authority.as_str().contains('@'));
    match read {
        Some(authority) => Ok(Some(authority)),
        None => Err(invalid("Host is not a name or an address with a port")),
    }
}

fn invalid(detail: &str) -> Problem {
    Problem::new(Kind::HeaderInvalid, detail).at("Host")
}

fn unknown(authority: &Authority) -> Problem {
    let uri = Uri::from(authority.clone());
    let host = crate::rest::shown(uri.host().unwrap_or_default());
    let detail = format!(
        "this node listens on a loopback address and does not answer to {host:?}: call it localhost, or start it with \
         --hosts {host}"
    );
    Problem::new(Kind::HostUnknown, detail).at("Host")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(hosts: &Hosts, version: Version, headers: &[&str], uri: &str) -> Option<&'static str> {
        let mut request = Request::builder().version(version).uri(uri);
        for value in headers {
            request = request.header(header::HOST, *value);
        }
        let answer = hosts.check(&request.body(()).unwrap());
        answer.err().map(|problem| problem.kind.name())
    }

    fn on(address: &str) -> Hosts {
        Hosts::new(address.parse().ok(), &["Punctual.Example".to_owned()])
    }

    #[test]
    fn a_request_names_one_host() {
        let hosts = on("127.0.0.1:7710");
        let invalid = Some("header-invalid");
        let (old, new) = (Version::HTTP_10, Version::HTTP_11);
        let local = "http://localhost:7710/healthz";
        assert_eq!(check(&hosts, new, &[], "/healthz"), invalid);
        assert_eq!(check(&hosts, new, &[], local), invalid);
        assert_eq!(check(&hosts, new, &["localhost"; 2], "/"), invalid);
        assert_eq!(check(&hosts, old, &["localhost"; 2], "/"), invalid);
        assert_eq!(check(&hosts, new, &["user@localhost"], "/"), invalid);
        assert_eq!(check(&hosts, new, &[""], "/"), invalid);
        assert_eq!(check(&hosts, old, &[], "/"), None);
        assert_eq!(check(&hosts, Version::HTTP_2, &[], local), None);
        assert_eq!(check(&hosts, Version::HTTP_2, &[], "/"), invalid);
    }

    #[test]
    fn a_loopback_address_answers_to_names_that_nobody_else_can_own() {
        let hosts = on("[::1]:7710");
        for host in [
            "localhost",
            "LocalHost.:7710",
            "127.0.0.1:7710",
            "127.9.9.9",
            "[::1]:7710",
            "[::ffff:127.0.0.1]",
            "punctual.example",
        ] {
            assert_eq!(
                check(&hosts, Version::HTTP_11, &[host], "/"),
                None,
                "{host}"
            );
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "192.168.0.1",
            "0.0.0.0:7710",
            "[::]",
        ] {
            let answer = check(&hosts, Version::HTTP_11, &[host], "/");
            assert_eq!(answer, Some("host-unknown"), "{host}");
        }
        let answer = check(&hosts, Version::HTTP_11, &["localhost"], "http://evil/");
        assert_eq!(answer, Some("host-unknown"), "the whole URL counts");
    }

    #[test]
    fn an_address_that_others_reach_answers_to_any_name() {
        let hosts = on("0.0.0.0:7710");
        let answer = check(&hosts, Version::HTTP_11, &["evil.example"], "/");
        assert_eq!(answer, None);
    }
}
