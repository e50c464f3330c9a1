//! Secrets: the keys that seal them, how they are sealed and opened, and how an attempt gets those that it needs.
//!
//! In reading order: `master` (keys), `seal` (one value), `template` (who uses one; `scan` reads it, `facts` is what it reads),
//! `resolve` (what an attempt sends), `scrub` (what it must not keep; `stream`, where
//! that comes bit by bit), `said` (nor what is said of it later), `sending` (what it
//! is signed with, and what it goes through). What always holds: a value is in memory only, in a cache that follows the store.

mod facts;
mod master;
mod meter;
mod resolve;
mod said;
mod scan;
mod scrub;
mod seal;
mod sending;
mod stream;
pub mod template;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use model::{Sealed, Secret, SecretName, TenantId, limits};
use store::{Store, StoreError};
use zeroize::Zeroizing;

use crate::lock;
pub use master::{KeyRing, KeyText, MasterKey, MasterKeys};
pub use scrub::Hidden;
pub use seal::OpenError;
pub(crate) use seal::{unwrap, wrap};
pub use sending::{Sending, Signing, Way};
pub(crate) use stream::Stream;

/// Why there is no value.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    #[error("this node has no master key")]
    NoMasterKey,
    #[error(transparent)]
    Closed(#[from] OpenError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A secret and its value.
pub struct Opened {
    pub secret: Secret,
    value: Zeroizing<String>,
}

impl Opened {
    pub fn value(&self) -> &str {
        &self.value
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Opened({})", self.secret.name)
    }
}

#[derive(Default)]
struct Cache {
    /// The change of secrets up to which it is current.
    change: Option<u64>,
    opened: BTreeMap<(TenantId, SecretName), Arc<Opened>>,
    sending: BTreeMap<TenantId, Sending>,
}

impl Cache {
    /// Forgets everything if it is not current at this change.
    fn is_current_at(&mut self, change: u64) {
        if self.change != Some(change) {
            self.forget();
            self.change = Some(change);
        }
    }

    fn forget(&mut self) {
        self.opened.clear();
        self.sending.clear();
    }

    fn is_empty(&self) -> bool {
        self.opened.is_empty() && self.sending.is_empty()
    }
}

/// What a node knows of secrets.
pub struct Vault {
    keys: Arc<KeyRing>,
    store: Arc<dyn Store>,
    cache: Mutex<Cache>,
    sent: Mutex<said::Sent>,
    /// Who reads what is not known yet: one at a time of a tenant, or a thousand attempts would read the same.
    reading: [tokio::sync::Mutex<()>; READERS],
}

/// How many tenants' secrets are read at once.
const READERS: usize = 16;

impl Vault {
    pub fn new(keys: Arc<KeyRing>, store: Arc<dyn Store>) -> Self {
        Self {
            keys,
            store,
            cache: Mutex::default(),
            sent: Mutex::default(),
            reading: Default::default(),
        }
    }

    pub fn keys(&self) -> Result<Arc<MasterKeys>, VaultError> {
        self.keys.get().ok_or(VaultError::NoMasterKey)
    }

    pub fn has_keys(&self) -> bool {
        self.keys.get().is_some()
    }

    /// A value for a secret as it is to stand.
    pub fn seal(&self, secret: &Secret, value: &str) -> Result<Sealed, VaultError> {
        let keys = self.keys()?;
        Ok(seal::seal(&keys, secret, value)?)
    }

    pub fn open(&self, secret: &Secret) -> Result<Zeroizing<String>, VaultError> {
        let keys = self.keys()?;
        Ok(seal::open(&keys, secret)?)
    }

    /// The same secret under the current master key.
    pub fn rewrap(&self, secret: &Secret) -> Result<Secret, VaultError> {
        let keys = self.keys()?;
        Ok(seal::rewrap(&keys, secret)?)
    }

    /// A secret by its name; none if there is no such one.
    pub async fn get(
        &self,
        tenant: TenantId,
        name: &SecretName,
    ) -> Result<Option<Arc<Opened>>, VaultError> {
        self.keys()?;
        let key = (tenant, name.clone());
        if let Some(opened) = lock(&self.cache).opened.get(&key) {
            return Ok(Some(Arc::clone(opened)));
        }
        // The number first: whatever changes after it is noticed later.
        let change = self.store.access().secret_change().await?;
        let Some(secret) = self.store.access().get_secret(tenant, name).await? else {
            return Ok(None);
        };
        let value = self.open(&secret)?;
        let opened = Arc::new(Opened { secret, value });
        let mut cache = lock(&self.cache);
        cache.is_current_at(change);
        if cache.opened.len() >= limits::SECRETS_OPEN_MAX {
            cache.opened.clear();
        }
        cache.opened.insert(key, Arc::clone(&opened));
        Ok(Some(opened))
    }

    /// Forgets what it knows, if any secret has changed since. Nothing is read while nothing is known.
    pub async fn follow(&self) -> Result<(), StoreError> {
        if lock(&self.cache).is_empty() {
            return Ok(());
        }
        let change = self.store.access().secret_change().await?;
        lock(&self.cache).is_current_at(change);
        Ok(())
    }

    /// A secret was changed here: it is read again at its next use.
    pub fn forget(&self) {
        lock(&self.cache).forget();
    }
}
