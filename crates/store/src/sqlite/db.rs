//! What the writer's thread owns: the connection, and what it knows by heart so that no call has to
//! look it up. What it knows follows the transaction: after a rollback it is read again.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::Timestamp;
use rusqlite::{CachedStatement, Connection, params};

use super::fault::{Done, bad_row};
use super::presence::{LeaseTable, Presences};
use super::rows::{Code, EndedRow, LiveRow, Tenant, slot_column};
use super::writer::execute;
use crate::StoreClock;

/// What the writer and the callers' threads both look at.
pub(super) struct Shared {
    pub clock: Arc<dyn StoreClock>,
    presences: Mutex<Presences>,
    /// Live runs, as of the last commit.
    live: AtomicU64,
}

impl Shared {
    pub fn new(clock: Arc<dyn StoreClock>) -> Self {
        Self { clock, presences: Mutex::default(), live: AtomicU64::new(0) }
    }

    /// A panic cannot have left them half changed: every change is one assignment.
    pub fn presences(&self) -> MutexGuard<'_, Presences> {
        self.presences.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn live(&self) -> u64 {
        self.live.load(Ordering::Acquire)
    }
}

pub(super) struct Db {
    pub conn: Connection,
    pub shared: Arc<Shared>,
    pub leases: LeaseTable,
    pub ranges: Ranges,
    /// Live runs, this transaction included.
    pub live: u64,
}

/// Where to go back to, of what is only in memory.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    live: u64,
}

impl Db {
    pub fn new(conn: Connection, shared: Arc<Shared>) -> Done<Self> {
        let count = include_str!("sql/count_live.sql");
        let live = conn.query_row(count, [], |row| row.get::<_, i64>(0))?.unsigned_abs();
        let mut db = Self {
            conn,
            shared,
            leases: LeaseTable::default(),
            ranges: Ranges::default(),
            live,
        };
        db.learn()?;
        db.shared.live.store(live, Ordering::Release);
        Ok(db)
    }

    pub fn begin(&mut self) -> Done<Mark> {
        execute(&self.conn, "BEGIN IMMEDIATE")?;
        Ok(self.mark())
    }

    pub fn mark(&self) -> Mark {
        Mark { live: self.live }
    }

    pub fn commit(&mut self) -> Done<()> {
        execute(&self.conn, "COMMIT")?;
        self.shared.live.store(self.live, Ordering::Release);
        Ok(())
    }

    /// Takes the whole transaction back, as far as SQLite has not done so itself.
    pub fn roll_back(&mut self, mark: Mark) {
        let undone = if self.conn.is_autocommit() {
            Ok(())
        } else {
            execute(&self.conn, "ROLLBACK")
        };
        if let Err(fault) = undone.and_then(|()| self.recall(mark)) {
            tracing::error!(?fault, "a transaction could not be taken back");
        }
    }

    /// What is known by heart goes back to what the rows say.
    pub fn recall(&mut self, mark: Mark) -> Done<()> {
        self.live = mark.live;
        self.learn()
    }

    fn learn(&mut self) -> Done<()> {
        self.shared.presences().learn(&self.conn)?;
        self.leases = LeaseTable::read(&self.conn)?;
        self.ranges = Ranges::read(&self.conn)?;
        Ok(())
    }

    /// The last connection that closes also empties the log into the file.
    pub fn close(self) {
        if let Err((_, error)) = self.conn.close() {
            tracing::warn!(%error, "the database was not closed in good order; nothing is lost");
        }
    }

    /// A run comes to life; false if one of that name is alive.
    pub fn put_live(&mut self, row: &LiveRow, birth: Birth) -> Done<bool> {
        let mut insert = self.conn.prepare_cached(include_str!("sql/put_live.sql"))?;
        let born = insert_live(&mut insert, row, birth)?;
        self.live += u64::from(born);
        Ok(born)
    }

    pub fn put_ended(&mut self, row: &EndedRow) -> Done<()> {
        Archive::new(&self.conn, &mut self.ranges).put(row)
    }

    pub fn remove_live(&mut self, run: model::RunId) -> Done<()> {
        let mut delete = self.conn.prepare_cached(include_str!("sql/remove_live.sql"))?;
        let gone = delete.execute([run.as_bytes()])? as u64;
        self.live = self.live.saturating_sub(gone);
        Ok(())
    }
}

/// How a run comes to life, as overlap and the firing have it.
#[derive(Clone, Copy)]
pub(super) struct Birth {
    /// The number of the presence that holds it.
    pub claim: Option<i64>,
    pub waiting: bool,
}

impl Birth {
    pub const WAITING: Self = Self { claim: None, waiting: true };

    pub fn moving(claim: Option<i64>) -> Self {
        Self { claim, waiting: false }
    }
}

/// False if a run of that name is alive.
pub(super) fn insert_live(
    insert: &mut CachedStatement<'_>,
    row: &LiveRow,
    birth: Birth,
) -> Done<bool> {
    let LiveRow { run, attempts } = row;
    let Birth { claim, waiting } = birth;
    let born = insert.execute(params![
        run.id.as_bytes(),
        run.job.as_bytes(),
        Tenant(run.tenant),
        run.kind.code(),
        slot_column(run),
        run.replay_of.as_ref().map(|id| id.as_bytes()),
        run.due_at.as_millis(),
        run.lane.code(),
        run.state.code(),
        run.attempt.0,
        run.lost,
        run.version.0,
        claim,
        run.ask.map(Code::code),
        waiting,
        run.dispatched_at.map(Timestamp::as_millis),
        run.payload.as_deref(),
        attempts,
    ])?;
    Ok(born == 1)
}

/// The days of UTC that have a table of history.
#[derive(Default)]
pub(super) struct Ranges(pub BTreeSet<i64>);

const DAY: i64 = 24 * 3_600 * 1_000;

impl Ranges {
    pub fn read(conn: &Connection) -> Done<Self> {
        let mut select = conn.prepare_cached(include_str!("sql/ranges.sql"))?;
        let days = select.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
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

/// The way into history, for one call: days are opened, and made, as runs arrive.
pub(super) struct Archive<'a> {
    conn: &'a Connection,
    ranges: &'a mut Ranges,
    open: Option<(i64, CachedStatement<'a>)>,
}

impl<'a> Archive<'a> {
    pub fn new(conn: &'a Connection, ranges: &'a mut Ranges) -> Self {
        Self { conn, ranges, open: None }
    }

    pub fn ranges(&self) -> &Ranges {
        self.ranges
    }

    pub fn put(&mut self, row: &EndedRow) -> Done<()> {
        let day = Ranges::day_of(row.run.id);
        match &mut self.open {
            Some((open, insert)) if *open == day => insert_ended(insert, row),
            Some(_) | None => {
                let (_, insert) = self.open.insert((day, open_day(self.conn, self.ranges, day)?));
                insert_ended(insert, row)
            }
        }
    }
}

fn open_day<'a>(
    conn: &'a Connection,
    ranges: &mut Ranges,
    day: i64,
) -> Done<CachedStatement<'a>> {
    if !ranges.0.contains(&day) {
        conn.execute_batch(&Ranges::sql(include_str!("sql/create_range.sql"), day))?;
        ranges.0.insert(day);
    }
    Ok(conn.prepare_cached(&Ranges::sql(include_str!("sql/put_ended.sql"), day))?)
}

fn insert_ended(insert: &mut CachedStatement<'_>, row: &EndedRow) -> Done<()> {
    let EndedRow { run, last, attempts } = row;
    let last = last.as_ref();
    insert.execute(params![
        run.id.as_bytes(),
        run.job.as_bytes(),
        Tenant(run.tenant),
        run.kind.code(),
        slot_column(run),
        run.replay_of.as_ref().map(|id| id.as_bytes()),
        Some(run.due_at).filter(|due| *due != run.id.at()).map(Timestamp::as_millis),
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
        last.map(|last| &*last.output).filter(|output| !output.is_empty()),
        run.stretch.map(|stretch| stretch.last.0.as_millis()),
        run.stretch.map(|stretch| i64::try_from(stretch.count).unwrap_or(i64::MAX)),
        run.payload.as_deref(),
        attempts,
    ])?;
    Ok(())
}

/// An ended run with its attempts encoded, for the paths that end one on the writer's own thread.
pub(super) fn ended(run: model::Run) -> Done<EndedRow> {
    let id = run.id;
    EndedRow::new(run).map_err(|error| bad_row(id, &error).into())
}
