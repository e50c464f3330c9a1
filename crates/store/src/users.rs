//! Users, their sessions, and links that log in. Neither a password nor a token is kept: only what they are compared with.

use async_trait::async_trait;
use model::{ConsoleLink, Session, TenantId, Timestamp, User, UserEdit, UserId, UserName};

use crate::StoreError;

#[async_trait]
pub trait UserStore: Send + Sync {
    /// Called again with the same id, it is done.
    async fn create_user(&self, user: &User) -> Result<UserCreated, StoreError>;

    /// The user as it stands then. With another password every session of the user ends.
    async fn edit_user(
        &self,
        id: UserId,
        edit: &UserEdit,
        now: Timestamp,
    ) -> Result<UserEdited, StoreError>;

    /// The user and its sessions go. Whether there was one.
    async fn drop_user(&self, id: UserId) -> Result<bool, StoreError>;

    async fn get_user(&self, id: UserId) -> Result<Option<User>, StoreError>;

    async fn find_user(&self, name: &UserName) -> Result<Option<User>, StoreError>;

    /// By name, after `after`.
    async fn list_users(
        &self,
        after: Option<&UserName>,
        limit: usize,
    ) -> Result<Vec<User>, StoreError>;

    /// A new session in place of the one that the browser had, if any. Sessions that have ended are forgotten, and of its
    /// holder all but the newest `SESSIONS_MAX`.
    async fn begin_session(
        &self,
        session: &Session,
        instead_of: Option<[u8; 32]>,
    ) -> Result<(), StoreError>;

    async fn get_session(&self, digest: [u8; 32]) -> Result<Option<Session>, StoreError>;

    /// When it was last used, which never moves back, and whose things it shows.
    async fn use_session(
        &self,
        digest: [u8; 32],
        used_at: Timestamp,
        tenant: TenantId,
    ) -> Result<(), StoreError>;

    async fn end_session(&self, digest: [u8; 32]) -> Result<(), StoreError>;

    /// Links that have expired are forgotten.
    async fn put_link(&self, link: &ConsoleLink, now: Timestamp) -> Result<(), StoreError>;

    /// The link, for the first who comes before it expires; it is gone afterwards.
    async fn open_link(
        &self,
        digest: [u8; 32],
        now: Timestamp,
    ) -> Result<Option<ConsoleLink>, StoreError>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserCreated {
    Done,
    /// Another user has the name.
    Exists,
    /// There are as many as there may be.
    Full,
    /// One of its tenants is not there.
    NoTenant,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserEdited {
    Done(User),
    Missing,
    /// One of its tenants is not there.
    NoTenant,
}
