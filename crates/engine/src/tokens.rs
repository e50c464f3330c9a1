//! Tokens: the right to report on an attempt that is handed over. A token is a code of run, attempt and dispatch under a key
//! of the store, which it names: nothing is written before dispatch, and every node can check it.
//!
//! ```text
//!   pt1_<key>_<attempt>_<dispatched, milliseconds>_<HMAC-SHA256 of label, run, attempt, dispatched>
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use model::hex::{from_hex_exact, to_hex};
use model::{AttemptNo, RunId, Timestamp};
use sha2::Sha256;
use store::{EngineStore, ReportKey, StoreError};
use zeroize::Zeroizing;

use crate::clock::Clock;
use crate::lock;
use crate::vault::{KeyRing, unwrap, wrap};

const PREFIX: &str = "pt1";
const LABEL: &[u8] = b"punctual report token v1";
const KEY_BYTES: usize = 32;
const BLOCK_BYTES: usize = 64;
/// Keys that are not known are read no more often: whoever sends anything must not keep the store busy.
const READ_EVERY: Duration = Duration::from_secs(1);

type Key = Zeroizing<[u8; KEY_BYTES]>;

/// What a good token says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub attempt: AttemptNo,
    pub dispatched_at: Timestamp,
}

/// A token as it was sent.
struct Parts<'a> {
    key: &'a str,
    token: Token,
    code: [u8; 32],
}

#[derive(Default)]
struct Known {
    keys: BTreeMap<String, Key>,
    /// The one that new tokens are made with.
    current: Option<String>,
    /// By uptime.
    read_at: Option<Duration>,
}

pub(crate) struct Tokens {
    store: Arc<dyn EngineStore>,
    clock: Arc<dyn Clock>,
    master_keys: Arc<KeyRing>,
    known: Mutex<Known>,
    /// Held by whoever reads or makes keys: of many attempts that leave at once, one makes a key.
    reading: tokio::sync::Mutex<()>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens")
    }
}

fn mac(key: &Key, run: RunId, token: Token) -> Hmac<Sha256> {
    let mut block = Zeroizing::new([0; BLOCK_BYTES]);
    for (to, from) in block.iter_mut().zip(key.iter()) {
        *to = *from;
    }
    let mut mac = Hmac::<Sha256>::new((&*block).into());
    mac.update(LABEL);
    mac.update(run.as_bytes());
    mac.update(&token.attempt.0.to_be_bytes());
    mac.update(&token.dispatched_at.as_millis().to_be_bytes());
    mac
}

fn parse(text: &str) -> Option<Parts<'_>> {
    let mut parts = text.split('_');
    let is_ours = parts.next() == Some(PREFIX);
    let key = parts.next().filter(|key| key.len() <= 32 && is_ours)?;
    let attempt = AttemptNo(parts.next()?.parse().ok()?);
    let dispatched_at = Timestamp::from_millis(parts.next()?.parse().ok()?);
    let code = from_hex_exact(parts.next()?)?;
    let token = Token {
        attempt,
        dispatched_at,
    };
    parts.next().is_none().then_some(Parts { key, token, code })
}

impl Tokens {
    pub(crate) fn new(
        store: Arc<dyn EngineStore>,
        clock: Arc<dyn Clock>,
        master_keys: Arc<KeyRing>,
    ) -> Self {
        Self {
            store,
            clock,
            master_keys,
            known: Mutex::default(),
            reading: tokio::sync::Mutex::default(),
        }
    }

    /// Whether tokens can be made without a look at the store.
    pub(crate) fn has_key(&self) -> bool {
        lock(&self.known).current.is_some()
    }

    /// Looks for a key that tokens can be made with, and makes one if there is none.
    pub(crate) async fn find_key(&self) -> Result<(), StoreError> {
        let _reading = self.reading.lock().await;
        // Whoever looked before us may have found it.
        if self.has_key() {
            return Ok(());
        }
        self.read_keys(true).await
    }

    /// The master keys were replaced: the keys there are get wrapped by the one that seals now, while the one before is there.
    pub(crate) async fn renew(&self) -> Result<(), StoreError> {
        let _reading = self.reading.lock().await;
        self.read_keys(false).await?;
        // What was wrapped again is current only as it is read after that.
        self.read_keys(false).await
    }

    /// A token for an attempt that is about to leave.
    pub(crate) async fn sign(&self, run: RunId, token: Token) -> Result<String, StoreError> {
        if let Some(text) = self.sign_known(run, token) {
            return Ok(text);
        }
        let _reading = self.reading.lock().await;
        // Whoever looked before us may have found it.
        if let Some(text) = self.sign_known(run, token) {
            return Ok(text);
        }
        self.read_keys(true).await?;
        let unusable = || StoreError::unavailable("there is no key that tokens can be made with");
        self.sign_known(run, token).ok_or_else(unusable)
    }

    fn sign_known(&self, run: RunId, token: Token) -> Option<String> {
        let known = lock(&self.known);
        let id = known.current.as_ref()?;
        let code = mac(known.keys.get(id)?, run, token).finalize().into_bytes();
        let (attempt, at) = (token.attempt, token.dispatched_at.as_millis());
        Some(format!("{PREFIX}_{id}_{attempt}_{at}_{}", to_hex(&code)))
    }

    /// What a token says, if it is good for this run. A key that is not known is looked up.
    pub(crate) async fn check(&self, run: RunId, text: &str) -> Result<Option<Token>, StoreError> {
        let Some(parts) = parse(text) else {
            return Ok(None);
        };
        if !self.knows(parts.key) {
            self.read_for(parts.key).await?;
        }
        let known = lock(&self.known);
        // In constant time, whatever was sent.
        let is_good = |key: &Key| mac(key, run, parts.token).verify_slice(&parts.code).is_ok();
        let good = known.keys.get(parts.key).is_some_and(is_good);
        Ok(good.then_some(parts.token))
    }

    fn knows(&self, key: &str) -> bool {
        lock(&self.known).keys.contains_key(key)
    }

    /// Another node may have made the key a moment ago, so what was read before does not say that there is none. All who wait
    /// meanwhile are served by one read.
    async fn read_for(&self, key: &str) -> Result<(), StoreError> {
        let came_at = self.clock.uptime();
        let _reading = self.reading.lock().await;
        let read_at = lock(&self.known).read_at;
        if self.knows(key) || read_at.is_some_and(|at| at > came_at) {
            return Ok(());
        }
        let since = |at| self.clock.uptime().saturating_sub(at);
        let early = read_at.map_or(Duration::ZERO, |at| READ_EVERY.saturating_sub(since(at)));
        if !early.is_zero() {
            self.clock.sleep(early).await;
        }
        self.read_keys(false).await
    }

    /// Reads the keys there are, and makes one if there is none to make tokens with.
    async fn read_keys(&self, make: bool) -> Result<(), StoreError> {
        lock(&self.known).read_at = Some(self.clock.uptime());
        let mut stored = self.store.handed().report_keys().await?;
        if make && !stored.iter().any(|key| self.is_current(key)) {
            self.make().await?;
            // Another node may have made one at the same moment: all take the newest.
            stored = self.store.handed().report_keys().await?;
        }
        let mut keys = BTreeMap::new();
        for key in &stored {
            if let Some(opened) = self.open(key) {
                self.rewrap(key, &opened).await?;
                keys.insert(key.id.clone(), opened);
            }
        }
        let mut known = lock(&self.known);
        let usable = |key: &&ReportKey| self.is_current(key) && keys.contains_key(&key.id);
        known.current = stored.iter().find(usable).map(|key| key.id.clone());
        // One that another node wrapped meanwhile, by a master key that is not here yet, stays good here.
        known
            .keys
            .retain(|id, _| stored.iter().any(|key| key.id == *id));
        known.keys.extend(keys);
        Ok(())
    }

    /// Whether new tokens may be made with it: it is wrapped by the master key that seals now, if there is one.
    fn is_current(&self, key: &ReportKey) -> bool {
        let keys = self.master_keys.get();
        let master = keys.as_ref().map(|keys| keys.current().id());
        key.master_key.as_deref() == master
    }

    fn open(&self, key: &ReportKey) -> Option<Key> {
        let opened = match &key.master_key {
            None => Zeroizing::new(key.bytes.clone()),
            Some(id) => {
                let keys = self.master_keys.get()?;
                unwrap(keys.get(id)?, &key.bytes, key.id.as_bytes())?
            }
        };
        opened.as_slice().try_into().ok().map(Zeroizing::new)
    }

    async fn make(&self) -> Result<(), StoreError> {
        let bytes: Key = Zeroizing::new(rand::random());
        let key = ReportKey {
            id: to_hex(&rand::random::<[u8; 4]>()),
            created_at: self.clock.now(),
            master_key: None,
            bytes: Vec::new(),
        };
        self.put(key, &bytes).await
    }

    /// One that an older master key wraps stays good when that one is gone; one from before there was a master key does not
    /// stay readable in the store.
    async fn rewrap(&self, key: &ReportKey, opened: &Key) -> Result<(), StoreError> {
        if self.is_current(key) {
            return Ok(());
        }
        self.put(key.clone(), opened).await
    }

    async fn put(&self, mut key: ReportKey, opened: &Key) -> Result<(), StoreError> {
        match self.master_keys.get() {
            None => (key.master_key, key.bytes) = (None, opened.to_vec()),
            Some(keys) => {
                let master = keys.current();
                let Some(wrapped) = wrap(master, &**opened, key.id.as_bytes()) else {
                    return Ok(());
                };
                (key.master_key, key.bytes) = (Some(master.id().to_owned()), wrapped);
            }
        }
        self.store.handed().put_report_key(&key).await
    }
}
