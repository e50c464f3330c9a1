//! The proxy that a tenant's callbacks go through. It is kept sealed, as a secret is, and shown without its password.

use model::level::NeedsLevel;
use model::{Level, Proxy, Sealed, Secret, SecretName, TenantId};
use store::SecretPut;

use super::Patch;
use super::error::{OpError, SecretFault};
use super::fault::{Fault, FieldError};
use super::{level, secrets};
use crate::api::Api;

const FIELD: &str = "proxy";
/// How often a write is tried again when others change the same proxy.
const TRIES_MAX: u32 = 8;

/// As it is shown; none if the tenant has none.
pub async fn shown(api: &Api, tenant: TenantId) -> Result<Option<String>, OpError> {
    let found = stands(api, tenant).await?;
    Ok(found.and_then(|secret| secret.note))
}

async fn stands(api: &Api, tenant: TenantId) -> Result<Option<Secret>, OpError> {
    let name = SecretName::of_proxy();
    Ok(api.store.access().get_secret(tenant, &name).await?)
}

/// What is said of a proxy, once it is known that it can be kept: nothing has been written yet. A password that is masked is the
/// one that stands, if there is a tenant.
pub(super) async fn check(
    api: &Api,
    tenant: Option<TenantId>,
    said: Patch<Proxy>,
) -> Result<Patch<Proxy>, OpError> {
    let proxy = match said {
        Patch::Set(proxy) => proxy,
        Patch::Keep | Patch::Reset => return Ok(said),
    };
    let checked = api.egress.check_host(proxy.host(), proxy.port());
    checked.map_err(|refused| FieldError::new(Fault::Egress, FIELD, refused.to_string()))?;
    let vault = api.engine.vault();
    if !vault.has_keys() {
        return Err(SecretFault::NoMasterKey.into());
    }
    let kept = match tenant {
        Some(tenant) if proxy.is_masked() => stands(api, tenant).await?,
        Some(_) | None => None,
    };
    let kept = kept
        .map(|secret| secrets::opened(api, &secret))
        .transpose()?;
    let kept = kept.and_then(|text| Proxy::parse(&text).ok());
    let proxy = proxy.unmasked(kept.as_ref());
    let proxy = proxy.map_err(|error| FieldError::invalid(FIELD, error.to_string()))?;
    // A node that does not know it would call past it.
    let needs = NeedsLevel {
        level: Level::OUTSIDE,
        field: FIELD,
    };
    level::check_level(api, needs).await?;
    Ok(Patch::Set(proxy))
}

/// Writes what was checked. From now on callbacks go that way, on other nodes within a second.
pub(super) async fn write(api: &Api, tenant: TenantId, said: &Patch<Proxy>) -> Result<(), OpError> {
    match said {
        Patch::Keep => return Ok(()),
        Patch::Reset => {
            let name = SecretName::of_proxy();
            let dropped = api.store.access().drop_secret(tenant, &name).await;
            dropped.map_err(OpError::Write)?;
        }
        Patch::Set(proxy) => put(api, tenant, proxy).await?,
    }
    api.engine.vault().forget();
    Ok(())
}

async fn put(api: &Api, tenant: TenantId, proxy: &Proxy) -> Result<(), OpError> {
    for _ in 0..TRIES_MAX {
        let stands = stands(api, tenant).await?;
        let secret = secret(api, tenant, proxy, stands.as_ref())?;
        let before = stands.map(|secret| secret.version);
        let put = api.store.access().put_secret(&secret, before).await;
        match put.map_err(OpError::Write)? {
            SecretPut::Done => return Ok(()),
            SecretPut::Conflict => {}
            SecretPut::Full => return Err(SecretFault::Full.into()),
            SecretPut::NoTenant => return Err(SecretFault::NoTenant.into()),
        }
    }
    Err(OpError::Contended)
}

fn secret(
    api: &Api,
    tenant: TenantId,
    proxy: &Proxy,
    stands: Option<&Secret>,
) -> Result<Secret, OpError> {
    let now = api.engine.now();
    let secret = Secret {
        tenant,
        name: SecretName::of_proxy(),
        version: stands.map_or(1, |stands| stands.version + 1),
        hosts: Vec::new(),
        note: Some(proxy.to_string()),
        created_at: stands.map_or(now, |stands| stands.created_at),
        updated_at: now,
        sealed: Sealed {
            master_key: String::new(),
            wrapped: Vec::new(),
            value: Vec::new(),
        },
    };
    secrets::sealed(api, secret, &proxy.reveal())
}
