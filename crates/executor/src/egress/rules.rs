//! What an operator allows: words and ranges for addresses, numbers and ranges for ports.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use model::Cidr;

use super::class::{self, Class};

/// One entry of `egress_allow`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    All,
    Class(Class),
    Range(Cidr),
}

/// The classes that have a word. Others are allowed by range, or all together.
const WORDS: [(&str, Class); 4] = [
    ("public", Class::Public),
    ("loopback", Class::Loopback),
    ("private", Class::Private),
    ("link-local", Class::LinkLocal),
];

/// The word that allows a class.
pub(super) fn word(class: Class) -> Option<&'static str> {
    let found = WORDS.iter().find(|(_, known)| *known == class);
    found.map(|(word, _)| *word)
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Class(class) => f.write_str(word(*class).unwrap_or("all")),
            Self::Range(range) => range.fmt(f),
        }
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::All);
        }
        if let Some((_, class)) = WORDS.iter().find(|(word, _)| *word == text) {
            return Ok(Self::Class(*class));
        }
        let range: Cidr = text.parse().map_err(|_| {
            format!(
                "{text:?} allows nothing: write public, loopback, private, link-local, all, or a range such as \
                 10.0.0.0/8"
            )
        })?;
        if class::is_spelling(range.first()) {
            return Err(format!(
                "addresses of {text} are other spellings of IPv4 ones: write the IPv4 range"
            ));
        }
        Ok(Self::Range(range))
    }
}

/// Addresses that may be called: those that one of the rules names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allow(Vec<Rule>);

impl Default for Allow {
    fn default() -> Self {
        Self(vec![Rule::Class(Class::Public)])
    }
}

impl Allow {
    pub fn all() -> Self {
        Self(vec![Rule::All])
    }

    pub(super) fn allows(&self, address: IpAddr, class: Class) -> bool {
        self.0.iter().any(|rule| match rule {
            Rule::All => true,
            Rule::Class(allowed) => *allowed == class,
            Rule::Range(range) => range.contains(address),
        })
    }

    /// The same and this address: by its class, if that has a word.
    pub(super) fn with(&self, address: IpAddr, class: Class) -> Self {
        let rule = match word(class) {
            Some(_) => Rule::Class(class),
            None => Rule::Range(Cidr::of(address)),
        };
        let mut rules = self.0.clone();
        rules.push(rule);
        Self(rules)
    }
}

impl fmt::Display for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&listed(&self.0))
    }
}

impl FromStr for Allow {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rules = parts(text).map(str::parse).collect::<Result<Vec<_>, _>>()?;
        if rules.is_empty() {
            return Err("at least one word or range is needed: write public".to_owned());
        }
        Ok(Self(rules))
    }
}

/// Ports that may be called: any, or those of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ports(Vec<PortRange>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct PortRange(RangeInclusive<u16>);

impl Ports {
    pub(super) fn allows(&self, port: u16) -> bool {
        self.0.is_empty() || self.0.iter().any(|PortRange(range)| range.contains(&port))
    }

    pub(super) fn with(&self, port: u16) -> Self {
        let mut ranges = self.0.clone();
        ranges.push(PortRange(port..=port));
        Self(ranges)
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(range) = self;
        if range.start() == range.end() {
            return write!(f, "{}", range.start());
        }
        write!(f, "{}-{}", range.start(), range.end())
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("any");
        }
        f.write_str(&listed(&self.0))
    }
}

impl FromStr for PortRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0);
        match (port(first), port(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Self(first..=last)),
            _ => Err(format!("{text:?} is no port: write any, 443, or 8000-8999")),
        }
    }
}

impl FromStr for Ports {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim() == "any" {
            return Ok(Self::default());
        }
        let ranges = parts(text).map(str::parse).collect::<Result<Vec<_>, _>>()?;
        if ranges.is_empty() {
            return Err("at least one port is needed: write any, 443, or 8000-8999".to_owned());
        }
        Ok(Self(ranges))
    }
}

/// What stands between commas.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|it| !it.is_empty())
}

fn listed<T: fmt::Display>(list: &[T]) -> String {
    let parts: Vec<String> = list.iter().map(T::to_string).collect();
    parts.join(",")
}
