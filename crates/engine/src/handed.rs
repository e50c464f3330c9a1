//! Handed over: ends attempts that nothing is heard of, and those whose time is up.
//!
//! Silence proves nothing to whoever was not there to hear. It counts only while this node has held the shard, beaten
//! without a break and seen no step of the clock for as long as the target may be silent: so neither a node that was down, a
//! store that was away, nor a stepped clock loses work.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use model::{Handed, Observer, Shard, Timestamp, limits};
use rand::RngExt;
use rand::rngs::StdRng;
use store::{EngineStore, Epoch, HandedEnd, Lapse, Leases, StoreError};
use tracing::info;

use crate::clock::Clock;
use crate::duty::{Duty, Wake};
use crate::flaw::Flaw;
use crate::lock;
use crate::nudge::Nudge;
use crate::outside::Followed;
use crate::presence::Presence;
use crate::shards::Shards;

/// A wall clock that moves this much against the other one was stepped.
const STEP_MIN: Duration = Duration::from_millis(500);

pub(crate) struct Ports {
    pub store: Arc<dyn EngineStore>,
    pub clock: Arc<dyn Clock>,
    pub presence: Arc<Presence>,
    pub shards: Arc<Shards>,
    pub observer: Arc<Mutex<Observer>>,
    pub followed: Followed,
    pub chance: StdRng,
    pub flaw: Flaw,
    pub nudge: Nudge,
}

/// Since when this node could have heard. All of it is uptime.
#[derive(Debug, Default)]
struct Watch {
    shards: BTreeMap<Shard, (Epoch, Duration)>,
    /// Wall time less uptime, in milliseconds, at the last look, and since when it is so.
    offset: Option<(i64, Duration)>,
}

impl Watch {
    fn look(&mut self, leases: &Leases, now: Timestamp, uptime: Duration) {
        let held = &leases.epochs;
        self.shards
            .retain(|shard, (epoch, _)| held.get(shard) == Some(epoch));
        for (shard, epoch) in held {
            self.shards.entry(*shard).or_insert((*epoch, uptime));
        }
        let offset = now.as_millis().saturating_sub(model::time::millis(uptime));
        let since = match self.offset {
            Some((before, since)) if !is_step(offset.saturating_sub(before)) => since,
            Some(_) | None => uptime,
        };
        self.offset = Some((offset, since));
    }

    /// For how long it has been there for a shard, if its beats are unbroken since then.
    fn lasts(&self, shard: Shard, unbroken: Option<Duration>, uptime: Duration) -> Duration {
        let held = self.shards.get(&shard).map(|(_, since)| *since);
        let steady = self.offset.map(|(_, since)| since);
        let since = held.zip(steady).zip(unbroken);
        since.map_or(Duration::ZERO, |((held, steady), unbroken)| {
            uptime.saturating_sub(held.max(steady).max(unbroken))
        })
    }
}

fn is_step(millis: i64) -> bool {
    millis.unsigned_abs() >= STEP_MIN.as_millis() as u64
}

pub(crate) struct EndSilent {
    ports: Ports,
    watch: Watch,
}

impl EndSilent {
    pub(crate) fn new(ports: Ports) -> Self {
        let watch = Watch::default();
        Self { ports, watch }
    }

    /// Whether an attempt that is trusted no more has ended.
    fn has_lapsed(&self, handed: &Handed, now: Timestamp, uptime: Duration) -> bool {
        if handed.has_timed_out(now) || self.ports.flaw.skips_watch() {
            return true;
        }
        let unbroken = lock(&self.ports.observer).unbroken_since(uptime);
        let shard = Shard::of(handed.job);
        self.watch.lasts(shard, unbroken, uptime) >= handed.watch()
    }
}

#[async_trait]
impl Duty for EndSilent {
    fn name(&self) -> &'static str {
        "handed"
    }

    fn nudge(&self) -> &Nudge {
        &self.ports.nudge
    }

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError> {
        let uptime = self.ports.clock.uptime();
        let leases = self.ports.shards.leases();
        self.watch.look(&leases, now, uptime);
        let again = Wake::At(now.plus(limits::SLEEP_MAX));
        if leases.epochs.is_empty() || !self.ports.presence.is_sure() {
            return Ok(again);
        }
        let store = self.ports.store.handed();
        let shards = leases.shards();
        let page = limits::HANDED_BATCH_MAX;
        let silent = store.lapsing(&shards, now, page).await?;
        let is_full = silent.len() == page;
        let mut lapses = Vec::new();
        for handed in &silent {
            if let Some(until) = handed.until
                && self.has_lapsed(handed, now, uptime)
            {
                lapses.push(Lapse {
                    run: handed.run,
                    job: handed.job,
                    attempt: handed.attempt,
                    until,
                    chance: self.ports.chance.random::<f64>(),
                });
            }
        }
        if lapses.is_empty() {
            return Ok(again);
        }
        let ends = store.lapse(&leases, &lapses, now).await?;
        let mut attempts = 0;
        for end in &ends {
            if let HandedEnd::Done(ended) = end {
                attempts += 1;
                self.ports.followed.follow(ended);
            }
        }
        if attempts > 0 {
            info!(attempts, "ends attempts that nothing was heard of in time");
        }
        Ok(if is_full && attempts > 0 {
            Wake::Now
        } else {
            again
        })
    }
}
