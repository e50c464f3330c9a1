//! What the benches know of a PostgreSQL server: schemas of their own, and what was written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use engine::{Clock, SystemClock};
use store::Store;
use store::postgres::{PgConfig, PgStore};
use tokio_postgres::{Client, NoTls};

use super::rig;
use crate::failure::Failure;

pub(super) fn failed(error: tokio_postgres::Error) -> Failure {
    Failure::refused(format!(
        "the bench's own connection failed: {}",
        crate::failure::chain(&error)
    ))
}

/// A connection of the bench itself, which speaks without TLS.
pub(super) async fn connect(address: &str) -> Result<Client, Failure> {
    let (client, connection) = tokio_postgres::connect(address, NoTls)
        .await
        .map_err(failed)?;
    tokio::spawn(connection);
    Ok(client)
}

/// A schema of this process alone.
#[derive(Clone)]
pub(super) struct Schema {
    server: String,
    name: String,
}

/// What the server has written so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Written {
    /// Bytes of the write-ahead log.
    pub wal: i64,
    /// Rows inserted, updated and deleted in the schema.
    pub tuples: i64,
}

/// Processor time of the server's processes on this machine, in ticks of a hundredth of a second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spent(u64);

impl Spent {
    /// The postmaster, those that it has waited for, and those that live.
    pub(super) async fn by_now(client: &Client) -> Result<Self, Failure> {
        let row = client.query_one("SELECT pg_backend_pid()", &[]).await;
        let pid: i32 = row.and_then(|row| row.try_get(0)).map_err(failed)?;
        let here = fields(&pid.to_string()).ok_or_else(|| {
            Failure::usage("what the server spends is known only on its own machine")
        })?;
        let postmaster = here.get(PARENT).cloned().unwrap_or_default();
        let of = |fields: &[String], wanted: &[usize]| -> u64 {
            let fields = wanted.iter().filter_map(|index| fields.get(*index));
            fields.filter_map(|field| field.parse::<u64>().ok()).sum()
        };
        let mut ticks =
            fields(&postmaster).map_or(0, |it| of(&it, &[USER, SYSTEM, WAITED, WAITED + 1]));
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        for one in all.filter_map(|one| fields(&one.file_name().to_string_lossy())) {
            if one.get(PARENT) == Some(&postmaster) {
                ticks += of(&one, &[USER, SYSTEM]);
            }
        }
        Ok(Self(ticks))
    }

    pub(super) fn since(self, before: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(before.0) * 10)
    }
}

/// Places in what follows the name in `/proc/<pid>/stat`.
const PARENT: usize = 1;
const USER: usize = 11;
const SYSTEM: usize = 12;
const WAITED: usize = 13;

/// What a process has spent so far.
pub(super) fn processor_time(pid: u32) -> Option<Duration> {
    let fields = fields(&pid.to_string())?;
    let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Duration::from_millis((ticks(USER)? + ticks(SYSTEM)?) * 10))
}

fn fields(pid: &str) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in brackets, and may hold anything.
    let (_, rest) = text.rsplit_once(')')?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

impl Schema {
    pub(super) fn new(server: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self {
            server: server.to_owned(),
            name: format!("bench_{}_{number}", std::process::id()),
        }
    }

    pub(super) fn server(&self) -> &str {
        &self.server
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// As `punctual serve` is configured.
    pub(super) fn address(&self) -> String {
        let sign = if self.server.contains('?') { '&' } else { '?' };
        format!("{}{sign}schema={}", self.server, self.name)
    }

    pub(super) async fn open(&self) -> Result<Arc<dyn Store>, Failure> {
        let config = PgConfig::parse(&self.address()).map_err(rig::failed)?;
        Ok(Arc::new(
            PgStore::connect(config).await.map_err(rig::failed)?,
        ))
    }

    /// One that enters no new job in the audit log.
    pub(super) async fn open_without_audit(&self) -> Result<Arc<dyn Store>, Failure> {
        let config = PgConfig::parse(&self.address()).map_err(rig::failed)?;
        let store = PgStore::connect(config).await.map_err(rig::failed)?;
        Ok(Arc::new(store.without_audit_of_creates()))
    }

    /// For one of many nodes.
    pub(super) async fn open_light(&self) -> Result<Arc<dyn Store>, Failure> {
        let address = format!("{}&connections=2", self.address());
        let config = PgConfig::parse(&address).map_err(rig::failed)?;
        Ok(Arc::new(
            PgStore::connect(config).await.map_err(rig::failed)?,
        ))
    }

    /// A connection that finds our tables, and plans as the store's do.
    pub(super) async fn client(&self) -> Result<Client, Failure> {
        let client = connect(&self.server).await?;
        let settings = format!(
            "SET search_path TO {}, pg_catalog; SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off;
             SET enable_hashjoin = off; SET enable_mergejoin = off; SET max_parallel_workers_per_gather = 0;
             SET jit = off",
            self.name
        );
        client.batch_execute(&settings).await.map_err(failed)?;
        Ok(client)
    }

    /// Waits until no store is connected any more, which is when the server counts what it wrote; then everything
    /// goes to disk, so that no round pays for another.
    pub(super) async fn rest(&self) -> Result<Written, Failure> {
        const STORES: &str =
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'punctual'";
        const WRITTEN: &str = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint,
            (SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::bigint
             FROM pg_stat_user_tables WHERE schemaname = $1)";
        let client = connect(&self.server).await?;
        for _ in 0..200 {
            let row = client.query_one(STORES, &[]).await.map_err(failed)?;
            let stores: i64 = row.try_get(0).map_err(failed)?;
            if stores == 0 {
                break;
            }
            SystemClock.sleep(Duration::from_millis(25)).await;
        }
        let row = client
            .query_one(WRITTEN, &[&self.name])
            .await
            .map_err(failed)?;
        let written = Written {
            wal: row.try_get(0).map_err(failed)?,
            tuples: row.try_get(1).map_err(failed)?,
        };
        client.batch_execute("CHECKPOINT").await.map_err(failed)?;
        Ok(written)
    }

    /// Bytes of all tables and indexes.
    pub(super) async fn size(&self) -> Result<u64, Failure> {
        const SIZE: &str =
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
            WHERE relnamespace = to_regnamespace($1) AND relkind IN ('r', 'm')";
        let client = connect(&self.server).await?;
        let row = client.query_one(SIZE, &[&self.name]).await;
        let size: i64 = row.and_then(|row| row.try_get(0)).map_err(failed)?;
        Ok(size.unsigned_abs())
    }

    pub(super) async fn end(self) -> Result<(), Failure> {
        let client = connect(&self.server).await?;
        let drop = format!("DROP SCHEMA IF EXISTS {} CASCADE", self.name);
        client.batch_execute(&drop).await.map_err(failed)
    }
}
