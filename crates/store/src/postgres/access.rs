//! Keys. Whoever changes them locks `key_changes` first, so that of several who start at once one makes the first key,
//! and changes are seen in the order of their numbers.

use async_trait::async_trait;
use model::{
    AccessKey, KeyId, Role, Tenant, TenantEdit, TenantId, TenantName, Timestamp, Usage, limits,
};
use tokio_postgres::Row;
use uuid::Uuid;

use super::fault::Done;
use super::pool::{Conn, Params};
use super::rows::{maybe_moment, moment};
use super::store::{PgStore, limit};
use super::tenants;
use crate::audit::Change;
use crate::code::{Code, bad_row};
use crate::row::{queues_of, queues_text};
use crate::{
    AccessStore, KeyChanges, KeyCreated, KeyRevoked, Page, StoreError, TenantCreated,
    TenantDropped, TenantMarked, ValidKeys,
};

/// Columns as `get_key.sql` has them; nothing for a role that a newer version wrote.
fn read(row: &Row) -> Done<Option<AccessKey>> {
    let id = KeyId(row.try_get(0)?);
    let Some(role) = Role::from_code(row.try_get(2)?) else {
        tracing::warn!(key = %id, "a key has a role that is not known, and opens nothing here");
        return Ok(None);
    };
    let digest: Vec<u8> = row.try_get(4)?;
    let length = digest.len();
    Ok(Some(AccessKey {
        id,
        tenant: TenantId(row.try_get(1)?),
        role,
        label: row.try_get(3)?,
        digest: digest
            .try_into()
            .map_err(|_| bad_row(id, &format!("its digest has {length} bytes")))?,
        created_at: moment(row, 5)?,
        expires_at: maybe_moment(row, 6)?,
        last_used_at: maybe_moment(row, 7)?,
        revoked_at: maybe_moment(row, 8)?,
        queues: queues_of(row.try_get(9)?),
    }))
}

async fn select(conn: &Conn, sql: &'static str, params: &Params<'_>) -> Done<Vec<AccessKey>> {
    let rows = conn.rows(sql, params).await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        found.extend(read(row)?);
    }
    Ok(found)
}

async fn get(conn: &Conn, tenant: TenantId, id: KeyId) -> Done<Option<AccessKey>> {
    let found = select(conn, include_str!("sql/get_key.sql"), &[&tenant.0, &id.0]).await?;
    Ok(found.into_iter().next())
}

async fn list(conn: &Conn, tenant: TenantId, page: Page<KeyId>) -> Done<Vec<AccessKey>> {
    let before = page.before.map_or(Uuid::max(), |before| before.0);
    let params: &Params<'_> = &[&tenant.0, &before, &limit(page.limit)];
    select(conn, include_str!("sql/list_keys.sql"), params).await
}

/// All of one tenant.
pub(super) async fn of_tenant(conn: &Conn, tenant: TenantId) -> Done<Vec<AccessKey>> {
    let all = Page {
        before: None,
        limit: usize::MAX,
    };
    list(conn, tenant, all).await
}

pub(super) async fn roots(conn: &Conn) -> Done<Vec<AccessKey>> {
    let root = Role::Root.code();
    select(conn, include_str!("sql/root_keys.sql"), &[&root]).await
}

/// A number that is always there.
pub(super) async fn number(conn: &Conn, sql: &'static str, params: &Params<'_>) -> Done<i64> {
    let row = conn.row(sql, params).await?;
    Ok(row.map_or(Ok(0), |row| row.try_get(0))?)
}

/// False for a key that is there already.
async fn insert(conn: &Conn, key: &AccessKey, change: i64) -> Done<bool> {
    let (expires_at, last_used_at, revoked_at) = (
        key.expires_at.map(Timestamp::as_millis),
        key.last_used_at.map(Timestamp::as_millis),
        key.revoked_at.map(Timestamp::as_millis),
    );
    let inserted = conn
        .execute(
            include_str!("sql/create_key.sql"),
            &[
                &key.id.0,
                &key.tenant.0,
                &key.role.code(),
                &key.label,
                &key.digest.as_slice(),
                &key.created_at.as_millis(),
                &expires_at,
                &last_used_at,
                &revoked_at,
                &queues_text(&key.queues),
                &change,
            ],
        )
        .await?;
    Ok(inserted == 1)
}

impl PgStore {
    /// A transaction that is alone in changing keys, and the number of its change.
    pub(super) async fn begin_change(&self) -> Done<(Conn, i64)> {
        let conn = self.clients.begin().await?;
        let change = number(&conn, include_str!("sql/change_keys.sql"), &[]).await?;
        Ok((conn, change))
    }

    async fn try_create_key(&self, key: &AccessKey) -> Done<KeyCreated> {
        let (conn, change) = self.begin_change().await?;
        let tenant = tenants::get(&conn, key.tenant).await?;
        if tenant.is_none_or(|tenant| tenant.deleting_at.is_some()) {
            return Ok(KeyCreated::NoTenant);
        }
        let long_ago = key.created_at.minus(limits::KEY_KEEP).as_millis();
        let forget = include_str!("sql/forget_keys.sql");
        conn.execute(forget, &[&key.tenant.0, &long_ago]).await?;
        let count = include_str!("sql/count_keys.sql");
        let count = number(&conn, count, &[&key.tenant.0]).await?;
        if count >= limit(limits::KEYS_MAX) && get(&conn, key.tenant, key.id).await?.is_none() {
            return Ok(KeyCreated::Full);
        }
        if insert(&conn, key, change).await? {
            self.audit(&conn, &[Change::key_created(key)]).await?;
        }
        conn.commit().await?;
        Ok(KeyCreated::Done)
    }

    async fn try_create_first_key(&self, key: &AccessKey) -> Done<bool> {
        let (conn, change) = self.begin_change().await?;
        let roots = roots(&conn).await?;
        if roots.iter().any(|root| root.is_valid(key.created_at)) {
            return Ok(false);
        }
        if insert(&conn, key, change).await? {
            self.audit(&conn, &[Change::key_created(key)]).await?;
        }
        conn.commit().await?;
        Ok(true)
    }

    async fn try_revoke_key(
        &self,
        tenant: TenantId,
        id: KeyId,
        now: Timestamp,
    ) -> Done<KeyRevoked> {
        let (conn, change) = self.begin_change().await?;
        let Some(mut key) = get(&conn, tenant, id).await? else {
            return Ok(KeyRevoked::Missing);
        };
        if key.revoked_at.is_some() {
            return Ok(KeyRevoked::Done(key));
        }
        if !key.may_be_revoked(&roots(&conn).await?) {
            return Ok(KeyRevoked::LastRoot);
        }
        let revoke = include_str!("sql/revoke_key.sql");
        conn.execute(revoke, &[&id.0, &now.as_millis(), &change])
            .await?;
        self.audit(&conn, &[Change::key_revoked(tenant, id)])
            .await?;
        conn.commit().await?;
        key.revoked_at = Some(now);
        Ok(KeyRevoked::Done(key))
    }

    async fn try_get_key(&self, tenant: TenantId, id: KeyId) -> Done<Option<AccessKey>> {
        let conn = self.clients.get().await?;
        get(&conn, tenant, id).await
    }

    async fn try_list_keys(&self, tenant: TenantId, page: Page<KeyId>) -> Done<Vec<AccessKey>> {
        list(&self.readers.get().await?, tenant, page).await
    }

    /// The number is read first: whatever it counts can be seen by then.
    async fn try_keys_since(&self, change: u64) -> Done<KeyChanges> {
        let conn = self.clients.get().await?;
        let latest = number(&conn, include_str!("sql/key_change.sql"), &[]).await?;
        let latest = latest.unsigned_abs();
        let keys = if latest == change {
            Vec::new()
        } else {
            let sql = include_str!("sql/keys_since.sql");
            select(&conn, sql, &[&change.cast_signed()]).await?
        };
        Ok(KeyChanges {
            change: latest,
            keys,
        })
    }

    async fn try_use_keys(&self, used: &[(KeyId, Timestamp)]) -> Done<()> {
        let (ids, moments): (Vec<Uuid>, Vec<i64>) =
            used.iter().map(|(id, at)| (id.0, at.as_millis())).unzip();
        let conn = self.clients.get().await?;
        conn.execute(include_str!("sql/use_keys.sql"), &[&ids, &moments])
            .await?;
        Ok(())
    }
}

#[async_trait]
impl AccessStore for PgStore {
    async fn create_key(&self, key: &AccessKey) -> Result<KeyCreated, StoreError> {
        self.call(|| self.try_create_key(key)).await
    }

    async fn create_first_key(&self, key: &AccessKey) -> Result<bool, StoreError> {
        self.call(|| self.try_create_first_key(key)).await
    }

    async fn revoke_key(
        &self,
        tenant: TenantId,
        id: KeyId,
        now: Timestamp,
    ) -> Result<KeyRevoked, StoreError> {
        self.call(|| self.try_revoke_key(tenant, id, now)).await
    }

    async fn get_key(&self, tenant: TenantId, id: KeyId) -> Result<Option<AccessKey>, StoreError> {
        self.call(|| self.try_get_key(tenant, id)).await
    }

    async fn list_keys(
        &self,
        tenant: TenantId,
        page: Page<KeyId>,
    ) -> Result<Vec<AccessKey>, StoreError> {
        self.call(|| self.try_list_keys(tenant, page)).await
    }

    async fn keys_since(&self, change: u64) -> Result<KeyChanges, StoreError> {
        self.call(|| self.try_keys_since(change)).await
    }

    async fn use_keys(&self, used: &[(KeyId, Timestamp)]) -> Result<(), StoreError> {
        self.call(|| self.try_use_keys(used)).await
    }

    async fn create_tenant(&self, tenant: &Tenant) -> Result<TenantCreated, StoreError> {
        self.call(|| self.try_create_tenant(tenant)).await
    }

    async fn get_tenant(&self, id: TenantId) -> Result<Option<Tenant>, StoreError> {
        self.call(|| self.try_get_tenant(id)).await
    }

    async fn find_tenant(&self, name: &TenantName) -> Result<Option<Tenant>, StoreError> {
        self.call(|| self.try_find_tenant(name)).await
    }

    async fn list_tenants(
        &self,
        after: Option<&TenantName>,
        limit: usize,
    ) -> Result<Vec<Tenant>, StoreError> {
        self.call(|| self.try_list_tenants(after, limit)).await
    }

    async fn edit_tenant(
        &self,
        id: TenantId,
        edit: &TenantEdit,
    ) -> Result<Option<Tenant>, StoreError> {
        self.call(|| self.try_edit_tenant(id, edit)).await
    }

    async fn tenant_use(&self, id: TenantId) -> Result<Usage, StoreError> {
        self.call(|| self.try_tenant_use(id)).await
    }

    async fn delete_tenant(
        &self,
        id: TenantId,
        now: Timestamp,
        keys: ValidKeys,
    ) -> Result<TenantMarked, StoreError> {
        self.call(|| self.try_delete_tenant(id, now, keys)).await
    }

    async fn drop_tenant(&self, id: TenantId, now: Timestamp) -> Result<TenantDropped, StoreError> {
        self.call(|| self.try_drop_tenant(id, now)).await
    }
}
