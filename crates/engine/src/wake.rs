//! Wake: runs that wait for something outside of their jobs may start after all, when their time is up or when what they
//! wait for is over. Which ones an origin keeps waiting is known to the node that made them wait; all others, such as
//! those of a node that is gone, are woken in their time by whoever holds their shard.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use model::{JobId, Shard, Timestamp, WaitReason, limits};
use store::{DueRun, EngineStore, Hint, StoreError};

use crate::board::Board;
use crate::clock::Clock;
use crate::duty::{Duty, Wake};
use crate::metrics::Metrics;
use crate::nudge::Nudge;
use crate::offers::Offers;
use crate::origins::Origins;
use crate::presence::Presence;
use crate::shards::Shards;

/// How often those are looked for whose time is up, and how often all are counted.
const CHECK_EVERY: Duration = Duration::from_secs(1);
const COUNT_EVERY: Duration = Duration::from_secs(10);
/// How often origins are looked at.
const EVERY: Duration = Duration::from_millis(250);

pub(crate) struct Ports {
    pub board: Arc<Board>,
    pub store: Arc<dyn EngineStore>,
    pub clock: Arc<dyn Clock>,
    pub presence: Arc<Presence>,
    pub shards: Arc<Shards>,
    pub origins: Arc<Origins>,
    pub offers: Offers,
    pub metrics: Metrics,
    /// Whether this node executes.
    pub executes: bool,
    pub nudge: Nudge,
    pub fire: Nudge,
    pub claim_due: Nudge,
}

pub(crate) struct WakeWaiting {
    ports: Ports,
    /// When to look and to count again, by uptime.
    check_at: Duration,
    count_at: Duration,
}

impl WakeWaiting {
    pub(crate) fn new(ports: Ports) -> Self {
        Self {
            ports,
            check_at: Duration::ZERO,
            count_at: Duration::ZERO,
        }
    }

    /// Those that origins keep waiting. Answers how many.
    async fn wake_named(&self, now: Timestamp) -> Result<usize, StoreError> {
        let Ports {
            store,
            clock,
            origins,
            ..
        } = &self.ports;
        let named = origins.to_wake(clock.uptime(), limits::WAKE_BATCH_MAX);
        let runs: Vec<_> = named.iter().flat_map(|(_, runs)| runs).copied().collect();
        if runs.is_empty() {
            return Ok(0);
        }
        match store.wake(&runs, now).await {
            Ok(woken) => self.pass_on(&woken),
            Err(error) => {
                // Nobody knows whether they were: waking one twice is harmless.
                named.iter().for_each(|(origin, runs)| origin.waits(runs));
                return Err(error);
            }
        }
        Ok(runs.len())
    }

    /// Those whose time is up. Answers how many.
    async fn wake_due(&mut self, now: Timestamp) -> Result<usize, StoreError> {
        let uptime = self.ports.clock.uptime();
        if uptime < self.check_at {
            return Ok(0);
        }
        let Ports { store, shards, .. } = &self.ports;
        let ours = shards.leases().shards();
        let mut count = 0;
        if !ours.is_empty() {
            let woken = store.wake_due(&ours, now, limits::WAKE_BATCH_MAX).await?;
            self.pass_on(&woken);
            count = woken.len();
        }
        if count < limits::WAKE_BATCH_MAX {
            self.check_at = uptime + CHECK_EVERY;
        }
        Ok(count)
    }

    /// What may be claimed goes to fire, or to whoever holds its shard.
    fn pass_on(&self, woken: &[DueRun]) {
        let Ports { board, offers, .. } = &self.ports;
        // Whoever claims and ends them: a slot may have waited for that.
        let jobs: Vec<JobId> = woken.iter().map(|run| run.job).collect();
        board.written(&jobs);
        let ours = |run: &&DueRun| self.ports.executes && offers.is_ours(Shard::of(run.job));
        let (ours, elsewhere): (Vec<&DueRun>, Vec<&DueRun>) = woken.iter().partition(ours);
        let ours: Vec<DueRun> = ours.into_iter().copied().collect();
        if board.settled(&[], &ours) {
            self.ports.fire.now();
        }
        if !elsewhere.is_empty() {
            let hints = elsewhere.iter().map(|run| Hint::Job(run.tenant, run.job));
            let hints: BTreeSet<Hint> = hints.collect();
            let hints: Vec<Hint> = hints.into_iter().collect();
            self.ports.store.hint(&hints);
            self.ports.claim_due.now();
        }
    }

    /// One node counts for all: the one that holds the first shard.
    async fn count(&mut self) -> Result<(), StoreError> {
        let (uptime, metrics) = (self.ports.clock.uptime(), &self.ports.metrics);
        if !self.ports.offers.is_ours(Shard(0)) {
            metrics.count_no_waiting();
            return Ok(());
        }
        if uptime >= self.count_at {
            let counts = self.ports.store.count_waiting().await?;
            for reason in WaitReason::ALL {
                // A turn is the job's own affair.
                if reason != WaitReason::Turn {
                    let count = counts.get(&reason).copied().unwrap_or(0);
                    metrics.waiting_counted(reason, count);
                }
            }
            self.count_at = uptime + COUNT_EVERY;
        }
        Ok(())
    }
}

#[async_trait]
impl Duty for WakeWaiting {
    fn name(&self) -> &'static str {
        "wake"
    }

    fn nudge(&self) -> &Nudge {
        &self.ports.nudge
    }

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError> {
        if !self.ports.presence.is_sure() {
            return Ok(Wake::At(now.plus(EVERY)));
        }
        let named = self.wake_named(now).await?;
        let due = self.wake_due(now).await?;
        self.count().await?;
        Ok(if named.max(due) >= limits::WAKE_BATCH_MAX {
            Wake::Now
        } else {
            Wake::At(now.plus(EVERY))
        })
    }
}
