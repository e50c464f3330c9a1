//! Signing secrets: what a tenant's callbacks are signed with. Each is kept as a secret is, in one of two places whose names
//! nobody can write. So a tenant has two at most, whoever creates them at once; a rotation needs no more.

use std::fmt;
use std::str::FromStr;

use crate::secret::{Secret, SecretName};
use crate::time::Timestamp;

/// Where a signing secret is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    First,
    Second,
}

impl Place {
    pub const ALL: [Self; 2] = [Self::First, Self::Second];

    /// Its name among secrets. It begins as no name of a secret does.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::First => "$signing-1",
            Self::Second => "$signing-2",
        }
    }

    fn number(self) -> &'static str {
        match self {
            Self::First => "1",
            Self::Second => "2",
        }
    }
}

/// What a signing secret is called: its place, and when it came there. A place that was emptied and filled again has another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SigningId {
    pub place: Place,
    pub created_at: Timestamp,
}

/// A text that is no id of a signing secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an id of a signing secret is written as sign_1_1798138800000")]
pub struct SigningIdError;

impl SigningId {
    /// That of a secret, if it is a signing secret.
    pub fn of(secret: &Secret) -> Option<Self> {
        Some(Self {
            place: secret.name.place()?,
            created_at: secret.created_at,
        })
    }

    pub fn name(self) -> SecretName {
        SecretName::of_place(self.place)
    }
}

impl fmt::Display for SigningId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (place, at) = (self.place.number(), self.created_at.as_millis());
        write!(f, "sign_{place}_{at}")
    }
}

impl FromStr for SigningId {
    type Err = SigningIdError;

    fn from_str(text: &str) -> Result<Self, SigningIdError> {
        let rest = text.strip_prefix("sign_").ok_or(SigningIdError)?;
        let (number, at) = rest.split_once('_').ok_or(SigningIdError)?;
        let place = Place::ALL.into_iter().find(|it| it.number() == number);
        let id = Self {
            place: place.ok_or(SigningIdError)?,
            created_at: Timestamp::from_millis(at.parse().map_err(|_| SigningIdError)?),
        };
        // One way to write each.
        (id.to_string() == text).then_some(id).ok_or(SigningIdError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_written_in_one_way() {
        for text in ["sign_1_0", "sign_2_1798138800000"] {
            assert_eq!(text.parse::<SigningId>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "sign_",
            "sign_1",
            "sign_3_0",
            "sign_1_+5",
            "sign_1_05",
            "key_1_0",
            "sign_1_a",
        ] {
            assert_eq!(text.parse::<SigningId>(), Err(SigningIdError), "{text}");
        }
    }

    #[test]
    fn nobody_can_write_the_name_of_a_place() {
        for place in Place::ALL {
            assert!(SecretName::new(place.as_str()).is_err());
            let name = SecretName::stored(place.as_str()).unwrap();
            assert_eq!(name.place(), Some(place));
        }
        assert_eq!(SecretName::stored("a").unwrap().place(), None);
        assert!(SecretName::new("$proxy").is_err());
        assert!(SecretName::stored("$proxy").unwrap().is_of_proxy());
        assert!(SecretName::stored("$signing-3").is_err());
    }
}
