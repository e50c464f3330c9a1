//! Pages of other origins. A browser checks whether they may read our answers; only those that the operator listed may, and
//! never with a browser's own credentials: a page has to have a key.

use std::fmt;
use std::str::FromStr;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use axum::response::Response;

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE");
const HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, idempotency-key, if-match, if-none-match, x-request-id",
);
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "etag, idempotency-replayed, location, ratelimit, ratelimit-policy, retry-after, x-request-id",
);
/// Seconds for which a browser need not check again.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// Where a page comes from, as browsers write it: `https://app.example`, with its port if that is not the usual one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(String);

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || {
            format!(
                "{text:?} is not an origin: write scheme, host and port as a browser sends them, such as \
                 https://app.example"
            )
        };
        let uri: Uri = text.parse().map_err(|_| refused())?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(refused());
        };
        let port = match (scheme, authority.port_u16()) {
            ("https", None | Some(443)) | ("http", None | Some(80)) => String::new(),
            ("https" | "http", Some(port)) => format!(":{port}"),
            _ => return Err(refused()),
        };
        let host = authority.host().to_ascii_lowercase();
        let origin = format!("{scheme}://{host}{port}");
        // A path, a user, a pattern or another way to write it would never be what a browser sends.
        let is_exact = text.eq_ignore_ascii_case(&origin) && !host.contains('*');
        is_exact.then_some(Self(origin)).ok_or_else(refused)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The origins that may read answers.
#[derive(Debug, Clone, Default)]
pub(super) struct Cors(Vec<Origin>);

impl Cors {
    pub(super) fn new(origins: Vec<Origin>) -> Self {
        Self(origins)
    }

    /// The origin of a request, if it is one of them.
    pub(super) fn allowed<B>(&self, request: &Request<B>) -> Option<HeaderValue> {
        let origin = request.headers().get(header::ORIGIN)?;
        let is_listed = self.0.iter().any(|it| it.0.as_bytes() == origin.as_bytes());
        is_listed.then(|| origin.clone())
    }

    /// The preflight that a browser sends before it sends what a page wants to send.
    pub(super) fn is_preflight<B>(request: &Request<B>) -> bool {
        let preflight = header::ACCESS_CONTROL_REQUEST_METHOD;
        request.method() == Method::OPTIONS && request.headers().contains_key(preflight)
    }

    pub(super) fn preflight() -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        response
    }

    /// Says whether the page may read the answer. Who caches it has to know that this depends on the origin.
    pub(super) fn mark(&self, headers: &mut HeaderMap, allowed: Option<HeaderValue>) {
        if self.0.is_empty() {
            return;
        }
        headers.append(header::VARY, HeaderValue::from_static("origin"));
        if let Some(origin) = allowed {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_written_as_browsers_write_them() {
        for text in [
            "https://app.example",
            "http://localhost:5173",
            "http://[::1]:8080",
        ] {
            assert_eq!(text.parse::<Origin>().unwrap().to_string(), text);
        }
        let bad = [
            "",
            "*",
            "null",
            "app.example",
            "https://app.example/",
            "https://*.example",
            "https://user@app.example",
            "https://app.example:443",
            "ftp://app.example",
        ];
        for text in bad {
            assert!(text.parse::<Origin>().is_err(), "{text}");
        }
    }
}
