//! Rollups: what happened to a tenant's slots and runs in a minute, and in a quarter of an hour, as counts that add up.
//!
//! Lateness and durations are counted in buckets whose bounds are fixed, so that what several nodes counted in several
//! steps can be added, and percentiles be read from the sum.

use std::time::Duration;

use crate::id::{PresenceId, TenantId};
use crate::run::{Reason, RunState};
use crate::time::Timestamp;

/// How long the stretch of time is that a rollup counts. UTC: a step begins where its number of whole steps since the epoch
/// begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    Minute,
    Quarter,
}

impl Step {
    pub const ALL: [Self; 2] = [Self::Minute, Self::Quarter];

    pub const fn span(self) -> Duration {
        match self {
            Self::Minute => Duration::from_secs(60),
            Self::Quarter => Duration::from_secs(15 * 60),
        }
    }

    /// How long rollups of this step are kept after they began.
    pub const fn keep(self) -> Duration {
        match self {
            Self::Minute => Duration::from_secs(48 * 3_600),
            Self::Quarter => Duration::from_secs(8 * 24 * 3_600),
        }
    }

    /// The beginning of the step that a moment lies in.
    pub fn begin(self, at: Timestamp) -> Timestamp {
        floor(at, self.span())
    }
}

/// The last whole multiple of a span, since the epoch, that is not after a moment.
pub fn floor(at: Timestamp, span: Duration) -> Timestamp {
    let span = i64::try_from(span.as_millis()).unwrap_or(i64::MAX).max(1);
    Timestamp::from_millis(at.as_millis() - at.as_millis() % span)
}

/// One thing that happened, or several of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Slots that became runs.
    Fired(u64),
    /// Slots that will not run.
    Skipped(Reason, u64),
    /// Runs that ended. A skipped entry is no run.
    Ended(RunState, u64),
    /// An attempt ended, and its run is tried again.
    Retried,
    /// A run started after its job's `start_within`.
    Late,
    /// From when an attempt was due to its dispatch; not of slots that were missed and caught up.
    Lateness(Duration),
    /// From an attempt's dispatch to its end.
    Took(Duration),
}

/// What happened in one step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rollup {
    pub fired: u64,
    pub succeeded: u64,
    pub dead: u64,
    pub cancelled: u64,
    pub retried: u64,
    pub late: u64,
    /// By `Reason::ALL`.
    skipped: [u64; Reason::ALL.len()],
    pub lateness: Histogram,
    pub duration: Histogram,
}

impl Rollup {
    pub fn count(&mut self, count: Count) {
        match count {
            Count::Fired(slots) => self.fired = self.fired.saturating_add(slots),
            Count::Skipped(reason, slots) => self.skip(reason, slots),
            Count::Ended(state, runs) => self.end(state, runs),
            Count::Retried => self.retried = self.retried.saturating_add(1),
            Count::Late => self.late = self.late.saturating_add(1),
            Count::Lateness(span) => self.lateness.observe(span),
            Count::Took(span) => self.duration.observe(span),
        }
    }

    fn skip(&mut self, reason: Reason, slots: u64) {
        if let Some(count) = self.skipped.get_mut(reason as usize) {
            *count = count.saturating_add(slots);
        }
    }

    fn end(&mut self, state: RunState, runs: u64) {
        let count = match state {
            RunState::Succeeded => &mut self.succeeded,
            RunState::Dead => &mut self.dead,
            RunState::Cancelled => &mut self.cancelled,
            RunState::Ready | RunState::Running | RunState::Retrying | RunState::Skipped => return,
        };
        *count = count.saturating_add(runs);
    }

    pub fn skipped_for(&self, reason: Reason) -> u64 {
        self.skipped
            .get(reason as usize)
            .copied()
            .unwrap_or_default()
    }

    /// Reasons for which slots were skipped, with how many.
    pub fn skipped(&self) -> impl Iterator<Item = (Reason, u64)> {
        let all = Reason::ALL.into_iter().zip(self.skipped);
        all.filter(|(_, count)| *count > 0)
    }

    pub fn skipped_total(&self) -> u64 {
        self.skipped.iter().copied().fold(0, u64::saturating_add)
    }

    /// Of the runs that came to an end by themselves, the share that succeeded; none if there were none. Cancelled ones say
    /// nothing about it.
    pub fn success_ratio(&self) -> Option<f64> {
        let ended = self.succeeded.saturating_add(self.dead);
        (ended > 0).then(|| self.succeeded as f64 / ended as f64)
    }

    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.fired, other.fired),
            (&mut self.succeeded, other.succeeded),
            (&mut self.dead, other.dead),
            (&mut self.cancelled, other.cancelled),
            (&mut self.retried, other.retried),
            (&mut self.late, other.late),
        ] {
            *mine = mine.saturating_add(theirs);
        }
        for (mine, theirs) in self.skipped.iter_mut().zip(other.skipped) {
            *mine = mine.saturating_add(theirs);
        }
        self.lateness.add(&other.lateness);
        self.duration.add(&other.duration);
    }
}

/// What one node counted of one tenant in one step. Written again, it replaces what was written before: so a write that is
/// repeated counts nothing twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollupRow {
    pub tenant: TenantId,
    pub step: Step,
    /// When the step began.
    pub at: Timestamp,
    /// The first presence of the process that counted.
    pub by: PresenceId,
    pub rollup: Rollup,
}

impl RollupRow {
    /// Until when it is kept.
    pub fn expires_at(&self) -> Timestamp {
        self.at.plus(self.step.keep())
    }
}

/// Bounds of the buckets, in microseconds: from a quarter of a millisecond in steps of the root of two, to 18 hours. What is
/// longer is in one more.
const BOUNDS: [u64; 57] = bounds();

const fn bounds() -> [u64; 57] {
    let mut bounds = [0; 57];
    let mut at = 0;
    while at < bounds.len() {
        let base = if at % 2 == 0 { 250_000 } else { 353_553 };
        bounds[at] = (base << (at / 2)) / 1_000;
        at += 1;
    }
    bounds
}

/// How many spans were how long, about: a bucket's bounds lie apart by a factor of 1.41.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram([u64; BOUNDS.len() + 1]);

impl Default for Histogram {
    fn default() -> Self {
        Self([0; BOUNDS.len() + 1])
    }
}

impl Histogram {
    pub fn observe(&mut self, span: Duration) {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        self.put(BOUNDS.partition_point(|bound| *bound < micros), 1);
    }

    /// Adds to a bucket by its number. One that there is not is left out.
    pub fn put(&mut self, bucket: usize, count: u64) {
        if let Some(bucket) = self.0.get_mut(bucket) {
            *bucket = bucket.saturating_add(count);
        }
    }

    /// Buckets that are not empty, with their numbers.
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u64)> {
        let all = self.0.iter().copied().enumerate();
        all.filter(|(_, count)| *count > 0)
    }

    pub fn count(&self) -> u64 {
        self.0.iter().copied().fold(0, u64::saturating_add)
    }

    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.saturating_add(theirs);
        }
    }

    /// The span that this share of all are not longer than, as well as the buckets know: within one they are taken to lie
    /// evenly. None if there are none.
    pub fn percentile(&self, share: f64) -> Option<Duration> {
        let all = self.count();
        if all == 0 {
            return None;
        }
        let wanted = (share.clamp(0.0, 1.0) * all as f64).max(1.0);
        let mut before = 0.0;
        for (bucket, count) in self.buckets() {
            let count = count as f64;
            if before + count >= wanted {
                let low = bucket.checked_sub(1).and_then(|it| BOUNDS.get(it));
                let low = low.copied().unwrap_or_default();
                let high = BOUNDS.get(bucket).copied().unwrap_or(low);
                let part = (wanted - before) / count * (high - low) as f64;
                return Some(Duration::from_micros(low + part as u64));
            }
            before += count;
        }
        BOUNDS.last().copied().map(Duration::from_micros)
    }
}

#[cfg(test)]
#[path = "rollup_tests.rs"]
mod tests;
