//! Origins that die and come back: while one is dead it refuses every call, and those under way break off. Moments are
//! uptimes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What jobs call.
pub const ADDRESSES: [&str; 3] = ["http://one/", "http://two/", "http://three/"];

/// When an origin was dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dead {
    pub from: Duration,
    pub to: Duration,
}

#[derive(Debug, Clone, Default)]
pub struct OriginRecord {
    pub dead: Vec<Dead>,
    /// The last end of a call that may have opened its breaker although it lives: one that took too long.
    pub unwell: Duration,
}

impl OriginRecord {
    fn is_dead(&self, now: Duration) -> bool {
        let mut dead = self.dead.iter();
        dead.any(|dead| (dead.from..dead.to).contains(&now))
    }

    /// Since when there has been nothing that a breaker could hold against it.
    pub fn well_since(&self) -> Duration {
        let back = self.dead.iter().map(|dead| dead.to);
        back.max().unwrap_or_default().max(self.unwell)
    }
}

#[derive(Debug, Clone, Default)]
pub struct Origins {
    inner: Arc<Mutex<BTreeMap<String, OriginRecord>>>,
}

impl Origins {
    fn book(&self) -> MutexGuard<'_, BTreeMap<String, OriginRecord>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn die(&self, origin: &str, dead: Dead) {
        let mut book = self.book();
        book.entry(origin.to_owned()).or_default().dead.push(dead);
    }

    /// All that are dead live again.
    pub fn come_back(&self, now: Duration) {
        let mut book = self.book();
        for dead in book.values_mut().flat_map(|record| &mut record.dead) {
            dead.to = dead.to.min(now.max(dead.from));
        }
    }

    pub fn is_dead(&self, origin: &str, now: Duration) -> bool {
        let book = self.book();
        book.get(origin).is_some_and(|record| record.is_dead(now))
    }

    /// A call was not answered.
    pub fn unanswered(&self, origin: &str, now: Duration) {
        self.book().entry(origin.to_owned()).or_default().unwell = now;
    }

    pub fn records(&self) -> BTreeMap<String, OriginRecord> {
        self.book().clone()
    }
}
