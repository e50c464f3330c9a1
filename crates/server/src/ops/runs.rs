//! What a client does to runs.

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use model::rollup::Count;
use model::{
    Job, JobId, Level, Marks, Run, RunId, RunKind, RunState, TenantId, Timestamp, Trace, Wait,
};
use store::{Cancelled, Page, Raised, RunFilter, StartRun, Started, StoreError, Woken};

use super::error::OpError;
use super::jobs;
use super::page::{self, Listed};
use super::tenants;
use super::withdraw::{self, Wish, Withdrawn};
use crate::api::Api;

/// What a request to run something may carry.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StartRequest {
    /// Instead of the job's own.
    pub payload: Option<Bytes>,
    /// Whatever else is alive.
    pub force: bool,
    /// Whose trace its callbacks are to go on with.
    pub trace: Option<Trace>,
}

pub async fn get(api: &Api, tenant: TenantId, id: RunId) -> Result<Run, OpError> {
    let run = api.store.get_run(tenant, id).await?;
    let run = run.ok_or(OpError::RunMissing)?;
    if !run.state.is_live() {
        let from = tenants::history_from(api, tenant).await?;
        if from.is_some_and(|from| run.id.at() < from) {
            return Err(OpError::RunMissing);
        }
    }
    Ok(run)
}

/// Runs that a tenant may see, from the newest on: those since `from`, and older ones that are alive.
async fn seen(
    api: &Api,
    tenant: TenantId,
    filter: &RunFilter,
    from: Timestamp,
    page: Page<RunId>,
) -> Result<Vec<Run>, StoreError> {
    let least = RunId::least_at(from);
    let mut runs = Vec::new();
    if page.before.is_none_or(|before| before > least) {
        runs = api.store.list_runs(tenant, filter, page).await?;
        match runs.iter().position(|run| run.id < least) {
            Some(first) => runs.truncate(first),
            None => return Ok(runs),
        }
    }
    let wanted = |state: &RunState| filter.states.is_empty() || filter.states.contains(state);
    let alive = RunFilter {
        states: RunState::ALL
            .into_iter()
            .filter(|state| state.is_live() && wanted(state))
            .collect(),
        ..filter.clone()
    };
    if !alive.states.is_empty() {
        let rest = Page {
            before: Some(page.before.unwrap_or(least).min(least)),
            limit: page.limit - runs.len(),
        };
        runs.extend(api.store.list_runs(tenant, &alive, rest).await?);
    }
    Ok(runs)
}

/// What is wrong with a run that is under way, by its job as it stands. One that has ended says it itself.
pub async fn marks_so_far(api: &Api, run: &Run) -> Result<Marks, OpError> {
    if run.state != RunState::Running {
        return Ok(Marks::default());
    }
    let job = api.store.get_job(run.tenant, run.job).await?;
    let marks = |job: Job| job.marks_so_far(run, api.engine.now());
    Ok(job.map(marks).unwrap_or_default())
}

/// Newest first. A page holds `limit` runs or fewer: large ones fill it sooner.
pub async fn list(
    api: &Api,
    tenant: TenantId,
    filter: &RunFilter,
    page: Page<RunId>,
) -> Result<Listed<Run, RunId>, OpError> {
    let from = tenants::history_from(api, tenant).await?;
    let read = |page| read(api, tenant, filter, from, page);
    Ok(page::fill(page, read, weigh).await?)
}

/// What the store has that the tenant may see, which is what is not older than `from`.
pub(super) fn read<'a>(
    api: &'a Api,
    tenant: TenantId,
    filter: &'a RunFilter,
    from: Option<Timestamp>,
    page: Page<RunId>,
) -> BoxFuture<'a, Result<Vec<Run>, StoreError>> {
    match from {
        Some(from) => seen(api, tenant, filter, from, page).boxed(),
        None => api.store.list_runs(tenant, filter, page),
    }
}

/// What identifies a run, and how large it is.
pub(super) fn weigh(run: &Run) -> (RunId, usize) {
    let outputs = run.attempts.iter().map(|attempt| attempt.output.len());
    (run.id, outputs.sum())
}

/// Runs a job now, also while it is paused or finished.
pub async fn start(
    api: &Api,
    tenant: TenantId,
    id: JobId,
    request: StartRequest,
) -> Result<Run, OpError> {
    let job = jobs::get(api, tenant, id).await?;
    let mut run = build(
        &job,
        RunKind::Manual,
        None,
        request.payload,
        api.engine.now(),
    );
    run.trace = traced(api, request.trace).await?;
    begin(api, run, request.force)
        .await?
        .ok_or(OpError::JobMissing)
}

/// A trace, unless a node lives that could not read a run which has one: a trace is no reason to refuse a run.
async fn traced(api: &Api, trace: Option<Trace>) -> Result<Option<Box<Trace>>, OpError> {
    let Some(trace) = trace else {
        return Ok(None);
    };
    match api.store.raise_level(Level::OUTSIDE).await? {
        Raised::Done => Ok(Some(Box::new(trace))),
        Raised::Below(_) => Ok(None),
    }
}

/// A new run made from one that has ended; the old one stays as it was.
pub async fn replay(
    api: &Api,
    tenant: TenantId,
    id: RunId,
    request: StartRequest,
) -> Result<Run, OpError> {
    let old = get(api, tenant, id).await?;
    if old.state.is_live() {
        return Err(OpError::RunAlive(old.state));
    }
    let job = api
        .store
        .get_job(tenant, old.job)
        .await?
        .ok_or(OpError::JobOfRunGone(id))?;
    let payload = request.payload.or_else(|| old.payload.clone());
    let run = build(&job, RunKind::Replay, Some(&old), payload, api.engine.now());
    begin(api, run, request.force)
        .await?
        .ok_or(OpError::JobOfRunGone(id))
}

/// Replays the job's last dead run.
pub async fn replay_last(
    api: &Api,
    tenant: TenantId,
    id: JobId,
    request: StartRequest,
) -> Result<Run, OpError> {
    jobs::get(api, tenant, id).await?;
    let filter = RunFilter {
        job: Some(id),
        states: vec![RunState::Dead],
        ..RunFilter::default()
    };
    let one = Page {
        before: None,
        limit: 1,
    };
    let dead = list(api, tenant, &filter, one).await?;
    let last = dead.items.first().ok_or(OpError::NoDeadRun)?;
    replay(api, tenant, last.id, request).await
}

/// The nonce is chosen here, once: a write that is repeated names the same run.
fn build(
    job: &Job,
    kind: RunKind,
    replay_of: Option<&Run>,
    payload: Option<Bytes>,
    now: Timestamp,
) -> Run {
    let id = RunId::of_request(job.id, now, rand::random());
    Run {
        slot: replay_of.and_then(|old| old.slot),
        replay_of: replay_of.map(|old| old.id),
        payload,
        ..Run::of_request(job, id, kind, now)
    }
}

/// Nothing when the job is not there any more.
async fn begin(api: &Api, run: Run, force: bool) -> Result<Option<Run>, OpError> {
    api.engine.begin_run(&run).map_err(OpError::QuotaExceeded)?;
    let mut start = StartRun { run, force };
    let started = api.store.start_run(&start).await;
    if !matches!(started, Ok(Started::Ready | Started::Waiting)) {
        api.engine.take_out_run(&start.run);
    }
    match started.map_err(OpError::Write)? {
        Started::Ready | Started::Repeated => {}
        Started::Waiting => start.run.wait = Some(Wait::TURN),
        Started::Refused(reason) => return Err(OpError::Overlap(reason)),
        Started::Missing => return Ok(None),
    }
    api.engine.nudge_plan(start.run.tenant, start.run.job);
    Ok(Some(start.run))
}

/// A run as it stands after it was marked to end, and whether its holder agreed.
#[derive(Debug, Clone, PartialEq)]
pub struct CancelledRun {
    pub run: Run,
    pub runs: Withdrawn,
}

/// Ends a run. Cancelling what is cancelled changes nothing.
pub async fn cancel(api: &Api, tenant: TenantId, id: RunId) -> Result<CancelledRun, OpError> {
    let withdrawn = |run| CancelledRun {
        run,
        runs: Withdrawn {
            withdrawn: vec![id],
            ..Withdrawn::default()
        },
    };
    let cancelled = api.store.cancel_run(tenant, id, api.engine.now()).await;
    match cancelled.map_err(OpError::Write)? {
        Cancelled::Done(run) => {
            let metrics = api.engine.metrics();
            metrics.run_ended(run.state);
            let count = (tenant, Count::Ended(run.state, 1));
            metrics.rollups.count(api.engine.now(), &[count]);
            Ok(withdrawn(*run))
        }
        Cancelled::Marked => {
            let runs = withdraw::confirm(api, tenant, vec![id], Wish::Cancel).await;
            // It is marked, whether or not it can be read again.
            let run = api.store.get_run(tenant, id).await;
            let run = run.map_err(OpError::Write)?.ok_or(OpError::RunMissing)?;
            Ok(CancelledRun { run, runs })
        }
        Cancelled::Ended(RunState::Cancelled) => Ok(withdrawn(get(api, tenant, id).await?)),
        Cancelled::Ended(state) => Err(OpError::RunEnded(state)),
        Cancelled::Missing => Err(OpError::RunMissing),
    }
}

/// Wakes a run that waits for something outside of its job: it may start at once.
pub async fn wake(api: &Api, tenant: TenantId, id: RunId) -> Result<Run, OpError> {
    let woken = api.store.wake_run(tenant, id, api.engine.now()).await;
    match woken.map_err(OpError::Write)? {
        Woken::Done(run) => {
            api.engine.nudge_plan(tenant, run.job);
            Ok(*run)
        }
        Woken::Not(state, _) if !state.is_live() => Err(OpError::RunEnded(state)),
        Woken::Not(state, wait) => Err(OpError::RunNotWaiting(state, wait)),
        Woken::Missing => Err(OpError::RunMissing),
    }
}
