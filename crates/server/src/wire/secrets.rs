//! Secrets as clients write them, and as we answer them: without their values.

use model::{HostPattern, SecretName, limits};
use serde::Serialize;
use utoipa::ToSchema;
use zeroize::Zeroizing;

use super::job_out::moment;
use super::read::{self, Path, Read, Value};
use super::requests::note;
use crate::ops::secrets::{Rewrapped, SecretDraft};
use crate::ops::{Fault, FieldError};

pub const SECRET_FIELDS: [&str; 4] = ["name", "value", "hosts", "note"];

/// Reads what a secret is to be.
pub fn secret_draft(body: &[u8]) -> Read<SecretDraft> {
    let fields = read::document(body, &SECRET_FIELDS)?;
    Ok(SecretDraft {
        name: fields.get("name", secret_name)?,
        value: fields.get("value", secret_value)?,
        hosts: fields.get("hosts", hosts)?,
        note: fields.patch("note", note)?,
    })
}

/// The name of a secret that is new.
pub fn secret_name_of(draft: &SecretDraft) -> Read<SecretName> {
    draft.name.clone().ok_or_else(|| {
        let detail = "name is missing: a target asks for a secret by its name";
        FieldError::new(Fault::Missing, "name", detail)
    })
}

fn secret_name(value: Value<'_>, path: Path<'_>) -> Read<SecretName> {
    let text = value.text(path)?;
    SecretName::new(&text).map_err(|error| path.invalid(error.to_string()))
}

/// No refusal repeats it.
fn secret_value(value: Value<'_>, path: Path<'_>) -> Read<Zeroizing<String>> {
    let text = value.text(path)?;
    if !(limits::SECRET_MIN..=limits::SECRET_MAX).contains(&text.len()) {
        let (min, max) = (limits::SECRET_MIN, limits::SECRET_MAX);
        return Err(path.invalid(format!("a value has {min} to {max} bytes")));
    }
    Ok(Zeroizing::new(text.into_owned()))
}

fn hosts(value: Value<'_>, path: Path<'_>) -> Read<Vec<HostPattern>> {
    let read = |value: Value<'_>, path: Path<'_>| {
        let text = value.text(path)?;
        HostPattern::new(&text).map_err(|error| path.invalid(error.to_string()))
    };
    let mut hosts = value.list(path, "a list of hosts", limits::HOSTS_MAX, read)?;
    hosts.sort();
    hosts.dedup();
    if hosts.is_empty() {
        let detail = "a secret that may be sent nowhere is of no use: name at least one host";
        return Err(path.invalid(detail));
    }
    Ok(hosts)
}

/// A secret, without its value.
#[derive(Debug, Serialize, ToSchema)]
pub struct Secret {
    /// Its name: a header asks for it by `{{ secret('name') }}`.
    #[schema(example = "billing-token")]
    pub name: String,
    /// Counts changes of its value and of its hosts.
    pub version: u32,
    /// Where it may be sent.
    pub hosts: Vec<String>,
    /// What it is for.
    pub note: Option<String>,
    /// The short name of the master key that it is sealed under.
    #[schema(example = "164febdf")]
    pub master_key: String,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it was changed last.
    #[schema(format = DateTime)]
    pub updated_at: String,
}

impl Secret {
    pub fn of(secret: &model::Secret) -> Self {
        Self {
            name: secret.name.to_string(),
            version: secret.version,
            hosts: secret.hosts.iter().map(ToString::to_string).collect(),
            note: secret.note.clone(),
            master_key: secret.sealed.master_key.clone(),
            created_at: moment(&secret.created_at),
            updated_at: moment(&secret.updated_at),
        }
    }
}

/// A page of secrets.
#[derive(Debug, Serialize, ToSchema)]
pub struct SecretList {
    /// By name.
    pub items: Vec<Secret>,
    /// Where the next page begins; none on the last.
    pub next_cursor: Option<String>,
}

/// What one step of a rewrap came to.
#[derive(Debug, Serialize, ToSchema)]
pub struct RewrapAnswer {
    /// The short name of the master key that secrets are under now.
    #[schema(example = "164febdf")]
    pub master_key: String,
    /// How many were sealed again in this step.
    pub rewrapped: usize,
    /// How many stay as they were, because this node does not have their master key.
    pub closed: usize,
    /// Where the next step begins; none when all are done.
    pub next_cursor: Option<String>,
}

impl RewrapAnswer {
    pub fn of(step: &Rewrapped, next_cursor: Option<String>) -> Self {
        Self {
            master_key: step.master_key.clone(),
            rewrapped: step.rewrapped,
            closed: step.closed,
            next_cursor,
        }
    }
}
