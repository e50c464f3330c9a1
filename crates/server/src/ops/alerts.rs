//! Alert rules: what a client does to them. Who is to hear of what is done by the nodes (`engine/src/alerts.rs`); a rule's
//! deliveries are runs of a job of the system's, which is made and changed with it.

use std::sync::Arc;
use std::time::Duration;

use engine::alert_message::test_message;
use http::Uri;
use model::level::NeedsLevel;
use model::view::QueueRun;
use model::{
    Alert, AlertName, AlertState, Channel, Condition, Definition, Job, JobId, Lane, Level, Run,
    RunId, RunKind, Scope, TenantId, Timestamp, Version, limits,
};
use store::{
    AlertMoves, AlertPut, AlertsMoved, Created, JobChange, JobChanged, NewJob, Page, RunFilter,
    RunsOfChange,
};

use super::draft::{HttpDraft, JobDraft, KindDraft, Patch, RetryDraft, ScheduleDraft, TargetDraft};
use super::error::OpError;
use super::fault::{Fault, FieldError};
use super::page::{self, Listed};
use super::schedule::{Context, Known};
use super::{level, runs, target};
use crate::access::Caller;
use crate::api::Api;

/// How often a write looks again when others change the same.
const TRIES_MAX: u32 = 8;
/// How often a delivery is tried, and how long one try may take.
const ATTEMPTS: u32 = 10;
const TIMEOUT: Duration = Duration::from_secs(30);
/// Alerts of a rule that are shown with it.
const SHOWN_MAX: usize = 50;

/// What a client says about a rule. It is always the whole of it, but for the address, which stays if it is left out.
#[derive(Debug, Clone, PartialEq)]
pub struct AlertDraft {
    pub scope: Scope,
    pub condition: Condition,
    pub channel: Channel,
    /// As it was written, and as it is read.
    pub url: Option<(String, (Uri, Option<String>))>,
    pub recovered: bool,
    pub repeat: Option<Duration>,
    pub enabled: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum AlertFault {
    #[error("there is no alert {0}")]
    Missing(AlertName),
    #[error("there are {} alerts already", limits::ALERTS_MAX)]
    Full,
    #[error("the tenant of this key is gone")]
    NoTenant,
    #[error("{} deliveries of this alert are under way", limits::QUEUED_MOVING_MAX)]
    Busy,
}

/// A rule, and those of its alerts that are not over.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    pub alert: Alert,
    pub states: Vec<AlertState>,
}

pub async fn get(api: &Api, tenant: TenantId, name: &AlertName) -> Result<Alert, OpError> {
    let found = api.store.alerts().get_alert(tenant, name).await?;
    found.ok_or_else(|| AlertFault::Missing(name.clone()).into())
}

/// With its alerts, the first by job.
pub async fn show(api: &Api, tenant: TenantId, name: &AlertName) -> Result<Shown, OpError> {
    let alert = get(api, tenant, name).await?;
    let alerts = api.store.alerts();
    let states = alerts.alerts_of(tenant, name, None, SHOWN_MAX).await?;
    Ok(Shown { alert, states })
}

/// By name, and the name after which the next page begins.
pub async fn list(
    api: &Api,
    tenant: TenantId,
    after: Option<AlertName>,
    limit: usize,
) -> Result<(Vec<Alert>, Option<AlertName>), OpError> {
    let alerts = api.store.alerts();
    let mut items = alerts
        .list_alerts(tenant, after.as_ref(), limit + 1)
        .await?;
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|it| it.name.clone());
    Ok((items, next))
}

/// The rule of that name becomes what the draft says, whether it was there or not; and whether it is new.
pub async fn put(
    api: &Api,
    caller: Caller,
    name: &AlertName,
    draft: AlertDraft,
) -> Result<(Alert, bool), OpError> {
    let needs = NeedsLevel {
        level: Level::ALERTS,
        field: "on",
    };
    let tenant = caller.tenant;
    for _ in 0..TRIES_MAX {
        let stands = api.store.alerts().get_alert(tenant, name).await?;
        let now = api.engine.now();
        let given = draft.url.clone();
        let job = match (&stands, given.as_ref()) {
            (Some(stands), None) => stands.job,
            (Some(stands), Some((text, _))) if stands.url == *text => stands.job,
            (None, None) => {
                let detail = "url is missing: where the alert is to be sent";
                return Err(FieldError::new(Fault::Missing, "url", detail).into());
            }
            (stands, Some((_, url))) => {
                let def = channel(api, tenant, url.clone(), now).await?;
                level::check_level(api, needs).await?;
                level::check(api, &def).await?;
                put_channel(api, caller, stands.as_ref(), def, now).await?
            }
        };
        let url = given.map(|(text, _)| text);
        let kept = stands.as_ref().map(|stands| stands.url.clone());
        let before = stands.as_ref().map(|stands| stands.version);
        let alert = Alert {
            tenant,
            name: name.clone(),
            version: before.map_or(Version::FIRST, Version::next),
            scope: draft.scope.clone(),
            condition: draft.condition,
            channel: draft.channel,
            url: url.or(kept).unwrap_or_default(),
            job,
            recovered: draft.recovered,
            repeat: draft.repeat,
            enabled: draft.enabled,
            muted_until: stands.as_ref().and_then(|stands| stands.muted_until),
            created_at: stands.as_ref().map_or(now, |stands| stands.created_at),
            updated_at: now,
        };
        match write(api, &alert, before).await? {
            AlertPut::Done => return Ok((alert, before.is_none())),
            put @ (AlertPut::Conflict | AlertPut::Full | AlertPut::NoTenant) => {
                if before.is_none() {
                    delete_channel(api, caller, job).await?;
                }
                refuse(&put)?;
            }
        }
    }
    Err(OpError::Contended)
}

async fn write(api: &Api, alert: &Alert, before: Option<Version>) -> Result<AlertPut, OpError> {
    let put = api.store.alerts().put_alert(alert, before).await;
    put.map_err(OpError::Write)
}

/// What stands in the way for good.
fn refuse(put: &AlertPut) -> Result<(), AlertFault> {
    match put {
        AlertPut::Done | AlertPut::Conflict => Ok(()),
        AlertPut::Full => Err(AlertFault::Full),
        AlertPut::NoTenant => Err(AlertFault::NoTenant),
    }
}

/// What delivers to an address: a job that is never due by itself, whose runs the engine inserts.
async fn channel(
    api: &Api,
    tenant: TenantId,
    url: (Uri, Option<String>),
    now: Timestamp,
) -> Result<Definition, OpError> {
    let never = Timestamp::MAX.minus(Duration::from_secs(24 * 3_600));
    let draft = JobDraft {
        schedule: Patch::Set(ScheduleDraft {
            kind: Some(KindDraft::At(never)),
            ..ScheduleDraft::default()
        }),
        target: Patch::Set(TargetDraft::Http(Box::new(HttpDraft {
            url: Some(url),
            ..HttpDraft::default()
        }))),
        retry: Patch::Set(RetryDraft {
            attempts_max: Patch::Set(ATTEMPTS),
            ..RetryDraft::default()
        }),
        timeout: Patch::Set(TIMEOUT),
        lane: Patch::Set(Lane::Critical),
        ..JobDraft::default()
    };
    let context = Context {
        now,
        hash: 0,
        before: None,
        target: None,
        known: &Known::default(),
    };
    let def = draft.define(context).map_err(at_url)?;
    match target::check(api, tenant, &def).await {
        Err(OpError::Field(error)) => Err(at_url(error).into()),
        checked => checked.map(|()| def),
    }
}

/// A rule says no more of its target than the address.
fn at_url(error: FieldError) -> FieldError {
    FieldError {
        field: "url".to_owned(),
        ..error
    }
}

/// Makes the job that delivers, or changes the one that does.
async fn put_channel(
    api: &Api,
    caller: Caller,
    stands: Option<&Alert>,
    def: Definition,
    now: Timestamp,
) -> Result<JobId, OpError> {
    if let Some(stands) = stands {
        let changed = change_channel(api, stands.job, |job| {
            let actor = api.access.name(caller);
            let (after, skipped) = job.edited(job.key.clone(), def.clone(), now, &actor);
            (after, skipped, RunsOfChange::Keep)
        });
        if changed.await? {
            return Ok(stands.job);
        }
    }
    let id = JobId::new(now, rand::random());
    // Whose signature, secrets and proxy it is sent with.
    let owner = Some(Arc::from(caller.tenant.to_string()));
    let job = Job {
        owner,
        ..Job::new(id, TenantId::SYSTEM, None, def, now)
    };
    let new = NewJob {
        job: Arc::new(job),
        idempotency: None,
    };
    let created = api.store.create_jobs(&[new]).await;
    let created = created.map_err(OpError::Write)?.into_iter().next();
    match created {
        Some(Created::Done | Created::Repeated(_)) => Ok(id),
        Some(Created::QuotaExceeded(it)) => Err(OpError::QuotaExceeded(it)),
        Some(Created::Refused(why)) => Err(OpError::JobRefused { job: id, why }),
        Some(Created::Mismatch | Created::KeyTaken(_) | Created::CalendarMissing(_)) | None => {
            Err(OpError::Contended)
        }
    }
}

/// Whether there was one to change.
async fn change_channel(
    api: &Api,
    id: JobId,
    change: impl Fn(&Job) -> (Job, Vec<model::Skip>, RunsOfChange) + Send,
) -> Result<bool, OpError> {
    for _ in 0..TRIES_MAX {
        let Some(job) = api.store.get_job(TenantId::SYSTEM, id).await? else {
            return Ok(false);
        };
        let (after, skipped, runs) = change(&job);
        let change = JobChange {
            before: Arc::new(job),
            after: Arc::new(after),
            skipped,
            runs,
        };
        let changed = api.store.change_job(&change).await;
        match changed.map_err(OpError::Write)? {
            JobChanged::Done { .. } => return Ok(true),
            JobChanged::Missing => return Ok(false),
            JobChanged::QuotaExceeded(it) => return Err(OpError::QuotaExceeded(it)),
            JobChanged::Refused(why) => return Err(OpError::JobRefused { job: id, why }),
            JobChanged::Conflict(_) | JobChanged::KeyTaken(_) | JobChanged::CalendarMissing(_) => {}
        }
    }
    Err(OpError::Contended)
}

async fn delete_channel(api: &Api, caller: Caller, id: JobId) -> Result<(), OpError> {
    let now = api.engine.now();
    let actor = api.access.name(caller);
    let deleted = change_channel(api, id, |job| {
        let (after, skipped) = job.clone().deleted(now, &actor);
        (after, skipped, RunsOfChange::Cancel)
    });
    deleted.await.map(|_| ())
}

/// Deletes a rule with its alerts; deliveries that wait are cancelled. Answers it as it was.
pub async fn delete(api: &Api, caller: Caller, name: &AlertName) -> Result<Alert, OpError> {
    for _ in 0..TRIES_MAX {
        let alert = get(api, caller.tenant, name).await?;
        let alerts = api.store.alerts();
        let dropped = alerts.drop_alert(caller.tenant, name, alert.version).await;
        if dropped.map_err(OpError::Write)? {
            delete_channel(api, caller, alert.job).await?;
            return Ok(alert);
        }
    }
    Err(OpError::Contended)
}

/// Sends nothing until a moment, or again from now on.
pub async fn mute(
    api: &Api,
    tenant: TenantId,
    name: &AlertName,
    until: Option<Timestamp>,
) -> Result<Alert, OpError> {
    for _ in 0..TRIES_MAX {
        let stands = get(api, tenant, name).await?;
        let before = stands.version;
        let alert = Alert {
            muted_until: until,
            version: before.next(),
            updated_at: api.engine.now(),
            ..stands
        };
        let put = write(api, &alert, Some(before)).await?;
        if put == AlertPut::Done {
            return Ok(alert);
        }
        refuse(&put)?;
    }
    Err(OpError::Contended)
}

/// Sends something that says that it is a test, as an alert would be sent. Answers the run that delivers it.
pub async fn test(api: &Api, tenant: TenantId, name: &AlertName) -> Result<Run, OpError> {
    let alert = get(api, tenant, name).await?;
    let missing = || OpError::from(AlertFault::Missing(name.clone()));
    let job = api.store.get_job(TenantId::SYSTEM, alert.job).await?;
    let job = job.ok_or_else(missing)?;
    let now = api.engine.now();
    let id = RunId::of_request(job.id, now, rand::random());
    let run = Run {
        payload: Some(test_message(&alert, now)),
        ..Run::of_request(&job, id, RunKind::Manual, now)
    };
    let moves = AlertMoves {
        run: Some(QueueRun::alone(run.clone())),
        ..AlertMoves::default()
    };
    let moved = api.store.alerts().move_alerts(&moves).await;
    match moved.map_err(OpError::Write)? {
        AlertsMoved::Done => {
            api.engine.nudge_plan(TenantId::SYSTEM, job.id);
            Ok(run)
        }
        AlertsMoved::Full => Err(AlertFault::Busy.into()),
        AlertsMoved::Missing => Err(missing()),
        AlertsMoved::Stale => Err(OpError::Contended),
    }
}

/// The runs that deliver a rule's alerts, newest first.
pub async fn deliveries(
    api: &Api,
    tenant: TenantId,
    name: &AlertName,
    page: Page<RunId>,
) -> Result<Listed<Run, RunId>, OpError> {
    let alert = get(api, tenant, name).await?;
    let filter = RunFilter {
        job: Some(alert.job),
        ..RunFilter::default()
    };
    let read = |page| api.store.list_runs(TenantId::SYSTEM, &filter, page);
    Ok(page::fill(page, read, runs::weigh).await?)
}
