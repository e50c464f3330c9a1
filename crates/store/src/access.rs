//! Who may call: tenants, and the keys that open the API to them; what they changed, and what they look at. Apart from `Store`, whose methods follow a run through its life.

use async_trait::async_trait;
use model::{AccessKey, KeyId, Tenant, TenantEdit, TenantId, TenantName, Timestamp, Usage};

use crate::{AuditStore, OverviewStore, Page, RunCountStore, SecretStore, StoreError, UserStore};

/// A node keeps all keys in memory and reads those that have changed, so that no request waits for the store to
/// learn who sent it.
#[async_trait]
pub trait AccessStore:
    AuditStore + OverviewStore + RunCountStore + SecretStore + UserStore
{
    /// Keys of the same tenant that ended longer than `KEY_KEEP` before are forgotten by this.
    async fn create_key(&self, key: &AccessKey) -> Result<KeyCreated, StoreError>;

    /// Writes a root key unless one is valid already, at the moment that the key was created: of any number of nodes that
    /// start at once, one gets true.
    async fn create_first_key(&self, key: &AccessKey) -> Result<bool, StoreError>;

    /// Called again, it answers as before: the key with the moment at which it was revoked first.
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

    /// Called again with the same id, it is done.
    async fn create_tenant(&self, tenant: &Tenant) -> Result<TenantCreated, StoreError>;

    async fn get_tenant(&self, id: TenantId) -> Result<Option<Tenant>, StoreError>;

    async fn find_tenant(&self, name: &TenantName) -> Result<Option<Tenant>, StoreError>;

    /// By name, after `after`.
    async fn list_tenants(
        &self,
        after: Option<&TenantName>,
        limit: usize,
    ) -> Result<Vec<Tenant>, StoreError>;

    /// Changes what is said of a tenant; the tenant as it stands then.
    async fn edit_tenant(
        &self,
        id: TenantId,
        edit: &TenantEdit,
    ) -> Result<Option<Tenant>, StoreError>;

    /// What a tenant has of what quotas bound. It is counted with every write; a request under way is in it or not.
    async fn tenant_use(&self, id: TenantId) -> Result<Usage, StoreError>;

    /// Marks a tenant that is to go with all that it has: no more keys are made, and `retain` deletes what is there bit by bit, also
    /// what comes of requests that were under way, and the tenant in the end. A repeated call answers the same.
    async fn delete_tenant(
        &self,
        id: TenantId,
        now: Timestamp,
        keys: ValidKeys,
    ) -> Result<TenantMarked, StoreError>;

    /// Only one without valid keys goes, and what is left of its keys and its secrets with it. Whether it has jobs is for the caller to
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

/// What becomes of the valid keys of a tenant that is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValidKeys {
    Revoke,
    /// While there are any, it does not go.
    Refuse,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TenantMarked {
    Done(Tenant),
    Missing,
    /// Some of its keys are valid.
    HasKeys,
    /// It has the last root key that does not expire.
    LastRoot,
}
