//! Connections: a bounded few, each with its prepared statements. One is given out, used and given back; one whose
//! transaction was left open is rolled back on the way, one that was lost is forgotten, and the next is made
//! after a wait that grows while the server is away.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use super::config::PgConfig;
use super::fault::{Done, cannot_connect};
use super::tls::Connector;
use crate::StoreError;

/// How long a call waits for a connection before it says that the store cannot be reached.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// The longest pause between two tries to connect.
const PAUSE_MAX: Duration = Duration::from_millis(300);
const PAUSE_FIRST: Duration = Duration::from_millis(20);
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// Parameters of a statement.
pub(super) type Params<'a> = [&'a (dyn ToSql + Sync)];

pub(super) struct Pool {
    shared: Arc<Shared>,
    permits: Arc<Semaphore>,
}

struct Shared {
    config: PgConfig,
    connector: Connector,
    idle: Mutex<Vec<Link>>,
    /// Tries to connect that failed since the last that did not.
    failures: AtomicU32,
}

/// A connection and what was prepared on it.
struct Link {
    client: Client,
    prepared: Mutex<HashMap<&'static str, Statement>>,
}

/// A connection on loan.
pub(super) struct Conn {
    link: Option<Link>,
    /// Whether a transaction is open.
    open: AtomicBool,
    shared: Arc<Shared>,
    _permit: OwnedSemaphorePermit,
}

/// What a connection is set to. Statements are short and plans are those of a busy database, whatever the planner
/// thinks of tables that it has not looked at yet.
pub(super) fn settings(schema: &str) -> String {
    include_str!("sql/settings.sql").replace("{schema}", schema)
}

impl Pool {
    pub fn new(config: PgConfig, connector: Connector, size: usize) -> Self {
        let shared = Shared {
            config,
            connector,
            idle: Mutex::default(),
            failures: AtomicU32::new(0),
        };
        Self {
            shared: Arc::new(shared),
            permits: Arc::new(Semaphore::new(size)),
        }
    }

    pub async fn get(&self) -> Result<Conn, StoreError> {
        let waited = tokio::time::timeout(WAIT_MAX, Arc::clone(&self.permits).acquire_owned());
        let permit = match waited.await {
            Ok(Ok(permit)) => permit,
            Ok(Err(closed)) => return Err(StoreError::unavailable(closed)),
            Err(late) => return Err(StoreError::unavailable(late)),
        };
        let link = match self.shared.idle_link() {
            Some(link) => link,
            None => self.shared.connect().await?,
        };
        Ok(Conn {
            link: Some(link),
            open: AtomicBool::new(false),
            shared: Arc::clone(&self.shared),
            _permit: permit,
        })
    }

    /// A connection with a transaction, which is taken back unless it is committed.
    pub async fn begin(&self) -> Result<Conn, StoreError> {
        let conn = self.get().await?;
        conn.begin()?;
        Ok(conn)
    }
}

impl Shared {
    fn idle_link(&self) -> Option<Link> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(link) = idle.pop() {
            if !link.client.is_closed() {
                return Some(link);
            }
        }
        None
    }

    #[expect(clippy::disallowed_methods, reason = "nothing is decided by this wait")]
    async fn connect(&self) -> Result<Link, StoreError> {
        let failures = self.failures.load(Ordering::Relaxed);
        if failures > 0 {
            let pause = PAUSE_FIRST.saturating_mul(1 << failures.min(10));
            tokio::time::sleep(pause.min(PAUSE_MAX)).await;
        }
        let tried = tokio::time::timeout(CONNECT_MAX, self.try_connect()).await;
        let link = tried.unwrap_or_else(|late| Err(StoreError::unavailable(late)));
        match &link {
            Ok(_) => self.failures.store(0, Ordering::Relaxed),
            Err(_) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
            }
        }
        link
    }

    async fn try_connect(&self) -> Result<Link, StoreError> {
        let server = &self.config.server;
        let connected = server.connect(self.connector.clone()).await;
        let (client, connection) = connected.map_err(cannot_connect)?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the database was lost");
            }
        });
        let settings = settings(&self.config.schema);
        client
            .batch_execute(&settings)
            .await
            .map_err(cannot_connect)?;
        Ok(Link {
            client,
            prepared: Mutex::default(),
        })
    }
}

impl Conn {
    fn link(&self) -> Result<&Link, StoreError> {
        let lost = || StoreError::unavailable("the connection was given back");
        self.link.as_ref().ok_or_else(lost)
    }

    /// Begins without waiting for the answer: whatever is asked next is asked within the transaction.
    pub fn begin(&self) -> Result<(), StoreError> {
        let client = &self.link()?.client;
        self.open.store(true, Ordering::Relaxed);
        match client.batch_execute("BEGIN").now_or_never() {
            Some(Err(error)) => Err(StoreError::unavailable(error)),
            Some(Ok(())) | None => Ok(()),
        }
    }

    pub async fn commit(&self) -> Done<()> {
        self.link()?.client.batch_execute("COMMIT").await?;
        self.open.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// A statement, prepared once for each connection. Those that are to be pipelined are prepared before.
    pub async fn prepare(&self, sql: &'static str) -> Done<Statement> {
        let link = self.link()?;
        let known = |link: &Link| {
            let prepared = link.prepared.lock().unwrap_or_else(PoisonError::into_inner);
            prepared.get(sql).cloned()
        };
        if let Some(statement) = known(link) {
            return Ok(statement);
        }
        let statement = link.client.prepare(sql).await?;
        let mut prepared = link.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        prepared.insert(sql, statement.clone());
        Ok(statement)
    }

    pub async fn rows(&self, sql: &'static str, params: &Params<'_>) -> Done<Vec<Row>> {
        let statement = self.prepare(sql).await?;
        self.ask(&statement, params).await
    }

    pub async fn row(&self, sql: &'static str, params: &Params<'_>) -> Done<Option<Row>> {
        Ok(self.rows(sql, params).await?.into_iter().next())
    }

    pub async fn execute(&self, sql: &'static str, params: &Params<'_>) -> Done<u64> {
        let statement = self.prepare(sql).await?;
        self.tell(&statement, params).await
    }

    /// One that is prepared: it is sent at the first poll, so that several can be under way.
    pub async fn ask(&self, statement: &Statement, params: &Params<'_>) -> Done<Vec<Row>> {
        Ok(self.link()?.client.query(statement, params).await?)
    }

    pub async fn tell(&self, statement: &Statement, params: &Params<'_>) -> Done<u64> {
        Ok(self.link()?.client.execute(statement, params).await?)
    }

    /// Statements without parameters, as they stand.
    pub async fn run(&self, sql: &str) -> Done<()> {
        Ok(self.link()?.client.batch_execute(sql).await?)
    }
}

impl Conn {
    /// Ends the connection instead of giving it back.
    pub fn forget(mut self) {
        self.link = None;
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        let Some(link) = self.link.take() else {
            return;
        };
        if self.open.load(Ordering::Relaxed) {
            // Sent at once; whoever has the connection next is answered after it.
            let _sent = link.client.batch_execute("ROLLBACK").now_or_never();
        }
        if !link.client.is_closed() {
            let mut idle = self
                .shared
                .idle
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            idle.push(link);
        }
    }
}
