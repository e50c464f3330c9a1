//! The way in: rows of one call gathered column by column, so that each table is written by one statement.

use std::borrow::Cow;

use model::view::Changed;
use model::{Attempt, AttemptNo, Job, Outcome, Run, RunId, RunState, Stretch, Timestamp};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::jobs::due_at;
use super::rows::{EndedRow, text};
use super::views::Stored;
use crate::code::{Code, slot_column, stretch_columns};

pub(super) type Param<'a> = &'a (dyn ToSql + Sync);

/// Columns of one statement, in the order of its parameters.
macro_rules! columns {
    ($(#[$doc:meta])* $name:ident $(<$life:lifetime>)? { $($column:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Default)]
        pub(super) struct $name $(<$life>)? {
            $(pub(super) $column: Vec<$type>,)*
        }

        impl $(<$life>)? $name $(<$life>)? {
            pub fn params(&self) -> Vec<$crate::postgres::put::Param<'_>> {
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
    LiveColumns<'a> {
        id: Uuid,
        job: Uuid,
        tenant: Uuid,
        due_at: i64,
        version: i32,
        attempt: i32,
        lost: i32,
        claim: Option<i32>,
        shard: i16,
        kind: i16,
        lane: i16,
        state: i16,
        mark: Option<i16>,
        waiting: bool,
        exclusive: bool,
        slot: Option<i64>,
        replay_of: Option<Uuid>,
        dispatched_at: Option<i64>,
        payload: Option<&'a [u8]>,
        attempts: Option<Vec<u8>>,
    }
}

impl<'a> LiveColumns<'a> {
    pub fn push(
        &mut self,
        run: &'a Run,
        no: Option<i32>,
        exclusive: bool,
        attempts: Option<Vec<u8>>,
    ) {
        self.id.push(run.id.0);
        self.job.push(run.job.0);
        self.tenant.push(run.tenant.0);
        self.due_at.push(run.due_at.as_millis());
        self.version.push(run.version.0.cast_signed());
        self.attempt.push(run.attempt.0.cast_signed());
        self.lost.push(run.lost.cast_signed());
        self.claim.push(no);
        self.shard.push(i16::from(run.shard().0));
        self.kind.push(run.kind.code());
        self.lane.push(run.lane.code());
        self.state.push(run.state.code());
        self.mark.push(run.mark.map(Code::code));
        self.waiting.push(run.waiting);
        self.exclusive.push(exclusive);
        self.slot.push(slot_column(run));
        self.replay_of.push(run.replay_of.map(|id| id.0));
        self.dispatched_at.push(millis(run.dispatched_at));
        self.payload.push(run.payload.as_deref());
        self.attempts.push(attempts);
    }
}

columns! {
    /// Runs that enter history; columns as `put_ended.sql` has them.
    EndedColumns<'a> {
        id: Uuid,
        job: Uuid,
        tenant: Uuid,
        kind: i16,
        slot: Option<i64>,
        replay_of: Option<Uuid>,
        due_at: Option<i64>,
        lane: i16,
        state: i16,
        reason: Option<i16>,
        attempt: i32,
        lost: i32,
        version: i32,
        dispatched_at: Option<i64>,
        settled_at: Option<i64>,
        outcome: Option<i16>,
        status: Option<i32>,
        error: Option<Cow<'a, str>>,
        output: Option<&'a [u8]>,
        stretch_last: Option<i64>,
        stretch_count: Option<i64>,
        payload: Option<&'a [u8]>,
        attempts: Option<&'a [u8]>,
        note: Option<Cow<'a, str>>,
        actor: Option<Cow<'a, str>>,
    }
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
        self.actor.push(row.actor().map(text));
    }
}

columns! {
    /// First attempts that succeeded and leave nothing more to record; columns as `settle_plain.sql` has them.
    PlainColumns<'a> {
        id: Uuid,
        due_at: Option<i64>,
        dispatched_at: Option<i64>,
        settled_at: Option<i64>,
        status: Option<i32>,
        output: Option<&'a [u8]>,
    }
}

impl<'a> PlainColumns<'a> {
    /// Whether these columns, the run's own row and who made the attempts of all of them have all of it.
    pub fn hold(row: &EndedRow, actor: Option<&str>) -> bool {
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
            && row.actor() == actor
    }

    pub fn push(&mut self, row: &'a EndedRow) {
        let (run, last) = (&row.run, row.last.as_ref());
        self.id.push(run.id.0);
        self.due_at.push(due_column(run));
        self.dispatched_at.push(millis(run.dispatched_at));
        self.settled_at.push(millis(run.settled_at));
        self.status.push(last.and_then(|last| last.status));
        self.output.push(last.and_then(output_column));
    }
}

/// When a run was due, if that is not the moment in its id.
fn due_column(run: &Run) -> Option<i64> {
    millis(Some(run.due_at).filter(|due| *due != run.id.at()))
}

fn output_column(last: &Attempt) -> Option<&[u8]> {
    Some(&*last.output).filter(|output| !output.is_empty())
}

columns! {
    /// Where jobs stand; columns as `put_jobs.sql` has them.
    StandingColumns {
        id: Uuid,
        state: i16,
        state_at: i64,
        next_slot: Option<i64>,
        due_at: Option<i64>,
        slot_last: Option<i64>,
        runs_made: i64,
        catch_up_to: Option<i64>,
        manual_runs: i32,
    }
}

impl StandingColumns {
    pub fn push(&mut self, job: &Job) {
        self.id.push(job.id.0);
        self.state.push(job.state.code());
        self.state_at.push(job.state_at.as_millis());
        self.next_slot
            .push(millis(job.next_slot.map(|slot| slot.0)));
        self.due_at.push(millis(due_at(job)));
        self.slot_last.push(millis(job.slot_last));
        self.runs_made.push(i64::from(job.runs_made));
        self.catch_up_to.push(millis(job.catch_up_to));
        self.manual_runs.push(job.manual_runs.cast_signed());
    }
}

columns! {
    /// Live runs as they were read; columns as `gone_live.sql` has them.
    TokenColumns {
        id: Uuid,
        claim: Option<i32>,
        attempt: i32,
        mark: Option<i16>,
        exclusive: bool,
    }
}

impl TokenColumns {
    pub fn push(&mut self, run: &Run, stored: &Stored) {
        self.id.push(run.id.0);
        self.claim.push(stored.no);
        self.attempt.push(run.attempt.0.cast_signed());
        self.mark.push(run.mark.map(Code::code));
        self.exclusive.push(stored.exclusive);
    }
}

columns! {
    /// Live runs that go on otherwise; columns as `change_live.sql` has them.
    ChangeColumns {
        id: Uuid,
        claim_was: Option<i32>,
        attempt_was: i32,
        mark_was: Option<i16>,
        claim: Option<i32>,
        attempt: i32,
        state: i16,
        due_at: i64,
        lost: i32,
        mark: Option<i16>,
        waiting: bool,
        dispatched_at: Option<i64>,
        attempts: Option<Vec<u8>>,
    }
}

impl ChangeColumns {
    /// A holder is the one that it was, or nobody.
    pub fn push(&mut self, changed: &Changed, stored: &Stored, attempts: Option<Vec<u8>>) {
        let Changed { was, now } = changed;
        self.id.push(now.id.0);
        self.claim_was.push(stored.no);
        self.attempt_was.push(was.attempt.0.cast_signed());
        self.mark_was.push(was.mark.map(Code::code));
        self.claim.push(now.claim.and(stored.no));
        self.attempt.push(now.attempt.0.cast_signed());
        self.state.push(now.state.code());
        self.due_at.push(now.due_at.as_millis());
        self.lost.push(now.lost.cast_signed());
        self.mark.push(now.mark.map(Code::code));
        self.waiting.push(now.waiting);
        self.dispatched_at.push(millis(now.dispatched_at));
        self.attempts.push(attempts);
    }
}

columns! {
    /// Whether the ends of runs mean something to others; columns as `set_exclusive.sql` has them.
    ExclusiveColumns {
        id: Uuid,
        exclusive: bool,
    }
}

impl ExclusiveColumns {
    pub fn push(&mut self, id: RunId, exclusive: bool) {
        self.id.push(id.0);
        self.exclusive.push(exclusive);
    }
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
    pub fn push(&mut self, id: RunId, left: Option<Stretch>) {
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
