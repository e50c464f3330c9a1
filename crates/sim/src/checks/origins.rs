//! Origins that died: their runs wait instead of spending attempts, and go on once the origin is back.

use std::collections::BTreeMap;
use std::time::Duration;

use model::breaker::{FAILURES, OPEN_FIRST, OPEN_MAX};
use model::{PresenceId, Run, limits};

use super::End;
use crate::world::World;

/// How long runs may wait for an origin that is well again: until the breaker lets a probe through, and those that a node
/// has left behind until their own time is up.
const BACK: Duration = OPEN_MAX
    .saturating_add(limits::BREAKER_WAIT_AFTER)
    .saturating_add(Duration::from_secs(15));
/// So many probes of a dead origin a presence makes in a span: each is waited for twice as long as the last, less what chance
/// takes off.
fn probes(span: Duration) -> usize {
    let (mut at, mut open, mut count) = (Duration::ZERO, OPEN_FIRST, 0);
    while at < span {
        at += open.mul_f64(0.7);
        open = (open * 2).min(OPEN_MAX);
        count += 1;
    }
    count
}

/// Runs that wait for an origin which has been well for longer than that may take.
fn waits_in_vain(world: &World) -> Vec<Run> {
    let records = world.origins.records();
    let (now, uptime) = (world.clock_now(), world.uptime());
    let jobs = world.mem.all_jobs();
    let waits = world.ledger.book().waits.clone();
    let waiting = world.mem.live_runs().into_iter().filter(Run::waits_outside);
    let in_vain = waiting.filter(|run| {
        let job = jobs.iter().find(|job| job.id == run.job);
        let origin = job.and_then(|job| job.def.target.origin());
        let record = origin.and_then(|origin| records.get(&origin));
        let well_since = record.map(|record| record.well_since());
        let until = run.wait.and_then(|wait| wait.until);
        // Only a clock that went back since it was made to wait explains more, until its time is up by that clock.
        let mut of_job = waits.get(&run.job).into_iter().flatten().rev();
        let since = of_job.find(|it| it.run == run.id);
        let stepped = since.is_some_and(|it| world.steps.iter().any(|step| *step >= it.from));
        let explained = stepped && until.is_some_and(|until| until > now);
        well_since.unwrap_or_default() + BACK < uptime && !explained
    });
    in_vain.collect()
}

/// How long what waits for its origin is given at the end.
pub(crate) fn may_wait_until(world: &World) -> Duration {
    let records = world.origins.records();
    let well = records.values().map(|record| record.well_since()).max();
    well.unwrap_or_default() + BACK + Duration::from_secs(1)
}

impl End<'_> {
    /// Once an origin is back for long enough, nothing waits for it.
    pub(super) fn nothing_waits_for_a_living_origin(&mut self) {
        for run in waits_in_vain(self.world) {
            self.broken("nothing_waits_for_a_living_origin", format!("{run:?}"));
        }
    }

    /// While an origin is dead, a presence that is well calls it a few times and then only to see whether it is back.
    pub(super) fn a_dead_origin_is_let_be(&mut self) {
        let mut many = Vec::new();
        for (origin, record) in self.world.origins.records() {
            for dead in &record.dead {
                let mut calls: BTreeMap<(u32, PresenceId), usize> = BTreeMap::new();
                let book = self.world.ledger.book();
                for it in &self.deliveries {
                    let presence = book.granted_to(it.node, it.run, it.attempt);
                    let during = (dead.from..dead.to).contains(&it.from);
                    if let Some(presence) = presence.filter(|_| during && it.origin == origin) {
                        *calls.entry((it.node, presence)).or_default() += 1;
                    }
                }
                drop(book);
                let at_once = FAILURES as usize + self.world.running_max;
                let max = at_once + probes(dead.to.saturating_sub(dead.from));
                for ((start, presence), count) in calls.into_iter().filter(|it| it.1 > max) {
                    // What a node hears late that stood still was said before.
                    let node = self.world.started.get(&start);
                    let here = |node: &usize| self.world.spells.is_here(*node, dead.from, dead.to);
                    if node.is_some_and(here) {
                        many.push(format!("{origin} {dead:?}: {count} of {max} by {presence}"));
                    }
                }
            }
        }
        for seen in many {
            self.broken("a_dead_origin_is_let_be", seen);
        }
    }
}
