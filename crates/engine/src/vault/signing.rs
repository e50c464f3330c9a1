//! What a tenant's callbacks are signed with. It is known without the store but for the first attempt of a tenant, and the
//! first after any secret has changed.

use std::sync::Arc;

use executor::Signer;
use model::signing::Place;
use model::{SecretName, TenantId, limits};
use store::StoreError;

use super::{Vault, VaultError};
use crate::lock;

/// Whether attempts of a tenant are signed.
#[derive(Debug, Clone)]
pub enum Signing {
    /// The tenant has no signing secret.
    Unsigned,
    By(Arc<Signer>),
    /// It has, but this node cannot open it: nothing may be sent.
    Closed(Arc<str>),
}

impl Vault {
    /// What is known already.
    pub(crate) fn signing_known(&self, tenant: TenantId) -> Option<Signing> {
        lock(&self.cache).signing.get(&tenant).cloned()
    }

    /// Reads it if it is not known. Fails when the store is away, and only then.
    pub(super) async fn fetch_signing(&self, tenant: TenantId) -> Result<(), StoreError> {
        if self.signing_known(tenant).is_some() {
            return Ok(());
        }
        match self.read_signing(tenant).await {
            Err(error) if error.is_transient() => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Reads it, and remembers it.
    pub async fn signing(&self, tenant: TenantId) -> Signing {
        match self.read_signing(tenant).await {
            Ok(signing) => signing,
            // Not remembered: the next attempt reads again.
            Err(error) => Signing::Closed(format!("what signs it cannot be read: {error}").into()),
        }
    }

    async fn read_signing(&self, tenant: TenantId) -> Result<Signing, StoreError> {
        // The number first: whatever changes after it is noticed later.
        let access = self.store.access();
        let change = access.secret_change().await?;
        let mut found = Vec::new();
        for place in Place::ALL {
            let name = SecretName::of_place(place);
            found.extend(access.get_secret(tenant, &name).await?);
        }
        found.sort_by_key(|secret| (secret.created_at, secret.name.clone()));
        let opened: Result<Vec<_>, VaultError> =
            found.iter().map(|secret| self.open(secret)).collect();
        let closed = |error: &dyn std::fmt::Display| {
            Signing::Closed(format!("the tenant has signing secrets, and {error}").into())
        };
        let signing = match opened {
            Ok(opened) if opened.is_empty() => Signing::Unsigned,
            Ok(opened) => match Signer::new(opened.iter().map(|text| text.as_str())) {
                Ok(signer) => Signing::By(Arc::new(signer)),
                Err(error) => closed(&error),
            },
            Err(error) => closed(&error),
        };
        let mut cache = lock(&self.cache);
        cache.is_current_at(change);
        if cache.signing.len() >= limits::SIGNING_KNOWN_MAX {
            cache.signing.clear();
        }
        cache.signing.insert(tenant, signing.clone());
        Ok(signing)
    }
}
