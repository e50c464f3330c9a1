//! The shards that this presence holds, and those whose runs others leave.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use model::PresenceId;
use model::shard::ShardSet;
use store::Leases;

use crate::lock;
use crate::nudge::{Nudge, Request};

pub struct Shards {
    leases: Mutex<Arc<Leases>>,
    /// Shards whose runs others leave.
    left: Mutex<ShardSet>,
    /// While leases are asked for, no write that relies on them begins.
    pausing: AtomicBool,
    /// A write was refused for its lease: memory may be wrong about them.
    pub doubt: Request,
}

impl Shards {
    /// Of a presence that holds none. Doubts are found out about with the next beat.
    pub fn new(presence: PresenceId, beat: &Nudge) -> Self {
        let leases = Leases {
            presence,
            epochs: BTreeMap::new(),
        };
        Self {
            leases: Mutex::new(Arc::new(leases)),
            left: Mutex::default(),
            pausing: AtomicBool::new(false),
            doubt: Request::to(beat),
        }
    }

    pub fn leases(&self) -> Arc<Leases> {
        Arc::clone(&lock(&self.leases))
    }

    pub fn set_leases(&self, leases: Leases) {
        *lock(&self.leases) = Arc::new(leases);
    }

    pub fn left(&self) -> ShardSet {
        *lock(&self.left)
    }

    pub fn set_left(&self, left: ShardSet) {
        *lock(&self.left) = left;
    }

    pub fn is_pausing(&self) -> bool {
        self.pausing.load(Ordering::Acquire)
    }

    pub fn set_pausing(&self, pausing: bool) {
        self.pausing.store(pausing, Ordering::Release);
    }
}
