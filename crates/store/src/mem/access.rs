//! Keys, and the tenants they belong to.

use std::collections::BTreeMap;

use async_trait::async_trait;
use model::{
    AccessKey, KeyId, Role, Tenant, TenantEdit, TenantId, TenantName, Timestamp, Usage, limits,
};

use super::MemStore;
use crate::audit::Change;
use crate::{
    AccessStore, KeyChanges, KeyCreated, KeyRevoked, Page, StoreError, TenantCreated,
    TenantDropped, TenantMarked, ValidKeys,
};

/// Tenants by name; every key, with the number of its last change.
pub(super) struct Access {
    pub tenants: BTreeMap<TenantName, Tenant>,
    change: u64,
    pub keys: BTreeMap<KeyId, (u64, AccessKey)>,
}

impl Default for Access {
    fn default() -> Self {
        let always = TenantName::new(TenantName::DEFAULT);
        let always =
            always.map(|name| Tenant::new(TenantId::DEFAULT, name, Timestamp::from_millis(0)));
        Self {
            tenants: always.into_iter().map(|it| (it.name.clone(), it)).collect(),
            change: 0,
            keys: BTreeMap::new(),
        }
    }
}

impl Access {
    fn put(&mut self, key: AccessKey) {
        self.change += 1;
        self.keys.insert(key.id, (self.change, key));
    }

    pub(super) fn of(&self, tenant: TenantId) -> impl DoubleEndedIterator<Item = &AccessKey> {
        let keys = self.keys.values().map(|(_, key)| key);
        keys.filter(move |key| key.tenant == tenant)
    }

    fn roots(&self) -> Vec<AccessKey> {
        let keys = self.keys.values().map(|(_, key)| key);
        keys.filter(|key| key.role == Role::Root).cloned().collect()
    }

    /// Whether whoever sees to the installation can do without the keys of a tenant.
    pub(super) fn may_do_without(&self, tenant: TenantId) -> bool {
        AccessKey::may_do_without(&self.roots(), tenant)
    }

    pub(super) fn revoke_all(&mut self, tenant: TenantId, now: Timestamp) {
        let valid = self.of(tenant).filter(|key| key.revoked_at.is_none());
        let valid: Vec<AccessKey> = valid.cloned().collect();
        for key in valid {
            self.put(AccessKey {
                revoked_at: Some(now),
                ..key
            });
        }
    }

    fn create(&mut self, key: &AccessKey) -> KeyCreated {
        let tenant = self.tenant(key.tenant);
        if tenant.is_none_or(|tenant| tenant.deleting_at.is_some()) {
            return KeyCreated::NoTenant;
        }
        let long_ago = key.created_at.minus(limits::KEY_KEEP);
        self.keys.retain(|_, (_, other)| {
            other.tenant != key.tenant || other.ends_at().is_none_or(|ends_at| ends_at >= long_ago)
        });
        if !self.keys.contains_key(&key.id) && self.of(key.tenant).count() >= limits::KEYS_MAX {
            return KeyCreated::Full;
        }
        self.put(key.clone());
        KeyCreated::Done
    }

    fn create_first(&mut self, key: &AccessKey) -> bool {
        let is_first = !self
            .roots()
            .iter()
            .any(|root| root.is_valid(key.created_at));
        if is_first {
            self.put(key.clone());
        }
        is_first
    }

    fn get(&self, tenant: TenantId, id: KeyId) -> Option<AccessKey> {
        let found = self.keys.get(&id).map(|(_, key)| key);
        found.filter(|key| key.tenant == tenant).cloned()
    }

    fn revoke(&mut self, tenant: TenantId, id: KeyId, now: Timestamp) -> KeyRevoked {
        let Some(mut key) = self.get(tenant, id) else {
            return KeyRevoked::Missing;
        };
        if key.revoked_at.is_some() {
            return KeyRevoked::Done(key);
        }
        if !key.may_be_revoked(&self.roots()) {
            return KeyRevoked::LastRoot;
        }
        key.revoked_at = Some(now);
        self.put(key.clone());
        KeyRevoked::Done(key)
    }
}

#[async_trait]
impl AccessStore for MemStore {
    async fn create_key(&self, key: &AccessKey) -> Result<KeyCreated, StoreError> {
        let mut state = self.state();
        let is_new = !state.access.keys.contains_key(&key.id);
        let created = state.access.create(key);
        if is_new && created == KeyCreated::Done {
            state.audit(Change::key_created(key));
        }
        Ok(created)
    }

    async fn create_first_key(&self, key: &AccessKey) -> Result<bool, StoreError> {
        let mut state = self.state();
        let created = state.access.create_first(key);
        if created {
            state.audit(Change::key_created(key));
        }
        Ok(created)
    }

    async fn revoke_key(
        &self,
        tenant: TenantId,
        id: KeyId,
        now: Timestamp,
    ) -> Result<KeyRevoked, StoreError> {
        let mut state = self.state();
        let before = state.access.get(tenant, id);
        let revoked = state.access.revoke(tenant, id, now);
        let is_new = before.is_some_and(|key| key.revoked_at.is_none());
        if is_new && matches!(revoked, KeyRevoked::Done(_)) {
            state.audit(Change::key_revoked(tenant, id));
        }
        Ok(revoked)
    }

    async fn get_key(&self, tenant: TenantId, id: KeyId) -> Result<Option<AccessKey>, StoreError> {
        Ok(self.state().access.get(tenant, id))
    }

    async fn list_keys(
        &self,
        tenant: TenantId,
        page: Page<KeyId>,
    ) -> Result<Vec<AccessKey>, StoreError> {
        let state = self.state();
        let keys = state.access.of(tenant).rev();
        let before = keys.filter(|key| page.before.is_none_or(|before| key.id < before));
        Ok(before.take(page.limit).cloned().collect())
    }

    async fn keys_since(&self, change: u64) -> Result<KeyChanges, StoreError> {
        let state = self.state();
        let access = &state.access;
        let changed = access.keys.values().filter(|(at, _)| *at > change);
        Ok(KeyChanges {
            change: access.change,
            keys: changed.map(|(_, key)| key.clone()).collect(),
        })
    }

    async fn use_keys(&self, used: &[(KeyId, Timestamp)]) -> Result<(), StoreError> {
        let mut state = self.state();
        let keys = &mut state.access.keys;
        for (id, at) in used {
            if let Some((_, key)) = keys.get_mut(id) {
                key.last_used_at = key.last_used_at.max(Some(*at));
            }
        }
        Ok(())
    }

    async fn create_tenant(&self, tenant: &Tenant) -> Result<TenantCreated, StoreError> {
        let mut state = self.state();
        let is_new = state.access.tenant(tenant.id).is_none();
        let created = state.access.create_tenant(tenant);
        if is_new && created == TenantCreated::Done {
            state.audit_tenant(None, Some(tenant));
        }
        Ok(created)
    }

    async fn get_tenant(&self, id: TenantId) -> Result<Option<Tenant>, StoreError> {
        Ok(self.state().access.tenant(id).cloned())
    }

    async fn find_tenant(&self, name: &TenantName) -> Result<Option<Tenant>, StoreError> {
        Ok(self.state().access.tenants.get(name).cloned())
    }

    async fn list_tenants(
        &self,
        after: Option<&TenantName>,
        limit: usize,
    ) -> Result<Vec<Tenant>, StoreError> {
        Ok(self.state().access.list_tenants(after, limit))
    }

    async fn edit_tenant(
        &self,
        id: TenantId,
        edit: &TenantEdit,
    ) -> Result<Option<Tenant>, StoreError> {
        let mut state = self.state();
        let before = state.access.tenant(id).cloned();
        let after = state.access.edit_tenant(id, edit);
        if before != after {
            state.audit_tenant(before.as_ref(), after.as_ref());
        }
        Ok(after)
    }

    async fn tenant_use(&self, id: TenantId) -> Result<Usage, StoreError> {
        Ok(self.state().uses.get(&id).copied().unwrap_or_default())
    }

    async fn delete_tenant(
        &self,
        id: TenantId,
        now: Timestamp,
        keys: ValidKeys,
    ) -> Result<TenantMarked, StoreError> {
        Ok(self.state().delete_tenant(id, now, keys))
    }

    async fn drop_tenant(&self, id: TenantId, now: Timestamp) -> Result<TenantDropped, StoreError> {
        Ok(self.state().drop_tenant(id, now))
    }
}
