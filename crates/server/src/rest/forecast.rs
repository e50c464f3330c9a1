//! Forecasts over REST.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use model::schedule::parse_span;

use super::answer::{self, Answer};
use super::extract::{Params, refuse};
use super::who::Viewer;
use crate::api::Api;
use crate::ops::forecast::{self, Reach};
use crate::ops::rush;
use crate::problem::Problem;
use crate::wire;

/// Forecast how many slots are due in the seconds ahead, by lane.
#[utoipa::path(
    get, path = "/v1/forecast", tag = "overview", operation_id = "get_forecast",
    params(
        ("reach" = Option<String>, Query, description = "`1h`, in points of a minute, or `24h`, in points of five; `24h` by default"),
    ),
    responses(
        (status = 200, body = wire::Forecast, description = "The forecast"),
    ),
)]
pub(super) async fn show(
    State(api): State<Arc<Api>>,
    Viewer(caller): Viewer,
    params: Params,
) -> Answer {
    params.known(&["reach"])?;
    let words = Reach::ALL.map(Reach::as_str);
    let reach = params.choice("reach", &words, Reach::parse, Reach::Day)?;
    let found = forecast::forecast(&api, caller).await?;
    answer::json(StatusCode::OK, &wire::Forecast::of(&found, reach))
}

/// Show the jobs that are due in one second ahead, and what a spread would make of it.
#[utoipa::path(
    get, path = "/v1/forecast/second", tag = "overview", operation_id = "get_forecast_second",
    params(
        ("at" = String, Query, description = "RFC 3339, or epoch seconds; within the next 24 hours"),
        ("spread" = Option<String>, Query, description = "The longest spread that is proposed; `1m` by default"),
    ),
    responses(
        (status = 200, body = wire::ForecastSecond, description = "The forecast"),
    ),
)]
pub(super) async fn second(
    State(api): State<Arc<Api>>,
    Viewer(caller): Viewer,
    params: Params,
) -> Answer {
    params.known(&["at", "spread"])?;
    let at = params.moment("at")?;
    let at = at.ok_or_else(|| refuse("at", "at is missing: write at=2026-03-29T00:00:00Z"))?;
    let spread = spread(&params)?;
    if let Some((name, detail)) = rush::fault(api.engine.now(), at, spread) {
        return Err(refuse(name, detail));
    }
    let found = rush::rush(&api, caller, at, spread).await?;
    answer::json(StatusCode::OK, &wire::ForecastSecond::of(&found))
}

fn spread(params: &Params) -> Result<Duration, Problem> {
    let Some(text) = params.one("spread")? else {
        return Ok(rush::SPREAD);
    };
    parse_span(text).map_err(|error| refuse("spread", error.to_string()))
}
