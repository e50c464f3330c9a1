//! What is done around every request: a bound on its time, a net under panics, a count, one line for
//! whoever debugs.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;

use crate::api::Api;
use crate::problem::{Kind, Problem};

/// How long an answer may take to begin; longer than any wait of ours within one.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) async fn observe(State(api): State<Arc<Api>>, request: Request, next: Next) -> Response {
    let clock = api.engine.clock();
    let begun = clock.uptime();
    let (method, version) = (request.method().clone(), request.version());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let answer = AssertUnwindSafe(next.run(request)).catch_unwind();
    let mut response = tokio::select! {
        biased;
        answer = answer => answer.unwrap_or_else(|_| {
            api.engine.metrics().panicked("api");
            tracing::error!(%method, route = route.as_ref().map(MatchedPath::as_str), "a request panicked");
            let detail = "the request could not be completed; the log says why";
            Problem::new(Kind::Internal, detail).into_response()
        }),
        () = clock.sleep(REQUEST_TIMEOUT) => {
            let detail = format!("there was no answer within {} s", REQUEST_TIMEOUT.as_secs());
            Problem::new(Kind::TimedOut, detail).retry_after(1).into_response()
        }
    };
    let status = response.status().as_u16();
    let route = route.as_ref().map(MatchedPath::as_str);
    let took = clock.uptime().saturating_sub(begun);
    api.metrics.answered(&method, route, status, took);
    tracing::debug!(%method, route, status, "answered");
    let headers = response.headers_mut();
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    if api.stopping.is_cancelled() && version <= Version::HTTP_11 {
        // Whoever keeps connections open is to open the next one elsewhere. HTTP/2 has its own word for that.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
