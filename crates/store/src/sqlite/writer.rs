//! The writer: one thread that owns the one connection that writes. Calls come in through bounded
//! queues; whatever waits goes into one transaction, each call in a savepoint of its own; one commit
//! later every caller has its answer.
//!
//! The engine's calls go before those of clients, who are many: one of the engine waits for what is being written, and
//! for a little of what clients want, never for all of it.
//!
//! What always holds: an answer is sent only after the commit that made it true; a call that fails
//! takes back its own writes and no others; if SQLite gave up the whole transaction (disk full, I/O),
//! the calls are tried again one by one, so that only those that cannot be written fail.
//!
//! ```text
//!   callers ──▶ queues ──▶ BEGIN  SAVEPOINT a … RELEASE  SAVEPOINT b … ROLLBACK TO  COMMIT ──▶ answers
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;
use std::time::Duration;

use model::limits;
use rusqlite::Connection;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};

use super::db::Db;
use super::fault::{Done, Fault};
use crate::StoreError;

/// Calls, and rows of theirs, that share one commit at most: enough to make the commit cheap, few
/// enough that the first of them does not wait long for the last.
const GROUP_MAX: usize = 256;
const GROUP_ROWS_MAX: usize = 4 * limits::FIRE_BATCH_MAX;
/// For so long calls of clients are run while the engine waits for the commit.
const CLIENTS_MAX: Duration = Duration::from_millis(3);

/// Whose a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Engine,
    /// Or what runs beside the engine, and can wait.
    Client,
}

/// One call on its way through the writer. It may run more than once, and is answered once.
trait Call: Send {
    /// About how many rows it writes.
    fn rows(&self) -> usize;
    fn run(&mut self, db: &mut Db) -> Done<()>;
    fn answer(self: Box<Self>);
    fn refuse(self: Box<Self>, error: StoreError);
}

struct Waiting<T, F> {
    rows: usize,
    work: F,
    found: Option<T>,
    /// The work goes back with the answer: its rows are freed by whoever made them, while the writer writes.
    caller: oneshot::Sender<(F, Result<T, StoreError>)>,
}

impl<T: Send, F: FnMut(&mut Db) -> Done<T> + Send> Call for Waiting<T, F> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn run(&mut self, db: &mut Db) -> Done<()> {
        self.found = None;
        self.found = Some((self.work)(db)?);
        Ok(())
    }

    fn answer(self: Box<Self>) {
        let Self {
            work,
            found,
            caller,
            ..
        } = *self;
        // A caller that went away needs no answer: its request is done all the same.
        let _gone = caller.send((work, found.ok_or_else(stopped)));
    }

    fn refuse(self: Box<Self>, error: StoreError) {
        let _gone = self.caller.send((self.work, Err(error)));
    }
}

fn stopped() -> StoreError {
    StoreError::unavailable("the store's writer has stopped")
}

/// The way to the writer's thread.
pub(super) struct Writer {
    ways: Option<Ways>,
    thread: Option<JoinHandle<()>>,
}

struct Ways {
    engine: mpsc::Sender<Box<dyn Call>>,
    clients: mpsc::Sender<Box<dyn Call>>,
}

/// What waits for the writer.
struct Queues {
    engine: mpsc::Receiver<Box<dyn Call>>,
    clients: mpsc::Receiver<Box<dyn Call>>,
    runtime: Runtime,
}

impl Queues {
    /// Waits for a call; none when nobody can make one any more.
    fn next(&mut self) -> Option<(By, Box<dyn Call>)> {
        let (engine, clients) = (&mut self.engine, &mut self.clients);
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                Some(call) = engine.recv() => Some((By::Engine, call)),
                Some(call) = clients.recv() => Some((By::Client, call)),
                else => None,
            }
        })
    }

    fn is_empty(&self) -> bool {
        self.engine.is_empty() && self.clients.is_empty()
    }

    /// Someone else has the file locked: whoever came meanwhile has waited for that too.
    fn refuse_all(&mut self, error: &StoreError) {
        for queue in [&mut self.engine, &mut self.clients] {
            while let Ok(call) = queue.try_recv() {
                call.refuse(StoreError::unavailable(error.to_string()));
            }
        }
    }
}

/// Calls that share a commit.
struct Group {
    calls: Vec<Box<dyn Call>>,
    rows: usize,
    /// Since when the engine waits for the commit.
    engine_since: Option<Duration>,
}

impl Group {
    fn new() -> Self {
        Self {
            calls: Vec::new(),
            rows: 0,
            engine_since: None,
        }
    }

    fn push(&mut self, by: By, call: Box<dyn Call>, now: Duration) {
        if by == By::Engine {
            self.engine_since.get_or_insert(now);
        }
        self.rows += call.rows();
        self.calls.push(call);
    }

    /// Takes all calls of the engine along that wait. Those that come later are the next group's: their callers are at work
    /// while this one is written.
    fn gather(&mut self, queues: &mut Queues, now: Duration) {
        while self.has_room()
            && let Ok(call) = queues.engine.try_recv()
        {
            self.push(By::Engine, call, now);
        }
    }

    /// Takes another call of a client along, unless the engine has waited long for this commit.
    fn grow(&mut self, queues: &mut Queues, now: Duration) {
        if !queues.engine.is_empty() {
            self.engine_since.get_or_insert(now);
        }
        let waits = |since| now.saturating_sub(since) >= CLIENTS_MAX;
        if self.has_room()
            && !self.engine_since.is_some_and(waits)
            && let Ok(call) = queues.clients.try_recv()
        {
            self.push(By::Client, call, now);
        }
    }

    fn has_room(&self) -> bool {
        self.calls.len() < GROUP_MAX && self.rows < GROUP_ROWS_MAX
    }
}

impl Writer {
    pub(super) fn start(db: Db) -> std::io::Result<Self> {
        let (engine, engine_calls) = mpsc::channel(limits::WRITER_QUEUE_MAX);
        let (clients, client_calls) = mpsc::channel(limits::WRITER_QUEUE_MAX);
        let queues = Queues {
            engine: engine_calls,
            clients: client_calls,
            runtime: Builder::new_current_thread().build()?,
        };
        let thread = std::thread::Builder::new()
            .name("punctual-writer".to_owned())
            .spawn(move || serve(db, queues))?;
        Ok(Self {
            ways: Some(Ways { engine, clients }),
            thread: Some(thread),
        })
    }

    /// Runs a piece of work on the writer's thread, in a transaction; it may run more than once.
    pub(super) async fn call<T: Send + 'static>(
        &self,
        by: By,
        rows: usize,
        work: impl FnMut(&mut Db) -> Done<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (caller, answer) = oneshot::channel();
        let call = Box::new(Waiting {
            rows,
            work,
            found: None,
            caller,
        });
        let ways = self.ways.as_ref().ok_or_else(stopped)?;
        let way = match by {
            By::Engine => &ways.engine,
            By::Client => &ways.clients,
        };
        way.send(call).await.map_err(|_| stopped())?;
        let (_work, answer) = answer.await.map_err(|_| stopped())?;
        answer
    }
}

impl Drop for Writer {
    /// What was accepted is written before the thread ends.
    fn drop(&mut self) {
        self.ways = None;
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

fn serve(mut db: Db, mut queues: Queues) {
    while let Some((by, first)) = queues.next() {
        if queues.is_empty() {
            if let Some(error) = run_alone(&mut db, first) {
                queues.refuse_all(&error);
            }
            continue;
        }
        let mut group = Group::new();
        let now = db.shared.clock.uptime();
        group.push(by, first, now);
        group.gather(&mut queues, now);
        match try_group(&mut db, &mut group, &mut queues) {
            Ok(faults) => {
                for (call, fault) in group.calls.into_iter().zip(faults) {
                    match fault {
                        None => call.answer(),
                        Some(fault) => call.refuse(fault.into()),
                    }
                }
            }
            Err(fault) => {
                if let Some(error) = again(&mut db, group, fault) {
                    queues.refuse_all(&error);
                }
            }
        }
    }
    db.close();
}

/// Nothing of a group could be written. The calls are tried one by one, unless someone else has the file locked: each of
/// them would wait for that again. Answers why, if so.
fn again(db: &mut Db, group: Group, fault: Fault) -> Option<StoreError> {
    let calls = group.calls.len();
    tracing::warn!(?fault, calls, "a group commit failed");
    let mut locked = fault.is_locked().then_some(StoreError::from(fault));
    for call in group.calls {
        match &locked {
            None => locked = run_alone(db, call),
            Some(error) => call.refuse(StoreError::unavailable(error.to_string())),
        }
    }
    locked
}

/// One transaction around all calls, a savepoint around each. Answers which calls failed; fails as a
/// whole if nothing of it was written.
fn try_group(db: &mut Db, group: &mut Group, queues: &mut Queues) -> Done<Vec<Option<Fault>>> {
    let mark = db.begin()?;
    let mut faults = Vec::new();
    while let Some(call) = group.calls.get_mut(faults.len()) {
        match in_savepoint(db, call.as_mut()) {
            Ok(fault) => faults.push(fault),
            Err(fault) => {
                db.roll_back(mark);
                return Err(fault);
            }
        }
        group.grow(queues, db.shared.clock.uptime());
    }
    match db.commit() {
        Ok(()) => Ok(faults),
        Err(fault) => {
            db.roll_back(mark);
            Err(fault)
        }
    }
}

/// The inner answer is the call's own failure, undone; the outer one that of the transaction.
fn in_savepoint(db: &mut Db, call: &mut dyn Call) -> Done<Option<Fault>> {
    execute(&db.conn, "SAVEPOINT one")?;
    let mark = db.mark();
    let Err(fault) = guarded(db, call) else {
        execute(&db.conn, "RELEASE one")?;
        return Ok(None);
    };
    if db.conn.is_autocommit() {
        // SQLite has rolled everything back by itself.
        return Err(fault);
    }
    execute(&db.conn, "ROLLBACK TO one")?;
    execute(&db.conn, "RELEASE one")?;
    db.recall(mark)?;
    Ok(Some(fault))
}

/// A call that is alone needs no savepoint: its transaction is one. Answers why, if someone else has the file locked.
fn run_alone(db: &mut Db, mut call: Box<dyn Call>) -> Option<StoreError> {
    let Err(fault) = try_alone(db, call.as_mut()) else {
        call.answer();
        return None;
    };
    let locked = fault.is_locked();
    let error = StoreError::from(fault);
    let why = locked.then(|| StoreError::unavailable(error.to_string()));
    call.refuse(error);
    why
}

fn try_alone(db: &mut Db, call: &mut dyn Call) -> Done<()> {
    let mark = db.begin()?;
    let done = guarded(db, call).and_then(|()| db.commit());
    done.inspect_err(|_| db.roll_back(mark))
}

/// A panic in one call is that call's failure, not the end of the writer.
fn guarded(db: &mut Db, call: &mut dyn Call) -> Done<()> {
    catch_unwind(AssertUnwindSafe(|| call.run(db))).unwrap_or_else(|_| {
        Err(Fault::Store(StoreError::unavailable(
            "the store's writer failed on this call",
        )))
    })
}

pub(super) fn execute(conn: &Connection, sql: &'static str) -> Done<()> {
    conn.prepare_cached(sql)?.execute([])?;
    Ok(())
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
