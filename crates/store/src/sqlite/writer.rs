//! The writer: one thread that owns the one connection that writes. Calls come in through a bounded
//! queue; whatever waits goes into one transaction, each call in a savepoint of its own; one commit
//! later every caller has its answer.
//!
//! What always holds: an answer is sent only after the commit that made it true; a call that fails
//! takes back its own writes and no others; if SQLite gave up the whole transaction (disk full, I/O),
//! the calls are tried again one by one, so that only those that cannot be written fail.
//!
//! ```text
//!   callers ──▶ queue ──▶ BEGIN  SAVEPOINT a … RELEASE  SAVEPOINT b … ROLLBACK TO  COMMIT ──▶ answers
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;

use model::limits;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::db::Db;
use super::fault::{Done, Fault};
use crate::StoreError;

/// Calls, and rows of theirs, that share one commit at most: enough to make the commit cheap, few
/// enough that the first of them does not wait long for the last.
const GROUP_MAX: usize = 256;
const GROUP_ROWS_MAX: usize = 4 * limits::FIRE_BATCH_MAX;

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
    caller: oneshot::Sender<Result<T, StoreError>>,
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
        let Self { found, caller, .. } = *self;
        // A caller that went away needs no answer: what it asked for is done all the same.
        let _gone = caller.send(found.ok_or_else(stopped));
    }

    fn refuse(self: Box<Self>, error: StoreError) {
        let _gone = self.caller.send(Err(error));
    }
}

fn stopped() -> StoreError {
    StoreError::unavailable("the store's writer has stopped")
}

/// The way to the writer's thread.
pub(super) struct Writer {
    calls: Option<mpsc::Sender<Box<dyn Call>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub fn start(db: Db) -> std::io::Result<Self> {
        let (calls, queue) = mpsc::channel(limits::WRITER_QUEUE_MAX);
        let thread = std::thread::Builder::new()
            .name("punctual-writer".to_owned())
            .spawn(move || serve(db, queue))?;
        Ok(Self {
            calls: Some(calls),
            thread: Some(thread),
        })
    }

    /// Runs a piece of work on the writer's thread, in a transaction; it may run more than once.
    pub async fn call<T: Send + 'static>(
        &self,
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
        let calls = self.calls.as_ref().ok_or_else(stopped)?;
        calls.send(call).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }
}

impl Drop for Writer {
    /// What was accepted is written before the thread ends.
    fn drop(&mut self) {
        self.calls = None;
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

fn serve(mut db: Db, mut queue: mpsc::Receiver<Box<dyn Call>>) {
    let mut waiting = Vec::with_capacity(GROUP_MAX);
    while queue.blocking_recv_many(&mut waiting, GROUP_MAX) > 0 {
        let mut group = Vec::with_capacity(waiting.len());
        let mut rows = 0;
        for call in waiting.drain(..) {
            if rows + call.rows() > GROUP_ROWS_MAX && !group.is_empty() {
                run_group(&mut db, &mut group);
                rows = 0;
            }
            rows += call.rows();
            group.push(call);
        }
        run_group(&mut db, &mut group);
    }
    db.close();
}

/// Runs what waits in one transaction, and answers it.
fn run_group(db: &mut Db, group: &mut Vec<Box<dyn Call>>) {
    if group.len() == 1 {
        group.drain(..).for_each(|call| run_alone(db, call));
        return;
    }
    match try_group(db, group) {
        Ok(faults) => {
            for (call, fault) in group.drain(..).zip(faults) {
                match fault {
                    None => call.answer(),
                    Some(fault) => call.refuse(fault.into()),
                }
            }
        }
        Err(fault) => {
            tracing::warn!(
                ?fault,
                calls = group.len(),
                "a group commit failed; trying one by one"
            );
            group.drain(..).for_each(|call| run_alone(db, call));
        }
    }
}

/// One transaction around all calls, a savepoint around each. Answers which calls failed; fails as a
/// whole if nothing of it was written.
fn try_group(db: &mut Db, group: &mut [Box<dyn Call>]) -> Done<Vec<Option<Fault>>> {
    let mark = db.begin()?;
    let mut faults = Vec::with_capacity(group.len());
    for call in group {
        match in_savepoint(db, call.as_mut()) {
            Ok(fault) => faults.push(fault),
            Err(fault) => {
                db.roll_back(mark);
                return Err(fault);
            }
        }
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

/// A call that is alone needs no savepoint: its transaction is one.
fn run_alone(db: &mut Db, mut call: Box<dyn Call>) {
    match try_alone(db, call.as_mut()) {
        Ok(()) => call.answer(),
        Err(fault) => call.refuse(fault.into()),
    }
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
