//! The store itself: its connections, its clock, and what it knows by heart.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::shard::ShardSet;
use model::{PresenceId, Timestamp};

use super::config::PgConfig;
use super::dial::Dialer;
use super::fault::{Done, Fault};
use super::gather::Gather;
use super::listen::Listener;
use super::migrate::migrate;
use super::partitions::Partitions;
use super::pool::{Conn, Pool};
use crate::fast_path::FastPaths;
use crate::{StoreClock, StoreError};

/// How often a call is done again because others were faster.
const TRIES_MAX: u32 = 20;

/// A store in a PostgreSQL database, for any number of nodes.
pub struct PgStore {
    /// The engine's: nobody else uses them, however many clients there are.
    pub(super) pool: Pool,
    /// For what clients do, and what can wait: each of these is short.
    pub(super) clients: Pool,
    /// What looks through tables at the wish of clients has connections of its own: nothing else waits for them.
    pub(super) readers: Pool,
    /// Beats have a connection of their own, so that load cannot starve them.
    pub(super) beats: Pool,
    /// Days of history are made while a call has its connection.
    pub(super) makers: Pool,
    /// And dropped, which may have to wait for whoever reads them.
    pub(super) droppers: Pool,
    pub(super) hints: Listener,
    pub(super) partitions: Partitions,
    /// Creates that wait for the next write.
    pub(super) creates: Gather,
    /// Zones that are known to have a row.
    pub(super) zones: Mutex<BTreeSet<String>>,
    /// Numbers of ended presences, and the shards in which they hold nothing any more, and never will again.
    pub(super) clear: Mutex<BTreeMap<i32, ShardSet>>,
    pub(super) fast_paths: FastPaths,
    /// Off only where a bench measures what it costs.
    pub(super) audits_creates: bool,
    /// The database's own, unless a test says what time it is.
    clock: Option<Arc<dyn StoreClock>>,
    /// The latest moment seen: the clock may go back.
    seen: AtomicI64,
    place: String,
}

impl fmt::Debug for PgStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PgStore({})", self.place)
    }
}

impl PgStore {
    /// Connects, and makes our tables or brings them up to date.
    pub async fn connect(config: PgConfig) -> Result<Self, StoreError> {
        Self::open(config, None).await
    }

    /// The same under another clock than the database's own: for tests.
    pub async fn with_clock(
        config: PgConfig,
        clock: Arc<dyn StoreClock>,
    ) -> Result<Self, StoreError> {
        Self::open(config, Some(clock)).await
    }

    /// Enters no new job in the audit log: for the bench that measures what that costs.
    #[must_use]
    pub fn without_audit_of_creates(self) -> Self {
        Self {
            audits_creates: false,
            ..self
        }
    }

    async fn open(
        config: PgConfig,
        clock: Option<Arc<dyn StoreClock>>,
    ) -> Result<Self, StoreError> {
        let dialer = Arc::new(Dialer::new(config.clone())?);
        let makers = Pool::new(&dialer, 1);
        migrate(&makers, config.schema()).await?;
        Ok(Self {
            pool: Pool::new(&dialer, config.connections),
            clients: Pool::new(&dialer, config.connections.div_ceil(2)),
            readers: Pool::reading(&dialer, config.connections.div_ceil(2)),
            beats: Pool::new(&dialer, 1),
            hints: Listener::new(&dialer),
            makers,
            droppers: Pool::new(&dialer, 1),
            partitions: Partitions::default(),
            creates: Gather::default(),
            zones: Mutex::default(),
            clear: Mutex::default(),
            fast_paths: FastPaths::on(),
            audits_creates: true,
            clock,
            seen: AtomicI64::new(0),
            place: config.to_string(),
        })
    }

    /// What time it is, as a parameter: nothing for the database's own clock.
    pub(super) fn now(&self) -> Option<i64> {
        let now = self.clock.as_ref()?.now();
        self.see(now);
        Some(now.as_millis())
    }

    /// The same to the microsecond.
    pub(super) fn now_micros(&self) -> Option<i64> {
        self.now()?;
        Some(self.clock.as_ref()?.now_micros())
    }

    /// Time that presences are measured by, likewise.
    pub(super) fn uptime(&self) -> Option<i64> {
        let uptime = self.clock.as_ref()?.uptime();
        Some(model::time::millis(uptime))
    }

    pub(super) fn see(&self, now: Timestamp) {
        self.seen.fetch_max(now.as_millis(), Ordering::AcqRel);
    }

    pub(super) fn seen(&self) -> i64 {
        self.seen.load(Ordering::Acquire)
    }

    pub(super) fn known<T>(known: &Mutex<T>) -> MutexGuard<'_, T> {
        known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call, and makes it again while others are in its way.
    pub(super) async fn call<T, F: Future<Output = Done<T>>>(
        &self,
        call: impl Fn() -> F,
    ) -> Result<T, StoreError> {
        self.retried(call).await.map_err(StoreError::from)
    }

    pub(super) async fn retried<T, F: Future<Output = Done<T>>>(
        &self,
        call: impl Fn() -> F,
    ) -> Done<T> {
        self.now();
        let mut tries = 0;
        loop {
            match call().await {
                Err(fault) if self.again(&fault, tries) => tries += 1,
                done => return done,
            }
        }
    }

    /// Whether a call that failed so is to be made again at once.
    fn again(&self, fault: &Fault, tries: u32) -> bool {
        if fault.is_missing_partition() {
            // Another node has dropped it.
            self.partitions.forget();
        }
        (fault.is_collision() || fault.is_missing_partition()) && tries < TRIES_MAX
    }

    /// Holds a presence that lives until the transaction ends: its number, and the time.
    pub(super) async fn hold(
        &self,
        conn: &Conn,
        presence: PresenceId,
    ) -> Done<Option<(i32, Timestamp)>> {
        let now = self.now();
        let row = conn
            .row(include_str!("sql/hold.sql"), &[&presence.0, &now])
            .await?;
        let Some(row) = row else {
            return Ok(None);
        };
        let millis: i64 = row.try_get(1)?;
        Ok(Some((row.try_get(0)?, Timestamp::from_millis(millis))))
    }
}

/// As PostgreSQL counts.
pub(super) fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
