//! Parts: what a node does. Each may run apart from the others, so that clock and hands scale on their own.

use std::fmt;
use std::str::FromStr;

/// The parts of a node; all of them unless it is configured otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Parts {
    /// Answers clients.
    pub api: bool,
    /// Holds shards, and fires what is due in them.
    pub schedule: bool,
    /// Hands runs to their targets.
    pub execute: bool,
}

impl Default for Parts {
    fn default() -> Self {
        Self {
            api: true,
            schedule: true,
            execute: true,
        }
    }
}

impl Parts {
    const NONE: Self = Self {
        api: false,
        schedule: false,
        execute: false,
    };

    /// As a small number, for stores.
    pub fn code(self) -> u8 {
        u8::from(self.api) | u8::from(self.schedule) << 1 | u8::from(self.execute) << 2
    }

    pub fn from_code(code: u8) -> Self {
        Self {
            api: code & 1 != 0,
            schedule: code & 2 != 0,
            execute: code & 4 != 0,
        }
    }

    /// The names of the parts that it has.
    pub fn names(self) -> Vec<&'static str> {
        let all = [
            ("api", self.api),
            ("schedule", self.schedule),
            ("execute", self.execute),
        ];
        all.iter()
            .filter(|(_, has)| *has)
            .map(|(name, _)| *name)
            .collect()
    }
}

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().join(","))
    }
}

/// Why a list of parts cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PartsError {
    #[error("no part is named; choose from api, schedule and execute")]
    None,
    #[error(
        "there is no part '{0}'; choose from api, schedule and execute, with commas between them"
    )]
    Unknown(String),
}

impl FromStr for Parts {
    type Err = PartsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = Self::NONE;
        for name in text
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
        {
            match name {
                "api" => parts.api = true,
                "schedule" => parts.schedule = true,
                "execute" => parts.execute = true,
                other => return Err(PartsError::Unknown(other.to_owned())),
            }
        }
        if parts == Self::NONE {
            Err(PartsError::None)
        } else {
            Ok(parts)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_as_they_are_written() {
        for code in 1..8 {
            let parts = Parts::from_code(code);
            assert_eq!(parts.to_string().parse(), Ok(parts));
            assert_eq!(parts.code(), code);
        }
        assert_eq!(" schedule , api".parse(), Ok(Parts::from_code(3)));
    }

    #[test]
    fn a_part_that_does_not_exist_is_named() {
        let error = "api,clock".parse::<Parts>().unwrap_err();
        assert!(error.to_string().contains("'clock'"));
        assert_eq!(" , ".parse::<Parts>(), Err(PartsError::None));
    }
}
