//! Keys.

use async_trait::async_trait;
use model::{AccessKey, KeyId, Role, TenantEdit, TenantId, TenantName, Timestamp, Usage, limits};
use rusqlite::{Connection, Params, Row, params};

use super::db::Db;
use super::fault::Done;
use super::rows::{Tenant, maybe_moment, moment};
use super::store::SqliteStore;
use super::tenants;
use super::uses;
use super::writer::By;
use crate::audit::Change;
use crate::code::Code;
use crate::row::{queues_of, queues_text};
use crate::statement::statement;
use crate::{
    AccessStore, KeyChanges, KeyCreated, KeyRevoked, Page, StoreError, TenantCreated,
    TenantDropped, TenantMarked, ValidKeys,
};

/// Columns as `get_key.sql` has them; nothing for a role that a newer version wrote.
fn read(row: &Row<'_>) -> rusqlite::Result<Option<AccessKey>> {
    let id = KeyId::from_bytes(row.get(0)?);
    let Some(role) = Role::from_code(row.get(2)?) else {
        tracing::warn!(key = %id, "a key has a role that is not known, and opens nothing here");
        return Ok(None);
    };
    let Tenant(tenant) = row.get(1)?;
    Ok(Some(AccessKey {
        id,
        tenant,
        role,
        label: row.get(3)?,
        digest: row.get(4)?,
        created_at: moment(row, 5)?,
        expires_at: maybe_moment(row, 6)?,
        last_used_at: maybe_moment(row, 7)?,
        revoked_at: maybe_moment(row, 8)?,
        queues: queues_of(row.get(9)?),
    }))
}

fn select(conn: &Connection, sql: &str, params: impl Params) -> Done<Vec<AccessKey>> {
    let mut select = conn.prepare_cached(sql)?;
    let rows = select.query_map(params, read)?;
    let found: rusqlite::Result<Vec<_>> = rows.collect();
    Ok(found?.into_iter().flatten().collect())
}

fn get(conn: &Connection, tenant: TenantId, id: KeyId) -> Done<Option<AccessKey>> {
    let params = params![Tenant(tenant), id.as_bytes()];
    let found = select(conn, statement!("sql/get_key.sql"), params)?;
    Ok(found.into_iter().next())
}

pub(super) fn number(conn: &Connection, sql: &str, params: impl Params) -> Done<i64> {
    let mut select = conn.prepare_cached(sql)?;
    Ok(select.query_row(params, |row| row.get(0))?)
}

fn list(conn: &Connection, tenant: TenantId, page: Page<KeyId>) -> Done<Vec<AccessKey>> {
    let before = page.before.unwrap_or(KeyId::from_bytes([u8::MAX; 16]));
    let limit = i64::try_from(page.limit).unwrap_or(i64::MAX);
    let params = params![Tenant(tenant), before.as_bytes(), limit];
    select(conn, statement!("sql/list_keys.sql"), params)
}

/// All of one tenant.
pub(super) fn of_tenant(conn: &Connection, tenant: TenantId) -> Done<Vec<AccessKey>> {
    let all = Page {
        before: None,
        limit: usize::MAX,
    };
    list(conn, tenant, all)
}

fn since(conn: &Connection, change: u64) -> Done<KeyChanges> {
    let latest = number(conn, include_str!("sql/key_change.sql"), [])?.unsigned_abs();
    let keys = if latest == change {
        Vec::new()
    } else {
        let change = change.cast_signed();
        select(conn, statement!("sql/keys_since.sql"), [change])?
    };
    Ok(KeyChanges {
        change: latest,
        keys,
    })
}

impl Db {
    pub(super) fn roots(&self) -> Done<Vec<AccessKey>> {
        let root = [Role::Root.code()];
        select(&self.conn, statement!("sql/root_keys.sql"), root)
    }

    pub(super) fn change_keys(&self) -> Done<i64> {
        number(&self.conn, include_str!("sql/change_keys.sql"), [])
    }

    /// Called again, it is the same key, and was entered in the audit log before.
    fn insert_key(&self, key: &AccessKey) -> Done<()> {
        let change = self.change_keys()?;
        let mut insert = self.conn.prepare_cached(statement!("sql/create_key.sql"))?;
        let inserted = insert.execute(params![
            key.id.as_bytes(),
            Tenant(key.tenant),
            key.role.code(),
            key.label,
            key.digest,
            key.created_at.as_millis(),
            key.expires_at.map(Timestamp::as_millis),
            key.last_used_at.map(Timestamp::as_millis),
            key.revoked_at.map(Timestamp::as_millis),
            queues_text(&key.queues),
            change,
        ])?;
        if inserted == 1 {
            self.audit(&Change::key_created(key))?;
        }
        Ok(())
    }

    fn create_key(&self, key: &AccessKey) -> Done<KeyCreated> {
        let tenant = tenants::get(&self.conn, key.tenant)?;
        if tenant.is_none_or(|tenant| tenant.deleting_at.is_some()) {
            return Ok(KeyCreated::NoTenant);
        }
        let long_ago = key.created_at.minus(limits::KEY_KEEP).as_millis();
        let mut forget = self
            .conn
            .prepare_cached(include_str!("sql/forget_keys.sql"))?;
        forget.execute(params![Tenant(key.tenant), long_ago])?;
        let count = include_str!("sql/count_keys.sql");
        let count = number(&self.conn, count, [Tenant(key.tenant)])?;
        if count >= limits::KEYS_MAX as i64 && get(&self.conn, key.tenant, key.id)?.is_none() {
            return Ok(KeyCreated::Full);
        }
        self.insert_key(key)?;
        Ok(KeyCreated::Done)
    }

    fn create_first_key(&self, key: &AccessKey) -> Done<bool> {
        let is_first = !self
            .roots()?
            .iter()
            .any(|root| root.is_valid(key.created_at));
        if is_first {
            self.insert_key(key)?;
        }
        Ok(is_first)
    }

    fn revoke_key(&self, tenant: TenantId, id: KeyId, now: Timestamp) -> Done<KeyRevoked> {
        let Some(mut key) = get(&self.conn, tenant, id)? else {
            return Ok(KeyRevoked::Missing);
        };
        if key.revoked_at.is_some() {
            return Ok(KeyRevoked::Done(key));
        }
        if !key.may_be_revoked(&self.roots()?) {
            return Ok(KeyRevoked::LastRoot);
        }
        let change = self.change_keys()?;
        let mut update = self
            .conn
            .prepare_cached(include_str!("sql/revoke_key.sql"))?;
        update.execute(params![id.as_bytes(), now.as_millis(), change])?;
        self.audit(&Change::key_revoked(tenant, id))?;
        key.revoked_at = Some(now);
        Ok(KeyRevoked::Done(key))
    }

    fn use_keys(&self, used: &[(KeyId, Timestamp)]) -> Done<()> {
        let mut update = self.conn.prepare_cached(include_str!("sql/use_key.sql"))?;
        for (id, at) in used {
            update.execute(params![id.as_bytes(), at.as_millis()])?;
        }
        Ok(())
    }
}

#[async_trait]
impl AccessStore for SqliteStore {
    async fn create_key(&self, key: &AccessKey) -> Result<KeyCreated, StoreError> {
        let key = key.clone();
        self.write(By::Client, 1, move |db| db.create_key(&key))
            .await
    }

    async fn create_first_key(&self, key: &AccessKey) -> Result<bool, StoreError> {
        let key = key.clone();
        self.write(By::Client, 1, move |db| db.create_first_key(&key))
            .await
    }

    async fn revoke_key(
        &self,
        tenant: TenantId,
        id: KeyId,
        now: Timestamp,
    ) -> Result<KeyRevoked, StoreError> {
        self.write(By::Client, 1, move |db| db.revoke_key(tenant, id, now))
            .await
    }

    async fn get_key(&self, tenant: TenantId, id: KeyId) -> Result<Option<AccessKey>, StoreError> {
        self.read(By::Client, move |conn| get(conn, tenant, id))
            .await
    }

    async fn list_keys(
        &self,
        tenant: TenantId,
        page: Page<KeyId>,
    ) -> Result<Vec<AccessKey>, StoreError> {
        self.read(By::Client, move |conn| list(conn, tenant, page))
            .await
    }

    async fn keys_since(&self, change: u64) -> Result<KeyChanges, StoreError> {
        self.read(By::Client, move |conn| since(conn, change)).await
    }

    async fn use_keys(&self, used: &[(KeyId, Timestamp)]) -> Result<(), StoreError> {
        let used = used.to_vec();
        self.write(By::Client, used.len(), move |db| db.use_keys(&used))
            .await
    }

    async fn create_tenant(&self, tenant: &model::Tenant) -> Result<TenantCreated, StoreError> {
        let tenant = tenant.clone();
        self.write(By::Client, 1, move |db| db.create_tenant(&tenant))
            .await
    }

    async fn get_tenant(&self, id: TenantId) -> Result<Option<model::Tenant>, StoreError> {
        self.read(By::Client, move |conn| tenants::get(conn, id))
            .await
    }

    async fn find_tenant(&self, name: &TenantName) -> Result<Option<model::Tenant>, StoreError> {
        let name = name.clone();
        self.read(By::Client, move |conn| tenants::find(conn, &name))
            .await
    }

    async fn list_tenants(
        &self,
        after: Option<&TenantName>,
        limit: usize,
    ) -> Result<Vec<model::Tenant>, StoreError> {
        let after = after.cloned();
        self.read(By::Client, move |conn| {
            tenants::list(conn, after.as_ref(), limit)
        })
        .await
    }

    async fn edit_tenant(
        &self,
        id: TenantId,
        edit: &TenantEdit,
    ) -> Result<Option<model::Tenant>, StoreError> {
        let edit = edit.clone();
        self.write(By::Client, 1, move |db| db.edit_tenant(id, &edit))
            .await
    }

    async fn tenant_use(&self, id: TenantId) -> Result<Usage, StoreError> {
        self.read(By::Client, move |conn| uses::read(conn, id))
            .await
    }

    async fn delete_tenant(
        &self,
        id: TenantId,
        now: Timestamp,
        keys: ValidKeys,
    ) -> Result<TenantMarked, StoreError> {
        self.write(By::Client, 1, move |db| db.delete_tenant(id, now, keys))
            .await
    }

    async fn drop_tenant(&self, id: TenantId, now: Timestamp) -> Result<TenantDropped, StoreError> {
        self.write(By::Client, 1, move |db| db.drop_tenant(id, now))
            .await
    }
}
