//! What handed-over work has said of itself, whose it is, and the keys of its tokens.

use std::collections::BTreeMap;

use bytes::Bytes;
use model::{AttemptNo, RunId, RunLog};
use tokio_postgres::Row;
use uuid::Uuid;

use super::fault::Done;
use super::fire::live_named;
use super::pool::{Conn, Pool};
use super::rows::{maybe_bytes, moment};
use super::store::PgStore;
use crate::row::Payloads;
use crate::{ReportKey, Whose};

pub(super) async fn get_logs(conn: &Conn, runs: &[Uuid]) -> Done<BTreeMap<RunId, RunLog>> {
    let mut logs = BTreeMap::new();
    let sql = include_str!("sql/get_logs.sql");
    for row in &conn.rows(sql, &[&runs]).await? {
        let total: i64 = row.try_get(3)?;
        let log = RunLog {
            head: row.try_get(1)?,
            tail: row.try_get(2)?,
            total: total.unsigned_abs(),
        };
        logs.insert(RunId(row.try_get(0)?), log);
    }
    Ok(logs)
}

impl PgStore {
    pub(super) async fn try_whose(&self, runs: &[RunId]) -> Done<Vec<Option<Whose>>> {
        let conn = self.clients.get().await?;
        let names: Vec<Uuid> = runs.iter().map(|run| run.0).collect();
        let live = live_named(&conn, &names, Payloads::Small).await?;
        let live = live.iter().map(|row| (row.run.id, Whose::of(&row.run)));
        let live: BTreeMap<RunId, Whose> = live.collect();
        Ok(runs.iter().map(|run| live.get(run).copied()).collect())
    }
}

pub(super) async fn get_checkpoint(clients: &Pool, run: RunId) -> Done<Option<Bytes>> {
    let conn = clients.get().await?;
    let sql = include_str!("sql/get_checkpoint.sql");
    match conn.row(sql, &[&run.0]).await? {
        Some(row) => maybe_bytes(&row, 0),
        None => Ok(None),
    }
}

pub(super) async fn is_current(clients: &Pool, run: RunId, attempt: AttemptNo) -> Done<bool> {
    let conn = clients.get().await?;
    let sql = include_str!("sql/is_current.sql");
    let row = conn.row(sql, &[&run.0, &attempt.0.cast_signed()]).await?;
    Ok(row.is_some())
}

pub(super) async fn get_keys(conn: &Conn) -> Done<Vec<ReportKey>> {
    let rows = conn.rows(include_str!("sql/report_keys.sql"), &[]).await?;
    let read = |row: &Row| {
        Ok(ReportKey {
            id: row.try_get(0)?,
            created_at: moment(row, 1)?,
            master_key: row.try_get(2)?,
            bytes: row.try_get(3)?,
        })
    };
    rows.iter().map(read).collect()
}
