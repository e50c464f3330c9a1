//! Retention: forgets in small steps what was kept long enough.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use model::Timestamp;
use store::{Keep, StoreError};
use tracing::info;

use crate::duty::{Duty, Wake};
use crate::handle::{Nudge, Shared};
use crate::node::Context;

const EVERY: Duration = Duration::from_secs(60);

pub struct Retention {
    context: Arc<Context>,
    /// By uptime: sleeps are short, so most steps find that it is not time yet.
    next: Duration,
}

impl Retention {
    pub fn new(context: Arc<Context>) -> Self {
        Self {
            context,
            next: Duration::ZERO,
        }
    }
}

#[async_trait]
impl Duty for Retention {
    fn name(&self) -> &'static str {
        "retention"
    }

    fn nudge<'a>(&self, shared: &'a Shared) -> &'a Nudge {
        &shared.nudges.retention
    }

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError> {
        let context = &self.context;
        let uptime = context.shared.clock.uptime();
        let later = now.plus(EVERY);
        // A held node shows what it was given, and forgets none of it.
        if uptime < self.next || context.config.hold {
            return Ok(Wake::At(later));
        }
        let keep = Keep {
            now,
            history: context.config.history_keep,
            finished: context.config.finished_keep,
        };
        let retained = context.store.retain(&keep).await?;
        if retained.ranges > 0 || retained.jobs > 0 {
            info!(
                ranges = retained.ranges,
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
