//! What people asked for, and what they were answered: it must hold.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use model::{JobId, JobState, RunId, Version};

#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// Jobs that somebody wanted gone, answered or not.
    pub deleted: BTreeSet<JobId>,
    /// Versions of jobs that were accepted, and the state of each.
    pub changed: Vec<(JobId, Version, JobState)>,
    /// Runs by hand that were accepted, with their own payload.
    pub started: BTreeMap<RunId, Option<Bytes>>,
    /// Runs that had ended as cancelled when this was answered, by uptime.
    pub cancelled: BTreeMap<RunId, Duration>,
}
