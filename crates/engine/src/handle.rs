//! What the rest of the process may ask of a node. Nudges only shorten waits: everything is correct
//! without them, so a full queue or a dropped nudge costs time and nothing else.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::shard::ShardSet;
use model::{Job, JobId, Parts, PresenceId, Shard, TenantId, Timestamp, limits};
use store::{Hint, Peer, Store};
use tokio::sync::{Notify, mpsc};

use crate::age::ByAge;
use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::node::NodeConfig;
use crate::offset::OffsetClock;
use crate::trouble::Trouble;

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
    pub hold: Nudge,
    pub marks: Nudge,
    pub hints: Nudge,
    pub take: Nudge,
    pub payloads: Nudge,
    /// Fire has nothing left to write before a stop.
    pub fired_out: Nudge,
    /// Somebody marked a claim, or says that shards are free.
    pub beat: Nudge,
    /// A beat was answered.
    pub beaten: Nudge,
    /// The plan must read the store from the beginning: it may have missed an offer.
    pub replan: AtomicBool,
    /// Claims are to be compared now: some may have been made that nobody here knows of.
    pub compare: AtomicBool,
    /// Fire has no room for the runs it was given.
    pub crowded: ByAge<AtomicBool>,
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
    /// How long ago the last beat was answered.
    pub heard: Duration,
    /// Whether the node holds its presence, by its own count.
    pub present: bool,
    /// Whether it has planned at least once, if it plans at all.
    pub planned: bool,
    /// Why it may not fire: its clock is wrong, or the store's is not known well enough.
    pub clock: Option<String>,
    /// Nothing fires here because the operator wants it so.
    pub held: bool,
}

impl Health {
    pub fn is_well(&self) -> bool {
        let oldest = if self.held {
            Duration::ZERO
        } else {
            self.oldest_due
        };
        oldest.max(self.looked) <= self.bound
    }

    pub fn is_ready(&self) -> bool {
        self.present && self.planned && self.clock.is_none()
    }
}

/// The nodes that live, as this one heard with its last beat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nodes {
    pub peers: Vec<Peer>,
    /// Which of them is this one; none before the first beat.
    pub me: Option<PresenceId>,
    /// How long ago that was.
    pub heard: Duration,
}

/// A job that was just written, or a run of it; plan reads those, and nothing else.
pub type Offer = (TenantId, JobId);

/// Shared between a node's duties and its handle.
pub struct Shared {
    pub clock: Arc<dyn Clock>,
    pub parts: Parts,
    /// The same clock, if it is told from the store's.
    pub offset: Option<Arc<OffsetClock>>,
    pub clock_skew_max: Duration,
    pub nudges: Nudges,
    pub metrics: Metrics,
    pub trouble: Trouble,
    pub health: Mutex<HealthRecord>,
    pub offers: mpsc::Sender<Offer>,
    pub health_bound: Duration,
    /// Nothing is to fire here, and that is as it should be.
    pub hold: bool,
    pub store: Arc<dyn Store>,
    /// The shards that this node holds.
    pub shards: Mutex<ShardSet>,
    /// Who lives, as of the last beat; and when that was, by uptime.
    pub peers: Mutex<Vec<Peer>>,
    pub me: Mutex<Option<PresenceId>>,
    /// A write was refused for its lease: memory may be wrong about them.
    pub lease_lost: Mutex<bool>,
    pub heard_at: Mutex<Duration>,
}

impl Shared {
    /// Of a node over a store, by a clock that may be told from the store's; and what plan is offered.
    pub fn new(
        config: &NodeConfig,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        offset: Option<Arc<OffsetClock>>,
        metrics: Metrics,
    ) -> (Arc<Self>, mpsc::Receiver<Offer>) {
        let (offers, offered) = mpsc::channel(limits::OFFERS_MAX);
        let health = HealthRecord {
            looked_at: clock.uptime(),
            ..HealthRecord::default()
        };
        let shared = Self {
            nudges: Nudges::default(),
            metrics,
            trouble: Trouble::new(&config.name),
            health: Mutex::new(health),
            offers,
            health_bound: config.health_bound,
            hold: config.hold,
            parts: config.parts,
            offset,
            clock_skew_max: config.clock_skew_max,
            store,
            shards: Mutex::default(),
            lease_lost: Mutex::default(),
            peers: Mutex::default(),
            me: Mutex::default(),
            heard_at: Mutex::new(clock.uptime()),
            clock,
        };
        (Arc::new(shared), offered)
    }

    /// Why this node may not fire by its clock.
    pub fn unfit(&self) -> Option<String> {
        let offset = self.offset.as_ref()?;
        offset.standing().unfit(self.clock_skew_max)
    }

    /// Who lives, as a beat just brought it.
    pub fn heard_of(&self, me: PresenceId, living: Vec<Peer>) {
        *crate::lock(&self.peers) = living;
        *crate::lock(&self.me) = Some(me);
        *crate::lock(&self.heard_at) = self.clock.uptime();
    }

    /// A lease is not what it was thought to be.
    pub fn doubt_leases(&self) {
        *crate::lock(&self.lease_lost) = true;
        self.nudges.beat.now();
    }

    pub fn is_ours(&self, shard: Shard) -> bool {
        crate::lock(&self.shards).contains(shard)
    }

    /// A job or a run of it is due soon that plan may not know of: ours, or another node's.
    pub fn offer(&self, offer: Offer) {
        let (tenant, job) = offer;
        if self.is_ours(Shard::of(job)) {
            self.offer_here(offer);
        } else {
            self.store.hint(&[Hint::Job(tenant, job)]);
        }
    }

    pub fn offer_here(&self, offer: Offer) {
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

    /// The store as the node calls it: what it takes is counted.
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.shared.store)
    }

    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// What this node does.
    pub fn parts(&self) -> Parts {
        self.shared.parts
    }

    /// A job was just written: when it is due within the horizon, plan looks at it at once.
    pub fn offer(&self, job: &Arc<Job>) {
        let horizon = self.now().plus(limits::HORIZON);
        if job.next_due_at().is_none_or(|due_at| due_at > horizon) {
            return;
        }
        self.shared.offer((job.tenant, job.id));
    }

    /// A run of the job was just made ready, or the job changed: plan reads that job and its runs.
    pub fn nudge_plan(&self, tenant: TenantId, job: JobId) {
        self.shared.offer((tenant, job));
        if !self.shared.is_ours(Shard::of(job)) {
            // Or it is among those that this node takes.
            self.shared.nudges.take.now();
        }
    }

    /// A calendar was changed: jobs that name it are to be rescheduled.
    pub fn nudge_rules(&self) {
        self.shared.nudges.rules.now();
        self.shared.store.hint(&[Hint::Rules]);
    }

    /// Claims were marked: their holders look at their marks at once.
    pub fn nudge_holder(&self) {
        self.shared.nudges.beat.now();
        self.shared.store.hint(&[Hint::Marks]);
    }

    /// Who lives.
    pub fn nodes(&self) -> Nodes {
        let heard_at = *crate::lock(&self.shared.heard_at);
        Nodes {
            peers: crate::lock(&self.shared.peers).clone(),
            me: *crate::lock(&self.shared.me),
            heard: self.shared.clock.uptime().saturating_sub(heard_at),
        }
    }

    pub fn health(&self) -> Health {
        let record = crate::lock(&self.shared.health);
        let now = self.shared.clock.now();
        let uptime = self.shared.clock.uptime();
        let heard = uptime.saturating_sub(*crate::lock(&self.shared.heard_at));
        Health {
            oldest_due: record
                .oldest_due_at
                .map_or(Duration::ZERO, |due_at| now.since(due_at)),
            looked: uptime.saturating_sub(record.looked_at),
            bound: self.shared.health_bound,
            heard,
            present: record.present && heard < limits::PRESENCE_TTL - limits::PRESENCE_MARGIN,
            planned: record.planned || !self.shared.parts.schedule,
            clock: self.shared.unfit(),
            held: self.shared.hold,
        }
    }
}
