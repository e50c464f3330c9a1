//! Feature levels: what whoever reads a definition has to know.
//!
//! A definition that says something new needs a higher level than one that does not. The store has a level, the highest that
//! any of its definitions may need; it only grows, and only to what every living node knows. A node below it may not join. So
//! no node ever meets a definition that it cannot read, or would misread.

use crate::job::Definition;
use crate::target::Target;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(pub u16);

impl Level {
    /// What all definitions need, and every store has.
    pub const FIRST: Self = Self(1);
    /// What this binary knows.
    pub const OURS: Self = Self(1);
}

impl Default for Level {
    fn default() -> Self {
        Self::FIRST
    }
}

/// What a definition needs, and the field on whose account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NeedsLevel {
    pub level: Level,
    pub field: &'static str,
}

impl Definition {
    /// The highest level that anything in it needs. Whoever adds a field, a kind of target or a word that the version before
    /// cannot read gives it the next level here, raises `OURS`, and lays down the stored form in a golden file.
    pub fn needs_level(&self) -> NeedsLevel {
        let Self {
            schedule: _,
            target,
            payload: _,
            retry: _,
            timeout: _,
            lane: _,
            overlap: _,
            catch_up: _,
            spread: _,
            delivery: _,
            start_within: _,
            finish_within: _,
            labels: _,
        } = self;
        NeedsLevel {
            level: target.needs_level(),
            field: "target",
        }
    }
}

impl Target {
    fn needs_level(&self) -> Level {
        match self {
            Self::Http(_) => Level::FIRST,
            // So that tests can say what is not yet known.
            Self::Fake(what) => {
                let level = what.strip_prefix("level ").and_then(|it| it.parse().ok());
                level.map_or(Level::FIRST, Level)
            }
        }
    }
}
