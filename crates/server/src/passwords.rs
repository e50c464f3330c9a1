//! Passwords: hashed by argon2id, beside the runtime, so many at once and no more.
//!
//! What always holds: a name that nobody has costs as much as one with a wrong password.

use std::sync::{Arc, LazyLock};

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordHasher, PasswordVerifier};
use model::limits;
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

use crate::ops::OpError;

/// Requests that wait for room; more are refused.
const WAITING_MAX: usize = 64;

pub(crate) struct Passwords {
    waiting: Semaphore,
    hashing: Arc<Semaphore>,
}

/// What a password is compared with when there is no user: no password has it.
static NOBODY: LazyLock<String> = LazyLock::new(|| hash(&Zeroizing::new(String::new())));

impl Passwords {
    pub(crate) fn new() -> Self {
        Self {
            waiting: Semaphore::new(WAITING_MAX),
            hashing: Arc::new(Semaphore::new(limits::HASHES_MAX)),
        }
    }

    pub(crate) async fn hash(&self, password: Zeroizing<String>) -> Result<String, OpError> {
        let hashed = self.work(move || hash(&password)).await?;
        if hashed.is_empty() {
            return Err(OpError::Overloaded);
        }
        Ok(hashed)
    }

    /// Whether it is the password of this hash; of none it never is.
    pub(crate) async fn is(
        &self,
        password: Zeroizing<String>,
        hashed: Option<String>,
    ) -> Result<bool, OpError> {
        let work = move || {
            let kept = hashed.as_deref().unwrap_or(&NOBODY);
            let is_same = PasswordHash::new(kept).is_ok_and(|kept| {
                Argon2::default()
                    .verify_password(password.as_bytes(), &kept)
                    .is_ok()
            });
            is_same && hashed.is_some()
        };
        self.work(work).await
    }

    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, OpError> {
        let _waiting = self
            .waiting
            .try_acquire()
            .map_err(|_| OpError::Overloaded)?;
        let hashing = Arc::clone(&self.hashing).acquire_owned().await;
        let permit = hashing.map_err(|_| OpError::Overloaded)?;
        let with_permit = move || {
            let done = work();
            drop(permit);
            done
        };
        let done = tokio::task::spawn_blocking(with_permit).await;
        done.map_err(|_| OpError::Overloaded)
    }
}

/// Nothing if it cannot be hashed, which no password within its bounds brings about.
fn hash(password: &Zeroizing<String>) -> String {
    let salt: [u8; 16] = rand::random();
    let hashed = Argon2::default().hash_password_with_salt(password.as_bytes(), &salt);
    hashed.map(|hashed| hashed.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Zeroizing<String> {
        Zeroizing::new(text.to_owned())
    }

    #[tokio::test]
    async fn a_password_is_that_of_its_hash_and_of_no_other() {
        let passwords = Passwords::new();
        let hashed = passwords.hash(text("correct horse")).await.unwrap();
        assert!(
            hashed.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{hashed}"
        );
        let again = passwords.hash(text("correct horse")).await.unwrap();
        assert_ne!(hashed, again, "each has its own salt");
        assert!(
            passwords
                .is(text("correct horse"), Some(hashed.clone()))
                .await
                .unwrap()
        );
        assert!(
            !passwords
                .is(text("Correct horse"), Some(hashed))
                .await
                .unwrap()
        );
        for nobody in ["", "correct horse"] {
            assert!(!passwords.is(text(nobody), None).await.unwrap());
        }
        assert!(
            !passwords
                .is(text(""), Some("no hash".to_owned()))
                .await
                .unwrap()
        );
    }
}
