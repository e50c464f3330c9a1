//! Deliveries and attempts: once each, never early, in order, never too many at once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::{
    AttemptNo, Job, JobId, Outcome, Overlap, PresenceId, Run, RunId, RunKind, RunState, limits,
};

use super::{End, was_lost};
use crate::spells::Spells;
use crate::story::Delivery;

/// How long a beat with a short round trip vouches for the store's clock.
const VOUCHES: Duration = Duration::from_secs(16);

/// By when a node has heard, if it acts at `from`, that the store's clock was stepped. It learns that with its next beat, and
/// does nothing without one. But an answer that is slow cannot show a step that is smaller than it is slow: a node whose way
/// to the store is bad may take as long as what it heard before vouches for the clock. While the store is away nobody hears,
/// and what is answered first when it is back was sent before that, and is slow for everyone.
fn heard_by(spells: &Spells, node: Option<usize>, step: Duration, from: Duration) -> Duration {
    let soon = limits::PRESENCE_TTL;
    if node.is_some_and(|node| spells.is_sound(node, step, from)) {
        spells.store_back_by(step, soon) + soon
    } else {
        step + VOUCHES + soon
    }
}

impl End<'_> {
    pub(super) fn one_delivery_per_attempt(&mut self) {
        let mut seen: BTreeMap<(RunId, AttemptNo), u32> = BTreeMap::new();
        let mut twice = Vec::new();
        for delivery in &self.deliveries {
            if let Some(node) = seen.insert((delivery.run, delivery.attempt), delivery.node) {
                twice.push(format!(
                    "attempt {} of {} of {} by start {node} and by start {}",
                    delivery.attempt, delivery.run, delivery.job, delivery.node
                ));
            }
        }
        for seen in twice {
            self.broken("one_delivery_per_attempt", seen);
        }
    }

    pub(super) fn never_early(&mut self) {
        let world = self.world;
        let unedited = world.accepted.iter().filter(|(_, edited)| !edited);
        let jobs: BTreeMap<JobId, &Job> = unedited.map(|(job, _)| (job.id, &**job)).collect();
        let mut early = Vec::new();
        for delivery in &self.deliveries {
            // The spread of an edited job may have changed since; its slot has not.
            let due_at = match (delivery.slot, jobs.get(&delivery.job)) {
                (Some(slot), Some(job)) => job.due_at(slot),
                (Some(slot), None) => slot.0,
                (None, _) => delivery.run.at(),
            };
            if delivery.at >= due_at {
                continue;
            }
            // A retry made due by a clock that went back is the one exception the rules know.
            let retry = !world.steps.is_empty() && delivery.attempt > AttemptNo::FIRST;
            if !retry && !self.has_not_heard(delivery) {
                early.push(format!("{} due {due_at} at {}", delivery.run, delivery.at));
            }
        }
        for seen in early {
            self.broken("never_early", seen);
        }
    }

    /// Whether the node could not know yet that the store's clock was stepped.
    fn has_not_heard(&self, delivery: &Delivery) -> bool {
        let (world, from) = (self.world, delivery.from);
        let node = world.started.get(&delivery.node).copied();
        let unaware =
            |step: &Duration| (*step..heard_by(&world.spells, node, *step, from)).contains(&from);
        world.is_fleet() && world.steps.iter().any(unaware)
    }

    pub(super) fn attempts_rise_by_one(&mut self) {
        let mut odd = Vec::new();
        for run in &self.runs {
            let numbers: Vec<u32> = run.attempts.iter().map(|attempt| attempt.no.0).collect();
            let in_order = |(number, expected): (&u32, u32)| *number == expected;
            if !numbers.iter().zip(1..).all(in_order) {
                odd.push(format!("{}: {numbers:?}", run.id));
            }
        }
        let mut last: BTreeMap<RunId, AttemptNo> = BTreeMap::new();
        for delivery in &self.deliveries {
            let before = last.insert(delivery.run, delivery.attempt);
            if before.is_some_and(|before| before > delivery.attempt) {
                odd.push(format!(
                    "{} {before:?} then {:?}",
                    delivery.run, delivery.attempt
                ));
            }
        }
        for seen in odd {
            self.broken("attempts_rise_by_one", seen);
        }
    }

    /// Nothing lives on without a reason: only what is not due yet, by a clock that may have gone back.
    pub(super) fn every_run_ends_or_waits(&mut self) {
        let now = self.world.ended_at.minus(limits::BEAT_EVERY);
        let trusted = self.trusted.clone();
        let live: Vec<&Run> = self.runs.iter().filter(|run| run.state.is_live()).collect();
        // One that waits for its origin is woken in its time.
        let is_ahead = |run: &Run| match run.wait {
            Some(wait) => wait.until.is_some_and(|until| until > now),
            // With the outside it is trusted up to a moment.
            None if run.claim == Some(PresenceId::OUTSIDE) => {
                trusted.get(&run.id).is_some_and(|until| *until > now)
            }
            None => run.due_at > now,
        };
        let due = |run: &&&Run| {
            let excused = if run.waits_for_turn() {
                // It waits for one that is not due yet.
                let mut others = live.iter().filter(|other| other.job == run.job);
                others.any(|other| is_ahead(other))
            } else {
                is_ahead(run)
            };
            !excused
        };
        let due: Vec<String> = live
            .iter()
            .filter(due)
            .map(|run| format!("{run:?}"))
            .collect();
        for seen in due {
            self.broken("every_run_ends_or_waits", seen);
        }
    }

    pub(super) fn what_succeeded_was_delivered(&mut self) {
        let check = "what_succeeded_was_delivered";
        let done = self.deliveries.iter().filter(|delivery| delivery.done);
        let done: BTreeSet<(RunId, AttemptNo)> = done.map(|d| (d.run, d.attempt)).collect();
        let known: BTreeSet<RunId> = self.runs.iter().map(|run| run.id).collect();
        let succeeded = |run: &&Run| run.state == RunState::Succeeded;
        let undone = |run: &&Run| !done.contains(&(run.id, run.attempt));
        let undone = self.runs.iter().filter(succeeded).filter(undone);
        let mut seen: Vec<String> = undone.map(|run| run.id.to_string()).collect();
        for delivery in &self.deliveries {
            if !known.contains(&delivery.run) {
                let run = delivery.run;
                seen.push(format!("{run} was delivered and is in no history"));
            }
        }
        for seen in seen {
            self.broken(check, seen);
        }
    }

    /// Two runs of a job that wants one at a time are never under way together, as long as nobody
    /// forced one or changed the policy.
    pub(super) fn exclusive_runs_do_not_overlap(&mut self, job: &Job, edited: bool, runs: &[Run]) {
        if edited || job.def.overlap == Overlap::Allow {
            return;
        }
        let of_slots = runs.iter().filter(|run| run.kind == RunKind::Slot);
        let slots: BTreeSet<RunId> = of_slots.map(|run| run.id).collect();
        let of_job = |delivery: &&Delivery| slots.contains(&delivery.run);
        let mut spans: Vec<&Delivery> = self.deliveries.iter().filter(of_job).collect();
        spans.sort_by_key(|delivery| delivery.from);
        let mut overlaps = Vec::new();
        for pair in spans.windows(2) {
            let [first, second] = pair else { continue };
            let overlap = self.under_way_to(first).is_none_or(|to| to > second.from);
            if first.run != second.run && overlap && !was_lost(runs, first) {
                overlaps.push(format!("{} and {}", first.run, second.run));
            }
        }
        for seen in overlaps {
            self.broken("exclusive_runs_do_not_overlap", seen);
        }
    }

    /// No node has more attempts under way than it may, and no run more than its policy lets it have.
    pub(super) fn limits_hold(&mut self) {
        let check = "limits_hold";
        let mut edges = Vec::new();
        for delivery in &self.deliveries {
            edges.push((delivery.from, 1_i64, delivery.node));
            edges.extend(delivery.to.map(|to| (to, -1, delivery.node)));
        }
        edges.sort_unstable();
        let mut under_way: BTreeMap<u32, i64> = BTreeMap::new();
        for (at, change, node) in edges {
            let count = under_way.entry(node).or_default();
            *count += change;
            if *count > self.world.running_max as i64 {
                let seen = format!("{count} attempts under way at {at:?}");
                self.broken(check, seen);
                return;
            }
        }
        let unedited = self.world.accepted.iter().filter(|(_, edited)| !edited);
        let attempts_max: BTreeMap<JobId, u32> = unedited
            .map(|(job, _)| (job.id, job.def.retry.attempts_max))
            .collect();
        let mut many = Vec::new();
        for run in &self.runs {
            let lost = |outcome| outcome == Outcome::Lost;
            let lost = run.attempts.iter().filter(|a| lost(a.outcome)).count();
            let tried = (run.attempts.len() - lost) as u32;
            let max = attempts_max.get(&run.job).copied().unwrap_or(u32::MAX);
            if tried > max || lost as u32 > limits::LOST_MAX {
                many.push(format!(
                    "{}: {tried} attempts of {max}, {lost} lost",
                    run.id
                ));
            }
        }
        for seen in many {
            self.broken(check, seen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spells::Ill;

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn a_step_is_heard_with_the_next_beats_that_the_store_answers() {
        let mut spells = Spells::new(vec![true; 2]);
        spells.up(0, secs(0));
        spells.up(1, secs(0));
        let heard = |spells: &Spells, step, from| heard_by(spells, Some(0), secs(step), secs(from));
        assert_eq!(heard(&spells, 10, 12), secs(13));
        spells.begin_all(Ill::Hurt, secs(10), secs(13));
        assert_eq!(
            heard(&spells, 10, 12),
            secs(13),
            "the step itself hurts nobody's way"
        );
        spells.begin_all(Ill::Away, secs(9), secs(17));
        assert_eq!(heard(&spells, 10, 18), secs(20));
        assert_eq!(
            heard(&spells, 20, 21),
            secs(23),
            "the store was back before"
        );
        spells.begin(0, Ill::Hurt, secs(30), Some(secs(40)));
        assert_eq!(heard(&spells, 25, 29), secs(28));
        assert_eq!(heard(&spells, 29, 31), secs(48));
        assert_eq!(heard_by(&spells, Some(1), secs(29), secs(31)), secs(32));
    }
}
