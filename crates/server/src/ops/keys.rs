//! What a client does to keys.

use model::{AccessKey, KeyId, Role, TenantId, Timestamp, limits};
use store::{KeyCreated, KeyRevoked, Page};

use super::error::{KeyFault, OpError};
use super::fault::FieldError;
use super::page::{self, Listed};
use crate::access::{Caller, Minted};
use crate::api::Api;

/// What a client says of a new key.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyDraft {
    pub role: Role,
    pub label: Option<String>,
    pub expires_at: Option<Timestamp>,
}

/// A new key of the caller's tenant. Nobody makes one that may do more than its own.
pub async fn create(api: &Api, caller: Caller, draft: KeyDraft) -> Result<Minted, OpError> {
    may_change(caller, draft.role)?;
    let now = api.engine.now();
    if draft.expires_at.is_some_and(|expires_at| expires_at <= now) {
        let detail = "the key would have expired already: name a moment that is still to come";
        return Err(FieldError::invalid("expires_at", detail).into());
    }
    let mut minted = Minted::new(caller.tenant, draft.role, now);
    minted.key.label = draft.label;
    minted.key.expires_at = draft.expires_at;
    let created = api.store.access().create_key(&minted.key).await;
    match created.map_err(OpError::Write)? {
        KeyCreated::Done => {}
        KeyCreated::Full => return Err(KeyFault::Full.into()),
    }
    changed(api).await;
    Ok(minted)
}

pub async fn get(api: &Api, tenant: TenantId, id: KeyId) -> Result<AccessKey, OpError> {
    let found = api.store.access().get_key(tenant, id).await?;
    found.ok_or_else(|| KeyFault::Missing.into())
}

/// Newest first, also those that ended lately.
pub async fn list(
    api: &Api,
    tenant: TenantId,
    page: Page<KeyId>,
) -> Result<Listed<AccessKey, KeyId>, OpError> {
    let read = |page| api.store.access().list_keys(tenant, page);
    Ok(page::fill(page, read, |key| (key.id, limits::NAME_MAX)).await?)
}

/// From now on it opens nothing. Answers it as it stands; asked again, the same.
pub async fn revoke(api: &Api, caller: Caller, id: KeyId) -> Result<AccessKey, OpError> {
    may_change(caller, get(api, caller.tenant, id).await?.role)?;
    let now = api.engine.now();
    let revoked = api.store.access().revoke_key(caller.tenant, id, now).await;
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
async fn changed(api: &Api) {
    api.engine.hint_keys();
    if let Err(error) = api.access.refresh().await {
        tracing::debug!(%error, "keys are read again a little later");
    }
}
