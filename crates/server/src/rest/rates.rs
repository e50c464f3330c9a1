//! Bounds on how fast clients call: checked before anything is done, said in the answer.
//!
//! `RateLimit` and `RateLimit-Policy` are as draft-ietf-httpapi-ratelimit-headers has them.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::api::Api;
use crate::peer::Peer;
use crate::problem::{Kind, Problem};
use crate::rates::{Standing, network};

const LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
/// How a node is must be answered, whoever else is calling.
const UNBOUND: [&str; 2] = ["/healthz", "/readyz"];

/// Where a request comes from, as far as rates are concerned.
pub(super) fn address_of(request: &Request) -> Option<IpAddr> {
    let peer = request.extensions().get::<Peer>()?;
    peer.address.map(network)
}

/// Refuses what comes too fast from one address.
pub(super) async fn by_address(
    State(api): State<Arc<Api>>,
    request: Request,
    next: Next,
) -> Response {
    let address = address_of(&request).filter(|_| !UNBOUND.contains(&request.uri().path()));
    let now = api.engine.clock().uptime();
    let standing = address.and_then(|address| api.rates.by_address.take(address, now));
    match standing {
        Some(standing) if standing.is_spent() => refuse(&standing),
        Some(standing) => {
            let mut response = next.run(request).await;
            mark(response.headers_mut(), &standing);
            response
        }
        None => next.run(request).await,
    }
}

/// What comes too fast, and when to send it again.
pub(super) fn refuse(standing: &Standing) -> Response {
    let Standing { name, max, .. } = *standing;
    // Whole seconds, and never at once.
    let secs = standing.wait.as_secs() + 1;
    let whose = match name {
        "key" => "a key may send",
        "refused" => "one address may send, of requests without a valid key,",
        _ => "one address may send",
    };
    let detail = format!("{whose} {max} requests a second: send this again after {secs} s");
    let problem = Problem::new(Kind::RateExceeded, detail)
        .with("bound", name)
        .with("max", max)
        .retry_after(u32::try_from(secs).unwrap_or(u32::MAX));
    let mut response = problem.into_response();
    mark(response.headers_mut(), standing);
    response
}

/// How the caller stands, beside what is said of another bound.
pub(super) fn mark(headers: &mut HeaderMap, standing: &Standing) {
    let Standing {
        name, max, left, ..
    } = standing;
    let texts = [
        (POLICY, format!("\"{name}\";q={max};w=1")),
        (LIMIT, format!("\"{name}\";r={left};t=1")),
    ];
    for (name, text) in texts {
        if let Ok(value) = HeaderValue::try_from(text) {
            headers.append(name, value);
        }
    }
}
