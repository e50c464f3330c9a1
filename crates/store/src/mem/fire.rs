//! Fire and claim: slots become runs, runs get a holder.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use model::job::Decision;
use model::policy::Admission;
use model::shard::ShardSet;
use model::{
    Ask, AttemptNo, Job, JobState, Lane, Overlap, PresenceId, Reason, Run, RunId, RunState,
    Schedule, Skip, Timestamp, Version,
};

use super::Flaw;
use super::state::State;
use crate::{Claimed, Fired, Firing, Leases, StartRun, Started, StoreError};

/// How a run that overlap lets in is born.
enum Birth {
    Moving,
    Waiting,
    Not(Reason),
}

impl State {
    pub fn fire(&mut self, leases: &Leases, firing: &Firing, flaw: Flaw) -> Fired {
        let planned = &firing.job;
        if !self.holds(leases, planned.shard()) && flaw != Flaw::SkipEpochCheck {
            return Fired::LeaseLost;
        }
        let swaps = |job: &Job| {
            let unmoved = (job.version, job.next_slot) == (planned.version, planned.next_slot);
            unmoved && job.state == JobState::Active
        };
        let job = self.jobs.get(&planned.id).cloned();
        let blind = flaw == Flaw::SkipCompareAndSwap;
        let Some(job) = job.filter(|job| swaps(job) || blind) else {
            return self.fired_before(leases.presence, firing);
        };
        let decision = &firing.decision;
        let run = decision.start.map(|slot| Run::of_slot(&job, slot));
        if let Some(run) = run.as_ref().filter(|_| !blind) {
            if job.version > Version::FIRST && self.was_decided(run.id) {
                self.decide(&job, decision, false);
                return Fired::Decided;
            }
            if self.live.runs.contains_key(&run.id) {
                return Fired::Refused(format!("{} is alive already", run.id));
            }
        }
        let Some(run) = run else {
            self.decide(&job, decision, false);
            return match decision.passed.last() {
                Some(skip) => Fired::Skipped(skip.reason),
                None => Fired::Decided,
            };
        };
        let overlap = job.def.overlap.admit(self.live.living(job.id));
        if overlap.is_said_when_due() && decision.at < run.due_at {
            return Fired::Early;
        }
        let claim = firing.claim.then_some(leases.presence);
        let fired = self.bear(&job, run, claim, decision);
        let born = !matches!(fired, Fired::Skipped(_));
        self.decide(&job, decision, born);
        fired
    }

    /// An edit may have taken back an earlier slot than one that was dispatched: whoever has a run,
    /// alive or ended, is not decided again.
    fn was_decided(&self, run: RunId) -> bool {
        let ended = self.history.get(&run);
        self.live.runs.contains_key(&run) || ended.is_some_and(|run| run.state != RunState::Skipped)
    }

    /// Moves the job onward, and writes down what it passed over.
    fn decide(&mut self, job: &Job, decision: &Decision, born: bool) {
        let schedule = &job.def.schedule;
        self.skip(job, schedule, &decision.passed, decision.at);
        let stands = job.standing_after(decision, born);
        self.jobs.insert(job.id, Arc::new(job.at_standing(stands)));
    }

    /// Writes down slots of a schedule that will not run, except for those that have a run.
    pub fn skip(&mut self, job: &Job, schedule: &Schedule, skips: &[Skip], at: Timestamp) {
        for skip in skips {
            let end = skip.slots.last.0.plus(Duration::from_millis(1));
            let ran = self.ran(job.id, skip.slots.first.0, end);
            for entry in Run::skipped(job, skip, at).around(schedule, &ran) {
                self.history.insert(entry.id, entry);
            }
        }
    }

    /// A slot's run comes to life, as the job's overlap has it.
    fn bear(
        &mut self,
        job: &Job,
        run: Run,
        claim: Option<PresenceId>,
        decision: &Decision,
    ) -> Fired {
        let id = run.id;
        match self.admit(job, run.due_at) {
            Birth::Moving => {
                self.live.insert(Run { claim, ..run });
                match claim {
                    Some(_) => Fired::Claimed(id),
                    None => Fired::Ready(id),
                }
            }
            Birth::Waiting => {
                self.live.insert(Run {
                    waiting: true,
                    ..run
                });
                Fired::Waiting(id)
            }
            Birth::Not(reason) => {
                let entry = Run {
                    state: RunState::Skipped,
                    reason: Some(reason),
                    settled_at: Some(decision.at),
                    by: Some(Arc::clone(&decision.by)),
                    ..run
                };
                self.history.insert(id, entry);
                Fired::Skipped(reason)
            }
        }
    }

    /// Asks the job's overlap about a new run due at `due_at`, and does what it says to the others.
    fn admit(&mut self, job: &Job, due_at: Timestamp) -> Birth {
        match job.def.overlap {
            Overlap::Allow => return Birth::Moving,
            Overlap::Skip
            | Overlap::QueueOne
            | Overlap::QueueAll { .. }
            | Overlap::CancelRunning => {}
        }
        match job.def.overlap.admit(self.live.living(job.id)) {
            Admission::Start => Birth::Moving,
            Admission::Wait => Birth::Waiting,
            Admission::Skip(reason) => Birth::Not(reason),
            Admission::Replace => {
                let runs: Vec<_> = self
                    .live
                    .of_job(job.id)
                    .map(|run| (run.id, run.claim))
                    .collect();
                for (id, claim) in runs {
                    match claim {
                        None => {
                            self.cancel(id, Reason::Replaced, due_at);
                        }
                        Some(_) => self.ask(id, Ask::Cancel(Reason::Replaced)),
                    }
                }
                match self.live.living(job.id).moving {
                    0 => Birth::Moving,
                    _ => Birth::Waiting,
                }
            }
        }
    }

    /// The job is not where the firing saw it: either someone moved it, or this very firing did and its
    /// answer was lost.
    fn fired_before(&self, presence: PresenceId, firing: &Firing) -> Fired {
        let Decision { passed, start, .. } = &firing.decision;
        let named = |slot| RunId::for_slot(firing.job.id, slot);
        let last = passed.last();
        let Some(id) = start.or(last.map(|skip| skip.slots.first)).map(named) else {
            return Fired::Stale;
        };
        let live = self
            .live
            .runs
            .get(&id)
            .filter(|run| run.attempt == AttemptNo::FIRST);
        match live.filter(|_| start.is_some()) {
            Some(run) if run.claim == Some(presence) => return Fired::Claimed(id),
            Some(run) if run.claim.is_none() && run.state == RunState::Ready => {
                return if run.waiting {
                    Fired::Waiting(id)
                } else {
                    Fired::Ready(id)
                };
            }
            Some(_) => return Fired::Stale,
            None => {}
        }
        let skipped = self
            .history
            .get(&id)
            .filter(|run| run.state == RunState::Skipped);
        match skipped.and_then(|run| run.reason) {
            Some(reason) if start.is_some() || last.is_some_and(|skip| skip.reason == reason) => {
                Fired::Skipped(reason)
            }
            Some(_) | None => Fired::Stale,
        }
    }

    pub fn claim(&mut self, leases: &Leases, id: RunId) -> Claimed {
        if self.living(leases.presence).is_err() {
            return Claimed::LeaseLost;
        }
        let Some(run) = self.live.runs.get(&id) else {
            return Claimed::Stale;
        };
        let ours = run.claim == Some(leases.presence);
        if !ours && !self.holds(leases, run.shard()) {
            return Claimed::LeaseLost;
        }
        let Some(job) = self.jobs.get(&run.job).cloned() else {
            return Claimed::Stale;
        };
        let Some(run) = self.live.runs.get_mut(&id) else {
            return Claimed::Stale;
        };
        match run.claim {
            None if !run.waiting => {
                run.claim = Some(leases.presence);
                run.state = RunState::Ready;
                run.version = job.version;
            }
            Some(holder) if holder == leases.presence => {}
            None | Some(_) => return Claimed::Stale,
        }
        Claimed::Ours(Box::new(run.clone()), job)
    }

    pub fn take(
        &mut self,
        presence: PresenceId,
        shards: &ShardSet,
        up_to: Timestamp,
        room: [usize; Lane::COUNT],
    ) -> Result<Vec<(Run, Arc<Job>)>, StoreError> {
        self.living(presence)?;
        let mut taken = Vec::new();
        for (lane, room) in Lane::ALL.into_iter().zip(room) {
            let runs = self.live.runs.values().filter(|run| run.lane == lane);
            let free = runs.filter(|run| run.claim.is_none() && !run.waiting);
            let due = free.filter(|run| run.due_at <= up_to && shards.contains(run.shard()));
            let due: BTreeSet<_> = due.map(|run| (run.due_at, run.id)).collect();
            for (_, id) in due.into_iter().take(room) {
                let Some(run) = self.live.runs.get_mut(&id) else {
                    continue;
                };
                let Some(job) = self.jobs.get(&run.job).cloned() else {
                    continue;
                };
                run.claim = Some(presence);
                run.state = RunState::Ready;
                run.version = job.version;
                taken.push((run.clone(), job));
            }
        }
        Ok(taken)
    }

    pub fn start_run(&mut self, start: &StartRun) -> Started {
        let asked = &start.run;
        let job = self.jobs.get(&asked.job).cloned();
        let Some(job) =
            job.filter(|job| job.state != JobState::Deleted && job.tenant == asked.tenant)
        else {
            return Started::Missing;
        };
        if self.live.runs.contains_key(&asked.id) || self.history.contains_key(&asked.id) {
            return Started::Repeated;
        }
        let birth = match start.force {
            true => Birth::Moving,
            false => self.admit(&job, asked.due_at),
        };
        let run = Run {
            state: RunState::Ready,
            claim: None,
            ask: None,
            ..asked.clone()
        };
        // It may have replaced a slot's run that its job rested for.
        self.wake(job.id, asked.due_at);
        match birth {
            Birth::Moving => {
                self.live.insert(Run {
                    waiting: false,
                    ..run
                });
                Started::Ready
            }
            Birth::Waiting => {
                self.live.insert(Run {
                    waiting: true,
                    ..run
                });
                Started::Waiting
            }
            Birth::Not(reason) => Started::Refused(reason),
        }
    }

    pub fn mark_running(
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
            if let Some(run) = run {
                run.state = RunState::Running;
                run.dispatched_at = Some(*dispatched_at);
            }
        }
        Ok(())
    }
}
