//! Tenants.

use model::{Quotas, Tenant, TenantEdit, TenantId, TenantName, Timestamp, limits};
use rusqlite::{Connection, Params, Row, params};

use super::access::{number, of_tenant};
use super::db::Db;
use super::fault::Done;
use super::rows::{Tenant as TenantColumn, maybe_moment, moment};
use super::uses::{count, maybe_count};
use crate::statement::statement;
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
        quotas: Quotas {
            jobs_max: maybe_count(row, 4)?,
            payload_bytes_max: maybe_count(row, 5)?,
            history_days_max: maybe_count(row, 6)?,
            runs_day_max: maybe_count(row, 7)?,
        },
        deleting_at: maybe_moment(row, 8)?,
    }))
}

fn select(conn: &Connection, sql: &str, params: impl Params) -> Done<Vec<Tenant>> {
    let mut select = conn.prepare_cached(sql)?;
    let rows = select.query_map(params, read)?;
    let found: rusqlite::Result<Vec<_>> = rows.collect();
    Ok(found?.into_iter().flatten().collect())
}

pub(super) fn get(conn: &Connection, id: TenantId) -> Done<Option<Tenant>> {
    let found = select(conn, statement!("sql/get_tenant.sql"), [TenantColumn(id)])?;
    Ok(found.into_iter().next())
}

pub(super) fn find(conn: &Connection, name: &TenantName) -> Done<Option<Tenant>> {
    let found = select(conn, statement!("sql/find_tenant.sql"), [name.as_str()])?;
    Ok(found.into_iter().next())
}

/// Those that are being deleted, the longest first.
pub(super) fn deleting(conn: &Connection, limit: i64) -> Done<Vec<Tenant>> {
    select(conn, statement!("sql/deleting_tenants.sql"), [limit])
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
        statement!("sql/list_tenants.sql"),
        params![after, limit],
    )
}

/// Whether there is any tenant but the one that is always there.
pub(super) fn has_others(conn: &Connection) -> Done<bool> {
    Ok(conn.query_row(include_str!("sql/has_tenants.sql"), [], |row| row.get(0))?)
}

/// Gives the tenant that is always there indexes of its own, once there are others.
pub(super) fn index_default(conn: &Connection) -> Done<()> {
    if has_others(conn)? {
        conn.execute_batch(include_str!("sql/index_default_jobs.sql"))?;
        conn.execute_batch(include_str!("sql/index_default_rare.sql"))?;
        conn.execute_batch(include_str!("sql/index_default_open.sql"))?;
        conn.execute_batch(include_str!("sql/index_default_audit.sql"))?;
    }
    Ok(())
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
        let tenants = number(&self.conn, include_str!("sql/count_tenants.sql"), [])?;
        if tenants >= limits::TENANTS_MAX as i64 {
            return Ok(TenantCreated::Full);
        }
        let mut insert = self
            .conn
            .prepare_cached(statement!("sql/create_tenant.sql"))?;
        insert.execute(params![
            TenantColumn(tenant.id),
            tenant.name.as_str(),
            tenant.note,
            tenant.created_at.as_millis(),
            tenant.quotas.jobs_max.map(count),
            tenant.quotas.payload_bytes_max.map(count),
            tenant.quotas.history_days_max.map(count),
            tenant.quotas.runs_day_max.map(count),
        ])?;
        index_default(&self.conn)?;
        self.audit_tenant(None, Some(tenant))?;
        Ok(TenantCreated::Done)
    }

    pub(super) fn edit_tenant(&self, id: TenantId, edit: &TenantEdit) -> Done<Option<Tenant>> {
        let Some(before) = get(&self.conn, id)? else {
            return Ok(None);
        };
        let tenant = before.clone().edited(edit);
        let mut update = self
            .conn
            .prepare_cached(include_str!("sql/edit_tenant.sql"))?;
        update.execute(params![
            TenantColumn(id),
            tenant.note,
            tenant.quotas.jobs_max.map(count),
            tenant.quotas.payload_bytes_max.map(count),
            tenant.quotas.history_days_max.map(count),
            tenant.quotas.runs_day_max.map(count),
        ])?;
        if before != tenant {
            self.audit_tenant(Some(&before), Some(&tenant))?;
        }
        Ok(Some(tenant))
    }

    pub(super) fn drop_tenant(&self, id: TenantId, now: Timestamp) -> Done<TenantDropped> {
        let Some(stands) = get(&self.conn, id)? else {
            return Ok(TenantDropped::Missing);
        };
        if of_tenant(&self.conn, id)?
            .iter()
            .any(|key| key.is_valid(now))
        {
            return Ok(TenantDropped::HasKeys);
        }
        self.drop_secrets_of(id)?;
        for sql in [
            include_str!("sql/drop_tenant_keys.sql"),
            include_str!("sql/drop_tenant_members.sql"),
            include_str!("sql/drop_tenant_use.sql"),
            include_str!("sql/drop_tenant_rollups.sql"),
            include_str!("sql/drop_tenant.sql"),
        ] {
            self.conn.prepare_cached(sql)?.execute([TenantColumn(id)])?;
        }
        self.audit_tenant(Some(&stands), None)?;
        Ok(TenantDropped::Done)
    }
}
