//! Secrets: values that somebody gives once and nobody gets back. A secret has a name, and names the hosts that it may be
//! sent to.

use std::fmt;

use crate::id::TenantId;
use crate::limits;
use crate::signing::Place;
use crate::time::Timestamp;

/// What a secret is called within its tenant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretName(String);

/// A name that no secret can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a secret's name has 1 to {} lower-case letters, digits, dashes, underscores and dots, begins with a letter, and is not {}",
    limits::SECRET_NAME_MAX,
    SecretName::RESERVED
)]
pub struct SecretNameError;

impl SecretName {
    /// What stands in its place in a path means something else.
    pub const RESERVED: &'static str = "rewrap";
    /// Where the tenant's proxy is kept. It begins as no name of a secret does.
    const PROXY: &'static str = "$proxy";

    pub fn new(text: &str) -> Result<Self, SecretNameError> {
        let is_part =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
        let begins = text.starts_with(|first: char| first.is_ascii_lowercase());
        let fits = text.len() <= limits::SECRET_NAME_MAX && text.bytes().all(is_part);
        if begins && fits && text != Self::RESERVED {
            Ok(Self(text.to_owned()))
        } else {
            Err(SecretNameError)
        }
    }

    /// A name as it is stored: also that of a signing secret's place, and that of the tenant's proxy, which nobody can write.
    pub fn stored(text: &str) -> Result<Self, SecretNameError> {
        if text == Self::PROXY {
            return Ok(Self::of_proxy());
        }
        let place = Place::ALL.into_iter().find(|place| place.as_str() == text);
        place.map_or_else(|| Self::new(text), |place| Ok(Self::of_place(place)))
    }

    /// Where a signing secret is kept.
    pub fn of_place(place: Place) -> Self {
        Self(place.as_str().to_owned())
    }

    /// Where the tenant's proxy is kept.
    pub fn of_proxy() -> Self {
        Self(Self::PROXY.to_owned())
    }

    pub fn is_of_proxy(&self) -> bool {
        self.0 == Self::PROXY
    }

    /// Whether somebody gave it, and may read what stands under it. The others are listed apart.
    pub fn is_given(&self) -> bool {
        !self.is_of_proxy() && self.place().is_none()
    }

    /// The place of a signing secret, if it is one.
    pub fn place(&self) -> Option<Place> {
        Place::ALL
            .into_iter()
            .find(|place| place.as_str() == self.0)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Hosts that a secret may be sent to: one by its name or address, or all below a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPattern(String);

/// A text that names no hosts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a host is written as example.com, *.example.com, 127.0.0.1 or [::1], without scheme, port and path"
)]
pub struct HostPatternError;

const BELOW: &str = "*.";

impl HostPattern {
    pub fn new(text: &str) -> Result<Self, HostPatternError> {
        let text = text.to_ascii_lowercase();
        let name = text.strip_prefix(BELOW).unwrap_or(&text);
        let is_name = is_host_name(name);
        // All hosts below a name of one part would be those of everybody.
        let is_wide = text.starts_with(BELOW) && !name.contains('.');
        let is_v6 = |text: &str| {
            let inside = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
            inside.is_some_and(|it| it.parse::<std::net::Ipv6Addr>().is_ok())
        };
        if text.len() <= limits::HOST_MAX && (is_name && !is_wide || is_v6(&text)) {
            Ok(Self(text))
        } else {
            Err(HostPatternError)
        }
    }

    /// Whether a target at this host, as its address names it, is one of them.
    pub fn matches(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let host = host.strip_suffix('.').unwrap_or(&host);
        match self.0.strip_prefix(BELOW) {
            // `*.example.com` is not example.com itself, and not badexample.com.
            Some(name) => {
                let before = host.strip_suffix(name).and_then(|it| it.strip_suffix('.'));
                before.is_some_and(|before| !before.is_empty())
            }
            None => host == self.0,
        }
    }

    /// Whether every host of the other is one of these.
    fn covers(&self, other: &Self) -> bool {
        self == other || self.matches(&other.0)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_host_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        (1..=63).contains(&label.len()) && label.bytes().all(is_part)
    };
    name.split('.').all(is_label)
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A secret's value as it is kept: sealed under a key of its own, which is sealed under the master key.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed {
    /// The short name of the master key.
    pub master_key: String,
    /// The value's own key.
    pub wrapped: Vec<u8>,
    pub value: Vec<u8>,
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed({})", self.master_key)
    }
}

/// A secret as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    pub tenant: TenantId,
    pub name: SecretName,
    /// Counts changes, of its value and of its hosts alike.
    pub version: u32,
    pub hosts: Vec<HostPattern>,
    /// What it is for.
    pub note: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub sealed: Sealed,
}

impl Secret {
    /// Whether it may be sent to this host.
    pub fn allows(&self, host: &str) -> bool {
        self.hosts.iter().any(|pattern| pattern.matches(host))
    }

    /// The first of these that names a host which its value was not given for. Whoever cannot read the value must not
    /// be able to have it sent there.
    pub fn new_host<'a>(&self, hosts: &'a [HostPattern]) -> Option<&'a HostPattern> {
        let mut hosts = hosts.iter();
        hosts.find(|host| !self.hosts.iter().any(|pattern| pattern.covers(host)))
    }

    /// What its value is bound to: whoever changes one of these in the store cannot have it opened any more. So a
    /// sealed value cannot be moved to another secret, to another tenant or to another host.
    pub fn bound_to(&self) -> Vec<u8> {
        let hosts: Vec<&str> = self.hosts.iter().map(HostPattern::as_str).collect();
        // No part holds a line's end, so that no two of these are alike.
        let text = format!(
            "punctual secret v1\n{}\n{}\n{}\n{}",
            self.tenant,
            self.name,
            self.version,
            hosts.join(" ")
        );
        text.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        for name in ["a", "github-token", "db.password_2", &"a".repeat(64)] {
            assert_eq!(SecretName::new(name).unwrap().as_str(), name);
        }
        let long = "a".repeat(65);
        for name in [
            "", "A", "1a", "-a", "a b", "a'b", "a\nb", "é", "a/b", "rewrap", &long,
        ] {
            assert_eq!(SecretName::new(name), Err(SecretNameError), "{name:?}");
        }
    }

    #[test]
    fn hosts_are_named_one_by_one_or_below_a_name() {
        for text in [
            "example.com",
            "*.example.com",
            "localhost",
            "127.0.0.1",
            "[::1]",
            "a_b.c",
        ] {
            assert_eq!(HostPattern::new(text).unwrap().as_str(), text);
        }
        assert_eq!(
            HostPattern::new("Example.COM").unwrap().as_str(),
            "example.com"
        );
        for text in [
            "",
            "*",
            "*.com",
            "*.",
            "a.*.com",
            "*.*.com",
            "a..b",
            "https://a",
            "a:80",
            "a/b",
            ".a",
            "[::1",
            "[a]",
            "é",
            "*.[::1]",
        ] {
            assert_eq!(HostPattern::new(text), Err(HostPatternError), "{text:?}");
        }
    }

    #[test]
    fn a_host_matches_itself_and_what_is_below_a_name() {
        let check = |pattern: &str, host: &str, expected: bool| {
            let matches = HostPattern::new(pattern).unwrap().matches(host);
            assert_eq!(matches, expected, "{pattern} {host}");
        };
        check("example.com", "example.com", true);
        check("example.com", "EXAMPLE.com", true);
        check("example.com", "example.com.", true);
        check("example.com", "a.example.com", false);
        check("example.com", "example.com.evil.org", false);
        check("*.example.com", "a.example.com", true);
        check("*.example.com", "a.b.example.com", true);
        check("*.example.com", "example.com", false);
        check("*.example.com", ".example.com", false);
        check("*.example.com", "badexample.com", false);
        check("[::1]", "[::1]", true);
    }

    #[test]
    fn a_pattern_covers_what_is_below_it() {
        let check = |pattern: &str, other: &str, expected: bool| {
            let pattern = HostPattern::new(pattern).unwrap();
            let covers = pattern.covers(&HostPattern::new(other).unwrap());
            assert_eq!(covers, expected, "{pattern} {other}");
        };
        check("example.com", "example.com", true);
        check("*.example.com", "*.example.com", true);
        check("*.example.com", "a.example.com", true);
        check("*.example.com", "*.a.example.com", true);
        check("*.example.com", "example.com", false);
        check("*.a.example.com", "*.example.com", false);
        check("a.example.com", "*.a.example.com", false);
        check("a.example.com", "*.example.com", false);
        check("*.example.com", "*.badexample.com", false);
    }

    #[test]
    fn a_value_is_bound_to_whose_it_is_and_where_it_may_go() {
        let secret = Secret {
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
        let other = |change: fn(&mut Secret)| {
            let mut other = secret.clone();
            change(&mut other);
            assert_ne!(other.bound_to(), secret.bound_to());
        };
        other(|it| it.tenant = TenantId(uuid::Uuid::from_u128(7)));
        other(|it| it.name = SecretName("b".to_owned()));
        other(|it| it.version = 2);
        other(|it| it.hosts.push(HostPattern("evil.org".to_owned())));
        assert!(secret.allows("example.com") && !secret.allows("evil.org"));
    }
}
