//! Tenants that are deleted with all that they have: their jobs as clients delete them, a few at a time; when the last is gone,
//! the rest.

use model::{AccessKey, Job, JobId, Tenant, TenantId, Timestamp, limits};
use rusqlite::{Connection, params};

use super::access::of_tenant;
use super::db::Db;
use super::fault::Done;
use super::jobs::{ChangeRow, load_job};
use super::rows::Tenant as TenantColumn;
use super::tenants;
use crate::code::of_row;
use crate::types::swept;
use crate::{TenantMarked, ValidKeys};

/// Tenants of one step.
const TENANTS_MAX: i64 = 10;

fn jobs(conn: &Connection, tenant: TenantId, all: bool, limit: usize) -> Done<Vec<JobId>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut select = conn.prepare_cached(include_str!("sql/tenant_jobs.sql"))?;
    let ids = select.query_map(params![TenantColumn(tenant), all, limit], |row| {
        row.get(0).map(JobId::from_bytes)
    })?;
    Ok(ids.collect::<rusqlite::Result<_>>()?)
}

impl Db {
    pub(super) fn delete_tenant(
        &self,
        id: TenantId,
        now: Timestamp,
        keys: ValidKeys,
    ) -> Done<TenantMarked> {
        let Some(tenant) = tenants::get(&self.conn, id)? else {
            return Ok(TenantMarked::Missing);
        };
        if tenant.deleting_at.is_some() {
            return Ok(TenantMarked::Done(tenant));
        }
        let refuses = keys == ValidKeys::Refuse;
        if refuses
            && of_tenant(&self.conn, id)?
                .iter()
                .any(|key| key.is_valid(now))
        {
            return Ok(TenantMarked::HasKeys);
        }
        if !AccessKey::may_do_without(&self.roots()?, id) {
            return Ok(TenantMarked::LastRoot);
        }
        let change = self.change_keys()?;
        let mut revoke = self
            .conn
            .prepare_cached(include_str!("sql/revoke_tenant_keys.sql"))?;
        revoke.execute(params![TenantColumn(id), now.as_millis(), change])?;
        let mut mark = self
            .conn
            .prepare_cached(include_str!("sql/mark_tenant.sql"))?;
        mark.execute(params![TenantColumn(id), now.as_millis()])?;
        let marked = Tenant {
            deleting_at: Some(now),
            ..tenant.clone()
        };
        self.audit_tenant(Some(&tenant), Some(&marked))?;
        Ok(TenantMarked::Done(marked))
    }

    /// A step for each tenant that is being deleted; whether there is more to do at once.
    pub(super) fn sweep_tenants(&mut self, now: Timestamp) -> Done<bool> {
        let mut more = false;
        for tenant in tenants::deleting(&self.conn, TENANTS_MAX)? {
            more |= self.sweep(&tenant, now)?;
        }
        Ok(more)
    }

    fn sweep(&mut self, tenant: &Tenant, now: Timestamp) -> Done<bool> {
        let left = jobs(&self.conn, tenant.id, false, limits::TENANT_SWEEP_MAX)?;
        for id in &left {
            match of_row(load_job(&self.conn, *id))? {
                Ok(Some(job)) => self.sweep_job(job, now)?,
                Ok(None) => {}
                Err(_) => self.sweep_unreadable(*id)?,
            }
        }
        if !jobs(&self.conn, tenant.id, true, 1)?.is_empty() {
            return Ok(!left.is_empty());
        }
        for job in self.channels_of(tenant.id)? {
            self.sweep_job(job, now)?;
        }
        for sql in [
            include_str!("sql/drop_tenant_calendars.sql"),
            include_str!("sql/drop_tenant_requests.sql"),
            include_str!("sql/drop_tenant_replays.sql"),
            include_str!("sql/drop_tenant_alerts.sql"),
            include_str!("sql/drop_tenant_alert_states.sql"),
            include_str!("sql/drop_tenant_alert_causes.sql"),
        ] {
            let mut delete = self.conn.prepare_cached(sql)?;
            delete.execute([TenantColumn(tenant.id)])?;
        }
        self.watch_again()?;
        if tenant.is_drained(now) {
            self.drop_tenant(tenant.id, now)?;
        }
        Ok(false)
    }

    fn sweep_job(&mut self, job: Job, now: Timestamp) -> Done<()> {
        // What comes of it is seen by the next step.
        self.change_job(&ChangeRow::new(&swept(job, now)))
            .map(|_| ())
    }

    fn sweep_unreadable(&mut self, id: JobId) -> Done<()> {
        for sql in [
            include_str!("sql/sweep_job.sql"),
            include_str!("sql/sweep_def.sql"),
        ] {
            self.conn.prepare_cached(sql)?.execute([id.as_bytes()])?;
        }
        Ok(())
    }
}
