//! Fire: a slot becomes a run, or a skip record, and its job moves on.

use std::sync::Arc;

use super::overlap::{Known, Turn};
use super::{Needs, View};
use crate::attempt::AttemptNo;
use crate::decide::Decision;
use crate::id::{PresenceId, RunId};
use crate::job::{Job, JobState, Version};
use crate::policy::{Admission, Overlap};
use crate::run::{Reason, Run, RunState};
use crate::time::Timestamp;
use crate::wait::Wait;

/// A slot to be decided, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Firing {
    /// As planned: its id, version and `next_slot` are compared, and `slot_last` where calendars leave out slots.
    pub job: Arc<Job>,
    pub decision: Decision,
    /// Claimed by the firing presence as it is inserted, or left `Ready` for others.
    pub claim: bool,
    /// The runs of the job that the firing node holds, as it knows them.
    pub knows: Vec<Known>,
}

impl Firing {
    /// The name that its answer is found by when it was fired before.
    pub fn name(&self) -> Option<RunId> {
        let Decision { passed, start, .. } = &self.decision;
        let slot = start.or(passed.last().map(|skip| skip.slots.first))?;
        Some(RunId::for_slot(self.job.id, slot))
    }

    /// Whether the job is where this firing saw it.
    pub fn stands(&self, job: &Job) -> bool {
        let unmoved = (job.version, job.next_slot) == (self.job.version, self.job.next_slot);
        let last = self.slot_last();
        let since = last.is_none() || last == job.slot_last;
        unmoved && since && job.next_slot.is_some() && job.state == JobState::Active
    }

    /// The last decided slot that the job must still have. What calendars leave out is recorded from there on, and a run
    /// that was taken back since has moved it.
    pub fn slot_last(&self) -> Option<Timestamp> {
        let leaves_out = self.job.def.schedule.leaves_out();
        self.job.slot_last.filter(|_| leaves_out)
    }

    /// What of history it takes to decide, given the job if it stands where plan saw it. Slots of an edited job may have
    /// been dispatched before the edit could take them back. A job that never had a run had none in the way.
    pub fn needs(&self, stands: Option<&Job>) -> Needs {
        let edited = self.job.version > Version::FIRST;
        let ran_before = edited || stands.is_none_or(Job::had_runs);
        let passed = &self.decision.passed;
        let span = passed.first().zip(passed.last());
        Needs {
            ran: span.filter(|_| edited).map(|(first, last)| {
                (
                    first.slots.first.0,
                    last.slots.last.0.plus(super::MILLISECOND),
                )
            }),
            skips: false,
            named: self.name().filter(|_| edited || stands.is_none()),
            past: self.past().filter(|_| ran_before),
        }
    }

    /// When a late slot was due that is skipped for a run which was in its way then, also if that has ended meanwhile.
    fn past(&self) -> Option<Timestamp> {
        let skips = self.job.def.overlap == Overlap::Skip;
        let due_at = self.job.due_at(self.decision.start?);
        Some(due_at).filter(|due_at| skips && *due_at < self.decision.at)
    }
}

/// What became of a firing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fired {
    /// A run, claimed by this presence: attempt 1 is ours.
    Claimed(RunId),
    /// A run that nobody holds yet.
    Ready(RunId),
    /// A run that waits for the job's last one to end.
    Waiting(RunId),
    /// No run: the slot, or all that the decision skips, is recorded as skipped.
    Skipped(Reason),
    /// No run: the slot of an edited job had a run already, so the job only moved onward.
    Decided,
    /// Nothing is decided: a run is in the way, and whether it counts shows later, or it is not the slot's turn. To be
    /// fired again then, or when a run of the job ends.
    Early(Timestamp),
    /// The job moved, changed or is not active any more.
    Stale,
    /// The shard's lease is not ours at that epoch.
    LeaseLost,
    /// This one cannot be written, ever.
    Refused(String),
}

/// How a run is inserted that overlap lets in.
pub(super) enum Entry {
    Moving,
    Waiting,
    Not(Reason),
}

impl View {
    /// Decides a slot, for a presence that holds the lease of the job's shard or does not.
    pub fn fire(&mut self, firing: &Firing, by: PresenceId, held: bool) -> Fired {
        if !held {
            return Fired::LeaseLost;
        }
        let Some(job) = self.job.clone().filter(|job| firing.stands(job)) else {
            return self.fired_before(firing, by);
        };
        let decision = &firing.decision;
        let Some(slot) = decision.start else {
            self.decide(&job, decision, false);
            return match decision.passed.last() {
                Some(skip) => Fired::Skipped(skip.reason),
                None => Fired::Decided,
            };
        };
        let run = Run::of_slot(&job, slot);
        if job.version > Version::FIRST && self.was_decided(run.id) {
            self.decide(&job, decision, false);
            return Fired::Decided;
        }
        if self.live.contains_key(&run.id) {
            return Fired::Refused(format!("{} is alive already", run.id));
        }
        let overlap = match self.overlap(&job, &run, firing, by) {
            Turn::Now(admission) => admission,
            Turn::Early(at) => return Fired::Early(at),
        };
        let claim = firing.claim.then_some(by);
        let fired = self.admit_slot(overlap, run, claim, decision);
        let inserted = !matches!(fired, Fired::Skipped(_));
        self.decide(&job, decision, inserted);
        fired
    }

    /// An edit may have taken back an earlier slot than one that was dispatched: what has a run, alive or ended, is not
    /// decided again.
    fn was_decided(&self, run: RunId) -> bool {
        let ended = self.history.named;
        self.live.contains_key(&run) || ended.is_some_and(|(state, _)| state != RunState::Skipped)
    }

    /// Moves the job onward, and records what it skips.
    fn decide(&mut self, job: &Job, decision: &Decision, inserted: bool) {
        self.record_skips(job, &job.def.schedule, &decision.passed, decision.at);
        let stands = job.standing_after(decision, inserted);
        self.put_job(job.at_standing(stands));
    }

    /// A slot's run is inserted, as the job's overlap has it.
    fn admit_slot(
        &mut self,
        overlap: Admission,
        run: Run,
        claim: Option<PresenceId>,
        decision: &Decision,
    ) -> Fired {
        let id = run.id;
        match self.admit(overlap, run.due_at.max(decision.at)) {
            Entry::Moving => {
                self.insert_run(Run { claim, ..run });
                match claim {
                    Some(_) => Fired::Claimed(id),
                    None => Fired::Ready(id),
                }
            }
            Entry::Waiting => {
                self.insert_run(Run {
                    wait: Some(Wait::TURN),
                    ..run
                });
                Fired::Waiting(id)
            }
            Entry::Not(reason) => {
                self.record(Run {
                    state: RunState::Skipped,
                    reason: Some(reason),
                    settled_at: Some(decision.at),
                    actor: Some(Arc::clone(&decision.actor)),
                    ..run
                });
                Fired::Skipped(reason)
            }
        }
    }

    /// Does what overlap says to the living runs, for a new one. Those that it replaces end at `at`, when that is decided.
    pub(super) fn admit(&mut self, overlap: Admission, at: Timestamp) -> Entry {
        match overlap {
            Admission::Start => Entry::Moving,
            Admission::Wait => Entry::Waiting,
            Admission::Skip(reason) => Entry::Not(reason),
            Admission::Replace => {
                let runs: Vec<_> = self.live.values().map(|run| (run.id, run.claim)).collect();
                for (id, claim) in runs {
                    match claim {
                        None => {
                            self.cancel(id, Reason::Replaced, at);
                        }
                        Some(_) => self.mark_cancelled(id, Reason::Replaced, at),
                    }
                }
                match self.living().moving {
                    0 => Entry::Moving,
                    _ => Entry::Waiting,
                }
            }
        }
    }

    /// The job is not where the firing saw it: either someone moved it, or this very firing did and its answer was
    /// lost.
    fn fired_before(&self, firing: &Firing, by: PresenceId) -> Fired {
        let Decision { passed, start, .. } = &firing.decision;
        let Some(id) = firing.name() else {
            return Fired::Stale;
        };
        let live = self.live.get(&id);
        let live = live.filter(|run| run.attempt == AttemptNo::FIRST && start.is_some());
        if let Some(run) = live {
            // One that was claimed under another version came from another firing: its holder is to run that version.
            let same = run.version == firing.job.version;
            return match run.claim {
                Some(holder) if holder == by && same => Fired::Claimed(id),
                None if run.state == RunState::Ready && run.wait.is_some() => Fired::Waiting(id),
                None if run.state == RunState::Ready => Fired::Ready(id),
                Some(_) | None => Fired::Stale,
            };
        }
        let named = self.history.named;
        let skipped = named.filter(|(state, _)| *state == RunState::Skipped);
        let said = |reason| passed.last().is_some_and(|skip| skip.reason == reason);
        match skipped.and_then(|(_, reason)| reason) {
            Some(reason) if start.is_some() || said(reason) => Fired::Skipped(reason),
            Some(_) | None => Fired::Stale,
        }
    }
}
