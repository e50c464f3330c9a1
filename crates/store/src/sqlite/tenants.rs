//! Tenants.

use model::{Tenant, TenantId, TenantName, Timestamp, limits};
use rusqlite::{Connection, Params, Row, params};

use super::access::{number, of_tenant};
use super::db::Db;
use super::fault::Done;
use super::rows::{Tenant as TenantColumn, moment};
use crate::{TenantCreated, TenantDropped};

/// Columns as `get_tenant.sql` has them; nothing for a name that no tenant can have.
fn read(row: &Row<'_>) -> rusqlite::Result<Option<Tenant>> {
    let TenantColumn(id) = row.get(0)?;
    let name: String = row.get(1)?;
    let Ok(name) = TenantName::new(&name) else {
        tracing::warn!(tenant = %id, "unreadable tenant");
        return Ok(None);
    };
    Ok(Some(Tenant {
        id,
        name,
        note: row.get(2)?,
        created_at: moment(row, 3)?,
    }))
}

fn select(conn: &Connection, sql: &str, params: impl Params) -> Done<Vec<Tenant>> {
    let mut select = conn.prepare_cached(sql)?;
    let rows = select.query_map(params, read)?;
    let found: rusqlite::Result<Vec<_>> = rows.collect();
    Ok(found?.into_iter().flatten().collect())
}

pub(super) fn get(conn: &Connection, id: TenantId) -> Done<Option<Tenant>> {
    let found = select(conn, include_str!("sql/get_tenant.sql"), [TenantColumn(id)])?;
    Ok(found.into_iter().next())
}

pub(super) fn find(conn: &Connection, name: &TenantName) -> Done<Option<Tenant>> {
    let found = select(conn, include_str!("sql/find_tenant.sql"), [name.as_str()])?;
    Ok(found.into_iter().next())
}

pub(super) fn list(
    conn: &Connection,
    after: Option<&TenantName>,
    limit: usize,
) -> Done<Vec<Tenant>> {
    // Every name is greater than no text at all.
    let after = after.map_or("", TenantName::as_str);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    select(
        conn,
        include_str!("sql/list_tenants.sql"),
        params![after, limit],
    )
}

impl Db {
    pub(super) fn create_tenant(&self, tenant: &Tenant) -> Done<TenantCreated> {
        if let Some(stands) = find(&self.conn, &tenant.name)? {
            return Ok(if stands.id == tenant.id {
                TenantCreated::Done
            } else {
                TenantCreated::Exists
            });
        }
        let count = number(&self.conn, include_str!("sql/count_tenants.sql"), [])?;
        if count >= limits::TENANTS_MAX as i64 {
            return Ok(TenantCreated::Full);
        }
        let mut insert = self
            .conn
            .prepare_cached(include_str!("sql/create_tenant.sql"))?;
        insert.execute(params![
            TenantColumn(tenant.id),
            tenant.name.as_str(),
            tenant.note,
            tenant.created_at.as_millis(),
        ])?;
        Ok(TenantCreated::Done)
    }

    pub(super) fn note_tenant(&self, id: TenantId, note: Option<&str>) -> Done<Option<Tenant>> {
        let mut update = self
            .conn
            .prepare_cached(include_str!("sql/note_tenant.sql"))?;
        update.execute(params![TenantColumn(id), note])?;
        get(&self.conn, id)
    }

    pub(super) fn drop_tenant(&self, id: TenantId, now: Timestamp) -> Done<TenantDropped> {
        if get(&self.conn, id)?.is_none() {
            return Ok(TenantDropped::Missing);
        }
        if of_tenant(&self.conn, id)?
            .iter()
            .any(|key| key.is_valid(now))
        {
            return Ok(TenantDropped::HasKeys);
        }
        for sql in [
            include_str!("sql/drop_tenant_keys.sql"),
            include_str!("sql/drop_tenant.sql"),
        ] {
            self.conn.prepare_cached(sql)?.execute([TenantColumn(id)])?;
        }
        Ok(TenantDropped::Done)
    }
}
