//! Rows: how the model's words stand in columns. Every number here is in files that people keep, so
//! none may ever change its meaning; a test pins them all.

use std::sync::Arc;

use bytes::Bytes;
use model::{
    Ask, Attempt, AttemptNo, Calendar, CalendarName, Job, JobId, JobKey, JobState, Lane, Outcome,
    PresenceId, Reason, Run, RunId, RunKind, RunState, Slot, Stretch, TenantId, Timestamp, Version,
};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, Value, ValueRef};
use rusqlite::{Result, Row};

use crate::StoreError;
use crate::doc::{self, DocError};

/// How a word is written as a number.
pub(super) trait Code: Copy {
    fn code(self) -> i64;
    fn from_code(code: i64) -> Option<Self>;
}

macro_rules! codes {
    ($($word:ident { $($variant:ident = $code:literal),+ $(,)? })+) => {$(
        impl Code for $word {
            fn code(self) -> i64 {
                match self { $(Self::$variant => $code),+ }
            }

            fn from_code(code: i64) -> Option<Self> {
                match code {
                    $($code => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    )+};
}

codes! {
    JobState { Active = 0, Paused = 1, Finished = 2, Invalid = 3, Deleted = 4 }
    RunState {
        Ready = 0, Running = 1, Retrying = 2, Succeeded = 3, Dead = 4, Cancelled = 5, Skipped = 6,
    }
    RunKind { Slot = 0, Manual = 1, Replay = 2 }
    Lane { Critical = 0, Standard = 1, Batch = 2 }
    Outcome { Succeeded = 0, Failed = 1, TimedOut = 2, Lost = 3, Cancelled = 4 }
    Reason {
        Overlap = 0, QueueFull = 1, Paused = 2, Missed = 3, AttemptsSpent = 4, Refused = 5,
        Lost = 6, Poison = 7, Asked = 8, Replaced = 9, JobDeleted = 10, Unreadable = 11,
        Calendar = 12, Invalid = 13,
    }
}

/// Reasons of `Ask::Cancel` are counted from here.
const ASK_CANCEL: i64 = 16;

impl Code for Ask {
    fn code(self) -> i64 {
        match self {
            Self::TakeBack => 1,
            Self::TooLate => 2,
            Self::Cancel(reason) => ASK_CANCEL + reason.code(),
        }
    }

    fn from_code(code: i64) -> Option<Self> {
        match code {
            1 => Some(Self::TakeBack),
            2 => Some(Self::TooLate),
            code => Reason::from_code(code - ASK_CANCEL).map(Self::Cancel),
        }
    }
}

/// A word in a column.
pub(super) struct Word<T>(pub T);

impl<T: Code> FromSql for Word<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let code = value.as_i64()?;
        T::from_code(code)
            .map(Self)
            .ok_or(FromSqlError::OutOfRange(code))
    }
}

/// A tenant in a column: nothing at all for the one that is always there.
pub(super) struct Tenant(pub TenantId);

impl ToSql for Tenant {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(if self.0 == TenantId::DEFAULT {
            ToSqlOutput::Owned(Value::Integer(0))
        } else {
            ToSqlOutput::Borrowed(ValueRef::Blob(self.0.as_bytes()))
        })
    }
}

impl FromSql for Tenant {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        if value == ValueRef::Integer(0) {
            return Ok(Self(TenantId::DEFAULT));
        }
        <[u8; 16]>::column_result(value).map(|bytes| Self(TenantId::from_bytes(bytes)))
    }
}

fn moment(row: &Row<'_>, column: usize) -> Result<Timestamp> {
    row.get(column).map(Timestamp::from_millis)
}

fn maybe_moment(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>> {
    Ok(row
        .get::<_, Option<i64>>(column)?
        .map(Timestamp::from_millis))
}

fn word<T: Code>(row: &Row<'_>, column: usize) -> Result<T> {
    row.get::<_, Word<T>>(column).map(|word| word.0)
}

fn maybe_word<T: Code>(row: &Row<'_>, column: usize) -> Result<Option<T>> {
    Ok(row.get::<_, Option<Word<T>>>(column)?.map(|word| word.0))
}

fn maybe_bytes(row: &Row<'_>, column: usize) -> Result<Option<Bytes>> {
    Ok(row.get::<_, Option<Vec<u8>>>(column)?.map(Bytes::from))
}

/// A job as its two rows have it; its definition is still to be read.
pub(super) struct JobRow {
    job: JobHead,
    key: Option<String>,
    doc: Vec<u8>,
    payload: Option<Bytes>,
    /// Whether the definition names calendars: then it takes a connection to read it.
    pub names_calendars: bool,
}

/// What of a job cannot be unreadable.
#[derive(Clone)]
struct JobHead {
    id: JobId,
    tenant: TenantId,
    state: JobState,
    version: Version,
    next_slot: Option<Slot>,
    slot_last: Option<Timestamp>,
    state_at: Timestamp,
    created_at: Timestamp,
    updated_at: Timestamp,
    note: Option<String>,
    runs_made: u32,
    paused_by: Option<String>,
}

impl JobRow {
    /// Columns as `get_job.sql` has them.
    pub fn read(row: &Row<'_>) -> Result<Self> {
        let job = JobHead {
            id: JobId::from_bytes(row.get(0)?),
            tenant: row.get::<_, Tenant>(1)?.0,
            state: word(row, 2)?,
            version: Version(row.get(3)?),
            next_slot: maybe_moment(row, 4)?.map(Slot),
            slot_last: maybe_moment(row, 5)?,
            state_at: moment(row, 6)?,
            created_at: moment(row, 7)?,
            updated_at: moment(row, 8)?,
            note: row.get(9)?,
            runs_made: row.get(13)?,
            paused_by: row.get(14)?,
        };
        Ok(Self {
            job,
            key: row.get(10)?,
            doc: row.get(11)?,
            payload: maybe_bytes(row, 12)?,
            names_calendars: row.get(15)?,
        })
    }

    pub fn tenant(&self) -> TenantId {
        self.job.tenant
    }

    /// The job, with the calendars that it names as `find` knows them.
    pub fn decode(
        self,
        find: &dyn Fn(&CalendarName) -> Option<Arc<Calendar>>,
    ) -> std::result::Result<Job, Unreadable> {
        let Self {
            job,
            key,
            doc,
            payload,
            names_calendars: _,
        } = self;
        let unreadable = |detail: String| Unreadable {
            job: job.id,
            detail,
        };
        let key = match key.as_deref().map(JobKey::new) {
            None => None,
            Some(Ok(key)) => Some(key),
            Some(Err(error)) => return Err(unreadable(error.to_string())),
        };
        let def = doc::decode_definition(job.id, &doc, payload, find)
            .map_err(|error| unreadable(error.to_string()))?;
        Ok(Job {
            id: job.id,
            tenant: job.tenant,
            key,
            version: job.version,
            state: job.state,
            state_at: job.state_at,
            note: job.note,
            paused_by: job.paused_by.map(Arc::from),
            next_slot: job.next_slot,
            slot_last: job.slot_last,
            runs_made: job.runs_made,
            created_at: job.created_at,
            updated_at: job.updated_at,
            def: Arc::new(def),
        })
    }
}

/// A job whose definition cannot be read.
#[derive(Debug)]
pub(super) struct Unreadable {
    pub job: JobId,
    pub detail: String,
}

impl From<Unreadable> for StoreError {
    fn from(bad: Unreadable) -> Self {
        Self::BadRow {
            what: bad.job.to_string(),
            detail: bad.detail,
        }
    }
}

/// A slot's column: empty when it is the moment in the run's id.
pub(super) fn slot_column(run: &Run) -> Option<i64> {
    let slot = run.slot.map(|slot| slot.0);
    match run.kind {
        RunKind::Slot => slot.filter(|slot| *slot != run.id.at()),
        RunKind::Manual | RunKind::Replay => slot,
    }
    .map(Timestamp::as_millis)
}

fn read_slot(id: RunId, kind: RunKind, column: Option<Timestamp>) -> Option<Slot> {
    match kind {
        RunKind::Slot => Some(Slot(column.unwrap_or_else(|| id.at()))),
        RunKind::Manual | RunKind::Replay => column.map(Slot),
    }
}

/// A run and its attempts as a row has them; the attempts are still to be read.
pub(super) struct RunRow {
    pub run: Run,
    last: Option<Attempt>,
    attempts: Option<Vec<u8>>,
}

impl RunRow {
    /// Columns as `get_run_live.sql` has them.
    pub fn read_live(row: &Row<'_>) -> Result<Self> {
        let id = RunId::from_bytes(row.get(0)?);
        let kind = word(row, 3)?;
        let run = Run {
            id,
            job: JobId::from_bytes(row.get(1)?),
            tenant: row.get::<_, Tenant>(2)?.0,
            kind,
            slot: read_slot(id, kind, maybe_moment(row, 4)?),
            replay_of: row.get::<_, Option<[u8; 16]>>(5)?.map(RunId::from_bytes),
            due_at: moment(row, 6)?,
            lane: word(row, 7)?,
            state: word(row, 8)?,
            reason: None,
            attempt: AttemptNo(row.get(9)?),
            lost: row.get(10)?,
            version: Version(row.get(11)?),
            ask: maybe_word(row, 12)?,
            waiting: row.get(13)?,
            dispatched_at: maybe_moment(row, 14)?,
            payload: maybe_bytes(row, 15)?,
            claim: row
                .get::<_, Option<[u8; 16]>>(17)?
                .map(PresenceId::from_bytes),
            settled_at: None,
            stretch: None,
            note: None,
            by: None,
            attempts: Vec::new(),
        };
        Ok(Self {
            run,
            last: None,
            attempts: row.get(16)?,
        })
    }

    /// Columns as `get_run_ended.sql` has them.
    pub fn read_ended(row: &Row<'_>) -> Result<Self> {
        let id = RunId::from_bytes(row.get(0)?);
        let kind = word(row, 3)?;
        let slot = read_slot(id, kind, maybe_moment(row, 4)?);
        let (last, count) = (maybe_moment(row, 19)?, row.get::<_, Option<i64>>(20)?);
        let stretch = match (slot, last, count) {
            (Some(first), Some(last), Some(count)) => Some(Stretch {
                first,
                last: Slot(last),
                count: count.unsigned_abs(),
            }),
            (_, _, _) => None,
        };
        let run = Run {
            id,
            job: JobId::from_bytes(row.get(1)?),
            tenant: row.get::<_, Tenant>(2)?.0,
            kind,
            slot,
            replay_of: row.get::<_, Option<[u8; 16]>>(5)?.map(RunId::from_bytes),
            due_at: maybe_moment(row, 6)?.unwrap_or_else(|| id.at()),
            lane: word(row, 7)?,
            state: word(row, 8)?,
            reason: maybe_word(row, 9)?,
            attempt: AttemptNo(row.get(10)?),
            lost: row.get(11)?,
            version: Version(row.get(12)?),
            dispatched_at: maybe_moment(row, 13)?,
            settled_at: maybe_moment(row, 14)?,
            payload: maybe_bytes(row, 21)?,
            claim: None,
            ask: None,
            waiting: false,
            stretch,
            note: row.get(23)?,
            by: row.get::<_, Option<String>>(24)?.map(Arc::from),
            attempts: Vec::new(),
        };
        let last = read_last(row, &run)?;
        Ok(Self {
            run,
            last,
            attempts: row.get(22)?,
        })
    }

    pub fn id(&self) -> RunId {
        self.run.id
    }

    pub fn decode(self) -> std::result::Result<Run, StoreError> {
        let Self {
            mut run,
            last,
            attempts,
        } = self;
        run.attempts = doc::decode_attempts(attempts.as_deref())
            .map_err(|error| super::fault::bad_row(run.id, &error))?;
        run.attempts.extend(last);
        Ok(run)
    }
}

/// The attempt that ended the run: its number and its moments are the run's own.
fn read_last(row: &Row<'_>, run: &Run) -> Result<Option<Attempt>> {
    let (Some(outcome), Some(settled_at)) = (maybe_word(row, 15)?, run.settled_at) else {
        return Ok(None);
    };
    Ok(Some(Attempt {
        no: run.attempt,
        dispatched_at: run.dispatched_at,
        settled_at,
        outcome,
        status: row.get(16)?,
        error: row.get(17)?,
        output: maybe_bytes(row, 18)?.unwrap_or_default(),
    }))
}

/// A live run with its attempts encoded, ready to be bound.
pub(super) struct LiveRow {
    pub run: Run,
    pub attempts: Option<Vec<u8>>,
}

impl LiveRow {
    pub fn new(run: Run) -> std::result::Result<Self, DocError> {
        let attempts = doc::encode_attempts(&run.attempts)?;
        Ok(Self { run, attempts })
    }
}

/// An ended run, ready to be bound: the attempt that ended it in columns, earlier ones encoded.
pub(super) struct EndedRow {
    pub run: Run,
    pub last: Option<Attempt>,
    pub attempts: Option<Vec<u8>>,
}

impl EndedRow {
    pub fn new(mut run: Run) -> std::result::Result<Self, DocError> {
        let ended_it = |last: &Attempt| {
            last.no == run.attempt
                && last.dispatched_at == run.dispatched_at
                && Some(last.settled_at) == run.settled_at
        };
        let mut earlier = std::mem::take(&mut run.attempts);
        let last = if earlier.last().is_some_and(ended_it) {
            earlier.pop()
        } else {
            None
        };
        let attempts = doc::encode_attempts(&earlier)?;
        Ok(Self {
            run,
            last,
            attempts,
        })
    }
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
