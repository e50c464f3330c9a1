//! What a client does to secrets. A value goes in and never comes out.

use std::collections::BTreeMap;

use engine::vault::{VaultError, template};
use model::signing::Place;
use model::{
    Definition, HostPattern, Sealed, Secret, SecretName, Target, TenantId, Timestamp, limits,
};
use store::SecretPut;
use zeroize::Zeroizing;

use super::Patch;
use super::error::{OpError, SecretFault};
use super::fault::{Fault, FieldError};
use crate::api::Api;

/// How often a write looks again when others change the same secret.
const TRIES_MAX: u32 = 8;
/// Secrets that one request rewraps.
const REWRAP_MAX: usize = 200;

/// What a client says of a secret.
#[derive(Default)]
pub struct SecretDraft {
    pub name: Option<SecretName>,
    pub value: Option<Zeroizing<String>>,
    pub hosts: Option<Vec<HostPattern>>,
    pub note: Patch<String>,
}

/// A secret as it stands after a write.
pub struct SecretWritten {
    pub secret: Secret,
    pub created: bool,
}

fn closed(name: &SecretName, error: VaultError) -> OpError {
    match error {
        VaultError::NoMasterKey => SecretFault::NoMasterKey.into(),
        VaultError::Closed(why) => SecretFault::Closed(name.clone(), why).into(),
        VaultError::Store(error) => OpError::Store(error),
    }
}

/// A new one, sealed.
fn build(
    api: &Api,
    tenant: TenantId,
    name: &SecretName,
    draft: &SecretDraft,
    now: Timestamp,
) -> Result<Secret, OpError> {
    let missing = |field: &str, fix: &str| {
        FieldError::new(Fault::Missing, field, format!("{field} is missing: {fix}"))
    };
    let value = draft.value.as_ref();
    let value = value.ok_or_else(|| missing("value", "it is what is sent"))?;
    let hosts = draft.hosts.clone();
    let hosts = hosts.ok_or_else(|| missing("hosts", "name those that it may be sent to"))?;
    let mut note = None;
    draft.note.clone().put_option(&mut note);
    let secret = Secret {
        tenant,
        name: name.clone(),
        version: 1,
        hosts,
        note,
        created_at: now,
        updated_at: now,
        sealed: Sealed {
            master_key: String::new(),
            wrapped: Vec::new(),
            value: Vec::new(),
        },
    };
    sealed(api, secret, value)
}

pub(super) fn sealed(api: &Api, mut secret: Secret, value: &str) -> Result<Secret, OpError> {
    let sealed = api.engine.vault().seal(&secret, value);
    secret.sealed = sealed.map_err(|error| closed(&secret.name, error))?;
    Ok(secret)
}

/// What a secret holds, for what goes on here: it is never answered.
pub(super) fn opened(api: &Api, secret: &Secret) -> Result<Zeroizing<String>, OpError> {
    let opened = api.engine.vault().open(secret);
    opened.map_err(|error| closed(&secret.name, error))
}

/// The next version: what is not said stays. A value stays only with hosts that it was given for.
fn amend(
    api: &Api,
    stands: &Secret,
    draft: &SecretDraft,
    now: Timestamp,
) -> Result<Secret, OpError> {
    let kept = match &draft.value {
        Some(value) => value.clone(),
        None => {
            if let Some(host) = draft.hosts.as_deref().and_then(|it| stands.new_host(it)) {
                let detail = format!(
                    "value is missing: it was not given for {host}, so write it again, or leave out {host} from hosts"
                );
                return Err(FieldError::new(Fault::Missing, "value", detail).into());
            }
            opened(api, stands)?
        }
    };
    let mut secret = stands.clone();
    secret.version += 1;
    secret.updated_at = now;
    if let Some(hosts) = &draft.hosts {
        secret.hosts.clone_from(hosts);
    }
    draft.note.clone().put_option(&mut secret.note);
    sealed(api, secret, &kept)
}

/// Whether it was written; not if somebody was faster.
async fn write(api: &Api, secret: &Secret, before: Option<u32>) -> Result<bool, OpError> {
    let put = api.store.access().put_secret(secret, before).await;
    match put.map_err(OpError::Write)? {
        SecretPut::Done => {
            api.engine.vault().forget();
            Ok(true)
        }
        SecretPut::Conflict => Ok(false),
        SecretPut::Full => Err(SecretFault::Full.into()),
        SecretPut::NoTenant => Err(SecretFault::NoTenant.into()),
    }
}

/// A new secret; there must be none of that name.
pub async fn create(
    api: &Api,
    tenant: TenantId,
    name: &SecretName,
    draft: &SecretDraft,
) -> Result<Secret, OpError> {
    let secret = build(api, tenant, name, draft, api.engine.now())?;
    if write(api, &secret, None).await? {
        Ok(secret)
    } else {
        Err(SecretFault::Exists(name.clone()).into())
    }
}

/// The secret of that name becomes what the draft says, whether it was there or not.
pub async fn put(
    api: &Api,
    tenant: TenantId,
    name: &SecretName,
    draft: &SecretDraft,
) -> Result<SecretWritten, OpError> {
    if let Some(given) = draft.name.as_ref().filter(|given| *given != name) {
        let detail = format!("the body says {given}, the path says {name}: leave it out here");
        return Err(FieldError::invalid("name", detail).into());
    }
    for _ in 0..TRIES_MAX {
        let stands = api.store.access().get_secret(tenant, name).await?;
        let now = api.engine.now();
        let secret = match &stands {
            Some(stands) => amend(api, stands, draft, now)?,
            None => build(api, tenant, name, draft, now)?,
        };
        let before = stands.as_ref().map(|stands| stands.version);
        if write(api, &secret, before).await? {
            let created = before.is_none();
            return Ok(SecretWritten { secret, created });
        }
    }
    Err(OpError::Contended)
}

pub async fn get(api: &Api, tenant: TenantId, name: &SecretName) -> Result<Secret, OpError> {
    let found = api.store.access().get_secret(tenant, name).await?;
    found.ok_or_else(|| SecretFault::Missing(name.clone()).into())
}

/// Secrets by name, and the name after which the next page begins.
pub struct SecretPage {
    pub items: Vec<Secret>,
    pub next: Option<SecretName>,
}

pub async fn list(
    api: &Api,
    tenant: TenantId,
    after: Option<SecretName>,
    limit: usize,
) -> Result<SecretPage, OpError> {
    // One more than wanted shows whether there is a next page; signing secrets and the proxy are shown elsewhere.
    let access = api.store.access();
    let most = limit + Place::ALL.len() + 2;
    let mut items = access.list_secrets(tenant, after.as_ref(), most).await?;
    items.retain(|secret| secret.name.is_given());
    let has_more = items.len() > limit;
    items.truncate(limit);
    let last = items.last().filter(|_| has_more);
    let next = last.map(|secret| secret.name.clone());
    Ok(SecretPage { items, next })
}

/// Answers it as it was. Attempts that need it fail from now on.
pub async fn delete(api: &Api, tenant: TenantId, name: &SecretName) -> Result<Secret, OpError> {
    let secret = get(api, tenant, name).await?;
    let dropped = api.store.access().drop_secret(tenant, name).await;
    if !dropped.map_err(OpError::Write)? {
        return Err(SecretFault::Missing(name.clone()).into());
    }
    api.engine.vault().forget();
    Ok(secret)
}

/// What one step of a rewrap came to.
pub struct Rewrapped {
    /// The master key that they are under now.
    pub master_key: String,
    pub rewrapped: usize,
    /// Those whose master key this node does not have, or that were changed in the store.
    pub closed: usize,
    /// Where the next step begins; none when all are done.
    pub next: Option<(TenantId, SecretName)>,
}

/// Seals secrets of all tenants under the current master key: some of them, and says where to go on.
pub async fn rewrap(
    api: &Api,
    after: Option<(TenantId, SecretName)>,
) -> Result<Rewrapped, OpError> {
    let vault = api.engine.vault();
    let keys = vault.keys().map_err(|_| SecretFault::NoMasterKey)?;
    let current = keys.current().id();
    let access = api.store.access();
    let page = access
        .secrets_not_under(current, after.as_ref(), REWRAP_MAX)
        .await?;
    let last = page.last().filter(|_| page.len() == REWRAP_MAX);
    let next = last.map(|secret| (secret.tenant, secret.name.clone()));
    let mut rewrapped = Vec::with_capacity(page.len());
    let mut closed = 0;
    for secret in &page {
        match vault.rewrap(secret) {
            Ok(secret) => rewrapped.push(secret),
            Err(error) => {
                let (tenant, name) = (secret.tenant, &secret.name);
                tracing::warn!(%tenant, secret = %name, %error, "a secret stays as it was sealed");
                closed += 1;
            }
        }
    }
    let count = if rewrapped.is_empty() {
        0
    } else {
        let written = access.rewrap_secrets(&rewrapped).await;
        written.map_err(OpError::Write)?
    };
    Ok(Rewrapped {
        master_key: current.to_owned(),
        rewrapped: count,
        closed,
        next,
    })
}

/// Refuses a target that could not be sent: templates that cannot be read, secrets that are not there, and those that may
/// not go to its host.
pub async fn check(api: &Api, tenant: TenantId, def: &Definition) -> Result<(), OpError> {
    if !template::is_in(&def.target) {
        return Ok(());
    }
    let mut known: BTreeMap<SecretName, Option<Secret>> = BTreeMap::new();
    for (field, name) in def.target.certificates() {
        let secret = api.store.access().get_secret(tenant, name).await?;
        let field = format!("target.http.tls.{field}");
        let may = may_use(&def.target, name, secret.as_ref());
        may.map_err(|detail| FieldError::invalid(&field, detail))?;
    }
    for (field, place, text) in template::all_of(&def.target) {
        let field = format!("target.{field}");
        let names = template::check(&text, place);
        let names = names.map_err(|error| FieldError::invalid(&field, error.to_string()))?;
        let payload = def.payload.as_ref().map_or(0, |payload| payload.len());
        if payload > limits::TEMPLATE_PAYLOAD_MAX && template::reads_payload(&text) {
            let most = limits::TEMPLATE_PAYLOAD_MAX;
            let detail = format!("a template reads payloads of up to {most} bytes");
            return Err(FieldError::invalid("payload", detail).into());
        }
        for name in names {
            if !known.contains_key(&name) {
                let found = api.store.access().get_secret(tenant, &name).await?;
                known.insert(name.clone(), found);
            }
            let secret = known.get(&name).and_then(Option::as_ref);
            may_use(&def.target, &name, secret)
                .map_err(|detail| FieldError::invalid(&field, detail))?;
        }
    }
    Ok(())
}

fn may_use(target: &Target, name: &SecretName, secret: Option<&Secret>) -> Result<(), String> {
    let secret = secret
        .ok_or_else(|| format!("there is no secret {name}: make it with PUT /v1/secrets/{name}"))?;
    let host = target.secret_host();
    if secret.allows(host) {
        return Ok(());
    }
    let hosts: Vec<&str> = secret.hosts.iter().map(HostPattern::as_str).collect();
    let hosts = hosts.join(", ");
    Err(match target {
        Target::Http(_) => {
            format!("the secret {name} may not be sent to {host}: its hosts are {hosts}")
        }
        Target::Shell(_) | Target::Python(_) => format!(
            "the secret {name} may not be handed to what a node starts: its hosts are {hosts}, and {host} is not among them"
        ),
    })
}

const _: () = assert!(limits::PAGE_MAX >= REWRAP_MAX);
