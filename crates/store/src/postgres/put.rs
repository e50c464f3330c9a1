//! The way in: rows of one call gathered column by column, so that each table is written by one statement.

use std::borrow::Cow;
use std::collections::BTreeMap;

use model::{
    Ask, Attempt, AttemptNo, JobId, Outcome, Run, RunId, RunState, Standing, Stretch, Timestamp,
};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::rows::{EndedRow, LiveRow, text};
use crate::code::{Code, slot_column, stretch_columns};

type Param<'a> = &'a (dyn ToSql + Sync);

/// Runs that come to life; columns as `put_live.sql` has them.
#[derive(Default)]
pub(super) struct LiveColumns<'a> {
    id: Vec<Uuid>,
    job: Vec<Uuid>,
    tenant: Vec<Uuid>,
    due_at: Vec<i64>,
    version: Vec<i32>,
    attempt: Vec<i32>,
    lost: Vec<i32>,
    claim: Vec<Option<i32>>,
    shard: Vec<i16>,
    kind: Vec<i16>,
    lane: Vec<i16>,
    state: Vec<i16>,
    ask: Vec<Option<i16>>,
    waiting: Vec<bool>,
    exclusive: Vec<bool>,
    slot: Vec<Option<i64>>,
    replay_of: Vec<Option<Uuid>>,
    dispatched_at: Vec<Option<i64>>,
    payload: Vec<Option<&'a [u8]>>,
    attempts: Vec<Option<&'a [u8]>>,
}

impl<'a> LiveColumns<'a> {
    pub fn new(rows: &'a [LiveRow]) -> Self {
        let mut columns = Self::default();
        for row in rows {
            columns.push(row);
        }
        columns
    }

    fn push(&mut self, row: &'a LiveRow) {
        let run = &row.run;
        self.id.push(run.id.0);
        self.job.push(run.job.0);
        self.tenant.push(run.tenant.0);
        self.due_at.push(run.due_at.as_millis());
        self.version.push(run.version.0.cast_signed());
        self.attempt.push(run.attempt.0.cast_signed());
        self.lost.push(run.lost.cast_signed());
        self.claim.push(row.no);
        self.shard.push(i16::from(run.shard().0));
        self.kind.push(run.kind.code());
        self.lane.push(run.lane.code());
        self.state.push(run.state.code());
        self.ask.push(run.ask.map(Code::code));
        self.waiting.push(run.waiting);
        self.exclusive.push(row.exclusive);
        self.slot.push(slot_column(run));
        self.replay_of.push(run.replay_of.map(|id| id.0));
        self.dispatched_at
            .push(run.dispatched_at.map(Timestamp::as_millis));
        self.payload.push(run.payload.as_deref());
        self.attempts.push(row.attempts.as_deref());
    }

    pub fn params(&self) -> Vec<Param<'_>> {
        vec![
            &self.id,
            &self.job,
            &self.tenant,
            &self.due_at,
            &self.version,
            &self.attempt,
            &self.lost,
            &self.claim,
            &self.shard,
            &self.kind,
            &self.lane,
            &self.state,
            &self.ask,
            &self.waiting,
            &self.exclusive,
            &self.slot,
            &self.replay_of,
            &self.dispatched_at,
            &self.payload,
            &self.attempts,
        ]
    }
}

/// Runs that enter history; columns as `put_ended.sql` has them.
#[derive(Default)]
pub(super) struct EndedColumns<'a> {
    id: Vec<Uuid>,
    job: Vec<Uuid>,
    tenant: Vec<Uuid>,
    kind: Vec<i16>,
    slot: Vec<Option<i64>>,
    replay_of: Vec<Option<Uuid>>,
    due_at: Vec<Option<i64>>,
    lane: Vec<i16>,
    state: Vec<i16>,
    reason: Vec<Option<i16>>,
    attempt: Vec<i32>,
    lost: Vec<i32>,
    version: Vec<i32>,
    dispatched_at: Vec<Option<i64>>,
    settled_at: Vec<Option<i64>>,
    outcome: Vec<Option<i16>>,
    status: Vec<Option<i32>>,
    error: Vec<Option<Cow<'a, str>>>,
    output: Vec<Option<&'a [u8]>>,
    stretch_last: Vec<Option<i64>>,
    stretch_count: Vec<Option<i64>>,
    payload: Vec<Option<&'a [u8]>>,
    attempts: Vec<Option<&'a [u8]>>,
    note: Vec<Option<Cow<'a, str>>>,
    actor: Vec<Option<Cow<'a, str>>>,
}

impl<'a> EndedColumns<'a> {
    pub fn new(rows: impl IntoIterator<Item = &'a EndedRow>) -> Self {
        let mut columns = Self::default();
        for row in rows {
            columns.push(row);
        }
        columns
    }

    fn push(&mut self, row: &'a EndedRow) {
        let (run, last) = (&row.run, row.last.as_ref());
        let millis = |at: Option<Timestamp>| at.map(Timestamp::as_millis);
        self.id.push(run.id.0);
        self.job.push(run.job.0);
        self.tenant.push(run.tenant.0);
        self.kind.push(run.kind.code());
        self.slot.push(slot_column(run));
        self.replay_of.push(run.replay_of.map(|id| id.0));
        self.due_at.push(due_column(run));
        self.lane.push(run.lane.code());
        self.state.push(run.state.code());
        self.reason.push(run.reason.map(Code::code));
        self.attempt.push(run.attempt.0.cast_signed());
        self.lost.push(run.lost.cast_signed());
        self.version.push(run.version.0.cast_signed());
        self.dispatched_at.push(millis(run.dispatched_at));
        self.settled_at.push(millis(run.settled_at));
        self.outcome.push(last.map(|last| last.outcome.code()));
        self.status.push(last.and_then(|last| last.status));
        self.error
            .push(last.and_then(|last| last.error.as_deref()).map(text));
        self.output.push(last.and_then(output_column));
        let (last, count) = stretch_columns(run.stretch);
        self.stretch_last.push(last);
        self.stretch_count.push(count);
        self.payload.push(run.payload.as_deref());
        self.attempts.push(row.attempts.as_deref());
        self.note.push(run.note.as_deref().map(text));
        self.actor.push(run.by.as_deref().map(text));
    }

    pub fn params(&self) -> Vec<Param<'_>> {
        vec![
            &self.id,
            &self.job,
            &self.tenant,
            &self.kind,
            &self.slot,
            &self.replay_of,
            &self.due_at,
            &self.lane,
            &self.state,
            &self.reason,
            &self.attempt,
            &self.lost,
            &self.version,
            &self.dispatched_at,
            &self.settled_at,
            &self.outcome,
            &self.status,
            &self.error,
            &self.output,
            &self.stretch_last,
            &self.stretch_count,
            &self.payload,
            &self.attempts,
            &self.note,
            &self.actor,
        ]
    }
}

/// First attempts that succeeded and have nothing more to say; columns as `settle_plain.sql` has them.
#[derive(Default)]
pub(super) struct PlainColumns<'a> {
    pub id: Vec<Uuid>,
    due_at: Vec<Option<i64>>,
    dispatched_at: Vec<Option<i64>>,
    settled_at: Vec<Option<i64>>,
    status: Vec<Option<i32>>,
    output: Vec<Option<&'a [u8]>>,
}

impl<'a> PlainColumns<'a> {
    /// Whether the end can be told by these columns and the run's own row.
    pub fn tell(row: &EndedRow) -> bool {
        let (run, last) = (&row.run, row.last.as_ref());
        let succeeded = |last: &Attempt| last.outcome == Outcome::Succeeded && last.error.is_none();
        run.state == RunState::Succeeded
            && last.is_some_and(succeeded)
            && run.attempt == AttemptNo::FIRST
            && run.lost == 0
            && row.attempts.is_none()
            && run.reason.is_none()
            && run.stretch.is_none()
            && run.note.is_none()
            && run.by.is_none()
    }

    pub fn push(&mut self, row: &'a EndedRow) {
        let (run, last) = (&row.run, row.last.as_ref());
        self.id.push(run.id.0);
        self.due_at.push(due_column(run));
        let millis = |at: Option<Timestamp>| at.map(Timestamp::as_millis);
        self.dispatched_at.push(millis(run.dispatched_at));
        self.settled_at.push(millis(run.settled_at));
        self.status.push(last.and_then(|last| last.status));
        self.output.push(last.and_then(output_column));
    }

    pub fn params(&self) -> [Param<'_>; 6] {
        [
            &self.id,
            &self.due_at,
            &self.dispatched_at,
            &self.settled_at,
            &self.status,
            &self.output,
        ]
    }
}

/// When a run was due, if that is not the moment in its id.
fn due_column(run: &Run) -> Option<i64> {
    let due_at = Some(run.due_at).filter(|due| *due != run.id.at());
    due_at.map(Timestamp::as_millis)
}

fn output_column(last: &Attempt) -> Option<&[u8]> {
    Some(&*last.output).filter(|output| !output.is_empty())
}

/// Where jobs stand; columns as `put_jobs.sql` has them.
#[derive(Default)]
pub(super) struct StandingColumns {
    id: Vec<Uuid>,
    state: Vec<i16>,
    state_at: Vec<i64>,
    next_slot: Vec<Option<i64>>,
    due_at: Vec<Option<i64>>,
    slot_last: Vec<Option<i64>>,
    runs_made: Vec<i64>,
}

impl StandingColumns {
    /// In the order of ids, as they are locked.
    pub fn new(jobs: &BTreeMap<JobId, (Standing, Option<Timestamp>)>) -> Self {
        let mut columns = Self::default();
        for (id, (stands, due_at)) in jobs {
            columns.id.push(id.0);
            columns.state.push(stands.state.code());
            columns.state_at.push(stands.state_at.as_millis());
            let next_slot = stands.next_slot.map(|slot| slot.0.as_millis());
            columns.next_slot.push(next_slot);
            columns.due_at.push(due_at.map(Timestamp::as_millis));
            let slot_last = stands.slot_last.map(Timestamp::as_millis);
            columns.slot_last.push(slot_last);
            columns.runs_made.push(i64::from(stands.runs_made));
        }
        columns
    }

    pub fn params(&self) -> Vec<Param<'_>> {
        vec![
            &self.id,
            &self.state,
            &self.state_at,
            &self.next_slot,
            &self.due_at,
            &self.slot_last,
            &self.runs_made,
        ]
    }
}

/// Live runs as they were read; columns as `gone_live.sql` has them.
#[derive(Default)]
pub(super) struct TokenColumns {
    id: Vec<Uuid>,
    claim: Vec<Option<i32>>,
    attempt: Vec<i32>,
    ask: Vec<Option<i16>>,
    exclusive: Vec<bool>,
}

impl TokenColumns {
    pub fn push(&mut self, row: &LiveRow) {
        self.id.push(row.run.id.0);
        self.claim.push(row.no);
        self.attempt.push(row.run.attempt.0.cast_signed());
        self.ask.push(row.run.ask.map(Code::code));
        self.exclusive.push(row.exclusive);
    }

    pub fn params(&self) -> [Param<'_>; 5] {
        [
            &self.id,
            &self.claim,
            &self.attempt,
            &self.ask,
            &self.exclusive,
        ]
    }
}

/// Live runs that go on; columns as `move_live.sql` has them.
#[derive(Default)]
pub(super) struct MoveColumns {
    was: TokenColumns,
    attempt: Vec<i32>,
    state: Vec<i16>,
    due_at: Vec<i64>,
    lost: Vec<i32>,
    attempts: Vec<Option<Vec<u8>>>,
    dispatched_at: Vec<Option<i64>>,
}

impl MoveColumns {
    pub fn push(&mut self, was: &LiveRow, now: &LiveRow) {
        self.was.push(was);
        self.attempt.push(now.run.attempt.0.cast_signed());
        self.state.push(now.run.state.code());
        self.due_at.push(now.run.due_at.as_millis());
        self.lost.push(now.run.lost.cast_signed());
        self.attempts.push(now.attempts.clone());
        let dispatched_at = now.run.dispatched_at;
        self.dispatched_at
            .push(dispatched_at.map(Timestamp::as_millis));
    }

    pub fn params(&self) -> [Param<'_>; 10] {
        let was = &self.was;
        [
            &was.id,
            &was.claim,
            &was.attempt,
            &was.ask,
            &self.attempt,
            &self.state,
            &self.due_at,
            &self.lost,
            &self.attempts,
            &self.dispatched_at,
        ]
    }
}

/// Skipped entries that go, and those that are cut short; columns as `untell.sql` and `cut.sql` have them.
#[derive(Default)]
pub(super) struct UntoldColumns {
    pub gone: Vec<Uuid>,
    pub id: Vec<Uuid>,
    last: Vec<Option<i64>>,
    count: Vec<Option<i64>>,
}

impl UntoldColumns {
    pub fn new(untold: &BTreeMap<RunId, Option<Stretch>>) -> Self {
        let mut columns = Self::default();
        for (id, still) in untold {
            let Some(still) = still else {
                columns.gone.push(id.0);
                continue;
            };
            let (last, count) = stretch_columns(still.several());
            columns.id.push(id.0);
            columns.last.push(last);
            columns.count.push(count);
        }
        columns
    }

    pub fn params(&self) -> Vec<Param<'_>> {
        vec![&self.id, &self.last, &self.count]
    }
}

/// Marks for holders; columns as `ask.sql` has them.
pub(super) fn asks(marks: &BTreeMap<RunId, Ask>) -> (Vec<Uuid>, Vec<i16>) {
    marks.iter().map(|(id, ask)| (id.0, ask.code())).unzip()
}
