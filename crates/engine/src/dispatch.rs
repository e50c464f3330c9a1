//! Dispatch: at the due time exactly, claimed runs go to their executors. No write stands in the
//! way: everything was written when they were fired.
//!
//! What comes in: runs claimed by this presence. What goes out: endings, to settle. What always
//! holds: nothing starts before it is due, without the presence, or twice.

use std::sync::Arc;

use async_trait::async_trait;
use model::{Timestamp, limits};
use store::StoreError;

use crate::attempt::Attempts;
use crate::duty::{Duty, Wake};
use crate::nudge::Nudge;

pub(crate) struct Ports {
    pub attempts: Arc<Attempts>,
    pub nudge: Nudge,
}

/// Waits for the next due time.
pub(crate) struct Dispatch {
    ports: Ports,
}

impl Dispatch {
    pub(crate) fn new(ports: Ports) -> Self {
        Self { ports }
    }
}

#[async_trait]
impl Duty for Dispatch {
    fn name(&self) -> &'static str {
        "dispatch"
    }

    fn nudge(&self) -> &Nudge {
        &self.ports.nudge
    }

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError> {
        let next = self.ports.attempts.start_due();
        self.ports.attempts.hand_back_refused().await;
        Ok(Wake::At(
            next.unwrap_or_else(|| now.plus(limits::SLEEP_MAX)),
        ))
    }
}
