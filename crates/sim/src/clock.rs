//! Simulated time: the runtime's paused clock, with a wall clock that can be stepped.

use std::io;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use engine::{Alarm, Clock};
use model::{Timestamp, limits};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::Instant;

/// 2026-03-29T00:00:00Z, the night the clocks change in Europe.
const BASE: i64 = 1_774_742_400_000;

#[derive(Clone)]
pub struct SimClock {
    origin: Instant,
    base: i64,
    /// What steps have added to the wall clock, in milliseconds.
    stepped: Arc<AtomicI64>,
}

impl SimClock {
    pub fn new() -> Self {
        Self::at(Timestamp::from_millis(BASE))
    }

    /// A wall clock that shows this now.
    pub fn at(moment: Timestamp) -> Self {
        Self {
            origin: Instant::now(),
            base: moment.as_millis(),
            stepped: Arc::default(),
        }
    }

    pub fn step(&self, millis: i64) {
        self.stepped.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Default for SimClock {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let elapsed = model::time::millis(self.origin.elapsed());
        Timestamp::from_millis(self.base + elapsed + self.stepped.load(Ordering::SeqCst))
    }

    fn uptime(&self) -> Duration {
        self.origin.elapsed()
    }

    async fn sleep(&self, span: Duration) {
        if span.is_zero() {
            return;
        }
        #[expect(clippy::disallowed_methods, reason = "simulated time is the runtime's")]
        tokio::time::sleep(span).await;
    }

    fn alarm(&self) -> io::Result<Box<dyn Alarm>> {
        Ok(Box::new(SimAlarm(self.clone())))
    }
}

/// A node's own view of time: its wall clock is off, its steady clock runs a little fast or slow, and it
/// may stand still, as a machine does that was suspended.
#[derive(Clone)]
pub struct NodeClock {
    pub base: SimClock,
    /// What its wall clock is ahead of the others, in milliseconds.
    pub skew: Arc<AtomicI64>,
    /// What its steady clock gains, in millionths.
    pub drift: i64,
    pub pause: Pause,
}

/// Until when a node stands still, by the simulation's uptime. What it has to do then comes to life in any order.
#[derive(Clone)]
pub struct Pause {
    until: Arc<Mutex<Duration>>,
    rng: Arc<Mutex<StdRng>>,
}

/// Whatever stood still moves again within so many milliseconds.
const AWAKE_WITHIN: u64 = 6;

impl Pause {
    pub fn new(seed: u64) -> Self {
        Self {
            until: Arc::default(),
            rng: Arc::new(Mutex::new(StdRng::seed_from_u64(seed))),
        }
    }

    pub fn until(&self, uptime: Duration) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = uptime;
    }

    /// Waits while the node stands still.
    pub async fn over(&self, clock: &SimClock) {
        let mut stood = false;
        loop {
            let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
            let left = until.saturating_sub(Clock::uptime(clock));
            if left.is_zero() {
                break;
            }
            stood = true;
            clock.sleep(left).await;
        }
        if stood {
            clock.sleep(self.turn()).await;
        }
    }

    fn turn(&self) -> Duration {
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        Duration::from_millis(rng.random_range(0..AWAKE_WITHIN))
    }
}

impl NodeClock {
    pub fn new(base: SimClock, seed: u64) -> Self {
        Self {
            base,
            skew: Arc::default(),
            drift: 0,
            pause: Pause::new(seed),
        }
    }
}

#[async_trait]
impl Clock for NodeClock {
    fn now(&self) -> Timestamp {
        let now = Clock::now(&self.base).as_millis();
        Timestamp::from_millis(now + self.skew.load(Ordering::SeqCst))
    }

    fn uptime(&self) -> Duration {
        let micros = Clock::uptime(&self.base).as_micros() as i64;
        Duration::from_micros((micros + micros * self.drift / 1_000_000).unsigned_abs())
    }

    async fn sleep(&self, span: Duration) {
        self.base.sleep(span).await;
        self.pause.over(&self.base).await;
    }

    fn alarm(&self) -> io::Result<Box<dyn Alarm>> {
        Ok(Box::new(NodeAlarm(self.clone())))
    }
}

struct NodeAlarm(NodeClock);

#[async_trait]
impl Alarm for NodeAlarm {
    async fn wait_micros(&mut self, moment: i64) {
        let moment = Timestamp::from_millis(moment.saturating_add(999).div_euclid(1_000));
        let span = moment.since(Clock::now(&self.0)).min(limits::SLEEP_MAX);
        if !span.is_zero() {
            self.0.sleep(span).await;
        }
    }
}

/// The store's own time. Some have nothing but a wall clock to measure presences by, and it is stepped.
pub struct StoreTime {
    pub clock: SimClock,
    pub by_wall: bool,
}

impl store::StoreClock for StoreTime {
    fn now(&self) -> Timestamp {
        Clock::now(&self.clock)
    }

    fn uptime(&self) -> Duration {
        if self.by_wall {
            Duration::from_millis(Clock::now(&self.clock).as_u64())
        } else {
            Clock::uptime(&self.clock)
        }
    }
}

impl store::StoreClock for SimClock {
    fn now(&self) -> Timestamp {
        Clock::now(self)
    }

    fn uptime(&self) -> Duration {
        Clock::uptime(self)
    }
}

struct SimAlarm(SimClock);

#[async_trait]
impl Alarm for SimAlarm {
    async fn wait_micros(&mut self, moment: i64) {
        // Simulated time is whole milliseconds.
        let moment = Timestamp::from_millis(moment.saturating_add(999).div_euclid(1_000));
        let span = moment.since(Clock::now(&self.0)).min(limits::SLEEP_MAX);
        if !span.is_zero() {
            self.0.sleep(span).await;
        }
    }
}
