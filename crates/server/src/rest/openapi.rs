//! The contract: made from the handlers and the wire types, committed as `api/openapi.json`, served.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use utoipa::OpenApi;

use super::{batch, calendars, jobs, nodes, preview, runs, slots, system};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Punctual",
        description = "A job scheduler: jobs that are due at a moment, on a cron expression or at an interval.",
    ),
    paths(
        jobs::create, jobs::list, batch::create, jobs::show, jobs::patch, jobs::delete,
        jobs::find, jobs::put, jobs::delete_by_key, jobs::pause, jobs::resume,
        runs::start, runs::replay_last, runs::list_of_job, runs::list, runs::show, runs::cancel,
        runs::replay, slots::list, slots::explain, preview::preview,
        calendars::create, calendars::list, calendars::show, calendars::put, calendars::delete,
        nodes::list, system::healthz, system::readyz, system::version, system::metrics,
    ),
    tags(
        (name = "jobs", description = "What is due, and where it goes"),
        (name = "runs", description = "What came of each slot"),
        (name = "schedules", description = "When something is due"),
        (name = "calendars", description = "Named times that jobs leave out, or keep to"),
        (name = "nodes", description = "Who does the work"),
        (name = "system", description = "How the node is"),
    ),
)]
struct Contract;

/// The contract as it is committed.
pub fn openapi_json() -> String {
    // It is made of texts and numbers, which always can be written; a test reads it back.
    let mut text = Contract::openapi().to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

pub async fn serve() -> Response {
    let mut response = Response::new(Body::from(openapi_json()));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
