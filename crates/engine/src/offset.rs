//! Offset: the store's clock is the cluster's. A node learns with every beat how far its own steady clock is
//! from it, and reads the time by that, whatever its wall clock says.
//!
//! ```text
//!   sent ───────▶ store reads its clock        what lies between its two looks is the store's own time; of the rest
//!                 writes, reads it again       nobody knows how much was the way there and how much the way back, so
//!   received ◀──┘                              the middle is wrong by half of that at most
//! ```
//!
//! What always holds: the time read is never ahead of the store's. It stays behind by the uncertainty, so that
//! nothing is early; and it stays known how large that is. Unless the store's clock is stepped, it never goes back: what
//! was true of the store's clock a moment ago is true of it now.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use model::{Timestamp, limits};

use crate::clock::{Alarm, Clock};
use crate::lock;

/// Beats that are remembered; the one with the shortest round trip gives the offset.
const SAMPLES: usize = 16;
/// How long one vouches for the store's clock. An answer that is slow cannot show a step that is smaller than it is slow:
/// a node that hears no other for so long does not know the time any more, and stops firing.
const VOUCHES: f64 = SAMPLES as f64 * limits::BEAT_EVERY.as_secs() as f64;
/// How far two clocks may drift apart, in millionths.
const DRIFT: f64 = 100e-6;
/// A beat that disagrees by more than both can be wrong, and by this, shows a step of the store's clock.
const STEP: f64 = 0.001;

/// One beat: what the store's clock read, and when, all in seconds. `offset` is store minus steady.
#[derive(Debug, Clone, Copy)]
struct Sample {
    offset: f64,
    half: f64,
    at: f64,
}

impl Sample {
    /// How wrong it may be at a later moment.
    fn uncertainty(&self, now: f64) -> f64 {
        self.half + (now - self.at).max(0.0) * DRIFT
    }
}

/// How this node's clock stands to the store's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// What the wall clock is ahead of the store's, in seconds.
    pub wall: f64,
    /// How well the store's clock is known, in seconds; infinite before the first beat.
    pub uncertainty: f64,
}

impl Standing {
    /// Why a node that stands so must not fire.
    pub fn unfit(&self, skew_max: Duration) -> Option<String> {
        if self.uncertainty > limits::UNCERTAINTY_MAX.as_secs_f64() {
            return Some(format!(
                "the store's clock is known no better than ±{:.0} ms",
                self.uncertainty.min(1e6) * 1e3
            ));
        }
        if self.wall.abs() > skew_max.as_secs_f64() {
            return Some(format!(
                "the wall clock is {:.1} s off the store's, more than clock_skew_max allows",
                self.wall
            ));
        }
        None
    }
}

/// The store's clock, read by way of this machine's.
pub struct OffsetClock {
    inner: Arc<dyn Clock>,
    known: Arc<Mutex<Known>>,
}

/// How a node's clock stands to the store's, where it is read that way.
#[derive(Clone)]
pub(crate) struct Skew {
    offset: Option<Arc<OffsetClock>>,
    max: Duration,
}

impl Skew {
    pub(crate) fn new(offset: Option<Arc<OffsetClock>>, max: Duration) -> Self {
        Self { offset, max }
    }

    pub(crate) fn standing(&self) -> Option<Standing> {
        self.offset.as_ref().map(|offset| offset.standing())
    }

    /// Whether this node knows the store's time well enough to write what time it is.
    pub(crate) fn is_known(&self) -> bool {
        let standing = self.standing();
        standing.is_none_or(|it| it.uncertainty <= limits::UNCERTAINTY_MAX.as_secs_f64())
    }

    /// Why this node may not fire by its clock.
    pub(crate) fn unfit(&self) -> Option<String> {
        self.standing()?.unfit(self.max)
    }

    /// A beat was sent and answered; how the clock stands since.
    pub(crate) fn observe(
        &self,
        sent: Duration,
        received: Duration,
        took: Duration,
        store_micros: i64,
    ) -> Option<Standing> {
        let offset = self.offset.as_ref()?;
        offset.observe(sent, received, took, store_micros);
        Some(offset.standing())
    }
}

/// What is known of the store's clock.
#[derive(Debug, Default)]
struct Known {
    samples: VecDeque<Sample>,
    /// The latest time read, in microseconds, since the store's clock was last stepped.
    latest: Option<i64>,
}

impl OffsetClock {
    pub fn new(inner: Arc<dyn Clock>) -> Self {
        Self {
            inner,
            known: Arc::default(),
        }
    }

    /// A beat was sent and answered, by uptime; in between the store took `took` for itself, and in the middle of that
    /// its clock read `store_micros`.
    pub fn observe(&self, sent: Duration, received: Duration, took: Duration, store_micros: i64) {
        let (sent, received) = (sent.as_secs_f64(), received.as_secs_f64());
        let sample = Sample {
            offset: store_micros as f64 * 1e-6 - (sent + received) / 2.0,
            half: (received - sent - took.as_secs_f64()).max(0.0) / 2.0,
            at: received,
        };
        let mut known = lock(&self.known);
        if let Some(best) = best(&known.samples, received) {
            let doubt = best.uncertainty(received) + sample.half + STEP;
            if (best.offset - sample.offset).abs() > doubt {
                *known = Known::default();
            }
        }
        let samples = &mut known.samples;
        samples.retain(|sample| received - sample.at <= VOUCHES);
        if samples.len() == SAMPLES
            && let Some(worst) = worst(samples, received)
        {
            samples.remove(worst);
        }
        samples.push_back(sample);
    }

    pub fn standing(&self) -> Standing {
        let now = self.inner.uptime().as_secs_f64();
        let wall = self.inner.now_micros() as f64 * 1e-6;
        match best(&lock(&self.known).samples, now) {
            Some(best) => Standing {
                wall: wall - (now + best.offset),
                uncertainty: best.uncertainty(now),
            },
            None => Standing {
                wall: 0.0,
                uncertainty: f64::INFINITY,
            },
        }
    }
}

/// What the store's clock reads at the least; the wall clock before anything is known of it.
fn read_clock(known: &Mutex<Known>, inner: &dyn Clock) -> i64 {
    let now = inner.uptime().as_secs_f64();
    let mut known = lock(known);
    match best(&known.samples, now) {
        Some(best) => {
            let least = ((now + best.offset - best.uncertainty(now)) * 1e6) as i64;
            let latest = known.latest.map_or(least, |latest| latest.max(least));
            known.latest = Some(latest);
            latest
        }
        None => inner.now_micros(),
    }
}

fn worst(samples: &VecDeque<Sample>, now: f64) -> Option<usize> {
    let by_doubt = |(_, one): &(usize, &Sample), (_, other): &(usize, &Sample)| {
        one.uncertainty(now).total_cmp(&other.uncertainty(now))
    };
    let worst = samples.iter().enumerate().max_by(by_doubt)?;
    Some(worst.0)
}

fn best(samples: &VecDeque<Sample>, now: f64) -> Option<Sample> {
    let by_doubt = |one: &&Sample, other: &&Sample| {
        let (one, other) = (one.uncertainty(now), other.uncertainty(now));
        one.total_cmp(&other)
    };
    samples.iter().min_by(by_doubt).copied()
}

#[async_trait]
impl Clock for OffsetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now_micros().div_euclid(1_000))
    }

    fn now_micros(&self) -> i64 {
        read_clock(&self.known, self.inner.as_ref())
    }

    fn uptime(&self) -> Duration {
        self.inner.uptime()
    }

    async fn sleep(&self, span: Duration) {
        self.inner.sleep(span).await;
    }

    fn alarm(&self) -> io::Result<Box<dyn Alarm>> {
        Ok(Box::new(OffsetAlarm {
            inner: self.inner.alarm()?,
            clock: Arc::clone(&self.inner),
            known: Arc::clone(&self.known),
        }))
    }
}

struct OffsetAlarm {
    inner: Box<dyn Alarm>,
    clock: Arc<dyn Clock>,
    known: Arc<Mutex<Known>>,
}

#[async_trait]
impl Alarm for OffsetAlarm {
    async fn wait_micros(&mut self, moment: i64) {
        let left = moment.saturating_sub(read_clock(&self.known, self.clock.as_ref()));
        if left > 0 {
            self.inner
                .wait_micros(self.clock.now_micros().saturating_add(left))
                .await;
        }
    }
}

#[cfg(test)]
#[path = "offset_tests.rs"]
mod tests;
