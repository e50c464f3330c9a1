//! Plan: what is due, and what cannot be planned.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::schedule::Kind;
use model::shard::ShardSet;
use model::{Job, JobId, JobState, Run, RunId, Timestamp};

use super::state::State;
use crate::{DueCursor, DueJobs, DueRun};

impl State {
    pub fn due_jobs(
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
        let due: BTreeMap<DueCursor, Arc<Job>> = ours
            .filter_map(|job| Some((planned(job)?, job.clone())))
            .filter(|(at, _)| at.due_at <= up_to && Some(*at) > after)
            .collect();
        let more = due.len() > limit;
        let page: Vec<_> = due.into_iter().take(limit).collect();
        let next = page.last().map(|(at, _)| *at).filter(|_| more);
        let (broken, jobs): (Vec<_>, Vec<_>) = page
            .into_iter()
            .map(|(_, job)| job)
            .partition(|job| error_of(job).is_some());
        let unreadable = broken
            .into_iter()
            .filter_map(|job| Some((job.id, error_of(&job)?)));
        DueJobs {
            jobs,
            unreadable: unreadable.collect(),
            next,
        }
    }

    pub fn due_runs(
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
        let named = due.into_values().take(limit).map(|run| DueRun {
            run: run.id,
            job: run.job,
            tenant: run.tenant,
            due_at: run.due_at,
            state: run.state,
        });
        named.collect()
    }

    pub fn park(&mut self, jobs: &[(JobId, String)], now: Timestamp) {
        for (id, error) in jobs {
            if let Some(job) = self
                .jobs
                .get_mut(id)
                .filter(|job| job.state == JobState::Active)
            {
                *job = Arc::new(job.invalid(now, error.clone()));
            }
        }
    }

    pub fn pulse(&self, shards: &ShardSet, from: Timestamp) -> Option<Timestamp> {
        let slots = self
            .jobs
            .values()
            .filter(|job| shards.contains(job.shard()))
            .filter_map(|job| Some(planned(job)?.due_at));
        let runs = self
            .live
            .runs
            .values()
            .filter(|run| is_free(run) && shards.contains(run.shard()))
            .map(|run| run.due_at);
        slots.chain(runs).filter(|due_at| *due_at >= from).min()
    }

    pub fn count_live(&self) -> u64 {
        self.live.runs.len() as u64
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
fn planned(job: &Job) -> Option<DueCursor> {
    let due_at = job
        .next_due_at()
        .filter(|_| job.state == JobState::Active)?;
    Some(DueCursor {
        due_at,
        job: job.id,
    })
}

/// Whether anyone may claim it.
fn is_free(run: &Run) -> bool {
    run.claim.is_none() && !run.waiting
}
