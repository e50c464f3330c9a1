//! What became of slots, and why, over REST.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use model::Timestamp;
use model::schedule::{Point, format_span};

use super::answer::{self, Answer};
use super::extract::{JobPath, Params, refuse};
use super::who::Reader;
use crate::api::Api;
use crate::ops::explain;
use crate::ops::slots::{self, RANGE_MAX, Range};
use crate::problem::Problem;
use crate::wire;

/// How far back and ahead one looks by default.
const AROUND: Duration = Duration::from_secs(24 * 3_600);
/// Entries of a page when the client does not say.
const LIMIT_DEFAULT: usize = 100;

/// List the slots of a job in a range of time, oldest first, each with its fate.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/slots", tag = "schedules", operation_id = "list_slots_of_job",
    params(
        ("id" = String, Path, description = "The job's id, or `key:` and its key"),
        ("from" = Option<String>, Query, description = "RFC 3339, or epoch seconds; 24 hours ago by default"),
        ("to" = Option<String>, Query, description = "Not included; in 24 hours by default"),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
        ("limit" = Option<u32>, Query, description = "1 to 1000; 100 by default"),
    ),
    responses(
        (status = 200, body = wire::SlotList, description = "A page of slots"),
    ),
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    Reader(tenant): Reader,
    JobPath(id): JobPath,
    params: Params,
) -> Answer {
    params.known(&["from", "to", "cursor", "limit"])?;
    let range = range(&params, api.engine.now())?;
    let page = slots::list(&api, tenant, id, range).await?;
    answer::json(
        StatusCode::OK,
        &wire::SlotList {
            items: page.entries.iter().map(wire::SlotEntry::of).collect(),
            next_cursor: page.next.as_ref().map(answer::cursor),
            from: range.from.to_string(),
            to: range.to.to_string(),
            history_from: page.history_from.to_string(),
        },
    )
}

fn range(params: &Params, now: Timestamp) -> Result<Range, Problem> {
    let (from, to) = (params.moment("from")?, params.moment("to")?);
    let range = Range {
        from: from.unwrap_or(to.map_or(now, |to| to.min(now)).minus(AROUND)),
        to: to.unwrap_or(from.map_or(now, |from| from.max(now)).plus(AROUND)),
        cursor: answer::cursor_of(params)?,
        limit: answer::limit_of(params, LIMIT_DEFAULT)?,
    };
    let Range { from, to, .. } = range;
    if from >= to {
        return Err(refuse(
            "to",
            format!("to, {to}, is not later than from, {from}"),
        ));
    }
    if to.since(from) > RANGE_MAX {
        let most = format_span(RANGE_MAX);
        return Err(refuse(
            "to",
            format!("to lies at most {most} after from, {from}"),
        ));
    }
    Ok(range)
}

/// Explain why a job is, was or will be due at a moment, or why not.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/explain", tag = "schedules", operation_id = "explain_slot_of_job",
    params(
        ("id" = String, Path, description = "The job's id, or `key:` and its key"),
        ("at" = String, Query, description = "RFC 3339, epoch seconds, or a local time in the job's zone such as `2026-03-29T02:30`"),
    ),
    responses(
        (status = 200, body = wire::Explained, description = "The explanation"),
    ),
)]
pub(super) async fn explain(
    State(api): State<Arc<Api>>,
    Reader(tenant): Reader,
    JobPath(id): JobPath,
    params: Params,
) -> Answer {
    params.known(&["at"])?;
    let example =
        "write at=2026-03-29T02:30, by the clock in the job's zone, or at=2026-03-29T00:30:00Z";
    let text = params.one("at")?;
    let text = text.ok_or_else(|| refuse("at", format!("at is missing: {example}")))?;
    // An offset's plus, sent as it is, arrives as a space.
    let point = Point::parse(text).or_else(|_| Point::parse(&text.replace(' ', "+")));
    let point = point.map_err(|error| refuse("at", format!("{error}; {example}")))?;
    let explained = explain::explain(&api, tenant, id, &point).await?;
    answer::json(StatusCode::OK, &wire::Explained::of(&explained))
}
