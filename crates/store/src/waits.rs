//! Runs that wait for something outside of their jobs, and how they are woken: by time, by event, by hand.

use std::collections::BTreeMap;

use async_trait::async_trait;
use model::shard::ShardSet;
use model::{RunId, TenantId, Timestamp, WaitReason};

use crate::types::DueRun;
use crate::{StoreError, Woken};

/// Both nodes and clients wake runs. Waking needs no lease and no claim: whoever wakes one twice wakes it once. Runs that
/// wait for their turn are none of it.
#[async_trait]
pub trait WaitStore: Send + Sync + 'static {
    /// Wakes runs of `shards` that wait until `now` at the latest, those that have waited longest beyond it first. Answers
    /// those that it woke. What others are changing at this moment is left out.
    async fn wake_due(
        &self,
        shards: &ShardSet,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueRun>, StoreError>;

    /// Wakes those of these runs that wait. Answers those that it woke.
    async fn wake(&self, runs: &[RunId], now: Timestamp) -> Result<Vec<DueRun>, StoreError>;

    /// Wakes one because a client wants it.
    async fn wake_run(
        &self,
        tenant: TenantId,
        run: RunId,
        now: Timestamp,
    ) -> Result<Woken, StoreError>;

    /// How many runs wait, by what they wait for.
    async fn count_waiting(&self) -> Result<BTreeMap<WaitReason, u64>, StoreError>;
}
