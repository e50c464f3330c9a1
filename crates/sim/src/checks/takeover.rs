//! Takeover: when a node is gone and another is well, nobody waits longer than the bound.

use std::collections::BTreeSet;
use std::time::Duration;

use engine::Clock;
use model::{JobId, JobState, Run, RunState, Timestamp, limits};

use super::{Broken, End};
use crate::ledger::{Late, Waits};
use crate::story::Delivery;
use crate::world::World;

/// How soon a slot is decided when its node is gone, or was never there to hear of it.
pub(super) const BOUND: Duration = Duration::from_secs(5);
/// How long a node that is well again may take until it can declare others lapsed: a pause before the next try, a
/// beat, and one lifetime of beats without a break.
pub(super) const FIT: Duration = Duration::from_secs(2).saturating_add(limits::PRESENCE_TTL);
/// How long after the last thing that went wrong everything is as if it had not been.
const SETTLED: Duration = Duration::from_secs(15);
/// How long a job that was written may be overlooked by its node.
const REREAD: Duration = Duration::from_secs(6);

/// How long a node must have been without trouble of its own: by then others have heard its beats, or nobody heard any.
const BEATEN: Duration = limits::PRESENCE_TTL.saturating_add(limits::BEAT_EVERY);

/// Whether what its job missed waits for a run: it is under way, waits for its origin, or for its next attempt. One that
/// should have been claimed long ago is no excuse.
fn keeps_waiting(run: &Run, now: Timestamp) -> bool {
    let backs_off = run.state == RunState::Retrying && run.due_at.plus(BOUND) >= now;
    run.claim.is_some() || run.waits_outside() || backs_off
}

/// Jobs that should have been decided long ago, after a time in which nothing went wrong.
pub(crate) fn nothing_is_overdue(world: &World) -> Vec<Broken> {
    let now = Clock::now(&world.clock);
    let mut broken = Vec::new();
    let under_way = world.mem.live_runs();
    let under_way = under_way.iter().filter(|run| keeps_waiting(run, now));
    let under_way: BTreeSet<JobId> = under_way.map(|run| run.job).collect();
    for job in world.mem.all_jobs() {
        // What was missed runs one after another, and each may take as long as its job lets it.
        let waits = under_way.contains(&job.id);
        let due_at = job
            .next_due_at()
            .filter(|_| job.state == JobState::Active && !waits);
        if let Some(due_at) = due_at.filter(|due_at| due_at.plus(BOUND) < now) {
            let seen = format!("{} is due since {due_at}, now {now}", job.id);
            broken.push(Broken::new("takeover_within_bound", seen));
        }
    }
    broken
}

impl End<'_> {
    /// As long as nothing goes wrong, no slot is decided late; also not when nodes come, or leave in good order.
    pub(super) fn hand_over_leaves_no_gap(&mut self) {
        let late = self.world.ledger.book().late.clone();
        for late in late
            .iter()
            .filter(|late| self.world.is_fleet() && late.due > late.changed + REREAD)
        {
            let from = late.due.saturating_sub(SETTLED);
            let stepped = |step: &Duration| (from..=late.decided).contains(step);
            let stepped = self.world.steps.iter().any(stepped) || self.is_overlap(late);
            if !stepped && self.world.spells.peace(from, late.decided) {
                let waited = late.decided.saturating_sub(late.due);
                let seen = format!("{late:?} waited for {waited:?}");
                self.broken("hand_over_leaves_no_gap", seen);
            }
        }
    }

    pub(super) fn takeover_within_bound(&mut self) {
        let turns = self.world.spells.turns();
        let late = self.world.ledger.book().late.clone();
        let late = late.iter().filter(|late| late.decided > late.due + BOUND);
        for late in late
            .filter(|late| !self.is_overlap(late))
            .collect::<Vec<_>>()
        {
            if let Some(seen) = self.without_excuse(late, &turns) {
                self.broken("takeover_within_bound", seen);
            }
        }
    }

    /// Neither an outage of the store, short or long, nor a step of its clock ends the presence of a node that is well.
    pub(super) fn the_living_keep_their_presence(&mut self) {
        let fenced = self.world.ledger.book().fenced.clone();
        for (node, presence, at) in fenced {
            let from = at.saturating_sub(BEATEN);
            if self.world.spells.is_sound(node, from, at) {
                let seen = format!("{presence} of node {node} at {at:?}");
                self.broken("the_living_keep_their_presence", seen);
            }
        }
    }

    /// Whether a run of the job was under way when the slot was due, or had its turn and waited for its origin: then it may
    /// take a while to show whether that counts, and a missed slot that waits for it keeps those behind it waiting.
    fn is_overlap(&self, late: &Late) -> bool {
        let of_job = |delivery: &&Delivery| delivery.job == late.job;
        let under_way = |delivery: &Delivery| {
            let to = self.under_way_to(delivery);
            delivery.from <= late.due && to.is_none_or(|to| to >= late.due)
        };
        let book = self.world.ledger.book();
        let mut waits = book.waits.get(&late.job).into_iter().flatten();
        let in_the_way = |it: &Waits| it.from <= late.due && it.to.is_none_or(|to| to >= late.due);
        waits.any(in_the_way) || self.deliveries.iter().filter(of_job).any(under_way)
    }

    /// The span in which the slot waited, nothing changed, and somebody was well enough to decide it.
    fn without_excuse(&self, late: &Late, turns: &[Duration]) -> Option<String> {
        let first = turns.partition_point(|turn| *turn <= late.due);
        let first = first.saturating_sub(1);
        let stepped = |step: &Duration| *step <= late.decided;
        let stepped = self.world.steps.iter().copied().filter(stepped).max();
        let known = (late.changed + REREAD).max(stepped.unwrap_or_default());
        for (index, turn) in turns.iter().enumerate().skip(first) {
            if *turn >= late.decided {
                break;
            }
            let next = turns.get(index + 1).copied().unwrap_or(Duration::MAX);
            let end = next.min(late.decided);
            let Some(well) = self.world.spells.well_since(*turn, end) else {
                continue;
            };
            let begin = late.due.max(*turn).max(known).max(well + FIT);
            if begin + BOUND < end {
                let waited = end - begin;
                return Some(format!(
                    "{late:?} waited for {waited:?} from {begin:?} on, well since {well:?}"
                ));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::{Definition, Job, Overlap, PresenceId, Schedule, Slot, Target, TenantId};

    use super::*;

    #[test]
    fn what_is_missed_waits_for_a_run_between_its_attempts_but_for_none_that_is_overdue() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let slot = Slot(now.minus(Duration::from_secs(60)));
        let target = Target::http("http://localhost/").unwrap();
        let mut def = Definition::new(Schedule::from(slot), target);
        def.overlap = Overlap::Skip;
        let id = JobId::new(now, [1; 10]);
        let job = Arc::new(Job::new(id, TenantId::DEFAULT, None, def, slot.0));
        let ready = Run::of_slot(&job, slot);
        assert!(!keeps_waiting(&ready, now), "nobody claims it");
        let claim = Some(PresenceId::new(now, [1; 10]));
        let claimed = Run {
            claim,
            ..ready.clone()
        };
        assert!(keeps_waiting(&claimed, now));
        let retrying = |due_at| Run {
            state: RunState::Retrying,
            due_at,
            ..ready.clone()
        };
        assert!(keeps_waiting(&retrying(now.plus(BOUND)), now));
        assert!(keeps_waiting(&retrying(now.minus(BOUND)), now));
        let overdue = retrying(now.minus(BOUND * 2));
        assert!(!keeps_waiting(&overdue, now));
    }
}
