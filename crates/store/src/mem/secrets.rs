//! Secrets, sealed.

use std::collections::BTreeMap;

use async_trait::async_trait;
use model::{Secret, SecretName, TenantId, limits};

use super::MemStore;
use crate::audit::Change;
use crate::{SecretPut, SecretStore, StoreError};

#[derive(Default)]
pub(super) struct Secrets {
    change: u64,
    all: BTreeMap<(TenantId, SecretName), Secret>,
    /// Nobody can read them for now.
    away: bool,
}

impl Secrets {
    fn readable(&self) -> Result<&Self, StoreError> {
        if self.away {
            return Err(StoreError::unavailable("secrets cannot be read"));
        }
        Ok(self)
    }
}

impl MemStore {
    /// Whether secrets can be read, as if the store was away for nobody else.
    pub fn set_secrets_away(&self, away: bool) {
        self.state().secrets.away = away;
    }
}

impl Secrets {
    fn put(&mut self, secret: &Secret, before: Option<u32>) -> SecretPut {
        let key = (secret.tenant, secret.name.clone());
        if self.all.get(&key).map(|stands| stands.version) != before {
            return SecretPut::Conflict;
        }
        let of_tenant = self.all.keys().filter(|(tenant, _)| *tenant == key.0);
        if before.is_none() && of_tenant.count() >= limits::SECRETS_MAX {
            return SecretPut::Full;
        }
        self.change += 1;
        self.all.insert(key, secret.clone());
        SecretPut::Done
    }

    fn rewrap(&mut self, secret: &Secret) -> bool {
        let key = (secret.tenant, secret.name.clone());
        let stands = self.all.get_mut(&key);
        let Some(stands) = stands.filter(|stands| stands.version == secret.version) else {
            return false;
        };
        stands
            .sealed
            .master_key
            .clone_from(&secret.sealed.master_key);
        stands.sealed.wrapped.clone_from(&secret.sealed.wrapped);
        self.change += 1;
        true
    }

    pub(super) fn drop_all(&mut self, tenant: TenantId) {
        self.change += 1;
        self.all.retain(|(owner, _), _| *owner != tenant);
    }
}

#[async_trait]
impl SecretStore for MemStore {
    async fn put_secret(
        &self,
        secret: &Secret,
        before: Option<u32>,
    ) -> Result<SecretPut, StoreError> {
        let mut state = self.state();
        if state.access.tenant(secret.tenant).is_none() {
            return Ok(SecretPut::NoTenant);
        }
        let put = state.secrets.put(secret, before);
        if put == SecretPut::Done {
            state.audit(Change::secret_put(secret));
        }
        Ok(put)
    }

    async fn get_secret(
        &self,
        tenant: TenantId,
        name: &SecretName,
    ) -> Result<Option<Secret>, StoreError> {
        let state = self.state();
        let secrets = state.secrets.readable()?;
        Ok(secrets.all.get(&(tenant, name.clone())).cloned())
    }

    async fn list_secrets(
        &self,
        tenant: TenantId,
        after: Option<&SecretName>,
        limit: usize,
    ) -> Result<Vec<Secret>, StoreError> {
        let state = self.state();
        let of_tenant = state.secrets.all.values().filter(|it| it.tenant == tenant);
        let after = of_tenant.filter(|it| Some(&it.name) > after);
        Ok(after.take(limit).cloned().collect())
    }

    async fn drop_secret(&self, tenant: TenantId, name: &SecretName) -> Result<bool, StoreError> {
        let mut state = self.state();
        let secrets = &mut state.secrets;
        let dropped = secrets.all.remove(&(tenant, name.clone())).is_some();
        secrets.change += u64::from(dropped);
        if dropped {
            state.audit(Change::secret_dropped(tenant, name));
        }
        Ok(dropped)
    }

    async fn secret_change(&self) -> Result<u64, StoreError> {
        let state = self.state();
        Ok(state.secrets.readable()?.change)
    }

    async fn secrets_not_under(
        &self,
        master_key: &str,
        after: Option<&(TenantId, SecretName)>,
        limit: usize,
    ) -> Result<Vec<Secret>, StoreError> {
        let state = self.state();
        let others = state.secrets.all.iter();
        let others = others.filter(|(key, it)| {
            it.sealed.master_key != master_key && after.is_none_or(|after| *key > after)
        });
        Ok(others.map(|(_, it)| it.clone()).take(limit).collect())
    }

    async fn rewrap_secrets(&self, secrets: &[Secret]) -> Result<usize, StoreError> {
        let mut state = self.state();
        let rewrapped = secrets.iter().filter(|it| state.secrets.rewrap(it));
        let written = rewrapped.count();
        if let Some(change) = Change::secrets_rewrapped(secrets, written) {
            state.audit(change);
        }
        Ok(written)
    }

    async fn count_secrets(&self) -> Result<Vec<(String, u64)>, StoreError> {
        let state = self.state();
        let mut counts = BTreeMap::<String, u64>::new();
        for secret in state.secrets.all.values() {
            *counts.entry(secret.sealed.master_key.clone()).or_default() += 1;
        }
        Ok(counts.into_iter().collect())
    }
}
