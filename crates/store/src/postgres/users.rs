//! Users, their sessions, and links that log in. Whoever changes users locks `key_changes` first, as whoever drops a tenant
//! does: nobody belongs to a tenant that is gone. Logins lock nothing.

use std::collections::BTreeMap;

use async_trait::async_trait;
use model::{
    ConsoleLink, Holder, KeyId, Membership, Role, Session, TenantId, Timestamp, User, UserEdit,
    UserId, UserName, limits,
};
use tokio_postgres::Row;
use uuid::Uuid;

use super::access::number;
use super::fault::Done;
use super::pool::{Conn, Params};
use super::rows::moment;
use super::store::{PgStore, limit};
use super::tenants;
use crate::audit::Change;
use crate::code::Code;
use crate::{StoreError, UserCreated, UserEdited, UserStore};

/// One row of a user, with one of its memberships. A role that a newer version wrote allows nothing here.
fn read(row: &Row) -> Done<Option<User>> {
    let (id, name) = (UserId(row.try_get(0)?), row.try_get::<_, String>(1)?);
    let Ok(name) = UserName::new(&name) else {
        tracing::warn!(user = %id, "unreadable user");
        return Ok(None);
    };
    let tenant = row.try_get::<_, Option<Uuid>>(5)?.map(TenantId);
    let role: Option<i16> = row.try_get(6)?;
    let member = tenant.zip(role.and_then(Role::from_code));
    Ok(Some(User {
        id,
        name,
        password: row.try_get(2)?,
        members: member
            .map(|(tenant, role)| Membership { tenant, role })
            .into_iter()
            .collect(),
        created_at: moment(row, 3)?,
        updated_at: moment(row, 4)?,
    }))
}

/// Users by name, each with all its memberships.
async fn select(conn: &Conn, sql: &'static str, params: &Params<'_>) -> Done<Vec<User>> {
    let mut users = BTreeMap::<UserName, User>::new();
    for row in &conn.rows(sql, params).await? {
        let Some(user) = read(row)? else { continue };
        match users.get_mut(&user.name) {
            Some(known) => known.members.extend(user.members),
            None => {
                users.insert(user.name.clone(), user);
            }
        }
    }
    Ok(users.into_values().map(User::in_order).collect())
}

async fn get(conn: &Conn, id: UserId) -> Done<Option<User>> {
    let found = select(conn, include_str!("sql/get_user.sql"), &[&id.0]).await?;
    Ok(found.into_iter().next())
}

async fn find(conn: &Conn, name: &UserName) -> Done<Option<User>> {
    let sql = include_str!("sql/find_user.sql");
    let found = select(conn, sql, &[&name.as_str()]).await?;
    Ok(found.into_iter().next())
}

/// None for a row that no version of ours wrote.
fn session(row: &Row) -> Done<Option<Session>> {
    let user = row.try_get::<_, Option<Uuid>>(1)?.map(UserId);
    let key = row.try_get::<_, Option<Uuid>>(2)?.map(KeyId);
    let holder = user.map(Holder::User).or(key.map(Holder::Key));
    let digest = <[u8; 32]>::try_from(row.try_get::<_, &[u8]>(0)?).ok();
    let tenant = TenantId(row.try_get(3)?);
    let (created_at, used_at) = (moment(row, 4)?, moment(row, 5)?);
    Ok(holder.zip(digest).map(|(holder, digest)| Session {
        digest,
        holder,
        tenant,
        created_at,
        used_at,
    }))
}

fn columns(holder: Holder) -> (Option<Uuid>, Option<Uuid>) {
    match holder {
        Holder::User(user) => (Some(user.0), None),
        Holder::Key(key) => (None, Some(key.0)),
    }
}

async fn has_tenants(conn: &Conn, user: &User) -> Done<bool> {
    for member in &user.members {
        if tenants::get(conn, member.tenant).await?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn put_members(conn: &Conn, user: &User) -> Done<()> {
    for member in &user.members {
        let sql = include_str!("sql/put_member.sql");
        let role = member.role.code();
        conn.execute(sql, &[&user.id.0, &member.tenant.0, &role])
            .await?;
    }
    Ok(())
}

impl PgStore {
    /// A transaction in which nobody else changes users, keys or tenants.
    async fn changing_users(&self) -> Done<Conn> {
        let conn = self.clients.begin().await?;
        number(&conn, include_str!("sql/change_keys.sql"), &[]).await?;
        Ok(conn)
    }

    async fn try_create_user(&self, user: &User) -> Done<UserCreated> {
        let conn = self.changing_users().await?;
        if let Some(stands) = find(&conn, &user.name).await? {
            return Ok(if stands.id == user.id {
                UserCreated::Done
            } else {
                UserCreated::Exists
            });
        }
        let count = number(&conn, include_str!("sql/count_users.sql"), &[]).await?;
        if count >= limit(limits::USERS_MAX) {
            return Ok(UserCreated::Full);
        }
        if !has_tenants(&conn, user).await? {
            return Ok(UserCreated::NoTenant);
        }
        let user = user.clone().in_order();
        conn.execute(
            include_str!("sql/create_user.sql"),
            &[
                &user.id.0,
                &user.name.as_str(),
                &user.password,
                &user.created_at.as_millis(),
                &user.updated_at.as_millis(),
            ],
        )
        .await?;
        put_members(&conn, &user).await?;
        self.audit(&conn, &Change::user(None, Some(&user))).await?;
        conn.commit().await?;
        Ok(UserCreated::Done)
    }

    async fn try_edit_user(&self, id: UserId, edit: &UserEdit, now: Timestamp) -> Done<UserEdited> {
        let conn = self.changing_users().await?;
        let Some(before) = get(&conn, id).await? else {
            return Ok(UserEdited::Missing);
        };
        let after = before.clone().edited(edit, now);
        if !has_tenants(&conn, &after).await? {
            return Ok(UserEdited::NoTenant);
        }
        let updated_at = after.updated_at.as_millis();
        let params: &Params<'_> = &[&id.0, &after.password, &updated_at];
        conn.execute(include_str!("sql/edit_user.sql"), params)
            .await?;
        conn.execute(include_str!("sql/drop_members.sql"), &[&id.0])
            .await?;
        put_members(&conn, &after).await?;
        if edit.password.is_some() {
            let sql = include_str!("sql/end_sessions_of.sql");
            conn.execute(sql, &[&id.0]).await?;
        }
        let changes = Change::user(Some(&before), Some(&after));
        self.audit(&conn, &changes).await?;
        conn.commit().await?;
        Ok(UserEdited::Done(after))
    }

    async fn try_drop_user(&self, id: UserId) -> Done<bool> {
        let conn = self.changing_users().await?;
        let Some(user) = get(&conn, id).await? else {
            return Ok(false);
        };
        for sql in [
            include_str!("sql/end_sessions_of.sql"),
            include_str!("sql/drop_members.sql"),
            include_str!("sql/drop_user.sql"),
        ] {
            conn.execute(sql, &[&id.0]).await?;
        }
        self.audit(&conn, &Change::user(Some(&user), None)).await?;
        conn.commit().await?;
        Ok(true)
    }

    async fn try_list_users(&self, after: Option<&UserName>, count: usize) -> Done<Vec<User>> {
        let conn = self.readers.get().await?;
        // Every name is greater than no text at all.
        let after = after.map_or("", UserName::as_str);
        let params: &Params<'_> = &[&after, &limit(count)];
        select(&conn, include_str!("sql/list_users.sql"), params).await
    }

    async fn try_begin_session(&self, session: &Session, instead_of: Option<[u8; 32]>) -> Done<()> {
        let now = session.created_at;
        let (idle, old) = (
            now.minus(limits::SESSION_IDLE).as_millis(),
            now.minus(limits::SESSION_KEEP).as_millis(),
        );
        let conn = self.clients.begin().await?;
        let forget = include_str!("sql/forget_sessions.sql");
        conn.execute(forget, &[&idle, &old]).await?;
        if let Some(digest) = instead_of {
            let sql = include_str!("sql/end_session.sql");
            conn.execute(sql, &[&digest.as_slice()]).await?;
        }
        let (user, key) = columns(session.holder);
        conn.execute(
            include_str!("sql/begin_session.sql"),
            &[
                &session.digest.as_slice(),
                &user,
                &key,
                &session.tenant.0,
                &session.created_at.as_millis(),
                &session.used_at.as_millis(),
            ],
        )
        .await?;
        let crowd = match session.holder {
            Holder::User(_) => include_str!("sql/crowd_sessions_user.sql"),
            Holder::Key(_) => include_str!("sql/crowd_sessions_key.sql"),
        };
        let params: &Params<'_> = &[&user.or(key), &limit(limits::SESSIONS_MAX)];
        conn.execute(crowd, params).await?;
        self.audit(&conn, &[Change::logged_in(session)]).await?;
        conn.commit().await?;
        Ok(())
    }

    async fn try_get_session(&self, digest: [u8; 32]) -> Done<Option<Session>> {
        let conn = self.clients.get().await?;
        let sql = include_str!("sql/get_session.sql");
        let row = conn.row(sql, &[&digest.as_slice()]).await?;
        Ok(row.as_ref().map(session).transpose()?.flatten())
    }

    async fn try_end_session(&self, digest: [u8; 32]) -> Done<()> {
        let conn = self.clients.begin().await?;
        let sql = include_str!("sql/end_session.sql");
        let row = conn.row(sql, &[&digest.as_slice()]).await?;
        if let Some(ended) = row.as_ref().map(session).transpose()?.flatten() {
            self.audit(&conn, &[Change::logged_out(&ended)]).await?;
        }
        conn.commit().await?;
        Ok(())
    }

    async fn try_put_link(&self, link: &ConsoleLink, now: Timestamp) -> Done<()> {
        let conn = self.clients.begin().await?;
        let forget = include_str!("sql/forget_links.sql");
        conn.execute(forget, &[&now.as_millis()]).await?;
        let expires_at = link.expires_at.as_millis();
        let digest = link.digest.as_slice();
        let params: &Params<'_> = &[&digest, &link.key.0, &link.tenant.0, &expires_at];
        conn.execute(include_str!("sql/put_link.sql"), params)
            .await?;
        self.audit(&conn, &[Change::link_made(link)]).await?;
        conn.commit().await?;
        Ok(())
    }

    async fn try_open_link(&self, digest: [u8; 32], now: Timestamp) -> Done<Option<ConsoleLink>> {
        let conn = self.clients.get().await?;
        let sql = include_str!("sql/open_link.sql");
        let Some(row) = conn.row(sql, &[&digest.as_slice()]).await? else {
            return Ok(None);
        };
        let link = ConsoleLink {
            digest,
            key: KeyId(row.try_get(1)?),
            tenant: TenantId(row.try_get(2)?),
            expires_at: moment(&row, 3)?,
        };
        Ok(Some(link).filter(|link| link.expires_at > now))
    }
}

#[async_trait]
impl UserStore for PgStore {
    async fn create_user(&self, user: &User) -> Result<UserCreated, StoreError> {
        self.call(|| self.try_create_user(user)).await
    }

    async fn edit_user(
        &self,
        id: UserId,
        edit: &UserEdit,
        now: Timestamp,
    ) -> Result<UserEdited, StoreError> {
        self.call(|| self.try_edit_user(id, edit, now)).await
    }

    async fn drop_user(&self, id: UserId) -> Result<bool, StoreError> {
        self.call(|| self.try_drop_user(id)).await
    }

    async fn get_user(&self, id: UserId) -> Result<Option<User>, StoreError> {
        self.call(|| async { get(&self.clients.get().await?, id).await })
            .await
    }

    async fn find_user(&self, name: &UserName) -> Result<Option<User>, StoreError> {
        self.call(|| async { find(&self.clients.get().await?, name).await })
            .await
    }

    async fn list_users(
        &self,
        after: Option<&UserName>,
        limit: usize,
    ) -> Result<Vec<User>, StoreError> {
        self.call(|| self.try_list_users(after, limit)).await
    }

    async fn begin_session(
        &self,
        session: &Session,
        instead_of: Option<[u8; 32]>,
    ) -> Result<(), StoreError> {
        self.call(|| self.try_begin_session(session, instead_of))
            .await
    }

    async fn get_session(&self, digest: [u8; 32]) -> Result<Option<Session>, StoreError> {
        self.call(|| self.try_get_session(digest)).await
    }

    async fn use_session(
        &self,
        digest: [u8; 32],
        used_at: Timestamp,
        tenant: TenantId,
    ) -> Result<(), StoreError> {
        self.call(|| async {
            let conn = self.clients.get().await?;
            let sql = include_str!("sql/use_session.sql");
            let used_at = used_at.as_millis();
            conn.execute(sql, &[&digest.as_slice(), &used_at, &tenant.0])
                .await?;
            Ok(())
        })
        .await
    }

    async fn end_session(&self, digest: [u8; 32]) -> Result<(), StoreError> {
        self.call(|| self.try_end_session(digest)).await
    }

    async fn put_link(&self, link: &ConsoleLink, now: Timestamp) -> Result<(), StoreError> {
        self.call(|| self.try_put_link(link, now)).await
    }

    async fn open_link(
        &self,
        digest: [u8; 32],
        now: Timestamp,
    ) -> Result<Option<ConsoleLink>, StoreError> {
        self.call(|| self.try_open_link(digest, now)).await
    }
}
