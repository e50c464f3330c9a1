//! Nudges: "look now instead of later". They carry no data and may be dropped: everything is correct without them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Wakes one duty. A clone wakes the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Nudge {
    notify: Arc<Notify>,
}

impl Nudge {
    pub(crate) fn now(&self) {
        self.notify.notify_one();
    }

    pub(crate) async fn heard(&self) {
        self.notify.notified().await;
    }
}

/// Something that a duty is to do at its next step, which it is nudged to. It stays until it is taken.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    made: Arc<AtomicBool>,
    nudge: Nudge,
}

impl Request {
    /// A request to whoever listens for this nudge.
    pub(crate) fn to(nudge: &Nudge) -> Self {
        Self {
            made: Arc::default(),
            nudge: nudge.clone(),
        }
    }

    pub(crate) fn make(&self) {
        self.made.store(true, Ordering::Release);
        self.nudge.now();
    }

    /// Whether it was made since the last call.
    pub(crate) fn take(&self) -> bool {
        self.made.swap(false, Ordering::AcqRel)
    }
}

/// The nudges of a node's duties.
#[derive(Debug, Clone, Default)]
pub(crate) struct Nudges {
    pub plan: Nudge,
    pub fire: Nudge,
    pub settle: Nudge,
    pub dispatch: Nudge,
    pub watchdog: Nudge,
    pub hand_over: Nudge,
    pub handed: Nudge,
    pub retention: Nudge,
    pub flush: Nudge,
    pub rules: Nudge,
    pub replays: Nudge,
    pub alerts: Nudge,
    pub seal: Nudge,
    pub secrets: Nudge,
    pub count_runs: Nudge,
    /// Keys were created or revoked elsewhere; the server listens for this one.
    pub keys: Nudge,
    pub hold: Nudge,
    pub marks: Nudge,
    pub hints: Nudge,
    pub claim_due: Nudge,
    pub payloads: Nudge,
    pub wake: Nudge,
    /// Fire has nothing left to write before a stop.
    pub fired_out: Nudge,
    /// Somebody marked a claim, or says that shards are free.
    pub beat: Nudge,
    /// A beat was answered.
    pub beaten: Nudge,
}
