//! Hints: what other nodes tell this one, passed on to whoever waits for it. They only shorten waits: what is
//! lost here is found by the next beat, or the next look at the store.

use std::sync::Arc;

use async_trait::async_trait;
use model::{Shard, Timestamp};
use store::{Hint, StoreError};

use crate::duty::{Duty, Wake};
use crate::handle::{Nudge, Shared};
use crate::lock;
use crate::node::Context;

pub struct Hints {
    context: Arc<Context>,
}

impl Hints {
    pub fn new(context: Arc<Context>) -> Self {
        Self { context }
    }

    pub fn pass_on(&self, hint: Hint) {
        let (context, nudges) = (&self.context, &self.context.shared.nudges);
        match hint {
            Hint::Job(tenant, job) => {
                let shard = Shard::of(job);
                if context.leases().epoch(shard).is_some() {
                    context.shared.offer_here((tenant, job));
                } else if lock(&context.left).contains(shard) {
                    nudges.take.now();
                }
            }
            Hint::Shard(shard) => {
                if context.leases().epoch(shard).is_some() {
                    context.replan();
                } else if lock(&context.left).contains(shard) {
                    nudges.take.now();
                }
            }
            Hint::Ready => nudges.take.now(),
            // The one that gave them up said so with its last beat, which is to be heard first.
            Hint::Marks | Hint::Leases => nudges.beat.now(),
            Hint::Rules => nudges.rules.now(),
            Hint::Lost => {
                context.replan();
                nudges.beat.now();
                nudges.take.now();
                nudges.rules.now();
            }
        }
    }
}

#[async_trait]
impl Duty for Hints {
    fn name(&self) -> &'static str {
        "hints"
    }

    fn nudge<'a>(&self, shared: &'a Shared) -> &'a Nudge {
        &shared.nudges.hints
    }

    async fn step(&mut self, _now: Timestamp) -> Result<Wake, StoreError> {
        let context = &self.context;
        for hint in context.store.hints(context.presence.id).await? {
            self.pass_on(hint);
        }
        Ok(Wake::Now)
    }
}
