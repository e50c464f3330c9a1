//! What moves: one file per step of a run, each a duty that takes bounded steps.

// A node, and what its duties are given.
mod clock;
mod duty;
mod handle;
mod metrics;
mod node;
mod nudge;
mod offset;
mod rooms;
mod stop;
mod timed;
mod trouble;

// The rooms: what several duties know.
mod age;
mod board;
mod by_id;
mod desk;
mod executors;
mod fleet;
mod offers;
mod presence;
mod shards;
mod status;

// The duties, in the order of a run's life.
mod attempt;
mod backlog;
mod beats;
mod dispatch;
mod fire;
mod fired;
mod flaw;
mod hints;
mod lead;
mod leases;
mod marks;
mod payloads;
mod plan;
mod retention;
mod rules;
mod settle;
mod take;
mod watchdog;
mod writes;

#[cfg(test)]
mod tests;

pub use clock::{Alarm, Clock, SystemClock};
pub use flaw::Flaw;
pub use fleet::Nodes;
pub use handle::{Handle, Health};
pub use metrics::Metrics;
pub use node::{ClockOf, Node, NodeConfig};
pub use offset::OffsetClock;

/// Locks, whatever a thread that panicked left behind: our locks guard plain data that is whole
/// between any two statements.
pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
