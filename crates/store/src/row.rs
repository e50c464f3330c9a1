//! What rows hold, in both stores on disk: what is still to be decoded when a row was read, and what is encoded before one
//! is written. How columns are read and bound is each store's own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use model::schedule::{Kind, Zone};
use model::{
    Attempt, Calendar, CalendarName, HostPattern, Job, JobId, JobKey, JobState, QueueName, Run,
    Slot, Standing, Stretch, TenantId, Timestamp, Version, limits,
};

use crate::StoreError;
use crate::audit::Change;
use crate::code::{Unreadable, bad_row};
use crate::doc::{self, DocError};

/// Which payloads are read along with their jobs and runs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Payloads {
    All,
    /// Larger ones are left where they are.
    Small,
}

impl Payloads {
    /// The most bytes that are read, as a parameter.
    pub(crate) fn max(self) -> i32 {
        match self {
            Self::All => i32::MAX,
            Self::Small => limits::PAYLOAD_INLINE_MAX as i32,
        }
    }
}

/// Hosts of a secret in one column.
pub(crate) fn hosts_text(hosts: &[HostPattern]) -> String {
    let hosts: Vec<&str> = hosts.iter().map(HostPattern::as_str).collect();
    hosts.join(" ")
}

/// And back; none if one of them is no host.
pub(crate) fn hosts_of(text: &str) -> Option<Vec<HostPattern>> {
    let hosts = text.split_ascii_whitespace();
    hosts.map(|host| HostPattern::new(host).ok()).collect()
}

/// Queues of a key in one column; none for a key without any.
pub(crate) fn queues_text(queues: &[QueueName]) -> Option<String> {
    let queues: Vec<&str> = queues.iter().map(QueueName::as_str).collect();
    (!queues.is_empty()).then(|| queues.join(" "))
}

/// And back; a name that no queue can have is none.
pub(crate) fn queues_of(text: Option<String>) -> Vec<QueueName> {
    let text = text.unwrap_or_default();
    let names = text.split_ascii_whitespace();
    names.flat_map(QueueName::new).collect()
}

/// The narrow row of a job: what a firing changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Narrow {
    pub id: JobId,
    pub tenant: TenantId,
    pub version: Version,
    pub stands: Standing,
}

/// A job as its two rows have it; its definition is still to be read.
pub(crate) struct JobRow {
    pub narrow: Narrow,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub note: Option<String>,
    pub key: Option<String>,
    pub paused_by: Option<String>,
    pub owner: Option<String>,
    pub once_until: Option<Version>,
    pub doc: Vec<u8>,
    pub payload: Option<Bytes>,
    pub payload_left: Option<u32>,
    /// Whether the definition names calendars: then it takes a connection to read it.
    pub names_calendars: bool,
}

impl JobRow {
    /// The job, with the calendars that it names as `find` knows them.
    pub(crate) fn decode(
        self,
        find: &dyn Fn(&CalendarName) -> Option<Arc<Calendar>>,
    ) -> Result<Job, Unreadable> {
        let Narrow {
            id,
            tenant,
            version,
            stands,
        } = self.narrow;
        let unreadable = |detail: String| Unreadable { job: id, detail };
        let key = self.key.as_deref().map(JobKey::new).transpose();
        let key = key.map_err(|error| unreadable(error.to_string()))?;
        let def = doc::decode_definition(id, &self.doc, self.payload, find)
            .map_err(|error| unreadable(error.to_string()))?;
        Ok(Job {
            id,
            tenant,
            key,
            owner: self.owner.map(Arc::from),
            version,
            state: stands.state,
            state_at: stands.state_at,
            note: self.note,
            paused_by: self.paused_by.map(Arc::from),
            next_slot: stands.next_slot,
            slot_last: stands.slot_last,
            runs_made: stands.runs_made,
            catch_up_to: stands.catch_up_to,
            manual_runs: stands.manual_runs,
            failures: stands.failures,
            once_until: self.once_until,
            created_at: self.created_at,
            updated_at: self.updated_at,
            payload_left: self.payload_left,
            def: Arc::new(def),
        })
    }
}

/// A job with its definition encoded, ready to be bound.
pub(crate) struct JobToPut {
    pub job: Arc<Job>,
    pub doc: Vec<u8>,
}

impl JobToPut {
    pub(crate) fn new(job: &Arc<Job>) -> Result<Self, DocError> {
        let doc = doc::encode_definition(job.id, &job.def)?;
        let job = Arc::clone(job);
        Ok(Self { job, doc })
    }

    /// Its entry in the audit log, as a new job.
    pub(crate) fn created(&self) -> Change {
        Change::job_created(&self.job, &self.doc)
    }

    /// The zone that it follows, as a column: a deleted job follows none.
    pub(crate) fn zone(&self) -> Option<&str> {
        let zone = self.job.def.schedule.zone_followed().map(Zone::name);
        zone.filter(|_| !is_gone(&self.job))
    }

    /// Whether reading it takes more than its own row.
    pub(crate) fn names_calendars(&self) -> bool {
        !self.job.def.schedule.calendars.is_empty() || is_broken(&self.job)
    }
}

pub(crate) fn is_gone(job: &Job) -> bool {
    job.state == JobState::Deleted
}

/// Whether its schedule cannot be read any more: then what it named is not known, and stays as it is.
pub(crate) fn is_broken(job: &Job) -> bool {
    match job.def.schedule.kind {
        Kind::Broken(_) => true,
        Kind::Cron(_) | Kind::Every(_) | Kind::Once(_) => false,
    }
}

/// A job that is due, or why it cannot be planned.
pub(crate) fn planned(job: Result<Job, Unreadable>) -> Result<Job, String> {
    let job = job.map_err(|bad| bad.detail)?;
    match &job.def.schedule.kind {
        Kind::Broken(broken) => Err(broken.error.clone()),
        Kind::Cron(_) | Kind::Every(_) | Kind::Once(_) => Ok(job),
    }
}

/// When a job is to be planned: active ones only.
pub(crate) fn due_column(job: &Job) -> Option<i64> {
    let due_at = job.next_due_at().filter(|_| job.state == JobState::Active);
    due_at.map(Timestamp::as_millis)
}

/// An ended run, ready to be bound: the attempt that ended it in columns, earlier ones encoded, with what columns do not hold.
#[derive(Debug, Clone)]
pub(crate) struct EndedRow {
    pub run: Run,
    pub last: Option<Attempt>,
    pub attempts: Option<Vec<u8>>,
}

impl EndedRow {
    pub(crate) fn new(mut run: Run) -> Result<Self, StoreError> {
        let ended_it = |last: &Attempt| {
            // Marks have no columns: they are rare.
            let is_marked = last.late_by.is_some() || last.long_by.is_some();
            last.no == run.attempt
                && last.dispatched_at == run.dispatched_at
                && Some(last.settled_at) == run.settled_at
                && !is_marked
        };
        let mut earlier = std::mem::take(&mut run.attempts);
        let last = if earlier.last().is_some_and(ended_it) {
            earlier.pop()
        } else {
            None
        };
        let attempts = doc::encode_with_last(&earlier, last.as_ref())
            .map_err(|error| bad_row(run.id, &error))?;
        Ok(Self {
            run,
            last,
            attempts,
        })
    }

    /// Who made the attempt that ended it, or who decided that there is none.
    pub(crate) fn actor(&self) -> Option<&str> {
        let node = self.last.as_ref().and_then(|last| last.node.as_deref());
        node.or(self.run.actor.as_deref())
    }

    /// When it was due, if that is not the moment in its id.
    pub(crate) fn due_column(&self) -> Option<i64> {
        let due_at = Some(self.run.due_at).filter(|due| *due != self.run.id.at());
        due_at.map(Timestamp::as_millis)
    }

    /// What the attempt that ended it brought, if anything.
    pub(crate) fn output_column(&self) -> Option<&[u8]> {
        let output = self.last.as_ref().map(|last| &*last.output);
        output.filter(|output| !output.is_empty())
    }
}

/// The slots that an entry stands for, by its columns; a run has none.
pub(crate) fn stretch(
    first: Option<Slot>,
    last: Option<Timestamp>,
    count: Option<i64>,
) -> Option<Stretch> {
    Some(Stretch {
        first: first?,
        last: Slot(last?),
        count: count?.unsigned_abs(),
    })
}

/// A number for the tables of a zone in this binary, 0 if they do not have it. Computed once.
pub(crate) fn zone_digest(name: &str) -> u64 {
    static KNOWN: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(digest) = known.get(name) {
        return *digest;
    }
    let digest = Zone::get(name).map_or(0, |zone| zone.digest());
    known.insert(name.to_owned(), digest);
    digest
}

#[cfg(test)]
#[path = "row_tests.rs"]
mod tests;
