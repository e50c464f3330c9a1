//! Replays in bulk, and backfills: what somebody wants run, how far it is, and the runs that come of it.
//!
//! What always holds: progress is written by whoever read the step before it, and every run has a name that follows from the
//! replay and from what it is made of. So whatever crashes, nothing is started twice and nothing is left out.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use model::{JobId, ReplayId, RunId, TenantId, Timestamp};

pub use model::view::{QueueRun, Queued};

use crate::{Page, RunFind, StoreError};

/// What somebody wants run in bulk.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    pub id: ReplayId,
    pub tenant: TenantId,
    pub work: ReplayWork,
    /// Runs a second.
    pub rate: u32,
    /// Runs that are started at most.
    pub limit: u64,
    pub created_at: Timestamp,
    /// Who wants it.
    pub actor: Arc<str>,
    pub progress: Progress,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ReplayWork {
    /// Ended runs, the newest first; each with this payload instead of its own, if there is one.
    Runs(RunFind, Option<Bytes>),
    /// Slots of a job from one moment up to but not including another, the oldest first.
    Slots(JobId, Timestamp, Timestamp),
}

/// How far it is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress {
    /// Counts the writes of it.
    pub step: u32,
    pub state: ReplayState,
    /// The last run that was looked at, or the run of the last slot.
    pub cursor: Option<RunId>,
    /// Runs or slots that were looked at.
    pub scanned: u64,
    pub started: u64,
    /// Wanted, and not started: the job is gone, or there is a run already.
    pub skipped: u64,
    pub updated_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// What it waits for, or why it ended.
    pub note: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplayState {
    #[default]
    Running,
    Done,
    Cancelled,
    /// It cannot go on; the note says why.
    Failed,
}

impl ReplayState {
    pub const ALL: [Self; 4] = [Self::Running, Self::Done, Self::Cancelled, Self::Failed];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayCreated {
    Done,
    /// As many of the tenant's are under way as may be.
    Full,
    /// There is no such tenant, or it is about to go.
    NoTenant,
}

#[async_trait]
pub trait ReplayStore: Send + Sync {
    /// Called again with the same id, it is done.
    async fn create_replay(&self, replay: &Replay) -> Result<ReplayCreated, StoreError>;

    async fn get_replay(
        &self,
        tenant: TenantId,
        id: ReplayId,
    ) -> Result<Option<Replay>, StoreError>;

    /// Newest first.
    async fn list_replays(
        &self,
        tenant: TenantId,
        page: Page<ReplayId>,
    ) -> Result<Vec<Replay>, StoreError>;

    /// Those of all tenants that are under way, the oldest first.
    async fn running_replays(&self, limit: usize) -> Result<Vec<Replay>, StoreError>;

    /// Writes progress, if the one that stands is the step before it and still under way.
    async fn move_replay(&self, replay: &Replay) -> Result<bool, StoreError>;

    /// Ends one that is under way; the replay as it stands then.
    async fn cancel_replay(
        &self,
        tenant: TenantId,
        id: ReplayId,
        now: Timestamp,
    ) -> Result<Option<Replay>, StoreError>;

    /// Starts runs that replays want, or lets them wait for their job's runs before them. One answer for each; called again,
    /// none is started twice.
    async fn queue_runs(&self, runs: &[QueueRun]) -> Result<Vec<Queued>, StoreError>;
}

impl Replay {
    /// The payload that its runs are to have, if it names one.
    pub fn payload(&self) -> Option<&Bytes> {
        match &self.work {
            ReplayWork::Runs(_, payload) => payload.as_ref(),
            ReplayWork::Slots(..) => None,
        }
    }

    /// The same after its next step.
    #[must_use]
    pub fn moved(self, progress: Progress, now: Timestamp) -> Self {
        let is_over = progress.state != ReplayState::Running;
        Self {
            progress: Progress {
                step: self.progress.step.wrapping_add(1),
                updated_at: now,
                ended_at: is_over.then_some(now),
                ..progress
            },
            ..self
        }
    }

    pub(crate) fn cancelled(self, now: Timestamp) -> Self {
        let progress = Progress {
            state: ReplayState::Cancelled,
            note: None,
            ..self.progress.clone()
        };
        self.moved(progress, now)
    }
}

/// Runs by their jobs, each with its place.
pub(crate) fn by_job(runs: &[QueueRun]) -> BTreeMap<JobId, Vec<(usize, &QueueRun)>> {
    let mut jobs = BTreeMap::<JobId, Vec<_>>::new();
    for (index, run) in runs.iter().enumerate() {
        jobs.entry(run.run.job).or_default().push((index, run));
    }
    jobs
}
