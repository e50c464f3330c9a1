//! Settle: how an attempt ends, and with it most runs.

use super::failures::PausedJob;
use super::{Needs, View};
use crate::attempt::{Attempt, AttemptNo, Outcome};
use crate::id::PresenceId;
use crate::retry::Verdict;
use crate::run::{Mark, Reason, Run, RunEvent, RunState};
use crate::time::Timestamp;
use crate::wait::Wait;

/// The end of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Settlement {
    /// As its holder knows it: `claim` and `attempt` are the token, the rest becomes history.
    pub run: Run,
    pub verdict: Verdict,
    /// None where the attempt never left its holder.
    pub attempt: Option<Attempt>,
}

impl Settlement {
    /// How many attempts were lost, this one included.
    pub fn lost(&self) -> u32 {
        let attempt = self.attempt.as_ref();
        let this = attempt.is_some_and(|it| it.outcome == Outcome::Lost);
        self.run.lost.saturating_add(u32::from(this))
    }

    /// When it ended; `now` stands in for the moment of an attempt that never was.
    pub fn ended_at(&self, now: Timestamp) -> Timestamp {
        let attempt = self.attempt.as_ref();
        attempt.map_or(now, |attempt| attempt.settled_at)
    }

    /// When the attempt was dispatched, if it was.
    pub fn dispatched_at(&self) -> Option<Timestamp> {
        self.attempt.as_ref()?.dispatched_at
    }

    /// How the verdict ends the run, if it does.
    pub fn end(&self) -> Option<(RunState, Option<Reason>)> {
        self.verdict.end()
    }

    /// Why the run is to wait from now on.
    fn wait(&self) -> Option<Wait> {
        match self.verdict {
            Verdict::Wait(wait) => Some(wait),
            Verdict::Succeed
            | Verdict::RetryAt(_)
            | Verdict::Bury(_)
            | Verdict::Cancel(_)
            | Verdict::Release => None,
        }
    }

    /// The attempts so far, this one as an earlier one among them.
    pub fn attempts(&self) -> Vec<Attempt> {
        let earlier = self.attempt.clone().map(Attempt::as_earlier);
        self.run.attempts.iter().cloned().chain(earlier).collect()
    }

    /// The run as history keeps it. `now` stands in for the moment of an attempt that never was.
    pub fn ended(&self, state: RunState, reason: Option<Reason>, now: Timestamp) -> Run {
        let Self { run, attempt, .. } = self;
        // Field by field: every run ends here, and a copy of its attempts would be made for nothing.
        Run {
            id: run.id,
            tenant: run.tenant,
            job: run.job,
            kind: run.kind,
            slot: run.slot,
            replay_of: run.replay_of,
            due_at: run.due_at,
            lane: run.lane,
            state,
            reason,
            attempt: run.attempt,
            lost: self.lost(),
            version: run.version,
            claim: None,
            mark: None,
            wait: None,
            woken_at: None,
            dispatched_at: run.dispatched_at.or(self.dispatched_at()),
            settled_at: Some(self.ended_at(now)),
            payload: run.payload.clone(),
            payload_left: None,
            trace: None,
            stretch: run.stretch,
            note: run.note.clone(),
            actor: run.actor.clone(),
            attempts: run.attempts.iter().chain(attempt).cloned().collect(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    Done {
        /// The waiting run that may start now, if any.
        freed: Option<crate::id::RunId>,
        /// When the job is due next, if it rested and this end set its next slot.
        due_at: Option<Timestamp>,
        /// Its job, if this end paused it.
        paused: Option<Box<PausedJob>>,
    },
    /// The claim is not the run's any more.
    Stale,
    /// This one cannot be written as it is; nothing of it was, and the others of its batch are not concerned.
    Refused(String),
}

impl Settled {
    /// It goes on in the live table, or nothing follows from its end.
    pub const DONE: Self = Self::Done {
        freed: None,
        due_at: None,
        paused: None,
    };
}

impl View {
    /// What of history it may take to settle at `now`.
    pub fn needs_to_settle(&self, settlement: &Settlement, now: Timestamp) -> Needs {
        let live = self.live.get(&settlement.run.id);
        let marked = live.is_some_and(|run| run.mark == Some(Mark::TakeBack));
        if marked && settlement.verdict.is_release() {
            self.needs_to_take_back()
        } else if settlement
            .end()
            .is_some_and(|(state, _)| state == RunState::Dead)
        {
            self.needs_to_pause(now)
        } else {
            Needs::default()
        }
    }

    /// Ends one attempt, if the claim is the one named and its holder is `by` or has ended. `now` stands in for the
    /// moment of an attempt that never was.
    pub fn settle(
        &mut self,
        settlement: &Settlement,
        by: PresenceId,
        has_ended: impl Fn(PresenceId) -> bool,
        now: Timestamp,
    ) -> Settled {
        let Some(live) = self.live.get(&settlement.run.id).cloned() else {
            return Settled::Stale;
        };
        let named = &settlement.run;
        let token = (live.claim, live.attempt) == (named.claim, named.attempt);
        let holds = |holder| holder == by || holder != PresenceId::OUTSIDE && has_ended(holder);
        if !token || !live.claim.is_some_and(holds) {
            return Settled::Stale;
        }
        self.settle_held(settlement, live, now)
    }

    /// The same without a look at who holds the claim.
    pub fn settle_held(&mut self, settlement: &Settlement, live: Run, now: Timestamp) -> Settled {
        let mut ended = None;
        match (settlement.verdict, live.mark) {
            (Verdict::Release | Verdict::Wait(_), None | Some(Mark::TooLate)) => {
                // A first attempt that is released was never dispatched.
                let first = live.attempt == AttemptNo::FIRST;
                let released = Run {
                    dispatched_at: live.dispatched_at.filter(|_| !first),
                    wait: settlement.wait(),
                    ..live
                };
                self.go_on(released, settlement.verdict);
                return Settled::DONE;
            }
            (Verdict::Release | Verdict::Wait(_), Some(Mark::TakeBack)) => {
                self.take_back(live.id, now);
                self.rest();
            }
            (Verdict::RetryAt(at), None | Some(Mark::TakeBack | Mark::TooLate)) => {
                let retried = Run {
                    attempt: live.attempt.next(),
                    due_at: at,
                    lost: settlement.lost(),
                    attempts: settlement.attempts(),
                    dispatched_at: live.dispatched_at.or(settlement.dispatched_at()),
                    ..live
                };
                self.go_on(retried, settlement.verdict);
                return Settled::DONE;
            }
            (
                Verdict::Release | Verdict::Wait(_) | Verdict::RetryAt(_),
                Some(Mark::Cancel(reason)),
            ) => {
                self.end_run(settlement, RunState::Cancelled, Some(reason), now);
            }
            (Verdict::Succeed | Verdict::Bury(_) | Verdict::Cancel(_), _) => {
                if let Some((state, reason)) = settlement.end() {
                    self.end_run(settlement, state, reason, now);
                    ended = Some(state);
                }
            }
        }
        let (freed, due_at) = self.free(settlement.ended_at(now));
        let paused = ended.and_then(|state| self.count_end(settlement, state, now));
        Settled::Done {
            freed,
            due_at: due_at.filter(|_| paused.is_none()),
            paused,
        }
    }

    /// Waits for a holder again. When it was first dispatched is kept.
    fn go_on(&mut self, run: Run, verdict: Verdict) {
        let settled = RunEvent::Settled(verdict, run.attempt);
        let Ok(state) = run.state.after(settled) else {
            return;
        };
        // One that waits again has not been woken since.
        let woken_at = run.woken_at.filter(|_| run.wait.is_none());
        self.change_run(Run {
            state,
            claim: None,
            mark: None,
            woken_at,
            ..run
        });
    }

    /// Out of the live set, into history.
    fn end_run(
        &mut self,
        settlement: &Settlement,
        state: RunState,
        reason: Option<Reason>,
        now: Timestamp,
    ) {
        let live = self.remove_run(settlement.run.id);
        let ended = settlement.ended(state, reason, now);
        // Its holder may have left its payload in the store.
        let payload = live.and_then(|live| live.payload);
        self.record(Run { payload, ..ended });
    }
}
