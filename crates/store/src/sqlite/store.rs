//! The store itself: the threads that read and write for it.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use model::{PresenceId, RunId};
use nix::fcntl::Flock;
use rusqlite::Connection;

use super::db::{Db, Shared};
use super::fault::Done;
use super::open;
use super::reader::Readers;
use super::writer::{By, Writer};
use crate::budget::{Budget, Held};
use crate::{Acting, StoreClock, StoreError};

/// Threads that read for clients, and their connections.
const CLIENT_READERS: usize = 3;
/// The same for the engine.
const ENGINE_READERS: usize = 2;

/// A store in one file. It is ours alone while this lives; dropping it writes what was accepted.
pub struct SqliteStore {
    // In the order in which they end: readers, then the writer, whose closing empties the log; the lock last.
    pub(super) clients: Readers,
    /// What the engine reads waits for no list or search of a client.
    pub(super) engine: Readers,
    /// Beats have a thread and a connection of their own, so that load cannot starve them.
    pub(super) beats: Readers,
    pub(super) writer: Writer,
    pub(super) shared: Arc<Shared>,
    /// What calls of clients that wait for the writer may hold.
    pub(super) waiting: Budget,
    /// Off only where a bench measures what it costs.
    pub(super) audits_creates: bool,
    _lock: Flock<File>,
}

impl SqliteStore {
    /// Opens the database of a data folder, making both if need be. Whoever wrote before is gone, since
    /// the lock is ours: presences left from then end now. Blocks.
    pub fn open(folder: &Path, clock: Arc<dyn StoreClock>) -> Result<Self, StoreError> {
        let lock = open::lock_folder(folder)?;
        let path = folder.join(open::FILE);
        open::check_file(&path)?;
        let conn = open::open_writer(&path)?;
        let shared = Arc::new(Shared::new(clock));
        let db = Db::new(conn, shared.clone())?;
        let thread = |error| StoreError::Unusable(format!("no thread can be started: {error}"));
        let readers = |name: &str, count: usize| {
            let connections = (0..count).map(|_| open::open_reader(&path));
            let connections = connections.collect::<Result<_, _>>()?;
            Readers::start(name, connections).map_err(thread)
        };
        let clients = readers("clients", CLIENT_READERS)?;
        let engine = readers("engine", ENGINE_READERS)?;
        let beats = readers("beats", 1)?;
        let writer = Writer::start(db).map_err(thread)?;
        Ok(Self {
            clients,
            engine,
            beats,
            writer,
            shared,
            waiting: Budget::default(),
            audits_creates: true,
            _lock: lock,
        })
    }

    /// Enters no new job in the audit log: for the bench that measures what that costs.
    #[must_use]
    pub fn without_audit_of_creates(self) -> Self {
        Self {
            audits_creates: false,
            ..self
        }
    }

    /// On the writer's thread, in a transaction; it may run more than once.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        by: By,
        rows: usize,
        mut work: impl FnMut(&mut Db) -> Done<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.shared.see();
        // The writer's thread serves everyone: who acts goes along with the call.
        let acting = Acting::now();
        let call = move |db: &mut Db| {
            db.acting = Arc::clone(&acting);
            work(db)
        };
        self.writer.call(by, rows, call).await
    }

    /// The same for a client whose call brings payloads: what it holds is given back when it is written or refused.
    pub(super) async fn write_held<T: Send + 'static>(
        &self,
        held: Held,
        rows: usize,
        mut work: impl FnMut(&mut Db) -> Done<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let work = move |db: &mut Db| {
            let _waits = &held;
            work(db)
        };
        self.write(By::Client, rows, work).await
    }

    /// On a reader's thread, in one snapshot.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        by: By,
        read: impl FnOnce(&Connection) -> Done<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.shared.see();
        let readers = match by {
            By::Engine => &self.engine,
            By::Client => &self.clients,
        };
        readers.call(read).await
    }

    /// Runs that cannot be read, or whose job cannot, end: nobody could ever work on them.
    pub(super) async fn bury(
        &self,
        runs: Vec<RunId>,
        holder: PresenceId,
    ) -> Result<(), StoreError> {
        if runs.is_empty() {
            return Ok(());
        }
        let runs: Vec<_> = runs.into_iter().map(|run| (run, holder)).collect();
        self.write(By::Engine, runs.len(), move |db| db.bury_unreadable(&runs))
            .await
    }
}
