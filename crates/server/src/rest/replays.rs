//! Replays in bulk, and backfills, over REST.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use store::{Acting, Replay};

use super::answer::{self, Answer};
use super::extract::{DryRun, JobPath, JsonBody, NoParams, Params, ReplayPath, job_id};
use super::who::{Operator, Reader};
use crate::api::Api;
use crate::ops::{FieldError, Mode, replays};
use crate::wire::{self, schema};

fn accepted(replay: &Replay, answer: &impl serde::Serialize) -> Answer {
    let mut response = answer::json(StatusCode::ACCEPTED, answer)?;
    let path = format!("/v1/replays/{}", replay.id);
    answer::set(&mut response, header::LOCATION, &path);
    Ok(response)
}

/// Replay all runs that a filter names, at a pace: dead ones unless it says otherwise. The nodes do it in the background.
#[utoipa::path(
    post, path = "/v1/replays", tag = "replays", operation_id = "create_replay",
    request_body = schema::ReplayRequest,
    responses(
        (status = 202, body = wire::Replay, description = "Begun"),
    ),
)]
pub(super) async fn create(
    State(api): State<Arc<Api>>,
    Operator(caller): Operator,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    let (mut draft, job) = wire::replay_draft(&body)?;
    if let Some(job) = job {
        let named = job_id(&api, caller.tenant, &job).await?;
        let refused = |why| FieldError::invalid("filter.job", why);
        draft.find.filter.job = Some(named.map_err(refused)?);
    }
    let by = Arc::clone(&Acting::now().name);
    let replay = replays::create(&api, caller.tenant, &by, draft).await?;
    accepted(&replay, &wire::Replay::of(&replay))
}

/// List replays and backfills, newest first. Those that ended are kept for 7 days.
#[utoipa::path(
    get, path = "/v1/replays", tag = "replays", operation_id = "list_replays",
    params(
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
        ("limit" = Option<u32>, Query, description = "1 to 1000; 50 by default"),
    ),
    responses(
        (status = 200, body = wire::ReplayList, description = "A page of replays"),
    ),
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    Reader(tenant): Reader,
    params: Params,
) -> Answer {
    params.known(&["cursor", "limit"])?;
    let listed = replays::list(&api, tenant, answer::page(&params)?).await?;
    answer::json(
        StatusCode::OK,
        &wire::ReplayList {
            items: listed.items.iter().map(wire::Replay::of).collect(),
            next_cursor: listed.next.as_ref().map(answer::cursor),
        },
    )
}

/// Show a replay or a backfill, and how far it is.
#[utoipa::path(
    get, path = "/v1/replays/{id}", tag = "replays", operation_id = "get_replay",
    params(("id" = String, Path, description = "The replay's id")),
    responses(
        (status = 200, body = wire::Replay, description = "The replay"),
    ),
)]
pub(super) async fn show(
    State(api): State<Arc<Api>>,
    Reader(tenant): Reader,
    ReplayPath(id): ReplayPath,
    _: NoParams,
) -> Answer {
    let replay = replays::get(&api, tenant, id).await?;
    answer::json(StatusCode::OK, &wire::Replay::of(&replay))
}

/// Cancel a replay or a backfill: nothing more is started, and what was started goes on.
#[utoipa::path(
    post, path = "/v1/replays/{id}/cancel", tag = "replays", operation_id = "cancel_replay",
    params(("id" = String, Path, description = "The replay's id")),
    responses(
        (status = 200, body = wire::Replay, description = "As it stands; one that had ended stays as it was"),
    ),
)]
pub(super) async fn cancel(
    State(api): State<Arc<Api>>,
    Operator(caller): Operator,
    ReplayPath(id): ReplayPath,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    wire::nothing(&body)?;
    let replay = replays::cancel(&api, caller.tenant, id).await?;
    answer::json(StatusCode::OK, &wire::Replay::of(&replay))
}

/// Run past slots of a job on purpose, at a pace: each under its own name where it never ran, as a replay where it did.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/backfill", tag = "replays", operation_id = "backfill_job",
    params(
        ("id" = String, Path, description = "The job's id, or `key:` and its key"),
        ("dry_run" = Option<bool>, Query, description = "Say how many slots there are, and start nothing"),
    ),
    request_body = schema::BackfillBody,
    responses(
        (status = 202, body = wire::Backfill, description = "Begun"),
        (status = 200, body = wire::Backfill, description = "What it would come to"),
    ),
)]
pub(super) async fn backfill(
    State(api): State<Arc<Api>>,
    Operator(caller): Operator,
    JobPath(id): JobPath,
    DryRun(mode): DryRun,
    JsonBody(body): JsonBody,
) -> Answer {
    let draft = wire::backfill_draft(&body)?;
    let by = Arc::clone(&Acting::now().name);
    let backfill = replays::backfill(&api, caller.tenant, &by, id, draft, mode).await?;
    let answer = wire::Backfill::of(&backfill, mode == Mode::Dry);
    match &backfill.replay {
        Some(replay) => accepted(replay, &answer),
        None => answer::json(StatusCode::OK, &answer),
    }
}
