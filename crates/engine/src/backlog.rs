//! Backlog: figures that health and metrics show of everybody's work: the oldest that is due, and how many jobs there are.

use std::collections::BTreeMap;
use std::time::Duration;

use model::shard::ShardSet;
use model::{JobId, JobState, Shard, Timestamp};
use store::StoreError;

use crate::fleet::schedulers;
use crate::lock;
use crate::watchdog::Ports;

/// How often everything is read that is due, however old: what lies behind is nearly always over, and costs much to
/// read through while somebody's transaction keeps it in the database.
const WHOLE: Duration = Duration::from_secs(30);
/// How often jobs are counted; of many a count takes longer than that.
const COUNT_EVERY: Duration = Duration::from_secs(10);
/// Jobs counted in one step.
const COUNT_PAGE: usize = 10_000;

/// The oldest that is due, and where the last query for it has come to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Backlog {
    shards: ShardSet,
    /// Nothing was due before it.
    from: Timestamp,
    now: Timestamp,
    /// When everything is read again, by uptime.
    whole_at: Duration,
}

impl Backlog {
    /// Where to begin: at what was oldest, unless shards have changed or the clock has gone back.
    fn begin(&mut self, shards: ShardSet, now: Timestamp, uptime: Duration) -> Timestamp {
        if shards != self.shards || now < self.now || uptime >= self.whole_at {
            *self = Self {
                shards,
                from: Timestamp::MIN,
                now,
                whole_at: uptime + WHOLE,
            };
        }
        self.now = now;
        self.from
    }

    fn found(&mut self, oldest: Option<Timestamp>) {
        self.from = oldest.map_or(self.now, |oldest| oldest.min(self.now));
    }

    /// The oldest that is due of this node's shards; of all where nobody schedules.
    pub(crate) async fn read(&mut self, ports: &Ports) -> Result<(), StoreError> {
        let Ports {
            clock,
            fleet,
            metrics,
            ..
        } = ports;
        let nobody = fleet.has_heard(ports.presence.id)
            && fleet.with_peers(|peers| schedulers(peers).is_empty());
        let shards = if nobody {
            ShardSet::ALL
        } else {
            ports.shards.leases().shards()
        };
        let now = clock.now();
        let from = self.begin(shards, now, clock.uptime());
        let oldest = ports.store.oldest_due(&shards, from, now).await?;
        self.found(oldest);
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

    #[test]
    fn the_backlog_is_read_from_the_oldest_that_was_found() {
        let mut backlog = Backlog::default();
        assert_eq!(
            backlog.begin(ShardSet::ALL, at(100), SECOND),
            Timestamp::MIN
        );
        backlog.found(Some(at(40)));
        assert_eq!(backlog.begin(ShardSet::ALL, at(101), SECOND * 2), at(40));
        backlog.found(Some(at(300)));
        assert_eq!(backlog.begin(ShardSet::ALL, at(102), SECOND * 3), at(101));
        backlog.found(None);
        assert_eq!(backlog.begin(ShardSet::ALL, at(103), SECOND * 4), at(102));
    }

    #[test]
    fn all_of_the_backlog_is_read_after_a_step_back_for_other_shards_and_in_time() {
        let mut backlog = Backlog::default();
        let some: ShardSet = [model::Shard(1)].into_iter().collect();
        for (shards, now, uptime) in [
            (ShardSet::ALL, 100, SECOND),
            (ShardSet::ALL, 99, SECOND * 2),
            (some, 100, SECOND * 3),
            (some, 101, SECOND * 3 + WHOLE),
        ] {
            let from = backlog.begin(shards, at(now), uptime);
            assert_eq!(from, Timestamp::MIN, "{now}");
            backlog.found(None);
            assert_eq!(backlog.begin(shards, at(now), uptime), at(now));
        }
    }
}
