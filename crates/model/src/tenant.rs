//! Tenants: who owns jobs. Each sees its own things, and nothing of the others'.

use std::fmt;

use crate::id::TenantId;
use crate::limits;
use crate::quota::{Quota, Quotas};
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
    pub quotas: Quotas,
    /// Since when it and all that it has is being deleted.
    pub deleting_at: Option<Timestamp>,
}

/// What is to change of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TenantEdit {
    /// Another note, or none; nothing leaves it.
    pub note: Option<Option<String>>,
    /// None is the default.
    pub quotas: Vec<(Quota, Option<u64>)>,
}

impl Tenant {
    /// One that nothing is said of.
    pub fn new(id: TenantId, name: TenantName, created_at: Timestamp) -> Self {
        Self {
            id,
            name,
            note: None,
            created_at,
            quotas: Quotas::default(),
            deleting_at: None,
        }
    }

    pub fn edited(mut self, edit: &TenantEdit) -> Self {
        if let Some(note) = &edit.note {
            self.note.clone_from(note);
        }
        for (quota, max) in &edit.quotas {
            self.quotas.set(*quota, *max);
        }
        self
    }

    /// Whether nothing can come of a request that was under way when it was marked: only then may it go.
    pub fn is_drained(&self, now: Timestamp) -> bool {
        let since = self.deleting_at.map(|at| now.since(at));
        since.is_some_and(|since| since >= limits::TENANT_DRAIN)
    }

    /// The one that is always there.
    pub fn is_default(&self) -> bool {
        self.id == TenantId::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_names_can_be_confused() {
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
