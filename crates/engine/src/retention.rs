//! Retention: forgets in small steps what was kept long enough.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use model::Timestamp;
use store::{EngineStore, Keep, StoreError};
use tracing::info;

use crate::clock::Clock;
use crate::duty::{Duty, Wake};
use crate::nudge::Nudge;

const EVERY: Duration = Duration::from_secs(60);

pub(crate) struct Ports {
    pub store: Arc<dyn EngineStore>,
    pub clock: Arc<dyn Clock>,
    pub history_keep: Duration,
    pub finished_keep: Duration,
    /// A held node shows what it was given, and forgets none of it.
    pub hold: bool,
    pub nudge: Nudge,
}

pub(crate) struct Retention {
    ports: Ports,
    /// By uptime: sleeps are short, so most steps find that it is not time yet.
    next: Duration,
}

impl Retention {
    pub(crate) fn new(ports: Ports) -> Self {
        Self {
            ports,
            next: Duration::ZERO,
        }
    }
}

#[async_trait]
impl Duty for Retention {
    fn name(&self) -> &'static str {
        "retention"
    }

    fn nudge(&self) -> &Nudge {
        &self.ports.nudge
    }

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError> {
        let ports = &self.ports;
        let uptime = ports.clock.uptime();
        let later = now.plus(EVERY);
        if uptime < self.next || ports.hold {
            return Ok(Wake::At(later));
        }
        let keep = Keep {
            now,
            history: ports.history_keep,
            finished: ports.finished_keep,
        };
        let retained = ports.store.retain(&keep).await?;
        if retained.partitions > 0 || retained.jobs > 0 {
            info!(
                partitions = retained.partitions,
                jobs = retained.jobs,
                "forgot what was kept long enough"
            );
        }
        if !retained.more {
            self.next = uptime + EVERY;
        }
        Ok(if retained.more {
            Wake::Now
        } else {
            Wake::At(later)
        })
    }
}
