//! Settle: how attempts end, and with them most runs.

use model::{Ask, Attempt, AttemptNo, PresenceId, Reason, Run, RunState, Timestamp, Verdict};

use super::Flaw;
use super::state::State;
use crate::{Settled, Settlement};

impl State {
    /// Ends one attempt. `now` stands in for the moment of an attempt that never was.
    pub fn settle(
        &mut self,
        by: PresenceId,
        settlement: &Settlement,
        now: Timestamp,
        flaw: Flaw,
    ) -> Settled {
        let Some(live) = self.live.runs.get(&settlement.run.id) else {
            return Settled::Stale;
        };
        if !self.may_settle(by, live, &settlement.run) && flaw != Flaw::SkipClaimCheck {
            return Settled::Stale;
        }
        let ask = live.ask;
        let left = match (settlement.verdict, ask) {
            (Verdict::Release, None | Some(Ask::TooLate)) => {
                self.release(settlement);
                false
            }
            (Verdict::Release, Some(Ask::TakeBack)) => {
                self.take_back(settlement.run.id, now);
                self.rest(settlement.run.job);
                true
            }
            (Verdict::RetryAt(at), None | Some(Ask::TakeBack | Ask::TooLate)) => {
                self.retry(settlement, at);
                false
            }
            (Verdict::Release | Verdict::RetryAt(_), Some(Ask::Cancel(reason))) => {
                self.end_run(settlement, RunState::Cancelled, Some(reason), now);
                true
            }
            (Verdict::Succeed, _) => {
                self.end_run(settlement, RunState::Succeeded, None, now);
                true
            }
            (Verdict::Bury(reason), _) => {
                self.end_run(settlement, RunState::Dead, Some(reason), now);
                true
            }
            (Verdict::Cancel(reason), _) => {
                self.end_run(settlement, RunState::Cancelled, Some(reason), now);
                true
            }
        };
        if !left {
            return Settled::Done {
                freed: None,
                due_at: None,
            };
        }
        let attempt = settlement.attempt.as_ref();
        let ended_at = attempt.map_or(now, |attempt| attempt.settled_at);
        let (freed, due_at) = self.free(settlement.run.job, ended_at);
        Settled::Done { freed, due_at }
    }

    /// The claim is the one named, and its holder is `by` or gone.
    fn may_settle(&self, by: PresenceId, live: &Run, named: &Run) -> bool {
        let token = live.claim == named.claim && live.attempt == named.attempt;
        token
            && live
                .claim
                .is_some_and(|holder| holder == by || self.living(holder).is_err())
    }

    /// Back to waiting for a holder, under the same number.
    fn release(&mut self, settlement: &Settlement) {
        let Some(run) = self.live.runs.get_mut(&settlement.run.id) else {
            return;
        };
        run.claim = None;
        run.ask = None;
        run.dispatched_at = None;
        run.state = match run.attempt {
            AttemptNo::FIRST => RunState::Ready,
            AttemptNo(_) => RunState::Retrying,
        };
    }

    fn retry(&mut self, settlement: &Settlement, at: Timestamp) {
        let Some(run) = self.live.runs.get_mut(&settlement.run.id) else {
            return;
        };
        run.attempt = settlement.run.attempt.next();
        run.state = RunState::Retrying;
        run.due_at = at;
        run.claim = None;
        run.ask = None;
        run.dispatched_at = None;
        run.lost = settlement.lost();
        let earlier = settlement.attempt.clone().map(Attempt::as_earlier);
        run.attempts = settlement
            .run
            .attempts
            .iter()
            .cloned()
            .chain(earlier)
            .collect();
    }

    /// Out of the live set, into history.
    fn end_run(
        &mut self,
        settlement: &Settlement,
        state: RunState,
        reason: Option<Reason>,
        now: Timestamp,
    ) {
        self.live.remove(settlement.run.id);
        let ended = settlement.ended(state, reason, now);
        self.history.insert(ended.id, ended);
    }
}
