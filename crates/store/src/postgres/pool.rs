//! Connections: a bounded few, each with its prepared statements. One is given out, used and given back; one whose
//! transaction was left open is rolled back on the way, one that was lost is forgotten, and the next is made
//! after a wait that grows while the server is away.
//!
//! Nobody waits behind a call that its caller has given up: a connection with something under way is given out again
//! only if that is answered at once, and is ended otherwise. Its place stays taken until it is really gone.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};

use super::dial::{Connected, Dialer};
use super::fault::{Done, Fault, cannot_connect};
use super::statement::filled;
use crate::StoreError;

/// How long a call waits for a connection before it says that the store cannot be reached.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// How long a reader waits for one: the caller waits for all of it.
const READ_WAIT_MAX: Duration = Duration::from_secs(5);
/// What one statement of a reader may take.
const READ_MAX: Duration = Duration::from_secs(10);
/// The longest pause between two tries to connect.
const PAUSE_MAX: Duration = Duration::from_millis(300);
const PAUSE_FIRST: Duration = Duration::from_millis(20);
/// What setting a new connection up may take.
const SET_UP_MAX: Duration = Duration::from_secs(5);
/// How long a call that was given up may take to be answered all the same.
const QUIET_MAX: Duration = Duration::from_millis(50);
const CANCEL_MAX: Duration = Duration::from_secs(2);
/// Longer than any statement of ours may take.
const GONE_MAX: Duration = Duration::from_secs(40);

/// Parameters of a statement.
pub(super) type Params<'a> = [&'a (dyn ToSql + Sync)];

pub(super) struct Pool {
    shared: Arc<Shared>,
    permits: Arc<Semaphore>,
}

struct Shared {
    dialer: Arc<Dialer>,
    /// Nothing is written here, and what takes long is given up.
    reads: bool,
    idle: Mutex<Vec<Link>>,
    /// Tries to connect that failed since the last that did not.
    failures: AtomicU32,
    /// Calls that found every connection on loan.
    waits: AtomicU64,
}

/// A connection and what was prepared on it.
struct Link {
    client: Client,
    prepared: Mutex<HashMap<&'static str, Statement>>,
    /// Who drives it; ends when the connection does.
    driver: JoinHandle<()>,
    /// The number of its host.
    host: usize,
}

/// Where its transaction stands.
const NONE: u8 = 0;
const OPEN: u8 = 1;
const COMMITTING: u8 = 2;

/// A connection on loan.
pub(super) struct Conn {
    link: Option<Link>,
    transaction: AtomicU8,
    /// Queries that are in flight.
    under_way: AtomicU32,
    /// Whether the server has refused anything: then it refuses the rest of the transaction at once.
    failed: AtomicBool,
    shared: Arc<Shared>,
    permit: Option<OwnedSemaphorePermit>,
}

/// What a connection is set to. Statements are short and plans are those of a busy database, whatever the planner
/// thinks of tables that it has not looked at yet.
pub(super) fn settings(schema: &str) -> String {
    include_str!("sql/settings.sql").replace("{schema}", schema)
}

fn too_many_readers() -> StoreError {
    let text = "as many are reading as the database connection allows: try again in a moment";
    StoreError::Slow(text.to_owned())
}

fn read_too_long() -> StoreError {
    let seconds = READ_MAX.as_secs();
    StoreError::Slow(format!(
        "the database took longer than {seconds} s to find this: ask for less, such as one job, one state or one label"
    ))
}

impl Pool {
    pub(super) fn new(dialer: &Arc<Dialer>, size: usize) -> Self {
        Self::with(dialer, size, false)
    }

    /// For those who look through tables at the wish of a client.
    pub(super) fn reading(dialer: &Arc<Dialer>, size: usize) -> Self {
        Self::with(dialer, size, true)
    }

    fn with(dialer: &Arc<Dialer>, size: usize, reads: bool) -> Self {
        let shared = Shared {
            dialer: Arc::clone(dialer),
            reads,
            idle: Mutex::default(),
            failures: AtomicU32::new(0),
            waits: AtomicU64::new(0),
        };
        Self {
            shared: Arc::new(shared),
            permits: Arc::new(Semaphore::new(size)),
        }
    }

    pub(super) async fn get(&self) -> Result<Conn, StoreError> {
        let reads = self.shared.reads;
        let wait = if reads { READ_WAIT_MAX } else { WAIT_MAX };
        if self.permits.available_permits() == 0 {
            self.shared.waits.fetch_add(1, Ordering::Relaxed);
        }
        let permit = match timeout(wait, Arc::clone(&self.permits).acquire_owned()).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(closed)) => return Err(StoreError::unavailable(closed)),
            Err(_) if reads => return Err(too_many_readers()),
            Err(late) => return Err(StoreError::unavailable(late)),
        };
        match self.shared.idle_link() {
            Some(link) => Ok(Conn::new(&self.shared, link, permit)),
            None => self.connect(permit).await,
        }
    }

    /// How many calls have had to wait for others to give a connection back.
    pub(super) fn waits(&self) -> u64 {
        self.shared.waits.load(Ordering::Relaxed)
    }

    /// By itself: whoever waits for it may have less patience than it takes, and then it is for whoever is next.
    async fn connect(&self, permit: OwnedSemaphorePermit) -> Result<Conn, StoreError> {
        let (give, given) = oneshot::channel();
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            let link = shared.connect().await;
            let conn = link.map(|link| Conn::new(&shared, link, permit));
            // One that nobody takes is given back.
            drop(give.send(conn));
        });
        given.await.map_err(StoreError::unavailable)?
    }

    /// A connection with a transaction, which is taken back unless it is committed.
    pub(super) async fn begin(&self) -> Result<Conn, StoreError> {
        let conn = self.get().await?;
        conn.begin()?;
        Ok(conn)
    }
}

impl Shared {
    /// One to the host that took us last: another may be silent, or follow by now.
    fn idle_link(&self) -> Option<Link> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(link) = idle.pop() {
            if !link.client.is_closed() && link.host == self.dialer.last() {
                return Some(link);
            }
        }
        None
    }

    fn give_back(&self, link: Link) {
        if !link.client.is_closed() {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.push(link);
        }
    }

    #[expect(clippy::disallowed_methods, reason = "nothing is decided by this wait")]
    async fn connect(&self) -> Result<Link, StoreError> {
        let failures = self.failures.load(Ordering::Relaxed);
        if failures > 0 {
            let pause = PAUSE_FIRST.saturating_mul(1 << failures.min(10));
            tokio::time::sleep(pause.min(PAUSE_MAX)).await;
        }
        let link = self.try_connect().await;
        match &link {
            Ok(_) => self.failures.store(0, Ordering::Relaxed),
            Err(_) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
            }
        }
        link
    }

    async fn try_connect(&self) -> Result<Link, StoreError> {
        let Connected {
            client,
            connection,
            host,
        } = self.dialer.connect().await?;
        let left = self.dialer.left(host);
        let driver = tokio::spawn(async move {
            tokio::select! {
                biased;
                ended = connection => if let Err(error) = ended {
                    tracing::debug!(%error, "a connection to the database was lost");
                },
                () = left => tracing::debug!("a connection led to a host that is not the primary any more"),
            }
        });
        let mut settings = settings(self.dialer.schema());
        if self.reads {
            let patience = format!("{}s", READ_MAX.as_secs());
            let more = include_str!("sql/settings_reads.sql").replace("{patience}", &patience);
            settings.push_str(&more);
        }
        match timeout(SET_UP_MAX, client.batch_execute(&settings)).await {
            Ok(set) => set.map_err(cannot_connect)?,
            Err(late) => return Err(StoreError::unavailable(late)),
        }
        Ok(Link {
            client,
            prepared: Mutex::default(),
            driver,
            host,
        })
    }

    /// What becomes of a connection that was given back with something under way.
    async fn settle_down(&self, link: Link, transaction: u8) {
        let last = if transaction == OPEN { "ROLLBACK" } else { "" };
        let quiet = timeout(QUIET_MAX, link.client.batch_execute(last)).await;
        if matches!(quiet, Ok(Ok(()))) {
            return self.give_back(link);
        }
        let Link { client, driver, .. } = link;
        let token = client.cancel_token();
        // It ends when what is under way does.
        drop(client);
        // A write that commits is left alone: one that waits for the standby would be seen by others from then on,
        // and might yet be lost with this server.
        if self.reads || transaction == OPEN {
            let cancelled = timeout(CANCEL_MAX, token.cancel_query(self.dialer.connector())).await;
            if !matches!(cancelled, Ok(Ok(()))) {
                tracing::debug!("a call that was given up could not be cancelled");
            }
        }
        let abort = driver.abort_handle();
        if timeout(GONE_MAX, driver).await.is_err() {
            abort.abort();
        }
    }
}

impl Conn {
    fn new(shared: &Arc<Shared>, link: Link, permit: OwnedSemaphorePermit) -> Self {
        Self {
            link: Some(link),
            transaction: AtomicU8::new(NONE),
            under_way: AtomicU32::new(0),
            failed: AtomicBool::new(false),
            shared: Arc::clone(shared),
            permit: Some(permit),
        }
    }

    fn link(&self) -> Result<&Link, StoreError> {
        let lost = || StoreError::unavailable("the connection was given back");
        self.link.as_ref().ok_or_else(lost)
    }

    /// Waits for an answer. One that is not waited for to its end stays under way.
    async fn answer<T>(&self, query: impl Future<Output = Result<T, Error>>) -> Done<T> {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        let answer = query.await;
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        answer.map_err(|error| {
            self.failed.store(true, Ordering::Relaxed);
            let patience = [&SqlState::QUERY_CANCELED, &SqlState::LOCK_NOT_AVAILABLE];
            let late = error.code().is_some_and(|code| patience.contains(&code));
            if late && self.shared.reads {
                Fault::Store(read_too_long())
            } else {
                error.into()
            }
        })
    }

    /// Begins without waiting for the answer: the next query is made within the transaction.
    pub(super) fn begin(&self) -> Result<(), StoreError> {
        let client = &self.link()?.client;
        self.transaction.store(OPEN, Ordering::Relaxed);
        match client.batch_execute("BEGIN").now_or_never() {
            Some(Err(error)) => Err(StoreError::unavailable(error)),
            Some(Ok(())) | None => Ok(()),
        }
    }

    pub(super) async fn commit(&self) -> Done<()> {
        let client = &self.link()?.client;
        self.transaction.store(COMMITTING, Ordering::Relaxed);
        self.answer(client.batch_execute("COMMIT")).await?;
        self.transaction.store(NONE, Ordering::Relaxed);
        Ok(())
    }

    /// Takes the transaction back, and waits until that is done: nothing is locked any more.
    pub(super) async fn rollback(&self) -> Done<()> {
        let client = &self.link()?.client;
        self.answer(client.batch_execute("ROLLBACK")).await?;
        self.transaction.store(NONE, Ordering::Relaxed);
        Ok(())
    }

    /// A statement, prepared once for each connection. Those that are to be pipelined are prepared before.
    pub(super) async fn prepare(&self, sql: &'static str) -> Done<Statement> {
        let link = self.link()?;
        let known = |link: &Link| {
            let prepared = link.prepared.lock().unwrap_or_else(PoisonError::into_inner);
            prepared.get(sql).cloned()
        };
        if let Some(statement) = known(link) {
            return Ok(statement);
        }
        let statement = self.answer(link.client.prepare(&filled(sql))).await?;
        let mut prepared = link.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        prepared.insert(sql, statement.clone());
        Ok(statement)
    }

    pub(super) async fn rows(&self, sql: &'static str, params: &Params<'_>) -> Done<Vec<Row>> {
        let statement = self.prepare(sql).await?;
        self.query_prepared(&statement, params).await
    }

    pub(super) async fn row(&self, sql: &'static str, params: &Params<'_>) -> Done<Option<Row>> {
        Ok(self.rows(sql, params).await?.into_iter().next())
    }

    pub(super) async fn execute(&self, sql: &'static str, params: &Params<'_>) -> Done<u64> {
        let statement = self.prepare(sql).await?;
        self.execute_prepared(&statement, params).await
    }

    /// One that is prepared: it is sent at the first poll, so that several can be under way.
    pub(super) async fn query_prepared(
        &self,
        statement: &Statement,
        params: &Params<'_>,
    ) -> Done<Vec<Row>> {
        self.answer(self.link()?.client.query(statement, params))
            .await
    }

    pub(super) async fn execute_prepared(
        &self,
        statement: &Statement,
        params: &Params<'_>,
    ) -> Done<u64> {
        self.answer(self.link()?.client.execute(statement, params))
            .await
    }

    /// Statements without parameters, as they stand.
    pub(super) async fn run(&self, sql: &str) -> Done<()> {
        self.answer(self.link()?.client.batch_execute(sql)).await
    }
}

impl Conn {
    /// Ends the connection instead of giving it back.
    pub(super) fn forget(mut self) {
        self.link = None;
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        let Some(link) = self.link.take() else {
            return;
        };
        let transaction = self.transaction.load(Ordering::Relaxed);
        let refused = transaction != NONE && self.failed.load(Ordering::Relaxed);
        if refused || self.under_way.load(Ordering::Relaxed) == 0 {
            if transaction == OPEN {
                // Sent at once; whoever has the connection next is answered after it.
                let _sent = link.client.batch_execute("ROLLBACK").now_or_never();
            }
            return self.shared.give_back(link);
        }
        // Without a runtime it ends by itself, when what is under way does.
        if let Ok(runtime) = Handle::try_current() {
            let (shared, permit) = (Arc::clone(&self.shared), self.permit.take());
            runtime.spawn(async move {
                shared.settle_down(link, transaction).await;
                drop(permit);
            });
        }
    }
}
