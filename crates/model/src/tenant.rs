//! Tenants: who owns jobs. Each sees its own things, and nothing of the others'.

use std::fmt;

use crate::id::TenantId;
use crate::limits;
use crate::time::Timestamp;

/// What a tenant is called. No two names look alike: there is one case, and nothing but ASCII.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantName(String);

/// A name that no tenant can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a tenant's name has 1 to {} lower-case letters, digits and dashes, and begins with a letter",
    limits::TENANT_NAME_MAX
)]
pub struct TenantNameError;

impl TenantName {
    /// The name of the tenant that is always there.
    pub const DEFAULT: &'static str = "default";

    pub fn new(text: &str) -> Result<Self, TenantNameError> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let begins = text.starts_with(|first: char| first.is_ascii_lowercase());
        if begins && text.len() <= limits::TENANT_NAME_MAX && text.bytes().all(fits) {
            Ok(Self(text.to_owned()))
        } else {
            Err(TenantNameError)
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TenantName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    pub id: TenantId,
    pub name: TenantName,
    /// What it is for.
    pub note: Option<String>,
    pub created_at: Timestamp,
}

impl Tenant {
    /// The one that is always there.
    pub fn is_default(&self) -> bool {
        self.id == TenantId::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_names_look_alike() {
        for name in ["a", "default", "team-7", "a--b", &"a".repeat(64)] {
            assert_eq!(TenantName::new(name).unwrap().as_str(), name);
        }
        let long = "a".repeat(65);
        for name in [
            "", "A", "Team", "7a", "-a", "a_b", "a b", "a ", "é", "а", "a/b", &long,
        ] {
            assert_eq!(TenantName::new(name), Err(TenantNameError), "{name:?}");
        }
    }
}
