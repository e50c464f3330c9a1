//! Jobs over REST.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use model::{JobState, limits};
use store::JobFilter;

use super::answer::{self, Answer, REPLAYED};
use super::extract::{
    DryRun, JobPath, JsonBody, KeyPath, NoParams, Params, expect, idempotency, idempotency_key,
    refuse,
};
use super::who::{Admin, Operator, Reader};
use crate::api::Api;
use crate::ops::Mode;
use crate::ops::jobs::{self, Put};
use crate::problem::Problem;
use crate::wire::{self, schema};

/// Create a job.
#[utoipa::path(
    post, path = "/v1/jobs", tag = "jobs", operation_id = "create_job",
    params(
        ("dry_run" = Option<bool>, Query, description = "Check everything, show what would be, and write nothing"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request repeatable for 24 hours"),
    ),
    request_body = schema::JobRequest,
    responses(
        (status = 200, body = wire::JobAnswer, description = "With dry_run: what would be created"),
        (status = 201, body = wire::Job, description = "Created; or made before by the same request, then with Idempotency-Replayed: true"),
    ),
)]
pub(super) async fn create(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    DryRun(mode): DryRun,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Answer {
    let key = idempotency_key(&headers)?;
    let draft = wire::job_draft(&body)?;
    let idempotency = key.map(|key| idempotency(key.to_owned(), &body));
    let made = jobs::create(&api, caller, draft, idempotency, mode).await?;
    if mode == Mode::Dry {
        return answer::rehearsed(&api, &made.job).await;
    }
    let mut response = answer::job(StatusCode::CREATED, &made.job)?;
    if made.repeated {
        response
            .headers_mut()
            .insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// List jobs, newest first.
#[utoipa::path(
    get, path = "/v1/jobs", tag = "jobs", operation_id = "list_jobs",
    params(
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
        ("limit" = Option<u32>, Query, description = "1 to 1000; 50 by default"),
        ("state" = Option<String>, Query, description = "One or several, separated by commas"),
        ("label" = Option<String>, Query, description = "`name=value`; may be given several times"),
        ("q" = Option<String>, Query, description = "A part of the key, in any case"),
        ("owner" = Option<String>, Query, description = "Whoever they belong to"),
    ),
    responses(
        (status = 200, body = wire::JobList, description = "A page of jobs"),
    ),
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    Reader(tenant): Reader,
    params: Params,
) -> Answer {
    params.known(&["cursor", "limit", "state", "label", "q", "owner"])?;
    let states = JobState::ALL.map(JobState::as_str);
    let filter = JobFilter {
        states: params.words("state", "job", &states, JobState::parse)?,
        labels: labels(&params)?,
        q: params.text("q", limits::NAME_MAX)?.map(str::to_owned),
        owner: owner(&params)?.map(str::to_owned),
    };
    let listed = jobs::list(&api, tenant, &filter, answer::page(&params)?).await?;
    answer::json(
        StatusCode::OK,
        &wire::JobList {
            items: listed.items.iter().map(wire::Job::of).collect(),
            next_cursor: listed.next.as_ref().map(answer::cursor),
        },
    )
}

pub(super) fn labels(params: &Params) -> Result<Vec<(String, String)>, Problem> {
    let labels: Result<Vec<_>, Problem> = params
        .all("label")
        .map(|label| {
            // A name has neither sign. The colon was the first form, and is still taken.
            let (name, value) = label
                .split_once(['=', ':'])
                .ok_or_else(|| refuse("label", "write label=name=value"))?;
            if name.is_empty() || label.len() > 2 * limits::NAME_MAX + 1 {
                return Err(refuse("label", "write label=name=value"));
            }
            Ok((name.to_owned(), value.to_owned()))
        })
        .collect();
    let labels = labels?;
    if labels.len() > limits::LABELS_MAX {
        return Err(refuse(
            "label",
            format!("at most {} labels", limits::LABELS_MAX),
        ));
    }
    Ok(labels)
}

fn owner(params: &Params) -> Result<Option<&str>, Problem> {
    match params.one("owner")? {
        Some(text) if text.chars().count() > limits::OWNER_MAX => Err(refuse(
            "owner",
            format!("owner has at most {} characters", limits::OWNER_MAX),
        )),
        owner => Ok(owner),
    }
}

/// Show a job.
#[utoipa::path(
    get, path = "/v1/jobs/{id}", tag = "jobs", operation_id = "get_job",
    params(("id" = String, Path, description = "The job's id, or `key:` and its key")),
    responses(
        (status = 200, body = wire::Job, description = "The job"),
    ),
)]
pub(super) async fn show(
    State(api): State<Arc<Api>>,
    Reader(tenant): Reader,
    JobPath(id): JobPath,
) -> Answer {
    answer::job(StatusCode::OK, &jobs::get(&api, tenant, id).await?)
}

/// Show the job of a key.
#[utoipa::path(
    get, path = "/v1/jobs/by-key/{key}", tag = "jobs", operation_id = "get_job_by_key",
    params(("key" = String, Path, description = "The job's own key")),
    responses(
        (status = 200, body = wire::Job, description = "The job"),
    ),
)]
pub(super) async fn find(
    State(api): State<Arc<Api>>,
    Reader(tenant): Reader,
    KeyPath(key): KeyPath,
) -> Answer {
    answer::job(StatusCode::OK, &jobs::find(&api, tenant, &key).await?)
}

/// Create the job of a key, or replace all of it: what the body does not say takes its default. PATCH keeps it.
#[utoipa::path(
    put, path = "/v1/jobs/by-key/{key}", tag = "jobs", operation_id = "put_job_by_key",
    params(
        ("key" = String, Path, description = "The job's own key"),
        ("dry_run" = Option<bool>, Query, description = "Check everything, show what would be, and write nothing"),
        ("If-Match" = Option<String>, Header, description = "The version that is to be changed"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: only create"),
    ),
    request_body = schema::JobRequest,
    responses(
        (status = 200, body = wire::JobAnswer, description = "Changed, or already so"),
        (status = 201, body = wire::Job, description = "Created"),
    ),
)]
pub(super) async fn put(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    KeyPath(key): KeyPath,
    DryRun(mode): DryRun,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Answer {
    let expect = expect(&headers)?;
    let draft = wire::job_draft(&body)?;
    match jobs::put(&api, caller, &key, draft, &expect, mode).await? {
        Put::Created(job) if mode == Mode::Dry => answer::rehearsed(&api, &job).await,
        Put::Created(job) => answer::job(StatusCode::CREATED, &job),
        Put::Updated(changed) => answer::changed(&changed, mode),
    }
}

/// Change some fields of a job: what the body does not mention stays, `null` removes.
#[utoipa::path(
    patch, path = "/v1/jobs/{id}", tag = "jobs", operation_id = "patch_job",
    params(
        ("id" = String, Path, description = "The job's id, or `key:` and its key"),
        ("dry_run" = Option<bool>, Query, description = "Check everything, show what would be, and write nothing"),
        ("If-Match" = Option<String>, Header, description = "The version that is to be changed"),
    ),
    request_body = schema::JobPatch,
    responses(
        (status = 200, body = wire::JobAnswer, description = "The job, with what changed"),
    ),
)]
pub(super) async fn patch(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    JobPath(id): JobPath,
    DryRun(mode): DryRun,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Answer {
    let expect = expect(&headers)?;
    let draft = wire::job_draft(&body)?;
    let changed = jobs::patch(&api, caller, id, draft, &expect, mode).await?;
    answer::changed(&changed, mode)
}

/// Delete a job; its runs that have not ended are cancelled.
#[utoipa::path(
    delete, path = "/v1/jobs/{id}", tag = "jobs", operation_id = "delete_job",
    params(
        ("id" = String, Path, description = "The job's id, or `key:` and its key"),
        ("If-Match" = Option<String>, Header, description = "The version that is to be deleted"),
    ),
    responses(
        (status = 200, body = wire::JobAnswer, description = "The job, with what changed"),
    ),
)]
pub(super) async fn delete(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    JobPath(id): JobPath,
    _: NoParams,
    headers: HeaderMap,
) -> Answer {
    let expect = expect(&headers)?;
    let job = jobs::get(&api, caller.tenant, id).await?;
    let changed = jobs::delete(&api, caller, job, &expect).await?;
    answer::changed(&changed, Mode::Write)
}

/// Delete the job of a key.
#[utoipa::path(
    delete, path = "/v1/jobs/by-key/{key}", tag = "jobs", operation_id = "delete_job_by_key",
    params(
        ("key" = String, Path, description = "The job's own key"),
        ("If-Match" = Option<String>, Header, description = "The version that is to be deleted"),
    ),
    responses(
        (status = 200, body = wire::JobAnswer, description = "The job, with what changed"),
    ),
)]
pub(super) async fn delete_by_key(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    KeyPath(key): KeyPath,
    _: NoParams,
    headers: HeaderMap,
) -> Answer {
    let expect = expect(&headers)?;
    let job = jobs::find(&api, caller.tenant, &key).await?;
    let changed = jobs::delete(&api, caller, job, &expect).await?;
    answer::changed(&changed, Mode::Write)
}

/// Pause a job: none of its slots runs until it is resumed.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/pause", tag = "jobs", operation_id = "pause_job",
    params(
        ("id" = String, Path, description = "The job's id, or `key:` and its key"),
        ("If-Match" = Option<String>, Header, description = "The version that is to be paused"),
    ),
    request_body(content = Option<schema::PauseBody>),
    responses(
        (status = 200, body = wire::JobAnswer, description = "The job, with what changed"),
    ),
)]
pub(super) async fn pause(
    State(api): State<Arc<Api>>,
    Operator(caller): Operator,
    JobPath(id): JobPath,
    _: NoParams,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Answer {
    let expect = expect(&headers)?;
    let request = wire::pause(&body)?;
    let changed = jobs::pause(&api, caller, id, request.note, &expect).await?;
    answer::changed(&changed, Mode::Write)
}

/// Resume a paused job: from now on, or from where it was paused.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/resume", tag = "jobs", operation_id = "resume_job",
    params(
        ("id" = String, Path, description = "The job's id, or `key:` and its key"),
        ("If-Match" = Option<String>, Header, description = "The version that is to be resumed"),
    ),
    request_body(content = Option<schema::ResumeBody>),
    responses(
        (status = 200, body = wire::JobAnswer, description = "The job, with what changed"),
    ),
)]
pub(super) async fn resume(
    State(api): State<Arc<Api>>,
    Operator(caller): Operator,
    JobPath(id): JobPath,
    _: NoParams,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Answer {
    let expect = expect(&headers)?;
    let catch_up = wire::resume(&body)?;
    let changed = jobs::resume(&api, caller, id, catch_up, &expect).await?;
    answer::changed(&changed, Mode::Write)
}
