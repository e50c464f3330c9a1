//! Flush: writes what was counted, every few seconds and once more when the node stops.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use model::{Timestamp, limits};
use store::{ClientStore, StoreError};
use tracing::warn;

use crate::clock::Clock;
use crate::duty::{Duty, Wake, describe};
use crate::nudge::Nudge;
use crate::rollups::Rollups;

/// How long the last write of a node that stops may take.
const LAST: Duration = Duration::from_secs(1);

pub(crate) struct Ports {
    pub store: Arc<dyn ClientStore>,
    pub clock: Arc<dyn Clock>,
    pub rollups: Rollups,
    pub nudge: Nudge,
}

pub(crate) struct Flush {
    ports: Ports,
}

impl Flush {
    pub(crate) fn new(ports: Ports) -> Self {
        Self { ports }
    }

    /// Writes one batch; whether there may be more.
    async fn write(&self) -> Result<bool, StoreError> {
        let Ports {
            store,
            clock,
            rollups,
            ..
        } = &self.ports;
        let unwritten = rollups.unwritten(limits::ROLLUP_BATCH_MAX);
        if !unwritten.rows.is_empty() {
            store.access().put_rollups(&unwritten.rows).await?;
        }
        rollups.written(&unwritten, clock.now());
        Ok(unwritten.rows.len() == limits::ROLLUP_BATCH_MAX)
    }

    /// Everything that was counted, if the store takes it in time. For a node that stops.
    pub(crate) async fn last(&self) {
        let all = async {
            while self.write().await? {}
            Ok(())
        };
        let answer = tokio::select! {
            biased;
            answer = all => answer,
            () = self.ports.clock.sleep(LAST) => Err(StoreError::unavailable("no answer in time")),
        };
        if let Err(error) = answer {
            warn!(error = %describe(&error), "the last counts for overviews are not written");
        }
    }
}

#[async_trait]
impl Duty for Flush {
    fn name(&self) -> &'static str {
        "flush"
    }

    fn nudge(&self) -> &Nudge {
        &self.ports.nudge
    }

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError> {
        let left_out = self.ports.rollups.left_out();
        if left_out > 0 {
            warn!(
                counts = left_out,
                most = limits::ROLLUPS_MAX,
                "more tenants than are counted for overviews: these counts are left out"
            );
        }
        Ok(if self.write().await? {
            Wake::Now
        } else {
            Wake::At(now.plus(limits::ROLLUP_EVERY))
        })
    }
}
