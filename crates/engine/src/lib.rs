//! What moves: one file per step of a run, each a duty that takes bounded steps.

#![deny(unreachable_pub)]

// A node, and what its duties are given.
pub mod alert_message;
pub mod chain;
mod clock;
mod common;
mod drops;
mod duties;
mod duty;
mod gauges;
mod handle;
mod labels;
mod metrics;
mod node;
mod nudge;
mod offset;
mod origins;
mod rooms;
mod stop;
mod timed;
mod tokens;
mod trouble;
pub mod vault;

// The rooms: what several duties know.
mod age;
mod board;
mod by_id;
mod callback;
mod desk;
mod executors;
mod fleet;
mod gather;
mod offers;
mod outside;
mod presence;
mod replays;
mod rollups;
mod run_counts;
mod run_logs;
mod shards;
mod status;

// The duties, in the order of a run's life.
mod alerts;
mod attempt;
mod backlog;
mod beats;
mod claim_due;
mod count_runs;
mod dispatch;
mod fire;
mod fired;
#[cfg_attr(not(any(test, feature = "flaws")), path = "no_flaw.rs")]
mod flaw;
mod flush;
mod hand_over;
mod handed;
mod hints;
mod lateness;
mod lead;
mod leases;
mod length;
mod live_log;
mod marks;
mod payloads;
mod plan;
mod retention;
mod rules;
mod seal;
mod secrets;
mod settle;
mod wake;
mod watchdog;
mod writes;

#[cfg(test)]
mod tests;

pub use clock::{Alarm, Clock, SystemClock};
pub use flaw::Flaw;
pub use fleet::Nodes;
pub use gauges::Executed;
pub use handle::{Handle, Health};
pub use metrics::Metrics;
pub use node::{ClockOf, Node, NodeConfig};
pub use offset::OffsetClock;
pub use origins::TargetStatus;
pub use outside::{Heard, Outside, OutsideError, Taken};
pub use rollups::Rollups;

/// Locks, whatever a thread that panicked left behind: our locks guard plain data that is whole
/// between any two statements.
pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
