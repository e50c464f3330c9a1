//! Handed over: ends attempts that nothing is heard of, and those whose time is up.
//!
//! Silence proves nothing to whoever was not there to hear. It counts only while this node has held the shard, beaten
//! without a break and seen no step of the clock for as long as the target may be silent: so neither a node that was down, a
//! store that was away, nor a stepped clock loses work. Nor does a timeout: its moment is one of the wall clock, and counts
//! once this node has watched that for a while, later by what the clock was put forward since the attempt began.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use model::{Handed, Observer, RunId, Shard, Timestamp, limits};
use rand::RngExt;
use rand::rngs::StdRng;
use store::{EngineStore, Epoch, HandedEnd, Lapse, Lapsing, Leases, StoreError};
use tracing::info;

use crate::clock::Clock;
use crate::duty::{Duty, Wake};
use crate::flaw::Flaw;
use crate::lock;
use crate::nudge::Nudge;
use crate::offset::Skew;
use crate::outside::Followed;
use crate::presence::Presence;
use crate::shards::Shards;

/// A wall clock that moves this much against the other one was stepped.
const STEP_MIN: Duration = Duration::from_millis(500);

pub(crate) struct Ports {
    pub store: Arc<dyn EngineStore>,
    pub clock: Arc<dyn Clock>,
    pub presence: Arc<Presence>,
    pub skew: Skew,
    pub shards: Arc<Shards>,
    pub observer: Arc<Mutex<Observer>>,
    pub followed: Followed,
    pub chance: StdRng,
    pub flaw: Flaw,
    pub nudge: Nudge,
}

/// Steps that are remembered one by one.
const STEPS_MAX: usize = 16;

/// Since when this node could have heard. All of it is uptime.
#[derive(Debug, Default)]
struct Watch {
    shards: BTreeMap<Shard, (Epoch, Duration)>,
    /// Wall time less uptime, in milliseconds, when it was read last, and since when it is so.
    offset: Option<(i64, Duration)>,
    /// When it was read first.
    begun: Option<Duration>,
    /// Steps of the wall clock that were not undone, in their order.
    steps: VecDeque<Step>,
}

/// The wall clock went forward or back, and time did not.
#[derive(Debug)]
struct Step {
    /// What was dispatched before this was so by a clock that did not know of it.
    at: Timestamp,
    millis: i64,
    /// Since when it had been steady before.
    since: Duration,
}

impl Watch {
    fn observe(&mut self, leases: &Leases, now: Timestamp, uptime: Duration) {
        let held = &leases.epochs;
        self.shards
            .retain(|shard, (epoch, _)| held.get(shard) == Some(epoch));
        for (shard, epoch) in held {
            self.shards.entry(*shard).or_insert((*epoch, uptime));
        }
        self.begun.get_or_insert(uptime);
        let offset = now.as_millis().saturating_sub(model::time::millis(uptime));
        let since = match self.offset {
            None => uptime,
            Some((before, since)) => {
                let millis = offset.saturating_sub(before);
                if is_step(millis) {
                    self.step(millis, since, now, uptime)
                } else {
                    since
                }
            }
        };
        self.offset = Some((offset, since));
    }

    /// The clock was stepped. Answers since when it is steady: a step that is undone is forgotten.
    fn step(&mut self, millis: i64, since: Duration, now: Timestamp, uptime: Duration) -> Duration {
        let undoes = |last: &mut Step| !is_step(last.millis.saturating_add(millis));
        if let Some(last) = self.steps.pop_back_if(undoes) {
            return last.since;
        }
        let before = Timestamp::from_millis(now.as_millis().saturating_sub(millis));
        // Others may hear of it later than this node, for as long as they have a presence, and some have heard before.
        let unheard = Duration::from_millis(u64::try_from(millis).unwrap_or(0));
        let at = before.plus(unheard.min(limits::PRESENCE_TTL));
        self.steps.push_back(Step { at, millis, since });
        if self.steps.len() > STEPS_MAX
            && let Some(first) = self.steps.pop_front()
            && let Some(next) = self.steps.front_mut()
        {
            next.at = next.at.max(first.at);
            next.millis = next.millis.saturating_add(first.millis);
        }
        uptime
    }

    /// Whether an attempt's time is up, and not only by a clock that was put forward meanwhile.
    fn has_timed_out(&self, handed: &Handed, now: Timestamp, uptime: Duration) -> bool {
        let watched = self.begun.map(|begun| uptime.saturating_sub(begun));
        let is_steady = watched.is_some_and(|watched| watched >= limits::STEADY_FOR);
        let steps = self.steps.iter();
        let steps = steps.filter(|step| handed.dispatched_at < step.at);
        let ahead: i64 = steps.map(|step| step.millis).sum();
        let ahead = Duration::from_millis(u64::try_from(ahead).unwrap_or(0));
        is_steady && handed.timeout_at.plus(ahead) <= now
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

    /// The same for the shard that it has been there for the longest.
    fn lasts_most(&self, unbroken: Option<Duration>, uptime: Duration) -> Duration {
        let shards = self.shards.keys();
        let spans = shards.map(|shard| self.lasts(*shard, unbroken, uptime));
        spans.max().unwrap_or_default()
    }
}

fn is_step(millis: i64) -> bool {
    millis.unsigned_abs() >= STEP_MIN.as_millis() as u64
}

pub(crate) struct EndSilent {
    ports: Ports,
    watch: Watch,
    /// The last one that was read, while there are more to read.
    after: Option<(Timestamp, RunId)>,
}

impl EndSilent {
    pub(crate) fn new(ports: Ports) -> Self {
        Self {
            ports,
            watch: Watch::default(),
            after: None,
        }
    }

    /// Since when this node has been heard without a break.
    fn unbroken_since(&self, uptime: Duration) -> Option<Duration> {
        lock(&self.ports.observer).unbroken_since(uptime)
    }

    /// Whether an attempt that is trusted no more has ended.
    fn has_lapsed(&self, handed: &Handed, now: Timestamp, uptime: Duration) -> bool {
        if self.watch.has_timed_out(handed, now, uptime) || self.ports.flaw.skips_watch() {
            return true;
        }
        let unbroken = self.unbroken_since(uptime);
        let shard = Shard::of(handed.job);
        handed.is_silent(now) && self.watch.lasts(shard, unbroken, uptime) >= handed.watch()
    }

    /// Ends attempts.
    async fn end(
        &self,
        leases: &Leases,
        lapses: &[Lapse],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        if lapses.is_empty() {
            return Ok(());
        }
        let ends = self.ports.store.handed().lapse(leases, lapses, now).await?;
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
        Ok(())
    }

    /// What is to be read next.
    fn page(&self, now: Timestamp, uptime: Duration) -> Lapsing {
        let watched = if self.ports.flaw.skips_watch() {
            Duration::MAX
        } else {
            self.watch.lasts_most(self.unbroken_since(uptime), uptime)
        };
        Lapsing {
            now,
            watched,
            after: self.after,
            limit: limits::HANDED_BATCH_MAX,
        }
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
        let again = Wake::At(now.plus(limits::SLEEP_MAX));
        if !self.ports.skew.is_known() && !self.ports.flaw.skips_watch() {
            // What it takes for the time will be put right, and that is no step of the store's clock.
            return Ok(again);
        }
        self.watch.observe(&leases, now, uptime);
        if leases.epochs.is_empty() || !self.ports.presence.is_sure() {
            return Ok(again);
        }
        let store = self.ports.store.handed();
        let page = self.page(now, uptime);
        let silent = store.lapsing(&leases.shards(), page).await?;
        let last = silent.last().filter(|_| silent.len() == page.limit);
        let after = last.and_then(|last| Some((last.until?, last.run)));
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
        self.end(&leases, &lapses, now).await?;
        self.after = after;
        // Those that may not be ended yet hide nobody: the next step goes on behind them.
        Ok(if after.is_some() { Wake::Now } else { again })
    }
}
