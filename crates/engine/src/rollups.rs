//! Rollups: what this process counts by tenant, minute and quarter of an hour, until it is written. Counting is memory only;
//! a duty (`flush`) writes the sums every few seconds, over what it wrote before.
//!
//! A sum stays here until its step is over and it is written: written again, it replaces the row. So a write that is repeated
//! counts nothing twice, and a process that is killed loses what it had not written, a few seconds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use model::rollup::{Count, Step};
use model::{PresenceId, Rollup, RollupRow, TenantId, Timestamp, limits};

use crate::lock;

/// A clock that goes back by more than this is believed: sums of steps that are over start again then.
const BACK_MAX: std::time::Duration = std::time::Duration::from_secs(3_600);

/// One sum, by what it is of.
type Key = (Step, Timestamp, TenantId);

#[derive(Debug, Default)]
struct Sum {
    rollup: Rollup,
    /// How often it was added to, and how often as of the last write.
    counts: u64,
    written: u64,
}

#[derive(Debug, Default)]
struct Sums {
    /// The first presence of this process; it names its rows.
    by: Option<PresenceId>,
    all: BTreeMap<Key, Sum>,
    /// The latest step that was counted in, by `Step::ALL`: a clock that goes back a little counts on in it.
    latest: [Timestamp; Step::ALL.len()],
    left_out: u64,
}

impl Sums {
    /// Where a moment is counted.
    fn begin(&mut self, step: Step, now: Timestamp) -> Timestamp {
        let begin = step.begin(now);
        let Some(latest) = self.latest.get_mut(step as usize) else {
            return begin;
        };
        if begin > *latest || begin.plus(BACK_MAX) < *latest {
            *latest = begin;
        }
        *latest
    }

    /// Counts what happened to one tenant.
    fn count(&mut self, now: Timestamp, tenant: TenantId, counts: &[(TenantId, Count)]) {
        for step in Step::ALL {
            let key = (step, self.begin(step, now), tenant);
            if self.all.len() >= limits::ROLLUPS_MAX && !self.all.contains_key(&key) {
                self.left_out += counts.len() as u64;
                continue;
            }
            let sum = self.all.entry(key).or_default();
            counts
                .iter()
                .for_each(|(_, count)| sum.rollup.count(*count));
            sum.counts += counts.len() as u64;
        }
    }

    fn is_over(&self, (step, at, _): &Key) -> bool {
        let latest = self.latest.get(*step as usize);
        latest.is_some_and(|latest| at < latest)
    }
}

/// Sums that are to be written, and how far each had been counted.
#[derive(Debug, Default)]
pub(crate) struct Unwritten {
    pub rows: Vec<RollupRow>,
    counts: Vec<u64>,
}

/// What is counted of tenants. A clone counts in the same place.
#[derive(Debug, Clone, Default)]
pub struct Rollups(Arc<Mutex<Sums>>);

impl Rollups {
    /// Says whose counts these are. Only the first presence of a process counts: it goes on counting after it was fenced.
    pub(crate) fn name(&self, by: PresenceId) {
        lock(&self.0).by.get_or_insert(by);
    }

    /// Counts a batch, as of now. Most of one are often one tenant's.
    pub fn count(&self, now: Timestamp, counts: &[(TenantId, Count)]) {
        if counts.is_empty() {
            return;
        }
        let mut sums = lock(&self.0);
        for of_tenant in counts.chunk_by(|(one, _), (next, _)| one == next) {
            if let Some((tenant, _)) = of_tenant.first() {
                sums.count(now, *tenant, of_tenant);
            }
        }
    }

    /// The oldest sums that have changed since they were written. None before a presence has named them.
    pub(crate) fn unwritten(&self, limit: usize) -> Unwritten {
        let sums = lock(&self.0);
        let mut unwritten = Unwritten::default();
        let Some(by) = sums.by else {
            return unwritten;
        };
        let changed = sums.all.iter().filter(|(_, sum)| sum.counts > sum.written);
        for ((step, at, tenant), sum) in changed.take(limit) {
            unwritten.counts.push(sum.counts);
            unwritten.rows.push(RollupRow {
                tenant: *tenant,
                step: *step,
                at: *at,
                by,
                rollup: sum.rollup.clone(),
            });
        }
        unwritten
    }

    /// These were written. What is over and written is not needed any more.
    pub(crate) fn written(&self, unwritten: &Unwritten, now: Timestamp) {
        let mut sums = lock(&self.0);
        for (row, counts) in unwritten.rows.iter().zip(&unwritten.counts) {
            let key = (row.step, row.at, row.tenant);
            if let Some(sum) = sums.all.get_mut(&key) {
                sum.written = sum.written.max(*counts);
            }
        }
        for step in Step::ALL {
            sums.begin(step, now);
        }
        let done: Vec<Key> = sums
            .all
            .iter()
            .filter(|(key, sum)| sum.counts == sum.written && sums.is_over(key))
            .map(|(key, _)| *key)
            .collect();
        for key in done {
            sums.all.remove(&key);
        }
    }

    /// How much was not counted for want of room, since the last call.
    pub(crate) fn left_out(&self) -> u64 {
        std::mem::take(&mut lock(&self.0).left_out)
    }
}

#[cfg(test)]
#[path = "rollups_tests.rs"]
mod tests;
