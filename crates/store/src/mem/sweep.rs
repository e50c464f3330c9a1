//! Tenants that are deleted with all that they have.

use model::{JobId, JobState, Tenant, TenantId, Timestamp, limits};

use super::state::State;
use crate::types::swept;
use crate::{TenantDropped, TenantMarked, ValidKeys};

impl State {
    pub(super) fn delete_tenant(
        &mut self,
        id: TenantId,
        now: Timestamp,
        keys: ValidKeys,
    ) -> TenantMarked {
        let Some(tenant) = self.access.tenant(id).cloned() else {
            return TenantMarked::Missing;
        };
        if tenant.deleting_at.is_some() {
            return TenantMarked::Done(tenant);
        }
        if keys == ValidKeys::Refuse && self.access.of(id).any(|key| key.is_valid(now)) {
            return TenantMarked::HasKeys;
        }
        if !self.access.may_do_without(id) {
            return TenantMarked::LastRoot;
        }
        self.access.revoke_all(id, now);
        let marked = Tenant {
            deleting_at: Some(now),
            ..tenant.clone()
        };
        self.access
            .tenants
            .insert(tenant.name.clone(), marked.clone());
        self.audit_tenant(Some(&tenant), Some(&marked));
        TenantMarked::Done(marked)
    }

    pub(super) fn drop_tenant(&mut self, id: TenantId, now: Timestamp) -> TenantDropped {
        let before = self.access.tenant(id).cloned();
        let dropped = self.access.drop_tenant(id, now);
        if dropped == TenantDropped::Done {
            self.audit_tenant(before.as_ref(), None);
            self.secrets.drop_all(id);
            self.users.leave(id);
            self.rollups.retain(|(tenant, ..), _| *tenant != id);
            self.uses.remove(&id);
        }
        dropped
    }

    /// A step for each tenant that is being deleted; whether there is more to do at once.
    pub(super) fn sweep_tenants(&mut self, now: Timestamp) -> bool {
        let tenants = self.access.tenants.values();
        let deleting = tenants.filter(|tenant| tenant.deleting_at.is_some());
        let deleting: Vec<Tenant> = deleting.cloned().collect();
        let mut more = false;
        for tenant in deleting {
            more |= self.sweep(&tenant, now);
        }
        more
    }

    fn sweep(&mut self, tenant: &Tenant, now: Timestamp) -> bool {
        let theirs = self.jobs.values().filter(|job| job.tenant == tenant.id);
        let left = theirs.filter(|job| job.state != JobState::Deleted);
        let left: Vec<JobId> = left
            .map(|job| job.id)
            .take(limits::TENANT_SWEEP_MAX)
            .collect();
        for id in &left {
            if let Some(job) = self.get_job(tenant.id, *id) {
                self.change_job(&swept(job, now));
            }
        }
        if self.jobs.values().any(|job| job.tenant == tenant.id) {
            return !left.is_empty();
        }
        self.calendars.retain(|(owner, _), _| *owner != tenant.id);
        self.requests.retain(|(owner, _), _| *owner != tenant.id);
        self.drop_replays_of(tenant.id);
        self.drop_alerts_of(tenant.id, now);
        if tenant.is_drained(now) {
            self.drop_tenant(tenant.id, now);
        }
        false
    }
}
