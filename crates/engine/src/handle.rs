//! What the rest of the process may ask of a node. Nudges only shorten waits: everything is correct
//! without them, so a full queue or a dropped nudge costs time and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model::{Job, JobId, TenantId, Timestamp, limits};
use tokio::sync::{Notify, mpsc};

use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::offset::OffsetClock;

/// "Look now instead of later."
#[derive(Debug, Default)]
pub struct Nudge {
    notify: Notify,
}

impl Nudge {
    pub fn now(&self) {
        self.notify.notify_one();
    }

    pub async fn heard(&self) {
        self.notify.notified().await;
    }
}

/// The nudges that duties listen for.
#[derive(Debug, Default)]
pub struct Nudges {
    pub plan: Nudge,
    pub fire: Nudge,
    pub settle: Nudge,
    pub dispatch: Nudge,
    pub watchdog: Nudge,
    pub retention: Nudge,
    pub rules: Nudge,
    /// Fire has nothing left to write before a stop.
    pub fired_out: Nudge,
    /// Somebody marked a claim.
    pub beat: Nudge,
    /// The plan must read the store from the beginning: it may have missed an offer.
    pub replan: AtomicBool,
    /// Plan waits for room in the wheel.
    pub wheel_full: AtomicBool,
    /// Fire has no room for the runs it was given.
    pub crowded: AtomicBool,
    /// Fire waits for runs to end.
    pub postponing: AtomicBool,
}

/// How a node is. It is ill when something has been due for too long, whatever the reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Health {
    /// The age of the oldest slot or run that is due and held by nobody, when last looked at.
    pub oldest_due: Duration,
    /// How long ago that look was; it must be fresh to mean anything.
    pub looked: Duration,
    pub bound: Duration,
    /// Whether the node holds its presence and has planned at least once.
    pub ready: bool,
    /// Why it may not fire: its clock is wrong, or the store's is not known well enough.
    pub clock: Option<String>,
}

impl Health {
    pub fn is_well(&self) -> bool {
        self.oldest_due.max(self.looked) <= self.bound
    }
}

/// A job that was just written; plan reads it, and nothing but it.
pub type Offer = (TenantId, JobId);

/// Shared between a node's duties and its handle.
pub struct Shared {
    pub clock: Arc<dyn Clock>,
    /// The same clock, if it is told from the store's.
    pub offset: Option<Arc<OffsetClock>>,
    pub clock_skew_max: Duration,
    pub nudges: Nudges,
    pub metrics: Metrics,
    pub health: std::sync::Mutex<HealthRecord>,
    pub offers: mpsc::Sender<Offer>,
    pub health_bound: Duration,
}

impl Shared {
    /// Why this node may not fire by its clock.
    pub fn unfit(&self) -> Option<String> {
        let offset = self.offset.as_ref()?;
        offset.standing().unfit(self.clock_skew_max)
    }

    /// A job is due soon that plan may not know of.
    pub fn offer(&self, offer: Offer) {
        if self.offers.try_send(offer).is_err() {
            self.nudges.replan.store(true, Ordering::Release);
        }
        self.nudges.plan.now();
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub struct HealthRecord {
    pub oldest_due_at: Option<Timestamp>,
    /// By uptime.
    pub looked_at: Duration,
    pub planned: bool,
    pub present: bool,
}

#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
}

impl Handle {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }

    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// A job was just written: when it is due within the horizon, plan looks at it at once.
    pub fn offer(&self, job: &Arc<Job>) {
        let horizon = self.now().plus(limits::HORIZON);
        if job.next_due_at().is_none_or(|due_at| due_at > horizon) {
            return;
        }
        self.shared.offer((job.tenant, job.id));
    }

    /// A run was just made ready, or a job changed: plan reads the store again.
    pub fn nudge_plan(&self) {
        self.shared.nudges.replan.store(true, Ordering::Release);
        self.shared.nudges.plan.now();
    }

    /// A calendar was changed: jobs that name it are to be aimed anew.
    pub fn nudge_rules(&self) {
        self.shared.nudges.rules.now();
    }

    /// Claims were marked: the holder looks at its marks at once.
    pub fn nudge_holder(&self) {
        self.shared.nudges.beat.now();
    }

    pub fn health(&self) -> Health {
        let record = crate::lock(&self.shared.health);
        let now = self.shared.clock.now();
        let uptime = self.shared.clock.uptime();
        Health {
            oldest_due: record
                .oldest_due_at
                .map_or(Duration::ZERO, |due_at| now.since(due_at)),
            looked: uptime.saturating_sub(record.looked_at),
            bound: self.shared.health_bound,
            ready: record.planned && record.present,
            clock: self.shared.unfit(),
        }
    }
}
