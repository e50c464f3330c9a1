//! Count runs: says once a second how many runs this node has inserted for each tenant today, and learns what the others
//! have, of tenants that may have only so many.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use model::runs_day::Day;
use model::{PresenceId, Timestamp, limits};
use store::{ClientStore, StoreError};

use crate::clock::Clock;
use crate::duty::{Duty, Wake};
use crate::nudge::Nudge;
use crate::run_counts::RunCounts;

/// It rests so many times as long as a call took: many tenants with the quota cost no more than a share of a connection.
const REST: u32 = 10;

pub(crate) struct Ports {
    pub counts: Arc<RunCounts>,
    pub store: Arc<dyn ClientStore>,
    pub clock: Arc<dyn Clock>,
    /// Under which name this process counts, for as long as it lives: its first presence.
    pub counter: PresenceId,
    pub nudge: Nudge,
}

pub(crate) struct CountRuns {
    ports: Ports,
    /// By uptime.
    next: Duration,
}

impl CountRuns {
    pub(crate) fn new(ports: Ports) -> Self {
        Self {
            ports,
            next: Duration::ZERO,
        }
    }
}

impl Ports {
    /// Answers how many counts were written.
    async fn write(&self, now: Timestamp) -> Result<usize, StoreError> {
        let today = Day::of(now);
        let said = self.counts.unwritten(limits::RUN_COUNTS_BATCH_MAX);
        let access = self.store.access();
        let quotas = access.count_runs(self.counter, &said, today).await?;
        self.counts.written(&said, quotas, today);
        Ok(said.len())
    }
}

impl CountRuns {
    /// What was counted since, when a node stops. If it cannot be written, that is all that is lost.
    pub(crate) async fn last(&self) {
        let now = self.ports.clock.now();
        tokio::select! {
            biased;
            _written = self.ports.write(now) => {}
            () = self.ports.clock.sleep(limits::RUN_COUNTS_EVERY) => {}
        }
    }
}

#[async_trait]
impl Duty for CountRuns {
    fn name(&self) -> &'static str {
        "count runs"
    }

    fn nudge(&self) -> &Nudge {
        &self.ports.nudge
    }

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError> {
        let clock = &self.ports.clock;
        let begun = clock.uptime();
        if begun < self.next {
            // Moments are whole milliseconds: less than one would be no time at all.
            let left = (self.next - begun).max(Duration::from_millis(1));
            return Ok(Wake::At(now.plus(left)));
        }
        if self.ports.write(now).await? == limits::RUN_COUNTS_BATCH_MAX {
            return Ok(Wake::Now);
        }
        let took = clock.uptime().saturating_sub(begun);
        let rest = limits::RUN_COUNTS_EVERY.max(took * REST);
        self.next = clock.uptime() + rest;
        Ok(Wake::At(now.plus(rest)))
    }
}
