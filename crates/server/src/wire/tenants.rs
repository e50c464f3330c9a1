//! Tenants as clients write them, and as we answer them.

use model::TenantName;
use serde::Serialize;
use utoipa::ToSchema;

use super::job_out::moment;
use super::read::{self, Path, Read, Value};
use super::requests::note;
use crate::ops::tenants::TenantDraft;
use crate::ops::{Fault, FieldError, Patch};

pub const TENANT_FIELDS: [&str; 2] = ["name", "note"];
pub const TENANT_PATCH_FIELDS: [&str; 1] = ["note"];

/// Reads what a new tenant is to be.
pub fn tenant_draft(body: &[u8]) -> Read<TenantDraft> {
    let fields = read::document(body, &TENANT_FIELDS)?;
    let name = fields.get("name", tenant_name)?.ok_or_else(|| {
        let detail = "name is missing: a tenant is named by those who make keys for it";
        FieldError::new(Fault::Missing, "name", detail)
    })?;
    Ok(TenantDraft {
        name,
        note: fields.get("note", note)?,
    })
}

/// What is said of the note: nothing, that there is none, or another.
pub fn tenant_note(body: &[u8]) -> Read<Option<Option<String>>> {
    let fields = read::document(body, &TENANT_PATCH_FIELDS)?;
    Ok(match fields.patch("note", note)? {
        Patch::Keep => None,
        Patch::Reset => Some(None),
        Patch::Set(note) => Some(Some(note)),
    })
}

pub fn tenant_name(value: Value<'_>, path: Path<'_>) -> Read<TenantName> {
    let text = value.text(path)?;
    TenantName::new(&text).map_err(|error| path.invalid(error.to_string()))
}

/// Who owns jobs.
#[derive(Debug, Serialize, ToSchema)]
pub struct Tenant {
    /// Its name.
    #[schema(example = "team-search")]
    pub name: String,
    /// What it is for.
    pub note: Option<String>,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created_at: String,
}

impl Tenant {
    pub fn of(tenant: &model::Tenant) -> Self {
        Self {
            name: tenant.name.to_string(),
            note: tenant.note.clone(),
            created_at: moment(&tenant.created_at),
        }
    }
}

/// A page of tenants.
#[derive(Debug, Serialize, ToSchema)]
pub struct TenantList {
    /// By name.
    pub items: Vec<Tenant>,
    /// Where the next page begins; none on the last.
    pub next_cursor: Option<String>,
}
