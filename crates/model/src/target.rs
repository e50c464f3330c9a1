//! Targets: where work goes.

use std::fmt;

use http::uri::Scheme;
use http::{HeaderName, HeaderValue, Method, Uri};

use crate::python::PythonTarget;
use crate::redirect::Redirects;
use crate::secret::SecretName;
use crate::shell::ShellTarget;
use crate::success::Success;
use crate::tls::TlsSecrets;
use crate::{host, limits, mask};

/// Where an attempt is delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Http(HttpTarget),
    Shell(ShellTarget),
    Python(PythonTarget),
}

/// A callback. What it holds has been checked: it can be sent as it is.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpTarget {
    pub url: Uri,
    /// A template for the path and the query; then `url` is the origin alone.
    pub path: Option<String>,
    pub method: Method,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// A template for what is sent instead of the payload.
    pub body: Option<String>,
    /// Bytes of the answer that are kept.
    pub output_max: usize,
    /// Headers of the answer that are kept.
    pub keep_headers: Vec<HeaderName>,
    /// What counts as success; any 2xx without it.
    pub success: Option<Success>,
    pub redirects: Redirects,
    /// Certificates of its own.
    pub tls: Option<TlsSecrets>,
}

/// What is not to be shown stands in no log either.
impl fmt::Debug for HttpTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |(name, value): &(HeaderName, HeaderValue)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            let value = mask::shown_header(name.as_str(), &value);
            (name.to_string(), value)
        };
        f.debug_struct("HttpTarget")
            .field("url", &mask::shown_address(self))
            .field("body", &self.body.as_ref().map(String::len))
            .field("method", &self.method)
            .field(
                "headers",
                &self.headers.iter().map(shown).collect::<Vec<_>>(),
            )
            .field("output_max", &self.output_max)
            .field("keep_headers", &self.keep_headers)
            .field("success", &self.success)
            .field("redirects", &self.redirects)
            .field("tls", &self.tls)
            .finish()
    }
}

/// A target that cannot be called. `field` is the path below `target`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct TargetError {
    pub field: String,
    pub detail: String,
}

/// Names that we set, or that frame the message: a job may not set them.
const RESERVED: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "host",
    "idempotency-key",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

impl Target {
    /// A callback to this address, with the defaults.
    pub fn http(url: &str) -> Result<Self, TargetError> {
        HttpTarget::new(url, None).map(Self::Http)
    }

    /// Scheme, host and port of what it calls; none if it calls nobody.
    pub fn origin(&self) -> Option<String> {
        let mut origin = String::new();
        self.write_origin(&mut origin).then_some(origin)
    }

    /// The same as its address has them; they may be written in any case.
    fn origin_parts(&self) -> Option<(&str, &str)> {
        let Self::Http(http) = self else {
            return None;
        };
        let authority = http.url.authority()?;
        Some((http.url.scheme_str()?, authority.as_str()))
    }

    pub fn has_origin(&self) -> bool {
        self.origin_parts().is_some()
    }

    /// Whether this is what it calls, as `write_origin` writes it.
    pub fn is_at_origin(&self, origin: &str) -> bool {
        let Some((scheme, authority)) = self.origin_parts() else {
            return false;
        };
        let is = |at: &str, part: &str| at.eq_ignore_ascii_case(part);
        let rest = origin.split_at_checked(scheme.len());
        let rest = rest.filter(|(at, _)| is(at, scheme)).map(|(_, rest)| rest);
        let at = rest.and_then(|rest| rest.strip_prefix("://"));
        at.is_some_and(|at| is(at, authority))
    }

    /// Puts them in place of a text. False if there are none.
    pub fn write_origin(&self, text: &mut String) -> bool {
        let Some((scheme, authority)) = self.origin_parts() else {
            return false;
        };
        text.clear();
        for part in [scheme, "://", authority] {
            text.push_str(part);
        }
        text.make_ascii_lowercase();
        true
    }

    /// The kind's name, as clients write it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Http(_) => "http",
            Self::Shell(_) => "shell",
            Self::Python(_) => "python",
        }
    }

    /// The host that a secret must name to go there.
    pub fn secret_host(&self) -> &str {
        match self {
            Self::Http(http) => http.url.host().unwrap_or_default(),
            Self::Shell(_) => ShellTarget::SECRET_HOST,
            Self::Python(_) => "python",
        }
    }

    /// What is started on the node's machine, if anything.
    pub fn program(&self) -> Option<&ShellTarget> {
        match self {
            Self::Http(_) => None,
            Self::Shell(shell) => Some(shell),
            Self::Python(python) => Some(&python.program),
        }
    }

    pub fn program_mut(&mut self) -> Option<&mut ShellTarget> {
        match self {
            Self::Http(_) => None,
            Self::Shell(shell) => Some(shell),
            Self::Python(python) => Some(&mut python.program),
        }
    }

    /// The secrets that are certificates of its own, each with its field.
    pub fn certificates(&self) -> impl Iterator<Item = (&'static str, &SecretName)> {
        let tls = match self {
            Self::Http(http) => http.tls.as_ref(),
            Self::Shell(_) | Self::Python(_) => None,
        };
        tls.into_iter().flat_map(TlsSecrets::named)
    }

    /// Whether it is at this host, named with or without its port, in any case.
    pub fn is_at(&self, host: &str) -> bool {
        match self {
            Self::Http(http) => {
                let named = |name: &str| name.eq_ignore_ascii_case(host);
                let authority = http.url.authority();
                http.url.host().is_some_and(named) || authority.is_some_and(|it| named(it.as_str()))
            }
            Self::Shell(_) | Self::Python(_) => false,
        }
    }
}

fn port_of(url: &Uri) -> u16 {
    let is_secure = url.scheme() == Some(&Scheme::HTTPS);
    let usual = if is_secure { 443 } else { 80 };
    url.port_u16().unwrap_or(usual)
}

impl HttpTarget {
    pub const METHOD_DEFAULT: Method = Method::POST;

    pub fn new(url: &str, method: Option<&str>) -> Result<Self, TargetError> {
        let mut target = Self::at(check_url(url)?);
        if let Some(method) = method {
            target.method = check_method(method)?;
        }
        Ok(target)
    }

    /// A checked address, and the defaults.
    pub fn at(url: Uri) -> Self {
        Self {
            url,
            path: None,
            method: Self::METHOD_DEFAULT,
            headers: Vec::new(),
            body: None,
            output_max: limits::OUTPUT_DEFAULT,
            keep_headers: Vec::new(),
            success: None,
            redirects: Redirects::None,
            tls: None,
        }
    }

    /// Where it is called: the port of its URL, or that of the scheme.
    pub fn port(&self) -> u16 {
        port_of(&self.url)
    }

    /// Whether an address has the scheme, the host and the port of this target.
    pub fn is_at_origin_of(&self, url: &Uri) -> bool {
        let host = |url: &Uri| url.host().unwrap_or_default().to_ascii_lowercase();
        self.url.scheme() == url.scheme()
            && host(&self.url) == host(url)
            && self.port() == port_of(url)
    }

    pub fn header(mut self, name: &str, value: &str) -> Result<Self, TargetError> {
        let (known, value) = check_header(name, value)?;
        if self.headers.iter().any(|(other, _)| *other == known) {
            let detail = format!("the header {known} is given twice");
            return Err(of_header(name, detail));
        }
        self.headers.push((known, value));
        self.check_headers(name)?;
        Ok(self)
    }

    /// Sets a header, or takes it away.
    pub fn set_header(
        &mut self,
        name: HeaderName,
        value: Option<HeaderValue>,
    ) -> Result<(), TargetError> {
        let at = self.headers.iter().position(|(other, _)| *other == name);
        match (at.and_then(|at| self.headers.get_mut(at)), value) {
            (Some(header), Some(value)) => header.1 = value,
            (None, Some(value)) => {
                let shown = name.to_string();
                self.headers.push((name, value));
                self.check_headers(&shown)?;
            }
            (_, None) => self.headers.retain(|(other, _)| *other != name),
        }
        Ok(())
    }

    fn check_headers(&self, name: &str) -> Result<(), TargetError> {
        if self.headers.len() <= limits::HEADERS_MAX {
            return Ok(());
        }
        let detail = format!("at most {} headers", limits::HEADERS_MAX);
        Err(of_header(name, detail))
    }

    /// Whatever its parts cannot know of each other.
    pub fn check(&self) -> Result<(), TargetError> {
        let sends = !matches!(self.method, Method::GET | Method::HEAD);
        if self.body.is_some() && !sends {
            return Err(TargetError {
                field: "http.body".to_owned(),
                detail: format!("a {} request has no body: use POST", self.method),
            });
        }
        if let Some(tls) = &self.tls {
            tls.check(self.url.scheme_str() == Some("https"))?;
        }
        self.redirects.check(self.success.as_ref())?;
        let reads = self
            .success
            .as_ref()
            .is_some_and(|rule| rule.json.is_some());
        if reads && self.method == Method::HEAD {
            return Err(TargetError {
                field: "http.success.json".to_owned(),
                detail: "the answer to a HEAD request has no body to look into: use GET".to_owned(),
            });
        }
        Ok(())
    }

    pub fn output_max(mut self, bytes: usize) -> Result<Self, TargetError> {
        if bytes > limits::OUTPUT_MAX {
            return Err(TargetError {
                field: "http.output_max".to_owned(),
                detail: format!("at most {} bytes of an answer are kept", limits::OUTPUT_MAX),
            });
        }
        self.output_max = bytes;
        Ok(self)
    }
}

/// Names of headers that are to be kept of an answer.
pub fn check_keep_headers<'a>(
    names: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<HeaderName>, TargetError> {
    let refused = |detail: String| TargetError {
        field: "http.keep_headers".to_owned(),
        detail,
    };
    let mut known: Vec<HeaderName> = Vec::new();
    for name in names {
        let shown: String = name.chars().take(64).collect();
        let name: HeaderName = name
            .to_ascii_lowercase()
            .parse()
            .map_err(|_| refused(format!("{shown:?} is not a header name")))?;
        if known.contains(&name) {
            return Err(refused(format!("the header {name} is named twice")));
        }
        known.push(name);
        if known.len() > limits::KEEP_HEADERS_MAX {
            let detail = format!("at most {} headers are kept", limits::KEEP_HEADERS_MAX);
            return Err(refused(detail));
        }
    }
    Ok(known)
}

fn of_header(name: &str, detail: String) -> TargetError {
    TargetError {
        field: format!("http.headers.{name}"),
        detail,
    }
}

/// A header that a job may set.
pub fn check_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), TargetError> {
    let lower = name.to_ascii_lowercase();
    let known: HeaderName = lower
        .parse()
        .map_err(|_| of_header(name, format!("{name:?} is not a header name")))?;
    if RESERVED.contains(&lower.as_str())
        || lower.starts_with("punctual-")
        || lower.starts_with("webhook-")
    {
        let detail = format!("the header {lower} is set by punctual itself: leave it out");
        return Err(of_header(name, detail));
    }
    if value.len() > limits::URL_MAX {
        let detail = format!("the value is longer than {} bytes", limits::URL_MAX);
        return Err(of_header(name, detail));
    }
    // The library lets other bytes pass, which no two targets read alike.
    let value = HeaderValue::from_str(value)
        .ok()
        .filter(|value| value.to_str().is_ok())
        .ok_or_else(|| {
            let detail = "the value may hold visible ASCII characters and spaces only";
            of_header(name, detail.to_owned())
        })?;
    Ok((known, value))
}

fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

/// An address whose path and query may be a template, and that template.
pub fn check_address(text: &str) -> Result<(Uri, Option<String>), TargetError> {
    let (scheme, rest) = match text.split_once("://") {
        Some(parts) if is_template(text) && text.len() <= limits::URL_MAX => parts,
        Some(_) | None => return Ok((check_url(text)?, None)),
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if is_template(scheme) || is_template(authority) {
        return Err(TargetError {
            field: "http.url".to_owned(),
            detail: "scheme, host and port are no template: write it behind them, as in https://example.com/{{ job.key }}".to_owned(),
        });
    }
    let url = check_url(&format!("{scheme}://{authority}/"))?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    Ok((url, Some(format!("{slash}{path}"))))
}

/// A template for a body; what it says is checked where templates are known.
pub fn check_body(text: &str) -> Result<String, TargetError> {
    if text.len() > limits::TEMPLATE_MAX {
        return Err(TargetError {
            field: "http.body".to_owned(),
            detail: format!("the body is longer than {} bytes", limits::TEMPLATE_MAX),
        });
    }
    Ok(text.to_owned())
}

/// An address that can be called.
pub fn check_url(text: &str) -> Result<Uri, TargetError> {
    let refused = |detail: String| TargetError {
        field: "http.url".to_owned(),
        detail,
    };
    if text.len() > limits::URL_MAX {
        return Err(refused(format!(
            "the URL is longer than {} bytes",
            limits::URL_MAX
        )));
    }
    if !text.contains("://") {
        return Err(refused(
            "the URL has no scheme: write https://example.com/hook".to_owned(),
        ));
    }
    let url: Uri = text.parse().map_err(|error| {
        refused(format!(
            "the URL cannot be read ({error}): write https://example.com/hook"
        ))
    })?;
    match url.scheme_str() {
        Some("http" | "https") => {}
        Some(other) => {
            return Err(refused(format!(
                "the scheme {other} is not supported: use http or https"
            )));
        }
        None => {
            return Err(refused(
                "the URL has no scheme: write https://example.com/hook".to_owned(),
            ));
        }
    }
    if url
        .authority()
        .is_some_and(|authority| authority.as_str().contains('@'))
    {
        return Err(refused(
            "the URL holds a user name or password: send it as an Authorization header".to_owned(),
        ));
    }
    if url.host().is_none_or(str::is_empty) {
        return Err(refused(
            "the URL has no host: write https://example.com/hook".to_owned(),
        ));
    }
    host::check(url.host().unwrap_or_default()).map_err(refused)?;
    if url.port().is_some_and(|port| port.as_u16() == 0) {
        return Err(refused("port 0 cannot be called".to_owned()));
    }
    Ok(url)
}

/// A method that a target may be called with.
pub fn check_method(text: &str) -> Result<Method, TargetError> {
    match text {
        "GET" => Ok(Method::GET),
        "POST" => Ok(Method::POST),
        "PUT" => Ok(Method::PUT),
        "PATCH" => Ok(Method::PATCH),
        "DELETE" => Ok(Method::DELETE),
        "HEAD" => Ok(Method::HEAD),
        other => Err(TargetError {
            field: "http.method".to_owned(),
            detail: format!(
                "{:?} is not a method: use GET, POST, PUT, PATCH, DELETE or HEAD",
                other.chars().take(32).collect::<String>()
            ),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        HttpTarget::new(url, None).unwrap_err().detail
    }

    #[test]
    fn only_addresses_that_can_be_called_are_taken() {
        assert!(HttpTarget::new("https://example.com/hook?a=b", None).is_ok());
        assert!(refused("ftp://example.com/").contains("ftp"));
        assert!(refused("example.com/hook").contains("scheme"));
        assert!(refused("https://user:secret@example.com/").contains("Authorization"));
        assert!(refused("").contains("https://"));
        assert!(refused("http://a:0/").contains("port 0"));
        for odd in [
            "127.1",
            "0x7f000001",
            "127.0.0.1.",
            "127%2e0%2e0%2e1",
            "[::1%25lo]",
        ] {
            HttpTarget::new(&format!("http://{odd}:8080/a"), None).unwrap_err();
        }
        assert!(refused(&format!("http://a/{}", "b".repeat(3_000))).contains("2048"));
    }

    #[test]
    fn a_target_is_at_its_own_origin_in_any_case() {
        let target = Target::http("HTTPS://Shop.Example:8443/orders").unwrap();
        let origin = target.origin().unwrap();
        assert_eq!(origin, "https://shop.example:8443");
        assert!(target.is_at_origin(&origin));
        for other in [
            "https://shop.example",
            "http://shop.example:8443",
            "https://shop.example:84433",
            "https:/",
            "",
        ] {
            assert!(!target.is_at_origin(other), "{other}");
        }
    }

    #[test]
    fn the_path_may_be_a_template_and_the_origin_may_not() {
        let (url, path) =
            check_address("https://a.example:8/x/{{ job.key }}?a={{ slot }}").unwrap();
        assert_eq!(url, "https://a.example:8/");
        assert_eq!(path.as_deref(), Some("/x/{{ job.key }}?a={{ slot }}"));
        let (_, path) = check_address("http://a?b={{ slot }}").unwrap();
        assert_eq!(path.as_deref(), Some("/?b={{ slot }}"));
        assert_eq!(check_address("http://a/b").unwrap().1, None);
        for url in [
            "http://{{ job.key }}/",
            "{{ x }}://a/",
            "http://a:{{ x }}/b",
            "http://a{% if x %}/{% endif %}",
        ] {
            let error = check_address(url).unwrap_err();
            assert!(error.detail.contains("behind them"), "{url}: {error}");
        }
    }

    #[test]
    fn our_own_headers_cannot_be_set() {
        let target = || HttpTarget::new("http://a/", None).unwrap();
        for name in [
            "Host",
            "Punctual-Run",
            "idempotency-key",
            "content-length",
            "webhook-id",
            "a b",
            "",
        ] {
            assert!(target().header(name, "x").is_err(), "{name}");
        }
        assert!(target().header("x-a", "one\r\ntwo: three").is_err());
        assert!(target().header("x-a", "naïve").is_err());
        assert!(
            target()
                .header("x-a", "1")
                .unwrap()
                .header("X-A", "2")
                .is_err()
        );
    }

    #[test]
    fn a_target_in_a_log_shows_no_secret() {
        let target = HttpTarget::new("http://a/?token=planted", None).unwrap();
        let target = target.header("authorization", "planted").unwrap();
        let text = format!("{:?}", target.header("x-a", "shown").unwrap());
        assert!(
            text.contains("shown") && !text.contains("planted"),
            "{text}"
        );
    }

    #[test]
    fn headers_to_keep_are_a_few_names() {
        let names = check_keep_headers(["X-Request-Id", "etag"]).unwrap();
        assert_eq!(names, ["x-request-id", "etag"]);
        for names in [&["a b"][..], &["etag", "ETag"], &[""]] {
            assert!(
                check_keep_headers(names.iter().copied()).is_err(),
                "{names:?}"
            );
        }
        let many: Vec<String> = (0..=limits::KEEP_HEADERS_MAX)
            .map(|no| format!("x-{no}"))
            .collect();
        let error = check_keep_headers(many.iter().map(String::as_str)).unwrap_err();
        assert!(error.detail.contains('8'), "{error}");
    }

    #[test]
    fn methods_are_a_short_list() {
        assert!(HttpTarget::new("http://a/", Some("PATCH")).is_ok());
        assert!(HttpTarget::new("http://a/", Some("CONNECT")).is_err());
        assert!(HttpTarget::new("http://a/", Some("post")).is_err());
    }
}
