//! Versions: what jobs were before they were changed.

use std::sync::Arc;

use model::{Job, JobId, TenantId, Version, limits};
use tokio_postgres::Row;

use super::calendars::readable_jobs;
use super::fault::Done;
use super::pool::{Conn, Params};
use super::rows::{JOB_COLUMNS, moment, read_text, text};
use super::store::{PgStore, limit};
use crate::audit::is_edited;
use crate::row::is_gone;
use crate::{Acting, JobVersion, Page};

/// Keeps what a job was, if it is changed.
pub(super) async fn keep_version(conn: &Conn, before: &Job, after: &Job) -> Done<()> {
    if !is_edited(before, after) {
        return Ok(());
    }
    let (acting, ended_at) = (Acting::now(), after.updated_at.as_millis());
    let keep = include_str!("sql/keep_version.sql");
    conn.execute(keep, &[&before.id.0, &ended_at, &text(&acting.name)])
        .await?;
    let prune = include_str!("sql/prune_versions.sql");
    conn.execute(prune, &[&before.id.0, &limit(limits::VERSIONS_MAX)])
        .await?;
    Ok(())
}

/// Columns as `list_versions.sql` has them.
async fn read(conn: &Conn, rows: &[Row]) -> Done<Vec<JobVersion>> {
    let jobs = readable_jobs(conn, rows).await?;
    let mut found = Vec::with_capacity(rows.len());
    for (row, mut job) in rows.iter().zip(jobs) {
        let version: i32 = row.try_get(JOB_COLUMNS)?;
        job.version = Version(version.cast_unsigned());
        if !is_gone(&job) {
            found.push(JobVersion {
                job: Arc::new(job),
                ended_at: moment(row, JOB_COLUMNS + 1)?,
                ended_by: read_text(row.try_get(JOB_COLUMNS + 2)?),
            });
        }
    }
    Ok(found)
}

impl PgStore {
    pub(super) async fn try_list_versions(
        &self,
        tenant: TenantId,
        job: JobId,
        page: Page<Version>,
    ) -> Done<Vec<JobVersion>> {
        let conn = self.readers.get().await?;
        let before = page
            .before
            .map_or(i32::MAX, |version| version.0.cast_signed());
        let params: &Params<'_> = &[&tenant.0, &job.0, &before, &limit(page.limit)];
        let rows = conn
            .rows(include_str!("sql/list_versions.sql"), params)
            .await?;
        read(&conn, &rows).await
    }

    pub(super) async fn try_get_version(
        &self,
        tenant: TenantId,
        job: JobId,
        version: Version,
    ) -> Done<Option<JobVersion>> {
        let conn = self.readers.get().await?;
        let params: &Params<'_> = &[&tenant.0, &job.0, &version.0.cast_signed()];
        let rows = conn
            .rows(include_str!("sql/get_version.sql"), params)
            .await?;
        Ok(read(&conn, &rows).await?.into_iter().next())
    }
}
