//! Versions: what jobs were before they were changed.

use std::sync::Arc;

use model::{Job, JobId, TenantId, Timestamp, Version, limits};
use rusqlite::{Connection, Params, Row, params};

use super::calendars::Lookup;
use super::db::Db;
use super::fault::Done;
use super::rows::{maybe_bytes, moment};
use crate::audit::is_edited;
use crate::row::{JobRow, Payloads, is_gone};
use crate::{JobVersion, Page, StoreError};

impl Db {
    /// Keeps what a job was, if it is changed.
    pub(super) fn keep_version(&self, before: &Job, after: &Job) -> Done<()> {
        if !is_edited(before, after) {
            return Ok(());
        }
        let keep = include_str!("sql/keep_version.sql");
        let (id, ended_at) = (before.id.as_bytes(), after.updated_at.as_millis());
        let row = params![id, ended_at, &*self.acting.name];
        self.conn.prepare_cached(keep)?.execute(row)?;
        let prune = include_str!("sql/prune_versions.sql");
        let kept = i64::try_from(limits::VERSIONS_MAX).unwrap_or(i64::MAX);
        self.conn
            .prepare_cached(prune)?
            .execute(params![id, kept])?;
        Ok(())
    }
}

/// What a row says in place of the job's own.
struct Kept {
    version: Version,
    updated_at: Timestamp,
    ended_at: Timestamp,
    ended_by: String,
    key: Option<String>,
    doc: Vec<u8>,
    payload: Option<bytes::Bytes>,
    names_calendars: bool,
}

/// Columns as `list_versions.sql` has them.
fn read(row: &Row<'_>) -> rusqlite::Result<Kept> {
    Ok(Kept {
        version: Version(row.get(0)?),
        updated_at: moment(row, 1)?,
        ended_at: moment(row, 2)?,
        ended_by: row.get(3)?,
        key: row.get(4)?,
        doc: row.get(5)?,
        payload: maybe_bytes(row, 6)?,
        names_calendars: row.get(7)?,
    })
}

fn select(
    conn: &Connection,
    (tenant, job): (TenantId, JobId),
    sql: &str,
    params: impl Params,
) -> Done<Vec<JobVersion>> {
    let mut select = conn.prepare_cached(sql)?;
    let kept = select.query_map(params, read)?;
    let kept: Vec<Kept> = kept.collect::<rusqlite::Result<_>>()?;
    let lookup = Lookup::new(conn, Payloads::Small);
    let mut found = Vec::with_capacity(kept.len());
    for kept in kept {
        let Some(mut row) = lookup.row(job)?.filter(|row| row.narrow.tenant == tenant) else {
            return Ok(Vec::new());
        };
        row.narrow.version = kept.version;
        let row = JobRow {
            updated_at: kept.updated_at,
            key: kept.key,
            doc: kept.doc,
            payload: kept.payload,
            payload_left: None,
            names_calendars: kept.names_calendars,
            ..row
        };
        let job = lookup.decode(row)?.map_err(StoreError::from)?;
        if is_gone(&job) {
            return Ok(Vec::new());
        }
        found.push(JobVersion {
            job: Arc::new(job),
            ended_at: kept.ended_at,
            ended_by: kept.ended_by,
        });
    }
    Ok(found)
}

pub(super) fn list(
    conn: &Connection,
    tenant: TenantId,
    job: JobId,
    page: Page<Version>,
) -> Done<Vec<JobVersion>> {
    let before = page.before.map_or(u32::MAX, |version| version.0);
    let limit = i64::try_from(page.limit).unwrap_or(i64::MAX);
    let sql = include_str!("sql/list_versions.sql");
    let params = params![job.as_bytes(), before, limit];
    select(conn, (tenant, job), sql, params)
}

pub(super) fn get(
    conn: &Connection,
    tenant: TenantId,
    job: JobId,
    version: Version,
) -> Done<Option<JobVersion>> {
    let sql = include_str!("sql/get_version.sql");
    let found = select(conn, (tenant, job), sql, params![job.as_bytes(), version.0])?;
    Ok(found.into_iter().next())
}
