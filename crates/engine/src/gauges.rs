//! How a node stands: its lanes, its shards and their leases, and what its executors have done.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use model::{Lane, Outcome, Shard, Timestamp};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use store::{Epoch, Leases};

use crate::board::Board;
use crate::labels::{ByExecutor, ByLane, LaneLabel, OutcomeLabel};

#[derive(Debug, Clone, Default)]
pub(crate) struct Gauges {
    lane_depth: Family<ByLane, Gauge>,
    lane_oldest: Family<ByLane, Gauge<f64, AtomicU64>>,
    crowded: Gauge,
    shards: Gauge,
    epochs: Gauge,
    takeovers: Counter,
    executed: Family<ByExecutor, Counter>,
}

/// How often attempts ended in each way under one executor, by `Outcome::ALL`.
pub type Executed = [Counter; 5];

impl Gauges {
    pub(crate) fn register(&self, registry: &mut Registry) {
        // So that each lane is shown from the start.
        for lane in Lane::ALL {
            let _depth = self.depth_of(lane);
            let _oldest = self.oldest_of(lane);
        }
        let what = "Due runs that this node holds and that wait for their turn, by lane";
        registry.register("lane_depth", what, self.lane_depth.clone());
        let what = "How late the run is that has waited longest for its turn, by lane";
        let oldest = self.lane_oldest.clone();
        registry.register_with_unit("lane_oldest_age", what, Unit::Seconds, oldest);
        let gauges = [
            (
                "crowded_runs",
                "Due runs that wait until this node has room to claim them",
                &self.crowded,
            ),
            ("shards", "Shards that this node holds", &self.shards),
            (
                "lease_epochs",
                "Epochs of the shards that this node holds, added up: over all nodes it grows by one for each lease of a shard",
                &self.epochs,
            ),
        ];
        for (name, help, gauge) in gauges {
            registry.register(name, help, gauge.clone());
        }
        let what = "Shards leased by this node that another presence had held before";
        registry.register("shard_takeovers", what, self.takeovers.clone());
        let what =
            "Attempts that an executor of this node carried out, by kind of target and outcome";
        registry.register("executed", what, self.executed.clone());
    }

    fn depth_of(&self, lane: Lane) -> Gauge {
        let lane = LaneLabel(lane);
        self.lane_depth.get_or_create_owned(&ByLane { lane })
    }

    fn oldest_of(&self, lane: Lane) -> Gauge<f64, AtomicU64> {
        let lane = LaneLabel(lane);
        self.lane_oldest.get_or_create_owned(&ByLane { lane })
    }

    pub(crate) fn observe_board(&self, board: &Board, now: Timestamp) {
        for lane in Lane::ALL {
            let (depth, oldest) = board.waits_in(lane, now);
            self.depth_of(lane).set(depth as i64);
            self.oldest_of(lane).set(oldest.as_secs_f64());
        }
        self.crowded.set(board.crowded() as i64);
    }

    /// The leases from now on, in the place of those before.
    pub(crate) fn observe_leases(&self, before: &Leases, leases: &Leases) {
        let epochs: u64 = leases.epochs.values().map(|epoch| epoch.0).sum();
        self.epochs.set(i64::try_from(epochs).unwrap_or(i64::MAX));
        self.shards.set(leases.epochs.len() as i64);
        // The first presence that ever leases a shard has it from nobody.
        let is_taken_over = |(shard, epoch): &(&Shard, &Epoch)| {
            epoch.0 > 1 && before.epochs.get(shard) != Some(epoch)
        };
        let taken_over = leases.epochs.iter().filter(is_taken_over);
        self.takeovers.inc_by(taken_over.count() as u64);
    }

    /// Counters of each executor, so that the hot path does not look them up.
    pub(crate) fn executed_by(
        &self,
        kinds: impl Iterator<Item = &'static str>,
    ) -> BTreeMap<&'static str, Executed> {
        let of = |executor| {
            Outcome::ALL.map(|outcome| {
                self.executed.get_or_create_owned(&ByExecutor {
                    executor,
                    outcome: OutcomeLabel(outcome),
                })
            })
        };
        kinds.map(|kind| (kind, of(kind))).collect()
    }
}
