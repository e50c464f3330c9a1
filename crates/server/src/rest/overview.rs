//! Overviews over REST.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;

use super::answer::{self, Answer};
use super::extract::Params;
use super::who::Viewer;
use crate::api::Api;
use crate::ops::overview::{self, Span};
use crate::wire;

/// Show how the jobs fare: counts over a span that ends now, what there is now, and what somebody should look at.
#[utoipa::path(
    get, path = "/v1/overview", tag = "overview", operation_id = "get_overview",
    params(
        ("span" = Option<String>, Query, description = "`1h`, `6h`, `24h` or `7d`; `1h` by default"),
    ),
    responses(
        (status = 200, body = wire::Overview, description = "The overview"),
    ),
)]
pub(super) async fn show(
    State(api): State<Arc<Api>>,
    Viewer(caller): Viewer,
    params: Params,
) -> Answer {
    params.known(&["span"])?;
    let words = Span::ALL.map(Span::as_str);
    let span = params.choice("span", &words, Span::parse, Span::Hour)?;
    let overview = overview::overview(&api, caller, span).await?;
    answer::json(StatusCode::OK, &wire::Overview::of(&overview))
}
