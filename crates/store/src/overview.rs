//! What overviews are made of: counts that nodes keep by minute, and what there is at the moment. No read here grows with
//! history.

use std::sync::Arc;

use async_trait::async_trait;
use model::rollup::Step;
use model::{Job, JobId, JobState, Lane, Rollup, RollupRow, RunState, TenantId, Timestamp};

use crate::{DueCursor, StoreError};

#[async_trait]
pub trait OverviewStore: Send + Sync {
    /// Writes rollups over those of the same tenant, step, moment and counter. Called again, it writes the same.
    async fn put_rollups(&self, rows: &[RollupRow]) -> Result<(), StoreError>;

    /// What all nodes counted of a tenant in the steps that began at `from` or later and before `to`, oldest first. Steps
    /// without a count are left out.
    async fn read_rollups(
        &self,
        tenant: TenantId,
        step: Step,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<(Timestamp, Rollup)>, StoreError>;

    /// How many runs live, and how many jobs there are of each state that is not active, of all tenants: so many of either
    /// are counted at most, in no order.
    async fn count_standing(&self, limit: usize) -> Result<StandingCounts, StoreError>;

    /// Planned jobs of a tenant, as far as they are in the span; pages come in the order of plan, which is that of `due_at` but within
    /// 64 ms. So many planned jobs of all tenants are looked at; `next` says where to go on. Large payloads are left in the store, and what cannot be read is
    /// left out.
    async fn list_due(
        &self,
        tenant: TenantId,
        span: &DueSpan,
        reads: usize,
    ) -> Result<DuePage, StoreError>;
}

/// Which planned jobs are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueSpan {
    pub after: Option<DueCursor>,
    /// Jobs due at that moment are among them.
    pub up_to: Timestamp,
    /// Of every 65,536 jobs so many, by [`JobId::place`]: the same ones each time.
    pub sample: u32,
}

impl DueSpan {
    /// A sample of all jobs.
    pub const ALL: u32 = 1 << 16;

    pub fn samples(&self, job: JobId) -> bool {
        u32::from(job.place()) < self.sample
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct DuePage {
    pub jobs: Vec<Arc<Job>>,
    /// Where to go on; none when everything up to the span's end was looked at.
    pub next: Option<DueCursor>,
}

/// Live runs of a tenant that are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LiveCount {
    pub tenant: TenantId,
    pub lane: Lane,
    pub state: RunState,
    /// Whether they may not start yet.
    pub waiting: bool,
    pub runs: u64,
}

/// What there is at the moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StandingCounts {
    pub live: Vec<LiveCount>,
    /// Whether all live runs were counted.
    pub live_complete: bool,
    /// Paused, finished and invalid jobs.
    pub jobs: Vec<(TenantId, JobState, u64)>,
    /// Whether all jobs of these states were.
    pub jobs_complete: bool,
}

impl StandingCounts {
    /// The states of jobs that are counted; of those that are active, everybody knows how many are left.
    pub const JOB_STATES: [JobState; 3] = [JobState::Paused, JobState::Finished, JobState::Invalid];

    /// From what was counted of at most `limit` runs, and of at most so many jobs of each state.
    pub(crate) fn new(
        live: Vec<LiveCount>,
        jobs: Vec<(TenantId, JobState, u64)>,
        limit: usize,
    ) -> Self {
        let limit = limit as u64;
        let of = |state| jobs.iter().filter(move |(_, it, _)| *it == state);
        let counted = |state| of(state).map(|(_, _, count)| *count).sum::<u64>();
        Self {
            live_complete: live.iter().map(|it| it.runs).sum::<u64>() < limit,
            jobs_complete: Self::JOB_STATES.iter().all(|state| counted(*state) < limit),
            live,
            jobs,
        }
    }
}
