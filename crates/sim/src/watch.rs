//! The store's own moment: what each call of a node does, and whether it should have been let.

use std::sync::Arc;
use std::time::Duration;

use engine::Clock;
use model::policy::Living;
use model::presence::LastBeat;
use model::shard::ShardSet;
use model::{
    AttemptNo, Job, JobId, JobState, Mark, PresenceId, Run, RunId, Skip, Stretch, Timestamp,
    Verdict,
};
use store::*;

use crate::faults::FaultStore;
use crate::ledger::Book;
use crate::record::{Cause, Era, Passed};

impl FaultStore {
    pub(crate) fn uptime(&self) -> Duration {
        Clock::uptime(&self.clock)
    }

    fn who(&self) -> String {
        format!("start {}", self.start)
    }

    /// A moment of the store's wall clock as uptime, by how they stand now.
    pub(crate) fn uptime_at(&self, moment: Timestamp) -> Duration {
        let now = Clock::now(&self.clock);
        (self.uptime() + moment.since(now)).saturating_sub(now.since(moment))
    }

    pub(crate) async fn join_watched(&self, node: &NodeInfo) -> Result<PresenceId, StoreError> {
        let presence = self.inner.join(node).await?;
        let mut book = self.ledger.book();
        book.joined(self.node, self.start, presence);
        book.note(self.uptime(), || {
            format!("{} joins as {presence}", self.who())
        });
        Ok(presence)
    }

    pub(crate) async fn leave_watched(&self, presence: PresenceId) -> Result<(), StoreError> {
        self.inner.leave(presence).await?;
        let mut book = self.ledger.book();
        book.ended(presence, self.uptime());
        book.note(self.uptime(), || {
            format!("{} leaves as {presence}", self.who())
        });
        Ok(())
    }

    pub(crate) async fn fence_watched(
        &self,
        by: PresenceId,
        lapsed: &[LastBeat],
    ) -> Result<Vec<PresenceId>, StoreError> {
        let fenced = self.inner.fence(by, lapsed).await?;
        for presence in &fenced {
            let mut book = self.ledger.book();
            book.fenced(*presence, self.uptime());
            book.note(self.uptime(), || {
                format!("{} fences {presence}", self.who())
            });
        }
        Ok(fenced)
    }

    pub(crate) async fn lease_watched(
        &self,
        presence: PresenceId,
        wanted: &ShardSet,
    ) -> Result<Leases, StoreError> {
        let leases = self.inner.lease(presence, wanted).await?;
        let (count, of) = (leases.epochs.len(), wanted.len());
        let describe = || format!("{} wants {of} shards and holds {count}", self.who());
        self.ledger.book().note(self.uptime(), describe);
        Ok(leases)
    }

    pub(crate) async fn create_watched(&self, jobs: &[NewJob]) -> Result<Vec<Created>, StoreError> {
        let answers = self.inner.create_jobs(jobs).await?;
        let mut book = self.ledger.book();
        for (NewJob { job, .. }, answer) in jobs.iter().zip(&answers) {
            book.note_of(job.id, self.uptime(), || {
                format!("{} creates {job:?}: {answer:?}", self.who())
            });
            if *answer == Created::Done {
                book.changed(job.id, self.uptime());
                let now = Clock::now(&self.clock);
                book.record.begin(Era::begin(Arc::clone(job), None, now));
            }
        }
        Ok(answers)
    }

    pub(crate) async fn change_watched(
        &self,
        change: &JobChange,
    ) -> Result<JobChanged, StoreError> {
        let changed = self.inner.change_job(change).await?;
        let (at, now) = (self.uptime(), Clock::now(&self.clock));
        let mut book = self.ledger.book();
        let JobChange { before, after, .. } = change;
        book.changed(before.id, at);
        self.read_who_waits(before.id, &mut book);
        let describe = || format!("{}: {change:?}: {changed:?}", self.who());
        book.note_of(before.id, at, describe);
        if let JobChanged::Done { job, .. } = &changed {
            // Of the moment that the change speaks of; its way may have taken a while.
            let from = now.min(after.updated_at);
            let job = Arc::new(Job::clone(job));
            let era = Era::begin(job, Some(Arc::clone(before)), from);
            book.record.begin(era);
            let cause = Cause::Change {
                from: before.state,
                to: after.state,
            };
            let passed = change.skipped.iter().map(|skip| Passed {
                job: Arc::clone(before),
                skip: skip.clone(),
                cause,
                now,
                at,
            });
            book.record.passed.extend(passed);
        }
        Ok(changed)
    }

    /// Which runs of a job still wait for their origin.
    pub(crate) fn read_who_waits(&self, job: JobId, book: &mut Book) {
        let live = |run: RunId| self.inner.live_run(run);
        let waits = |run: RunId| live(run).is_some_and(|run| run.claim.is_none());
        book.read_who_waits(job, waits, self.uptime());
    }

    /// Which of the firings meet their job as they saw it, and beside how many runs.
    fn stands(&self, firings: &[Firing]) -> Vec<Option<Living>> {
        let (jobs, live) = (self.inner.all_jobs(), self.inner.live_runs());
        let stands = |firing: &Firing| {
            let planned = &firing.job;
            let found = jobs.binary_search_by_key(&planned.id, |job| job.id);
            let job = found.ok().and_then(|at| jobs.get(at))?;
            let unmoved = (job.version, job.next_slot) == (planned.version, planned.next_slot);
            (unmoved && job.state == JobState::Active).then(|| living(&live, job.id))
        };
        firings.iter().map(stands).collect()
    }

    /// Writes down which slots a firing has skipped, now that it was answered.
    fn passed(&self, firing: &Firing, living: Living, answer: &Fired) -> Vec<Passed> {
        let decision = &firing.decision;
        let refused = match answer {
            Fired::Skipped(reason) => decision.start.map(|slot| (slot, *reason)),
            Fired::Claimed(_)
            | Fired::Ready(_)
            | Fired::Waiting(_)
            | Fired::Decided
            | Fired::Early(_)
            | Fired::Stale
            | Fired::LeaseLost
            | Fired::Refused(_) => None,
        };
        let refused = refused.map(|(slot, reason)| Skip {
            slots: Stretch::one(slot),
            reason,
            note: None,
            actor: Arc::clone(&decision.actor),
        });
        let cause = Cause::Fire {
            decided_at: decision.at,
            living,
        };
        let passed = |skip| Passed {
            job: Arc::clone(&firing.job),
            skip,
            cause,
            now: Clock::now(&self.clock),
            at: self.uptime(),
        };
        let all = decision.passed.iter().cloned().chain(refused);
        all.map(passed).collect()
    }

    /// Fires, and looks whether every lease that counted was a current one.
    pub(crate) async fn fire_watched(
        &self,
        leases: &Leases,
        firings: &[Firing],
    ) -> Result<Vec<Fired>, StoreError> {
        let right = |firing: &Firing| self.inner.gives_right(leases, firing.job.shard());
        let rights: Vec<bool> = firings.iter().map(right).collect();
        let stands = self.stands(firings);
        let answers = self.inner.fire(leases, firings).await?;
        let mut book = self.ledger.book();
        let answered = firings.iter().zip(rights).zip(stands);
        for (((firing, right), stood), answer) in answered.zip(&answers) {
            book.note_of(firing.job.id, self.uptime(), || {
                let (decision, claim) = (&firing.decision, firing.claim);
                format!(
                    "{} fires {decision:?}, claim {claim}: {answer:?}",
                    self.who()
                )
            });
            if let (Fired::Early(_), Some(due_at)) = (answer, firing.job.next_due_at()) {
                // Somebody was there in time. What is behind this slot waits with it.
                book.decided(&firing.job, self.uptime_at(due_at), self.uptime());
                book.changed(firing.job.id, self.uptime());
            }
            if !decided(answer) {
                continue;
            }
            if !right {
                let what = format!("{} by {}", firing.job.id, leases.presence);
                book.broken("old_epoch_fires_nothing", what);
            }
            if let Fired::Claimed(run) = answer {
                book.granted(self.start, *run, AttemptNo::FIRST, leases.presence);
            }
            if let Some(due_at) = firing.job.next_due_at() {
                book.decided(&firing.job, self.uptime_at(due_at), self.uptime());
            }
            self.read_who_waits(firing.job.id, &mut book);
            if let Some(living) = stood {
                let passed = self.passed(firing, living, answer);
                book.record.passed.extend(passed);
            }
        }
        Ok(answers)
    }

    pub(crate) async fn claim_watched(
        &self,
        leases: &Leases,
        runs: &[RunId],
    ) -> Result<Vec<Claimed>, StoreError> {
        let answers = self.inner.claim(leases, runs).await?;
        for answer in &answers {
            if let Claimed::Ours(run, _) = answer {
                let mut book = self.ledger.book();
                book.granted(self.start, run.id, run.attempt, leases.presence);
                self.read_who_waits(run.job, &mut book);
                let describe = || format!("{} claims {} {}", self.who(), run.id, run.attempt);
                book.note_of(run.job, self.uptime(), describe);
            }
        }
        Ok(answers)
    }

    pub(crate) async fn claim_due_watched(
        &self,
        presence: PresenceId,
        shards: &ShardSet,
        room: DueRoom,
    ) -> Result<Vec<(Run, Arc<Job>)>, StoreError> {
        let taken = self.inner.claim_due(presence, shards, room).await?;
        for (run, _) in &taken {
            let mut book = self.ledger.book();
            book.granted(self.start, run.id, run.attempt, presence);
            self.read_who_waits(run.job, &mut book);
            let describe = || format!("{} takes {} {}", self.who(), run.id, run.attempt);
            book.note_of(run.job, self.uptime(), describe);
        }
        Ok(taken)
    }

    pub(crate) async fn withdraw_watched(
        &self,
        presence: PresenceId,
        answers: &[Withdrawal],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let stood = answers
            .iter()
            .filter_map(|answer| self.inner.live_run(answer.run));
        let stood: Vec<Run> = stood.filter(|run| run.claim == Some(presence)).collect();
        self.inner.withdraw(presence, answers, now).await?;
        let mut book = self.ledger.book();
        for before in stood {
            let after = self.inner.live_run(before.id);
            let describe = || format!("{} answers {answers:?}", self.who());
            book.note_of(before.job, self.uptime(), describe);
            if after.is_none_or(|after| after.claim.is_none()) {
                book.released(before.id, before.attempt);
                book.changed(before.job, self.uptime());
            }
        }
        Ok(())
    }

    /// Settles, and looks whether every claim that counted was the run's.
    pub(crate) async fn settle_watched(
        &self,
        by: PresenceId,
        settlements: &[Settlement],
    ) -> Result<Vec<Settled>, StoreError> {
        let token = |run: &Run| (run.claim, run.attempt);
        let stood = |settlement: &Settlement| self.inner.live_run(settlement.run.id);
        let stand: Vec<Option<Run>> = settlements.iter().map(stood).collect();
        let answers = self.inner.settle(by, settlements).await?;
        let mut book = self.ledger.book();
        for ((settlement, stood), answer) in settlements.iter().zip(stand).zip(&answers) {
            let run = &settlement.run;
            book.note_of(run.job, self.uptime(), || {
                let (id, attempt, verdict) = (run.id, run.attempt, settlement.verdict);
                format!(
                    "{} settles {id} {attempt}: {verdict:?}: {answer:?}",
                    self.who()
                )
            });
            let Settled::Done { due_at, .. } = answer else {
                continue;
            };
            if stood.as_ref().map(token) != Some(token(run)) {
                let what = format!("{} by {by}", run.id);
                book.broken("old_epoch_settles_nothing", what);
            }
            book.released(run.id, run.attempt);
            if matches!(settlement.verdict, Verdict::Wait(_)) {
                book.waits(run.job, run.id, self.uptime());
            }
            if self.inner.live_run(run.id).is_none() {
                book.gone.insert(run.id, self.uptime());
            }
            self.read_who_waits(run.job, &mut book);
            let taken_back = stood.is_some_and(|run| run.mark == Some(Mark::TakeBack));
            if due_at.is_some() || taken_back {
                book.changed(run.job, self.uptime());
            }
        }
        Ok(answers)
    }
}

/// The runs of a job among those alive.
fn living(live: &[Run], job: JobId) -> Living {
    let mut living = Living::default();
    for run in live.iter().filter(|run| run.job == job) {
        if run.waits_for_turn() {
            living.waiting += 1
        } else {
            living.moving += 1
        }
    }
    living
}

/// Whether the job moved onward.
fn decided(answer: &Fired) -> bool {
    match answer {
        Fired::Claimed(_)
        | Fired::Ready(_)
        | Fired::Waiting(_)
        | Fired::Skipped(_)
        | Fired::Decided => true,
        Fired::Early(_) | Fired::Stale | Fired::LeaseLost | Fired::Refused(_) => false,
    }
}
