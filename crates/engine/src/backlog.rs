//! Backlog: figures that health and metrics show of everybody's work: the oldest that is due, and how many jobs there are.

use std::collections::BTreeMap;
use std::time::Duration;

use model::shard::ShardSet;
use model::{JobId, JobState, Shard, Timestamp};
use store::{LowWater, StoreError};

use crate::fleet::schedulers;
use crate::lock;
use crate::watchdog::Ports;

/// How often everything is read that is due, however old: what has appeared below the mark without a hint is found in time for
/// plan to have it within five seconds.
const WHOLE: Duration = Duration::from_secs(3);
/// How many times as long as that took it is left alone, and for how long at the most: what lies behind is nearly always over,
/// and costs much to read through while somebody's transaction keeps it in the database.
const WHOLE_REST: u32 = 20;
const WHOLE_REST_MAX: Duration = Duration::from_secs(60);
/// How far below the oldest that was found the mark is: what is due then may be written a while later.
const MARGIN: Duration = Duration::from_secs(5);
/// How often jobs are counted; of many a count takes longer than that.
const COUNT_EVERY: Duration = Duration::from_secs(10);
/// Jobs counted in one step.
const COUNT_PAGE: usize = 10_000;

/// The oldest that is due, and where the last query for it has come to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Backlog {
    shards: ShardSet,
    taken: u32,
    /// Nothing was due before it.
    from: Timestamp,
    now: Timestamp,
    /// When everything is read again, by uptime. None before there are shards.
    whole_at: Option<Duration>,
}

/// What a query reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    from: Timestamp,
    /// Everything, although nothing is known to be due before this.
    whole: Option<Timestamp>,
}

impl Backlog {
    /// Where to begin: at what was oldest; after a change of hands at the mark that came with the shards; at the beginning when
    /// the clock has gone back, and every now and then.
    fn begin(
        &mut self,
        shards: ShardSet,
        mark: LowWater,
        (now, uptime): (Timestamp, Duration),
    ) -> Stretch {
        if shards != self.shards || mark.taken != self.taken {
            let soon = uptime + WHOLE;
            (self.shards, self.taken) = (shards, mark.taken);
            self.from = mark.at;
            self.whole_at = Some(self.whole_at.map_or(soon, |at| at.min(soon)));
        }
        let from = self.from.min(now);
        self.from = from;
        let is_whole = now < self.now || self.whole_at.is_some_and(|at| uptime >= at);
        self.now = now;
        if is_whole {
            // If nobody waits for its answer.
            self.whole_at = Some(uptime + WHOLE_REST_MAX);
        }
        Stretch {
            from: if is_whole { Timestamp::MIN } else { from },
            whole: is_whole.then_some(from),
        }
    }

    /// After a query that took so long, whether or not it was answered.
    fn rest(&mut self, stretch: Stretch, took: Duration, uptime: Duration) {
        if stretch.whole.is_some() {
            self.whole_at = Some(uptime + (took * WHOLE_REST).clamp(WHOLE, WHOLE_REST_MAX));
        }
    }

    /// Takes note of what a query has found. Answers whether that was below the mark.
    fn found(&mut self, stretch: Stretch, oldest: Option<Timestamp>) -> bool {
        self.from = oldest.map_or(self.now, |oldest| oldest.min(self.now));
        stretch.whole.is_some_and(|mark| self.from < mark)
    }

    /// Reads the oldest that is due of these shards.
    async fn read_oldest(
        &mut self,
        ports: &Ports,
        shards: ShardSet,
        mark: LowWater,
    ) -> Result<Option<Timestamp>, StoreError> {
        let clock = &ports.clock;
        let (now, begun) = (clock.now(), clock.uptime());
        let stretch = self.begin(shards, mark, (now, begun));
        let answer = ports.store.oldest_due(&shards, stretch.from, now).await;
        let uptime = clock.uptime();
        self.rest(stretch, uptime.saturating_sub(begun), uptime);
        let oldest = answer?;
        if self.found(stretch, oldest) {
            ports.offers.replan();
        }
        Ok(oldest)
    }

    /// The oldest that is due of this node's shards; of all where nobody schedules.
    pub(crate) async fn read(&mut self, ports: &Ports) -> Result<(), StoreError> {
        let Ports {
            clock,
            fleet,
            metrics,
            ..
        } = ports;
        let leases = ports.shards.leases();
        let nobody = fleet.has_heard(ports.presence.id)
            && fleet.with_peers(|peers| schedulers(peers).is_empty());
        let taken = leases.low_water.taken;
        let oldest = if nobody {
            let at = Timestamp::MIN;
            self.read_oldest(ports, ShardSet::ALL, LowWater { at, taken })
                .await?
        } else if leases.epochs.is_empty() {
            None
        } else {
            let at = ports.shards.low_water().at;
            let oldest = self
                .read_oldest(ports, leases.shards(), LowWater { at, taken })
                .await?;
            let at = self.from.minus(MARGIN);
            ports.shards.move_low_water(LowWater { at, taken });
            oldest
        };
        let (now, uptime) = (clock.now(), clock.uptime());
        let mut health = lock(&ports.health);
        health.oldest_due_at = oldest.filter(|due_at| *due_at < now);
        health.measured_at = uptime;
        let age = health
            .oldest_due_at
            .map_or(Duration::ZERO, |due_at| now.since(due_at));
        drop(health);
        metrics.oldest_due.set(age.as_secs_f64());
        let waits = ports.store.waits();
        let known = metrics.pool_waits.get();
        metrics.pool_waits.inc_by(waits.saturating_sub(known));
        ports.by.trouble.turn();
        metrics.live.set(ports.board.unwritten() as i64);
        metrics.gauges.observe_board(&ports.board, now);
        Ok(())
    }
}

/// A walk through all jobs that counts them by state, a page a step.
#[derive(Debug, Default)]
pub(crate) struct Count {
    /// When the next begins, by uptime.
    at: Duration,
    after: Option<JobId>,
    counts: BTreeMap<JobState, u64>,
}

impl Count {
    /// One node counts for all: the one that holds the first shard.
    pub(crate) async fn step(&mut self, ports: &Ports) -> Result<(), StoreError> {
        let metrics = &ports.metrics;
        let uptime = ports.clock.uptime();
        if !ports.offers.is_ours(Shard(0)) {
            metrics.count_no_jobs();
            *self = Self::default();
            return Ok(());
        }
        if uptime < self.at {
            return Ok(());
        }
        let page = ports.store.count_jobs(self.after, COUNT_PAGE).await?;
        for (state, found) in page.counts {
            *self.counts.entry(state).or_default() += found;
        }
        self.after = page.next;
        if page.next.is_none() {
            let counts = std::mem::take(&mut self.counts);
            for state in JobState::ALL {
                metrics.jobs_counted(state, counts.get(&state).copied().unwrap_or(0));
            }
            self.at = uptime + COUNT_EVERY;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_millis(second * 1_000)
    }

    fn mark(second: i64, taken: u32) -> LowWater {
        LowWater {
            at: at(second),
            taken,
        }
    }

    fn up_to(second: i64) -> Stretch {
        Stretch {
            from: at(second),
            whole: None,
        }
    }

    /// One that has just been given all shards, at 100 s.
    fn holding() -> Backlog {
        let mut backlog = Backlog::default();
        let stretch = backlog.begin(ShardSet::ALL, mark(30, 1), (at(100), SECOND));
        assert_eq!(stretch, up_to(30), "it goes on from where others were");
        backlog.found(stretch, None);
        backlog
    }

    #[test]
    fn the_backlog_is_read_from_the_oldest_that_was_found() {
        let mut backlog = holding();
        for (now, oldest, from) in [(101, Some(40), 100), (102, Some(300), 40), (103, None, 102)] {
            let stretch = backlog.begin(ShardSet::ALL, mark(0, 1), (at(now), SECOND));
            assert_eq!(stretch, up_to(from));
            backlog.found(stretch, oldest.map(at));
        }
        let stretch = backlog.begin(ShardSet::ALL, mark(0, 1), (at(104), SECOND));
        assert_eq!(stretch, up_to(103));
    }

    #[test]
    fn shards_that_have_come_are_read_from_their_mark_and_all_of_it_soon() {
        let some: ShardSet = [Shard(1)].into_iter().collect();
        for (shards, taken) in [(ShardSet::ALL, 2), (some, 1)] {
            let mut backlog = holding();
            let stretch = backlog.begin(shards, mark(20, taken), (at(101), SECOND * 2));
            assert_eq!(stretch, up_to(20));
            backlog.found(stretch, None);
            let stretch = backlog.begin(shards, mark(0, taken), (at(104), SECOND + WHOLE));
            assert_eq!(stretch.from, Timestamp::MIN);
        }
    }

    #[test]
    fn all_of_the_backlog_is_read_after_a_step_back_and_in_time() {
        for (now, uptime) in [(99, SECOND * 2), (101, SECOND + WHOLE)] {
            let mut backlog = holding();
            let stretch = backlog.begin(ShardSet::ALL, mark(0, 1), (at(now), uptime));
            let whole = Some(at(now.min(100)));
            assert_eq!(
                stretch,
                Stretch {
                    from: Timestamp::MIN,
                    whole
                }
            );
            backlog.rest(stretch, Duration::ZERO, uptime);
            assert!(!backlog.found(stretch, None));
            let stretch = backlog.begin(ShardSet::ALL, mark(0, 1), (at(now), uptime));
            assert_eq!(stretch, up_to(now), "the mark has gone back too");
        }
    }

    #[test]
    fn what_is_found_below_the_mark_is_said_and_the_mark_goes_there() {
        let mut backlog = holding();
        let moment = (at(101), SECOND + WHOLE);
        let stretch = backlog.begin(ShardSet::ALL, mark(0, 1), moment);
        backlog.rest(stretch, Duration::ZERO, moment.1);
        assert!(backlog.found(stretch, Some(at(7))));
        let again = backlog.begin(ShardSet::ALL, mark(0, 1), moment);
        assert_eq!(again, up_to(7));
    }

    #[test]
    fn reading_all_of_it_rests_the_longer_the_longer_it_took_and_a_minute_at_most() {
        let begun = SECOND + WHOLE;
        for (took, rest) in [(0, 3_000), (200, 4_000), (1_000, 20_000), (9_000, 60_000)] {
            let mut backlog = holding();
            let stretch = backlog.begin(ShardSet::ALL, mark(0, 1), (at(101), begun));
            assert!(stretch.whole.is_some());
            let took = Duration::from_millis(took);
            // It may have failed.
            backlog.rest(stretch, took, begun + took);
            let next = begun + took + Duration::from_millis(rest);
            let before = next - Duration::from_millis(1);
            for (uptime, is_whole) in [(before, false), (next, true)] {
                let stretch = backlog.begin(ShardSet::ALL, mark(0, 1), (at(101), uptime));
                assert_eq!(stretch.whole.is_some(), is_whole, "{rest} after {took:?}");
            }
        }
    }
}
