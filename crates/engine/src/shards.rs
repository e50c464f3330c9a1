//! The shards that this presence holds, how it requests them and gives them up, and those whose runs others leave.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use model::PresenceId;
use model::shard::ShardSet;
use store::{EngineStore, Leases, LowWater, StoreError};
use tracing::info;

use crate::board::Board;
use crate::gauges::Gauges;
use crate::lock;
use crate::nudge::{Nudge, Request};
use crate::offers::Offers;
use crate::presence::Presence;

pub(crate) struct Shards {
    leases: Mutex<Arc<Leases>>,
    /// Where reading what is due begins, as last measured, or as it came with the leases.
    low_water: Mutex<LowWater>,
    /// Shards whose runs others leave.
    left: Mutex<ShardSet>,
    /// While leases are requested, no write that relies on them begins.
    pausing: AtomicBool,
    /// A write was refused for its lease: memory may be wrong about them.
    pub doubt: Request,
}

impl Shards {
    /// Of a presence that holds none. Doubts are found out about with the next beat.
    pub(crate) fn new(presence: PresenceId, beat: &Nudge) -> Self {
        Self {
            leases: Mutex::new(Arc::new(Leases::none(presence))),
            low_water: Mutex::new(LowWater::HIGHEST),
            left: Mutex::default(),
            pausing: AtomicBool::new(false),
            doubt: Request::to(beat),
        }
    }

    pub(crate) fn leases(&self) -> Arc<Leases> {
        Arc::clone(&lock(&self.leases))
    }

    fn set_leases(&self, leases: Leases) {
        let mut low_water = lock(&self.low_water);
        if leases.low_water.taken != low_water.taken {
            *low_water = leases.low_water;
        }
        *lock(&self.leases) = Arc::new(leases);
    }

    pub(crate) fn low_water(&self) -> LowWater {
        *lock(&self.low_water)
    }

    /// Moves the mark, unless shards have come since it was measured.
    pub(crate) fn move_low_water(&self, to: LowWater) {
        let mut low_water = lock(&self.low_water);
        if to.taken == low_water.taken {
            *low_water = to;
        }
    }

    pub(crate) fn left(&self) -> ShardSet {
        *lock(&self.left)
    }

    pub(crate) fn set_left(&self, left: ShardSet) {
        *lock(&self.left) = left;
    }

    pub(crate) fn is_pausing(&self) -> bool {
        self.pausing.load(Ordering::Acquire)
    }

    pub(crate) fn set_pausing(&self, pausing: bool) {
        self.pausing.store(pausing, Ordering::Release);
    }
}

/// Requests shards and gives them up: when they fall to a node, and when it stops.
pub(crate) struct Leasing {
    pub shards: Arc<Shards>,
    pub presence: Arc<Presence>,
    pub board: Arc<Board>,
    pub store: Arc<dyn EngineStore>,
    pub offers: Offers,
    pub fire: Nudge,
    pub watchdog: Nudge,
    pub gauges: Gauges,
    /// One call at a time; nothing else is written meanwhile.
    pub one: tokio::sync::Mutex<()>,
}

/// While it lives, no write that relies on leases begins. It ends also when the call is given up, or panics.
struct Pause<'a>(&'a Leasing);

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        self.0.shards.set_pausing(false);
        self.0.fire.now();
    }
}

impl Leasing {
    /// Requests shards, and gives up all others. Writes that rely on leases are over before the store answers; so that
    /// it does not wait for ever new ones, none begin meanwhile.
    pub(crate) async fn lease(&self, wanted: &ShardSet) -> Result<Leases, StoreError> {
        self.shards.set_pausing(true);
        let _pause = Pause(self);
        self.store.lease(self.presence.id, wanted).await
    }

    /// Takes note of the shards that are held from now on.
    pub(crate) fn hold(&self, leases: Leases) {
        let shards = leases.shards();
        info!(shards = shards.len(), "holds shards");
        self.gauges.observe_leases(&self.shards.leases(), &leases);
        self.shards.set_leases(leases);
        self.offers.set_ours(shards);
        self.board.keep_shards(&shards);
        self.offers.nudge_plan();
        self.watchdog.now();
    }
}
