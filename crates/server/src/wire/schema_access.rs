//! Requests about keys, tenants and secrets, as the contract describes them.

use serde::Serialize;
use utoipa::ToSchema;

use super::schema::MomentForm;
use super::tenants::QuotaMax;

/// A key that is to be made.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"role": "operator", "label": "on call", "expires_in": "90d"}))]
pub struct KeyRequest {
    /// Whose it is, by name; that of the key which asks for it, unless this one is root.
    pub tenant: Option<String>,
    /// What it allows; not more than the key that asks for it.
    pub role: String,
    /// Where a worker gets its work from: lower-case letters, digits, dashes, underscores and dots. A worker needs some, and no
    /// other role may have any.
    #[schema(example = json!(null))]
    pub queues: Option<Vec<String>>,
    /// What it is for.
    pub label: Option<String>,
    /// From when on it opens nothing, RFC 3339 or epoch seconds. It does not expire unless this or `expires_in` is said.
    pub expires_at: Option<MomentForm>,
    /// The same from now on, such as `90d`.
    pub expires_in: Option<String>,
}

/// A tenant that is to be made.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"name": "team-search", "note": "owned by Ann"}))]
pub struct TenantRequest {
    /// Lower-case letters, digits and dashes; begins with a letter.
    pub name: String,
    /// What it is for.
    pub note: Option<String>,
    /// How much it may have.
    pub quotas: Option<QuotasRequest>,
    /// The HTTP proxy that its callbacks go through, with its port: `http://user:password@proxy.example:3128`.
    #[schema(example = "http://ann:s3cret@proxy.example:3128")]
    pub proxy: Option<String>,
}

/// How much a tenant may have; `null` is the default.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"jobs_max": 50_000}))]
pub struct QuotasRequest {
    /// Jobs that are kept, whatever their state; deleted ones do not count. Default 10,000,000.
    pub jobs_max: Option<u64>,
    /// Bytes of their payloads. Default 68,719,476,736.
    pub payload_bytes_max: Option<u64>,
    /// For how many days what has ended is seen. By default for as long as the installation keeps it.
    pub history_days_max: Option<u64>,
    /// Runs of one day of UTC, also those that are asked for; beyond it slots are skipped. Default `unlimited`.
    pub runs_day_max: Option<QuotaMax>,
}

/// A user that is to be made.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"name": "ada", "password": "correct horse battery", "role": "operator"}))]
pub struct UserRequest {
    /// Lower-case letters, digits, and - _ . + @; begins with a letter.
    pub name: String,
    /// What it logs in with. It is never answered.
    pub password: String,
    /// What it may do in the caller's own tenant.
    pub role: Option<String>,
    /// What it may do, by tenant; instead of `role`. Another tenant than the caller's is for root only.
    pub roles: Option<std::collections::BTreeMap<String, String>>,
}

/// What is to change of a user.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"password": "another horse battery"}))]
pub struct UserPatch {
    /// Its name, if it is said again.
    pub name: Option<String>,
    /// Another password: every session of the user ends.
    pub password: Option<String>,
    /// The one role that it has from now on, in the caller's own tenant.
    pub role: Option<String>,
    /// All its roles from now on, by tenant; instead of `role`.
    pub roles: Option<std::collections::BTreeMap<String, String>>,
}

/// A secret that is to be made.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"name": "billing-token", "value": "s3cret-value", "hosts": ["api.example.com"]}))]
pub struct SecretRequest {
    /// Lower-case letters, digits, dashes, underscores and dots; begins with a letter.
    pub name: String,
    /// What is sent. It is never answered.
    pub value: String,
    /// Where it may be sent: `example.com`, `*.example.com`, `127.0.0.1`.
    pub hosts: Vec<String>,
    /// What it is for.
    pub note: Option<String>,
}

/// A signing secret that is to be made.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}))]
pub struct SigningSecretRequest {
    /// One that receivers know already: `whsec_` and 24 to 64 bytes in base64. A new one is made if it is left out.
    pub secret: Option<String>,
}

/// What is to change of a secret; the whole of one that is new.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"value": "s3cret-value", "hosts": ["api.example.com"]}))]
pub struct SecretPatch {
    /// Its name, if it is said again.
    pub name: Option<String>,
    /// What is sent; the one that stands if it is left out. It is needed again for a host that it may not be sent to yet.
    pub value: Option<String>,
    /// Where it may be sent; as before if it is left out.
    pub hosts: Option<Vec<String>>,
    /// What it is for; `null` takes it away.
    pub note: Option<String>,
}

/// What is to change of a tenant.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"note": "owned by Bob"}))]
pub struct TenantPatch {
    /// What it is for; `null` takes it away.
    pub note: Option<String>,
    /// How much it may have; what is not mentioned stays.
    pub quotas: Option<QuotasRequest>,
    /// The HTTP proxy that its callbacks go through, with its port; `null` takes it away. `***` in place of the password keeps
    /// the one that stands.
    #[schema(example = "http://ann:s3cret@proxy.example:3128")]
    pub proxy: Option<String>,
}
