//! Secrets, sealed. No store can open one.

use async_trait::async_trait;
use model::{Secret, SecretName, TenantId};

use crate::StoreError;

#[async_trait]
pub trait SecretStore: Send + Sync {
    /// Writes a secret over the version that was seen, or where there is none.
    async fn put_secret(
        &self,
        secret: &Secret,
        before: Option<u32>,
    ) -> Result<SecretPut, StoreError>;

    async fn get_secret(
        &self,
        tenant: TenantId,
        name: &SecretName,
    ) -> Result<Option<Secret>, StoreError>;

    /// By name, after `after`.
    async fn list_secrets(
        &self,
        tenant: TenantId,
        after: Option<&SecretName>,
        limit: usize,
    ) -> Result<Vec<Secret>, StoreError>;

    /// Whether there was one.
    async fn drop_secret(&self, tenant: TenantId, name: &SecretName) -> Result<bool, StoreError>;

    /// The number of the latest change of any secret. It only grows: while it is the same, so is every secret.
    async fn secret_change(&self) -> Result<u64, StoreError>;

    /// Secrets of all tenants, in a fixed order, after the one that is named: those that are sealed under another master
    /// key than this.
    async fn secrets_not_under(
        &self,
        master_key: &str,
        after: Option<&(TenantId, SecretName)>,
        limit: usize,
    ) -> Result<Vec<Secret>, StoreError>;

    /// Each is the same secret, sealed under another master key: neither its version nor its value changes. Those that
    /// somebody changed meanwhile stay as they are. Answers how many were written.
    async fn rewrap_secrets(&self, secrets: &[Secret]) -> Result<usize, StoreError>;

    /// How many secrets there are under each master key.
    async fn count_secrets(&self) -> Result<Vec<(String, u64)>, StoreError>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretPut {
    Done,
    /// Another version stands, or none.
    Conflict,
    /// The tenant has as many as it may.
    Full,
    /// There is no such tenant.
    NoTenant,
}
