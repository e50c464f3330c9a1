//! Users: people who log in to the console. Each has a password, and one role in each tenant that it belongs to.

use std::fmt;

use crate::access::Role;
use crate::id::{KeyId, TenantId, UserId};
use crate::limits;
use crate::time::Timestamp;

/// What a user is called. No two names look alike: there is one case, and nothing but ASCII.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserName(String);

/// A name that no user can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a user's name has 1 to {} lower-case letters, digits, and - _ . + @, and begins with a letter",
    limits::USER_NAME_MAX
)]
pub struct UserNameError;

impl UserName {
    pub fn new(text: &str) -> Result<Self, UserNameError> {
        let is_part = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.+@".contains(&byte)
        };
        let begins = text.starts_with(|first: char| first.is_ascii_lowercase());
        if begins && text.len() <= limits::USER_NAME_MAX && text.bytes().all(is_part) {
            Ok(Self(text.to_owned()))
        } else {
            Err(UserNameError)
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a user may do in one tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Membership {
    pub tenant: TenantId,
    pub role: Role,
}

#[derive(Clone, PartialEq, Eq)]
pub struct User {
    pub id: UserId,
    pub name: UserName,
    /// An argon2id hash with its salt and its cost, as PHC text.
    pub password: String,
    /// In the order of tenants, each once.
    pub members: Vec<Membership>,
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// The hash is no secret that opens anything, and still nobody's to read.
impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}

/// What is to change of a user.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct UserEdit {
    /// Another hash; every session of the user ends.
    pub password: Option<String>,
    pub members: Option<Vec<Membership>>,
}

/// Roles that people have: workers have keys.
pub const USER_ROLES: [Role; 4] = [Role::Reader, Role::Operator, Role::Admin, Role::Root];

impl User {
    pub fn role_in(&self, tenant: TenantId) -> Option<Role> {
        let found = self.members.iter().find(|member| member.tenant == tenant);
        found.map(|member| member.role)
    }

    /// Whether everything that it may do is within one tenant, and no more than a role there: who has that role may
    /// change it.
    pub fn is_within(&self, tenant: TenantId, role: Role) -> bool {
        let is_within = |member: &Membership| member.tenant == tenant && role.allows(member.role);
        self.members.iter().all(is_within)
    }

    pub fn edited(mut self, edit: &UserEdit, now: Timestamp) -> Self {
        if let Some(password) = &edit.password {
            self.password.clone_from(password);
        }
        if let Some(members) = &edit.members {
            self.members.clone_from(members);
        }
        self.updated_at = now;
        self.in_order()
    }

    /// Members in their order.
    pub fn in_order(mut self) -> Self {
        self.members.sort_by_key(|member| member.tenant);
        self.members.dedup_by_key(|member| member.tenant);
        self
    }
}

/// Who a session is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    User(UserId),
    /// Somebody who came by a link that was made with a key: it may do what the key may, for as long as that is valid.
    Key(KeyId),
}

/// A browser that is logged in. Its token is in a cookie; only a digest of it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// SHA-256 of the token, which is random.
    pub digest: [u8; 32],
    pub holder: Holder,
    /// Whose things it shows.
    pub tenant: TenantId,
    pub created_at: Timestamp,
    /// Up to a minute behind.
    pub used_at: Timestamp,
}

impl Session {
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.used_at.plus(limits::SESSION_IDLE) > now
            && self.created_at.plus(limits::SESSION_KEEP) > now
    }
}

/// A link that logs in whoever opens it first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleLink {
    /// SHA-256 of its token.
    pub digest: [u8; 32],
    pub key: KeyId,
    pub tenant: TenantId,
    pub expires_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(members: &[(u128, Role)]) -> User {
        let member = |(tenant, role): &(u128, Role)| Membership {
            tenant: TenantId(uuid::Uuid::from_u128(*tenant)),
            role: *role,
        };
        User {
            id: UserId::from_bytes([1; 16]),
            name: UserName::new("ada").unwrap(),
            password: "$argon2id$hash".to_owned(),
            members: members.iter().map(member).collect(),
            created_at: Timestamp::from_millis(0),
            updated_at: Timestamp::from_millis(0),
        }
    }

    #[test]
    fn a_name_has_one_case_and_nothing_that_resembles_another() {
        for good in ["a", "ada", "ada.lovelace@example.com", "on-call_2+x"] {
            assert_eq!(UserName::new(good).unwrap().as_str(), good);
        }
        let long = "a".repeat(limits::USER_NAME_MAX + 1);
        for bad in ["", "Ada", "1a", "a b", "a<b>", "аda", "a\n", &long] {
            assert_eq!(UserName::new(bad), Err(UserNameError), "{bad:?}");
        }
    }

    #[test]
    fn who_may_change_a_user_may_do_all_that_the_user_may() {
        let one = TenantId(uuid::Uuid::from_u128(1));
        assert!(user(&[(1, Role::Admin)]).is_within(one, Role::Admin));
        assert!(user(&[]).is_within(one, Role::Admin));
        assert!(!user(&[(1, Role::Root)]).is_within(one, Role::Admin));
        assert!(!user(&[(1, Role::Reader), (2, Role::Reader)]).is_within(one, Role::Admin));
    }

    #[test]
    fn a_session_ends_when_it_is_idle_and_when_it_is_old() {
        let at = |secs: u64| Timestamp::from_millis(0).plus(std::time::Duration::from_secs(secs));
        let (idle, keep) = (
            limits::SESSION_IDLE.as_secs(),
            limits::SESSION_KEEP.as_secs(),
        );
        let mut session = Session {
            digest: [0; 32],
            holder: Holder::User(UserId::from_bytes([1; 16])),
            tenant: TenantId::DEFAULT,
            created_at: at(0),
            used_at: at(0),
        };
        assert!(session.is_valid(at(idle - 1)) && !session.is_valid(at(idle)));
        session.used_at = at(keep - 1);
        assert!(session.is_valid(at(keep - 1)) && !session.is_valid(at(keep)));
    }

    #[test]
    fn a_hash_is_not_shown() {
        assert!(!format!("{:?}", user(&[])).contains("argon2id"));
    }
}
