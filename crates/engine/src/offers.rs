//! Offers: jobs that were just written, or whose runs were. Plan reads those, and nothing else.

use std::sync::{Arc, Mutex};

use model::shard::ShardSet;
use model::{JobId, Shard, TenantId, limits};
use store::{EngineStore, Hint};
use tokio::sync::mpsc;

use crate::lock;
use crate::nudge::{Nudge, Request};

/// A job that plan is to look at.
pub(crate) type Offer = (TenantId, JobId);

/// Where offers go: to plan, or to the nodes that hold the shards. A clone is the same way.
#[derive(Clone)]
pub(crate) struct Offers {
    way: mpsc::Sender<Offer>,
    /// The shards that this node holds.
    ours: Arc<Mutex<ShardSet>>,
    store: Arc<dyn EngineStore>,
    plan: Nudge,
    /// Plan must read the store from the beginning: it may have missed something.
    replan: Request,
}

/// What plan is offered. It outlives a plan that panicked.
pub(crate) type Offered = Arc<tokio::sync::Mutex<mpsc::Receiver<Offer>>>;

impl Offers {
    pub(crate) fn new(store: Arc<dyn EngineStore>, plan: &Nudge) -> (Self, Offered) {
        let (way, offered) = mpsc::channel(limits::OFFERS_MAX);
        let offers = Self {
            way,
            ours: Arc::default(),
            store,
            plan: plan.clone(),
            replan: Request::to(plan),
        };
        (offers, Arc::new(tokio::sync::Mutex::new(offered)))
    }

    pub(crate) fn is_ours(&self, shard: Shard) -> bool {
        lock(&self.ours).contains(shard)
    }

    pub(crate) fn set_ours(&self, shards: ShardSet) {
        *lock(&self.ours) = shards;
    }

    /// A job or a run of it is due soon that plan may not know of: ours, or another node's.
    pub(crate) fn offer(&self, offer: Offer) {
        let (tenant, job) = offer;
        if self.is_ours(Shard::of(job)) {
            self.offer_here(offer);
        } else {
            self.store.hint(&[Hint::Job(tenant, job)]);
        }
    }

    pub(crate) fn offer_here(&self, offer: Offer) {
        if self.way.try_send(offer).is_err() {
            self.replan();
        } else {
            self.plan.now();
        }
    }

    /// Claims were marked: those of other nodes too.
    pub(crate) fn hint_marks(&self) {
        self.store.hint(&[Hint::Marks]);
    }

    /// Plan reads the whole window again.
    pub(crate) fn replan(&self) {
        self.replan.make();
    }

    /// Whether it is to.
    pub(crate) fn take_replan(&self) -> bool {
        self.replan.take()
    }

    /// There is room in the wheel again.
    pub(crate) fn nudge_plan(&self) {
        self.plan.now();
    }
}
