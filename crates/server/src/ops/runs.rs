//! What a client does to runs.

use bytes::Bytes;
use model::{AttemptNo, Job, JobId, Marks, Run, RunId, RunKind, RunState, TenantId, Timestamp};
use store::{Cancelled, Page, RunFilter, StartRun, Started};

use super::error::OpError;
use super::jobs;
use super::page::{self, Listed};
use super::withdraw::{self, Wish, Withdrawn};
use crate::api::Api;

/// What a request to run something may carry.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Asked {
    /// Instead of the job's own.
    pub payload: Option<Bytes>,
    /// Whatever else is alive.
    pub force: bool,
}

pub async fn get(api: &Api, tenant: TenantId, id: RunId) -> Result<Run, OpError> {
    api.store
        .get_run(tenant, id)
        .await?
        .ok_or(OpError::RunMissing)
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
    let read = |page| api.store.list_runs(tenant, filter, page);
    let weigh = |run: &Run| {
        (
            run.id,
            run.attempts
                .iter()
                .map(|attempt| attempt.output.len())
                .sum::<usize>(),
        )
    };
    Ok(page::fill(page, read, weigh).await?)
}

/// Runs a job now, also while it is paused or finished.
pub async fn start(api: &Api, tenant: TenantId, id: JobId, asked: Asked) -> Result<Run, OpError> {
    let job = jobs::get(api, tenant, id).await?;
    let run = build(&job, RunKind::Manual, None, asked.payload, api.engine.now());
    begin(api, run, asked.force)
        .await?
        .ok_or(OpError::JobMissing)
}

/// A new run made from one that has ended; the old one stays as it was.
pub async fn replay(api: &Api, tenant: TenantId, id: RunId, asked: Asked) -> Result<Run, OpError> {
    let old = get(api, tenant, id).await?;
    if old.state.is_live() {
        return Err(OpError::RunAlive(old.state));
    }
    let job = api
        .store
        .get_job(tenant, old.job)
        .await?
        .ok_or(OpError::JobOfRunGone(id))?;
    let payload = asked.payload.or_else(|| old.payload.clone());
    let run = build(&job, RunKind::Replay, Some(&old), payload, api.engine.now());
    begin(api, run, asked.force)
        .await?
        .ok_or(OpError::JobOfRunGone(id))
}

/// Replays the job's last dead run.
pub async fn replay_last(
    api: &Api,
    tenant: TenantId,
    id: JobId,
    asked: Asked,
) -> Result<Run, OpError> {
    jobs::get(api, tenant, id).await?;
    let filter = RunFilter {
        job: Some(id),
        states: vec![RunState::Dead],
    };
    let dead = api
        .store
        .list_runs(
            tenant,
            &filter,
            Page {
                before: None,
                limit: 1,
            },
        )
        .await?;
    let last = dead.first().ok_or(OpError::NoDeadRun)?;
    replay(api, tenant, last.id, asked).await
}

/// The nonce is chosen here, once: a write that is repeated names the same run.
fn build(
    job: &Job,
    kind: RunKind,
    replay_of: Option<&Run>,
    payload: Option<Bytes>,
    now: Timestamp,
) -> Run {
    Run {
        id: RunId::asked(job.id, now, rand::random()),
        tenant: job.tenant,
        job: job.id,
        kind,
        slot: replay_of.and_then(|old| old.slot),
        replay_of: replay_of.map(|old| old.id),
        due_at: now,
        lane: job.def.lane,
        state: RunState::Ready,
        reason: None,
        attempt: AttemptNo::FIRST,
        lost: 0,
        version: job.version,
        claim: None,
        mark: None,
        waiting: false,
        dispatched_at: None,
        settled_at: None,
        payload,
        payload_left: None,
        stretch: None,
        note: None,
        by: None,
        attempts: Vec::new(),
    }
}

/// Nothing when the job is not there any more.
async fn begin(api: &Api, run: Run, force: bool) -> Result<Option<Run>, OpError> {
    let mut start = StartRun { run, force };
    let started = api.store.start_run(&start).await;
    match started.map_err(OpError::Write)? {
        Started::Ready | Started::Repeated => {}
        Started::Waiting => start.run.waiting = true,
        Started::Refused(reason) => return Err(OpError::Overlap(reason)),
        Started::Missing => return Ok(None),
    }
    api.engine.nudge_plan(start.run.tenant, start.run.job);
    Ok(Some(start.run))
}

/// A run as it stands after someone asked for its end, and whether its holder agreed.
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
            api.engine.metrics().run_ended(run.state);
            Ok(withdrawn(*run))
        }
        Cancelled::Asked => {
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
