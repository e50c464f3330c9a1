//! How many connections each address has. Whoever opens more than its share would leave none for others.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::{Clock, SystemClock};

use crate::rates::network;

/// How often it is logged at most that an address has its share.
const WARN_APART: Duration = Duration::from_secs(60);

pub(super) struct Shares {
    max: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    /// By network; those that have none are not here.
    counts: BTreeMap<IpAddr, usize>,
    warned_at: Option<Duration>,
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

    /// One more connection; none if the address has as many as it may. A trusted proxy may have any number: it speaks for
    /// many.
    pub(super) fn take(self: &Arc<Self>, address: IpAddr, is_proxy: bool) -> Option<Share> {
        let network = network(address);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let count = held.counts.entry(network).or_default();
        if *count >= self.max && !is_proxy {
            held.warn(address, self.max);
            return None;
        }
        *count += 1;
        let shares = Arc::clone(self);
        Some(Share { shares, network })
    }
}

impl Held {
    fn warn(&mut self, address: IpAddr, max: usize) {
        let now = SystemClock.uptime();
        let is_due = |at: Duration| now.saturating_sub(at) >= WARN_APART;
        if self.warned_at.is_none_or(is_due) {
            self.warned_at = Some(now);
            tracing::warn!(%address, max, "an address has all the connections that it may have: more are closed");
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let held = self.shares.held.lock();
        let mut held = held.unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = held.counts.get_mut(&self.network) {
            *count -= 1;
            if *count == 0 {
                held.counts.remove(&self.network);
            }
        }
    }
}
