//! Tenants that are deleted with all that they have: their jobs as clients delete them, a few at a time; when the last is gone,
//! the rest. Any node does it, and several may at once: whoever comes second finds less to do.

use model::{AccessKey, JobId, Tenant, TenantId, Timestamp, limits};
use uuid::Uuid;

use super::access::{of_tenant, roots};
use super::fault::Done;
use super::store::{PgStore, limit};
use super::tenants;
use crate::audit::Change;
use crate::types::swept;
use crate::{JobChange, TenantMarked, ValidKeys};

/// Tenants of one step.
const TENANTS_MAX: i64 = 10;

impl PgStore {
    pub(super) async fn try_delete_tenant(
        &self,
        id: TenantId,
        now: Timestamp,
        keys: ValidKeys,
    ) -> Done<TenantMarked> {
        let (conn, change) = self.begin_change().await?;
        let Some(tenant) = tenants::get(&conn, id).await? else {
            return Ok(TenantMarked::Missing);
        };
        if tenant.deleting_at.is_some() {
            return Ok(TenantMarked::Done(tenant));
        }
        let refuses = keys == ValidKeys::Refuse;
        if refuses
            && of_tenant(&conn, id)
                .await?
                .iter()
                .any(|key| key.is_valid(now))
        {
            return Ok(TenantMarked::HasKeys);
        }
        if !AccessKey::may_do_without(&roots(&conn).await?, id) {
            return Ok(TenantMarked::LastRoot);
        }
        let revoke = include_str!("sql/revoke_tenant_keys.sql");
        conn.execute(revoke, &[&id.0, &now.as_millis(), &change])
            .await?;
        let mark = include_str!("sql/mark_tenant.sql");
        conn.execute(mark, &[&id.0, &now.as_millis()]).await?;
        let marked = Tenant {
            deleting_at: Some(now),
            ..tenant.clone()
        };
        let change = Change::tenant(Some(&tenant), Some(&marked));
        self.audit(&conn, change.as_slice()).await?;
        conn.commit().await?;
        Ok(TenantMarked::Done(marked))
    }

    /// A step for each tenant that is being deleted; whether there is more to do at once.
    pub(super) async fn sweep_tenants(&self, now: Timestamp) -> Done<bool> {
        let conn = self.clients.get().await?;
        let deleting = tenants::deleting(&conn, TENANTS_MAX).await?;
        drop(conn);
        let mut more = false;
        for tenant in deleting {
            more |= self.sweep(&tenant, now).await?;
        }
        Ok(more)
    }

    async fn jobs_of(&self, tenant: TenantId, all: bool, count: usize) -> Done<Vec<JobId>> {
        let conn = self.clients.get().await?;
        let sql = include_str!("sql/tenant_jobs.sql");
        let rows = conn.rows(sql, &[&tenant.0, &all, &limit(count)]).await?;
        let ids = rows.iter().map(|row| row.try_get::<_, Uuid>(0).map(JobId));
        Ok(ids.collect::<Result<_, _>>()?)
    }

    async fn sweep(&self, tenant: &Tenant, now: Timestamp) -> Done<bool> {
        let left = self
            .jobs_of(tenant.id, false, limits::TENANT_SWEEP_MAX)
            .await?;
        let named: Vec<_> = left.iter().map(|id| (tenant.id, *id)).collect();
        for (found, id) in self.try_get_jobs(&named).await?.into_iter().zip(&left) {
            match found {
                Ok(Some(job)) => self.sweep_job(swept(job, now)).await?,
                Ok(None) => {}
                Err(_) => self.sweep_unreadable(*id).await?,
            }
        }
        if !self.jobs_of(tenant.id, true, 1).await?.is_empty() {
            return Ok(!left.is_empty());
        }
        for job in self.channels_of(tenant.id).await? {
            self.sweep_job(swept(job, now)).await?;
        }
        let conn = self.clients.get().await?;
        for sql in [
            include_str!("sql/drop_tenant_calendars.sql"),
            include_str!("sql/drop_tenant_requests.sql"),
            include_str!("sql/drop_tenant_replays.sql"),
            include_str!("sql/drop_tenant_alerts.sql"),
            include_str!("sql/drop_tenant_alert_states.sql"),
            include_str!("sql/drop_tenant_alert_causes.sql"),
        ] {
            conn.execute(sql, &[&tenant.id.0]).await?;
        }
        drop(conn);
        if tenant.is_drained(now) {
            self.try_drop_tenant(tenant.id, now).await?;
        }
        Ok(false)
    }

    async fn sweep_job(&self, change: JobChange) -> Done<()> {
        // What comes of it, and what is in its way, is seen by the next step.
        if let Err(error) = self.change(&change).await {
            tracing::debug!(job = %change.after.id, %error, "a job does not go with its tenant yet");
        }
        Ok(())
    }

    async fn sweep_unreadable(&self, id: JobId) -> Done<()> {
        let conn = self.clients.begin().await?;
        for sql in [
            include_str!("sql/sweep_job.sql"),
            include_str!("sql/sweep_def.sql"),
        ] {
            conn.execute(sql, &[&id.0]).await?;
        }
        conn.commit().await
    }
}
