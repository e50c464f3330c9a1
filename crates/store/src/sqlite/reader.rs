//! Readers: a few threads, each with a connection that cannot write. Every read is one snapshot; a
//! read that begins after a write was answered sees it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::fault::{Done, Fault};
use crate::StoreError;

/// Reads that wait for a thread; more wait at the door.
const QUEUE_MAX: usize = 256;

type Read = Box<dyn FnOnce(&Connection) + Send>;
type Queue = Arc<Mutex<mpsc::Receiver<Read>>>;

/// Threads that answer reads.
pub(super) struct Readers {
    reads: Option<mpsc::Sender<Read>>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub(super) fn start(name: &str, connections: Vec<Connection>) -> std::io::Result<Self> {
        let (reads, queue) = mpsc::channel(QUEUE_MAX);
        let queue: Queue = Arc::new(Mutex::new(queue));
        let mut threads = Vec::with_capacity(connections.len());
        for conn in connections {
            let queue = queue.clone();
            let builder = std::thread::Builder::new().name(format!("punctual-{name}"));
            threads.push(builder.spawn(move || serve(&conn, &queue))?);
        }
        Ok(Self {
            reads: Some(reads),
            threads,
        })
    }

    /// Runs a read on one of the threads, in one snapshot.
    pub(super) async fn call<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Done<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (caller, answer) = oneshot::channel();
        let read: Read = Box::new(move |conn| {
            let found = catch_unwind(AssertUnwindSafe(|| in_snapshot(conn, read)));
            let found = found.unwrap_or_else(|_| {
                Err(Fault::Store(StoreError::unavailable(
                    "the store's reader failed on this call",
                )))
            });
            let _gone = caller.send(found.map_err(StoreError::from));
        });
        let reads = self.reads.as_ref().ok_or_else(stopped)?;
        reads.send(read).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }
}

fn stopped() -> StoreError {
    StoreError::unavailable("the store's readers have stopped")
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.reads = None;
        for thread in self.threads.drain(..) {
            let _panicked = thread.join();
        }
    }
}

fn serve(conn: &Connection, queue: &Queue) {
    loop {
        // One thread waits at the queue, the others wait for it; nothing is done under the lock.
        let next = queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .blocking_recv();
        match next {
            Some(read) => read(conn),
            None => return,
        }
    }
}

fn in_snapshot<T>(conn: &Connection, read: impl FnOnce(&Connection) -> Done<T>) -> Done<T> {
    // Dropping the transaction ends it, whatever the read came to.
    let snapshot = conn.unchecked_transaction()?;
    let found = read(&snapshot)?;
    drop(snapshot);
    Ok(found)
}
