//! Who may call: the keys that open the API. Apart from `Store`, whose methods follow a run through its life.

use async_trait::async_trait;
use model::{AccessKey, KeyId, TenantId, Timestamp};

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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyCreated {
    Done,
    /// The tenant has as many as it may.
    Full,
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
