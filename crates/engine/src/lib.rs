//! What moves: one file per step of a run, each a duty that takes bounded steps.

mod backlog;
mod by_id;
pub mod clock;
mod duties;
pub mod duty;
mod handle;
pub mod metrics;
mod node;
pub mod offset;
mod stop;
mod timed;
mod trouble;

pub mod beats;
pub mod hints;
pub mod leases;
pub mod marks;

pub mod age;
mod buckets;
pub mod payloads;
mod plan;
pub mod wheel;

pub mod fire;
mod fired;
mod flaw;
mod lead;
mod postponed;
mod writes;

mod attempt;
mod beyond;
pub mod dispatch;
mod known;
pub mod lanes;
pub mod take;
mod width;
pub mod withdraw;

pub mod desk;
pub mod settle;

pub mod retention;
pub mod rules;
pub mod watchdog;

#[cfg(test)]
mod tests;

pub use clock::{Alarm, Clock, SystemClock};
pub use flaw::Flaw;
pub use handle::{Handle, Health, Nodes};
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
