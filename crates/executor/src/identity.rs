//! Who we are to a target, and whom we trust as it, where a job has certificates of its own.

use std::fmt;

/// Texts in PEM. The id names them all: connections of different ones are never mixed up.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    pub id: [u8; 32],
    pub ca: Option<String>,
    /// A chain, and its private key.
    pub cert: Option<(String, String)>,
}

/// What is secret in it stands in no log.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}
