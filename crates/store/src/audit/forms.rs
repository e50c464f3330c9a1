//! What entries say of before and after: JSON with secrets masked. A payload is named by its size and its digest.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;

use model::hex::to_hex;
use model::target::HttpTarget;
use model::{
    AccessKey, Alert, ConsoleLink, Definition, Holder, Job, JobId, JobState, KeyId, Level,
    QueueName, Quota, Role, Run, Secret, SecretName, Session, SigningId, Target, Tenant, TenantId,
    User, mask,
};
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{Action, DroppedSeals};
use crate::Replay;
use crate::doc::{self, DocError};

/// A change that is to be entered, but for who made it and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub tenant: TenantId,
    pub action: Action,
    pub subject: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

/// The definition as it may be shown; none if that is as it is stored.
fn masked(def: &Definition) -> Option<Definition> {
    let http = match &def.target {
        Target::Http(http) => http,
        Target::Shell(_) | Target::Python(_) => return masked_program(def),
    };
    let url = mask::shown_url(&http.url);
    let mut is_plain = url == http.url.to_string();
    let mut headers = Vec::with_capacity(http.headers.len());
    for (name, value) in &http.headers {
        let text = value.to_str().unwrap_or_default();
        let shown = mask::shown_header(name.as_str(), text);
        is_plain &= shown == text;
        // One that could not be written is left out.
        headers.extend(shown.parse().ok().map(|value| (name.clone(), value)));
    }
    let path = http.path.as_deref().map(mask::shown_path);
    is_plain &= path == http.path;
    if is_plain {
        return None;
    }
    let target = HttpTarget {
        // An address that cannot be read with its mask is left out.
        url: url.parse().unwrap_or_default(),
        path,
        headers,
        ..http.clone()
    };
    Some(Definition {
        target: Target::Http(target),
        payload: None,
        ..def.clone()
    })
}

fn masked_program(def: &Definition) -> Option<Definition> {
    let mut target = def.target.clone();
    for (name, value) in &mut target.program_mut()?.env {
        *value = mask::shown_env(name, value).into_owned();
    }
    (target != def.target).then(|| Definition {
        target,
        payload: None,
        ..def.clone()
    })
}

#[derive(Serialize)]
struct PayloadForm {
    bytes: usize,
    sha256: String,
}

impl PayloadForm {
    fn of(payload: &[u8]) -> Self {
        Self {
            bytes: payload.len(),
            sha256: to_hex(&Sha256::digest(payload)),
        }
    }
}

/// One field of an object that is written by hand: most of it is JSON already.
fn field(text: &mut String, name: &str, value: &(impl Serialize + ?Sized)) {
    // What is written here can always be written; an entry without it is better than none.
    if let Ok(value) = serde_json::to_string(value) {
        raw_field(text, name, &value);
    }
}

fn raw_field(text: &mut String, name: &str, json: &str) {
    text.push(if text.is_empty() { '{' } else { ',' });
    text.push('"');
    text.push_str(name);
    text.push_str("\":");
    text.push_str(json);
}

/// A job, with its definition if that is wanted.
fn job_form(job: &Job, stored: Option<&[u8]>) -> String {
    let mut text = String::with_capacity(128 + stored.map_or(0, <[u8]>::len));
    field(&mut text, "version", &job.version.0);
    field(&mut text, "state", job.state.as_str());
    if let Some(key) = &job.key {
        field(&mut text, "key", key.as_str());
    }
    if let Some(owner) = &job.owner {
        field(&mut text, "owner", &**owner);
    }
    if let Some(note) = &job.note {
        field(&mut text, "note", note);
    }
    if let Some(stored) = stored {
        raw_field(&mut text, "definition", &String::from_utf8_lossy(stored));
        if let Some(payload) = &job.def.payload {
            field(&mut text, "payload", &PayloadForm::of(payload));
        }
    }
    text.push('}');
    text
}

/// The definition as an entry has it: as it is stored, unless there is something to mask.
fn definition<'a>(job: &Job, stored: Option<&'a [u8]>) -> Result<Cow<'a, [u8]>, DocError> {
    match (masked(&job.def), stored) {
        (None, Some(stored)) => Ok(Cow::Borrowed(stored)),
        (None, None) => doc::encode_definition(job.id, &job.def).map(Cow::Owned),
        (Some(masked), _) => doc::encode_definition(job.id, &masked).map(Cow::Owned),
    }
}

/// What a change of a job was, as far as two of its states say so.
fn action_of(before: &Job, after: &Job) -> Action {
    use JobState::{Active, Deleted, Finished, Invalid, Paused};
    let edited = is_edited(before, after) || before.owner != after.owner;
    match (before.state, after.state) {
        (_, Deleted) => Action::JobDelete,
        (_, _) if edited => Action::JobEdit,
        (Active | Finished | Invalid | Deleted, Paused) => Action::JobPause,
        (Paused, Active | Finished) => Action::JobResume,
        (Active | Paused | Finished | Deleted, Invalid) => Action::JobInvalid,
        (Active, Finished) => Action::JobFinish,
        (Paused, Paused) | (Invalid, Invalid) => Action::JobEdit,
        (Active | Finished | Invalid | Deleted, Active)
        | (Finished | Invalid | Deleted, Finished) => Action::JobReschedule,
    }
}

/// Whether a job has another key or another definition than before.
pub(crate) fn is_edited(before: &Job, after: &Job) -> bool {
    before.key != after.key || !same_definition(before, after)
}

/// Whether two states of a job have one definition. Calendars are named by it, and are no part of it.
fn same_definition(before: &Job, after: &Job) -> bool {
    if Arc::ptr_eq(&before.def, &after.def) || before.def == after.def {
        return true;
    }
    let stored = |job: &Job| doc::encode_definition(job.id, &job.def).ok();
    before.def.payload == after.def.payload && stored(before) == stored(after)
}

/// Whether a job that was active has come to an end that is entered: a one-off says so by its run.
pub(crate) fn is_end(job: &Job) -> bool {
    match job.state {
        JobState::Invalid => true,
        JobState::Finished => job.def.schedule.is_recurring(),
        JobState::Active | JobState::Paused | JobState::Deleted => false,
    }
}

impl Change {
    fn new(tenant: TenantId, action: Action, subject: impl Display) -> Self {
        Self {
            tenant,
            action,
            subject: subject.to_string(),
            before: None,
            after: None,
        }
    }

    fn with(self, before: Option<String>, after: Option<String>) -> Self {
        Self {
            before,
            after,
            ..self
        }
    }

    /// A new job, with its stored form.
    pub(crate) fn job_created(job: &Job, stored: &[u8]) -> Self {
        let def = definition(job, Some(stored)).ok();
        let after = job_form(job, def.as_deref());
        Self::new(job.tenant, Action::JobCreate, job.id).with(None, Some(after))
    }

    /// A job as it was and as it is; the definition is shown where it is another.
    pub(crate) fn job_changed(before: &Job, after: &Job) -> Self {
        let action = action_of(before, after);
        let same = same_definition(before, after);
        let show = |job: &Job| {
            let def = (!same).then(|| definition(job, None).ok()).flatten();
            job_form(job, def.as_deref())
        };
        Self::new(after.tenant, action, after.id).with(Some(show(before)), Some(show(after)))
    }

    /// A job that came into another state by itself.
    pub(crate) fn job_moved(
        tenant: TenantId,
        job: JobId,
        state: JobState,
        note: Option<&str>,
    ) -> Self {
        let action = match state {
            JobState::Invalid => Action::JobInvalid,
            JobState::Finished => Action::JobFinish,
            JobState::Active | JobState::Paused | JobState::Deleted => Action::JobReschedule,
        };
        let after = json!({ "state": state.as_str(), "note": note });
        Self::new(tenant, action, job).with(None, Some(after.to_string()))
    }

    /// A run that somebody started; the payload it carries is named as that of a job is.
    pub(crate) fn run_started(run: &Run) -> Self {
        let action = match run.replay_of {
            Some(_) => Action::RunReplay,
            None => Action::RunStart,
        };
        let payload = run.payload.as_ref().map(|payload| {
            let sha256 = to_hex(&Sha256::digest(payload));
            json!({ "bytes": payload.len(), "sha256": sha256 })
        });
        let after = json!({
            "run": run.id.to_string(),
            "replay_of": run.replay_of.map(|id| id.to_string()),
            "payload": payload,
        });
        Self::new(run.tenant, action, run.job).with(None, Some(after.to_string()))
    }

    pub(crate) fn run_cancelled(tenant: TenantId, job: JobId, run: model::RunId) -> Self {
        let after = json!({ "run": run.to_string() });
        Self::new(tenant, Action::RunCancel, job).with(None, Some(after.to_string()))
    }

    pub(crate) fn run_woken(tenant: TenantId, job: JobId, run: model::RunId) -> Self {
        let after = json!({ "run": run.to_string() });
        Self::new(tenant, Action::RunWake, job).with(None, Some(after.to_string()))
    }

    /// What is wanted in bulk: a payload is named as that of a job is.
    pub(crate) fn replay_created(replay: &Replay) -> Self {
        let mut text = String::new();
        if let Ok(work) = doc::encode_replay(&replay.work) {
            raw_field(&mut text, "work", &String::from_utf8_lossy(&work));
        }
        field(&mut text, "rate", &replay.rate);
        field(&mut text, "limit", &replay.limit);
        if let Some(payload) = replay.payload() {
            field(&mut text, "payload", &PayloadForm::of(payload));
        }
        text.push('}');
        Self::new(replay.tenant, Action::ReplayCreate, replay.id).with(None, Some(text))
    }

    pub(crate) fn replay_ended(replay: &Replay) -> Self {
        let it = &replay.progress;
        let after = json!({
            "state": it.state.as_str(),
            "started": it.started,
            "skipped": it.skipped,
            "note": it.note,
        });
        Self::new(replay.tenant, Action::ReplayEnd, replay.id).with(None, Some(after.to_string()))
    }

    /// A calendar by its stored forms.
    pub(crate) fn calendar(
        tenant: TenantId,
        name: &model::CalendarName,
        before: Option<&[u8]>,
        after: Option<&[u8]>,
    ) -> Self {
        let action = match (before, after) {
            (None, _) => Action::CalendarCreate,
            (Some(_), Some(_)) => Action::CalendarEdit,
            (Some(_), None) => Action::CalendarDelete,
        };
        let show = |stored: &[u8]| String::from_utf8_lossy(stored).into_owned();
        Self::new(tenant, action, name.as_str()).with(before.map(show), after.map(show))
    }

    /// A rule as it was and as it is; its address is shown as that of a job is.
    pub(crate) fn alert(before: Option<&Alert>, after: Option<&Alert>) -> Self {
        let action = match (before, after) {
            (None, _) => Action::AlertCreate,
            (Some(_), Some(_)) => Action::AlertEdit,
            (Some(_), None) => Action::AlertDelete,
        };
        let show = |alert: &Alert| {
            let url = alert.shown_url();
            let shown = doc::encode_alert(&Alert {
                url,
                ..alert.clone()
            });
            shown
                .ok()
                .map(|it| String::from_utf8_lossy(&it).into_owned())
        };
        let of = before.or(after);
        let tenant = of.map_or(TenantId::DEFAULT, |alert| alert.tenant);
        let name = of.map_or("", |alert| alert.name.as_str());
        Self::new(tenant, action, name).with(before.and_then(show), after.and_then(show))
    }

    pub(crate) fn key_created(key: &AccessKey) -> Self {
        let after = json!({
            "role": key.role.as_str(),
            "label": key.label,
            "expires_at": key.expires_at.map(|at| at.to_string()),
            "queues": key.queues.iter().map(QueueName::as_str).collect::<Vec<_>>(),
        });
        Self::new(key.tenant, Action::KeyCreate, key.id).with(None, Some(after.to_string()))
    }

    pub(crate) fn key_revoked(tenant: TenantId, key: KeyId) -> Self {
        Self::new(tenant, Action::KeyRevoke, key)
    }

    /// A tenant as it was and as it is. It is named by its id: a name may come again.
    pub(crate) fn tenant(before: Option<&Tenant>, after: Option<&Tenant>) -> Option<Self> {
        let action = match (before, after) {
            (None, _) => Action::TenantCreate,
            (Some(_), Some(_)) => Action::TenantEdit,
            (Some(_), None) => Action::TenantDelete,
        };
        let show = |tenant: &Tenant| tenant_form(tenant);
        let id = before.or(after)?.id;
        Some(Self::new(id, action, id).with(before.map(show), after.map(show)))
    }

    pub(crate) fn level_raised(to: Level) -> Self {
        let after = json!({ "level": to.0 });
        Self::new(TenantId::DEFAULT, Action::LevelRaise, "level")
            .with(None, Some(after.to_string()))
    }

    /// A secret, without what is secret of it.
    pub(crate) fn secret_put(secret: &Secret) -> Self {
        if let Some(id) = SigningId::of(secret) {
            let after = json!({ "id": id.to_string() });
            let change = Self::new(secret.tenant, Action::SigningCreate, secret.name.as_str());
            return change.with(None, Some(after.to_string()));
        }
        if secret.name.is_of_proxy() {
            return Self::proxy(secret.tenant, secret.note.as_deref());
        }
        let hosts: Vec<String> = secret.hosts.iter().map(ToString::to_string).collect();
        let after = json!({
            "version": secret.version,
            "hosts": hosts,
            "note": secret.note,
        });
        Self::new(secret.tenant, Action::SecretPut, secret.name.as_str())
            .with(None, Some(after.to_string()))
    }

    /// What a tenant's callbacks go through from now on, as far as it is shown.
    fn proxy(tenant: TenantId, shown: Option<&str>) -> Self {
        let after = json!({ "proxy": shown });
        Self::new(tenant, Action::TenantEdit, tenant).with(None, Some(after.to_string()))
    }

    pub(crate) fn secret_dropped(tenant: TenantId, name: &SecretName) -> Self {
        if name.is_of_proxy() {
            return Self::proxy(tenant, None);
        }
        let action = match name.place() {
            Some(_) => Action::SigningDelete,
            None => Action::SecretDelete,
        };
        Self::new(tenant, action, name.as_str())
    }

    /// Secrets that are under another master key since; none if there are none.
    pub(crate) fn secrets_rewrapped(secrets: &[Secret], written: usize) -> Option<Self> {
        let key = &secrets.first().filter(|_| written > 0)?.sealed.master_key;
        let after = json!({ "secrets": written });
        let change = Self::new(TenantId::DEFAULT, Action::SecretRewrap, key);
        Some(change.with(None, Some(after.to_string())))
    }

    /// A user as it was and as it is, entered with each tenant that it belongs to or did: what it may do elsewhere is not
    /// said there.
    pub(crate) fn user(before: Option<&User>, after: Option<&User>) -> Vec<Self> {
        let action = match (before, after) {
            (None, _) => Action::UserCreate,
            (Some(_), Some(_)) => Action::UserEdit,
            (Some(_), None) => Action::UserDelete,
        };
        let Some(id) = before.or(after).map(|user| user.id) else {
            return Vec::new();
        };
        let both = before.into_iter().chain(after);
        let members = both.flat_map(|user| &user.members);
        let tenants: BTreeSet<TenantId> = members.map(|member| member.tenant).collect();
        let password_is_new = before
            .zip(after)
            .is_some_and(|(before, after)| before.password != after.password);
        let show = |user: &User, tenant, is_new: bool| {
            let role = user.role_in(tenant).map(Role::as_str);
            let mut form = json!({ "name": user.name.as_str(), "role": role });
            if is_new {
                form["password"] = "changed".into();
            }
            form.to_string()
        };
        let entry = |tenant| {
            let before = before.map(|user| show(user, tenant, false));
            let after = after.map(|user| show(user, tenant, password_is_new));
            Self::new(tenant, action, id).with(before, after)
        };
        tenants.into_iter().map(entry).collect()
    }

    pub(crate) fn logged_in(session: &Session) -> Self {
        Self::of_session(session, Action::UserLogin)
    }

    pub(crate) fn logged_out(session: &Session) -> Self {
        Self::of_session(session, Action::UserLogout)
    }

    fn of_session(session: &Session, action: Action) -> Self {
        match session.holder {
            Holder::User(user) => Self::new(session.tenant, action, user),
            Holder::Key(key) => Self::new(session.tenant, action, key),
        }
    }

    /// A link that logs in whoever opens it, as the holder of a key.
    pub(crate) fn link_made(link: &ConsoleLink) -> Self {
        let after = json!({ "expires_at": link.expires_at.to_string() });
        Self::new(link.tenant, Action::UserLink, link.key).with(None, Some(after.to_string()))
    }

    /// Sealed segments that were kept long enough. What follows is chained to the last of them.
    pub(crate) fn audit_dropped(said: &DroppedSeals) -> Self {
        // It can always be written: it is numbers and texts.
        let before = serde_json::to_string(said).ok();
        Self::new(TenantId::DEFAULT, Action::AuditDrop, said.segments.last).with(before, None)
    }

    /// Entries that were kept long enough, and never sealed; none if there are none.
    pub(crate) fn unsealed_dropped(seqs: &[u64]) -> Option<Self> {
        let (first, last) = (seqs.iter().min()?, seqs.iter().max()?);
        let before = json!({
            "entries": { "first": first, "last": last },
            "count": seqs.len(),
        });
        let change = Self::new(TenantId::DEFAULT, Action::AuditDrop, "unsealed");
        Some(change.with(Some(before.to_string()), None))
    }
}

fn tenant_form(tenant: &Tenant) -> String {
    let mut form = json!({ "name": tenant.name.as_str(), "note": tenant.note });
    for quota in Quota::ALL {
        if let Some(max) = tenant.quotas.said(quota) {
            form["quotas"][quota.as_str()] = max.into();
        }
    }
    if let Some(at) = tenant.deleting_at {
        form["deleting_at"] = at.to_string().into();
    }
    form.to_string()
}
