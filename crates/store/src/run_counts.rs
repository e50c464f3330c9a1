//! Runs of a day, as nodes have counted them.

use async_trait::async_trait;
use model::runs_day::{Day, RunCount, RunQuota};
use model::{PresenceId, TenantId};

use crate::StoreError;

#[async_trait]
pub trait RunCountStore: Send + Sync {
    /// Keeps how many runs one counter has inserted for tenants: the number as it is, not what was added to it, so that
    /// saying it again changes nothing. Answers the tenants that have the quota, and what the other counters have of each
    /// today.
    async fn count_runs(
        &self,
        counter: PresenceId,
        counts: &[RunCount],
        today: Day,
    ) -> Result<Vec<RunQuota>, StoreError>;

    /// What all counters have of a tenant's day. `retain` forgets days before yesterday.
    async fn runs_of_day(&self, tenant: TenantId, day: Day) -> Result<u64, StoreError>;
}
