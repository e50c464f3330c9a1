//! Secrets, sealed. Whoever changes them locks `secret_changes` first, so that changes are seen in the order of their
//! numbers; no tenant goes meanwhile, because whoever drops one does the same.

use async_trait::async_trait;
use model::{Sealed, Secret, SecretName, TenantId, limits};
use tokio_postgres::Row;
use uuid::Uuid;

use super::access::number;
use super::fault::Done;
use super::pool::{Conn, Params};
use super::rows::moment;
use super::store::{PgStore, limit};
use super::tenants;
use crate::audit::Change;
use crate::row::{hosts_of, hosts_text};
use crate::{SecretPut, SecretStore, StoreError};

/// Columns as `get_secret.sql` has them; nothing for a name or a host that cannot be.
fn read(row: &Row) -> Done<Option<Secret>> {
    let tenant = TenantId(row.try_get(0)?);
    let (name, hosts): (String, String) = (row.try_get(1)?, row.try_get(3)?);
    let (Ok(name), Some(hosts)) = (SecretName::stored(&name), hosts_of(&hosts)) else {
        tracing::warn!(%tenant, "unreadable secret");
        return Ok(None);
    };
    Ok(Some(Secret {
        tenant,
        name,
        version: row.try_get::<_, i32>(2)?.unsigned_abs(),
        hosts,
        note: row.try_get(4)?,
        created_at: moment(row, 5)?,
        updated_at: moment(row, 6)?,
        sealed: Sealed {
            master_key: row.try_get(7)?,
            wrapped: row.try_get(8)?,
            value: row.try_get(9)?,
        },
    }))
}

async fn select(conn: &Conn, sql: &'static str, params: &Params<'_>) -> Done<Vec<Secret>> {
    let rows = conn.rows(sql, params).await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        found.extend(read(row)?);
    }
    Ok(found)
}

async fn get(conn: &Conn, tenant: TenantId, name: &SecretName) -> Done<Option<Secret>> {
    let sql = include_str!("sql/get_secret.sql");
    let found = select(conn, sql, &[&tenant.0, &name.as_str()]).await?;
    Ok(found.into_iter().next())
}

fn version(secret: &Secret) -> i32 {
    secret.version.cast_signed()
}

/// The number of this change. It comes first.
pub(super) async fn change(conn: &Conn) -> Done<()> {
    conn.execute(include_str!("sql/change_secrets.sql"), &[])
        .await?;
    Ok(())
}

/// Those of a tenant that goes.
pub(super) async fn drop_of(conn: &Conn, tenant: TenantId) -> Done<()> {
    change(conn).await?;
    let sql = include_str!("sql/drop_tenant_secrets.sql");
    conn.execute(sql, &[&tenant.0]).await?;
    Ok(())
}

impl PgStore {
    async fn try_put_secret(&self, secret: &Secret, before: Option<u32>) -> Done<SecretPut> {
        let conn = self.clients.begin().await?;
        change(&conn).await?;
        if tenants::get(&conn, secret.tenant).await?.is_none() {
            return Ok(SecretPut::NoTenant);
        }
        let stands = get(&conn, secret.tenant, &secret.name).await?;
        if stands.map(|stands| stands.version) != before {
            return Ok(SecretPut::Conflict);
        }
        let count = include_str!("sql/count_secrets_of.sql");
        let count = number(&conn, count, &[&secret.tenant.0]).await?;
        if before.is_none() && count >= limit(limits::SECRETS_MAX) {
            return Ok(SecretPut::Full);
        }
        conn.execute(
            include_str!("sql/put_secret.sql"),
            &[
                &secret.tenant.0,
                &secret.name.as_str(),
                &version(secret),
                &hosts_text(&secret.hosts),
                &secret.note,
                &secret.created_at.as_millis(),
                &secret.updated_at.as_millis(),
                &secret.sealed.master_key,
                &secret.sealed.wrapped,
                &secret.sealed.value,
            ],
        )
        .await?;
        self.audit(&conn, &[Change::secret_put(secret)]).await?;
        conn.commit().await?;
        Ok(SecretPut::Done)
    }

    async fn try_list_secrets(
        &self,
        tenant: TenantId,
        after: Option<&SecretName>,
        count: usize,
    ) -> Done<Vec<Secret>> {
        let conn = self.readers.get().await?;
        // Every name is greater than no text at all.
        let after = after.map_or("", SecretName::as_str);
        let params: &Params<'_> = &[&tenant.0, &after, &limit(count)];
        select(&conn, include_str!("sql/list_secrets.sql"), params).await
    }

    async fn try_drop_secret(&self, tenant: TenantId, name: &SecretName) -> Done<bool> {
        let conn = self.clients.begin().await?;
        change(&conn).await?;
        let sql = include_str!("sql/drop_secret.sql");
        let dropped = conn.execute(sql, &[&tenant.0, &name.as_str()]).await?;
        if dropped > 0 {
            let change = Change::secret_dropped(tenant, name);
            self.audit(&conn, &[change]).await?;
        }
        conn.commit().await?;
        Ok(dropped > 0)
    }

    async fn try_secret_change(&self) -> Done<u64> {
        let conn = self.clients.get().await?;
        let change = number(&conn, include_str!("sql/secret_change.sql"), &[]).await?;
        Ok(change.unsigned_abs())
    }

    async fn try_secrets_not_under(
        &self,
        master_key: &str,
        after: Option<&(TenantId, SecretName)>,
        count: usize,
    ) -> Done<Vec<Secret>> {
        let conn = self.readers.get().await?;
        let (tenant, name) = match after {
            Some((tenant, name)) => (tenant.0, name.as_str()),
            None => (Uuid::nil(), ""),
        };
        let params: &Params<'_> = &[&master_key, &tenant, &name, &limit(count)];
        select(&conn, include_str!("sql/secrets_not_under.sql"), params).await
    }

    async fn try_rewrap_secrets(&self, secrets: &[Secret]) -> Done<usize> {
        let tenants: Vec<Uuid> = secrets.iter().map(|it| it.tenant.0).collect();
        let names: Vec<&str> = secrets.iter().map(|it| it.name.as_str()).collect();
        let versions: Vec<i32> = secrets.iter().map(version).collect();
        let keys: Vec<&str> = secrets.iter().map(|it| &*it.sealed.master_key).collect();
        let wrapped: Vec<&[u8]> = secrets.iter().map(|it| &*it.sealed.wrapped).collect();
        let conn = self.clients.begin().await?;
        change(&conn).await?;
        let sql = include_str!("sql/rewrap_secrets.sql");
        let params: &Params<'_> = &[&tenants, &names, &versions, &keys, &wrapped];
        let written = conn.execute(sql, params).await?;
        let written = usize::try_from(written).unwrap_or(usize::MAX);
        let change = Change::secrets_rewrapped(secrets, written);
        self.audit(&conn, change.as_slice()).await?;
        conn.commit().await?;
        Ok(written)
    }

    async fn try_count_secrets(&self) -> Done<Vec<(String, u64)>> {
        let conn = self.readers.get().await?;
        let rows = conn
            .rows(include_str!("sql/count_secrets.sql"), &[])
            .await?;
        let mut counts = Vec::with_capacity(rows.len());
        for row in &rows {
            counts.push((row.try_get(0)?, row.try_get::<_, i64>(1)?.unsigned_abs()));
        }
        Ok(counts)
    }
}

#[async_trait]
impl SecretStore for PgStore {
    async fn put_secret(
        &self,
        secret: &Secret,
        before: Option<u32>,
    ) -> Result<SecretPut, StoreError> {
        self.call(|| self.try_put_secret(secret, before)).await
    }

    async fn get_secret(
        &self,
        tenant: TenantId,
        name: &SecretName,
    ) -> Result<Option<Secret>, StoreError> {
        self.call(|| async {
            let conn = self.clients.get().await?;
            get(&conn, tenant, name).await
        })
        .await
    }

    async fn list_secrets(
        &self,
        tenant: TenantId,
        after: Option<&SecretName>,
        limit: usize,
    ) -> Result<Vec<Secret>, StoreError> {
        self.call(|| self.try_list_secrets(tenant, after, limit))
            .await
    }

    async fn drop_secret(&self, tenant: TenantId, name: &SecretName) -> Result<bool, StoreError> {
        self.call(|| self.try_drop_secret(tenant, name)).await
    }

    async fn secret_change(&self) -> Result<u64, StoreError> {
        self.call(|| self.try_secret_change()).await
    }

    async fn secrets_not_under(
        &self,
        master_key: &str,
        after: Option<&(TenantId, SecretName)>,
        limit: usize,
    ) -> Result<Vec<Secret>, StoreError> {
        self.call(|| self.try_secrets_not_under(master_key, after, limit))
            .await
    }

    async fn rewrap_secrets(&self, secrets: &[Secret]) -> Result<usize, StoreError> {
        self.call(|| self.try_rewrap_secrets(secrets)).await
    }

    async fn count_secrets(&self) -> Result<Vec<(String, u64)>, StoreError> {
        self.call(|| self.try_count_secrets()).await
    }
}
