//! Schedules over REST.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;

use super::answer::{self, Answer};
use super::extract::JsonBody;
use crate::api::Api;
use crate::ops;
use crate::wire::{self, schema};

/// Show when a schedule is due, without a job.
#[utoipa::path(
    post, path = "/v1/schedules/preview", tag = "schedules", operation_id = "preview_schedule",
    request_body = schema::PreviewBody,
    responses(
        (status = 200, body = wire::Preview, description = "As asked"),
        schema::Refused,
    ),
)]
pub async fn preview(State(api): State<Arc<Api>>, JsonBody(body): JsonBody) -> Answer {
    let request = wire::preview(&body)?;
    let now = api.engine.now();
    let from = request.from.unwrap_or(now);
    let preview = ops::preview::preview(&request.schedule, from, request.count, now)?;
    answer::json(
        StatusCode::OK,
        &wire::Preview {
            slots: preview.slots.iter().map(ToString::to_string).collect(),
            words: preview.words,
            notes: preview.notes,
        },
    )
}
