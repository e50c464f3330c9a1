//! What the writer's thread owns: the connection, and what it knows by heart so that no call has to
//! look it up. What it knows follows the transaction: after a rollback it is read again.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{Run, Timestamp};
use rusqlite::{CachedStatement, Connection, params};

use super::alerts::Watched;
use super::archive::{Archive, Partitions};
use super::counting::Counting;
use super::fault::Done;
use super::presence::{LeaseTable, Presences};
use super::rest::Resting;
use super::rows::{LiveRow, Tenant, execute_sparse};
use super::rules::Zones;
use super::writer::execute;
use crate::code::{Code, slot_column};
use crate::fast_path::FastPaths;
use crate::row::EndedRow;
use crate::{Acting, StoreClock, presence_end};

/// How far the latest moment written down may lag behind while something is written at all.
const NOTE_EVERY: Duration = Duration::from_secs(1);

/// What the writer and the callers' threads both look at.
pub(super) struct Shared {
    pub clock: Arc<dyn StoreClock>,
    presences: Mutex<Presences>,
    /// Live runs, as of the last commit.
    live: AtomicU64,
    /// The latest moment seen, in milliseconds: the clock may go back.
    seen: AtomicI64,
}

impl Shared {
    pub(super) fn new(clock: Arc<dyn StoreClock>) -> Self {
        Self {
            clock,
            presences: Mutex::default(),
            live: AtomicU64::new(0),
            seen: AtomicI64::new(0),
        }
    }

    /// Looks at the clock, and remembers the latest moment it ever showed.
    pub(super) fn see(&self) -> Timestamp {
        let now = self.clock.now();
        self.seen.fetch_max(now.as_millis(), Ordering::AcqRel);
        now
    }

    /// When a presence that ends now ended, as far as its claims depend on it.
    pub(super) fn presence_end(&self) -> Timestamp {
        presence_end(self.see(), self.seen())
    }

    pub(super) fn seen(&self) -> Timestamp {
        Timestamp::from_millis(self.seen.load(Ordering::Acquire))
    }

    /// A panic cannot have left them half changed: every change is one assignment.
    pub(super) fn presences(&self) -> MutexGuard<'_, Presences> {
        self.presences
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn live(&self) -> u64 {
        self.live.load(Ordering::Acquire)
    }
}

pub(super) struct Db {
    pub conn: Connection,
    pub shared: Arc<Shared>,
    pub leases: LeaseTable,
    pub partitions: Partitions,
    /// Live runs, this transaction included.
    pub live: u64,
    /// Whether any run may be waiting for another to end; nearly always none is, and then settle
    /// need not look.
    pub crowded: bool,
    pub resting: Resting,
    pub counting: Counting,
    pub watched: Watched,
    pub zones: Zones,
    /// Who asked for the call that is being made.
    pub acting: Arc<Acting>,
    pub fast_paths: FastPaths,
    /// The latest moment seen that is written down.
    noted: Timestamp,
    /// What SQLite had counted when the transaction began.
    changes: u64,
    /// Whether what is known by heart could not be read again after a rollback.
    unsure: bool,
}

/// Where to go back to, of what is only in memory.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    live: u64,
}

impl Db {
    pub(super) fn new(conn: Connection, shared: Arc<Shared>) -> Done<Self> {
        let count = include_str!("sql/count_live.sql");
        let live = conn
            .query_row(count, [], |row| row.get::<_, i64>(0))?
            .unsigned_abs();
        let seen: i64 = conn.query_row(include_str!("sql/seen.sql"), [], |row| row.get(0))?;
        shared.seen.fetch_max(seen, Ordering::AcqRel);
        // Nobody who wrote before lives, since we have the lock.
        let ended_at = shared.presence_end().as_millis();
        conn.execute(include_str!("sql/end_all_presences.sql"), [ended_at])?;
        shared.live.store(live, Ordering::Release);
        let mut db = Self {
            conn,
            shared,
            leases: LeaseTable::default(),
            partitions: Partitions::default(),
            live,
            crowded: true,
            resting: Resting::default(),
            counting: Counting::default(),
            watched: Watched::default(),
            zones: Zones::default(),
            acting: Arc::default(),
            fast_paths: FastPaths::on(),
            noted: Timestamp::from_millis(seen),
            changes: 0,
            unsure: false,
        };
        db.learn()?;
        Ok(db)
    }

    pub(super) fn begin(&mut self) -> Done<Mark> {
        if !self.conn.is_autocommit() {
            // A transaction that could not be taken back is in the way of every other.
            execute(&self.conn, "ROLLBACK")?;
        }
        if self.unsure {
            self.learn()?;
        }
        execute(&self.conn, "BEGIN IMMEDIATE")?;
        self.changes = self.conn.total_changes();
        Ok(self.mark())
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { live: self.live }
    }

    pub(super) fn commit(&mut self) -> Done<()> {
        // A transaction that changed nothing stays one: its commit costs nothing.
        if self.conn.total_changes() > self.changes {
            self.note_seen(NOTE_EVERY)?;
        }
        execute(&self.conn, "COMMIT")?;
        self.shared.live.store(self.live, Ordering::Release);
        Ok(())
    }

    /// Writes down the latest moment seen, if it is so much later than what is written.
    fn note_seen(&mut self, every: Duration) -> Done<()> {
        let seen = self.shared.seen();
        if seen > self.noted && seen.since(self.noted) >= every {
            let mut update = self.conn.prepare_cached(include_str!("sql/see.sql"))?;
            update.execute([seen.as_millis()])?;
            self.noted = seen;
        }
        Ok(())
    }

    /// Takes the whole transaction back, as far as SQLite has not done so itself.
    pub(super) fn roll_back(&mut self, mark: Mark) {
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
    pub(super) fn recall(&mut self, mark: Mark) -> Done<()> {
        self.live = mark.live;
        self.crowded = true;
        self.noted = Timestamp::MIN;
        self.learn()
    }

    fn learn(&mut self) -> Done<()> {
        self.unsure = true;
        self.shared.presences().learn(&self.conn)?;
        self.leases = LeaseTable::read(&self.conn)?;
        self.shared.presences().count(&self.leases);
        self.partitions = Partitions::read(&self.conn)?;
        self.resting = Resting::read(&self.conn)?;
        self.counting = Counting::read(&self.conn)?;
        self.watched = Watched::read(&self.conn)?;
        self.zones = Zones::read(&self.conn)?;
        self.unsure = false;
        Ok(())
    }

    /// The last connection that closes also empties the log into the file.
    pub(super) fn close(mut self) {
        if let Err(fault) = self.note_seen(Duration::ZERO) {
            tracing::warn!(?fault, "the latest moment seen could not be written");
        }
        if let Err((_, error)) = self.conn.close() {
            tracing::warn!(%error, "the database was not closed in good order; nothing is lost");
        }
    }

    pub(super) fn is_crowded(&self) -> Done<bool> {
        let mut select = self
            .conn
            .prepare_cached(include_str!("sql/is_crowded.sql"))?;
        Ok(select.exists([])?)
    }

    pub(super) fn put_ended(&mut self, row: &EndedRow) -> Done<()> {
        Archive::new(&self.conn, &mut self.partitions, &self.watched).put(row)
    }

    pub(super) fn remove_live(&mut self, run: model::RunId) -> Done<()> {
        let mut delete = self
            .conn
            .prepare_cached(include_str!("sql/remove_live.sql"))?;
        let gone = delete.execute([run.as_bytes()])? as u64;
        self.live = self.live.saturating_sub(gone);
        Ok(())
    }
}

/// Whether a run waits, and whether that is for its turn.
pub(super) fn waiting_column(run: &model::Run) -> i16 {
    match run.wait {
        None => 0,
        Some(_) if run.waits_for_turn() => 1,
        Some(_) => 2,
    }
}

/// Inserts a run of a slot as it comes to life; false if one of that name is alive.
pub(super) fn insert_first(
    insert: &mut CachedStatement<'_>,
    run: &Run,
    claim: Option<i64>,
) -> Done<bool> {
    let columns = params![
        run.id.as_bytes(),
        run.job.as_bytes(),
        Tenant(run.tenant),
        run.due_at.as_millis(),
        run.lane.code(),
        run.version.0,
        claim,
    ];
    Ok(insert.execute(columns)? == 1)
}

/// Inserts a run that the presence of this number holds; false if a run of that name is alive.
pub(super) fn insert_live(
    insert: &mut CachedStatement<'_>,
    row: &LiveRow,
    claim: Option<i64>,
) -> Done<bool> {
    let LiveRow { run, attempts } = row;
    let columns = params![
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
        run.mark.map(Code::code),
        waiting_column(run),
        run.dispatched_at.map(Timestamp::as_millis),
        run.payload.as_deref(),
        attempts,
    ];
    Ok(execute_sparse(insert, columns)? == 1)
}
