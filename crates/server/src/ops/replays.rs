//! Replays in bulk, and backfills: what a client wants run. The nodes do it (`engine/src/replays.rs`).

use std::sync::Arc;

use bytes::Bytes;
use model::{Job, JobId, ReplayId, RunState, TenantId, Timestamp, limits};
use store::{Page, Progress, Replay, ReplayCreated, ReplayWork, RunFind};

use super::change::Mode;
use super::error::OpError;
use super::fault::FieldError;
use super::jobs;
use super::page::{self, Listed};
use crate::api::Api;

/// How fast, and how many at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pace {
    pub rate: Option<u32>,
    pub limit: Option<u64>,
}

/// Runs that are to be replayed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReplayDraft {
    pub find: RunFind,
    pub payload: Option<Bytes>,
    pub pace: Pace,
}

/// Slots that are to be run after all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackfillDraft {
    pub from: Timestamp,
    /// Now, if it is left out or lies ahead.
    pub to: Option<Timestamp>,
    pub pace: Pace,
}

/// What a backfill comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Backfill {
    /// None in a rehearsal.
    pub replay: Option<Replay>,
    /// Slots of the schedule that lie there, also those that calendars leave out.
    pub slots: u64,
    pub from: Timestamp,
    pub to: Timestamp,
}

#[derive(Debug, thiserror::Error)]
pub enum ReplayFault {
    #[error("there is no such replay")]
    Missing,
    #[error("{} replays are under way already", limits::REPLAYS_MAX)]
    Full,
    #[error("the tenant of this key is gone")]
    NoTenant,
}

/// What cannot be replayed: what still moves, and what never ran.
fn check_states(find: &RunFind) -> Result<(), FieldError> {
    let not_ended = |state: &&RunState| state.is_live() || **state == RunState::Skipped;
    match find.filter.states.iter().find(not_ended) {
        None => Ok(()),
        Some(state) => Err(FieldError::invalid(
            "filter.state",
            format!("a run that is {state} is not replayed: write dead, cancelled or succeeded"),
        )),
    }
}

/// Dead runs unless states are named, of slots before now: what it starts itself is not among them.
pub async fn create(
    api: &Api,
    tenant: TenantId,
    by: &Arc<str>,
    mut draft: ReplayDraft,
) -> Result<Replay, OpError> {
    check_states(&draft.find)?;
    let now = api.engine.now();
    let filter = &mut draft.find.filter;
    if filter.states.is_empty() {
        filter.states.push(RunState::Dead);
    }
    filter.to = Some(filter.to.map_or(now, |to| to.min(now)));
    if let Some(from) = filter.from.filter(|from| *from >= now) {
        let detail = format!("from, {from}, is not in the past: there is nothing to replay");
        return Err(FieldError::invalid("filter.from", detail).into());
    }
    if let Some(job) = filter.job {
        jobs::get(api, tenant, job).await?;
    }
    let work = ReplayWork::Runs(draft.find, draft.payload);
    put(api, tenant, by, work, draft.pace, limits::REPLAY_RUNS_MAX).await
}

async fn put(
    api: &Api,
    tenant: TenantId,
    by: &Arc<str>,
    work: ReplayWork,
    pace: Pace,
    most: u64,
) -> Result<Replay, OpError> {
    let now = api.engine.now();
    let replay = Replay {
        id: ReplayId::new(now, rand::random()),
        tenant,
        work,
        rate: pace.rate.unwrap_or(limits::REPLAY_RATE_DEFAULT),
        limit: pace.limit.unwrap_or(most).min(most),
        created_at: now,
        actor: Arc::clone(by),
        progress: Progress {
            updated_at: now,
            ..Progress::default()
        },
    };
    let created = api.store.replays().create_replay(&replay).await;
    match created.map_err(OpError::Write)? {
        ReplayCreated::Done => {}
        ReplayCreated::Full => return Err(ReplayFault::Full.into()),
        ReplayCreated::NoTenant => return Err(ReplayFault::NoTenant.into()),
    }
    api.engine.nudge_replays();
    Ok(replay)
}

/// Runs past slots of a job on purpose. Refused where there is none, or where there are too many.
pub async fn backfill(
    api: &Api,
    tenant: TenantId,
    by: &Arc<str>,
    id: JobId,
    draft: BackfillDraft,
    mode: Mode,
) -> Result<Backfill, OpError> {
    let job = jobs::get(api, tenant, id).await?;
    let now = api.engine.now();
    let from = draft.from;
    let to = draft.to.map_or(now, |to| to.min(now));
    if from >= to {
        let detail =
            format!("from, {from}, is not before to, {to}; slots ahead are not backfilled");
        return Err(FieldError::invalid("from", detail).into());
    }
    let slots = count(&job, from, to);
    if job.def.schedule.after_completion() {
        let detail = "slots of this job follow from the ends of its runs, so none was left out: run it by hand";
        return Err(FieldError::invalid("from", detail).into());
    }
    if slots == 0 {
        let detail = format!("the job has no slot from {from} to {to}");
        return Err(FieldError::invalid("from", detail).into());
    }
    let limit = draft.pace.limit.unwrap_or(slots).min(slots);
    if limit > limits::BACKFILL_SLOTS_MAX {
        let most = limits::BACKFILL_SLOTS_MAX;
        let detail = format!(
            "there are {slots} slots from {from} to {to}, and a backfill has at most {most}: choose a shorter range, or a limit"
        );
        return Err(FieldError::invalid("to", detail).into());
    }
    let replay = match mode {
        Mode::Dry => None,
        Mode::Write => {
            let work = ReplayWork::Slots(job.id, from, to);
            Some(put(api, tenant, by, work, draft.pace, limit).await?)
        }
    };
    Ok(Backfill {
        replay,
        slots,
        from,
        to,
    })
}

/// Slots of a job's schedule from one moment up to but not including another.
fn count(job: &Job, from: Timestamp, to: Timestamp) -> u64 {
    let millisecond = std::time::Duration::from_millis(1);
    let schedule = &job.def.schedule;
    let first = schedule.next_after(from.minus(millisecond));
    let first = first.filter(|slot| slot.0 < to);
    first.map_or(0, |first| {
        schedule.stretch(first, to.minus(millisecond)).count
    })
}

pub async fn get(api: &Api, tenant: TenantId, id: ReplayId) -> Result<Replay, OpError> {
    let replay = api.store.replays().get_replay(tenant, id).await?;
    replay.ok_or(ReplayFault::Missing.into())
}

/// Newest first.
pub async fn list(
    api: &Api,
    tenant: TenantId,
    page: Page<ReplayId>,
) -> Result<Listed<Replay, ReplayId>, OpError> {
    let read = |page| api.store.replays().list_replays(tenant, page);
    let weigh = |replay: &Replay| (replay.id, replay.payload().map_or(0, Bytes::len));
    Ok(page::fill(page, read, weigh).await?)
}

/// Starts nothing more. Runs that were started go on.
pub async fn cancel(api: &Api, tenant: TenantId, id: ReplayId) -> Result<Replay, OpError> {
    let now = api.engine.now();
    let cancelled = api.store.replays().cancel_replay(tenant, id, now).await;
    let cancelled = cancelled.map_err(OpError::Write)?;
    cancelled.ok_or(ReplayFault::Missing.into())
}
