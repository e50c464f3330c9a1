//! Signatures by Standard Webhooks: whoever has the secret sees that a request came from here, and that nobody changed it.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use model::{Timestamp, limits};
use sha2::Sha256;
use zeroize::Zeroizing;

/// What the guide says about checking signatures is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/receivers.md")]
struct Guide;

/// How a signing secret begins, as people write it.
const PREFIX: &str = "whsec_";
/// What a signature begins with: HMAC-SHA256.
const VERSION: &str = "v1,";
/// A block of SHA-256: a longer key of an HMAC would be hashed first, a shorter one is filled up with zeros.
const BLOCK_BYTES: usize = 64;

const _: () = assert!(limits::SIGNING_BYTES_MAX <= BLOCK_BYTES);

/// A text that is no signing secret. It never repeats the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a signing secret is written as {PREFIX} and {} to {} bytes in base64",
    limits::SIGNING_BYTES_MIN,
    limits::SIGNING_BYTES_MAX
)]
pub struct SecretText;

/// A secret of these bytes, as people write it.
pub fn secret_of(bytes: &[u8; 32]) -> Zeroizing<String> {
    Zeroizing::new(format!("{PREFIX}{}", STANDARD.encode(bytes)))
}

fn read(text: &str) -> Result<Hmac<Sha256>, SecretText> {
    let encoded = text.strip_prefix(PREFIX).ok_or(SecretText)?;
    let bytes = STANDARD.decode(encoded).map_err(|_| SecretText)?;
    let bytes = Zeroizing::new(bytes);
    if !(limits::SIGNING_BYTES_MIN..=limits::SIGNING_BYTES_MAX).contains(&bytes.len()) {
        return Err(SecretText);
    }
    let mut block = Zeroizing::new([0; BLOCK_BYTES]);
    for (to, from) in block.iter_mut().zip(bytes.iter()) {
        *to = *from;
    }
    Ok(Hmac::new((&*block).into()))
}

/// Refuses what is no signing secret.
pub fn check_secret(text: &str) -> Result<(), SecretText> {
    read(text).map(|_| ())
}

/// Signs with every secret that it was made of: a receiver that knows one of them is content.
#[derive(Clone)]
pub struct Signer {
    keys: Vec<Hmac<Sha256>>,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({})", self.keys.len())
    }
}

impl Signer {
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Result<Self, SecretText> {
        let keys = secrets.into_iter().map(read).collect::<Result<_, _>>()?;
        Ok(Self { keys })
    }

    /// The value of `webhook-signature`: one signature for each secret, with spaces between them.
    pub fn sign(&self, id: &str, at: Timestamp, body: &[u8]) -> String {
        let mut signed = String::with_capacity(self.keys.len() * 48);
        for key in &self.keys {
            let mut mac = key.clone();
            mac.update(id.as_bytes());
            mac.update(b".");
            mac.update(seconds(at).to_string().as_bytes());
            mac.update(b".");
            mac.update(body);
            if !signed.is_empty() {
                signed.push(' ');
            }
            signed.push_str(VERSION);
            STANDARD.encode_string(mac.finalize().into_bytes(), &mut signed);
        }
        signed
    }
}

/// The value of `webhook-timestamp`.
pub fn seconds(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vector that the libraries of Standard Webhooks are tested with.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const AT: Timestamp = Timestamp::from_millis(1_614_265_330_000);
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    #[test]
    fn the_published_vector_is_signed_as_published() {
        let signer = Signer::new([SECRET]).unwrap();
        assert_eq!(signer.sign(ID, AT, BODY), SIGNATURE);
        let late = Timestamp::from_millis(1_614_265_330_999);
        assert_eq!(signer.sign(ID, late, BODY), SIGNATURE, "whole seconds");
        assert_ne!(signer.sign(ID, AT, b"{}"), SIGNATURE);
        assert_ne!(signer.sign("msg_other", AT, BODY), SIGNATURE);
        assert_ne!(
            signer.sign(ID, AT.plus(std::time::Duration::from_secs(1)), BODY),
            SIGNATURE
        );
    }

    #[test]
    fn two_secrets_make_two_signatures() {
        let other = secret_of(&[7; 32]);
        let alone = Signer::new([other.as_str()]).unwrap().sign(ID, AT, BODY);
        let both = Signer::new([SECRET, other.as_str()]).unwrap();
        assert_eq!(both.sign(ID, AT, BODY), format!("{SIGNATURE} {alone}"));
    }

    #[test]
    fn a_secret_has_24_to_64_bytes_in_base64() {
        let text = |bytes: usize| format!("whsec_{}", STANDARD.encode(vec![1; bytes]));
        for bytes in [24, 32, 64] {
            assert_eq!(check_secret(&text(bytes)), Ok(()), "{bytes}");
        }
        assert_eq!(check_secret(&secret_of(&[9; 32])), Ok(()));
        for text in [
            &text(23),
            &text(65),
            "",
            "whsec_",
            "whsec_????",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        ] {
            assert_eq!(check_secret(text), Err(SecretText), "{text}");
        }
        assert!(!format!("{:?}", Signer::new([SECRET]).unwrap()).contains("Mf"));
    }
}
