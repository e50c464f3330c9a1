//! Targets: where work goes.

use http::{HeaderName, HeaderValue, Method, Uri};

use crate::limits;

/// Where an attempt is delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Http(HttpTarget),
    /// Known only to tests and benches; no client can ask for it.
    Fake(String),
}

/// A callback. What it holds has been checked: it can be sent as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpTarget {
    pub url: Uri,
    pub method: Method,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Bytes of the answer that are kept.
    pub output_max: usize,
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
    /// The kind's name, as clients write it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Http(_) => "http",
            Self::Fake(_) => "fake",
        }
    }
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
            method: Self::METHOD_DEFAULT,
            headers: Vec::new(),
            output_max: limits::OUTPUT_DEFAULT,
        }
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
        assert!(refused(&format!("http://a/{}", "b".repeat(3_000))).contains("2048"));
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
    fn methods_are_a_short_list() {
        assert!(HttpTarget::new("http://a/", Some("PATCH")).is_ok());
        assert!(HttpTarget::new("http://a/", Some("CONNECT")).is_err());
        assert!(HttpTarget::new("http://a/", Some("post")).is_err());
    }
}
