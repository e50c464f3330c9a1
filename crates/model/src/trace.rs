//! Trace context, as W3C has it: whose trace a run goes on with, when whoever started it by hand said so.

use std::fmt;

/// What a valid `traceparent` says. It is passed on as it came: we record no spans of our own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Trace {
    id: u128,
    parent: u64,
    flags: u8,
}

/// Characters of a `traceparent` of version 00; later versions begin with as many that mean the same.
const LENGTH: usize = 55;

impl Trace {
    /// Bytes that it is stored in.
    pub const BYTES: usize = 25;

    /// None if it is not valid, which W3C wants to be ignored.
    pub fn parse(text: &str) -> Option<Self> {
        let (known, more) = text.split_at_checked(LENGTH)?;
        let mut parts = known.split('-');
        let version = digits(parts.next()?, 2)?;
        let is_whole = match version {
            0 => more.is_empty(),
            0xff => false,
            _ => more.is_empty() || more.starts_with('-'),
        };
        let id = digits(parts.next()?, 32).filter(|id| *id != 0)?;
        let parent = digits(parts.next()?, 16).filter(|parent| *parent != 0)?;
        let flags = digits(parts.next()?, 2)?;
        is_whole.then_some(())?;
        Some(Self {
            id,
            parent: u64::try_from(parent).ok()?,
            flags: u8::try_from(flags).ok()?,
        })
    }

    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let parts = self.id.to_be_bytes().into_iter();
        let parts = parts.chain(self.parent.to_be_bytes()).chain([self.flags]);
        bytes
            .iter_mut()
            .zip(parts)
            .for_each(|(to, from)| *to = from);
        bytes
    }

    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Option<Self> {
        let (id, rest) = bytes.split_first_chunk()?;
        let (parent, rest) = rest.split_first_chunk()?;
        Some(Self {
            id: u128::from_be_bytes(*id),
            parent: u64::from_be_bytes(*parent),
            flags: *rest.first()?,
        })
    }
}

/// As many lower-case hexadecimal digits, and nothing else.
fn digits(text: &str, count: usize) -> Option<u128> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let are_all = text.len() == count && text.bytes().all(is_digit);
    are_all.then(|| u128::from_str_radix(text, 16).ok())?
}

/// As `traceparent` says it, in version 00.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Of the flags, those that this version knows.
        let flags = self.flags & 0b11;
        write!(f, "00-{:032x}-{:016x}-{flags:02x}", self.id, self.parent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn what_is_valid_is_passed_on_and_stored_as_it_came() {
        let trace = Trace::parse(VALID).unwrap();
        assert_eq!(trace.to_string(), VALID);
        assert_eq!(Trace::from_bytes(trace.to_bytes()), Some(trace));
    }

    #[test]
    fn a_later_version_is_read_as_far_as_it_is_known() {
        let later = VALID.replacen("00", "cc", 1);
        for text in [
            later.clone(),
            format!("{later}-what-the-future-will-be-like"),
        ] {
            assert_eq!(Trace::parse(&text).unwrap().to_string(), VALID, "{text}");
        }
        assert_eq!(Trace::parse(&format!("{later}.x")), None);
    }

    #[test]
    fn what_is_not_valid_is_none() {
        for text in [
            String::new(),
            VALID.to_uppercase(),
            VALID.replacen("00", "ff", 1),
            VALID.replacen("00", "0", 1),
            VALID.replace('-', "_"),
            VALID.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            VALID.replace("00f067aa0ba902b7", &"0".repeat(16)),
            VALID.replace("00f067aa0ba902b7", "00f067aa0ba902bg"),
            VALID.replace("00f067aa0ba902b7", "+0f067aa0ba902b7"),
            format!("{VALID}-01"),
            format!("{VALID} "),
            "\u{e4}".repeat(28),
        ] {
            assert_eq!(Trace::parse(&text), None, "{text:?}");
        }
    }
}
