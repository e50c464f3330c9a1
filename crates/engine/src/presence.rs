//! The presence of this node, as the node itself counts it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use model::{PresenceId, limits};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::flaw::Flaw;

/// It counts from when the last successful beat was *sent*, less a margin, on a clock that nobody can step.
pub(crate) struct Presence {
    pub id: PresenceId,
    clock: Arc<dyn Clock>,
    until: AtomicU64,
    flaw: Flaw,
    /// Set when the node begins to stop: shards do not fall to it any more.
    stopping: CancellationToken,
    /// Set while what is due soon is fired before the shards are given up.
    handing_over: AtomicBool,
    /// Ends every attempt where it stands: the presence is gone.
    pub kill: CancellationToken,
}

impl Presence {
    /// One that was joined by a call that was sent at this uptime.
    pub(crate) fn new(
        id: PresenceId,
        sent: Duration,
        clock: Arc<dyn Clock>,
        (stopping, kill): (CancellationToken, CancellationToken),
        flaw: Flaw,
    ) -> Self {
        let presence = Self {
            id,
            clock,
            until: AtomicU64::new(0),
            flaw,
            stopping,
            handing_over: AtomicBool::new(false),
            kill,
        };
        presence.beaten(sent);
        presence
    }

    /// A beat that was sent at this uptime was answered.
    pub(crate) fn beaten(&self, sent: Duration) {
        let until = sent + limits::PRESENCE_TTL - limits::PRESENCE_MARGIN;
        self.until
            .store(until.as_millis() as u64, Ordering::Release);
    }

    /// Whether this node may still act, by its own count.
    pub(crate) fn is_sure(&self) -> bool {
        self.is_sure_at(self.clock.uptime())
    }

    pub(crate) fn is_sure_at(&self, uptime: Duration) -> bool {
        (uptime.as_millis() as u64) < self.until.load(Ordering::Acquire)
            || self.flaw.skips_presence_check()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    pub(crate) fn is_handing_over(&self) -> bool {
        self.handing_over.load(Ordering::Acquire)
    }

    pub(crate) fn hand_over(&self) {
        self.handing_over.store(true, Ordering::Release);
    }
}
