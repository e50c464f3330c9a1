//! What a node counts. A registry per node, so that several can live in one process.

use std::fmt;
use std::sync::atomic::AtomicU64;

use model::{Lane, Outcome};
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::offset::Standing;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LaneLabel(pub Lane);

impl EncodeLabelValue for LaneLabel {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        self.0.as_str().encode(encoder)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OutcomeLabel(pub Outcome);

impl EncodeLabelValue for OutcomeLabel {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        self.0.as_str().encode(encoder)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByLane {
    pub lane: LaneLabel,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByOutcome {
    pub outcome: OutcomeLabel,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByDuty {
    pub duty: &'static str,
}

type LaneHistogram = Family<ByLane, Histogram, fn() -> Histogram>;

/// From a tenth of a millisecond to about fourteen minutes.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.000_1, 2.0, 23))
}

/// From 1 to 1,024.
fn sizes() -> Histogram {
    Histogram::new(exponential_buckets(1.0, 2.0, 11))
}

/// What a node has done and how late it was.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// From a run's due time to its dispatch, by lane.
    pub lateness: LaneHistogram,
    pub fired: Counter,
    pub skipped: Counter,
    pub dispatched: Counter,
    pub settled: Family<ByOutcome, Counter>,
    /// The same by `Outcome::ALL`, so that the hot path does not look them up.
    settled_by: [Counter; 5],
    pub fire_batch: Histogram,
    pub settle_batch: Histogram,
    pub wheel: Gauge,
    pub held: Gauge,
    pub running: Gauge,
    /// Seconds since the oldest slot or run was due that nobody holds.
    pub oldest_due: Gauge<f64, AtomicU64>,
    pub live: Gauge,
    pub store_errors: Counter,
    duty_panics: Family<ByDuty, Counter>,
    pub lost: Counter,
    /// Settlements that the store refused for their data.
    pub refused: Counter,
    /// Firings and claims that another node, or an edit, was faster than.
    pub collided: Counter,
    pub clock_steps: Counter,
    /// What the wall clock is ahead of the store's, and how well that is known, in seconds.
    clock_offset: Gauge<f64, AtomicU64>,
    clock_uncertainty: Gauge<f64, AtomicU64>,
    /// Nodes that live.
    pub nodes: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let settled = Family::<ByOutcome, Counter>::default();
        let of = |outcome| {
            settled.get_or_create_owned(&ByOutcome {
                outcome: OutcomeLabel(outcome),
            })
        };
        Self {
            settled_by: Outcome::ALL.map(of),
            lateness: Family::new_with_constructor(seconds),
            fired: Counter::default(),
            skipped: Counter::default(),
            dispatched: Counter::default(),
            settled,
            fire_batch: sizes(),
            settle_batch: sizes(),
            wheel: Gauge::default(),
            held: Gauge::default(),
            running: Gauge::default(),
            oldest_due: Gauge::default(),
            live: Gauge::default(),
            store_errors: Counter::default(),
            duty_panics: Family::default(),
            lost: Counter::default(),
            refused: Counter::default(),
            collided: Counter::default(),
            clock_steps: Counter::default(),
            clock_offset: Gauge::default(),
            clock_uncertainty: Gauge::default(),
            nodes: Gauge::default(),
        }
    }
}

impl Metrics {
    /// Puts everything into a registry whose prefix is `punctual`.
    pub fn register(&self, registry: &mut Registry) {
        self.register_steps(registry);
        let lag = self.lateness.clone();
        let age = self.oldest_due.clone();
        registry.register_with_unit("fire_lag", "From due to dispatch", Unit::Seconds, lag);
        registry.register_with_unit(
            "oldest_due_age",
            "Age of the oldest slot or run that is due and held by nobody",
            Unit::Seconds,
            age,
        );
        let counts = [
            ("wheel_entries", "Slots and runs in the wheel", &self.wheel),
            (
                "held_runs",
                "Claimed runs that wait for their due time",
                &self.held,
            ),
            ("running_attempts", "Attempts under way", &self.running),
            ("live_runs", "Runs that have not ended", &self.live),
            ("nodes", "Nodes that live", &self.nodes),
        ];
        for (name, help, gauge) in counts {
            registry.register(name, help, gauge.clone());
        }
        let panics = self.duty_panics.clone();
        let what = "Duties that panicked and were started again";
        registry.register("duty_panics", what, panics);
        let ahead = "What the wall clock is ahead of the store's";
        let doubt = "How wrong the known offset to the store's clock may be";
        let clocks = [
            ("clock_offset", ahead, &self.clock_offset),
            ("clock_uncertainty", doubt, &self.clock_uncertainty),
        ];
        for (name, help, gauge) in clocks {
            registry.register_with_unit(name, help, Unit::Seconds, gauge.clone());
        }
    }

    pub fn observe_clock(&self, standing: &Standing) {
        self.clock_offset.set(standing.wall);
        self.clock_uncertainty.set(standing.uncertainty);
    }

    fn register_steps(&self, registry: &mut Registry) {
        let counters = [
            ("fired", "Slots that became runs", &self.fired),
            (
                "skipped",
                "Firings that ended as skipped entries",
                &self.skipped,
            ),
            (
                "dispatched",
                "Attempts handed to an executor",
                &self.dispatched,
            ),
            (
                "store_errors",
                "Calls that the store refused",
                &self.store_errors,
            ),
            (
                "lost_attempts",
                "Attempts whose holder was gone",
                &self.lost,
            ),
            (
                "refused_settlements",
                "Ends of attempts that the store refused for their data",
                &self.refused,
            ),
            (
                "collisions",
                "Firings and claims that another was faster than",
                &self.collided,
            ),
            (
                "clock_steps",
                "Steps of the wall clock noticed",
                &self.clock_steps,
            ),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        registry.register(
            "settled",
            "Attempts settled, by outcome",
            self.settled.clone(),
        );
        registry.register(
            "fire_batch",
            "Firings in one write",
            self.fire_batch.clone(),
        );
        registry.register(
            "settle_batch",
            "Attempts in one write",
            self.settle_batch.clone(),
        );
    }

    pub fn duty_panicked(&self, duty: &'static str) {
        self.duty_panics.get_or_create_owned(&ByDuty { duty }).inc();
    }

    /// How often a duty has panicked.
    pub fn duty_panics(&self, duty: &'static str) -> u64 {
        let panics = self.duty_panics.get_or_create_owned(&ByDuty { duty });
        panics.get()
    }

    pub fn settled_with(&self, outcome: Outcome) {
        if let Some(counter) = self.settled_by.get(outcome as usize) {
            counter.inc();
        }
    }

    /// One histogram per lane, held so that the hot path does not look it up.
    pub fn lateness_by_lane(&self) -> [Histogram; 3] {
        Lane::ALL.map(|lane| {
            self.lateness
                .get_or_create(&ByLane {
                    lane: LaneLabel(lane),
                })
                .clone()
        })
    }
}
