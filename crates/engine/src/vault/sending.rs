//! How a tenant's callbacks leave: what they are signed with, and what they go through. It is known without the store but for the
//! first attempt of a tenant, and the first after any secret has changed.

use std::sync::Arc;

use executor::Signer;
use model::signing::Place;
use model::{Proxy, SecretName, TenantId, limits};
use store::StoreError;

use super::{Vault, VaultError};
use crate::lock;

/// How attempts of a tenant are sent.
#[derive(Debug, Clone)]
pub struct Sending {
    pub signing: Signing,
    pub way: Way,
}

/// Whether attempts of a tenant are signed.
#[derive(Debug, Clone)]
pub enum Signing {
    /// The tenant has no signing secret.
    Unsigned,
    By(Arc<Signer>),
    /// It has, but this node cannot open it: nothing may be sent.
    Closed(Arc<str>),
}

/// Whether attempts of a tenant go through a proxy.
#[derive(Debug, Clone)]
pub enum Way {
    /// The tenant has no proxy.
    Direct,
    Through(Arc<Proxy>),
    /// It has, but this node cannot open it: nothing may be sent past it.
    Closed(Arc<str>),
}

impl Vault {
    /// What is known already.
    pub(crate) fn sending_known(&self, tenant: TenantId) -> Option<Sending> {
        lock(&self.cache).sending.get(&tenant).cloned()
    }

    /// Reads it if it is not known. Fails when the store is away, and only then.
    pub(super) async fn fetch_sending(&self, tenant: TenantId) -> Result<(), StoreError> {
        if self.sending_known(tenant).is_some() {
            return Ok(());
        }
        match self.read_sending(tenant).await {
            Err(error) if error.is_transient() => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Reads it, and remembers it.
    pub async fn sending(&self, tenant: TenantId) -> Sending {
        match self.read_sending(tenant).await {
            Ok(sending) => sending,
            // Not remembered: the next attempt reads again.
            Err(error) => Sending {
                signing: Signing::Closed(format!("what signs it cannot be read: {error}").into()),
                way: Way::Closed(format!("the tenant's proxy cannot be read: {error}").into()),
            },
        }
    }

    async fn read_sending(&self, tenant: TenantId) -> Result<Sending, StoreError> {
        // The number first: whatever changes after it is noticed later.
        let change = self.store.access().secret_change().await?;
        let sending = Sending {
            signing: self.read_signing(tenant).await?,
            way: self.read_way(tenant).await?,
        };
        let mut cache = lock(&self.cache);
        cache.is_current_at(change);
        if cache.sending.len() >= limits::SENDING_KNOWN_MAX {
            cache.sending.clear();
        }
        cache.sending.insert(tenant, sending.clone());
        Ok(sending)
    }

    async fn read_signing(&self, tenant: TenantId) -> Result<Signing, StoreError> {
        let access = self.store.access();
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
        Ok(match opened {
            Ok(opened) if opened.is_empty() => Signing::Unsigned,
            Ok(opened) => match Signer::new(opened.iter().map(|text| text.as_str())) {
                Ok(signer) => Signing::By(Arc::new(signer)),
                Err(error) => closed(&error),
            },
            Err(error) => closed(&error),
        })
    }

    async fn read_way(&self, tenant: TenantId) -> Result<Way, StoreError> {
        let access = self.store.access();
        let found = access.get_secret(tenant, &SecretName::of_proxy()).await?;
        let Some(secret) = found else {
            return Ok(Way::Direct);
        };
        let closed = |error: &dyn std::fmt::Display| {
            Way::Closed(format!("the tenant has a proxy, and {error}").into())
        };
        Ok(match self.open(&secret) {
            Ok(text) => match Proxy::parse(&text) {
                Ok(proxy) => Way::Through(Arc::new(proxy)),
                Err(error) => closed(&error),
            },
            Err(error) => closed(&error),
        })
    }
}
