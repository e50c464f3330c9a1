//! The way into history: one table for each day of UTC, made when its first run ends.

use std::collections::{BTreeMap, BTreeSet};

use model::{Attempt, AttemptNo, Outcome, Partition, RunId, RunKind, RunState, Timestamp};
use rusqlite::{CachedStatement, Connection, params};

use super::alerts::Watched;
use super::fault::Done;
use super::rows::{Tenant, execute_sparse};
use super::tenants::has_others;
use crate::code::{Code, slot_column, stretch_columns};
use crate::row::EndedRow;

/// The days of UTC that have a table of history.
#[derive(Default)]
pub(super) struct Partitions {
    pub days: BTreeSet<i64>,
    /// From when the keep time of those counts that stragglers were written to.
    noted: BTreeMap<i64, Timestamp>,
}

impl Partitions {
    pub(super) fn read(conn: &Connection) -> Done<Self> {
        let mut select = conn.prepare_cached(include_str!("sql/partitions.sql"))?;
        let mut partitions = Self::default();
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let (day, noted): (i64, Option<i64>) = (row.get(0)?, row.get(1)?);
            partitions.days.insert(day);
            let noted = noted.map(Timestamp::from_millis);
            partitions.noted.extend(noted.map(|noted| (day, noted)));
        }
        Ok(partitions)
    }

    /// The day that a run's history belongs to.
    pub(super) fn partition_of(run: RunId) -> i64 {
        Partition::of(run).0
    }

    /// From when a day's keep time counts.
    pub(super) fn kept_from(&self, day: i64) -> Timestamp {
        let noted = self.noted.get(&day).copied();
        noted.unwrap_or_else(|| Partition(day).ends_at())
    }

    /// The oldest day whose keep time is over.
    pub(super) fn oldest_over(&self, until: Timestamp) -> Option<i64> {
        let mut days = self.days.iter().copied();
        days.find(|day| self.kept_from(*day) <= until)
    }

    pub(super) fn remove(&mut self, day: i64) {
        self.days.remove(&day);
        self.noted.remove(&day);
    }

    /// The text of a statement about one day. A day is a number of ours, never a client's text.
    pub(super) fn sql(template: &'static str, day: i64) -> String {
        template.replace("{day}", &day.to_string())
    }
}

/// A statement about one day, kept for the next call that is about the same day.
pub(super) struct OfPartition<'a> {
    conn: &'a Connection,
    template: &'static str,
    open: Option<(i64, CachedStatement<'a>)>,
}

impl<'a> OfPartition<'a> {
    pub(super) fn new(conn: &'a Connection, template: &'static str) -> Self {
        Self {
            conn,
            template,
            open: None,
        }
    }

    pub(super) fn get(&mut self, day: i64) -> Done<&mut CachedStatement<'a>> {
        let statement = match self.open.take() {
            Some((open, statement)) if open == day => statement,
            Some(_) | None => self
                .conn
                .prepare_cached(&Partitions::sql(self.template, day))?,
        };
        Ok(&mut self.open.insert((day, statement)).1)
    }
}

/// The way into history, for one call: days are opened, and made, as runs arrive.
pub(super) struct Archive<'a> {
    partitions: &'a mut Partitions,
    insert: OfPartition<'a>,
    succeeded: OfPartition<'a>,
    watched: &'a Watched,
}

impl<'a> Archive<'a> {
    pub(super) fn new(
        conn: &'a Connection,
        partitions: &'a mut Partitions,
        watched: &'a Watched,
    ) -> Self {
        Self {
            partitions,
            insert: OfPartition::new(conn, include_str!("sql/put_ended.sql")),
            succeeded: OfPartition::new(conn, include_str!("sql/put_succeeded.sql")),
            watched,
        }
    }

    pub(super) fn put(&mut self, row: &EndedRow) -> Done<()> {
        let (Partition(day), kept_from) = row.run.partition();
        if !self.partitions.days.contains(&day) {
            self.make(day)?;
        }
        match succeeded_at_once(row) {
            Some(last) => insert_succeeded(self.succeeded.get(day)?, row, last)?,
            None => insert_ended(self.insert.get(day)?, row)?,
        }
        self.watched.note(self.insert.conn, &row.run)?;
        if kept_from > self.partitions.kept_from(day) {
            self.note(day, kept_from)?;
        }
        Ok(())
    }

    pub(super) fn make(&mut self, day: i64) -> Done<()> {
        let conn = self.insert.conn;
        let sql = Partitions::sql(include_str!("sql/create_partition.sql"), day);
        conn.execute_batch(&sql)?;
        if has_others(conn)? {
            let sql = Partitions::sql(include_str!("sql/index_default.sql"), day);
            conn.execute_batch(&sql)?;
        }
        self.partitions.days.insert(day);
        Ok(())
    }

    /// A straggler keeps its day.
    fn note(&mut self, day: i64, kept_from: Timestamp) -> Done<()> {
        let sql = include_str!("sql/note_straggler.sql");
        let mut update = self.insert.conn.prepare_cached(sql)?;
        update.execute(params![day, kept_from.as_millis()])?;
        self.partitions.noted.insert(day, kept_from);
        Ok(())
    }
}

/// The attempt of a run that has nothing to say but that its first one succeeded.
fn succeeded_at_once(row: &EndedRow) -> Option<&Attempt> {
    let EndedRow {
        run,
        last,
        attempts,
    } = row;
    let of_run = run.kind == RunKind::Slot
        && run.state == RunState::Succeeded
        && (run.attempt, run.lost) == (AttemptNo::FIRST, 0)
        && slot_column(run).is_none()
        && row.due_column().is_none()
        && run.reason.is_none()
        && run.replay_of.is_none()
        && run.stretch.is_none();
    let said = attempts.is_some() || run.payload.is_some() || run.note.is_some();
    let is_plain = |last: &&Attempt| last.outcome == Outcome::Succeeded && last.error.is_none();
    last.as_ref().filter(is_plain).filter(|_| of_run && !said)
}

fn insert_succeeded(insert: &mut CachedStatement<'_>, row: &EndedRow, last: &Attempt) -> Done<()> {
    let run = &row.run;
    insert.execute(params![
        run.id.as_bytes(),
        run.job.as_bytes(),
        Tenant(run.tenant),
        run.lane.code(),
        run.version.0,
        run.dispatched_at.map(Timestamp::as_millis),
        run.settled_at.map(Timestamp::as_millis),
        last.status,
        row.output_column(),
        row.actor(),
    ])?;
    Ok(())
}

fn insert_ended(insert: &mut CachedStatement<'_>, row: &EndedRow) -> Done<()> {
    let EndedRow {
        run,
        last,
        attempts,
    } = row;
    let last = last.as_ref();
    let (stretch_last, stretch_count) = stretch_columns(run.stretch);
    let columns = params![
        run.id.as_bytes(),
        run.job.as_bytes(),
        Tenant(run.tenant),
        run.kind.code(),
        slot_column(run),
        run.replay_of.as_ref().map(|id| id.as_bytes()),
        row.due_column(),
        run.lane.code(),
        run.state.code(),
        run.reason.map(Code::code),
        run.attempt.0,
        run.lost,
        run.version.0,
        run.dispatched_at.map(Timestamp::as_millis),
        run.settled_at.map(Timestamp::as_millis),
        last.map(|last| last.outcome.code()),
        last.and_then(|last| last.status),
        last.and_then(|last| last.error.as_deref()),
        row.output_column(),
        stretch_last,
        stretch_count,
        run.payload.as_deref(),
        attempts,
        run.note,
        row.actor(),
    ];
    execute_sparse(insert, columns)?;
    Ok(())
}
