//! Tenants.

use model::{Tenant, TenantEdit, TenantId, TenantName, Timestamp, limits};

use super::access::Access;
use crate::{TenantCreated, TenantDropped};

impl Access {
    pub(super) fn tenant(&self, id: TenantId) -> Option<&Tenant> {
        self.tenants.values().find(|tenant| tenant.id == id)
    }

    pub(super) fn create_tenant(&mut self, tenant: &Tenant) -> TenantCreated {
        if let Some(stands) = self.tenants.get(&tenant.name) {
            return if stands.id == tenant.id {
                TenantCreated::Done
            } else {
                TenantCreated::Exists
            };
        }
        if self.tenants.len() >= limits::TENANTS_MAX {
            return TenantCreated::Full;
        }
        self.tenants.insert(tenant.name.clone(), tenant.clone());
        TenantCreated::Done
    }

    pub(super) fn list_tenants(&self, after: Option<&TenantName>, limit: usize) -> Vec<Tenant> {
        let tenants = self.tenants.values();
        let after = tenants.filter(|tenant| Some(&tenant.name) > after);
        after.take(limit).cloned().collect()
    }

    pub(super) fn edit_tenant(&mut self, id: TenantId, edit: &TenantEdit) -> Option<Tenant> {
        let tenant = self.tenants.values_mut().find(|tenant| tenant.id == id)?;
        *tenant = tenant.clone().edited(edit);
        Some(tenant.clone())
    }

    pub(super) fn drop_tenant(&mut self, id: TenantId, now: Timestamp) -> TenantDropped {
        let Some(name) = self.tenant(id).map(|tenant| tenant.name.clone()) else {
            return TenantDropped::Missing;
        };
        let valid = self.of(id).filter(|key| key.is_valid(now)).count();
        if valid > 0 {
            return TenantDropped::HasKeys;
        }
        self.keys.retain(|_, (_, key)| key.tenant != id);
        self.tenants.remove(&name);
        TenantDropped::Done
    }
}
