//! What overviews are made of.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use model::rollup::Step;
use model::shard::ShardSet;
use model::{Job, JobState, PresenceId, Rollup, RollupRow, TenantId, Timestamp};

use super::MemStore;
use super::state::State;
use crate::{DuePage, DueSpan, LiveCount, OverviewStore, StandingCounts, StoreError};

pub(super) type Rollups = BTreeMap<(TenantId, Step, Timestamp, PresenceId), Rollup>;

impl State {
    /// Rollups that were kept long enough go.
    pub(super) fn drop_rollups(&mut self, now: Timestamp) {
        self.rollups
            .retain(|(_, step, at, _), _| at.plus(step.keep()) > now);
    }

    fn count_standing(&self, limit: usize) -> StandingCounts {
        let mut live = BTreeMap::<_, u64>::new();
        for run in self.live.runs.values().take(limit) {
            let alike = (run.tenant, run.lane, run.state, run.wait.is_some());
            *live.entry(alike).or_default() += 1;
        }
        let live = live.into_iter();
        let live = live.map(|((tenant, lane, state, waiting), runs)| LiveCount {
            tenant,
            lane,
            state,
            waiting,
            runs,
        });
        let mut jobs = BTreeMap::<(TenantId, JobState), u64>::new();
        for state in StandingCounts::JOB_STATES {
            let of_state = self.jobs.values().filter(|job| job.state == state);
            for job in of_state.take(limit) {
                *jobs.entry((job.tenant, state)).or_default() += 1;
            }
        }
        let jobs = jobs.into_iter();
        let jobs = jobs.map(|((tenant, state), count)| (tenant, state, count));
        StandingCounts::new(live.collect(), jobs.collect(), limit)
    }
}

#[async_trait]
impl OverviewStore for MemStore {
    async fn put_rollups(&self, rows: &[RollupRow]) -> Result<(), StoreError> {
        let mut state = self.state();
        for row in rows {
            let key = (row.tenant, row.step, row.at, row.by);
            state.rollups.insert(key, row.rollup.clone());
        }
        Ok(())
    }

    async fn read_rollups(
        &self,
        tenant: TenantId,
        step: Step,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<(Timestamp, Rollup)>, StoreError> {
        let state = self.state();
        let wanted = state
            .rollups
            .iter()
            .filter(|((of, it, at, _), _)| (*of, *it) == (tenant, step) && *at >= from && *at < to);
        let mut sums = BTreeMap::<Timestamp, Rollup>::new();
        for ((_, _, at, _), rollup) in wanted {
            sums.entry(*at).or_default().add(rollup);
        }
        Ok(sums.into_iter().collect())
    }

    async fn count_standing(&self, limit: usize) -> Result<StandingCounts, StoreError> {
        Ok(self.state().count_standing(limit))
    }

    async fn list_due(
        &self,
        tenant: TenantId,
        span: &DueSpan,
        reads: usize,
    ) -> Result<DuePage, StoreError> {
        let state = self.state();
        let page = state.due_jobs(&ShardSet::ALL, span.up_to, span.after, reads);
        let is_wanted = |job: &Arc<Job>| job.tenant == tenant && span.samples(job.id);
        Ok(DuePage {
            jobs: page.jobs.into_iter().filter(is_wanted).collect(),
            next: page.next,
        })
    }
}
