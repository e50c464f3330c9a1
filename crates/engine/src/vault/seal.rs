//! How a value is sealed: AES-256-GCM under a key of its own, which is sealed under a key made from the master key. So the
//! master key can be changed without touching a value, and what lies in the store says nothing about either.

use aes_gcm::aead::{Aead, Payload};
use aes_gcm::{Aes256Gcm, KeyInit};
use model::{Sealed, Secret};
use zeroize::Zeroizing;

use super::master::{MasterKey, MasterKeys};

/// What the key under which others are sealed is made from.
const LABEL: &str = "secrets v1";
const NONCE_BYTES: usize = 12;
const KEY_BYTES: usize = 32;

/// Why a sealed value stays closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    #[error("it is sealed under the master key {0}, which this node does not have")]
    KeyMissing(String),
    /// Somebody changed the row, or it is damaged.
    #[error("it cannot be opened: what is stored of it was changed")]
    Changed,
}

/// The nonce, then what it seals. Each nonce is new chance; a key seals one value, or far fewer keys than would make two
/// nonces alike.
fn encrypt(key: &[u8; KEY_BYTES], text: &[u8], bound_to: &[u8]) -> Option<Vec<u8>> {
    let nonce: [u8; NONCE_BYTES] = rand::random();
    let payload = Payload {
        msg: text,
        aad: bound_to,
    };
    let sealed = Aes256Gcm::new(key.into()).encrypt((&nonce).into(), payload);
    sealed.ok().map(|sealed| [&nonce[..], &sealed].concat())
}

fn decrypt(key: &[u8; KEY_BYTES], sealed: &[u8], bound_to: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>()?;
    let payload = Payload {
        msg: sealed,
        aad: bound_to,
    };
    let opened = Aes256Gcm::new(key.into()).decrypt(nonce.into(), payload);
    opened.ok().map(Zeroizing::new)
}

fn own_key(master: &MasterKey, secret: &Secret) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
    let wrapped = &secret.sealed.wrapped;
    let opened = decrypt(&master.derive(LABEL), wrapped, &secret.bound_to())?;
    opened.as_slice().try_into().ok().map(Zeroizing::new)
}

/// What keys of tokens are wrapped under is made from this.
const TOKENS_LABEL: &str = "report keys v1";

/// A key of our own, sealed under a master key and bound to its name.
pub(crate) fn wrap(master: &MasterKey, key: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    encrypt(&master.derive(TOKENS_LABEL), key, name)
}

/// And opened again; none if somebody changed it.
pub(crate) fn unwrap(
    master: &MasterKey,
    wrapped: &[u8],
    name: &[u8],
) -> Option<Zeroizing<Vec<u8>>> {
    decrypt(&master.derive(TOKENS_LABEL), wrapped, name)
}

fn find<'a>(keys: &'a MasterKeys, secret: &Secret) -> Result<&'a MasterKey, OpenError> {
    let id = &secret.sealed.master_key;
    keys.get(id)
        .ok_or_else(|| OpenError::KeyMissing(id.clone()))
}

/// Seals a value for a secret as it stands: its name, its version and its hosts are bound to it.
pub(super) fn seal(keys: &MasterKeys, secret: &Secret, value: &str) -> Result<Sealed, OpenError> {
    let bound_to = secret.bound_to();
    let own: Zeroizing<[u8; KEY_BYTES]> = Zeroizing::new(rand::random());
    let master = keys.current();
    let wrapped = encrypt(&master.derive(LABEL), &*own, &bound_to);
    let value = encrypt(&own, value.as_bytes(), &bound_to);
    let (Some(wrapped), Some(value)) = (wrapped, value) else {
        return Err(OpenError::Changed);
    };
    Ok(Sealed {
        master_key: master.id().to_owned(),
        wrapped,
        value,
    })
}

pub(super) fn open(keys: &MasterKeys, secret: &Secret) -> Result<Zeroizing<String>, OpenError> {
    let own = own_key(find(keys, secret)?, secret).ok_or(OpenError::Changed)?;
    let opened = decrypt(&own, &secret.sealed.value, &secret.bound_to());
    let opened = opened.ok_or(OpenError::Changed)?;
    let text = str::from_utf8(&opened).map_err(|_| OpenError::Changed)?;
    Ok(Zeroizing::new(text.to_owned()))
}

/// The same value, its own key sealed under the current master key.
pub(super) fn rewrap(keys: &MasterKeys, secret: &Secret) -> Result<Secret, OpenError> {
    let own = own_key(find(keys, secret)?, secret).ok_or(OpenError::Changed)?;
    let master = keys.current();
    let wrapped = encrypt(&master.derive(LABEL), &*own, &secret.bound_to());
    let mut secret = secret.clone();
    secret.sealed.wrapped = wrapped.ok_or(OpenError::Changed)?;
    secret.sealed.master_key = master.id().to_owned();
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use model::{HostPattern, SecretName, TenantId, Timestamp};

    use super::*;

    fn keys(byte: u8) -> MasterKeys {
        MasterKeys::new(MasterKey::new([byte; 32]))
    }

    fn sealed(keys: &MasterKeys, value: &str) -> Secret {
        let mut secret = Secret {
            tenant: TenantId::DEFAULT,
            name: SecretName::new("a").unwrap(),
            version: 1,
            hosts: vec![HostPattern::new("example.com").unwrap()],
            note: None,
            created_at: Timestamp::from_millis(0),
            updated_at: Timestamp::from_millis(0),
            sealed: Sealed {
                master_key: String::new(),
                wrapped: Vec::new(),
                value: Vec::new(),
            },
        };
        secret.sealed = seal(keys, &secret, value).unwrap();
        secret
    }

    #[test]
    fn a_sealed_value_opens_under_its_key_and_no_other() {
        let keys = keys(1);
        let secret = sealed(&keys, "planted");
        assert_eq!(open(&keys, &secret).unwrap().as_str(), "planted");
        assert_ne!(secret.sealed, sealed(&keys, "planted").sealed, "chance");
        let id = keys.current().id().to_owned();
        let other = self::keys(2);
        assert_eq!(open(&other, &secret), Err(OpenError::KeyMissing(id)));
        let mut named = secret;
        named.sealed.master_key = other.current().id().to_owned();
        assert_eq!(open(&other, &named), Err(OpenError::Changed));
    }

    #[test]
    fn whatever_is_changed_in_the_store_keeps_it_closed() {
        let keys = keys(1);
        let secret = sealed(&keys, "planted");
        let check = |change: fn(&mut Secret)| {
            let mut changed = secret.clone();
            change(&mut changed);
            assert_eq!(open(&keys, &changed), Err(OpenError::Changed));
            assert_eq!(rewrap(&keys, &changed), Err(OpenError::Changed));
        };
        check(|it| it.tenant = TenantId(uuid::Uuid::from_u128(7)));
        check(|it| it.name = SecretName::new("b").unwrap());
        check(|it| it.version = 2);
        check(|it| it.hosts = vec![HostPattern::new("evil.org").unwrap()]);
        check(|it| it.sealed.wrapped[20] ^= 1);
        check(|it| it.sealed.wrapped.clear());
        let mut cut = secret.clone();
        cut.sealed.value.pop();
        assert_eq!(open(&keys, &cut), Err(OpenError::Changed));
    }

    #[test]
    fn a_rewrapped_value_needs_the_new_key_only() {
        let old = keys(1);
        let secret = sealed(&old, "planted");
        let both = keys(2).with_old(&old.current().to_text()).unwrap();
        let rewrapped = rewrap(&both, &secret).unwrap();
        assert_eq!(rewrapped.sealed.value, secret.sealed.value);
        assert_eq!(open(&keys(2), &rewrapped).unwrap().as_str(), "planted");
        assert_eq!(open(&both, &secret).unwrap().as_str(), "planted");
    }
}
