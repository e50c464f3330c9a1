//! Users, their sessions, and links that log in.

use std::collections::BTreeMap;

use async_trait::async_trait;
use model::{
    ConsoleLink, Holder, KeyId, Membership, Role, Session, TenantId, Timestamp, User, UserEdit,
    UserId, UserName, limits,
};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use super::access::number;
use super::db::Db;
use super::fault::Done;
use super::rows::{Tenant, moment};
use super::store::SqliteStore;
use super::tenants;
use super::writer::By;
use crate::audit::Change;
use crate::code::Code;
use crate::statement::statement;
use crate::{StoreError, UserCreated, UserEdited, UserStore};

/// One row of a user, with one of its memberships. A role that a newer version wrote allows nothing here.
fn read(row: &Row<'_>) -> rusqlite::Result<Option<User>> {
    let (id, name): ([u8; 16], String) = (row.get(0)?, row.get(1)?);
    let id = UserId::from_bytes(id);
    let Ok(name) = UserName::new(&name) else {
        tracing::warn!(user = %id, "unreadable user");
        return Ok(None);
    };
    let tenant: Option<Tenant> = row.get(5)?;
    let role: Option<i16> = row.get(6)?;
    let member = tenant.zip(role.and_then(Role::from_code));
    Ok(Some(User {
        id,
        name,
        password: row.get(2)?,
        members: member
            .map(|(Tenant(tenant), role)| Membership { tenant, role })
            .into_iter()
            .collect(),
        created_at: moment(row, 3)?,
        updated_at: moment(row, 4)?,
    }))
}

/// Users by name, each with all its memberships.
fn select(conn: &Connection, sql: &str, params: impl Params) -> Done<Vec<User>> {
    let mut select = conn.prepare_cached(sql)?;
    let mut users = BTreeMap::<UserName, User>::new();
    for user in select.query_map(params, read)? {
        let Some(user) = user? else { continue };
        match users.get_mut(&user.name) {
            Some(known) => known.members.extend(user.members),
            None => {
                users.insert(user.name.clone(), user);
            }
        }
    }
    Ok(users.into_values().map(User::in_order).collect())
}

fn get(conn: &Connection, id: UserId) -> Done<Option<User>> {
    let sql = statement!("sql/get_user.sql");
    Ok(select(conn, sql, [id.as_bytes()])?.into_iter().next())
}

fn find(conn: &Connection, name: &UserName) -> Done<Option<User>> {
    let sql = statement!("sql/find_user.sql");
    Ok(select(conn, sql, [name.as_str()])?.into_iter().next())
}

fn session(row: &Row<'_>) -> rusqlite::Result<Option<Session>> {
    let user: Option<[u8; 16]> = row.get(1)?;
    let key: Option<[u8; 16]> = row.get(2)?;
    let user = user.map(|id| Holder::User(UserId::from_bytes(id)));
    let holder = user.or(key.map(|id| Holder::Key(KeyId::from_bytes(id))));
    let Tenant(tenant) = row.get(3)?;
    let (digest, created_at, used_at) = (row.get(0)?, moment(row, 4)?, moment(row, 5)?);
    Ok(holder.map(|holder| Session {
        digest,
        holder,
        tenant,
        created_at,
        used_at,
    }))
}

fn link(row: &Row<'_>) -> rusqlite::Result<ConsoleLink> {
    let Tenant(tenant) = row.get(2)?;
    Ok(ConsoleLink {
        digest: row.get(0)?,
        key: KeyId::from_bytes(row.get(1)?),
        tenant,
        expires_at: moment(row, 3)?,
    })
}

/// The ids of a session's holder, as its columns have them.
fn columns(holder: &Holder) -> (Option<&[u8; 16]>, Option<&[u8; 16]>) {
    match holder {
        Holder::User(user) => (Some(user.as_bytes()), None),
        Holder::Key(key) => (None, Some(key.as_bytes())),
    }
}

impl Db {
    fn run(&self, sql: &str, params: impl Params) -> Done<usize> {
        Ok(self.conn.prepare_cached(sql)?.execute(params)?)
    }

    fn has_tenants(&self, user: &User) -> Done<bool> {
        for member in &user.members {
            if tenants::get(&self.conn, member.tenant)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn put_members(&self, user: &User) -> Done<()> {
        for member in &user.members {
            let (tenant, role) = (Tenant(member.tenant), member.role.code());
            let params = params![user.id.as_bytes(), tenant, role];
            self.run(include_str!("sql/put_member.sql"), params)?;
        }
        Ok(())
    }

    fn audit_user(&self, before: Option<&User>, after: Option<&User>) -> Done<()> {
        let changes = Change::user(before, after);
        changes.iter().try_for_each(|change| self.audit(change))
    }

    fn create_user(&self, user: &User) -> Done<UserCreated> {
        if let Some(stands) = find(&self.conn, &user.name)? {
            return Ok(if stands.id == user.id {
                UserCreated::Done
            } else {
                UserCreated::Exists
            });
        }
        let count = number(&self.conn, include_str!("sql/count_users.sql"), [])?;
        if count >= limits::USERS_MAX as i64 {
            return Ok(UserCreated::Full);
        }
        if !self.has_tenants(user)? {
            return Ok(UserCreated::NoTenant);
        }
        let user = user.clone().in_order();
        let params = params![
            user.id.as_bytes(),
            user.name.as_str(),
            user.password,
            user.created_at.as_millis(),
            user.updated_at.as_millis(),
        ];
        self.run(statement!("sql/create_user.sql"), params)?;
        self.put_members(&user)?;
        self.audit_user(None, Some(&user))?;
        Ok(UserCreated::Done)
    }

    fn edit_user(&self, id: UserId, edit: &UserEdit, now: Timestamp) -> Done<UserEdited> {
        let Some(before) = get(&self.conn, id)? else {
            return Ok(UserEdited::Missing);
        };
        let after = before.clone().edited(edit, now);
        if !self.has_tenants(&after)? {
            return Ok(UserEdited::NoTenant);
        }
        let updated_at = after.updated_at.as_millis();
        let params = params![id.as_bytes(), after.password, updated_at];
        self.run(include_str!("sql/edit_user.sql"), params)?;
        self.run(include_str!("sql/drop_members.sql"), [id.as_bytes()])?;
        self.put_members(&after)?;
        if edit.password.is_some() {
            self.run(include_str!("sql/end_sessions_of.sql"), [id.as_bytes()])?;
        }
        self.audit_user(Some(&before), Some(&after))?;
        Ok(UserEdited::Done(after))
    }

    fn drop_user(&self, id: UserId) -> Done<bool> {
        let Some(user) = get(&self.conn, id)? else {
            return Ok(false);
        };
        for sql in [
            include_str!("sql/end_sessions_of.sql"),
            include_str!("sql/drop_members.sql"),
            include_str!("sql/drop_user.sql"),
        ] {
            self.run(sql, [id.as_bytes()])?;
        }
        self.audit_user(Some(&user), None)?;
        Ok(true)
    }

    fn begin_session(&self, session: &Session, instead_of: Option<[u8; 32]>) -> Done<()> {
        let now = session.created_at;
        let (idle, old) = (
            now.minus(limits::SESSION_IDLE).as_millis(),
            now.minus(limits::SESSION_KEEP).as_millis(),
        );
        self.run(include_str!("sql/forget_sessions.sql"), [idle, old])?;
        if let Some(digest) = instead_of {
            self.delete_session(digest)?;
        }
        let (user, key) = columns(&session.holder);
        let (created_at, used_at) = (session.created_at.as_millis(), session.used_at.as_millis());
        let tenant = Tenant(session.tenant);
        let params = params![session.digest, user, key, tenant, created_at, used_at];
        self.run(statement!("sql/begin_session.sql"), params)?;
        let crowd = match session.holder {
            Holder::User(_) => include_str!("sql/crowd_sessions_user.sql"),
            Holder::Key(_) => include_str!("sql/crowd_sessions_key.sql"),
        };
        let max = limits::SESSIONS_MAX as i64;
        self.run(crowd, params![user.or(key), max])?;
        self.audit(&Change::logged_in(session))
    }

    fn put_link(&self, link: &ConsoleLink, now: Timestamp) -> Done<()> {
        self.run(include_str!("sql/forget_links.sql"), [now.as_millis()])?;
        let tenant = Tenant(link.tenant);
        let expires_at = link.expires_at.as_millis();
        let params = params![link.digest, link.key.as_bytes(), tenant, expires_at];
        self.run(include_str!("sql/put_link.sql"), params)?;
        self.audit(&Change::link_made(link))
    }

    fn delete_session(&self, digest: [u8; 32]) -> Done<Option<Session>> {
        let sql = statement!("sql/end_session.sql");
        let mut delete = self.conn.prepare_cached(sql)?;
        Ok(delete.query_row([digest], session).optional()?.flatten())
    }

    fn end_session(&self, digest: [u8; 32]) -> Done<()> {
        match self.delete_session(digest)? {
            Some(ended) => self.audit(&Change::logged_out(&ended)),
            None => Ok(()),
        }
    }

    fn open_link(&self, digest: [u8; 32], now: Timestamp) -> Done<Option<ConsoleLink>> {
        let mut delete = self
            .conn
            .prepare_cached(include_str!("sql/open_link.sql"))?;
        let found = delete.query_row([digest], link).optional()?;
        Ok(found.filter(|link| link.expires_at > now))
    }
}

#[async_trait]
impl UserStore for SqliteStore {
    async fn create_user(&self, user: &User) -> Result<UserCreated, StoreError> {
        let user = user.clone();
        self.write(By::Client, 1, move |db| db.create_user(&user))
            .await
    }

    async fn edit_user(
        &self,
        id: UserId,
        edit: &UserEdit,
        now: Timestamp,
    ) -> Result<UserEdited, StoreError> {
        let edit = edit.clone();
        self.write(By::Client, 1, move |db| db.edit_user(id, &edit, now))
            .await
    }

    async fn drop_user(&self, id: UserId) -> Result<bool, StoreError> {
        self.write(By::Client, 1, move |db| db.drop_user(id)).await
    }

    async fn get_user(&self, id: UserId) -> Result<Option<User>, StoreError> {
        self.read(By::Client, move |conn| get(conn, id)).await
    }

    async fn find_user(&self, name: &UserName) -> Result<Option<User>, StoreError> {
        let name = name.clone();
        self.read(By::Client, move |conn| find(conn, &name)).await
    }

    async fn list_users(
        &self,
        after: Option<&UserName>,
        limit: usize,
    ) -> Result<Vec<User>, StoreError> {
        // Every name is greater than no text at all.
        let after = after.map_or(String::new(), ToString::to_string);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.read(By::Client, move |conn| {
            select(
                conn,
                statement!("sql/list_users.sql"),
                params![after, limit],
            )
        })
        .await
    }

    async fn begin_session(
        &self,
        session: &Session,
        instead_of: Option<[u8; 32]>,
    ) -> Result<(), StoreError> {
        let session = session.clone();
        self.write(By::Client, 1, move |db| {
            db.begin_session(&session, instead_of)
        })
        .await
    }

    async fn get_session(&self, digest: [u8; 32]) -> Result<Option<Session>, StoreError> {
        self.read(By::Client, move |conn| {
            let mut select = conn.prepare_cached(statement!("sql/get_session.sql"))?;
            Ok(select.query_row([digest], session).optional()?.flatten())
        })
        .await
    }

    async fn use_session(
        &self,
        digest: [u8; 32],
        used_at: Timestamp,
        tenant: TenantId,
    ) -> Result<(), StoreError> {
        self.write(By::Client, 1, move |db| {
            let params = params![digest, used_at.as_millis(), Tenant(tenant)];
            db.run(include_str!("sql/use_session.sql"), params)
        })
        .await?;
        Ok(())
    }

    async fn end_session(&self, digest: [u8; 32]) -> Result<(), StoreError> {
        self.write(By::Client, 1, move |db| db.end_session(digest))
            .await
    }

    async fn put_link(&self, link: &ConsoleLink, now: Timestamp) -> Result<(), StoreError> {
        let link = link.clone();
        self.write(By::Client, 1, move |db| db.put_link(&link, now))
            .await
    }

    async fn open_link(
        &self,
        digest: [u8; 32],
        now: Timestamp,
    ) -> Result<Option<ConsoleLink>, StoreError> {
        self.write(By::Client, 1, move |db| db.open_link(digest, now))
            .await
    }
}
