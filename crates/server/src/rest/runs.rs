//! Runs over REST.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use model::{JobId, Run, TenantId, Trace};

use super::answer::{self, Answer};
use super::extract::{JobPath, JsonBody, NoParams, Params, RunPath};
use super::find::{self, FIND};
use super::who::{Operator, Reader};
use crate::api::Api;
use crate::ops::{jobs, outside, runs};
use crate::wire::{self, schema};

/// List runs, newest first.
#[utoipa::path(
    get, path = "/v1/runs", tag = "runs", operation_id = "list_runs",
    params(
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
        ("limit" = Option<u32>, Query, description = "1 to 1000; 50 by default"),
        ("state" = Option<String>, Query, description = "One or several, separated by commas"),
        ("from" = Option<String>, Query, description = "Slots from this moment on, or runs asked for since: RFC 3339, or epoch seconds"),
        ("to" = Option<String>, Query, description = "And before this moment"),
        ("reason" = Option<String>, Query, description = "One or several, separated by commas"),
        ("error" = Option<String>, Query, description = "A part of the last attempt's error or of its group's name, in any case. With this, `reason`, `label` or `target` a page may be short, or empty, and have a `next_cursor` all the same"),
        ("label" = Option<String>, Query, description = "`name=value`, of the job as it stands; may be given several times"),
        ("target" = Option<String>, Query, description = "The host that the job as it stands calls, with or without its port"),
        ("waiting" = Option<String>, Query, description = "What they wait for: one or several, separated by commas"),
        ("job" = Option<String>, Query, description = "A job: its id, or `key:` and its key"),
    ),
    responses(
        (status = 200, body = wire::RunList, description = "A page of runs"),
    ),
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    Reader(tenant): Reader,
    params: Params,
) -> Answer {
    params.known(&[&FIND[..], &["cursor", "limit", "waiting", "job"]].concat())?;
    let job = find::job(&api, tenant, &params).await?;
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
        ("from" = Option<String>, Query, description = "Slots from this moment on, or runs asked for since: RFC 3339, or epoch seconds"),
        ("to" = Option<String>, Query, description = "And before this moment"),
        ("reason" = Option<String>, Query, description = "One or several, separated by commas"),
        ("error" = Option<String>, Query, description = "A part of the last attempt's error or of its group's name, in any case. With this, `reason`, `label` or `target` a page may be short, or empty, and have a `next_cursor` all the same"),
        ("label" = Option<String>, Query, description = "`name=value`, of the job as it stands; may be given several times"),
        ("target" = Option<String>, Query, description = "The host that the job as it stands calls, with or without its port"),
        ("waiting" = Option<String>, Query, description = "What they wait for: one or several, separated by commas"),
    ),
    responses(
        (status = 200, body = wire::RunList, description = "A page of runs"),
    ),
)]
pub(super) async fn list_of_job(
    State(api): State<Arc<Api>>,
    Reader(tenant): Reader,
    JobPath(id): JobPath,
    params: Params,
) -> Answer {
    params.known(&[&FIND[..], &["cursor", "limit", "waiting"]].concat())?;
    page(&api, tenant, Some(id), &params).await
}

async fn page(api: &Api, tenant: TenantId, job: Option<JobId>, params: &Params) -> Answer {
    let wanted = find::find(job, params)?;
    let listed = crate::ops::find::list(api, tenant, &wanted, answer::page(params)?).await?;
    if let Some(job) = job.filter(|_| listed.items.is_empty()) {
        // A job that never ran answers otherwise than one that is not there.
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

/// Show a run.
#[utoipa::path(
    get, path = "/v1/runs/{id}", tag = "runs", operation_id = "get_run",
    params(("id" = String, Path, description = "The run's id")),
    responses(
        (status = 200, body = wire::Run, description = "The run"),
    ),
)]
pub(super) async fn show(
    State(api): State<Arc<Api>>,
    Reader(tenant): Reader,
    RunPath(id): RunPath,
) -> Answer {
    let run = runs::get(&api, tenant, id).await?;
    let marks = runs::marks_so_far(&api, &run).await?;
    let handed = outside::handed(&api, &run).await?;
    let shown = wire::Run::of(&run).marked(marks).handed(handed.as_ref());
    answer::json(StatusCode::OK, &shown)
}

/// Cancel a run that has not ended.
#[utoipa::path(
    post, path = "/v1/runs/{id}/cancel", tag = "runs", operation_id = "cancel_run",
    params(("id" = String, Path, description = "The run's id")),
    responses(
        (status = 200, body = wire::RunAnswer, description = "The run"),
        (status = 202, body = wire::RunAnswer, description = "Asked for; its holder has not answered yet"),
    ),
)]
pub(super) async fn cancel(
    State(api): State<Arc<Api>>,
    Operator(caller): Operator,
    RunPath(id): RunPath,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    wire::nothing(&body)?;
    let cancelled = runs::cancel(&api, caller.tenant, id).await?;
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

/// Wake a run that waits for something outside of its job, such as a target that does not answer: it may start at once.
#[utoipa::path(
    post, path = "/v1/runs/{id}/wake", tag = "runs", operation_id = "wake_run",
    params(("id" = String, Path, description = "The run's id")),
    responses(
        (status = 200, body = wire::Run, description = "The run"),
    ),
)]
pub(super) async fn wake(
    State(api): State<Arc<Api>>,
    Operator(caller): Operator,
    RunPath(id): RunPath,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    wire::nothing(&body)?;
    let run = runs::wake(&api, caller.tenant, id).await?;
    answer::json(StatusCode::OK, &wire::Run::of(&run))
}

/// Run a job now.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/run", tag = "runs", operation_id = "run_job",
    params(
        ("id" = String, Path, description = "The job's id, or `key:` and its key"),
        ("traceparent" = Option<String>, Header, description = "W3C trace context: the run's callbacks go on with this trace. One that is not valid is ignored"),
    ),
    request_body(content = Option<schema::StartBody>),
    responses(
        (status = 201, body = wire::Run, description = "The new run"),
    ),
)]
pub(super) async fn start(
    State(api): State<Arc<Api>>,
    Operator(caller): Operator,
    JobPath(id): JobPath,
    _: NoParams,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Answer {
    let request = runs::StartRequest {
        trace: trace_of(&headers),
        ..wire::start(&body)?
    };
    started(&runs::start(&api, caller.tenant, id, request).await?)
}

/// The caller's trace. As W3C wants it, one that is not valid, or is said twice, is none.
fn trace_of(headers: &HeaderMap) -> Option<Trace> {
    let mut said = headers.get_all("traceparent").iter();
    let (first, second) = (said.next()?, said.next());
    let text = first.to_str().ok().filter(|_| second.is_none())?;
    Trace::parse(text)
}

/// Replay the last dead run of a job. `/retry` is the same.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/replay", tag = "runs", operation_id = "replay_job",
    params(("id" = String, Path, description = "The job's id, or `key:` and its key")),
    request_body(content = Option<schema::StartBody>),
    responses(
        (status = 201, body = wire::Run, description = "The new run"),
    ),
)]
pub(super) async fn replay_last(
    State(api): State<Arc<Api>>,
    Operator(caller): Operator,
    JobPath(id): JobPath,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    let request = wire::start(&body)?;
    started(&runs::replay_last(&api, caller.tenant, id, request).await?)
}

/// Replay a run that has ended: a new run, the old one stays as it was. `/retry` is the same.
#[utoipa::path(
    post, path = "/v1/runs/{id}/replay", tag = "runs", operation_id = "replay_run",
    params(("id" = String, Path, description = "The run's id")),
    request_body(content = Option<schema::StartBody>),
    responses(
        (status = 201, body = wire::Run, description = "The new run"),
    ),
)]
pub(super) async fn replay(
    State(api): State<Arc<Api>>,
    Operator(caller): Operator,
    RunPath(id): RunPath,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    let request = wire::start(&body)?;
    started(&runs::replay(&api, caller.tenant, id, request).await?)
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
