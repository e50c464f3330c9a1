//! Work that is with the outside: what is reported holds, who is heard of is not lost, and who is silent is not waited for
//! any longer than was agreed.

use std::time::Duration;

use model::{Outcome, RunState, limits};

use super::End;
use super::takeover::{BOUND, FIT};
use crate::handed::{Held, HeldEnd};
use crate::story::Delivery;

/// How long a node that has come or gone is felt: until then shards may move, and who has just been given one begins to
/// listen anew.
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

    /// A report that its sender was told is kept is what the run's record says, and a success is the end.
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
            if let Some(waited) = self.waits_too_long(held, &turns) {
                seen.push(format!("{of:?}: {held:?} for {waited:?}"));
            }
        }
        for seen in seen {
            self.broken("the_silent_end_within_bound", seen);
        }
    }

    fn waits_too_long(&self, held: &Held, turns: &[Duration]) -> Option<Duration> {
        let end = held.end.map_or(self.world.ended, |end| end.at);
        // The moments are those of a wall clock, and one that goes back takes no trust away.
        if self.is_stepped(held.since.saturating_sub(STEP_FELT), end) {
            return None;
        }
        // A cancel waits for a while of its own. A timeout counts by a clock that was watched for a while.
        let grace = held.within.max(limits::HANDED_GRACE_MIN);
        let ways: &[(Duration, Duration)] = if held.cancelled {
            &[(grace, held.timeout)]
        } else {
            &[
                (held.within, held.heard + held.within),
                (limits::STEADY_FOR, held.timeout),
            ]
        };
        for (index, turn) in turns.iter().enumerate() {
            let next = turns.get(index + 1).copied().unwrap_or(Duration::MAX);
            let until = next.min(end);
            let Some(well) = self.world.spells.well_since(*turn, until) else {
                continue;
            };
            let fit = (well + FIT).max(*turn + MOVES);
            let begins = ways.iter().map(|(watch, due)| (*due).max(fit + *watch));
            let begin = begins.min().unwrap_or(until);
            if begin + BOUND < until {
                return Some(until - begin);
            }
        }
        None
    }
}
