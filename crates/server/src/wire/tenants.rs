//! Tenants as clients write them, and as we answer them.

use model::{Proxy, Quota, TenantEdit, TenantName};
use serde::Serialize;
use utoipa::ToSchema;

use super::job_out::moment;
use super::read::{self, Fields, Path, Read, Shape, Value};
use super::requests::note;
use crate::ops::tenants::{TenantDraft, TenantPatch};
use crate::ops::{Fault, FieldError, Patch};

pub const TENANT_FIELDS: [&str; 4] = ["name", "note", "quotas", "proxy"];
pub const TENANT_PATCH_FIELDS: [&str; 3] = ["note", "quotas", "proxy"];
pub const QUOTA_FIELDS: [&str; 4] = [
    "jobs_max",
    "payload_bytes_max",
    "history_days_max",
    "runs_day_max",
];

/// Fields that are known by name, so that whoever looks for them learns that they are not there yet.
const QUOTAS_TO_COME: [&str; 4] = ["rate", "rate_max", "concurrency", "concurrency_max"];
const QUOTAS: Path<'static> = Path {
    parent: "",
    name: "quotas",
};

/// Reads what a new tenant is to be.
pub fn tenant_draft(body: &[u8]) -> Read<TenantDraft> {
    let fields = read::document(body, &TENANT_FIELDS)?;
    let name = fields.get("name", tenant_name)?.ok_or_else(|| {
        let detail = "name is missing: a tenant is named by those who make keys for it";
        FieldError::new(Fault::Missing, "name", detail)
    })?;
    Ok(TenantDraft {
        name,
        said: said(&fields)?,
        proxy: fields.patch("proxy", proxy)?,
    })
}

/// What is to change of a tenant.
pub fn tenant_patch(body: &[u8]) -> Read<TenantPatch> {
    let fields = read::document(body, &TENANT_PATCH_FIELDS)?;
    Ok(TenantPatch {
        said: said(&fields)?,
        proxy: fields.patch("proxy", proxy)?,
    })
}

fn proxy(value: Value<'_>, path: Path<'_>) -> Read<Proxy> {
    let text = value.text(path)?;
    Proxy::parse(&text).map_err(|error| path.invalid(error.to_string()))
}

fn said(fields: &Fields<'_>) -> Read<TenantEdit> {
    let note = match fields.patch("note", note)? {
        Patch::Keep => None,
        Patch::Reset => Some(None),
        Patch::Set(note) => Some(Some(note)),
    };
    let quotas = match fields.patch("quotas", |value, _| quotas(value))? {
        Patch::Keep => Vec::new(),
        Patch::Reset => Quota::ALL.map(|quota| (quota, None)).to_vec(),
        Patch::Set(quotas) => quotas,
    };
    Ok(TenantEdit { note, quotas })
}

fn quotas(value: Value<'_>) -> Read<Vec<(Quota, Option<u64>)>> {
    let known: Vec<&str> = QUOTA_FIELDS.into_iter().chain(QUOTAS_TO_COME).collect();
    let fields = Fields::of(value, QUOTAS, "quotas", &known)?;
    for name in QUOTAS_TO_COME {
        if fields.iter().any(|(given, _)| given == name) {
            let detail = "rates and concurrency cannot be bounded yet: leave it out";
            return Err(Path {
                parent: "quotas",
                name,
            }
            .invalid(detail));
        }
    }
    let mut said = Vec::new();
    for quota in Quota::ALL {
        let [least, most] = [quota.lowest(), quota.highest()];
        let [least, most] = [least, most].map(|it| i64::try_from(it).unwrap_or(i64::MAX));
        let max = fields.patch(quota.as_str(), |value, path| {
            if quota == Quota::RunsDay && is_word(value, path)? {
                return Ok(None);
            }
            Ok(Some(value.integer(path, least, most)?.unsigned_abs()))
        })?;
        match max {
            Patch::Keep => {}
            Patch::Reset => said.push((quota, None)),
            Patch::Set(max) => said.push((quota, max)),
        }
    }
    Ok(said)
}

pub(super) fn tenant_name(value: Value<'_>, path: Path<'_>) -> Read<TenantName> {
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
    /// How much it may have.
    pub quotas: Quotas,
    /// The proxy that its callbacks go through, without its password; not in lists, nor where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "http://ann:***@proxy.example:3128")]
    pub proxy: Option<String>,
    /// How much it has of that; not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<Used>,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Since when it is being deleted with all that it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub deleting_at: Option<String>,
}

/// How much a tenant may have.
#[derive(Debug, Serialize, ToSchema)]
pub struct Quotas {
    /// Jobs that are kept, whatever their state; deleted ones do not count.
    pub jobs_max: u64,
    /// Bytes of their payloads.
    pub payload_bytes_max: u64,
    /// For how many days what has ended is seen; unless it was said, for as long as the installation keeps it.
    pub history_days_max: u64,
    /// Runs of one day of UTC, also those that are asked for. Beyond it slots are skipped.
    pub runs_day_max: QuotaMax,
}

/// So many, or the word `unlimited`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum QuotaMax {
    /// So many and no more.
    Of(u64),
    /// As many as there are.
    Word(QuotaWord),
}

/// What stands for no bound at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum QuotaWord {
    Unlimited,
}

const UNLIMITED: &str = "unlimited";

impl QuotaMax {
    fn of(limit: Option<u64>) -> Self {
        limit.map_or(Self::Word(QuotaWord::Unlimited), Self::Of)
    }
}

fn is_word(value: Value<'_>, path: Path<'_>) -> Read<bool> {
    Ok(value.shape() == Shape::Text && value.text(path)? == UNLIMITED)
}

/// How much a tenant has.
#[derive(Debug, Serialize, ToSchema)]
pub struct Used {
    /// Jobs that are kept.
    pub jobs: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// How many days back the oldest lies that has ended and is seen, today being one of them.
    pub history_days: u64,
    /// Runs since midnight UTC, up to a second behind.
    pub runs_day: u64,
}

impl Tenant {
    pub fn of(tenant: &model::Tenant, history_days_max: u64) -> Self {
        let max = |quota: Quota| tenant.quotas.limit(quota).unwrap_or(quota.highest());
        Self {
            name: tenant.name.to_string(),
            note: tenant.note.clone(),
            quotas: Quotas {
                jobs_max: max(Quota::Jobs),
                payload_bytes_max: max(Quota::PayloadBytes),
                history_days_max,
                runs_day_max: QuotaMax::of(tenant.quotas.limit(Quota::RunsDay)),
            },
            proxy: None,
            used: None,
            created_at: moment(&tenant.created_at),
            deleting_at: tenant.deleting_at.as_ref().map(moment),
        }
    }

    pub fn with_proxy(self, proxy: Option<String>) -> Self {
        Self { proxy, ..self }
    }

    pub fn with_use(self, usage: model::Usage, history_days: u64, runs_day: u64) -> Self {
        let used = Used {
            jobs: usage.jobs,
            payload_bytes: usage.payload_bytes,
            history_days,
            runs_day,
        };
        Self {
            used: Some(used),
            ..self
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
