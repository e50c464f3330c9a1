//! Rows: how the model's words stand in columns. The numbers of words are in `code`.

use std::sync::Arc;

use bytes::Bytes;
use model::{
    Attempt, AttemptNo, JobId, PresenceId, Run, RunId, Slot, Standing, TenantId, Timestamp, Version,
};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, Value, ValueRef};
use rusqlite::{Result, Row, Statement};

use crate::StoreError;
use crate::code::{Code, bad_row, read_slot, read_wait};
use crate::doc;
use crate::row::{JobRow, Narrow, stretch};

/// A word in a column.
pub(super) struct Word<T>(pub T);

impl<T: Code> FromSql for Word<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let code = value.as_i64()?;
        let word = i16::try_from(code).ok().and_then(T::from_code);
        word.map(Self).ok_or(FromSqlError::OutOfRange(code))
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

/// Executes a statement of many columns. Those that are null, which is what most of a row's are, are not bound.
pub(super) fn execute_sparse(
    statement: &mut Statement<'_>,
    columns: &[&dyn ToSql],
) -> Result<usize> {
    debug_assert_eq!(columns.len(), statement.parameter_count());
    statement.clear_bindings();
    for (index, column) in columns.iter().enumerate() {
        let is_null = matches!(
            column.to_sql()?,
            ToSqlOutput::Owned(Value::Null) | ToSqlOutput::Borrowed(ValueRef::Null)
        );
        if !is_null {
            statement.raw_bind_parameter(index + 1, column)?;
        }
    }
    statement.raw_execute()
}

pub(super) fn moment(row: &Row<'_>, column: usize) -> Result<Timestamp> {
    row.get(column).map(Timestamp::from_millis)
}

pub(super) fn maybe_moment(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>> {
    Ok(row
        .get::<_, Option<i64>>(column)?
        .map(Timestamp::from_millis))
}

pub(super) fn word<T: Code>(row: &Row<'_>, column: usize) -> Result<T> {
    row.get::<_, Word<T>>(column).map(|word| word.0)
}

fn maybe_word<T: Code>(row: &Row<'_>, column: usize) -> Result<Option<T>> {
    Ok(row.get::<_, Option<Word<T>>>(column)?.map(|word| word.0))
}

pub(super) fn maybe_bytes(row: &Row<'_>, column: usize) -> Result<Option<Bytes>> {
    Ok(row.get::<_, Option<Vec<u8>>>(column)?.map(Bytes::from))
}

/// A job; columns as `get_job.sql` has them.
pub(super) fn read_job(row: &Row<'_>) -> Result<JobRow> {
    Ok(JobRow {
        narrow: Narrow {
            id: JobId::from_bytes(row.get(0)?),
            tenant: row.get::<_, Tenant>(1)?.0,
            version: Version(row.get(3)?),
            stands: Standing {
                state: word(row, 2)?,
                state_at: moment(row, 6)?,
                next_slot: maybe_moment(row, 4)?.map(Slot),
                slot_last: maybe_moment(row, 5)?,
                runs_made: row.get(13)?,
                catch_up_to: maybe_moment(row, 16)?,
                manual_runs: row.get(18)?,
                failures: row.get(20)?,
            },
        },
        created_at: moment(row, 7)?,
        updated_at: moment(row, 8)?,
        note: row.get(9)?,
        key: row.get(10)?,
        paused_by: row.get(14)?,
        owner: row.get(19)?,
        once_until: row.get::<_, Option<u32>>(21)?.map(Version),
        doc: row.get(11)?,
        payload: maybe_bytes(row, 12)?,
        payload_left: row.get(17)?,
        names_calendars: row.get(15)?,
    })
}

/// A run and its attempts as a row has them; the attempts are still to be read.
pub(super) struct RunRow {
    pub run: Run,
    last: Option<Attempt>,
    attempts: Option<Vec<u8>>,
}

impl RunRow {
    /// Columns as `get_run_live.sql` has them.
    pub(super) fn read_live(row: &Row<'_>) -> Result<Self> {
        let id = RunId::from_bytes(row.get(0)?);
        let kind = word(row, 3)?;
        let waits: i64 = row.get(13)?;
        let (wait, woken_at) = read_wait(waits != 0, maybe_word(row, 19)?, maybe_moment(row, 20)?);
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
            mark: maybe_word(row, 12)?,
            wait,
            woken_at,
            dispatched_at: maybe_moment(row, 14)?,
            payload: maybe_bytes(row, 15)?,
            payload_left: row.get(18)?,
            trace: None,
            claim: row
                .get::<_, Option<[u8; 16]>>(17)?
                .map(PresenceId::from_bytes),
            settled_at: None,
            stretch: None,
            note: None,
            actor: None,
            attempts: Vec::new(),
        };
        Ok(Self {
            run,
            last: None,
            attempts: row.get(16)?,
        })
    }

    /// Columns as `get_run_ended.sql` has them.
    pub(super) fn read_ended(row: &Row<'_>) -> Result<Self> {
        let id = RunId::from_bytes(row.get(0)?);
        let kind = word(row, 3)?;
        let slot = read_slot(id, kind, maybe_moment(row, 4)?);
        let mut run = Run {
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
            payload_left: None,
            trace: None,
            claim: None,
            mark: None,
            wait: None,
            woken_at: None,
            stretch: stretch(slot, maybe_moment(row, 19)?, row.get(20)?),
            note: row.get(23)?,
            actor: row.get::<_, Option<String>>(24)?.map(Arc::from),
            attempts: Vec::new(),
        };
        let last = read_last(row, &mut run)?;
        Ok(Self {
            run,
            last,
            attempts: row.get(22)?,
        })
    }

    pub(super) fn id(&self) -> RunId {
        self.run.id
    }

    pub(super) fn decode(self) -> std::result::Result<Run, StoreError> {
        let Self {
            mut run,
            mut last,
            attempts,
        } = self;
        let read = if run.state.is_live() {
            let (trace, read) = doc::decode_live(attempts.as_deref());
            run.trace = trace;
            read
        } else {
            doc::decode_with_last(attempts.as_deref(), last.as_mut())
        };
        run.attempts = read.map_err(|error| bad_row(run.id, &error))?;
        run.attempts.extend(last);
        Ok(run)
    }

    /// A live one, without attempts if those cannot be read.
    pub(super) fn decode_or_head(self) -> Run {
        let (trace, attempts) = doc::decode_live(self.attempts.as_deref());
        Run {
            trace,
            attempts: attempts.unwrap_or_default(),
            ..self.run
        }
    }
}

/// The attempt that ended the run: its number and its moments are the run's own.
fn read_last(row: &Row<'_>, run: &mut Run) -> Result<Option<Attempt>> {
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
        // The same column says of a skipped entry who decided it.
        node: run.actor.take(),
        truncated: false,
        exchange: None,
        cost: None,
        late_by: None,
        long_by: None,
    }))
}

/// A live run with its attempts encoded, ready to be bound.
pub(super) struct LiveRow {
    pub run: Run,
    pub attempts: Option<Vec<u8>>,
}

impl LiveRow {
    pub(super) fn new(run: Run) -> std::result::Result<Self, StoreError> {
        let attempts = doc::encode_live(run.trace.as_deref(), &run.attempts)
            .map_err(|error| bad_row(run.id, &error))?;
        Ok(Self { run, attempts })
    }
}
