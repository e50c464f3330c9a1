//! What a client does to signing secrets. One is shown when it is made, and never again.

use executor::sign;
use model::level::NeedsLevel;
use model::signing::Place;
use model::{Level, Sealed, Secret, SecretName, SigningId, TenantId, Timestamp};
use store::SecretPut;
use zeroize::Zeroizing;

use super::error::{OpError, SecretFault};
use super::fault::FieldError;
use super::{level, secrets};
use crate::api::Api;

/// A signing secret, and its text, which is shown once.
pub struct SigningMade {
    pub secret: Secret,
    pub text: Zeroizing<String>,
}

/// One more signing secret: one's own, or a new one. There are two at most.
pub async fn create(
    api: &Api,
    tenant: TenantId,
    given: Option<Zeroizing<String>>,
) -> Result<SigningMade, OpError> {
    if let Some(text) = &given {
        let checked = sign::check_secret(text);
        checked.map_err(|error| FieldError::invalid("secret", error.to_string()))?;
    }
    let text = given.unwrap_or_else(|| sign::secret_of(&rand::random()));
    // A node that does not sign must not live beside those that do.
    let needs = NeedsLevel {
        level: Level::OUTSIDE,
        field: "secret",
    };
    level::check_level(api, needs).await?;
    for place in Place::ALL {
        let secret = sealed(api, tenant, place, &text, api.engine.now())?;
        let put = api.store.access().put_secret(&secret, None).await;
        match put.map_err(OpError::Write)? {
            SecretPut::Done => {
                api.engine.vault().forget();
                return Ok(SigningMade { secret, text });
            }
            SecretPut::Conflict => {}
            SecretPut::Full => return Err(SecretFault::Full.into()),
            SecretPut::NoTenant => return Err(SecretFault::NoTenant.into()),
        }
    }
    Err(SecretFault::SigningFull.into())
}

fn sealed(
    api: &Api,
    tenant: TenantId,
    place: Place,
    text: &str,
    now: Timestamp,
) -> Result<Secret, OpError> {
    let secret = Secret {
        tenant,
        name: SecretName::of_place(place),
        version: 1,
        hosts: Vec::new(),
        note: None,
        created_at: now,
        updated_at: now,
        sealed: Sealed {
            master_key: String::new(),
            wrapped: Vec::new(),
            value: Vec::new(),
        },
    };
    secrets::sealed(api, secret, text)
}

/// The older one first.
pub async fn list(api: &Api, tenant: TenantId) -> Result<Vec<Secret>, OpError> {
    let mut found = Vec::new();
    for place in Place::ALL {
        let name = SecretName::of_place(place);
        found.extend(api.store.access().get_secret(tenant, &name).await?);
    }
    found.sort_by_key(|secret| (secret.created_at, secret.name.clone()));
    Ok(found)
}

/// Answers it as it was. Nothing is signed with it from now on, on other nodes within a second.
pub async fn delete(api: &Api, tenant: TenantId, id: SigningId) -> Result<Secret, OpError> {
    let missing = || OpError::from(SecretFault::SigningMissing);
    let access = api.store.access();
    let found = access.get_secret(tenant, &id.name()).await?;
    let secret = found.filter(|secret| SigningId::of(secret) == Some(id));
    let secret = secret.ok_or_else(missing)?;
    let dropped = access.drop_secret(tenant, &secret.name).await;
    if !dropped.map_err(OpError::Write)? {
        return Err(missing());
    }
    api.engine.vault().forget();
    Ok(secret)
}
