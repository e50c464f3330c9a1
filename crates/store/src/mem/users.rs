//! Users, their sessions, and links that log in.

use std::collections::BTreeMap;

use async_trait::async_trait;
use model::{
    ConsoleLink, Holder, Session, TenantId, Timestamp, User, UserEdit, UserId, UserName, limits,
};

use super::MemStore;
use super::state::State;
use crate::audit::Change;
use crate::{StoreError, UserCreated, UserEdited, UserStore};

#[derive(Default)]
pub(super) struct Users {
    all: BTreeMap<UserName, User>,
    sessions: BTreeMap<[u8; 32], Session>,
    links: BTreeMap<[u8; 32], ConsoleLink>,
}

impl Users {
    fn get(&self, id: UserId) -> Option<&User> {
        self.all.values().find(|user| user.id == id)
    }

    /// Those of a tenant that goes.
    pub(super) fn leave(&mut self, tenant: TenantId) {
        for user in self.all.values_mut() {
            user.members.retain(|member| member.tenant != tenant);
        }
    }

    fn begin(&mut self, session: &Session, instead_of: Option<[u8; 32]>) {
        let now = session.created_at;
        self.sessions
            .retain(|digest, other| other.is_valid(now) && Some(*digest) != instead_of);
        self.sessions.insert(session.digest, session.clone());
        let of_holder = self
            .sessions
            .values()
            .filter(|other| other.holder == session.holder);
        let mut of_holder: Vec<_> = of_holder.map(|it| (it.used_at, it.digest)).collect();
        of_holder.sort_unstable();
        let many = of_holder.len().saturating_sub(limits::SESSIONS_MAX);
        for (_, digest) in of_holder.into_iter().take(many) {
            self.sessions.remove(&digest);
        }
    }
}

impl State {
    fn has_tenants(&self, user: &User) -> bool {
        let mut members = user.members.iter();
        members.all(|member| self.access.tenant(member.tenant).is_some())
    }

    fn audit_user(&mut self, before: Option<&User>, after: Option<&User>) {
        for change in Change::user(before, after) {
            self.audit(change);
        }
    }
}

#[async_trait]
impl UserStore for MemStore {
    async fn create_user(&self, user: &User) -> Result<UserCreated, StoreError> {
        let mut state = self.state();
        if let Some(stands) = state.users.all.get(&user.name) {
            return Ok(if stands.id == user.id {
                UserCreated::Done
            } else {
                UserCreated::Exists
            });
        }
        if state.users.all.len() >= limits::USERS_MAX {
            return Ok(UserCreated::Full);
        }
        if !state.has_tenants(user) {
            return Ok(UserCreated::NoTenant);
        }
        let user = user.clone().in_order();
        state.audit_user(None, Some(&user));
        state.users.all.insert(user.name.clone(), user);
        Ok(UserCreated::Done)
    }

    async fn edit_user(
        &self,
        id: UserId,
        edit: &UserEdit,
        now: Timestamp,
    ) -> Result<UserEdited, StoreError> {
        let mut state = self.state();
        let Some(before) = state.users.get(id).cloned() else {
            return Ok(UserEdited::Missing);
        };
        let after = before.clone().edited(edit, now);
        if !state.has_tenants(&after) {
            return Ok(UserEdited::NoTenant);
        }
        if edit.password.is_some() {
            let sessions = &mut state.users.sessions;
            sessions.retain(|_, session| session.holder != Holder::User(id));
        }
        state.users.all.insert(after.name.clone(), after.clone());
        state.audit_user(Some(&before), Some(&after));
        Ok(UserEdited::Done(after))
    }

    async fn drop_user(&self, id: UserId) -> Result<bool, StoreError> {
        let mut state = self.state();
        let Some(user) = state.users.get(id).cloned() else {
            return Ok(false);
        };
        state.users.all.remove(&user.name);
        let sessions = &mut state.users.sessions;
        sessions.retain(|_, session| session.holder != Holder::User(id));
        state.audit_user(Some(&user), None);
        Ok(true)
    }

    async fn get_user(&self, id: UserId) -> Result<Option<User>, StoreError> {
        Ok(self.state().users.get(id).cloned())
    }

    async fn find_user(&self, name: &UserName) -> Result<Option<User>, StoreError> {
        Ok(self.state().users.all.get(name).cloned())
    }

    async fn list_users(
        &self,
        after: Option<&UserName>,
        limit: usize,
    ) -> Result<Vec<User>, StoreError> {
        let state = self.state();
        let users = state.users.all.values();
        let users = users.filter(|user| Some(&user.name) > after);
        Ok(users.take(limit).cloned().collect())
    }

    async fn begin_session(
        &self,
        session: &Session,
        instead_of: Option<[u8; 32]>,
    ) -> Result<(), StoreError> {
        let mut state = self.state();
        state.users.begin(session, instead_of);
        state.audit(Change::logged_in(session));
        Ok(())
    }

    async fn get_session(&self, digest: [u8; 32]) -> Result<Option<Session>, StoreError> {
        Ok(self.state().users.sessions.get(&digest).cloned())
    }

    async fn use_session(
        &self,
        digest: [u8; 32],
        used_at: Timestamp,
        tenant: TenantId,
    ) -> Result<(), StoreError> {
        if let Some(session) = self.state().users.sessions.get_mut(&digest) {
            session.used_at = session.used_at.max(used_at);
            session.tenant = tenant;
        }
        Ok(())
    }

    async fn end_session(&self, digest: [u8; 32]) -> Result<(), StoreError> {
        let mut state = self.state();
        if let Some(session) = state.users.sessions.remove(&digest) {
            state.audit(Change::logged_out(&session));
        }
        Ok(())
    }

    async fn put_link(&self, link: &ConsoleLink, now: Timestamp) -> Result<(), StoreError> {
        let mut state = self.state();
        let links = &mut state.users.links;
        links.retain(|_, link| link.expires_at > now);
        links.insert(link.digest, link.clone());
        state.audit(Change::link_made(link));
        Ok(())
    }

    async fn open_link(
        &self,
        digest: [u8; 32],
        now: Timestamp,
    ) -> Result<Option<ConsoleLink>, StoreError> {
        let link = self.state().users.links.remove(&digest);
        Ok(link.filter(|link| link.expires_at > now))
    }
}
