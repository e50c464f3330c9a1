//! Tenants. Whoever makes or drops one locks `key_changes` first, as whoever makes a key does: no key is made for a tenant
//! that goes.

use model::{Quota, Quotas, Tenant, TenantEdit, TenantId, TenantName, Timestamp, limits};
use tokio_postgres::Row;

use super::access::{number, of_tenant};
use super::fault::Done;
use super::pool::{Conn, Params};
use super::rows::{maybe_moment, moment};
use super::secrets;
use super::store::{PgStore, limit};
use super::uses::{count, maybe_count};
use crate::audit::Change;
use crate::{TenantCreated, TenantDropped};

/// Columns as `get_tenant.sql` has them; nothing for a name that no tenant can have.
fn read(row: &Row) -> Done<Option<Tenant>> {
    let (id, name) = (TenantId(row.try_get(0)?), row.try_get::<_, String>(1)?);
    let Ok(name) = TenantName::new(&name) else {
        tracing::warn!(tenant = %id, "unreadable tenant");
        return Ok(None);
    };
    Ok(Some(Tenant {
        id,
        name,
        note: row.try_get(2)?,
        created_at: moment(row, 3)?,
        quotas: Quotas {
            jobs_max: maybe_count(row, 4)?,
            payload_bytes_max: maybe_count(row, 5)?,
            history_days_max: maybe_count(row, 6)?,
            runs_day_max: maybe_count(row, 7)?,
        },
        deleting_at: maybe_moment(row, 8)?,
    }))
}

fn columns(quotas: &Quotas) -> [Option<i64>; 4] {
    Quota::ALL.map(|quota| quotas.said(quota).map(count))
}

async fn select(conn: &Conn, sql: &'static str, params: &Params<'_>) -> Done<Vec<Tenant>> {
    let rows = conn.rows(sql, params).await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        found.extend(read(row)?);
    }
    Ok(found)
}

pub(super) async fn get(conn: &Conn, id: TenantId) -> Done<Option<Tenant>> {
    let found = select(conn, include_str!("sql/get_tenant.sql"), &[&id.0]).await?;
    Ok(found.into_iter().next())
}

/// Those that are being deleted, the longest first.
pub(super) async fn deleting(conn: &Conn, limit: i64) -> Done<Vec<Tenant>> {
    select(conn, include_str!("sql/deleting_tenants.sql"), &[&limit]).await
}

async fn find(conn: &Conn, name: &TenantName) -> Done<Option<Tenant>> {
    let sql = include_str!("sql/find_tenant.sql");
    let found = select(conn, sql, &[&name.as_str()]).await?;
    Ok(found.into_iter().next())
}

impl PgStore {
    pub(super) async fn try_create_tenant(&self, tenant: &Tenant) -> Done<TenantCreated> {
        let (conn, _) = self.begin_change().await?;
        if let Some(stands) = find(&conn, &tenant.name).await? {
            return Ok(if stands.id == tenant.id {
                TenantCreated::Done
            } else {
                TenantCreated::Exists
            });
        }
        let tenants = number(&conn, include_str!("sql/count_tenants.sql"), &[]).await?;
        if tenants >= limit(limits::TENANTS_MAX) {
            return Ok(TenantCreated::Full);
        }
        let (name, created_at) = (tenant.name.as_str(), tenant.created_at.as_millis());
        let [jobs_max, payload_bytes_max, history_days_max, runs_day_max] = columns(&tenant.quotas);
        conn.execute(
            include_str!("sql/create_tenant.sql"),
            &[
                &tenant.id.0,
                &name,
                &tenant.note,
                &created_at,
                &jobs_max,
                &payload_bytes_max,
                &history_days_max,
                &runs_day_max,
            ],
        )
        .await?;
        let change = Change::tenant(None, Some(tenant));
        self.audit(&conn, change.as_slice()).await?;
        conn.commit().await?;
        Ok(TenantCreated::Done)
    }

    pub(super) async fn try_get_tenant(&self, id: TenantId) -> Done<Option<Tenant>> {
        let conn = self.clients.get().await?;
        get(&conn, id).await
    }

    pub(super) async fn try_find_tenant(&self, name: &TenantName) -> Done<Option<Tenant>> {
        let conn = self.clients.get().await?;
        find(&conn, name).await
    }

    pub(super) async fn try_list_tenants(
        &self,
        after: Option<&TenantName>,
        count: usize,
    ) -> Done<Vec<Tenant>> {
        let conn = self.readers.get().await?;
        // Every name is greater than no text at all.
        let after = after.map_or("", TenantName::as_str);
        let params: &Params<'_> = &[&after, &limit(count)];
        select(&conn, include_str!("sql/list_tenants.sql"), params).await
    }

    pub(super) async fn try_edit_tenant(
        &self,
        id: TenantId,
        edit: &TenantEdit,
    ) -> Done<Option<Tenant>> {
        let (conn, _) = self.begin_change().await?;
        let Some(before) = get(&conn, id).await? else {
            return Ok(None);
        };
        let tenant = before.clone().edited(edit);
        let [jobs_max, payload_bytes_max, history_days_max, runs_day_max] = columns(&tenant.quotas);
        conn.execute(
            include_str!("sql/edit_tenant.sql"),
            &[
                &id.0,
                &tenant.note,
                &jobs_max,
                &payload_bytes_max,
                &history_days_max,
                &runs_day_max,
            ],
        )
        .await?;
        if before != tenant {
            let change = Change::tenant(Some(&before), Some(&tenant));
            self.audit(&conn, change.as_slice()).await?;
        }
        conn.commit().await?;
        Ok(Some(tenant))
    }

    pub(super) async fn try_drop_tenant(
        &self,
        id: TenantId,
        now: Timestamp,
    ) -> Done<TenantDropped> {
        let (conn, _) = self.begin_change().await?;
        let Some(stands) = get(&conn, id).await? else {
            return Ok(TenantDropped::Missing);
        };
        let keys = of_tenant(&conn, id).await?;
        if keys.iter().any(|key| key.is_valid(now)) {
            return Ok(TenantDropped::HasKeys);
        }
        secrets::drop_of(&conn, id).await?;
        for sql in [
            include_str!("sql/drop_tenant_keys.sql"),
            include_str!("sql/drop_tenant_members.sql"),
            include_str!("sql/drop_tenant_use.sql"),
            include_str!("sql/drop_tenant_rollups.sql"),
            include_str!("sql/drop_tenant.sql"),
        ] {
            conn.execute(sql, &[&id.0]).await?;
        }
        let change = Change::tenant(Some(&stands), None);
        self.audit(&conn, change.as_slice()).await?;
        conn.commit().await?;
        Ok(TenantDropped::Done)
    }
}
