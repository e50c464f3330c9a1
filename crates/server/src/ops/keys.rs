//! What a client does to keys.

use model::{AccessKey, KeyId, QueueName, Role, Tenant, TenantName, Timestamp, limits};
use store::{KeyCreated, KeyRevoked, Page};

use super::error::{KeyFault, OpError, TenantFault};
use super::fault::FieldError;
use super::page::{self, Listed};
use crate::access::{Caller, Minted};
use crate::api::Api;

/// What a client says of a new key.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyDraft {
    /// Whose it is; that of the caller unless it is said.
    pub tenant: Option<TenantName>,
    pub role: Role,
    pub label: Option<String>,
    pub expires_at: Option<Timestamp>,
    /// What a worker gets its work from.
    pub queues: Vec<QueueName>,
}

/// The tenant that a caller means: its own, or as root any. For everyone else there is no other, whether it is there or not.
pub async fn tenant(
    api: &Api,
    caller: Caller,
    name: Option<&TenantName>,
) -> Result<Tenant, OpError> {
    let access = api.store.access();
    let Some(name) = name else {
        let own = access.get_tenant(caller.tenant).await?;
        return own.ok_or_else(|| KeyFault::Missing.into());
    };
    let found = access.find_tenant(name).await?;
    let found = found.filter(|it| caller.role == Role::Root || it.id == caller.tenant);
    found.ok_or_else(|| TenantFault::Unknown(name.clone()).into())
}

/// A new key. Nobody makes one that may do more than its own.
pub async fn create(
    api: &Api,
    caller: Caller,
    tenant: &Tenant,
    draft: KeyDraft,
) -> Result<Minted, OpError> {
    may_change(caller, draft.role)?;
    if draft.role == Role::Root && !tenant.is_default() {
        let detail = format!(
            "a root key sees to the whole installation, and belongs to the tenant {}",
            TenantName::DEFAULT
        );
        return Err(FieldError::invalid("role", detail).into());
    }
    let now = api.engine.now();
    if draft.expires_at.is_some_and(|expires_at| expires_at <= now) {
        let detail = "the key would have expired already: name a moment that is still to come";
        return Err(FieldError::invalid("expires_at", detail).into());
    }
    let mut minted = Minted::new(tenant.id, draft.role, now);
    minted.key.label = draft.label;
    minted.key.expires_at = draft.expires_at;
    minted.key.queues = draft.queues;
    let created = api.store.access().create_key(&minted.key).await;
    match created.map_err(OpError::Write)? {
        KeyCreated::Done => {}
        KeyCreated::Full => return Err(KeyFault::Full.into()),
        KeyCreated::NoTenant => return Err(TenantFault::Missing(tenant.name.clone()).into()),
    }
    changed(api).await;
    Ok(minted)
}

pub async fn get(api: &Api, tenant: &Tenant, id: KeyId) -> Result<AccessKey, OpError> {
    let found = api.store.access().get_key(tenant.id, id).await?;
    found.ok_or_else(|| KeyFault::Missing.into())
}

/// Newest first, also those that ended lately.
pub async fn list(
    api: &Api,
    tenant: &Tenant,
    page: Page<KeyId>,
) -> Result<Listed<AccessKey, KeyId>, OpError> {
    let read = |page| api.store.access().list_keys(tenant.id, page);
    Ok(page::fill(page, read, |key| (key.id, limits::NAME_MAX)).await?)
}

/// From now on it opens nothing. Answers it as it stands; revoked again, the same.
pub async fn revoke(
    api: &Api,
    caller: Caller,
    tenant: &Tenant,
    id: KeyId,
) -> Result<AccessKey, OpError> {
    may_change(caller, get(api, tenant, id).await?.role)?;
    let now = api.engine.now();
    let revoked = api.store.access().revoke_key(tenant.id, id, now).await;
    let key = match revoked.map_err(OpError::Write)? {
        KeyRevoked::Done(key) => key,
        KeyRevoked::Missing => return Err(KeyFault::Missing.into()),
        KeyRevoked::LastRoot => return Err(KeyFault::LastRoot.into()),
    };
    changed(api).await;
    Ok(key)
}

fn may_change(caller: Caller, role: Role) -> Result<(), KeyFault> {
    if caller.role.allows(role) {
        return Ok(());
    }
    Err(KeyFault::Above {
        role,
        own: caller.role,
    })
}

/// Here at once, and on the other nodes as soon as they hear of it.
pub async fn changed(api: &Api) {
    api.engine.hint_keys();
    if let Err(error) = api.access.refresh().await {
        tracing::debug!(%error, "keys are read again a little later");
    }
}
