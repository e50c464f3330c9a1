//! Simulated time: the runtime's paused clock, with a wall clock that can be stepped.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use engine::{Alarm, Clock};
use model::{Timestamp, limits};
use tokio::time::Instant;

/// 2026-03-29T00:00:00Z, the night the clocks change in Europe.
const BASE: i64 = 1_774_742_400_000;

#[derive(Clone)]
pub struct SimClock {
    origin: Instant,
    /// What steps have added to the wall clock, in milliseconds.
    stepped: Arc<AtomicI64>,
}

impl SimClock {
    pub fn new() -> Self {
        Self {
            origin: Instant::now(),
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
        Timestamp::from_millis(BASE + elapsed + self.stepped.load(Ordering::SeqCst))
    }

    fn uptime(&self) -> Duration {
        self.origin.elapsed()
    }

    async fn sleep(&self, span: Duration) {
        #[expect(clippy::disallowed_methods, reason = "simulated time is the runtime's")]
        tokio::time::sleep(span).await;
    }

    fn alarm(&self) -> io::Result<Box<dyn Alarm>> {
        Ok(Box::new(SimAlarm(self.clone())))
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
