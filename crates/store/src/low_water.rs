//! Low-water marks: from where on what is due is read.

use model::Timestamp;

/// The low-water mark of the shards that a presence holds: when it was measured, no slot that was undecided and no run that
/// nobody held was due before it. What has appeared there since is found by its hint, or when everything is read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LowWater {
    pub at: Timestamp,
    /// How often the presence had taken shards. Of those that it has taken since, the mark says nothing.
    pub taken: u32,
}

impl LowWater {
    /// That of a presence which holds nothing yet.
    pub const HIGHEST: Self = Self {
        at: Timestamp::MAX,
        taken: 0,
    };

    /// The mark as a beat moves it: up or down, unless it is not about all shards that are held.
    #[cfg(any(feature = "sqlite", feature = "mem", test))]
    pub(crate) fn moved(self, to: Option<Self>) -> Self {
        to.filter(|to| to.taken == self.taken).unwrap_or(self)
    }

    /// The mark when more shards were taken, of which the lowest begins there.
    #[cfg(any(feature = "sqlite", feature = "mem", test))]
    pub(crate) fn lowered(self, lowest: Timestamp) -> Self {
        Self {
            at: self.at.min(lowest),
            taken: self.taken.saturating_add(1),
        }
    }
}
