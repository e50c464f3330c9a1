//! How many connections each address has. Whoever opens more than its share would leave none for others.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::rates::network;

pub(super) struct Shares {
    max: usize,
    /// By network; those that have none are not here.
    held: Mutex<BTreeMap<IpAddr, usize>>,
}

/// One connection of an address, for as long as this lives.
pub(super) struct Share {
    shares: Arc<Shares>,
    network: IpAddr,
}

impl Shares {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            held: Mutex::default(),
        })
    }

    /// One more connection; none if the address has as many as it may.
    pub(super) fn take(self: &Arc<Self>, address: IpAddr) -> Option<Share> {
        let network = network(address);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let count = held.entry(network).or_default();
        if *count >= self.max {
            return None;
        }
        *count += 1;
        let shares = Arc::clone(self);
        Some(Share { shares, network })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let held = self.shares.held.lock();
        let mut held = held.unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = held.get_mut(&self.network) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.network);
            }
        }
    }
}
