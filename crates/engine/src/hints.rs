//! Hints: what other nodes announce to this one, passed on to whoever waits for it. They only shorten waits: what is
//! lost here is found by the next beat, or the next look at the store.

use std::sync::Arc;

use async_trait::async_trait;
use model::{Shard, Timestamp};
use store::{EngineStore, Hint, StoreError};

use crate::duty::{Duty, Wake};
use crate::nudge::Nudge;
use crate::offers::Offers;
use crate::presence::Presence;
use crate::shards::Shards;

pub(crate) struct Ports {
    pub store: Arc<dyn EngineStore>,
    pub presence: Arc<Presence>,
    pub shards: Arc<Shards>,
    pub offers: Offers,
    pub nudge: Nudge,
    pub claim_due: Nudge,
    pub beat: Nudge,
    pub rules: Nudge,
    pub keys: Nudge,
}

pub(crate) struct Hints {
    ports: Ports,
}

impl Hints {
    pub(crate) fn new(ports: Ports) -> Self {
        Self { ports }
    }

    pub(crate) fn pass_on(&self, hint: Hint) {
        let Ports { shards, offers, .. } = &self.ports;
        let Ports {
            claim_due,
            beat,
            rules,
            keys,
            ..
        } = &self.ports;
        match hint {
            Hint::Job(tenant, job) => {
                let shard = Shard::of(job);
                if shards.leases().epoch(shard).is_some() {
                    offers.offer_here((tenant, job));
                } else if shards.left().contains(shard) {
                    claim_due.now();
                }
            }
            Hint::Shard(shard) => {
                if shards.leases().epoch(shard).is_some() {
                    offers.replan();
                } else if shards.left().contains(shard) {
                    claim_due.now();
                }
            }
            Hint::Ready => claim_due.now(),
            // The one that gave them up said so with its last beat, which is to be heard first.
            Hint::Marks | Hint::Leases => beat.now(),
            Hint::Rules => rules.now(),
            Hint::Keys => keys.now(),
            Hint::Lost => {
                offers.replan();
                beat.now();
                claim_due.now();
                rules.now();
                keys.now();
            }
        }
    }
}

#[async_trait]
impl Duty for Hints {
    fn name(&self) -> &'static str {
        "hints"
    }

    fn nudge(&self) -> &Nudge {
        &self.ports.nudge
    }

    async fn step(&mut self, _now: Timestamp) -> Result<Wake, StoreError> {
        let Ports {
            store, presence, ..
        } = &self.ports;
        for hint in store.hints(presence.id).await? {
            self.pass_on(hint);
        }
        Ok(Wake::Now)
    }
}
