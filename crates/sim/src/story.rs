//! What happened, as the outside saw it: every delivery, every change that was accepted.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use model::{AttemptNo, JobId, RunId, Slot, Timestamp};

/// One delivery to a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub run: RunId,
    pub job: JobId,
    pub attempt: AttemptNo,
    /// None for a manual run.
    pub slot: Option<Slot>,
    pub payload: Option<Bytes>,
    /// Whom it called.
    pub origin: String,
    /// What its job promised as it was dispatched.
    pub promised: model::Delivery,
    /// By the wall clock.
    pub at: Timestamp,
    /// By uptime: from its start to its end; an attempt cut off by a crash ends there.
    pub from: Duration,
    pub to: Option<Duration>,
    /// Whether the target did the work.
    pub done: bool,
    /// Which start of the node delivered it.
    pub node: u32,
}

#[derive(Debug, Clone, Default)]
pub struct Story {
    inner: Arc<Mutex<Vec<Delivery>>>,
}

impl Story {
    pub fn begin(&self, delivery: Delivery) -> usize {
        let mut deliveries = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        deliveries.push(delivery);
        deliveries.len() - 1
    }

    pub fn end(&self, index: usize, to: Duration, done: bool) {
        let mut deliveries = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(delivery) = deliveries.get_mut(index) {
            delivery.to = Some(to);
            delivery.done |= done;
        }
    }

    /// The work is done, although the delivery may be over, or not yet.
    pub fn done(&self, index: usize) {
        let mut deliveries = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(delivery) = deliveries.get_mut(index) {
            delivery.done = true;
        }
    }

    pub fn deliveries(&self) -> Vec<Delivery> {
        self.inner
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
