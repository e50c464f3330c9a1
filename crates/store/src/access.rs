//! Who may call: tenants, and the keys that open the API to them. Apart from `Store`, whose methods follow a run through its life.

use async_trait::async_trait;
use model::{AccessKey, KeyId, Tenant, TenantId, TenantName, Timestamp};

use crate::{Page, StoreError};

/// A node keeps all keys in memory and asks for those that have changed, so that no request waits for the store to
/// learn who sent it.
#[async_trait]
pub trait AccessStore: Send + Sync {
    /// Keys of the same tenant that ended longer than `KEY_KEEP` before are forgotten by this.
    async fn create_key(&self, key: &AccessKey) -> Result<KeyCreated, StoreError>;

    /// Writes a root key unless one is valid already, at the moment that the key was created: of any number of nodes that
    /// start at once, one gets true.
    async fn create_first_key(&self, key: &AccessKey) -> Result<bool, StoreError>;

    /// Asked again, it answers as before: the key with the moment at which it was revoked first.
    async fn revoke_key(
        &self,
        tenant: TenantId,
        id: KeyId,
        now: Timestamp,
    ) -> Result<KeyRevoked, StoreError>;

    async fn get_key(&self, tenant: TenantId, id: KeyId) -> Result<Option<AccessKey>, StoreError>;

    /// Newest first, also those that ended.
    async fn list_keys(
        &self,
        tenant: TenantId,
        page: Page<KeyId>,
    ) -> Result<Vec<AccessKey>, StoreError>;

    /// Keys of all tenants that were created or revoked after a change, 0 for all.
    async fn keys_since(&self, change: u64) -> Result<KeyChanges, StoreError>;

    /// When keys were last used. Never moves back; a key that is gone is left out.
    async fn use_keys(&self, used: &[(KeyId, Timestamp)]) -> Result<(), StoreError>;

    /// Asked again with the same id, it is done.
    async fn create_tenant(&self, tenant: &Tenant) -> Result<TenantCreated, StoreError>;

    async fn get_tenant(&self, id: TenantId) -> Result<Option<Tenant>, StoreError>;

    async fn find_tenant(&self, name: &TenantName) -> Result<Option<Tenant>, StoreError>;

    /// By name, after `after`.
    async fn list_tenants(
        &self,
        after: Option<&TenantName>,
        limit: usize,
    ) -> Result<Vec<Tenant>, StoreError>;

    /// What a tenant is for; the tenant as it stands then.
    async fn note_tenant(
        &self,
        id: TenantId,
        note: Option<&str>,
    ) -> Result<Option<Tenant>, StoreError>;

    /// Only one without valid keys goes, and what is left of its keys with it. Whether it has jobs is for the caller to
    /// know.
    async fn drop_tenant(&self, id: TenantId, now: Timestamp) -> Result<TenantDropped, StoreError>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyCreated {
    Done,
    /// The tenant has as many as it may.
    Full,
    /// There is no such tenant.
    NoTenant,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyRevoked {
    Done(AccessKey),
    Missing,
    /// It is the last root key that does not expire.
    LastRoot,
}

/// What has changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyChanges {
    /// The latest change there is.
    pub change: u64,
    pub keys: Vec<AccessKey>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TenantCreated {
    Done,
    /// Another tenant has the name.
    Exists,
    /// There are as many as there may be.
    Full,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TenantDropped {
    Done,
    Missing,
    /// Some of its keys are valid.
    HasKeys,
}
