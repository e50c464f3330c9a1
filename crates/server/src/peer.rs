//! Who is at the other end of a request, and what the request is called: in its answer, in the log, in what is recorded.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use engine::{Clock, SystemClock};
use model::Timestamp;
use uuid::Builder;

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Characters of a name that a client gives.
const REQUEST_ID_MAX: usize = 128;

/// Whoever sent a request. Handlers take it as an argument; it is in the request's extensions too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// None if the request came over no network.
    pub address: Option<IpAddr>,
    /// The client's own name for the request, or one of ours: 1 to 128 visible ASCII characters.
    pub request_id: Arc<str>,
    /// Whether nobody on the way could read it.
    pub is_tls: bool,
    /// Whether a proxy that the operator trusts got it over TLS.
    pub is_tls_before: bool,
    /// Whether it is from a page of an origin that may call.
    pub is_listed: bool,
}

impl Peer {
    pub(crate) fn new(address: Option<IpAddr>, headers: &HeaderMap, now: Timestamp) -> Self {
        let request_id = given(headers).map_or_else(|| made(now), Arc::from);
        Self {
            address,
            request_id,
            is_tls: false,
            is_tls_before: false,
            is_listed: false,
        }
    }

    /// Names the request in its answer.
    pub(crate) fn sign(&self, response: &mut Response) {
        if let Ok(value) = HeaderValue::from_str(&self.request_id) {
            response.headers_mut().insert(REQUEST_ID, value);
        }
    }
}

/// Whether a request that changes something comes from a page of ours. Browsers say so; who does not say is no browser.
pub(crate) fn is_ours(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text("sec-fetch-site") {
        return ["same-origin", "none"].contains(&site);
    }
    match (text("origin"), text("host")) {
        (Some(origin), Some(host)) => {
            let named = origin.split_once("://").map(|(_, named)| named);
            named.is_some_and(|named| named.eq_ignore_ascii_case(host))
        }
        (Some(_), None) => false,
        (None, _) => true,
    }
}

/// The one name that the client gave, if it can stand in a log and in a header.
fn given(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(REQUEST_ID).iter();
    let (value, more) = (all.next()?, all.next());
    let text = value.to_str().ok().filter(|_| more.is_none())?;
    let fits = (1..=REQUEST_ID_MAX).contains(&text.len());
    (fits && text.bytes().all(|byte| byte.is_ascii_graphic())).then_some(text)
}

fn made(now: Timestamp) -> Arc<str> {
    let id = Builder::from_unix_timestamp_millis(now.as_u64(), &rand::random()).into_uuid();
    Arc::from(id.hyphenated().to_string())
}

impl<S: Sync> FromRequestParts<S> for Peer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let known = parts.extensions.get::<Self>().cloned();
        // A router that is called without a socket has nobody at the other end.
        Ok(known.unwrap_or_else(|| Self::new(None, &parts.headers, SystemClock.now())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_of(values: &[&[u8]]) -> String {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(REQUEST_ID, HeaderValue::from_bytes(value).unwrap());
        }
        let now = Timestamp::from_millis(1_700_000_000_000);
        Peer::new(None, &headers, now).request_id.to_string()
    }

    #[test]
    fn a_name_is_kept_if_it_fits_and_made_if_not() {
        let long = "x".repeat(REQUEST_ID_MAX + 1);
        assert_eq!(name_of(&[b"order-7/a"]), "order-7/a");
        assert_eq!(name_of(&[&long.as_bytes()[1..]]), long[1..]);
        let bad: [&[&[u8]]; 6] = [
            &[],
            &[b""],
            &[b"two words"],
            &["\u{fc}".as_bytes()],
            &[long.as_bytes()],
            &[b"one", b"two"],
        ];
        for values in bad {
            let name = name_of(values);
            assert!(name.starts_with("018bcfe5-6800-7"), "{name}");
            assert_ne!(name, name_of(values), "each has its own");
        }
    }

    #[test]
    fn a_form_of_another_origin_is_refused() {
        let cases: [(&[(&str, &str)], bool); 7] = [
            (&[("host", "a.example")], true),
            (
                &[
                    ("host", "a.example:7710"),
                    ("origin", "http://a.example:7710"),
                ],
                true,
            ),
            (
                &[("host", "a.example"), ("origin", "http://b.example")],
                false,
            ),
            (&[("host", "a.example"), ("origin", "null")], false),
            (&[("sec-fetch-site", "same-origin")], true),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("sec-fetch-site", "same-site")], false),
        ];
        for (pairs, expected) in cases {
            let mut map = HeaderMap::new();
            for (name, value) in pairs {
                map.append(
                    axum::http::HeaderName::try_from(*name).unwrap(),
                    HeaderValue::try_from(*value).unwrap(),
                );
            }
            assert_eq!(is_ours(&map), expected, "{pairs:?}");
        }
    }
}
