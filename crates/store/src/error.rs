//! What a caller can act on when a store says no.

use model::Level;

use crate::NodeInfo;

pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing is known about whether the call was written; calling again is safe.
    #[error("the store cannot be reached")]
    Unavailable(#[source] BoxError),
    /// Nothing was written.
    #[error("the disk that holds the data is full")]
    Full,
    /// It was a read, and takes longer than the store allows; what is to be done is said.
    #[error("{0}")]
    Slow(String),
    /// Nothing was written: as much waits for the store as may.
    #[error("too much waits to be written")]
    Overloaded,
    /// Another process has the data open.
    #[error("{0}")]
    InUse(String),
    /// The data was written by a newer version, is damaged, or is not ours.
    #[error("{0}")]
    Unusable(String),
    /// The presence was fenced, or has left: join again.
    #[error("this node's presence has ended")]
    Fenced,
    /// One row cannot be read, or one value cannot be written.
    #[error(transparent)]
    BadRow(#[from] BadRow),
}

/// What is wrong with one row; others of the same call may be good.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} cannot be read: {detail}")]
pub struct BadRow {
    pub what: String,
    pub detail: String,
}

/// What a read by id finds: the thing, nothing, or a row that cannot be read.
pub type Found<T> = Result<Option<T>, BadRow>;

impl StoreError {
    pub fn unavailable(error: impl Into<BoxError>) -> Self {
        Self::Unavailable(error.into())
    }

    /// A node that does not know the store's level may not join.
    pub(crate) fn too_old(level: Level, node: &NodeInfo) -> Self {
        let (Level(needed), Level(known)) = (level, node.level);
        let version = &node.version;
        Self::Unusable(format!(
            "the store has jobs that need level {needed}, and this version ({version}) knows level {known}: use a newer one"
        ))
    }

    /// Whether calling again may help.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unavailable(_) | Self::Full | Self::Slow(_) | Self::Overloaded => true,
            Self::InUse(_) | Self::Unusable(_) | Self::Fenced | Self::BadRow(_) => false,
        }
    }
}
