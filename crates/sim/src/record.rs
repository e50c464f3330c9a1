//! What the store wrote about jobs and slots: every version of a job that it took, and every slot that was skipped,
//! with what stood behind it at that moment.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use model::policy::Living;
use model::{Job, JobId, JobState, Schedule, Skip, Slot, Timestamp};

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
    /// Each time that other tables of time zones came while it stood.
    pub tables: Vec<Tables>,
}

/// Other tables of time zones.
#[derive(Debug, Clone)]
pub struct Tables {
    /// The slot that was next when they came, by those of before.
    pub next: Slot,
    /// The schedule as it is read since.
    pub schedule: Schedule,
}

impl Era {
    pub fn begin(job: Arc<Job>, before: Option<Arc<Job>>, from: Timestamp) -> Self {
        Self {
            job,
            before,
            from,
            tables: Vec::new(),
        }
    }

    /// The schedule by all tables that it was read by, in their order.
    pub fn schedules(&self) -> impl Iterator<Item = &Schedule> {
        let read = self.tables.iter().map(|tables| &tables.schedule);
        std::iter::once(&self.job.def.schedule).chain(read)
    }

    /// The slot after one: what is next when other tables come stays so, and those that follow are theirs.
    pub fn next_after(&self, slot: Slot) -> Option<Slot> {
        let came = self.tables.iter().rposition(|it| it.next <= slot);
        let then = came.map_or(0, |at| at + 1);
        let schedule = self.schedules().nth(then)?;
        let next = schedule.next_after(slot.0);
        let change = self.tables.get(then);
        let change = change.filter(|change| next.is_none_or(|next| next > change.next));
        change.map(|change| change.next).or(next)
    }
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

    /// A job is read by other tables of time zones from now on.
    pub fn read_again(&mut self, job: &Job) {
        let Some(era) = self.eras.get_mut(&job.id).and_then(|eras| eras.last_mut()) else {
            return;
        };
        match (job.state, job.next_slot) {
            (JobState::Active, Some(next)) => era.tables.push(Tables {
                next,
                schedule: job.def.schedule.clone(),
            }),
            // What passes meanwhile is computed when the pause ends.
            (JobState::Paused, _) => Arc::make_mut(&mut era.job).def = Arc::clone(&job.def),
            (JobState::Active | JobState::Finished | JobState::Invalid | JobState::Deleted, _) => {}
        }
    }
}
