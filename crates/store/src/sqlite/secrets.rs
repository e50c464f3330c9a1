//! Secrets, sealed.

use async_trait::async_trait;
use model::{Secret, SecretName, TenantId, limits};
use rusqlite::{Connection, Params, Row, params};

use super::access::number;
use super::db::Db;
use super::fault::Done;
use super::rows::{Tenant, moment};
use super::store::SqliteStore;
use super::tenants;
use super::writer::By;
use crate::audit::Change;
use crate::row::{hosts_of, hosts_text};
use crate::statement::statement;
use crate::{SecretPut, SecretStore, StoreError};

/// Columns as `get_secret.sql` has them; nothing for a name or a host that cannot be.
fn read(row: &Row<'_>) -> rusqlite::Result<Option<Secret>> {
    let Tenant(tenant) = row.get(0)?;
    let (name, hosts): (String, String) = (row.get(1)?, row.get(3)?);
    let (Ok(name), Some(hosts)) = (SecretName::stored(&name), hosts_of(&hosts)) else {
        tracing::warn!(%tenant, "unreadable secret");
        return Ok(None);
    };
    Ok(Some(Secret {
        tenant,
        name,
        version: row.get(2)?,
        hosts,
        note: row.get(4)?,
        created_at: moment(row, 5)?,
        updated_at: moment(row, 6)?,
        sealed: model::Sealed {
            master_key: row.get(7)?,
            wrapped: row.get(8)?,
            value: row.get(9)?,
        },
    }))
}

fn select(conn: &Connection, sql: &str, params: impl Params) -> Done<Vec<Secret>> {
    let mut select = conn.prepare_cached(sql)?;
    let rows = select.query_map(params, read)?;
    let found: rusqlite::Result<Vec<_>> = rows.collect();
    Ok(found?.into_iter().flatten().collect())
}

fn get(conn: &Connection, tenant: TenantId, name: &SecretName) -> Done<Option<Secret>> {
    let params = params![Tenant(tenant), name.as_str()];
    let found = select(conn, statement!("sql/get_secret.sql"), params)?;
    Ok(found.into_iter().next())
}

fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn list(
    conn: &Connection,
    tenant: TenantId,
    after: Option<&SecretName>,
    limit: usize,
) -> Done<Vec<Secret>> {
    // Every name is greater than no text at all.
    let after = after.map_or("", SecretName::as_str);
    let params = params![Tenant(tenant), after, rows(limit)];
    select(conn, statement!("sql/list_secrets.sql"), params)
}

fn not_under(
    conn: &Connection,
    master_key: &str,
    after: Option<&(TenantId, SecretName)>,
    limit: usize,
) -> Done<Vec<Secret>> {
    let (tenant, name) = match after {
        Some((tenant, name)) => (*tenant, name.as_str()),
        None => (TenantId::DEFAULT, ""),
    };
    let params = params![master_key, Tenant(tenant), name, rows(limit)];
    select(conn, statement!("sql/secrets_not_under.sql"), params)
}

fn count(conn: &Connection) -> Done<Vec<(String, u64)>> {
    let mut select = conn.prepare_cached(include_str!("sql/count_secrets.sql"))?;
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()));
    let rows = select.query_map([], read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

impl Db {
    fn change_secrets(&self) -> Done<()> {
        let sql = include_str!("sql/change_secrets.sql");
        self.conn.prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    fn put_secret(&self, secret: &Secret, before: Option<u32>) -> Done<SecretPut> {
        if tenants::get(&self.conn, secret.tenant)?.is_none() {
            return Ok(SecretPut::NoTenant);
        }
        let stands = get(&self.conn, secret.tenant, &secret.name)?;
        if stands.map(|stands| stands.version) != before {
            return Ok(SecretPut::Conflict);
        }
        let count = include_str!("sql/count_secrets_of.sql");
        let count = number(&self.conn, count, [Tenant(secret.tenant)])?;
        if before.is_none() && count >= limits::SECRETS_MAX as i64 {
            return Ok(SecretPut::Full);
        }
        let put = statement!("sql/put_secret.sql");
        self.conn.prepare_cached(put)?.execute(params![
            Tenant(secret.tenant),
            secret.name.as_str(),
            secret.version,
            hosts_text(&secret.hosts),
            secret.note,
            secret.created_at.as_millis(),
            secret.updated_at.as_millis(),
            secret.sealed.master_key,
            secret.sealed.wrapped,
            secret.sealed.value,
        ])?;
        self.change_secrets()?;
        self.audit(&Change::secret_put(secret))?;
        Ok(SecretPut::Done)
    }

    fn drop_secret(&self, tenant: TenantId, name: &SecretName) -> Done<bool> {
        let sql = include_str!("sql/drop_secret.sql");
        let params = params![Tenant(tenant), name.as_str()];
        let dropped = self.conn.prepare_cached(sql)?.execute(params)? > 0;
        if dropped {
            self.audit(&Change::secret_dropped(tenant, name))?;
            self.change_secrets()?;
        }
        Ok(dropped)
    }

    fn rewrap_secrets(&self, secrets: &[Secret]) -> Done<usize> {
        let mut update = self
            .conn
            .prepare_cached(include_str!("sql/rewrap_secret.sql"))?;
        let mut written = 0;
        for secret in secrets {
            written += update.execute(params![
                Tenant(secret.tenant),
                secret.name.as_str(),
                secret.version,
                secret.sealed.master_key,
                secret.sealed.wrapped,
            ])?;
        }
        self.change_secrets()?;
        if let Some(change) = Change::secrets_rewrapped(secrets, written) {
            self.audit(&change)?;
        }
        Ok(written)
    }

    /// Those of a tenant that goes.
    pub(super) fn drop_secrets_of(&self, tenant: TenantId) -> Done<()> {
        let sql = include_str!("sql/drop_tenant_secrets.sql");
        self.conn.prepare_cached(sql)?.execute([Tenant(tenant)])?;
        self.change_secrets()
    }
}

#[async_trait]
impl SecretStore for SqliteStore {
    async fn put_secret(
        &self,
        secret: &Secret,
        before: Option<u32>,
    ) -> Result<SecretPut, StoreError> {
        let secret = secret.clone();
        self.write(By::Client, 1, move |db| db.put_secret(&secret, before))
            .await
    }

    async fn get_secret(
        &self,
        tenant: TenantId,
        name: &SecretName,
    ) -> Result<Option<Secret>, StoreError> {
        let name = name.clone();
        self.read(By::Client, move |conn| get(conn, tenant, &name))
            .await
    }

    async fn list_secrets(
        &self,
        tenant: TenantId,
        after: Option<&SecretName>,
        limit: usize,
    ) -> Result<Vec<Secret>, StoreError> {
        let after = after.cloned();
        self.read(By::Client, move |conn| {
            list(conn, tenant, after.as_ref(), limit)
        })
        .await
    }

    async fn drop_secret(&self, tenant: TenantId, name: &SecretName) -> Result<bool, StoreError> {
        let name = name.clone();
        self.write(By::Client, 1, move |db| db.drop_secret(tenant, &name))
            .await
    }

    async fn secret_change(&self) -> Result<u64, StoreError> {
        self.read(By::Client, |conn| {
            Ok(number(conn, include_str!("sql/secret_change.sql"), [])?.unsigned_abs())
        })
        .await
    }

    async fn secrets_not_under(
        &self,
        master_key: &str,
        after: Option<&(TenantId, SecretName)>,
        limit: usize,
    ) -> Result<Vec<Secret>, StoreError> {
        let (master_key, after) = (master_key.to_owned(), after.cloned());
        self.read(By::Client, move |conn| {
            not_under(conn, &master_key, after.as_ref(), limit)
        })
        .await
    }

    async fn rewrap_secrets(&self, secrets: &[Secret]) -> Result<usize, StoreError> {
        let secrets = secrets.to_vec();
        self.write(By::Client, secrets.len(), move |db| {
            db.rewrap_secrets(&secrets)
        })
        .await
    }

    async fn count_secrets(&self) -> Result<Vec<(String, u64)>, StoreError> {
        self.read(By::Client, count).await
    }
}
