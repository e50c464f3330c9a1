//! How the node is, and what it is.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use model::limits;
use model::schedule::{format_span, tzdb_version};
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::{self, Answer};
use super::who::{Anyone, Root};
use crate::api::Api;
use crate::problem::{Kind, Problem};

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How late the oldest thing is that is due and held by nobody.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HealthAnswer {
    /// `well`, or `held` on a node that was started with `--hold`: what is due is left as it is.
    #[schema(example = "well")]
    status: &'static str,
    /// How long ago the oldest was due.
    oldest_due_age: String,
    /// How long it may be.
    bound: String,
}

/// Whether everything that is due is being taken care of.
#[utoipa::path(
    get, path = "/healthz", tag = "system", operation_id = "healthz",
    responses(
        (status = 200, body = HealthAnswer, description = "The node is alive"),
    ),
)]
pub(super) async fn healthz(State(api): State<Arc<Api>>) -> Answer {
    let health = api.engine.health();
    let (oldest, bound) = (format_span(health.oldest_due), format_span(health.bound));
    if health.is_well() {
        let answer = HealthAnswer {
            status: if health.held { "held" } else { "well" },
            oldest_due_age: oldest,
            bound,
        };
        return answer::json(StatusCode::OK, &answer);
    }
    let measured = format_span(health.measured);
    let detail = format!(
        "the oldest slot or run that nobody holds was due {oldest} ago, as seen {measured} ago; the bound is {bound}"
    );
    Err(Problem::new(Kind::Unwell, detail)
        .with("oldest_due_age", oldest)
        .with("bound", bound))
}

/// The node takes part.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ReadyAnswer {
    /// `ready`.
    #[schema(example = "ready")]
    status: &'static str,
}

/// Whether the node takes part.
#[utoipa::path(
    get, path = "/readyz", tag = "system", operation_id = "readyz",
    responses(
        (status = 200, body = ReadyAnswer, description = "The node is ready"),
    ),
)]
pub(super) async fn readyz(State(api): State<Arc<Api>>) -> Answer {
    match unready(&api) {
        None => answer::json(StatusCode::OK, &ReadyAnswer { status: "ready" }),
        Some(detail) => Err(Problem::new(Kind::NotReady, detail).retry_after(1)),
    }
}

/// Why the node takes no part.
fn unready(api: &Api) -> Option<String> {
    let health = api.engine.health();
    if api.stopping.is_cancelled() {
        return Some("the node is stopping".to_owned());
    }
    if health.is_ready() {
        return None;
    }
    if !health.present && health.heard >= limits::PRESENCE_TTL {
        let heard = format_span(health.heard);
        return Some(format!("the store has not answered for {heard}"));
    }
    if !health.present {
        return Some("the node has no presence in the store yet".to_owned());
    }
    match health.clock {
        Some(clock) => Some(format!("the node fires nothing: {clock}")),
        None => Some("the node has not planned yet".to_owned()),
    }
}

/// What is running here.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct VersionAnswer {
    /// The release.
    version: &'static str,
    /// The release of the bundled time zone tables.
    tzdb: &'static str,
    /// What it was built with.
    features: Vec<String>,
    /// Of `api`, `schedule` and `execute`, what this node does.
    #[schema(example = json!(["api", "schedule", "execute"]))]
    parts: Vec<&'static str>,
}

/// What is running here.
#[utoipa::path(
    get, path = "/version", tag = "system", operation_id = "version",
    responses((status = 200, body = VersionAnswer, description = "The versions")),
)]
pub(super) async fn version(State(api): State<Arc<Api>>, _: Anyone) -> Answer {
    let version = env!("CARGO_PKG_VERSION");
    let features = api.features.clone();
    answer::json(
        StatusCode::OK,
        &VersionAnswer {
            version,
            tzdb: tzdb_version(),
            features,
            parts: api.engine.parts().names(),
        },
    )
}

/// Metrics as OpenMetrics text.
#[utoipa::path(
    get, path = "/metrics", tag = "system", operation_id = "metrics",
    responses((status = 200, body = String, content_type = "application/openmetrics-text", description = "The metrics")),
)]
pub(super) async fn metrics(State(api): State<Arc<Api>>) -> Answer {
    let text = api.metrics.text().map_err(|error| {
        tracing::error!(%error, "metrics could not be written");
        Problem::new(Kind::Internal, "the metrics could not be written")
    })?;
    let mut response = Response::new(Body::from(text));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(OPENMETRICS));
    Ok(response)
}

/// The same where they are not for everyone.
pub(super) async fn metrics_to_root(_: Root, api: State<Arc<Api>>) -> Answer {
    metrics(api).await
}
