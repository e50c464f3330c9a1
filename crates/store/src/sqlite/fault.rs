//! What can go wrong inside SQLite, and the error that a caller gets.

use rusqlite::{Error, ErrorCode};

use crate::StoreError;
use crate::code::bad_row;

/// Why a call could not be done: SQLite's word, or already ours.
#[derive(Debug)]
pub(super) enum Fault {
    Sql(Error),
    Store(StoreError),
}

impl Fault {
    /// Whether someone else has had the file locked for longer than we wait.
    pub(super) fn is_locked(&self) -> bool {
        let code = match self {
            Self::Sql(error) => error.sqlite_error_code(),
            Self::Store(_) => None,
        };
        matches!(
            code,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
        )
    }
}

pub(super) type Done<T> = Result<T, Fault>;

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Store(error) => error,
            Fault::Sql(error) => classify(error),
        }
    }
}

fn classify(error: Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Unusable(format!("the database is damaged: {error}"))
        }
        Some(_) => StoreError::unavailable(error),
        None => bad_row("a row", &error),
    }
}
