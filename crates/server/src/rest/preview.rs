//! Schedules over REST.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;

use super::answer::{self, Answer};
use super::extract::{JsonBody, NoParams};
use super::who::Reader;
use crate::api::Api;
use crate::ops;
use crate::wire::{self, schema};

/// Show when a schedule is due, without a job.
#[utoipa::path(
    post, path = "/v1/schedules/preview", tag = "schedules", operation_id = "preview_schedule",
    request_body = schema::PreviewBody,
    responses(
        (status = 200, body = wire::Preview, description = "The next slots"),
    ),
)]
pub(super) async fn preview(
    State(api): State<Arc<Api>>,
    Reader(tenant): Reader,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    let request = wire::preview(&body)?;
    let preview = ops::preview::preview(&api, tenant, request).await?;
    answer::json(StatusCode::OK, &wire::Preview::of(preview))
}
