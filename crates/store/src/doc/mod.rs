//! Stored JSON: a job's definition without its payload, calendars, replays, alert rules, rollups, and the earlier attempts of a run.
//!
//! These are forms of their own: renaming a field in `model` changes no byte in a database, and
//! golden files prove it. What has its default value is left out, so that a common one-off takes
//! about a hundred bytes. Reading never panics; whoever reads parks a row that cannot be read.

mod alert;
mod attempts;
mod calendar;
mod definition;
mod last;
mod python;
mod replay;
mod rollup;
mod schedule;
mod shell;
mod success;
mod tls;

pub use alert::{AlertColumns, decode_alert, encode_alert};
pub use attempts::{decode_attempts, decode_live, encode_attempts, encode_live};
pub use calendar::{decode_calendar, encode_calendar};
pub use definition::{decode_definition, encode_definition};
pub use last::{decode_with_last, encode_with_last};
pub use replay::{decode_replay, encode_replay};
pub use rollup::{decode_rollup, encode_rollup};

/// Why a stored form cannot be read, or a value cannot be stored; for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DocError(String);

impl DocError {
    fn unknown(what: &str, text: &str) -> Self {
        Self(format!(
            "{what} {:?} is not known",
            text.chars().take(64).collect::<String>()
        ))
    }
}

impl From<serde_json::Error> for DocError {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}

#[cfg(test)]
mod alert_tests;
#[cfg(test)]
mod rollup_tests;
#[cfg(test)]
mod tests;
