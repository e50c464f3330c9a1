//! What can go wrong on the way to PostgreSQL, and the error that a caller gets.

use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::StoreError;
use crate::code::bad_row;

/// Why a call could not be done: PostgreSQL's word, or already ours.
#[derive(Debug)]
pub(super) enum Fault {
    Sql(Error),
    Store(StoreError),
    /// What was read is not what was found at the write: the whole call is to be done again.
    Overtaken,
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
            Fault::Overtaken => Self::unavailable("others changed the same rows again and again"),
        }
    }
}

impl Fault {
    fn state(&self) -> Option<&SqlState> {
        match self {
            Self::Sql(error) => error.code(),
            Self::Store(_) | Self::Overtaken => None,
        }
    }

    /// Whether a day of history has no partition: retention was faster. Any other check has a name.
    pub(super) fn is_missing_partition(&self) -> bool {
        let said = match self {
            Self::Sql(error) => error.as_db_error(),
            Self::Store(_) | Self::Overtaken => None,
        };
        said.is_some_and(|said| {
            *said.code() == SqlState::CHECK_VIOLATION && said.constraint().is_none()
        })
    }

    /// Whether PostgreSQL refused one of the values: then a smaller batch may pass.
    pub(super) fn is_about_data(&self) -> bool {
        let class = self.state().map(|state| class(state).to_owned());
        matches!(class.as_deref(), Some("22" | "23" | "54"))
    }

    /// What is said of a row that was refused.
    pub(super) fn why(self) -> String {
        match self {
            Self::Sql(error) => detail(&error),
            Self::Store(_) | Self::Overtaken => StoreError::from(self).to_string(),
        }
    }

    /// Whether the same call, made again, may well succeed at once.
    pub(super) fn is_collision(&self) -> bool {
        let collided = [
            &SqlState::T_R_DEADLOCK_DETECTED,
            &SqlState::T_R_SERIALIZATION_FAILURE,
            &SqlState::UNIQUE_VIOLATION,
        ];
        matches!(self, Self::Overtaken) || self.state().is_some_and(|it| collided.contains(&it))
    }
}

fn class(state: &SqlState) -> &str {
    state.code().get(..2).unwrap_or_default()
}

fn classify(error: Error) -> StoreError {
    let Some(state) = error.code() else {
        // No word from the server: the connection, or a value that did not fit its column.
        return StoreError::unavailable(error);
    };
    match class(state) {
        "53" if *state == SqlState::DISK_FULL => StoreError::Full,
        "22" | "23" | "54" => bad_row("a row", &detail(&error)),
        "3D" | "42" | "28" => {
            StoreError::Unusable(format!("the database cannot be used: {}", detail(&error)))
        }
        "XX" if *state != SqlState::INTERNAL_ERROR => {
            StoreError::Unusable(format!("the database is damaged: {}", detail(&error)))
        }
        _ => StoreError::unavailable(error),
    }
}

/// What the server said, in one line.
pub(super) fn detail(error: &Error) -> String {
    match error.as_db_error() {
        Some(said) => said.message().to_owned(),
        None => {
            let source = std::error::Error::source(error);
            source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
        }
    }
}

/// The same while connecting: wrong names and passwords are for people, anything else may pass.
pub(super) fn cannot_connect(error: Error) -> StoreError {
    let refused = error
        .code()
        .map(class)
        .is_some_and(|it| it == "28" || it == "3D");
    if refused {
        StoreError::Unusable(format!("the database refuses us: {}", detail(&error)))
    } else {
        StoreError::unavailable(error)
    }
}
