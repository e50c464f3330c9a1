//! Plan: what is due, and what cannot be planned.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use model::schedule::Kind;
use model::shard::ShardSet;
use model::{Job, JobId, JobState, Run, RunId, Timestamp};

use super::state::State;
use crate::audit::Change;
use crate::{DueCursor, DueJobs, DueOf, DueRun, PayloadOf};

impl State {
    pub(super) fn due_jobs(
        &self,
        shards: &ShardSet,
        up_to: Timestamp,
        after: Option<DueCursor>,
        limit: usize,
    ) -> DueJobs {
        let ours = self
            .jobs
            .values()
            .filter(|job| shards.contains(job.shard()));
        let from = after.and_then(|after| after.later_than);
        let last = after.and_then(|after| after.last);
        let due: BTreeMap<(Timestamp, JobId), Arc<Job>> = ours
            .filter_map(|job| Some((planned(job)?, job)))
            .filter(|(at, _)| Some(at.0) > from && at.0 <= up_to && Some(*at) > last)
            .map(|(at, job)| (at, job.without_large_payload()))
            .collect();
        let more = due.len() > limit;
        let page: Vec<_> = due.into_iter().take(limit).collect();
        let last = page.last().filter(|_| more);
        let next = last.map(|((due_at, job), _)| DueCursor::behind(after, *due_at, *job));
        let (jobs, unreadable) = readable(page.into_iter().map(|(_, job)| job));
        DueJobs {
            jobs,
            unreadable,
            next,
        }
    }

    pub(super) fn due_of(&self, jobs: &[JobId], up_to: Timestamp) -> DueOf {
        let ids: BTreeSet<JobId> = jobs.iter().copied().collect();
        let found = ids.iter().filter_map(|id| self.jobs.get(id));
        let due = found.filter(|job| planned(job).is_some_and(|(due_at, _)| due_at <= up_to));
        let (jobs, unreadable) = readable(due.map(|job| job.without_large_payload()));
        let runs = ids.iter().flat_map(|id| self.live.of_job(*id));
        let free = runs.filter(|run| is_free(run) && run.due_at <= up_to);
        DueOf {
            jobs,
            unreadable,
            runs: free.map(due_run).collect(),
        }
    }

    pub(super) fn payload(&self, of: PayloadOf) -> Option<Bytes> {
        match of {
            PayloadOf::Run(id) => self.live.runs.get(&id)?.payload.clone(),
            PayloadOf::Job(id, version) => {
                let job = self.jobs.get(&id).filter(|job| job.version == version)?;
                job.def.payload.clone()
            }
        }
    }

    pub(super) fn due_runs(
        &self,
        shards: &ShardSet,
        up_to: Timestamp,
        after: Option<(Timestamp, RunId)>,
        limit: usize,
    ) -> Vec<DueRun> {
        let ours = self
            .live
            .runs
            .values()
            .filter(|run| shards.contains(run.shard()));
        let due: BTreeMap<_, _> = ours
            .filter(|run| is_free(run) && run.due_at <= up_to)
            .map(|run| ((run.due_at, run.id), run))
            .filter(|(at, _)| Some(*at) > after)
            .collect();
        due.into_values().take(limit).map(due_run).collect()
    }

    pub(super) fn park(&mut self, jobs: &[(JobId, String)], now: Timestamp) {
        for (id, error) in jobs {
            let Some(job) = self
                .jobs
                .get_mut(id)
                .filter(|job| job.state == JobState::Active)
            else {
                continue;
            };
            *job = Arc::new(job.invalid(now, error.clone()));
            let entered = Change::job_moved(job.tenant, *id, JobState::Invalid, Some(error));
            self.audit(entered);
        }
    }

    pub(super) fn oldest_due(
        &self,
        shards: &ShardSet,
        from: Timestamp,
        up_to: Timestamp,
    ) -> Option<Timestamp> {
        let slots = self
            .jobs
            .values()
            .filter(|job| shards.contains(job.shard()))
            .filter_map(|job| Some(planned(job)?.0));
        let runs = self
            .live
            .runs
            .values()
            .filter(|run| is_free(run) && shards.contains(run.shard()))
            .map(|run| run.due_at);
        let due = slots.chain(runs);
        due.filter(|due_at| (from..=up_to).contains(due_at)).min()
    }

    pub(super) fn count_live(&self) -> u64 {
        self.live.runs.len() as u64
    }
}

/// Those that can be planned, and those that cannot, and why.
fn readable(jobs: impl Iterator<Item = Arc<Job>>) -> (Vec<Arc<Job>>, Vec<(JobId, String)>) {
    let (broken, jobs): (Vec<_>, Vec<_>) = jobs.partition(|job| error_of(job).is_some());
    let broken = broken.iter();
    let unreadable = broken.filter_map(|job| Some((job.id, error_of(job)?)));
    (jobs, unreadable.collect())
}

pub(super) fn due_run(run: &Run) -> DueRun {
    DueRun {
        run: run.id,
        job: run.job,
        tenant: run.tenant,
        due_at: run.due_at,
        state: run.state,
    }
}

/// Why a schedule cannot be read any more.
fn error_of(job: &Job) -> Option<String> {
    match &job.def.schedule.kind {
        Kind::Broken(broken) => Some(broken.error.clone()),
        Kind::Cron(_) | Kind::Every(_) | Kind::Once(_) => None,
    }
}

/// When an active job is due.
fn planned(job: &Job) -> Option<(Timestamp, JobId)> {
    let due_at = job
        .next_due_at()
        .filter(|_| job.state == JobState::Active)?;
    Some((due_at, job.id))
}

/// Whether anyone may claim it.
fn is_free(run: &Run) -> bool {
    run.claim.is_none() && run.wait.is_none()
}
