//! Which runs a request wants, by its parameters.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use model::{JobId, Reason, RunMatch, RunState, TenantId, WaitReason, limits};
use store::{RunFilter, RunFind};

use super::answer::{self, Answer};
use super::extract::{Params, job_id, refuse};
use super::jobs::labels;
use super::who::Reader;
use crate::api::Api;
use crate::ops::{find, jobs};
use crate::problem::Problem;
use crate::wire;

/// What says which runs are wanted.
pub(super) const FIND: [&str; 7] = ["state", "from", "to", "reason", "error", "label", "target"];

/// The job that runs are to be of, by `job`.
pub(super) async fn job(
    api: &Api,
    tenant: TenantId,
    params: &Params,
) -> Result<Option<JobId>, Problem> {
    let Some(text) = params.one("job")? else {
        return Ok(None);
    };
    // A key's plus, sent as it is, arrives as a space.
    let named = job_id(api, tenant, &text.replace(' ', "+")).await?;
    Ok(Some(named.map_err(|why| refuse("job", why))?))
}

pub(super) fn find(job: Option<JobId>, params: &Params) -> Result<RunFind, Problem> {
    let (from, to) = (params.moment("from")?, params.moment("to")?);
    if let (Some(from), Some(to)) = (from, to)
        && from >= to
    {
        let detail = format!("to, {to}, is not later than from, {from}");
        return Err(refuse("to", detail));
    }
    let states = RunState::ALL.map(RunState::as_str);
    let waits = WaitReason::ALL.map(WaitReason::as_str);
    let reasons = Reason::ALL.map(Reason::as_str);
    let text = |name, max| -> Result<_, Problem> { Ok(params.text(name, max)?.map(str::to_owned)) };
    Ok(RunFind {
        filter: RunFilter {
            job,
            states: params.words("state", "run", &states, RunState::parse)?,
            waiting: params.words("waiting", "run", &waits, WaitReason::parse)?,
            from,
            to,
        },
        matches: RunMatch {
            reasons: params.words("reason", "run", &reasons, Reason::parse)?,
            error: text("error", limits::ERROR_MAX)?,
            labels: labels(params)?,
            target: text("target", limits::URL_MAX)?,
        },
    })
}

/// Group runs by their errors. Digits, ids and addresses do not part errors that are alike.
#[utoipa::path(
    get, path = "/v1/runs/groups", tag = "runs", operation_id = "group_runs",
    params(
        ("state" = Option<String>, Query, description = "One or several, separated by commas; dead by default"),
        ("job" = Option<String>, Query, description = "A job: its id, or `key:` and its key"),
        ("from" = Option<String>, Query, description = "Slots from this moment on, or runs asked for since: RFC 3339, or epoch seconds"),
        ("to" = Option<String>, Query, description = "And before this moment"),
        ("reason" = Option<String>, Query, description = "One or several, separated by commas"),
        ("error" = Option<String>, Query, description = "A part of the last attempt's error or of its group's name, in any case"),
        ("label" = Option<String>, Query, description = "`name=value`, of the job as it stands; may be given several times"),
        ("target" = Option<String>, Query, description = "The host that the job as it stands calls, with or without its port"),
    ),
    responses(
        (status = 200, body = wire::RunGroups, description = "The groups"),
    ),
)]
pub(super) async fn groups(
    State(api): State<Arc<Api>>,
    Reader(tenant): Reader,
    params: Params,
) -> Answer {
    params.known(&[&FIND[..], &["job"]].concat())?;
    let job = job(&api, tenant, &params).await?;
    let mut wanted = find(job, &params)?;
    if wanted.filter.states.is_empty() {
        wanted.filter.states.push(RunState::Dead);
    }
    let groups = find::groups(&api, tenant, &wanted).await?;
    if let Some(job) = job.filter(|_| groups.items.is_empty()) {
        jobs::get(&api, tenant, job).await?;
    }
    answer::json(StatusCode::OK, &wire::RunGroups::of(&groups))
}
