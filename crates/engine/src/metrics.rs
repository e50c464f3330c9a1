//! What a node counts. A registry per node, so that several can live in one process.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use model::rollup::Count;
use model::{JobState, Lane, Outcome, Reason, RunState, Skip, TenantId, Timestamp, WaitReason};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::gauges::{Executed, Gauges};
use crate::labels::{
    ByDuty, ByLane, ByOperation, ByOutcome, ByPlace, ByReason, ByState, LaneLabel, OutcomeLabel,
};
use crate::offset::Standing;
use crate::rollups::Rollups;

type LaneHistogram = Family<ByLane, Histogram, fn() -> Histogram>;
type OutcomeHistogram = Family<ByOutcome, Histogram, fn() -> Histogram>;
type OperationHistogram = Family<ByOperation, Histogram, fn() -> Histogram>;

/// From a tenth of a millisecond to about fourteen minutes.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.000_1, 2.0, 23))
}

/// From a millisecond to about four hours.
fn spans() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 24))
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
    /// The same of runs that were missed and caught up: they say how long an outage was, not how punctual a node is.
    pub caught_up: LaneHistogram,
    pub fired: Counter,
    pub skipped: Counter,
    skipped_slots: Family<ByReason, Counter>,
    ended: Family<ByState, Counter>,
    /// The same by `RunState::ALL`, for the hot path.
    ended_by: [Option<Counter>; 7],
    /// Runs beyond their job's `start_within` and `finish_within`.
    pub late: Counter,
    pub long: Counter,
    /// Jobs paused after their `pause_after_failures`.
    pub paused: Counter,
    attempt_duration: OutcomeHistogram,
    /// The same by `Outcome::ALL`, for the hot path.
    durations_by: [Histogram; 5],
    store_latency: OperationHistogram,
    pub pool_waits: Counter,
    panics: Family<ByPlace, Counter>,
    /// Presences that this node fenced.
    pub fenced: Counter,
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
    jobs: Family<ByState, Gauge>,
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
    pub breakers_open: Gauge,
    pub breakers_opened: Counter,
    /// Attempts that did not start because a breaker is open.
    pub calls_refused: Counter,
    waiting: Family<ByReason, Gauge>,
    pub(crate) gauges: Gauges,
    /// What is counted of each tenant, for overviews.
    pub rollups: Rollups,
}

impl Default for Metrics {
    fn default() -> Self {
        let settled = Family::<ByOutcome, Counter>::default();
        let of = |outcome| {
            let outcome = OutcomeLabel(outcome);
            settled.get_or_create_owned(&ByOutcome { outcome })
        };
        let ended = Family::<ByState, Counter>::default();
        let ended_in = |state: RunState| {
            let word = state.as_str();
            let label = ByState { state: word };
            (!state.is_live()).then(|| ended.get_or_create_owned(&label))
        };
        let attempt_duration: OutcomeHistogram = Family::new_with_constructor(spans);
        let took = |outcome| {
            let outcome = OutcomeLabel(outcome);
            attempt_duration.get_or_create_owned(&ByOutcome { outcome })
        };
        Self {
            ended_by: RunState::ALL.map(ended_in),
            durations_by: Outcome::ALL.map(took),
            settled_by: Outcome::ALL.map(of),
            lateness: Family::new_with_constructor(seconds),
            caught_up: Family::new_with_constructor(seconds),
            skipped_slots: Family::default(),
            ended,
            late: Counter::default(),
            long: Counter::default(),
            paused: Counter::default(),
            attempt_duration,
            store_latency: Family::new_with_constructor(seconds),
            pool_waits: Counter::default(),
            panics: Family::default(),
            fenced: Counter::default(),
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
            jobs: Family::default(),
            store_errors: Counter::default(),
            duty_panics: Family::default(),
            lost: Counter::default(),
            refused: Counter::default(),
            collided: Counter::default(),
            clock_steps: Counter::default(),
            clock_offset: Gauge::default(),
            clock_uncertainty: Gauge::default(),
            nodes: Gauge::default(),
            breakers_open: Gauge::default(),
            breakers_opened: Counter::default(),
            calls_refused: Counter::default(),
            waiting: Family::default(),
            gauges: Gauges::default(),
            rollups: Rollups::default(),
        }
    }
}

impl Metrics {
    /// Puts everything into a registry whose prefix is `punctual`.
    pub fn register(&self, registry: &mut Registry) {
        self.register_steps(registry);
        self.register_trouble(registry);
        self.gauges.register(registry);
        let lateness = self.lateness.clone();
        let age = self.oldest_due.clone();
        registry.register_with_unit("lateness", "From due to dispatch", Unit::Seconds, lateness);
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
            (
                "live_runs",
                "Runs that this node holds and that have not ended",
                &self.live,
            ),
            ("nodes", "Nodes that live", &self.nodes),
            (
                "breakers_open",
                "Origins that this node makes no calls to until a probe succeeds",
                &self.breakers_open,
            ),
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

    fn register_trouble(&self, registry: &mut Registry) {
        let counters = [
            (
                "late_runs",
                "Runs that started after their job's start_within",
                &self.late,
            ),
            (
                "long_runs",
                "Runs that took longer than their job's finish_within",
                &self.long,
            ),
            (
                "failed_jobs_paused",
                "Jobs that were paused after their pause_after_failures",
                &self.paused,
            ),
            (
                "fenced_nodes",
                "Presences of other nodes that this node fenced",
                &self.fenced,
            ),
            (
                "pool_waits",
                "Calls that had to wait for a connection to the store",
                &self.pool_waits,
            ),
            (
                "breakers_opened",
                "How often the breaker of an origin was opened",
                &self.breakers_opened,
            ),
            (
                "calls_refused",
                "Attempts that did not start because a breaker was open",
                &self.calls_refused,
            ),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        let what = "Slots that were skipped, by reason";
        registry.register("skipped_slots", what, self.skipped_slots.clone());
        let what = "Runs of all nodes that wait for something outside of their jobs, by reason";
        registry.register("waiting_runs", what, self.waiting.clone());
        let what = "Jobs of all nodes by state, counted by one of them every 10 s";
        registry.register("jobs", what, self.jobs.clone());
        let what = "Runs that ended, by state";
        registry.register("runs_ended", what, self.ended.clone());
        let what = "Panics that were caught, by where";
        registry.register("panics", what, self.panics.clone());
        let what = "From due to dispatch, of slots that were missed and caught up";
        let lateness = self.caught_up.clone();
        registry.register_with_unit("caught_up_lateness", what, Unit::Seconds, lateness);
        let what = "From an attempt's dispatch to its end, by outcome";
        let took = self.attempt_duration.clone();
        registry.register_with_unit("attempt_duration", what, Unit::Seconds, took);
        let what = "What calls of the store took, by operation";
        let took = self.store_latency.clone();
        registry.register_with_unit("store_latency", what, Unit::Seconds, took);
    }

    /// How many runs wait for something; one node counts for all.
    pub fn waiting_counted(&self, reason: WaitReason, count: u64) {
        let label = ByReason {
            reason: reason.as_str(),
        };
        let gauge = self.waiting.get_or_create_owned(&label);
        gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    pub(crate) fn count_no_waiting(&self) {
        self.waiting.clear();
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
        self.panicked("duty");
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
        if outcome == Outcome::Lost {
            self.lost.inc();
        }
    }

    /// An attempt was dispatched, and took so long.
    pub fn attempt_took(&self, outcome: Outcome, took: Duration) {
        if let Some(histogram) = self.durations_by.get(outcome as usize) {
            histogram.observe(took.as_secs_f64());
        }
    }

    /// What the executors of these kinds of targets count.
    pub fn executed_by(
        &self,
        kinds: impl Iterator<Item = &'static str>,
    ) -> BTreeMap<&'static str, Executed> {
        self.gauges.executed_by(kinds)
    }

    pub fn run_ended(&self, state: RunState) {
        if let Some(Some(counter)) = self.ended_by.get(state as usize) {
            counter.inc();
        }
    }

    pub fn jobs_counted(&self, state: JobState, count: u64) {
        let state = state.as_str();
        let gauge = self.jobs.get_or_create(&ByState { state });
        gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Another node counts them.
    pub fn count_no_jobs(&self) {
        self.jobs.clear();
    }

    pub fn slots_skipped(&self, reason: Reason, count: u64) {
        let label = ByReason {
            reason: reason.as_str(),
        };
        self.skipped_slots.get_or_create(&label).inc_by(count);
    }

    /// A job was changed: slots that the change has explained, and runs that nobody held and that ended with it.
    pub fn job_changed(&self, now: Timestamp, tenant: TenantId, skips: &[Skip], cancelled: u64) {
        for skip in skips {
            self.slots_skipped(skip.reason, skip.slots.count);
        }
        let skips = skips.iter();
        let skips = skips.map(|skip| Count::Skipped(skip.reason, skip.slots.count));
        let ended = (cancelled > 0).then_some(Count::Ended(RunState::Cancelled, cancelled));
        let counts = skips.chain(ended).map(|count| (tenant, count));
        self.rollups.count(now, &counts.collect::<Vec<_>>());
        if let Some(Some(counter)) = self.ended_by.get(RunState::Cancelled as usize) {
            counter.inc_by(cancelled);
        }
    }

    pub fn panicked(&self, place: &'static str) {
        self.panics.get_or_create(&ByPlace { place }).inc();
    }

    pub fn store_answered(&self, operation: &'static str, took: Duration) {
        let histogram = self.store_latency.get_or_create(&ByOperation { operation });
        histogram.observe(took.as_secs_f64());
    }

    /// One histogram per lane, held so that the hot path does not look it up.
    pub fn lateness_by_lane(&self) -> [Histogram; 3] {
        Lane::ALL.map(|lane| by_lane(&self.lateness, lane))
    }

    pub fn caught_up_by_lane(&self) -> [Histogram; 3] {
        Lane::ALL.map(|lane| by_lane(&self.caught_up, lane))
    }
}

fn by_lane(family: &LaneHistogram, lane: Lane) -> Histogram {
    let lane = LaneLabel(lane);
    family.get_or_create_owned(&ByLane { lane })
}
