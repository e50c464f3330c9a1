//! Lanes: classes of service, each with its own queue and share.

use std::fmt;
use std::str::FromStr;

/// A class of service. Order is precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Lane {
    Critical,
    #[default]
    Standard,
    Batch,
}

/// A lane that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a lane: use critical, standard or batch")]
pub struct LaneError(String);

impl Lane {
    pub const COUNT: usize = 3;
    pub const ALL: [Self; Self::COUNT] = [Self::Critical, Self::Standard, Self::Batch];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Standard => "standard",
            Self::Batch => "batch",
        }
    }

    /// How many runs of this lane start for each round of all lanes, when all have some waiting.
    pub fn weight(self) -> u32 {
        match self {
            Self::Critical => 16,
            Self::Standard => 4,
            Self::Batch => 1,
        }
    }

    pub fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Lane {
    type Err = LaneError;

    fn from_str(text: &str) -> Result<Self, LaneError> {
        Self::ALL
            .into_iter()
            .find(|lane| lane.as_str() == text)
            .ok_or_else(|| LaneError(text.chars().take(64).collect()))
    }
}
