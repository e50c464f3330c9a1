//! Rows: how the model's words stand in columns. The numbers of words are in `code`.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use model::{
    Attempt, AttemptNo, JobId, PresenceId, Run, RunId, Slot, Standing, TenantId, Timestamp, Version,
};
use tokio_postgres::Row;
use uuid::Uuid;

use super::fault::Done;
use super::put::OUTSIDE;
use crate::StoreError;
use crate::code::{Code, bad_row, read_slot, read_wait};
use crate::doc;
use crate::row::{JobRow, Narrow, stretch};

pub(super) fn word<T: Code>(row: &Row, column: usize) -> Done<T> {
    let code: i16 = row.try_get(column)?;
    Ok(T::from_code(code)
        .ok_or_else(|| bad_row("a row", &format!("{} {code} is not known", T::WHAT)))?)
}

pub(super) fn maybe_word<T: Code>(row: &Row, column: usize) -> Done<Option<T>> {
    match row.try_get::<_, Option<i16>>(column)? {
        None => Ok(None),
        Some(_) => word(row, column).map(Some),
    }
}

pub(super) fn moment(row: &Row, column: usize) -> Done<Timestamp> {
    Ok(Timestamp::from_millis(row.try_get(column)?))
}

pub(super) fn maybe_moment(row: &Row, column: usize) -> Done<Option<Timestamp>> {
    let stored: Option<i64> = row.try_get(column)?;
    Ok(stored.map(Timestamp::from_millis))
}

pub(super) fn maybe_bytes(row: &Row, column: usize) -> Done<Option<Bytes>> {
    let stored: Option<Vec<u8>> = row.try_get(column)?;
    Ok(stored.map(Bytes::from))
}

/// A number of ours that is never so large that its sign would matter.
pub(super) fn number(row: &Row, column: usize) -> Done<u32> {
    Ok(row.try_get::<_, i32>(column)?.cast_unsigned())
}

fn maybe_number(row: &Row, column: usize) -> Done<Option<u32>> {
    let stored: Option<i32> = row.try_get(column)?;
    Ok(stored.map(i32::cast_unsigned))
}

/// Text as PostgreSQL can hold it, which is any without NUL: that is written as U+0001 and `0`, and U+0001 itself as
/// U+0001 and `1`.
pub(super) fn text(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', '\u{1}']) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace('\u{1}', "\u{1}1").replace('\0', "\u{1}0"))
}

pub(super) fn read_text(stored: String) -> String {
    if stored.contains('\u{1}') {
        stored.replace("\u{1}0", "\0").replace("\u{1}1", "\u{1}")
    } else {
        stored
    }
}

fn maybe_text(row: &Row, column: usize) -> Done<Option<String>> {
    Ok(row.try_get::<_, Option<String>>(column)?.map(read_text))
}

/// Where a job stands; columns as `{standing}` in a statement.
pub(super) fn read_narrow(row: &Row) -> Done<Narrow> {
    Ok(Narrow {
        id: JobId(row.try_get(0)?),
        tenant: TenantId(row.try_get(1)?),
        version: Version(number(row, 2)?),
        stands: Standing {
            state: word(row, 3)?,
            state_at: moment(row, 4)?,
            next_slot: maybe_moment(row, 5)?.map(Slot),
            slot_last: maybe_moment(row, 6)?,
            runs_made: u32::try_from(row.try_get::<_, i64>(7)?).unwrap_or(u32::MAX),
            catch_up_to: maybe_moment(row, 8)?,
            manual_runs: maybe_number(row, 9)?.unwrap_or(0),
            failures: maybe_number(row, 10)?,
        },
    })
}

/// What follows the columns of a job is the statement's own.
pub(super) const JOB_COLUMNS: usize = 22;

/// A job; columns as `{job}` in a statement.
pub(super) fn read_job(row: &Row) -> Done<JobRow> {
    Ok(JobRow {
        narrow: read_narrow(row)?,
        created_at: moment(row, 11)?,
        updated_at: moment(row, 12)?,
        note: maybe_text(row, 13)?,
        key: row.try_get(14)?,
        paused_by: maybe_text(row, 15)?,
        doc: row.try_get(16)?,
        names_calendars: row.try_get(17)?,
        owner: maybe_text(row, 18)?,
        once_until: maybe_number(row, 19)?.map(Version),
        payload: maybe_bytes(row, 20)?,
        payload_left: maybe_number(row, 21)?,
    })
}

/// The part of a definition that names calendars.
#[derive(serde::Deserialize)]
struct Named {
    schedule: NamedSchedule,
}

#[derive(serde::Deserialize)]
struct NamedSchedule {
    #[serde(default)]
    exclude: Vec<String>,
    #[serde(default)]
    only: Vec<String>,
}

/// Calendars that it takes to read a job.
pub(super) fn calendars(row: &JobRow) -> Vec<String> {
    if !row.names_calendars {
        return Vec::new();
    }
    let named: Option<Named> = serde_json::from_slice(&row.doc).ok();
    let named = named.map(|named| [named.schedule.exclude, named.schedule.only].concat());
    named.unwrap_or_default()
}

fn run_id(row: &Row, column: usize) -> Done<Option<RunId>> {
    Ok(row.try_get::<_, Option<Uuid>>(column)?.map(RunId))
}

/// A live run, its attempts as they are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LiveRow {
    pub run: Run,
    pub attempts: Option<Vec<u8>>,
    /// Whether its end may mean something to its job.
    pub exclusive: bool,
    /// The number of the presence that holds it.
    pub no: Option<i32>,
}

impl LiveRow {
    /// Columns as `{live}` in a statement, and the holder.
    pub(super) fn read(row: &Row) -> Done<Self> {
        let id = RunId(row.try_get(0)?);
        let kind = word(row, 3)?;
        let (reason, until) = (maybe_word(row, 18)?, maybe_moment(row, 19)?);
        let (wait, woken_at) = read_wait(row.try_get(13)?, reason, until);
        let no: Option<i32> = row.try_get(17)?;
        let run = Run {
            id,
            job: JobId(row.try_get(1)?),
            tenant: TenantId(row.try_get(2)?),
            kind,
            slot: read_slot(id, kind, maybe_moment(row, 4)?),
            replay_of: run_id(row, 5)?,
            due_at: moment(row, 6)?,
            lane: word(row, 7)?,
            state: word(row, 8)?,
            reason: None,
            attempt: AttemptNo(number(row, 9)?),
            lost: number(row, 10)?,
            version: Version(number(row, 11)?),
            mark: maybe_word(row, 12)?,
            wait,
            woken_at,
            dispatched_at: maybe_moment(row, 14)?,
            payload: maybe_bytes(row, 20)?,
            payload_left: maybe_number(row, 21)?,
            trace: None,
            claim: if no == Some(OUTSIDE) {
                Some(PresenceId::OUTSIDE)
            } else {
                row.try_get::<_, Option<Uuid>>(22)?.map(PresenceId)
            },
            settled_at: None,
            stretch: None,
            note: None,
            actor: None,
            attempts: Vec::new(),
        };
        Ok(Self {
            run,
            attempts: row.try_get(15)?,
            exclusive: row.try_get(16)?,
            no,
        })
    }

    pub(super) fn decode(&self) -> Result<Run, StoreError> {
        let (trace, attempts) = doc::decode_live(self.attempts.as_deref());
        let attempts = attempts.map_err(|error| bad_row(self.run.id, &error))?;
        Ok(Run {
            trace,
            attempts,
            ..self.run.clone()
        })
    }
}

/// An ended run; columns as `{history h}` in a statement.
pub(super) fn read_ended(row: &Row) -> Done<Run> {
    let id = RunId(row.try_get(0)?);
    let kind = word(row, 3)?;
    let slot = read_slot(id, kind, maybe_moment(row, 4)?);
    let stored: Option<Vec<u8>> = row.try_get(22)?;
    let mut run = Run {
        id,
        job: JobId(row.try_get(1)?),
        tenant: TenantId(row.try_get(2)?),
        kind,
        slot,
        replay_of: run_id(row, 5)?,
        due_at: maybe_moment(row, 6)?.unwrap_or_else(|| id.at()),
        lane: word(row, 7)?,
        state: word(row, 8)?,
        reason: maybe_word(row, 9)?,
        attempt: AttemptNo(number(row, 10)?),
        lost: number(row, 11)?,
        version: Version(number(row, 12)?),
        dispatched_at: maybe_moment(row, 13)?,
        settled_at: maybe_moment(row, 14)?,
        payload: maybe_bytes(row, 21)?,
        payload_left: None,
        trace: None,
        claim: None,
        mark: None,
        wait: None,
        woken_at: None,
        stretch: stretch(slot, maybe_moment(row, 19)?, row.try_get(20)?),
        note: maybe_text(row, 23)?,
        actor: maybe_text(row, 24)?.map(Arc::from),
        attempts: Vec::new(),
    };
    let mut last = read_last(row, &mut run)?;
    let attempts = doc::decode_with_last(stored.as_deref(), last.as_mut());
    run.attempts = attempts.map_err(|error| bad_row(id, &error))?;
    run.attempts.extend(last);
    Ok(run)
}

/// The attempt that ended the run: its number and its moments are the run's own.
fn read_last(row: &Row, run: &mut Run) -> Done<Option<Attempt>> {
    let (Some(outcome), Some(settled_at)) = (maybe_word(row, 15)?, run.settled_at) else {
        return Ok(None);
    };
    Ok(Some(Attempt {
        no: run.attempt,
        dispatched_at: run.dispatched_at,
        settled_at,
        outcome,
        status: row.try_get(16)?,
        error: maybe_text(row, 17)?,
        output: maybe_bytes(row, 18)?.unwrap_or_default(),
        // The same column says of a skipped entry who decided it.
        node: run.actor.take(),
        truncated: false,
        exchange: None,
        cost: None,
        late_by: None,
        long_by: None,
    }))
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
