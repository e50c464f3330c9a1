//! Work that is with the outside: what is reported holds, who is heard of is not lost, and who is silent is not waited for
//! any longer than was agreed.

use std::time::Duration;

use model::{AttemptNo, Outcome, RunId, RunState, limits};

use super::End;
use super::takeover::{BOUND, FIT};
use crate::handed::{Held, HeldEnd};
use crate::story::Delivery;

/// How long a node that has come or gone is felt: until then shards may move, and who has just been given one begins to
/// listen again.
const MOVES: Duration = Duration::from_secs(15);
/// How far two nodes may be apart in what time it is.
const DOUBT: Duration = Duration::from_secs(1);
/// How long a step of the store's clock is felt by one node or another.
const STEP_FELT: Duration = Duration::from_secs(6);

impl End<'_> {
    /// Up to when an attempt was under way, with a node or with the outside.
    pub(super) fn under_way_to(&self, delivery: &Delivery) -> Option<Duration> {
        let held = self.handed.get(&(delivery.run, delivery.attempt));
        held.map_or(delivery.to, |held| held.end.map(|end| end.at))
    }

    fn is_stepped(&self, from: Duration, to: Duration) -> bool {
        let mut steps = self.world.steps.iter();
        steps.any(|step| (from..=to).contains(step))
    }

    /// A report that was acknowledged is what the run's record says, and a success is the end.
    pub(super) fn accepted_reports_are_kept(&mut self) {
        let kept = self.world.ledger.book().handed.kept.clone();
        let mut seen = Vec::new();
        for kept in &kept {
            let run = self.runs.iter().find(|run| run.id == kept.run);
            let attempts = run.map(|run| run.attempts.as_slice()).unwrap_or_default();
            let record = attempts.iter().find(|it| it.no == kept.attempt);
            let outcome = record.map(|record| record.outcome);
            let ends = kept.outcome == Outcome::Succeeded;
            let ended = run
                .is_some_and(|run| (run.state, run.attempt) == (RunState::Succeeded, kept.attempt));
            if outcome != Some(kept.outcome) || ends && !ended {
                let state = run.map(|run| (run.state, run.attempt));
                seen.push(format!("{kept:?}: {outcome:?}, the run is {state:?}"));
            }
            let again = |it: &&Delivery| it.run == kept.run && it.from > kept.at;
            if let Some(again) = self.deliveries.iter().find(again).filter(|_| ends) {
                seen.push(format!("{kept:?}, and again {:?}", again.attempt));
            }
        }
        for seen in seen {
            self.broken("accepted_reports_are_kept", seen);
        }
    }

    /// Whoever sends heartbeats for as long as it may be silent, while all nodes that run can hear them, is not lost: not by a
    /// node that was down, nor by a clock that was stepped.
    pub(super) fn who_beats_is_not_lost(&mut self) {
        let beating = self.world.ledger.book().handed.beating_at_end.clone();
        let mut seen = Vec::new();
        for (of, held) in &self.handed {
            let Some((end, beating)) = held.end.zip(beating.get(of)) else {
                continue;
            };
            let from = end.at.saturating_sub(held.within + DOUBT);
            let lost = end.outcome == Outcome::Lost && end.by_node.is_some();
            let beats = beating.since <= from && beating.last + held.within / 2 >= end.at;
            if lost && beats && self.world.spells.can_hear(from, end.at) {
                seen.push(format!("{of:?}: {held:?}, {beating:?}"));
            }
        }
        for seen in seen {
            self.broken("who_beats_is_not_lost", seen);
        }
    }

    /// Nobody is lost before it was silent for as long as it may be.
    pub(super) fn silence_is_waited_for(&mut self) {
        let mut seen = Vec::new();
        for (of, held) in &self.handed {
            let Some(HeldEnd { at, outcome, .. }) = held.end else {
                continue;
            };
            let stepped = self.is_stepped(held.heard.saturating_sub(STEP_FELT), at);
            if outcome == Outcome::Lost && held.heard + held.within > at + DOUBT && !stepped {
                seen.push(format!("{of:?}: {held:?}"));
            }
        }
        for seen in seen {
            self.broken("silence_is_waited_for", seen);
        }
    }

    /// What is with the outside ends within its bound, as long as somebody is well enough to see to it.
    pub(super) fn the_silent_end_within_bound(&mut self) {
        let turns = self.world.spells.turns();
        let mut seen = Vec::new();
        for (of, held) in &self.handed {
            if let Some(waited) = self.waits_too_long(of, held, &turns) {
                seen.push(format!("{of:?}: {held:?} for {waited:?}"));
            }
        }
        for seen in seen {
            self.broken("the_silent_end_within_bound", seen);
        }
    }

    fn waits_too_long(
        &self,
        of: &(RunId, AttemptNo),
        held: &Held,
        turns: &[Duration],
    ) -> Option<Duration> {
        let end = held.end.map_or(self.world.ended, |end| end.at);
        let mut deliveries = self.deliveries.iter();
        let dispatched = deliveries.find(|it| (it.run, it.attempt) == *of);
        // The moments are those of a wall clock, and one that goes back takes no trust away.
        if self.is_stepped(read_from(held, dispatched.map(|it| it.from)), end) {
            return None;
        }
        for (index, turn) in turns.iter().enumerate() {
            let next = turns.get(index + 1).copied().unwrap_or(Duration::MAX);
            let until = next.min(end);
            let Some(well) = self.world.spells.well_since(*turn, until) else {
                continue;
            };
            let begin = begin(held, (well + FIT).max(*turn + MOVES));
            if begin + BOUND < until {
                return Some(until - begin);
            }
        }
        None
    }
}

/// Since when a step of the clock counts. What is kept of an attempt may be written long after it was dispatched, and its
/// timeout is by the clock as it was then.
fn read_from(held: &Held, dispatched: Option<Duration>) -> Duration {
    let since = dispatched.map_or(held.since, |at| at.min(held.since));
    since.saturating_sub(STEP_FELT)
}

/// When nodes begin to end an attempt, where one is fit to from a moment on. Not before the outside has it: until then it is
/// its node's.
fn begin(held: &Held, fit: Duration) -> Duration {
    // A cancel waits for a while of its own. A timeout counts by a clock that was watched for a while.
    let grace = held.within.max(limits::HANDED_GRACE_MIN);
    let begin = if held.cancelled {
        held.timeout.max(fit + grace)
    } else {
        let silent = (held.heard + held.within).max(fit + held.within);
        silent.min(held.timeout.max(fit + limits::STEADY_FOR))
    };
    begin.max(held.since)
}

#[cfg(test)]
mod tests {
    use model::JobId;

    use super::*;

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn held() -> Held {
        Held {
            job: JobId::new(model::Timestamp::MIN, [1; 10]),
            within: secs(4),
            timeout: secs(80),
            since: secs(35),
            heard: secs(30),
            cancelled: false,
            end: None,
        }
    }

    #[test]
    fn a_step_counts_from_when_the_attempt_was_dispatched() {
        assert_eq!(read_from(&held(), None), secs(35) - STEP_FELT);
        let dispatched = Some(secs(20));
        assert_eq!(read_from(&held(), dispatched), secs(20) - STEP_FELT);
        let reported_first = Some(secs(36));
        assert_eq!(read_from(&held(), reported_first), secs(35) - STEP_FELT);
    }

    #[test]
    fn an_attempt_is_ended_by_whichever_comes_first_once_the_outside_has_it() {
        assert_eq!(begin(&held(), secs(10)), secs(35), "it was silent before");
        assert_eq!(begin(&held(), secs(40)), secs(44));
        let heard = Held {
            heard: secs(90),
            ..held()
        };
        assert_eq!(begin(&heard, secs(10)), secs(80), "its time is up");
        assert_eq!(begin(&heard, secs(60)), secs(60) + limits::STEADY_FOR);
        let cancelled = Held {
            cancelled: true,
            timeout: secs(50),
            ..held()
        };
        let grace = secs(4).max(limits::HANDED_GRACE_MIN);
        assert_eq!(begin(&cancelled, secs(10)), secs(50));
        assert_eq!(begin(&cancelled, secs(60)), secs(60) + grace);
        let late = Held {
            timeout: secs(6),
            ..held()
        };
        assert_eq!(begin(&late, secs(1)), secs(35), "by a clock of before");
    }
}
