//! Who calls. A node has every valid key in memory, so that no request waits for the store to learn who sent it; what
//! changes is read again when another node says so, and twice a second in any case.
//!
//! What always holds: a caller is let in by a digest that was compared in constant time; whatever is wrong with a key
//! (its form, its secret, its age), the same work is done before the answer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};
use std::time::Duration;

use engine::Handle;
use model::access::{read_key, write_key};
use model::{AccessKey, KeyId, KeySecret, Role, TenantId, Timestamp, limits};
use sha2::{Digest, Sha256};
use store::{Acting, SYSTEM, Store, StoreError};

use crate::same::is_same;

/// What whoever calls a node that asks for no key is called.
pub(crate) static ANONYMOUS: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from("anonymous"));

/// Whoever sent a request, and what it may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    pub tenant: TenantId,
    pub role: Role,
    /// None where no key is asked for.
    pub key: Option<KeyId>,
}

impl Caller {
    /// Whoever can connect to a node that asks for no key.
    const ANYONE: Self = Self {
        tenant: TenantId::DEFAULT,
        role: Role::Root,
        key: None,
    };
}

/// A key before it is kept, and as its holder gets it: once.
#[derive(Debug, Clone, PartialEq)]
pub struct Minted {
    pub key: AccessKey,
    pub text: String,
}

impl Minted {
    /// A new key, from 256 bits of chance.
    pub fn new(tenant: TenantId, role: Role, now: Timestamp) -> Self {
        let (id, secret) = (KeyId::new(now, rand::random()), KeySecret(rand::random()));
        Self::of(id, &secret, tenant, role, now)
    }

    /// One of the default tenant that was made before and may not have been kept.
    pub fn read(text: &str, role: Role, now: Timestamp) -> Option<Self> {
        let (id, secret) = read_key(text)?;
        Some(Self::of(id, &secret, TenantId::DEFAULT, role, now))
    }

    fn of(id: KeyId, secret: &KeySecret, tenant: TenantId, role: Role, now: Timestamp) -> Self {
        let key = AccessKey {
            id,
            tenant,
            role,
            label: None,
            digest: digest(secret),
            created_at: now,
            expires_at: None,
            last_used_at: None,
            revoked_at: None,
            queues: Vec::new(),
        };
        let text = write_key(id, secret);
        Self { key, text }
    }
}

fn digest(secret: &KeySecret) -> [u8; 32] {
    Sha256::digest(secret.0).into()
}

/// The keys that open this node.
pub struct Access {
    /// None: no key is asked for.
    keys: Option<Keys>,
}

struct Keys {
    store: Arc<dyn Store>,
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    /// Everything up to here has been read.
    change: u64,
    /// Those that are not revoked.
    keys: BTreeMap<KeyId, Arc<Entry>>,
}

struct Entry {
    key: AccessKey,
    /// What its holder is called.
    name: Arc<str>,
    /// When it was used, in milliseconds; 0 if that is written, or it was not.
    used: AtomicI64,
}

impl Access {
    /// Everyone who can connect is root.
    pub fn for_anyone() -> Self {
        Self { keys: None }
    }

    /// Whoever has a key of the store's.
    pub async fn by_keys(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let access = Self {
            keys: Some(Keys {
                store,
                known: RwLock::default(),
            }),
        };
        access.refresh().await?;
        Ok(access)
    }

    /// Who has this key; none if nobody has at this moment.
    pub(crate) fn caller(&self, text: Option<&str>, now: Timestamp) -> Option<Caller> {
        let Some(keys) = &self.keys else {
            return Some(Caller::ANYONE);
        };
        // One that cannot be read is looked for like any other.
        let unreadable = || (KeyId::from_bytes([0; 16]), KeySecret([0; 32]));
        let (id, secret) = text.and_then(read_key).unwrap_or_else(unreadable);
        let entry = keys.find(id);
        let kept = entry.as_ref().map_or([0; 32], |entry| entry.key.digest);
        let opens = is_same(&digest(&secret), &kept);
        let entry = entry.filter(|entry| opens && entry.key.is_valid(now))?;
        entry.used.store(now.as_millis(), Ordering::Relaxed);
        Some(Caller {
            tenant: entry.key.tenant,
            role: entry.key.role,
            key: Some(id),
        })
    }

    /// Who has a key of this id; none if it opens nothing at this moment.
    pub(crate) fn by_id(&self, id: KeyId, now: Timestamp) -> Option<Caller> {
        let entry = self.keys.as_ref()?.find(id)?;
        entry.key.is_valid(now).then(|| Caller {
            tenant: entry.key.tenant,
            role: entry.key.role,
            key: Some(id),
        })
    }

    /// Whoever can connect, where no key is asked for.
    pub(crate) fn anyone(&self) -> Option<Caller> {
        self.keys.is_none().then_some(Caller::ANYONE)
    }

    /// What a caller is called: by the label of its key or by the key's id, and a user by its name.
    pub(crate) fn name(&self, caller: Caller) -> Arc<str> {
        let Some((keys, id)) = self.keys.as_ref().zip(caller.key) else {
            // A user has no key: its session says who it is.
            let acting = Acting::now();
            let is_user = *acting.name != *SYSTEM;
            return Arc::clone(if is_user { &acting.name } else { &ANONYMOUS });
        };
        match keys.find(id) {
            Some(entry) => Arc::clone(&entry.name),
            // It was revoked while its request was under way.
            None => Arc::from(id.to_string()),
        }
    }

    /// Whether a caller that was let in may go on.
    pub(crate) fn is_still_valid(&self, caller: Caller, now: Timestamp) -> bool {
        match (&self.keys, caller.key) {
            (Some(keys), Some(id)) => keys.find(id).is_some_and(|entry| entry.key.is_valid(now)),
            (None, _) | (_, None) => true,
        }
    }

    /// Whether somebody can see to the installation.
    pub fn has_root(&self, now: Timestamp) -> bool {
        let is_valid = |entry: &Arc<Entry>| entry.key.role == Role::Root && entry.key.is_valid(now);
        let keys = self.keys.as_ref();
        keys.is_none_or(|keys| keys.all().iter().any(is_valid))
    }

    /// Reads what has changed.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        let Some(keys) = &self.keys else {
            return Ok(());
        };
        let since = keys.read_up_to();
        let changes = keys.store.access().keys_since(since).await?;
        if changes.change == since {
            return Ok(());
        }
        let mut known = keys.known.write().unwrap_or_else(PoisonError::into_inner);
        for key in changes.keys {
            // Two may read at once, and the later answer come first: one that is revoked stays so.
            if key.revoked_at.is_some() {
                known.keys.remove(&key.id);
            } else if changes.change > known.change {
                let (id, name, used) = (key.id, name_of(&key), AtomicI64::new(0));
                known.keys.insert(id, Arc::new(Entry { key, name, used }));
            }
        }
        known.change = known.change.max(changes.change);
        Ok(())
    }

    /// Writes when keys were last used.
    pub async fn write_uses(&self) -> Result<(), StoreError> {
        let Some(keys) = &self.keys else {
            return Ok(());
        };
        let used = keys.take_uses();
        if used.is_empty() {
            return Ok(());
        }
        keys.store.access().use_keys(&used).await
    }

    /// Reads what has changed and, once a minute, writes what was used since `written`.
    pub async fn step(&self, uptime: Duration, written: &mut Duration) -> Result<(), StoreError> {
        self.refresh().await?;
        if uptime.saturating_sub(*written) < limits::KEY_USE_EVERY {
            return Ok(());
        }
        *written = uptime;
        self.write_uses().await
    }

    /// Keeps the keys in memory as they are in the store. Never ends, unless no keys are asked for.
    pub async fn keep(&self, engine: Handle) {
        if self.keys.is_none() {
            return;
        }
        let clock = engine.clock();
        let mut written = clock.uptime();
        let mut failing = false;
        loop {
            tokio::select! {
                biased;
                () = engine.keys_hinted() => {}
                () = clock.sleep(limits::KEYS_POLL) => {}
            }
            let done = self.step(clock.uptime(), &mut written).await;
            // Once for a row of them: whatever is wrong with the store is said elsewhere, too.
            if let (Err(error), false) = (&done, failing) {
                tracing::warn!(%error, "keys cannot be read; those that are known stay valid");
            }
            failing = done.is_err();
        }
    }
}

/// A label may be longer than an owner's name.
fn name_of(key: &AccessKey) -> Arc<str> {
    let label = key.label.as_deref().map(str::trim);
    match label.filter(|label| !label.is_empty()) {
        Some(label) => Arc::from(label.chars().take(limits::OWNER_MAX).collect::<String>()),
        None => Arc::from(key.id.to_string()),
    }
}

impl Keys {
    fn read_up_to(&self) -> u64 {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.change
    }

    fn find(&self, id: KeyId) -> Option<Arc<Entry>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.keys.get(&id).cloned()
    }

    fn all(&self) -> Vec<Arc<Entry>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.keys.values().cloned().collect()
    }

    fn take_uses(&self) -> Vec<(KeyId, Timestamp)> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let used = known.keys.iter().filter_map(|(id, entry)| {
            let at = entry.used.swap(0, Ordering::Relaxed);
            (at != 0).then(|| (*id, Timestamp::from_millis(at)))
        });
        used.collect()
    }
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
