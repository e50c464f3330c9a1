//! Signing secrets as clients give them, and as we answer them: with their text once, when they are made.

use model::SigningId;
use serde::Serialize;
use utoipa::ToSchema;
use zeroize::Zeroizing;

use super::job_out::moment;
use super::read::{self, Read};
use crate::ops::signing::SigningMade;

pub const SIGNING_FIELDS: [&str; 1] = ["secret"];

/// Reads what a new signing secret is to be; nothing for one that is made here.
pub fn signing_draft(body: &[u8]) -> Read<Option<Zeroizing<String>>> {
    if body.is_empty() {
        return Ok(None);
    }
    let fields = read::document(body, &SIGNING_FIELDS)?;
    fields.get("secret", |value, path| {
        Ok(Zeroizing::new(value.text(path)?.into_owned()))
    })
}

/// A signing secret, without its text.
#[derive(Debug, Serialize, ToSchema)]
pub struct SigningSecret {
    /// What it is deleted by.
    #[schema(example = "sign_1_1794809413697")]
    pub id: String,
    /// The short name of the master key that it is sealed under.
    #[schema(example = "164febdf")]
    pub master_key: String,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created_at: String,
}

impl SigningSecret {
    pub fn of(secret: &model::Secret) -> Self {
        let id = SigningId::of(secret);
        Self {
            id: id.map(|id| id.to_string()).unwrap_or_default(),
            master_key: secret.sealed.master_key.clone(),
            created_at: moment(&secret.created_at),
        }
    }
}

/// A signing secret that was made just now.
#[derive(Debug, Serialize, ToSchema)]
pub struct SigningSecretMade {
    /// What it is deleted by.
    #[schema(example = "sign_1_1794809413697")]
    pub id: String,
    /// The short name of the master key that it is sealed under.
    #[schema(example = "164febdf")]
    pub master_key: String,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// What receivers check signatures with. It is answered this once.
    #[schema(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    pub secret: String,
}

impl SigningSecretMade {
    pub fn of(made: &SigningMade) -> Self {
        let SigningSecret {
            id,
            master_key,
            created_at,
        } = SigningSecret::of(&made.secret);
        Self {
            id,
            master_key,
            created_at,
            secret: made.text.to_string(),
        }
    }
}

/// The signing secrets of a tenant.
#[derive(Debug, Serialize, ToSchema)]
pub struct SigningSecretList {
    /// The older one first; two at most.
    pub items: Vec<SigningSecret>,
}
