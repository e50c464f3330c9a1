//! The way in: rows of one call gathered column by column, so that each table is written by one statement.

use std::borrow::Cow;

use model::view::{Changed, HandOver};
use model::{
    Attempt, AttemptNo, Handed, Job, Outcome, PresenceId, Run, RunId, RunState, Shard, Stretch,
    Timestamp,
};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::rows::text;
use super::views::Stored;
use crate::code::{Code, slot_column, stretch_columns, wait_columns};
use crate::row::{EndedRow, due_column};

pub(super) type Param<'a> = &'a (dyn ToSql + Sync);

/// Columns of one statement, in the order of its parameters, and how a row fills them.
macro_rules! columns {
    ($(#[$doc:meta])* $name:ident $(<$life:lifetime>)? ($($arg:ident: $of:ty),*) $({ $($with:tt)* })? [
        $($column:ident: $type:ty = $value:expr,)*
    ]) => {
        $(#[$doc])*
        #[derive(Default)]
        pub(super) struct $name $(<$life>)? {
            $(pub(super) $column: Vec<$type>,)*
        }

        impl $(<$life>)? $name $(<$life>)? {
            pub(super) fn push(&mut self, $($arg: $of),*) {
                $($($with)*)?
                $(self.$column.push($value);)*
            }

            pub(super) fn params(&self) -> Vec<$crate::postgres::put::Param<'_>> {
                vec![$(&self.$column),*]
            }
        }
    };
}
pub(super) use columns;

fn millis(at: Option<Timestamp>) -> Option<i64> {
    at.map(Timestamp::as_millis)
}

columns! {
    /// Runs that come to life; columns as `put_live.sql` has them.
    LiveColumns<'a>(run: &'a Run, no: Option<i32>, exclusive: bool, attempts: Option<Vec<u8>>) [
        id: Uuid = run.id.0,
        job: Uuid = run.job.0,
        tenant: Uuid = run.tenant.0,
        due_at: i64 = run.due_at.as_millis(),
        version: i32 = run.version.0.cast_signed(),
        attempt: i32 = run.attempt.0.cast_signed(),
        lost: i32 = run.lost.cast_signed(),
        claim: Option<i32> = no,
        shard: i16 = i16::from(run.shard().0),
        kind: i16 = run.kind.code(),
        lane: i16 = run.lane.code(),
        state: i16 = run.state.code(),
        mark: Option<i16> = run.mark.map(Code::code),
        waiting: bool = run.wait.is_some(),
        exclusive: bool = exclusive,
        slot: Option<i64> = slot_column(run),
        replay_of: Option<Uuid> = run.replay_of.map(|id| id.0),
        dispatched_at: Option<i64> = millis(run.dispatched_at),
        payload: Option<&'a [u8]> = run.payload.as_deref(),
        attempts: Option<Vec<u8>> = attempts,
    ]
}

columns! {
    /// Runs that enter history; columns as `put_ended.sql` has them.
    EndedColumns<'a>(row: &'a EndedRow) {
        let (run, last) = (&row.run, row.last.as_ref());
        let (stretch_last, stretch_count) = stretch_columns(run.stretch);
    } [
        id: Uuid = run.id.0,
        job: Uuid = run.job.0,
        tenant: Uuid = run.tenant.0,
        kind: i16 = run.kind.code(),
        slot: Option<i64> = slot_column(run),
        replay_of: Option<Uuid> = run.replay_of.map(|id| id.0),
        due_at: Option<i64> = row.due_column(),
        lane: i16 = run.lane.code(),
        state: i16 = run.state.code(),
        reason: Option<i16> = run.reason.map(Code::code),
        attempt: i32 = run.attempt.0.cast_signed(),
        lost: i32 = run.lost.cast_signed(),
        version: i32 = run.version.0.cast_signed(),
        dispatched_at: Option<i64> = millis(run.dispatched_at),
        settled_at: Option<i64> = millis(run.settled_at),
        outcome: Option<i16> = last.map(|last| last.outcome.code()),
        status: Option<i32> = last.and_then(|last| last.status),
        error: Option<Cow<'a, str>> = last.and_then(|last| last.error.as_deref()).map(text),
        output: Option<&'a [u8]> = row.output_column(),
        stretch_last: Option<i64> = stretch_last,
        stretch_count: Option<i64> = stretch_count,
        payload: Option<&'a [u8]> = run.payload.as_deref(),
        attempts: Option<&'a [u8]> = row.attempts.as_deref(),
        note: Option<Cow<'a, str>> = run.note.as_deref().map(text),
        actor: Option<Cow<'a, str>> = row.actor().map(text),
    ]
}

impl<'a> EndedColumns<'a> {
    pub(super) fn new(rows: impl IntoIterator<Item = &'a EndedRow>) -> Self {
        let mut columns = Self::default();
        for row in rows {
            columns.push(row);
        }
        columns
    }
}

columns! {
    /// First attempts that succeeded and leave nothing more to record; columns as `settle_plain.sql` has them.
    PlainEndColumns<'a>(row: &'a EndedRow) {
        let (run, last) = (&row.run, row.last.as_ref());
    } [
        id: Uuid = run.id.0,
        due_at: Option<i64> = row.due_column(),
        dispatched_at: Option<i64> = millis(run.dispatched_at),
        settled_at: Option<i64> = millis(run.settled_at),
        status: Option<i32> = last.and_then(|last| last.status),
        output: Option<&'a [u8]> = row.output_column(),
        attempts: Option<&'a [u8]> = row.attempts.as_deref(),
    ]
}

impl PlainEndColumns<'_> {
    /// Whether these columns, the run's own row and who made the attempts of all of them have all of it.
    pub(super) fn hold(row: &EndedRow, actor: Option<&str>) -> bool {
        let (run, last) = (&row.run, row.last.as_ref());
        let succeeded = |last: &Attempt| last.outcome == Outcome::Succeeded && last.error.is_none();
        run.state == RunState::Succeeded
            && last.is_some_and(succeeded)
            && run.attempt == AttemptNo::FIRST
            && run.lost == 0
            && run.reason.is_none()
            && run.stretch.is_none()
            && run.note.is_none()
            && run.actor.is_none()
            && row.actor() == actor
    }
}

columns! {
    /// Where jobs stand; columns as `put_jobs.sql` has them.
    StandingColumns(job: &Job) [
        id: Uuid = job.id.0,
        state: i16 = job.state.code(),
        state_at: i64 = job.state_at.as_millis(),
        next_slot: Option<i64> = millis(job.next_slot.map(|slot| slot.0)),
        due_at: Option<i64> = due_column(job),
        slot_last: Option<i64> = millis(job.slot_last),
        runs_made: i64 = i64::from(job.runs_made),
        catch_up_to: Option<i64> = millis(job.catch_up_to),
        manual_runs: i32 = job.manual_runs.cast_signed(),
        failures: Option<i32> = job.failures.map(u32::cast_signed),
    ]
}

columns! {
    /// Jobs that the system paused, and why; columns as `pause_jobs.sql` has them.
    PauseColumns<'a>(job: &'a Job) [
        id: Uuid = job.id.0,
        version: i32 = job.version.0.cast_signed(),
        updated_at: i64 = job.updated_at.as_millis(),
        note: Option<Cow<'a, str>> = job.note.as_deref().map(text),
        paused_by: Option<Cow<'a, str>> = job.paused_by.as_deref().map(text),
    ]
}

columns! {
    /// Live runs as they were read; columns as `gone_live.sql` has them.
    TokenColumns(run: &Run, stored: &Stored) [
        id: Uuid = run.id.0,
        claim: Option<i32> = stored.no,
        attempt: i32 = run.attempt.0.cast_signed(),
        mark: Option<i16> = run.mark.map(Code::code),
        exclusive: bool = stored.exclusive,
    ]
}

/// The number of whoever holds what is handed over.
pub(super) const OUTSIDE: i32 = -1;

fn claim_of(run: &Run, stored: &Stored) -> Option<i32> {
    if run.claim == Some(PresenceId::OUTSIDE) {
        Some(OUTSIDE)
    } else {
        run.claim.and(stored.no)
    }
}

columns! {
    /// What is kept of handed-over attempts; columns as `put_handed.sql` has them.
    HandedColumns(handed: &Handed) [
        run: Uuid = handed.run.0,
        job: Uuid = handed.job.0,
        shard: i16 = i16::from(Shard::of(handed.job).0),
        attempt: i32 = handed.attempt.0.cast_signed(),
        node: Option<String> = handed.node.as_deref().map(|node| text(node).into_owned()),
        dispatched_at: i64 = handed.dispatched_at.as_millis(),
        within: i64 = model::time::millis(handed.within),
        timeout_at: i64 = handed.timeout_at.as_millis(),
        until: Option<i64> = millis(handed.until),
        cancelled: bool = handed.cancelled,
        beaten_at: Option<i64> = millis(handed.beaten_at),
        progress: Option<String> = handed.progress.as_ref().map(|it| text(&it.to_column()).into_owned()),
    ]
}

columns! {
    /// Hand-overs; columns as `hand_over.sql` has them.
    HandOverColumns(it: &HandOver) [
        run: Uuid = it.run.0,
        attempt: i32 = it.attempt.0.cast_signed(),
        node: String = text(&it.node).into_owned(),
        dispatched_at: i64 = it.dispatched_at.as_millis(),
        within: i64 = model::time::millis(it.within),
        timeout_at: i64 = it.dispatched_at.plus(it.timeout).as_millis(),
    ]
}

columns! {
    /// Live runs that go on otherwise; columns as `change_live.sql` has them.
    /// A holder is the one that it was, the outside, or nobody.
    ChangeColumns(changed: &Changed, stored: &Stored, attempts: Option<Vec<u8>>) {
        let Changed { was, now } = changed;
    } [
        id: Uuid = now.id.0,
        claim_was: Option<i32> = stored.no,
        attempt_was: i32 = was.attempt.0.cast_signed(),
        mark_was: Option<i16> = was.mark.map(Code::code),
        claim: Option<i32> = claim_of(now, stored),
        attempt: i32 = now.attempt.0.cast_signed(),
        state: i16 = now.state.code(),
        due_at: i64 = now.due_at.as_millis(),
        lost: i32 = now.lost.cast_signed(),
        mark: Option<i16> = now.mark.map(Code::code),
        waiting: bool = now.wait.is_some(),
        dispatched_at: Option<i64> = millis(now.dispatched_at),
        attempts: Option<Vec<u8>> = attempts,
        wait_reason: Option<i16> = wait_columns(now).0,
        wait_until: Option<i64> = wait_columns(now).1,
    ]
}

columns! {
    /// Runs as they are claimed; columns as `put_claims.sql` has them.
    ClaimColumns(run: &Run) [
        id: Uuid = run.id.0,
        state: i16 = run.state.code(),
        due_at: i64 = run.due_at.as_millis(),
        version: i32 = run.version.0.cast_signed(),
    ]
}

columns! {
    /// Whether the ends of runs mean something to others; columns as `set_exclusive.sql` has them.
    ExclusiveColumns(id: RunId, exclusive: bool) [
        id: Uuid = id.0,
        exclusive: bool = exclusive,
    ]
}

/// Skip records that are deleted, and those that are shortened.
#[derive(Default)]
pub(super) struct SkipColumns {
    pub gone: Vec<Uuid>,
    pub id: Vec<Uuid>,
    pub last: Vec<Option<i64>>,
    pub count: Vec<Option<i64>>,
}

impl SkipColumns {
    pub(super) fn push(&mut self, id: RunId, left: Option<Stretch>) {
        let Some(left) = left else {
            self.gone.push(id.0);
            return;
        };
        let (last, count) = stretch_columns(left.several());
        self.id.push(id.0);
        self.last.push(last);
        self.count.push(count);
    }
}
