//! Users as clients write them, and as we answer them: without their passwords.

use std::collections::BTreeMap;

use model::user::USER_ROLES;
use model::{Role, TenantName, UserName, limits};
use serde::Serialize;
use utoipa::ToSchema;
use zeroize::Zeroizing;

use super::job_out::moment;
use super::read::{self, Fields, Path, Read, Value};
use crate::ops::FieldError;
use crate::ops::users::{UserDraft, UserOf};

pub const USER_FIELDS: [&str; 4] = ["name", "password", "role", "roles"];

const ROLES: Path<'static> = Path {
    parent: "",
    name: "roles",
};

/// Reads what a user is to be.
pub fn user_draft(body: &[u8]) -> Read<UserDraft> {
    let fields = read::document(body, &USER_FIELDS)?;
    let draft = UserDraft {
        name: fields.get("name", user_name)?,
        password: fields.get("password", password)?,
        role: fields.get("role", role)?,
        roles: fields.get("roles", |value, _| roles(value))?,
    };
    if draft.role.is_some() && draft.roles.is_some() {
        let detail = "role and roles exclude each other: leave one out";
        return Err(FieldError::invalid("roles", detail));
    }
    Ok(draft)
}

fn user_name(value: Value<'_>, path: Path<'_>) -> Read<UserName> {
    let text = value.text(path)?;
    UserName::new(&text).map_err(|error| path.invalid(error.to_string()))
}

/// No refusal repeats it.
fn password(value: Value<'_>, path: Path<'_>) -> Read<Zeroizing<String>> {
    let text = value.text(path)?;
    let long = text.chars().count() >= limits::PASSWORD_MIN;
    if !long || text.len() > limits::PASSWORD_MAX {
        let (min, max) = (limits::PASSWORD_MIN, limits::PASSWORD_MAX);
        let detail = format!("a password has {min} characters or more, and at most {max} bytes");
        return Err(path.invalid(detail));
    }
    Ok(Zeroizing::new(text.into_owned()))
}

fn role(value: Value<'_>, path: Path<'_>) -> Read<Role> {
    let parse = |text: &str| Role::parse(text).filter(|role| USER_ROLES.contains(role));
    value.choice(path, &USER_ROLES.map(Role::as_str), parse)
}

fn roles(value: Value<'_>) -> Read<Vec<(TenantName, Role)>> {
    let fields = Fields::any(value.0, "roles", ROLES)?;
    let mut roles = Vec::new();
    for (name, value) in fields.iter() {
        let path = Path {
            parent: "roles",
            name,
        };
        let tenant = TenantName::new(name).map_err(|error| path.invalid(error.to_string()))?;
        roles.push((tenant, role(value, path)?));
    }
    if roles.len() > limits::MEMBERS_MAX {
        let max = limits::MEMBERS_MAX;
        return Err(ROLES.invalid(format!("a user belongs to at most {max} tenants")));
    }
    Ok(roles)
}

/// A user, without its password.
#[derive(Debug, Serialize, ToSchema)]
pub struct User {
    /// Its id.
    #[schema(example = "user_0192f0c1a2b37def8123456789abcdef")]
    pub id: String,
    /// What it logs in with.
    #[schema(example = "ada")]
    pub name: String,
    /// What it may do, by tenant: of those that the caller may know.
    pub roles: BTreeMap<String, String>,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it was last changed.
    #[schema(format = DateTime)]
    pub updated_at: String,
}

impl User {
    pub fn of(of: &UserOf) -> Self {
        let role =
            |(tenant, role): &(TenantName, Role)| (tenant.to_string(), role.as_str().to_owned());
        Self {
            id: of.user.id.to_string(),
            name: of.user.name.to_string(),
            roles: of.roles.iter().map(role).collect(),
            created_at: moment(&of.user.created_at),
            updated_at: moment(&of.user.updated_at),
        }
    }
}

/// A page of users.
#[derive(Debug, Serialize, ToSchema)]
pub struct UserList {
    /// By name.
    pub items: Vec<User>,
    /// Where the next page begins; none on the last.
    pub next_cursor: Option<String>,
}

/// A link that logs in to the console whoever opens it first.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConsoleLink {
    /// Its path on this server. It is shown here and never again.
    pub path: String,
    /// From when on it logs in nobody; none where the console is open to everyone.
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
}

impl ConsoleLink {
    pub fn of(path: String, expires_at: Option<model::Timestamp>) -> Self {
        Self {
            path,
            expires_at: expires_at.as_ref().map(moment),
        }
    }
}
