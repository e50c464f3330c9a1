//! What the store wrote about jobs and slots: every version of a job that it took, and every slot that was skipped,
//! with what stood behind it at that moment.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use model::policy::Living;
use model::{Job, JobId, JobState, Skip, Timestamp};

/// Who passed slots over, and what was seen then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A node, by a decision of this moment, beside so many runs of the job.
    Fire {
        decided_at: Timestamp,
        living: Living,
    },
    /// A change of the job, from one state to another.
    Change { from: JobState, to: JobState },
}

/// Slots that were skipped.
#[derive(Debug, Clone)]
pub struct Passed {
    /// As it stood before.
    pub job: Arc<Job>,
    pub skip: Skip,
    pub cause: Cause,
    /// By the store's clock, and by uptime.
    pub now: Timestamp,
    pub at: Duration,
}

/// One version of a job, from its commit on.
#[derive(Debug, Clone)]
pub struct Era {
    /// As the store answered it.
    pub job: Arc<Job>,
    /// As it stood just before; none of a new one.
    pub before: Option<Arc<Job>>,
    /// By the store's clock, as the change has it.
    pub from: Timestamp,
}

#[derive(Debug, Default)]
pub struct Record {
    pub passed: Vec<Passed>,
    pub eras: BTreeMap<JobId, Vec<Era>>,
}

impl Record {
    pub fn begin(&mut self, era: Era) {
        self.eras.entry(era.job.id).or_default().push(era);
    }
}
