//! Master keys. Everything that is sealed is sealed under a key that is made from one of them, so that what lies in the
//! store is of no use without it. The first is current: it seals. Older ones only open what they once sealed.

use std::fmt;
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use hmac::{Hmac, KeyInit, Mac};
use model::hex::{from_hex_exact, to_hex};
use model::limits;
use sha2::{Digest, Sha256};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::lock;

const KEY_BYTES: usize = 32;
/// A block of SHA-256: a shorter key of an HMAC is filled up with zeros to this.
const BLOCK_BYTES: usize = 64;
/// What a key's short name is made from, so that it says nothing about anything else that is made from the key.
const ID_LABEL: &[u8] = b"punctual master key id v1";

/// A text that is not a master key. It never repeats the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeyText {
    #[error("there is no key in it")]
    Empty,
    #[error("at most {} keys are read", limits::MASTER_KEYS_MAX)]
    TooMany,
    #[error(
        "key {number} is not 32 bytes as 64 hex digits or as base64: make one with openssl rand -hex 32"
    )]
    Unreadable { number: usize },
    #[error("key {number} is there twice")]
    Twice { number: usize },
}

/// One key, and the short name by which sealed things say which key they need.
#[derive(Clone)]
pub struct MasterKey {
    bytes: Zeroizing<[u8; KEY_BYTES]>,
    id: String,
}

impl MasterKey {
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        let hash = Sha256::new().chain_update(ID_LABEL).chain_update(bytes);
        let id = to_hex(hash.finalize().get(..4).unwrap_or_default());
        let bytes = Zeroizing::new(bytes);
        Self { bytes, id }
    }

    /// 64 hex digits, or base64 of either alphabet.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = from_hex_exact(text).or_else(|| of_base64(text))?;
        Some(Self::new(bytes))
    }

    /// Eight hex digits. Two keys have two names, and the name does not help to find the key.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// A key for one purpose: HMAC-SHA256 of the label. Who has it learns nothing of the master key or of the others.
    pub fn derive(&self, label: &str) -> Zeroizing<[u8; KEY_BYTES]> {
        let mut block = Zeroizing::new([0; BLOCK_BYTES]);
        for (to, from) in block.iter_mut().zip(self.bytes.iter()) {
            *to = *from;
        }
        let mut mac = Hmac::<Sha256>::new((&*block).into());
        mac.update(label.as_bytes());
        Zeroizing::new(mac.finalize().into_bytes().into())
    }

    /// The key as its file holds it.
    pub fn to_text(&self) -> Zeroizing<String> {
        Zeroizing::new(to_hex(&*self.bytes))
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MasterKey({})", self.id)
    }
}

impl PartialEq for MasterKey {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for MasterKey {}

/// What a node has: one key that seals, and those that came before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MasterKeys {
    current: MasterKey,
    old: Vec<MasterKey>,
}

impl MasterKeys {
    pub fn new(current: MasterKey) -> Self {
        let old = Vec::new();
        Self { current, old }
    }

    /// One key per line, the current one first; lines that begin with `#` are remarks.
    pub fn parse(text: &str) -> Result<Self, KeyText> {
        Self::of(read(text)?)
    }

    /// With more keys that only open.
    pub fn with_old(mut self, text: &str) -> Result<Self, KeyText> {
        let mut keys = vec![self.current];
        keys.append(&mut self.old);
        for key in read(text)? {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        Self::of(keys)
    }

    fn of(keys: Vec<MasterKey>) -> Result<Self, KeyText> {
        let mut keys = keys.into_iter();
        let current = keys.next().ok_or(KeyText::Empty)?;
        let old: Vec<_> = keys.collect();
        if old.len() >= limits::MASTER_KEYS_MAX {
            return Err(KeyText::TooMany);
        }
        Ok(Self { current, old })
    }

    /// The one that seals.
    pub fn current(&self) -> &MasterKey {
        &self.current
    }

    /// The one of this name, current or old.
    pub fn get(&self, id: &str) -> Option<&MasterKey> {
        self.iter().find(|key| key.id == id)
    }

    /// The current one first.
    pub fn iter(&self) -> impl Iterator<Item = &MasterKey> {
        std::iter::once(&self.current).chain(&self.old)
    }
}

/// The keys of a node, if it has any. They may be replaced while it works: whoever needs them takes those of the moment.
#[derive(Debug, Default)]
pub struct KeyRing(Mutex<Option<Arc<MasterKeys>>>);

impl KeyRing {
    pub fn new(keys: Option<Arc<MasterKeys>>) -> Self {
        Self(Mutex::new(keys))
    }

    pub fn get(&self) -> Option<Arc<MasterKeys>> {
        lock(&self.0).clone()
    }

    pub(crate) fn replace(&self, keys: Arc<MasterKeys>) {
        *lock(&self.0) = Some(keys);
    }
}

fn read(text: &str) -> Result<Vec<MasterKey>, KeyText> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut keys: Vec<MasterKey> = Vec::new();
    for (at, line) in lines.enumerate() {
        let number = at + 1;
        if number > limits::MASTER_KEYS_MAX {
            return Err(KeyText::TooMany);
        }
        let key = MasterKey::parse(line).ok_or(KeyText::Unreadable { number })?;
        if keys.contains(&key) {
            return Err(KeyText::Twice { number });
        }
        keys.push(key);
    }
    Ok(keys)
}

fn of_base64(text: &str) -> Option<[u8; KEY_BYTES]> {
    let config =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    [&alphabet::STANDARD, &alphabet::URL_SAFE]
        .into_iter()
        .find_map(|alphabet| {
            let decoded = GeneralPurpose::new(alphabet, config).decode(text).ok()?;
            decoded.try_into().ok()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    #[test]
    fn a_key_is_read_from_hex_and_from_base64() {
        let key = MasterKey::parse(HEX).unwrap();
        assert_eq!(key.to_text().as_str(), HEX);
        for text in [
            "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
            "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
            &HEX.to_uppercase(),
        ] {
            assert_eq!(MasterKey::parse(text).unwrap().to_text(), key.to_text());
        }
        let signs = [0xfb; 32];
        for text in [
            "+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/s=",
            "-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_s",
        ] {
            assert_eq!(MasterKey::parse(text), Some(MasterKey::new(signs)));
        }
        for text in ["", "abc", &HEX[2..], &HEX.replace('0', "g"), "AAEC"] {
            assert_eq!(MasterKey::parse(text), None, "{text}");
        }
    }

    #[test]
    fn names_and_derived_keys_never_change() {
        let key = MasterKey::parse(HEX).unwrap();
        assert_eq!(key.id(), "164febdf");
        // HMAC-SHA256 by another program: openssl dgst -sha256 -mac HMAC -macopt hexkey:…
        let derived = key.derive("audit v1");
        let expected = "9a8292e83b4e044b0ded5bc59c521e2de136eba100a0ec1c1927e3ba02200f4e";
        assert_eq!(to_hex(&*derived), expected);
        assert_ne!(derived, key.derive("secrets v1"));
        assert_eq!(format!("{key:?}"), "MasterKey(164febdf)");
    }

    #[test]
    fn the_first_key_seals_and_all_open() {
        let other = MasterKey::new([7; 32]);
        let text = format!("# ours\n{HEX}\n\n{}\n", other.to_text().as_str());
        let keys = MasterKeys::parse(&text).unwrap();
        assert_eq!(keys.current().to_text().as_str(), HEX);
        assert_eq!(keys.get(other.id()), Some(&other));
        let third = MasterKey::new([9; 32]);
        let both = format!(
            "{}\n{}\n",
            third.to_text().as_str(),
            other.to_text().as_str()
        );
        let keys = keys.with_old(&both).unwrap();
        assert_eq!(keys.current().to_text().as_str(), HEX);
        assert_eq!(keys.iter().count(), 3);
        assert_eq!(keys.get("00000000"), None);
    }

    #[test]
    fn what_is_no_key_is_refused_by_its_number_and_not_repeated() {
        let check = |text: &str, expected| assert_eq!(MasterKeys::parse(text), Err(expected));
        check("", KeyText::Empty);
        check("# nothing\n", KeyText::Empty);
        check(&format!("{HEX}\nsecret"), KeyText::Unreadable { number: 2 });
        check(&format!("{HEX}\n{HEX}"), KeyText::Twice { number: 2 });
        let many: Vec<_> = (0..=limits::MASTER_KEYS_MAX)
            .map(|at| {
                MasterKey::new([u8::try_from(at).unwrap(); 32])
                    .to_text()
                    .to_string()
            })
            .collect();
        check(&many.join("\n"), KeyText::TooMany);
        let keys = MasterKeys::parse(&many[1..].join("\n")).unwrap();
        assert_eq!(keys.with_old(&many[0]), Err(KeyText::TooMany));
    }
}
