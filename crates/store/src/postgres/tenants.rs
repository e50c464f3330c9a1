//! Tenants. Whoever makes or drops one locks `key_changes` first, as whoever makes a key does: no key is made for a tenant
//! that goes.

use model::{Tenant, TenantId, TenantName, Timestamp, limits};
use tokio_postgres::Row;

use super::access::{number, of_tenant};
use super::fault::Done;
use super::pool::{Conn, Params};
use super::rows::moment;
use super::store::{PgStore, limit};
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
    }))
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
        let count = number(&conn, include_str!("sql/count_tenants.sql"), &[]).await?;
        if count >= limit(limits::TENANTS_MAX) {
            return Ok(TenantCreated::Full);
        }
        let (name, created_at) = (tenant.name.as_str(), tenant.created_at.as_millis());
        conn.execute(
            include_str!("sql/create_tenant.sql"),
            &[&tenant.id.0, &name, &tenant.note, &created_at],
        )
        .await?;
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

    pub(super) async fn try_note_tenant(
        &self,
        id: TenantId,
        note: Option<&str>,
    ) -> Done<Option<Tenant>> {
        let conn = self.clients.get().await?;
        conn.execute(include_str!("sql/note_tenant.sql"), &[&id.0, &note])
            .await?;
        get(&conn, id).await
    }

    pub(super) async fn try_drop_tenant(
        &self,
        id: TenantId,
        now: Timestamp,
    ) -> Done<TenantDropped> {
        let (conn, _) = self.begin_change().await?;
        if get(&conn, id).await?.is_none() {
            return Ok(TenantDropped::Missing);
        }
        let keys = of_tenant(&conn, id).await?;
        if keys.iter().any(|key| key.is_valid(now)) {
            return Ok(TenantDropped::HasKeys);
        }
        let keys = include_str!("sql/drop_tenant_keys.sql");
        conn.execute(keys, &[&id.0]).await?;
        let tenant = include_str!("sql/drop_tenant.sql");
        conn.execute(tenant, &[&id.0]).await?;
        conn.commit().await?;
        Ok(TenantDropped::Done)
    }
}
