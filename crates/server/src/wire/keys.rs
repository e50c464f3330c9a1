//! Keys as clients ask for them, and as we answer them.

use model::{QueueName, Role, Tenant, Timestamp, limits};
use serde::Serialize;
use utoipa::ToSchema;

use super::job_out::moment;
use super::read::{self, Path, Read, Value};
use super::tenants::tenant_name;
use crate::access::Minted;
use crate::ops::keys::KeyDraft;
use crate::ops::{Fault, FieldError};

pub const KEY_FIELDS: [&str; 6] = [
    "tenant",
    "role",
    "queues",
    "label",
    "expires_at",
    "expires_in",
];

/// Reads what a new key is to be.
pub fn key_draft(body: &[u8], now: Timestamp) -> Read<KeyDraft> {
    let fields = read::document(body, &KEY_FIELDS)?;
    let role = fields.get("role", |value, path| {
        value.choice(path, &Role::ALL.map(Role::as_str), Role::parse)
    })?;
    let role = role.ok_or_else(|| {
        let detail = "role is missing: write reader, operator, admin, root or worker";
        FieldError::new(Fault::Missing, "role", detail)
    })?;
    let expires_at = fields.get("expires_at", Value::moment)?;
    let expires_in = fields.get("expires_in", Value::duration)?;
    if expires_at.is_some() && expires_in.is_some() {
        let detail = "expires_at and expires_in exclude each other: leave one out";
        return Err(FieldError::invalid("expires_in", detail));
    }
    Ok(KeyDraft {
        tenant: fields.get("tenant", tenant_name)?,
        role,
        queues: queues_for(role, fields.get("queues", queues)?)?,
        label: fields.get("label", label)?,
        expires_at: expires_at.or(expires_in.map(|span| now.plus(span))),
    })
}

fn queues(value: Value<'_>, path: Path<'_>) -> Read<Vec<QueueName>> {
    let read = |value: Value<'_>, path: Path<'_>| {
        let text = value.text(path)?;
        QueueName::new(&text).map_err(|error| path.invalid(error.to_string()))
    };
    let mut queues = value.list(path, "a list of queues", limits::QUEUES_MAX, read)?;
    queues.sort();
    queues.dedup();
    Ok(queues)
}

/// A worker has to have some, and nobody else may.
fn queues_for(role: Role, queues: Option<Vec<QueueName>>) -> Read<Vec<QueueName>> {
    match (role, queues) {
        (Role::Worker, Some(queues)) if !queues.is_empty() => Ok(queues),
        (Role::Worker, Some(_)) => {
            let detail = "a worker without a queue gets no work: name at least one";
            Err(FieldError::invalid("queues", detail))
        }
        (Role::Worker, None) => {
            let detail = "queues is missing: name those that the worker gets its work from";
            Err(FieldError::new(Fault::Missing, "queues", detail))
        }
        (Role::Reader | Role::Operator | Role::Admin | Role::Root, Some(_)) => {
            let detail = format!("only a worker has queues: leave it out for the role {role}");
            Err(FieldError::invalid("queues", detail))
        }
        (Role::Reader | Role::Operator | Role::Admin | Role::Root, None) => Ok(Vec::new()),
    }
}

fn label(value: Value<'_>, path: Path<'_>) -> Read<String> {
    let text = value.text(path)?;
    let fits = (1..=limits::NAME_MAX).contains(&text.len()) && !text.contains(char::is_control);
    if fits {
        return Ok(text.into_owned());
    }
    let max = limits::NAME_MAX;
    Err(path.invalid(format!("a label has 1 to {max} bytes of plain text")))
}

/// A key, without what it is made of.
#[derive(Debug, Serialize, ToSchema)]
pub struct AccessKey {
    /// Its id, which is also a part of it.
    #[schema(example = "key_0192f0c1a2b37def8123456789abcdef")]
    pub id: String,
    /// Whose it is.
    #[schema(example = "default")]
    pub tenant: String,
    /// What it allows; each role may do what those before it may, except for `worker`, which stands apart.
    pub role: String,
    /// Where a worker gets its work from; empty for all other roles.
    #[schema(example = json!([]))]
    pub queues: Vec<String>,
    /// What it is for.
    pub label: Option<String>,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// From when on it opens nothing; none if it does not expire.
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// When it was last used, up to a minute behind.
    #[schema(format = DateTime)]
    pub last_used_at: Option<String>,
    /// When it was revoked.
    #[schema(format = DateTime)]
    pub revoked_at: Option<String>,
}

impl AccessKey {
    pub fn of(key: &model::AccessKey, tenant: &Tenant) -> Self {
        Self {
            id: key.id.to_string(),
            tenant: tenant.name.to_string(),
            role: key.role.as_str().to_owned(),
            queues: key.queues.iter().map(QueueName::to_string).collect(),
            label: key.label.clone(),
            created_at: moment(&key.created_at),
            expires_at: key.expires_at.as_ref().map(moment),
            last_used_at: key.last_used_at.as_ref().map(moment),
            revoked_at: key.revoked_at.as_ref().map(moment),
        }
    }
}

/// A new key, and what its holder sends.
#[derive(Debug, Serialize, ToSchema)]
pub struct NewAccessKey {
    #[serde(flatten)]
    pub about: AccessKey,
    /// Sent as `Authorization: Bearer …`. It is shown here and never again.
    pub key: String,
}

impl NewAccessKey {
    pub fn of(minted: &Minted, tenant: &Tenant) -> Self {
        Self {
            about: AccessKey::of(&minted.key, tenant),
            key: minted.text.clone(),
        }
    }
}

/// A page of keys.
#[derive(Debug, Serialize, ToSchema)]
pub struct AccessKeyList {
    /// Newest first.
    pub items: Vec<AccessKey>,
    /// Where the next page begins; none on the last.
    pub next_cursor: Option<String>,
}
