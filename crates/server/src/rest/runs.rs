//! Runs over REST.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use model::{JobId, Run, RunState, TenantId};
use store::RunFilter;

use super::answer::{self, Answer};
use super::extract::{JobPath, JsonBody, NoParams, Params, RunPath, job_id, refuse, shown};
use super::who::{Operator, Reader};
use crate::api::Api;
use crate::ops::{jobs, runs};
use crate::problem::Problem;
use crate::wire::{self, schema};

/// List runs, newest first.
#[utoipa::path(
    get, path = "/v1/runs", tag = "runs", operation_id = "list_runs",
    params(
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
        ("limit" = Option<u32>, Query, description = "1 to 1000; 50 by default"),
        ("state" = Option<String>, Query, description = "One or several, separated by commas"),
        ("job" = Option<String>, Query, description = "A job: its id, or `key:` and its key"),
    ),
    responses(
        (status = 200, body = wire::RunList, description = "As asked"),
    ),
)]
pub async fn list(State(api): State<Arc<Api>>, Reader(tenant): Reader, params: Params) -> Answer {
    params.known(&["cursor", "limit", "state", "job"])?;
    let job = match params.one("job")? {
        // A key's plus, sent as it is, arrives as a space.
        Some(text) => {
            let named = job_id(&api, tenant, &text.replace(' ', "+")).await?;
            Some(named.map_err(|why| refuse("job", why))?)
        }
        None => None,
    };
    page(&api, tenant, job, &params).await
}

/// List the runs of one job, newest first.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/runs", tag = "runs", operation_id = "list_runs_of_job",
    params(
        ("id" = String, Path, description = "The job's id, or `key:` and its key"),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
        ("limit" = Option<u32>, Query, description = "1 to 1000; 50 by default"),
        ("state" = Option<String>, Query, description = "One or several, separated by commas"),
    ),
    responses(
        (status = 200, body = wire::RunList, description = "As asked"),
    ),
)]
pub async fn list_of_job(
    State(api): State<Arc<Api>>,
    Reader(tenant): Reader,
    JobPath(id): JobPath,
    params: Params,
) -> Answer {
    params.known(&["cursor", "limit", "state"])?;
    page(&api, tenant, Some(id), &params).await
}

async fn page(api: &Api, tenant: TenantId, job: Option<JobId>, params: &Params) -> Answer {
    let filter = RunFilter {
        job,
        states: states(params)?,
    };
    let listed = runs::list(api, tenant, &filter, answer::page(params)?).await?;
    if let Some(job) = job.filter(|_| listed.items.is_empty()) {
        // A job that never ran is told from one that is not there.
        jobs::get(api, tenant, job).await?;
    }
    answer::json(
        StatusCode::OK,
        &wire::RunList {
            items: listed.items.iter().map(wire::Run::of).collect(),
            next_cursor: listed.next.as_ref().map(answer::cursor),
        },
    )
}

fn states(params: &Params) -> Result<Vec<RunState>, Problem> {
    let words = params.all("state").flat_map(|list| list.split(','));
    words
        .map(|word| {
            RunState::parse(word).ok_or_else(|| {
                let known = RunState::ALL.map(RunState::as_str).join(", ");
                refuse(
                    "state",
                    format!("{:?} is not a state of a run: {known}", shown(word)),
                )
            })
        })
        .collect()
}

/// Show a run.
#[utoipa::path(
    get, path = "/v1/runs/{id}", tag = "runs", operation_id = "get_run",
    params(("id" = String, Path, description = "The run's id")),
    responses(
        (status = 200, body = wire::Run, description = "As asked"),
    ),
)]
pub async fn show(
    State(api): State<Arc<Api>>,
    Reader(tenant): Reader,
    RunPath(id): RunPath,
) -> Answer {
    let run = runs::get(&api, tenant, id).await?;
    let marks = runs::marks_so_far(&api, &run).await?;
    answer::json(StatusCode::OK, &wire::Run::of(&run).marked(marks))
}

/// Cancel a run that has not ended.
#[utoipa::path(
    post, path = "/v1/runs/{id}/cancel", tag = "runs", operation_id = "cancel_run",
    params(("id" = String, Path, description = "The run's id")),
    responses(
        (status = 200, body = wire::RunAnswer, description = "As asked"),
        (status = 202, body = wire::RunAnswer, description = "Asked for; its holder has not answered yet"),
    ),
)]
pub async fn cancel(
    State(api): State<Arc<Api>>,
    Operator(tenant): Operator,
    RunPath(id): RunPath,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    wire::nothing(&body)?;
    let cancelled = runs::cancel(&api, tenant, id).await?;
    let status = if cancelled.runs.unconfirmed.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::ACCEPTED
    };
    answer::json(
        status,
        &wire::RunAnswer {
            run: wire::Run::of(&cancelled.run),
            runs: wire::Runs::of(&cancelled.runs),
        },
    )
}

/// Run a job now.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/run", tag = "runs", operation_id = "run_job",
    params(("id" = String, Path, description = "The job's id, or `key:` and its key")),
    request_body(content = Option<schema::StartBody>),
    responses(
        (status = 201, body = wire::Run, description = "Made"),
    ),
)]
pub async fn start(
    State(api): State<Arc<Api>>,
    Operator(tenant): Operator,
    JobPath(id): JobPath,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    let asked = wire::start(&body)?;
    started(&runs::start(&api, tenant, id, asked).await?)
}

/// Replay the last dead run of a job. `/retry` is the same.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/replay", tag = "runs", operation_id = "replay_job",
    params(("id" = String, Path, description = "The job's id, or `key:` and its key")),
    request_body(content = Option<schema::StartBody>),
    responses(
        (status = 201, body = wire::Run, description = "Made"),
    ),
)]
pub async fn replay_last(
    State(api): State<Arc<Api>>,
    Operator(tenant): Operator,
    JobPath(id): JobPath,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    let asked = wire::start(&body)?;
    started(&runs::replay_last(&api, tenant, id, asked).await?)
}

/// Replay a run that has ended: a new run, the old one stays as it was. `/retry` is the same.
#[utoipa::path(
    post, path = "/v1/runs/{id}/replay", tag = "runs", operation_id = "replay_run",
    params(("id" = String, Path, description = "The run's id")),
    request_body(content = Option<schema::StartBody>),
    responses(
        (status = 201, body = wire::Run, description = "Made"),
    ),
)]
pub async fn replay(
    State(api): State<Arc<Api>>,
    Operator(tenant): Operator,
    RunPath(id): RunPath,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    let asked = wire::start(&body)?;
    started(&runs::replay(&api, tenant, id, asked).await?)
}

fn started(run: &Run) -> Answer {
    let mut response = answer::json(StatusCode::CREATED, &wire::Run::of(run))?;
    answer::set(
        &mut response,
        header::LOCATION,
        &format!("/v1/runs/{}", run.id),
    );
    Ok(response)
}
