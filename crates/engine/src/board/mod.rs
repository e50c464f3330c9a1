//! The board: what memory knows about slots and runs, behind one lock. It is a cache: the store has all of it, and any of
//! it may be dropped at any time.
//!
//! ```text
//!   plan ──▶ wheel ──▶ fire ──▶ being written ──▶ claims: held ─▶ queued ─▶ running ─▶ ending ──▶ settled
//!                       │                            ▲
//!                       ├─ postponed: a run is in the way of a slot
//!                       └─ crowd: runs that nobody holds wait for room
//! ```
//!
//! Every method is one transition, and takes a whole batch: no step sees half of another's, and nobody holds the lock
//! while something else is waited for. What always holds: a slot or a run is known once at most; every claim of this
//! presence is known until its end is written; and nobody finds a run neither known nor ended.
//!
//! In the order of a run's life: `plan`, `fire`, `answers` (what became of writes), `turns` (what starts), `ends`,
//! `withdraw`. What they work on: `wheel` with its `buckets`, `postponed`, `crowd`, `claims` with its `lanes` and `width`.

mod answers;
mod buckets;
mod claims;
mod crowd;
mod ends;
mod fire;
mod lanes;
mod plan;
mod postponed;
mod turns;
mod wheel;
mod width;
mod withdraw;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use model::shard::ShardSet;
use model::{AttemptNo, Lane, RunId, Timestamp, limits};
use prometheus_client::metrics::gauge::Gauge;

use crate::age::Age;
use crate::lock;
use crate::metrics::Metrics;
use crate::nudge::Request;
use crate::origins::Origins;

pub(crate) use answers::{Decided, Then};
pub(crate) use claims::Work;
pub(crate) use ends::EndedClaim;
pub(crate) use fire::{Due, Scope};
pub(crate) use lanes::Queues;
pub(crate) use turns::{Call, Start};

use claims::Claims;
use crowd::Crowd;
use postponed::Postponed;
use wheel::Wheel;

/// Entries worked on in one hold of the lock, where each stands for itself: attempts start in between.
const CHUNK: usize = 250;

#[derive(Debug, Default)]
struct State {
    wheel: Wheel,
    /// Slots whose job has a run in their way.
    postponed: Postponed,
    /// Runs that wait until they can be claimed.
    crowd: Crowd,
    claims: Claims,
    /// A claim was answered that was handed back meanwhile; it may be another one.
    is_in_doubt: bool,
}

impl State {
    /// Whether fire waits for runs to end.
    fn fire_waits(&self) -> bool {
        !self.postponed.is_empty() || !self.crowd.is_empty()
    }
}

pub(crate) struct Board {
    state: Mutex<State>,
    /// Whom attempts go to.
    origins: Arc<Origins>,
    /// Attempts that may be under way at once.
    running_max: usize,
    /// Claims are to be compared: some may have been made that nobody here knows of.
    compare: Request,
    held: Gauge,
    running: Gauge,
}

impl Board {
    pub(crate) fn new(
        running_max: usize,
        origins: Arc<Origins>,
        compare: Request,
        metrics: &Metrics,
    ) -> Self {
        Self {
            state: Mutex::default(),
            origins,
            running_max,
            compare,
            held: metrics.held.clone(),
            running: metrics.running.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// How many slots and runs wait in the wheel.
    pub(crate) fn in_wheel(&self) -> usize {
        self.state().wheel.len()
    }

    /// When the next of them is due.
    #[cfg(test)]
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        let state = self.state();
        let ages = Age::ALL.into_iter();
        ages.filter_map(|age| state.wheel.next_due(age)).min()
    }

    /// How many more attempts of an age could start.
    pub(crate) fn free(&self, age: Age) -> usize {
        // What waits for an origin takes no place from what goes elsewhere.
        let waits = self.origins.queued();
        let state = self.state();
        let claims = state.claims.len().saturating_sub(waits);
        let free = self.running_max.saturating_sub(claims);
        match age {
            Age::OnTime => free,
            Age::Backlog => free.min(state.claims.free_for_backlog(self.running_max)),
        }
    }

    /// Claims that wait for their origins.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        self.origins.queued()
    }

    /// How many more claims fit.
    pub(crate) fn room(&self) -> usize {
        limits::HELD_MAX.saturating_sub(self.state().claims.len())
    }

    /// Whether as many are under way, or due, as can be under way at once. What is on time does not wait for the
    /// backlog.
    pub(crate) fn is_crowded(&self, age: Age) -> bool {
        self.state().claims.due_or_under_way(age) >= self.running_max
    }

    /// Whether runs of an age wait for room already: then more of them are left in the store.
    pub(crate) fn has_crowd(&self, age: Age) -> bool {
        self.state().crowd.len(age) > 0
    }

    /// How late the run is that has waited longest for its turn.
    pub(crate) fn lateness(&self, now: Timestamp) -> Duration {
        self.state().claims.lateness(now)
    }

    /// How many due runs wait for their turn in a lane, and how late the one is that has waited longest.
    pub(crate) fn waits_in(&self, lane: Lane, now: Timestamp) -> (usize, Duration) {
        self.state().claims.waits_in(lane, now)
    }

    /// Runs that wait for room.
    pub(crate) fn crowded(&self) -> usize {
        let state = self.state();
        let ages = Age::ALL.into_iter();
        ages.map(|age| state.crowd.len(age)).sum()
    }

    /// Attempts under way.
    pub(crate) fn running(&self) -> usize {
        self.state().claims.running()
    }

    /// How many claims have not been ended in the store.
    pub(crate) fn unwritten(&self) -> usize {
        self.state().claims.len()
    }

    /// Whether anything waits for its time or its turn.
    pub(crate) fn is_waiting(&self) -> bool {
        self.state().claims.is_waiting() || self.origins.queued() > 0
    }

    /// Whether runs that others leave are being taken.
    pub(crate) fn is_claiming_due(&self) -> bool {
        self.state().wheel.is_claiming_due()
    }

    /// No attempt starts any more.
    pub(crate) fn close(&self) {
        self.state().claims.closed = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state().claims.closed
    }

    /// Of claims that the store has under our name, those that neither wait, nor run, nor have a claim in flight.
    pub(crate) fn unknown(&self, claims: impl Iterator<Item = (RunId, AttemptNo)>) -> Vec<RunId> {
        let state = self.state();
        let known = |(run, attempt): &(RunId, AttemptNo)| {
            state.claims.knows(*run, *attempt) || state.wheel.knows_run(*run)
        };
        let strangers = claims.filter(|claim| !known(claim));
        strangers.map(|(run, _)| run).collect()
    }

    /// Drops what belongs to shards that are ours no more.
    pub(crate) fn keep_shards(&self, shards: &ShardSet) {
        self.state().wheel.keep_shards(shards);
    }

    /// Fire starts again: what it had taken out and what it waits for is forgotten, so that plan finds it again.
    pub(crate) fn forget_taken(&self) {
        let mut state = self.state();
        state.wheel.forget_taken();
        state.postponed = Postponed::default();
        state.crowd = Crowd::default();
    }
}

#[cfg(test)]
#[path = "board_tests.rs"]
mod tests;
