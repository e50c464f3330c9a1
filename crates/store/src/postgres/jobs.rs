//! Jobs as they are read one by one, and what create and change both write of them.

use std::collections::BTreeMap;

use model::{Job, JobId, JobKey, TenantId};
use uuid::Uuid;

use super::calendars::{read_jobs, readable_jobs};
use super::fault::Done;
use super::pool::Conn;
use super::rows::text;
use super::store::PgStore;
use crate::row::{Payloads, is_gone};
use crate::{BadRow, Found};

impl PgStore {
    pub(super) async fn try_get_jobs(&self, wanted: &[(TenantId, JobId)]) -> Done<Vec<Found<Job>>> {
        let conn = self.clients.get().await?;
        let ids: Vec<Uuid> = wanted.iter().map(|(_, id)| id.0).collect();
        let sql = include_str!("sql/get_job.sql");
        let rows = conn.rows(sql, &[&ids, &Payloads::All.max()]).await?;
        let read = read_jobs(&conn, &rows).await?.into_iter();
        let read: BTreeMap<JobId, Result<Job, BadRow>> = read
            .map(|(id, job)| (id, job.map_err(BadRow::from)))
            .collect();
        let found = |(tenant, id): &(TenantId, JobId)| {
            let job = read.get(id).cloned().transpose()?;
            Ok(job.filter(|job| job.tenant == *tenant && !is_gone(job)))
        };
        Ok(wanted.iter().map(found).collect())
    }

    pub(super) async fn try_find_job(&self, tenant: TenantId, key: &JobKey) -> Done<Option<Job>> {
        let conn = self.clients.get().await?;
        let rows = conn
            .rows(
                include_str!("sql/find_job.sql"),
                &[&tenant.0, &key.as_str()],
            )
            .await?;
        Ok(readable_jobs(&conn, &rows).await?.into_iter().next())
    }
}

/// The key that a job takes, if it takes one.
pub(super) fn key_of(job: &Job) -> Option<(TenantId, String)> {
    let key = job.key.as_ref().filter(|_| !is_gone(job))?;
    Some((job.tenant, key.as_str().to_owned()))
}

pub(super) async fn put_labels(conn: &Conn, jobs: &[&Job]) -> Done<()> {
    let (mut tenants, mut names, mut values, mut ids) = (vec![], vec![], vec![], vec![]);
    for job in jobs {
        for (name, value) in &job.def.labels {
            tenants.push(job.tenant.0);
            names.push(text(name));
            values.push(text(value));
            ids.push(job.id.0);
        }
    }
    if !ids.is_empty() {
        let sql = include_str!("sql/create_jobs_label.sql");
        conn.execute(sql, &[&tenants, &names, &values, &ids])
            .await?;
    }
    Ok(())
}

/// Writes down which calendars jobs name; they are shared, and stay there meanwhile. A deleted job names none.
pub(super) async fn name_calendars(conn: &Conn, jobs: &[&Job]) -> Done<()> {
    let (mut tenants, mut names, mut ids) = (vec![], vec![], vec![]);
    for job in jobs.iter().filter(|job| !is_gone(job)) {
        for name in job.def.schedule.calendars.names() {
            tenants.push(job.tenant.0);
            names.push(name.as_str());
            ids.push(job.id.0);
        }
    }
    if ids.is_empty() {
        return Ok(());
    }
    let sql = include_str!("sql/create_jobs_calendar.sql");
    conn.execute(sql, &[&tenants, &names, &ids]).await?;
    Ok(())
}
