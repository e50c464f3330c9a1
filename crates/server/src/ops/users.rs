//! What a client does to users: people who log in to the console.

use model::{Membership, Role, Tenant, TenantName, User, UserEdit, UserId, UserName, limits};
use store::{UserCreated, UserEdited};
use zeroize::Zeroizing;

use super::error::{KeyFault, OpError, UserFault};
use super::fault::{Fault, FieldError};
use crate::access::Caller;
use crate::api::Api;

/// What a client says of a user.
#[derive(Default)]
pub struct UserDraft {
    pub name: Option<UserName>,
    pub password: Option<Zeroizing<String>>,
    /// In the caller's own tenant.
    pub role: Option<Role>,
    /// By tenant.
    pub roles: Option<Vec<(TenantName, Role)>>,
}

/// A user, with the names of its tenants: those that the caller may know.
pub struct UserOf {
    pub user: User,
    pub roles: Vec<(TenantName, Role)>,
}

pub struct UserPage {
    pub items: Vec<UserOf>,
    pub next: Option<UserName>,
}

async fn named(api: &Api, caller: Caller, user: User) -> Result<UserOf, OpError> {
    let mut roles = Vec::with_capacity(user.members.len());
    for member in &user.members {
        if caller.role != Role::Root && member.tenant != caller.tenant {
            continue;
        }
        if let Some(tenant) = api.store.access().get_tenant(member.tenant).await? {
            roles.push((tenant.name, member.role));
        }
    }
    Ok(UserOf { user, roles })
}

/// What is said of roles, checked: nobody gives a role above its own, or one elsewhere.
async fn members(
    api: &Api,
    caller: Caller,
    draft: &UserDraft,
) -> Result<Option<Vec<Membership>>, OpError> {
    let mut members = Vec::new();
    if let Some(role) = draft.role {
        members.push(Membership {
            tenant: caller.tenant,
            role,
        });
    }
    for (name, role) in draft.roles.iter().flatten() {
        let tenant = tenant(api, caller, name).await?;
        if *role == Role::Root && !tenant.is_default() {
            let detail = format!("root belongs to the tenant {}", TenantName::DEFAULT);
            return Err(FieldError::invalid("roles", detail).into());
        }
        members.push(Membership {
            tenant: tenant.id,
            role: *role,
        });
    }
    if let Some(above) = members.iter().find(|it| !caller.role.allows(it.role)) {
        let (role, own) = (above.role, caller.role);
        return Err(KeyFault::Above { role, own }.into());
    }
    Ok((draft.role.is_some() || draft.roles.is_some()).then_some(members))
}

async fn tenant(api: &Api, caller: Caller, name: &TenantName) -> Result<Tenant, OpError> {
    let found = api.store.access().find_tenant(name).await?;
    let found = found.filter(|it| caller.role == Role::Root || it.id == caller.tenant);
    found.ok_or_else(|| {
        let detail = format!("there is no tenant {name} that you may give roles in");
        FieldError::invalid("roles", detail).into()
    })
}

/// A new user.
pub async fn create(api: &Api, caller: Caller, draft: UserDraft) -> Result<UserOf, OpError> {
    let members = members(api, caller, &draft).await?.ok_or_else(|| {
        let detail = "role is missing: write reader, operator, admin or root, or roles by tenant";
        FieldError::new(Fault::Missing, "role", detail)
    })?;
    let missing = |field, detail| FieldError::new(Fault::Missing, field, detail);
    let name = draft.name;
    let name = name.ok_or_else(|| missing("name", "name is missing: people log in with it"))?;
    let password = draft.password;
    let password = password.ok_or_else(|| missing("password", "password is missing"))?;
    let now = api.engine.now();
    let user = User {
        id: UserId::new(now, rand::random()),
        password: api.passwords.hash(password).await?,
        name,
        members,
        created_at: now,
        updated_at: now,
    }
    .in_order();
    let created = api.store.access().create_user(&user).await;
    match created.map_err(OpError::Write)? {
        UserCreated::Done => named(api, caller, user).await,
        UserCreated::Exists => Err(UserFault::Exists(user.name).into()),
        UserCreated::Full => Err(UserFault::Full.into()),
        UserCreated::NoTenant => Err(gone()),
    }
}

/// A tenant went while a user of it was written.
fn gone() -> OpError {
    let detail = "a tenant that is named is not there any more";
    FieldError::invalid("roles", detail).into()
}

/// One that the caller may know of: it belongs to its tenant, or the caller is root.
async fn find(api: &Api, caller: Caller, name: &UserName) -> Result<User, OpError> {
    let found = api.store.access().find_user(name).await?;
    let may_know = |user: &User| caller.role == Role::Root || user.role_in(caller.tenant).is_some();
    let found = found.filter(may_know);
    found.ok_or_else(|| UserFault::Missing(name.clone()).into())
}

pub async fn get(api: &Api, caller: Caller, name: &UserName) -> Result<UserOf, OpError> {
    let user = find(api, caller, name).await?;
    named(api, caller, user).await
}

/// By name; those that the caller may know of.
pub async fn list(
    api: &Api,
    caller: Caller,
    after: Option<UserName>,
    limit: usize,
) -> Result<UserPage, OpError> {
    // There are so few that one read has them all: whose they are is looked at here.
    let all = api.store.access();
    let all = all.list_users(after.as_ref(), limits::USERS_MAX).await?;
    let may_know = |user: &User| caller.role == Role::Root || user.role_in(caller.tenant).is_some();
    let mut known = all.into_iter().filter(may_know);
    let mut items = Vec::new();
    for user in known.by_ref().take(limit) {
        items.push(named(api, caller, user).await?);
    }
    let last = items.last().map(|it| it.user.name.clone());
    let next = last.filter(|_| known.next().is_some());
    Ok(UserPage { items, next })
}

/// Whoever may change a user could do all that the user may.
fn may_change(caller: Caller, user: &User) -> Result<(), OpError> {
    if caller.role == Role::Root || user.is_within(caller.tenant, caller.role) {
        return Ok(());
    }
    Err(UserFault::Elsewhere(user.name.clone()).into())
}

/// Another password, or other roles. A new password ends every session of the user.
pub async fn edit(
    api: &Api,
    caller: Caller,
    name: &UserName,
    draft: UserDraft,
) -> Result<UserOf, OpError> {
    let user = find(api, caller, name).await?;
    may_change(caller, &user)?;
    if draft.name.as_ref().is_some_and(|other| other != name) {
        let detail = "a user keeps its name: make another user, and delete this one";
        return Err(FieldError::invalid("name", detail).into());
    }
    let members = members(api, caller, &draft).await?;
    let password = match draft.password {
        Some(password) => Some(api.passwords.hash(password).await?),
        None => None,
    };
    if members.is_none() && password.is_none() {
        return named(api, caller, user).await;
    }
    let edit = UserEdit { password, members };
    let now = api.engine.now();
    let edited = api.store.access().edit_user(user.id, &edit, now).await;
    match edited.map_err(OpError::Write)? {
        UserEdited::Done(user) => named(api, caller, user).await,
        UserEdited::Missing => Err(UserFault::Missing(name.clone()).into()),
        UserEdited::NoTenant => Err(gone()),
    }
}

/// It goes with its sessions. Answers it as it was.
pub async fn delete(api: &Api, caller: Caller, name: &UserName) -> Result<UserOf, OpError> {
    let user = find(api, caller, name).await?;
    may_change(caller, &user)?;
    let was = named(api, caller, user).await?;
    let dropped = api.store.access().drop_user(was.user.id).await;
    if dropped.map_err(OpError::Write)? {
        Ok(was)
    } else {
        Err(UserFault::Missing(name.clone()).into())
    }
}
