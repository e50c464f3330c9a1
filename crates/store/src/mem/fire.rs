//! Fire and claim: slots become runs, runs get a holder.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::run::RunEvent;
use model::shard::ShardSet;
use model::view::{self, Grant, Needs};
use model::{Job, JobState, Lane, PresenceId, Run, RunId, Timestamp};

use super::Flaw;
use super::state::State;
use crate::audit::Change;
use crate::{Claimed, DueRoom, Fired, Firing, Leases, StartRun, Started, StoreError};

impl State {
    pub(super) fn fire(&mut self, leases: &Leases, firing: &Firing, flaw: Flaw) -> Fired {
        let planned = &firing.job;
        let held = self.holds(leases, planned.shard()) || flaw == Flaw::SkipEpochCheck;
        let mut view = self.view(planned.id);
        if flaw == Flaw::SkipCompareAndSwap {
            let name = firing.name();
            view.live.retain(|id, _| Some(*id) != name);
            if let Some(job) = &mut view.job {
                (job.version, job.next_slot) = (planned.version, planned.next_slot);
                job.state = JobState::Active;
            }
        }
        let stands = view.job.as_ref().filter(|job| firing.stands(job));
        let mut needs = firing.needs(stands);
        needs.named = needs.named.filter(|_| flaw != Flaw::SkipCompareAndSwap);
        view.history = self.read_history(planned.id, needs);
        let fired = view.fire(firing, leases.presence, held);
        self.apply(planned.id, view.effects);
        fired
    }

    pub(super) fn claim(&mut self, leases: &Leases, id: RunId, now: Timestamp) -> Claimed {
        if self.living(leases.presence).is_err() {
            return Claimed::LeaseLost;
        }
        let Some(mut run) = self.live.runs.get(&id).cloned() else {
            return Claimed::Stale;
        };
        let Some(job) = self.jobs.get(&run.job).cloned() else {
            return Claimed::Stale;
        };
        let held = self.holds(leases, run.shard());
        match view::claim(&mut run, leases.presence, held, job.version, now) {
            Grant::New => self.live.insert(run.clone()),
            Grant::Again => {}
            Grant::Stale => return Claimed::Stale,
            Grant::LeaseLost => return Claimed::LeaseLost,
        }
        Claimed::Ours(
            Box::new(run.without_large_payload()),
            job.without_large_payload(),
        )
    }

    pub(super) fn claim_due(
        &mut self,
        presence: PresenceId,
        shards: &ShardSet,
        due: DueRoom,
        now: Timestamp,
    ) -> Result<Vec<(Run, Arc<Job>)>, StoreError> {
        self.living(presence)?;
        let mut taken = Vec::new();
        let rooms = due.room.into_iter().zip(due.backlog);
        for (lane, (room, backlog)) in Lane::ALL.into_iter().zip(rooms) {
            let runs = self.live.runs.values().filter(|run| run.lane == lane);
            let free = runs.filter(|run| run.claim.is_none() && run.wait.is_none());
            let free = free.filter(|run| run.due_at <= due.up_to && shards.contains(run.shard()));
            let free: BTreeSet<_> = free.map(|run| (run.due_at, run.id)).collect();
            let is_on_time = |(due_at, _): &(Timestamp, RunId)| *due_at >= due.on_time_from;
            let (on_time, older): (Vec<_>, Vec<_>) = free.into_iter().partition(is_on_time);
            for (_, id) in on_time
                .into_iter()
                .chain(older.into_iter().take(backlog))
                .take(room)
            {
                let Some(run) = self.live.runs.get_mut(&id) else {
                    continue;
                };
                let Some(job) = self.jobs.get(&run.job).cloned() else {
                    continue;
                };
                // Whoever has room may have it, whatever it leases.
                if view::claim(run, presence, true, job.version, now) == Grant::New {
                    let run = run.clone().without_large_payload();
                    taken.push((run, job.without_large_payload()));
                }
            }
        }
        Ok(taken)
    }

    pub(super) fn start_run(&mut self, start: &StartRun) -> Started {
        let job = start.run.job;
        let mut view = self.view(job);
        let needs = Needs {
            named: Some(start.run.id),
            ..Needs::default()
        };
        view.history = self.read_history(job, needs);
        let started = view.start(start);
        self.apply(job, view.effects);
        if matches!(started, Started::Ready | Started::Waiting) {
            self.audit(Change::run_started(&start.run));
        }
        started
    }

    pub(super) fn mark_running(
        &mut self,
        presence: PresenceId,
        runs: &[(RunId, Timestamp)],
    ) -> Result<(), StoreError> {
        self.living(presence)?;
        for (id, dispatched_at) in runs {
            let run = self
                .live
                .runs
                .get_mut(id)
                .filter(|run| run.claim == Some(presence));
            if let Some(run) = run
                && let Ok(state) = run.state.after(RunEvent::Marked)
            {
                run.state = state;
                run.dispatched_at = run.dispatched_at.or(Some(*dispatched_at));
            }
        }
        Ok(())
    }
}
