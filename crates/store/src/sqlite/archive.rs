//! The way into history: one table for each day of UTC, made when its first run ends.

use std::collections::BTreeSet;

use model::Timestamp;
use rusqlite::{CachedStatement, Connection, params};

use super::fault::{Done, bad_row};
use super::rows::{EndedRow, Tenant};
use crate::code::{Code, slot_column, stretch_columns};

/// The days of UTC that have a table of history.
#[derive(Default)]
pub(super) struct Ranges(pub BTreeSet<i64>);

const DAY: i64 = 24 * 3_600 * 1_000;

impl Ranges {
    pub fn read(conn: &Connection) -> Done<Self> {
        let mut select = conn.prepare_cached(include_str!("sql/ranges.sql"))?;
        let days = select
            .query_map([], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        Ok(Self(days))
    }

    /// The day that a run's history belongs to.
    pub fn day_of(run: model::RunId) -> i64 {
        run.at().as_millis().div_euclid(DAY)
    }

    pub fn ends_at(day: i64) -> Timestamp {
        Timestamp::from_millis(day.saturating_add(1).saturating_mul(DAY))
    }

    /// The text of a statement about one day. A day is a number of ours, never a client's text.
    pub fn sql(template: &'static str, day: i64) -> String {
        template.replace("{day}", &day.to_string())
    }
}

/// A statement about one day, kept for the next call that is about the same day.
pub(super) struct OfDay<'a> {
    conn: &'a Connection,
    template: &'static str,
    open: Option<(i64, CachedStatement<'a>)>,
}

impl<'a> OfDay<'a> {
    pub fn new(conn: &'a Connection, template: &'static str) -> Self {
        Self {
            conn,
            template,
            open: None,
        }
    }

    pub fn get(&mut self, day: i64) -> Done<&mut CachedStatement<'a>> {
        let statement = match self.open.take() {
            Some((open, statement)) if open == day => statement,
            Some(_) | None => self.conn.prepare_cached(&Ranges::sql(self.template, day))?,
        };
        Ok(&mut self.open.insert((day, statement)).1)
    }
}

/// The way into history, for one call: days are opened, and made, as runs arrive.
pub(super) struct Archive<'a> {
    ranges: &'a mut Ranges,
    insert: OfDay<'a>,
}

impl<'a> Archive<'a> {
    pub fn new(conn: &'a Connection, ranges: &'a mut Ranges) -> Self {
        Self {
            ranges,
            insert: OfDay::new(conn, include_str!("sql/put_ended.sql")),
        }
    }

    pub fn put(&mut self, row: &EndedRow) -> Done<()> {
        let day = Ranges::day_of(row.run.id);
        if !self.ranges.0.contains(&day) {
            let sql = Ranges::sql(include_str!("sql/create_range.sql"), day);
            self.insert.conn.execute_batch(&sql)?;
            self.ranges.0.insert(day);
        }
        insert_ended(self.insert.get(day)?, row)
    }
}

fn insert_ended(insert: &mut CachedStatement<'_>, row: &EndedRow) -> Done<()> {
    let EndedRow {
        run,
        last,
        attempts,
    } = row;
    let last = last.as_ref();
    let (stretch_last, stretch_count) = stretch_columns(run.stretch);
    insert.execute(params![
        run.id.as_bytes(),
        run.job.as_bytes(),
        Tenant(run.tenant),
        run.kind.code(),
        slot_column(run),
        run.replay_of.as_ref().map(|id| id.as_bytes()),
        Some(run.due_at)
            .filter(|due| *due != run.id.at())
            .map(Timestamp::as_millis),
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
        last.map(|last| &*last.output)
            .filter(|output| !output.is_empty()),
        stretch_last,
        stretch_count,
        run.payload.as_deref(),
        attempts,
        run.note,
        row.actor(),
    ])?;
    Ok(())
}

/// An ended run with its attempts encoded, for the paths that end one on the writer's own thread.
pub(super) fn ended(run: model::Run) -> Done<EndedRow> {
    let id = run.id;
    EndedRow::new(run).map_err(|error| bad_row(id, &error).into())
}
