//! Runs of a day.

use async_trait::async_trait;
use model::runs_day::{Day, RunCount, RunQuota};
use model::{PresenceId, TenantId};

use super::MemStore;
use super::state::State;
use crate::{RunCountStore, StoreError};

impl State {
    /// Of a tenant's day, except for one counter.
    fn runs_except(&self, tenant: TenantId, day: Day, counter: Option<PresenceId>) -> u64 {
        let counts = self.run_counts.iter();
        let theirs = counts
            .filter(|((of, whose, by), _)| (*of, *whose) == (day, tenant) && Some(*by) != counter);
        theirs.map(|(_, runs)| runs).sum()
    }

    pub(super) fn drop_run_counts(&mut self, before: Day) {
        self.run_counts.retain(|(day, _, _), _| *day >= before);
    }
}

#[async_trait]
impl RunCountStore for MemStore {
    async fn count_runs(
        &self,
        counter: PresenceId,
        counts: &[RunCount],
        today: Day,
    ) -> Result<Vec<RunQuota>, StoreError> {
        let mut state = self.state();
        for RunCount { tenant, day, runs } in counts {
            state.run_counts.insert((*day, *tenant, counter), *runs);
        }
        let tenants = state.access.tenants.values();
        let quotas = tenants.filter_map(|tenant| {
            Some(RunQuota {
                tenant: tenant.id,
                name: tenant.name.clone(),
                limit: tenant.quotas.runs_day_max?,
                others: state.runs_except(tenant.id, today, Some(counter)),
            })
        });
        Ok(quotas.collect())
    }

    async fn runs_of_day(&self, tenant: TenantId, day: Day) -> Result<u64, StoreError> {
        Ok(self.state().runs_except(tenant, day, None))
    }
}
