//! Secrets: what this node has opened is forgotten when any has changed.

use std::sync::Arc;

use async_trait::async_trait;
use model::{Timestamp, limits};
use store::StoreError;

use crate::duty::{Duty, Wake};
use crate::nudge::Nudge;
use crate::vault::Vault;

pub(crate) struct Ports {
    pub vault: Arc<Vault>,
    pub nudge: Nudge,
}

pub(crate) struct Secrets {
    ports: Ports,
}

impl Secrets {
    pub(crate) fn new(ports: Ports) -> Self {
        Self { ports }
    }
}

#[async_trait]
impl Duty for Secrets {
    fn name(&self) -> &'static str {
        "secrets"
    }

    fn nudge(&self) -> &Nudge {
        &self.ports.nudge
    }

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError> {
        self.ports.vault.follow().await?;
        Ok(Wake::At(now.plus(limits::KEYS_POLL)))
    }
}
