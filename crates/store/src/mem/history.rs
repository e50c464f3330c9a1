//! History: what is read, and what is forgotten.

use model::limits::{IDEMPOTENCY_KEEP, RETENTION_BATCH_MAX};
use model::runs_day::Day;
use model::{
    Job, JobId, JobState, Partition, Run, RunId, RunKind, TenantId, Timestamp, Usage, WaitReason,
};

use super::state::State;
use crate::{Keep, Page, Retained, RunFilter};

impl State {
    pub(super) fn get_run(&self, tenant: TenantId, id: RunId) -> Option<Run> {
        let run = self.live.runs.get(&id).or_else(|| self.history.get(&id))?;
        (run.tenant == tenant).then(|| run.clone())
    }

    pub(super) fn list_runs(
        &self,
        tenant: TenantId,
        filter: &RunFilter,
        page: Page<RunId>,
    ) -> Vec<Run> {
        let before = filter.before(page);
        let fits = |run: &Run| {
            run.tenant == tenant
                && filter.job.is_none_or(|job| run.job == job)
                && (filter.states.is_empty() || filter.states.contains(&run.state))
                && before.is_none_or(|before| run.id < before)
                && run.id >= filter.least()
                && (filter.waiting.is_empty() || waits_for(run, &filter.waiting))
        };
        let newest_first = self.all_runs().into_values().rev();
        newest_first.filter(fits).take(page.limit).collect()
    }

    pub(super) fn list_slots(
        &self,
        tenant: TenantId,
        job: JobId,
        from: Timestamp,
        to: Timestamp,
        limit: usize,
    ) -> Vec<Run> {
        let runs = self.all_runs().into_values();
        let of_job =
            |run: &Run| run.tenant == tenant && run.job == job && run.kind == RunKind::Slot;
        let (earlier, later): (Vec<Run>, Vec<Run>) =
            runs.filter(of_job).partition(|run| run.id.at() < from);
        let covers = |run: &Run| {
            let stretch = run.stretch;
            stretch.is_some_and(|stretch| stretch.last.0 >= from)
        };
        let begun = earlier.into_iter().next_back().filter(covers);
        let within = later.into_iter().filter(|run| run.id.at() < to);
        begun.into_iter().chain(within).take(limit).collect()
    }

    pub(super) fn retain(&mut self, keep: &Keep) -> Retained {
        let partitions = self.drop_partitions(keep.now.minus(keep.history));
        let forgotten = keep.now.minus(IDEMPOTENCY_KEEP);
        self.requests.retain(|_, request| request.at > forgotten);
        let jobs = self.drop_jobs(keep.now.minus(keep.finished));
        self.drop_replays(keep.now.minus(keep.finished));
        self.drop_run_counts(Day::of(keep.now).before());
        let swept = self.sweep_tenants(keep.now);
        self.drop_rollups(keep.now);
        self.sweep_outside(keep.now.minus(keep.history));
        Retained {
            partitions,
            jobs: jobs as u32,
            more: jobs == RETENTION_BATCH_MAX || swept,
        }
    }

    /// Drops the partitions whose end and last entry were at or before `until`.
    fn drop_partitions(&mut self, until: Timestamp) -> u32 {
        let before = self.partitions.len();
        self.partitions.retain(|_, kept_from| *kept_from > until);
        let partitions = &self.partitions;
        self.history
            .retain(|id, _| partitions.contains_key(&Partition::of(*id)));
        (before - self.partitions.len()) as u32
    }

    fn drop_jobs(&mut self, finished: Timestamp) -> usize {
        let ended = |job: &Job| match job.state {
            JobState::Deleted => true,
            JobState::Finished => job.state_at <= finished,
            JobState::Active | JobState::Paused | JobState::Invalid => false,
        };
        let gone: Vec<JobId> = self
            .jobs
            .values()
            .filter(|job| ended(job) && self.live.of_job(job.id).next().is_none())
            .map(|job| job.id)
            .take(RETENTION_BATCH_MAX)
            .collect();
        for id in &gone {
            if let Some(job) = self.jobs.remove(id) {
                let used = self.uses.entry(job.tenant).or_default();
                *used = used.less(Usage::by(&job));
            }
            self.versions.retain(|(job, _), _| job != id);
        }
        self.keys.retain(|_, holder| self.jobs.contains_key(holder));
        gone.len()
    }
}

fn waits_for(run: &Run, reasons: &[WaitReason]) -> bool {
    let wait = run.wait.filter(|_| run.state.is_live());
    wait.is_some_and(|wait| reasons.contains(&wait.reason))
}
