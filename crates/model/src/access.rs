//! Who may do what: keys and the roles that they give.
//!
//! A key is `punctual_<id>_<secret>`: the id is found in memory, the secret is 256 bits of chance. Only a digest of the
//! secret is kept, so that nobody who reads the store can call the API.

use std::fmt;

use crate::id::{KeyId, TenantId};
use crate::queue::QueueName;
use crate::time::Timestamp;

/// What a key allows. Each role may do what those before it may, except for workers, who stand apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Sees everything of its tenant.
    Reader,
    /// Pauses, resumes, runs, cancels and replays.
    Operator,
    /// Does everything of its tenant: jobs, calendars, keys.
    Admin,
    /// Sees to the installation: nodes and metrics.
    Root,
    /// Gets work from the queues that its key names, and sees nothing else.
    Worker,
}

impl Role {
    pub const ALL: [Self; 5] = [
        Self::Reader,
        Self::Operator,
        Self::Admin,
        Self::Root,
        Self::Worker,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Operator => "operator",
            Self::Admin => "admin",
            Self::Root => "root",
            Self::Worker => "worker",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }

    /// Whether this role may do what at least `needed` may. What a worker may do is a part of what an admin may; a worker
    /// itself may do nothing that is another's.
    pub fn allows(self, needed: Self) -> bool {
        let rank = |role: Self| match role {
            Self::Reader => 0,
            Self::Operator => 1,
            Self::Admin | Self::Worker => 2,
            Self::Root => 3,
        };
        if self == Self::Worker {
            needed == Self::Worker
        } else {
            rank(self) >= rank(needed)
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A key as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessKey {
    pub id: KeyId,
    pub tenant: TenantId,
    pub role: Role,
    /// What it is for, in the words of whoever made it.
    pub label: Option<String>,
    /// SHA-256 of the secret. The secret is random, so that nothing slower is needed.
    pub digest: [u8; 32],
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    /// Up to a minute behind.
    pub last_used_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    /// What a worker gets its work from; no other role has any.
    pub queues: Vec<QueueName>,
}

impl AccessKey {
    /// When it ended, or will end.
    pub fn ends_at(&self) -> Option<Timestamp> {
        match (self.expires_at, self.revoked_at) {
            (Some(expires_at), Some(revoked_at)) => Some(expires_at.min(revoked_at)),
            (expires_at, revoked_at) => expires_at.or(revoked_at),
        }
    }

    /// Whether it opens anything at this moment.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|expires_at| expires_at > now)
    }

    /// Whether these root keys may do without those of a tenant: one that is good for ever has to stay.
    pub fn may_do_without(roots: &[Self], tenant: TenantId) -> bool {
        let stays = |key: &&Self| key.revoked_at.is_none() && key.expires_at.is_none();
        let mut staying = roots.iter().filter(stays).peekable();
        staying.peek().is_none() || staying.any(|key| key.tenant != tenant)
    }

    /// Whether it may be revoked while these are the root keys: the last one that is good for ever stays, because nobody
    /// could make another.
    pub fn may_be_revoked(&self, roots: &[Self]) -> bool {
        let stays = |key: &Self| key.revoked_at.is_none() && key.expires_at.is_none();
        let is_last = !roots.iter().any(|root| root.id != self.id && stays(root));
        self.role != Role::Root || !stays(self) || !is_last
    }
}

/// The part of a key that proves it. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct KeySecret(pub [u8; 32]);

impl fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

const PREFIX: &str = "punctual_";
const ID_LEN: usize = 32;
const SECRET_LEN: usize = 64;

/// A key as its holder writes it.
pub fn write_key(id: KeyId, secret: &KeySecret) -> String {
    let hex: String = secret.0.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{PREFIX}{}_{hex}", id.0.simple())
}

/// Reads a key; none if it is not of this form.
pub fn read_key(text: &str) -> Option<(KeyId, KeySecret)> {
    let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
    if id.len() != ID_LEN || secret.len() != SECRET_LEN {
        return None;
    }
    Some((KeyId::from_bytes(unhex(id)?), KeySecret(unhex(secret)?)))
}

/// Bytes as lower-case hexadecimal digits.
fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: &u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        let [high, low] = pair else {
            return None;
        };
        *byte = digit(high)? << 4 | digit(low)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: u8, role: Role) -> AccessKey {
        AccessKey {
            id: KeyId::from_bytes([id; 16]),
            tenant: TenantId::DEFAULT,
            role,
            label: None,
            digest: [0; 32],
            created_at: Timestamp::from_millis(0),
            expires_at: None,
            last_used_at: None,
            revoked_at: None,
            queues: Vec::new(),
        }
    }

    #[test]
    fn a_key_reads_back_as_it_was_written() {
        let (id, secret) = (KeyId::from_bytes([0xa7; 16]), KeySecret([0x0f; 32]));
        let text = write_key(id, &secret);
        assert!(text.starts_with("punctual_a7a7"), "{text}");
        assert_eq!(text.len(), PREFIX.len() + ID_LEN + 1 + SECRET_LEN);
        assert_eq!(read_key(&text), Some((id, secret)));
        assert_eq!(format!("{:?}", KeySecret([7; 32])), "***");
    }

    #[test]
    fn only_whole_keys_in_lower_case_are_read() {
        let text = write_key(KeyId::from_bytes([0xab; 16]), &KeySecret([0xcd; 32]));
        let (short, shifted) = (&text[..text.len() - 1], text.replacen("ab", "+b", 1));
        let wrong = [
            String::new(),
            short.to_owned(),
            format!("{text}0"),
            format!("{text} "),
            format!(" {text}"),
            text.to_uppercase(),
            text.replacen("punctual", "Punctual", 1),
            text.replace("cd", "CD"),
            text.replacen("ab", "ag", 1),
            text.replacen("ab", "é", 1),
            shifted,
        ];
        for text in wrong {
            assert_eq!(read_key(&text), None, "{text:?}");
        }
    }

    #[test]
    fn each_role_may_do_what_those_before_it_may() {
        let ladder = Role::ALL.into_iter().filter(|role| *role != Role::Worker);
        for (at, role) in ladder.clone().enumerate() {
            for (needed_at, needed) in ladder.clone().enumerate() {
                assert_eq!(role.allows(needed), at >= needed_at);
            }
        }
        for role in Role::ALL {
            assert_eq!(Role::parse(role.as_str()), Some(role));
        }
        assert_eq!(Role::parse("Root"), None);
    }

    #[test]
    fn a_worker_may_do_nothing_that_is_another_s() {
        for role in Role::ALL {
            assert_eq!(Role::Worker.allows(role), role == Role::Worker, "{role}");
            let may_all = [Role::Admin, Role::Root, Role::Worker].contains(&role);
            assert_eq!(role.allows(Role::Worker), may_all, "{role}");
        }
    }

    #[test]
    fn a_key_is_valid_until_it_expires_or_is_revoked() {
        let at = Timestamp::from_millis;
        let mut key = key(1, Role::Reader);
        assert!(key.is_valid(at(i64::MAX)) && key.ends_at().is_none());
        key.expires_at = Some(at(10));
        assert!(key.is_valid(at(9)) && !key.is_valid(at(10)));
        key.revoked_at = Some(at(5));
        assert!(!key.is_valid(at(1)), "the clock may have gone back");
        assert_eq!(key.ends_at(), Some(at(5)));
    }

    #[test]
    fn the_last_root_key_that_does_not_expire_stays() {
        let (root, mut other) = (key(1, Role::Root), key(2, Role::Root));
        assert!(!root.may_be_revoked(std::slice::from_ref(&root)));
        assert!(root.may_be_revoked(&[root.clone(), other.clone()]));
        other.expires_at = Some(Timestamp::from_millis(10));
        assert!(!root.may_be_revoked(&[root.clone(), other.clone()]));
        assert!(other.may_be_revoked(&[root.clone(), other.clone()]));
        assert!(key(3, Role::Admin).may_be_revoked(&[root]));
    }
}
