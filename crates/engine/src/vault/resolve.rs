//! What an attempt sends: its path, its headers and its body with what their templates say. Nothing is sent unless every
//! secret that they name is there and may go to the host.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use executor::{Executor, Identity, WorkOrder};
use http::HeaderValue;
use http::uri::PathAndQuery;
use model::{Report, RetryHint, Run, SecretName, Target, TenantId};
use sha2::{Digest, Sha256};
use store::StoreError;

use super::facts::Facts;
use super::scrub::Hidden;
use super::template::{Place, TemplateError};
use super::{Opened, Sending, Vault, VaultError, template};
use crate::lock;

type Found = BTreeMap<SecretName, Arc<Opened>>;

/// The secrets that an attempt of a target needs.
fn needed(target: &Target) -> BTreeSet<SecretName> {
    if !template::is_in(target) {
        return BTreeSet::new();
    }
    let templates = template::all_of(target);
    let named = templates
        .iter()
        .flat_map(|(_, _, text)| template::secrets_in(text).unwrap_or_default());
    let certificates = target.certificates();
    let certificates = certificates.map(|(_, name)| name.clone());
    named.chain(certificates).collect()
}

impl Vault {
    /// How an attempt is sent, if that is known, and all else that it needs.
    pub(crate) fn ready(&self, tenant: TenantId, target: &Target) -> Option<Sending> {
        let needed = needed(target);
        let cache = lock(&self.cache);
        let sending = cache.sending.get(&tenant)?;
        let mut keys = needed.into_iter().map(|name| (tenant, name));
        let knows_all = keys.all(|key| cache.opened.contains_key(&key));
        knows_all.then(|| sending.clone())
    }

    /// Whether something that an attempt needs is not known yet.
    pub(crate) fn lacks(&self, tenant: TenantId, target: &Target) -> bool {
        self.ready(tenant, target).is_none()
    }

    /// Reads what an attempt needs. Fails when the store is away, and only then: that costs no attempt.
    pub(crate) async fn fetch(&self, tenant: TenantId, target: &Target) -> Result<(), StoreError> {
        let place = tenant
            .as_bytes()
            .iter()
            .fold(0, |sum, byte| sum ^ usize::from(*byte));
        let reading = self.reading.get(place % self.reading.len());
        let _alone = match reading {
            Some(reading) => Some(reading.lock().await),
            None => None,
        };
        if !self.lacks(tenant, target) {
            return Ok(());
        }
        self.fetch_sending(tenant).await?;
        for name in needed(target) {
            match self.get(tenant, &name).await {
                Err(VaultError::Store(error)) if error.is_transient() => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Delivers an attempt whose target has templates, and says before what is to be taken out of its report.
    pub async fn deliver(
        &self,
        executor: Arc<dyn Executor>,
        mut order: WorkOrder,
        run: &Run,
        hidden: &Hidden,
    ) -> Report {
        let job = Arc::clone(&order.job);
        let target = &job.def.target;
        let mut found = Found::new();
        if let Err(unsent) = self.fill_in(&mut order, target, run, &mut found).await {
            return unsent;
        }
        let key = match target.certificates().next() {
            None => None,
            Some(_) => match self.identity(&mut order, target).await {
                Ok(key) => key,
                Err(unsent) => return unsent,
            },
        };
        let used = found.values().chain(&key);
        hidden.set(target, used.map(|opened| opened.value()));
        executor.execute(order).await
    }

    /// The certificates that a target names. Answers the one that is secret.
    async fn identity(
        &self,
        order: &mut WorkOrder,
        target: &Target,
    ) -> Result<Option<Arc<Opened>>, Report> {
        let mut opened: BTreeMap<&str, Arc<Opened>> = BTreeMap::new();
        for (field, name) in target.certificates() {
            let found = self.open_one(order, target, name).await;
            let found = found.map_err(|unsent| unsent.report(&format!("http.tls.{field}")))?;
            opened.insert(field, found);
        }
        let text = |field: &str| opened.get(field).map(|it| it.value().to_owned());
        let mut hash = Sha256::new();
        for field in ["ca", "cert", "key"] {
            let text = opened.get(field).map_or("", |it| it.value());
            hash.update(text.len().to_be_bytes());
            hash.update(text);
        }
        order.identity = Some(Arc::new(Identity {
            id: hash.finalize().into(),
            ca: text("ca"),
            cert: text("cert").zip(text("key")),
        }));
        Ok(opened.remove("key"))
    }

    /// A secret, if it may go to the host.
    async fn open_one(
        &self,
        order: &WorkOrder,
        target: &Target,
        name: &SecretName,
    ) -> Result<Arc<Opened>, Unsent> {
        let opened = self.get(order.job.sends_for(), name).await;
        let opened = opened.map_err(|error| Unsent::Closed(name.clone(), error))?;
        let opened = opened.ok_or_else(|| Unsent::Missing(name.clone()))?;
        let host = target.secret_host();
        if opened.secret.allows(host) {
            Ok(opened)
        } else {
            let place = match target {
                Target::Http(_) => format!("sent to {host}"),
                Target::Shell(_) => format!("handed to commands, which are the host {host}"),
                Target::Python(_) => format!("handed to scripts, which are the host {host}"),
            };
            Err(Unsent::Host(name.clone(), place))
        }
    }

    async fn fill_in(
        &self,
        order: &mut WorkOrder,
        target: &Target,
        run: &Run,
        found: &mut Found,
    ) -> Result<(), Report> {
        let templates = template::all_of(target);
        for (field, _, text) in &templates {
            self.open_named(order, target, text, found)
                .await
                .map_err(|unsent| unsent.report(field))?;
        }
        let (job, payload) = (Arc::clone(&order.job), order.payload().cloned());
        let facts = Facts::of(&job, run, payload.as_deref());
        match target {
            Target::Http(http) => order.headers = Some(http.headers.clone()),
            Target::Shell(_) | Target::Python(_) => {
                order.env = target.program().map(|program| program.env.clone());
            }
        }
        for (field, place, text) in &templates {
            let known = found.iter();
            let known = known.map(|(name, opened)| (name.clone(), opened.value().to_owned()));
            let rendered = template::render(text, *place, &facts, known.collect());
            let put = rendered
                .map_err(|TemplateError(why)| Unsent::Template(why))
                .and_then(|rendered| put(order, (field, *place), rendered));
            put.map_err(|unsent| unsent.report(field))?;
            if templates.len() > 1 {
                // A rendering waits for nothing, so others have their turn between two of them.
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    /// Opens the secrets that a template names.
    async fn open_named(
        &self,
        order: &WorkOrder,
        target: &Target,
        text: &str,
        found: &mut Found,
    ) -> Result<(), Unsent> {
        let names = template::secrets_in(text);
        for name in names.map_err(|TemplateError(why)| Unsent::Template(why))? {
            if found.contains_key(&name) {
                continue;
            }
            let opened = self.open_one(order, target, &name).await?;
            found.insert(name, opened);
        }
        Ok(())
    }
}

/// Puts what came of a template in its place.
fn put(
    order: &mut WorkOrder,
    (field, place): (&str, Place),
    rendered: String,
) -> Result<(), Unsent> {
    match place {
        Place::Body => order.payload = Some(Bytes::from(rendered)),
        Place::Path => {
            let path = PathAndQuery::try_from(rendered).map_err(|_| Unsent::Path)?;
            order.path = Some(path);
        }
        Place::Header => {
            let mut value = HeaderValue::from_str(&rendered).map_err(|_| Unsent::Value)?;
            value.set_sensitive(true);
            let is_it = |name: &http::HeaderName| field.strip_prefix(HEADER) == Some(name.as_str());
            let mut headers = order.headers.iter_mut().flatten();
            let header = headers.find(|(name, _)| is_it(name));
            if let Some((_, old)) = header {
                *old = value;
            }
        }
        Place::Env if rendered.contains('\0') => return Err(Unsent::Value),
        Place::Env => {
            let mut env = order.env.iter_mut().flatten();
            let named = field.split_once(ENV).map(|(_, named)| named);
            let variable = env.find(|(name, _)| named == Some(name.as_str()));
            if let Some((_, old)) = variable {
                *old = rendered;
            }
        }
    }
    Ok(())
}

/// What the field of a header begins with.
const HEADER: &str = "http.headers.";
/// What stands before the name of a variable.
const ENV: &str = ".env.";

/// Why an attempt was not sent.
enum Unsent {
    Missing(SecretName),
    Host(SecretName, String),
    Closed(SecretName, VaultError),
    Template(String),
    /// What came of it cannot stand in a header.
    Value,
    /// Nor in an address.
    Path,
}

impl Unsent {
    fn report(self, field: &str) -> Report {
        // Trying again helps where somebody may put it right meanwhile, or another node may have it.
        let (why, retry) = match self {
            Self::Missing(name) => (
                format!("there is no secret {name}: make it with punctual secret set {name}"),
                RetryHint::Usual,
            ),
            Self::Host(name, host) => (
                format!("the secret {name} may not be {host}: its hosts do not name it"),
                RetryHint::Never,
            ),
            Self::Closed(name, error) => (format!("the secret {name}: {error}"), RetryHint::Usual),
            Self::Template(why) => (why, RetryHint::Never),
            Self::Value => (
                "its value holds a line's end or another sign that cannot stand there".to_owned(),
                RetryHint::Never,
            ),
            Self::Path => (
                "what comes of it cannot stand in an address".to_owned(),
                RetryHint::Never,
            ),
        };
        let place = match (field.strip_prefix(HEADER), field.split_once(ENV)) {
            (Some(name), _) => format!("not sent, header {name}"),
            (None, Some((_, name))) => format!("not started, variable {name}"),
            (None, None) => format!("not sent, {}", field.trim_start_matches("http.")),
        };
        Report::failed(format!("{place}: {why}")).with_retry(retry)
    }
}
