//! One way to change a job: wait for one's turn, read, decide, write if nobody was faster, wait for the holders.
//!
//! A fire in between moves the job's next slot without changing its version; the write then meets a
//! conflict, and is decided again from what stands, as long as the version is the one expected.

use std::sync::Arc;
use std::time::Duration;

use model::{Job, JobState, RunId, RunKind, RunState, Skip, TenantId, Timestamp, Version};
use store::{JobChange, JobChanged, Page, RunFilter, RunsOfChange};

use super::error::OpError;
use super::level;
use super::preview::{Compared, Difference};
use super::schedule;
use super::target;
use super::turns::Turn;
use super::withdraw::{self, Wish, Withdrawn};
use crate::api::Api;

/// How often a change is decided again before the client is to come back.
const TRIES_MAX: u32 = 32;
/// Tries that follow at once; later ones wait a little.
const TRIES_AT_ONCE: u32 = 4;

/// Whether a change is written, or only shown as it would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    #[default]
    Write,
    /// Everything is checked and nothing is written.
    Dry,
}

/// Which versions of a job a request may change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Expect {
    #[default]
    Anything,
    /// Any version, but there must be one.
    Existing,
    /// There must be none.
    Absent,
    OneOf(Vec<Version>),
}

impl Expect {
    pub fn check(&self, job: &Job) -> Result<(), OpError> {
        match self {
            Self::Anything | Self::Existing => Ok(()),
            Self::Absent => Err(OpError::JobExists(job.id)),
            Self::OneOf(versions) if versions.contains(&job.version) => Ok(()),
            Self::OneOf(_) => Err(OpError::VersionConflict { found: job.version }),
        }
    }
}

/// A job as it stands after a change, and what became of runs that were claimed before it.
#[derive(Debug, Clone, PartialEq)]
pub struct Changed {
    pub job: Arc<Job>,
    pub runs: Withdrawn,
    /// False when there was nothing to change.
    pub written: bool,
    /// Of another schedule: what it means for the slots ahead.
    pub slots: Option<Difference>,
}

impl Changed {
    /// A job that nothing was written about.
    pub fn unwritten(job: Arc<Job>, slots: Option<Difference>) -> Self {
        Self {
            job,
            runs: Withdrawn::default(),
            written: false,
            slots,
        }
    }
}

/// What is to be written.
pub(super) struct Edit {
    pub after: Job,
    pub skipped: Vec<Skip>,
    pub runs: RunsOfChange,
}

impl Edit {
    /// What the model answers of a change, and what it means for runs that are alive.
    pub(super) fn new((after, skipped): (Job, Vec<Skip>), runs: RunsOfChange) -> Self {
        Self {
            after,
            skipped,
            runs,
        }
    }
}

/// Changes a job as `decide` says, which answers nothing when the job is already as wished.
pub(super) async fn change(
    api: &Api,
    tenant: TenantId,
    job: Job,
    expect: &Expect,
    mode: Mode,
    decide: impl Fn(&Job, Timestamp) -> Result<Option<Edit>, OpError> + Send + Sync,
) -> Result<Changed, OpError> {
    let (turn, mut before) = in_turn(api, tenant, job).await?;
    for tries in 0..TRIES_MAX {
        if before.state == JobState::Deleted {
            return Err(OpError::JobMissing);
        }
        expect.check(&before)?;
        let Some(edit) = decide(&before, api.engine.now())? else {
            return Ok(Changed::unwritten(before, None));
        };
        let after = Arc::new(edit.after);
        if after.def.target != before.def.target {
            target::check(api, tenant, &after.def).await?;
        }
        let compared = Compared::new(api, &before, &after).await?;
        if mode == Mode::Dry {
            return rehearse(api, tenant, &before, &after, compared).await;
        }
        level::check(api, &after.def).await?;
        let change = JobChange {
            before: Arc::clone(&before),
            after,
            skipped: edit.skipped,
            runs: edit.runs,
        };
        let done = api.store.change_job(&change).await;
        match done.map_err(OpError::Write)? {
            JobChanged::Done {
                job,
                marked,
                cancelled,
            } => {
                drop(turn);
                let (now, metrics) = (api.engine.now(), api.engine.metrics());
                metrics.job_changed(now, tenant, &change.skipped, cancelled);
                return Ok(written(api, &change, compared, (*job, marked)).await);
            }
            JobChanged::Conflict(found) => before = Arc::new(*found),
            JobChanged::KeyTaken(holder) => return Err(OpError::KeyTaken(holder)),
            JobChanged::CalendarMissing(name) => {
                return Err(schedule::calendar_gone(&change.after.def.schedule, &name).into());
            }
            JobChanged::QuotaExceeded(it) => return Err(OpError::QuotaExceeded(it)),
            JobChanged::Missing => return Err(OpError::JobMissing),
            JobChanged::Refused(why) => {
                let job = change.after.id;
                return Err(OpError::JobRefused { job, why });
            }
        }
        if tries >= TRIES_AT_ONCE {
            api.engine
                .clock()
                .sleep(Duration::from_millis(u64::from(tries)))
                .await;
        }
    }
    Err(OpError::Contended)
}

/// What a change that is written answers.
async fn written(
    api: &Api,
    change: &JobChange,
    compared: Compared,
    (job, marked): (Job, Vec<RunId>),
) -> Changed {
    // It is written: whatever comes of the comparison, that is so.
    let slots = compared.difference().await.unwrap_or(None);
    let (job, runs) = finish(api, job.tenant, change, job, marked).await;
    Changed {
        job: Arc::new(job),
        runs,
        written: true,
        slots,
    }
}

/// Waits for one's turn; the job as it stands then.
async fn in_turn(api: &Api, tenant: TenantId, job: Job) -> Result<(Turn, Arc<Job>), OpError> {
    let turn = api.changing.turn(job.id).await;
    let stands = if turn.waited {
        api.store.get_job(tenant, job.id).await?
    } else {
        Some(job)
    };
    Ok((turn, Arc::new(stands.ok_or(OpError::JobMissing)?)))
}

/// Waits for the holders; what they gave back moves the job, so it is read again then.
async fn finish(
    api: &Api,
    tenant: TenantId,
    change: &JobChange,
    job: Job,
    marked: Vec<RunId>,
) -> (Job, Withdrawn) {
    let wish = match change.runs {
        RunsOfChange::Keep | RunsOfChange::TakeBack => Wish::TakeBack,
        RunsOfChange::Cancel => Wish::Cancel,
    };
    let moved = !marked.is_empty();
    let runs = withdraw::confirm(api, tenant, marked, wish).await;
    let again = if moved {
        api.store.get_job(tenant, job.id).await.ok().flatten()
    } else {
        None
    };
    (again.unwrap_or(job), runs)
}

/// What the write would answer, with the refusals that only the store knows of.
async fn rehearse(
    api: &Api,
    tenant: TenantId,
    before: &Job,
    after: &Arc<Job>,
    compared: Compared,
) -> Result<Changed, OpError> {
    if after.key != before.key {
        key_free(api, after).await?;
    }
    let slots = compared.difference().await?;
    let rests = after.def.schedule.after_completion() && runs_a_slot(api, tenant, before).await?;
    let job = if rests {
        Arc::new(after.resting())
    } else {
        Arc::clone(after)
    };
    Ok(Changed::unwritten(job, slots))
}

/// Refuses a key that another job has.
pub(super) async fn key_free(api: &Api, job: &Job) -> Result<(), OpError> {
    let Some(key) = &job.key else {
        return Ok(());
    };
    match api.store.find_job(job.tenant, key).await? {
        Some(holder) if holder.id != job.id => Err(OpError::KeyTaken(holder.id)),
        Some(_) | None => Ok(()),
    }
}

/// Whether a run of one of its slots is alive.
async fn runs_a_slot(api: &Api, tenant: TenantId, job: &Job) -> Result<bool, OpError> {
    let filter = RunFilter {
        job: Some(job.id),
        states: vec![RunState::Ready, RunState::Running, RunState::Retrying],
        ..RunFilter::default()
    };
    let page = Page {
        before: None,
        limit: 100,
    };
    let runs = api.store.list_runs(tenant, &filter, page).await?;
    Ok(runs.iter().any(|run| run.kind == RunKind::Slot))
}
