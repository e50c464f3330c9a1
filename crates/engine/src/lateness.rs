//! Lateness: from a run's due time to its dispatch, as metrics have it.

use std::time::Duration;

use model::Timestamp;
use prometheus_client::metrics::histogram::Histogram;

use crate::board::Work;
use crate::metrics::Metrics;

/// By lane; apart for runs that were missed and caught up.
pub(crate) struct Lateness {
    on_time: [Histogram; 3],
    caught_up: [Histogram; 3],
}

impl Lateness {
    pub(crate) fn of(metrics: &Metrics) -> Self {
        Self {
            on_time: metrics.lateness_by_lane(),
            caught_up: metrics.caught_up_by_lane(),
        }
    }

    /// Answers how late it was.
    pub(crate) fn observe(&self, work: &Work, from: Timestamp, micros: i64) -> Duration {
        let late = micros.saturating_sub(from.as_millis().saturating_mul(1_000));
        let histograms = if work.caught_up {
            &self.caught_up
        } else {
            &self.on_time
        };
        if let Some(histogram) = histograms.get(work.run.lane.index()) {
            histogram.observe(late.max(0) as f64 / 1e6);
        }
        Duration::from_micros(late.max(0).unsigned_abs())
    }
}
