//! What a client does to jobs.

use std::sync::Arc;

use model::job::Definition;
use model::{CalendarName, Job, JobId, JobKey, JobState, TenantId, Timestamp};
use store::{Created, Idempotency, JobFilter, NewJob, Page, RunsOfChange};

use super::calendars;
use super::change::{self, Changed, Edit, Expect, Mode};
use super::draft::JobDraft;
use super::error::OpError;
use super::fault::FieldError;
use super::level;
use super::page::{self, Listed};
use super::schedule::{self, Context, Known};
use super::target;
use crate::access::Caller;
use crate::api::Api;
use crate::metrics::Way;

/// How often a create-or-update looks again when others create and delete under the same key.
const PUT_TRIES_MAX: u32 = 8;

/// A job that was asked for, and whether an earlier request had made it.
#[derive(Debug, Clone, PartialEq)]
pub struct Made {
    pub job: Arc<Job>,
    pub repeated: bool,
}

/// A draft becomes a job that can be written: its id is chosen here, once.
pub fn build(
    tenant: TenantId,
    owner: &Arc<str>,
    draft: JobDraft,
    known: &Known,
    now: Timestamp,
) -> Result<Arc<Job>, FieldError> {
    let id = JobId::new(now, rand::random());
    let key = draft.key.given().cloned();
    let owner = draft.owner(Some(owner), owner);
    let def = draft.define(Context {
        now,
        hash: id.hash(),
        before: None,
        target: None,
        known,
    })?;
    let job = Job::new(id, tenant, key, def, now);
    Ok(Arc::new(Job { owner, ..job }))
}

pub async fn create(
    api: &Api,
    caller: Caller,
    draft: JobDraft,
    idempotency: Option<Idempotency>,
    mode: Mode,
) -> Result<Made, OpError> {
    let (tenant, name) = (caller.tenant, api.access.name(caller));
    let known = calendars::known(api, tenant, draft.calendars()).await?;
    let job = build(tenant, &name, draft, &known, api.engine.now())?;
    target::check(api, tenant, &job.def).await?;
    if mode == Mode::Dry {
        change::key_free(api, &job).await?;
        return Ok(Made {
            job,
            repeated: false,
        });
    }
    level::check(api, &job.def).await?;
    let new = NewJob {
        job: Arc::clone(&job),
        idempotency,
    };
    let created = api.store.create_jobs(std::slice::from_ref(&new)).await;
    let created = created.map_err(OpError::Write)?;
    match to_answer(created.into_iter().next(), &job)? {
        Written::New => {
            api.metrics.created(Way::Single, 1);
            api.engine.offer(&job);
            Ok(Made {
                job,
                repeated: false,
            })
        }
        Written::Before(id) => {
            let job = api
                .store
                .get_job(tenant, id)
                .await?
                .ok_or(OpError::JobGone(id))?;
            Ok(Made {
                job: Arc::new(job),
                repeated: true,
            })
        }
    }
}

/// One of many jobs, as far as it can be built by itself.
pub enum Built {
    Whole(NewJob),
    /// It names calendars, which are read for many at once.
    Named(Arc<str>, Box<JobDraft>, Option<Idempotency>),
}

impl Built {
    pub fn of(
        tenant: TenantId,
        owner: &Arc<str>,
        draft: JobDraft,
        idempotency: Option<Idempotency>,
        now: Timestamp,
    ) -> Result<Self, FieldError> {
        if draft.calendars().next().is_some() {
            return Ok(Self::Named(Arc::clone(owner), Box::new(draft), idempotency));
        }
        let job = build(tenant, owner, draft, &Known::default(), now)?;
        Ok(Self::Whole(NewJob { job, idempotency }))
    }

    fn calendars(&self) -> impl Iterator<Item = &CalendarName> {
        let draft = match self {
            Self::Whole(_) => None,
            Self::Named(_, draft, _) => Some(draft),
        };
        draft.into_iter().flat_map(|draft| draft.calendars())
    }

    fn finish(self, tenant: TenantId, known: &Known, now: Timestamp) -> Result<NewJob, FieldError> {
        match self {
            Self::Whole(new) => Ok(new),
            Self::Named(owner, draft, idempotency) => Ok(NewJob {
                job: build(tenant, &owner, *draft, known, now)?,
                idempotency,
            }),
        }
    }
}

/// Many at once; each is answered by itself, in order.
pub async fn create_many(
    api: &Api,
    tenant: TenantId,
    built: Vec<Built>,
) -> Result<Vec<Result<(JobId, bool), OpError>>, OpError> {
    let known = calendars::known(api, tenant, built.iter().flat_map(Built::calendars)).await?;
    let now = api.engine.now();
    let mut news = Vec::with_capacity(built.len());
    let mut refused = Vec::new();
    for (index, built) in built.into_iter().enumerate() {
        match finish(api, built, tenant, &known, now).await {
            Ok(new) => news.push(new),
            Err(error) => refused.push((index, error)),
        }
    }
    let mut answers = write_many(api, &news).await?;
    // In order of their places, so that each is right when its turn comes.
    for (index, error) in refused {
        answers.insert(index, Err(error));
    }
    Ok(answers)
}

async fn finish(
    api: &Api,
    built: Built,
    tenant: TenantId,
    known: &Known,
    now: Timestamp,
) -> Result<NewJob, OpError> {
    let new = built.finish(tenant, known, now)?;
    target::check(api, tenant, &new.job.def).await?;
    level::check(api, &new.job.def).await?;
    Ok(new)
}

async fn write_many(
    api: &Api,
    news: &[NewJob],
) -> Result<Vec<Result<(JobId, bool), OpError>>, OpError> {
    if news.is_empty() {
        return Ok(Vec::new());
    }
    let created = api.store.create_jobs(news).await;
    let created = created.map_err(OpError::Write)?;
    let mut count = 0;
    let mut answers = Vec::with_capacity(news.len());
    let mut created = created.into_iter();
    for new in news {
        answers.push(
            to_answer(created.next(), &new.job).map(|written| match written {
                Written::New => {
                    count += 1;
                    api.engine.offer(&new.job);
                    (new.job.id, false)
                }
                Written::Before(id) => (id, true),
            }),
        );
    }
    api.metrics.created(Way::Batch, count);
    Ok(answers)
}

enum Written {
    New,
    Before(JobId),
}

fn to_answer(created: Option<Created>, job: &Job) -> Result<Written, OpError> {
    match created {
        // The id is ours: the store had written it and its first answer was lost.
        Some(Created::Repeated(id)) if id == job.id => Ok(Written::New),
        Some(Created::Done) => Ok(Written::New),
        Some(Created::Repeated(id)) => Ok(Written::Before(id)),
        Some(Created::Mismatch) => Err(OpError::IdempotencyMismatch),
        Some(Created::KeyTaken(holder)) => Err(OpError::KeyTaken(holder)),
        Some(Created::CalendarMissing(name)) => {
            Err(schedule::calendar_gone(&job.def.schedule, &name).into())
        }
        Some(Created::QuotaExceeded(it)) => Err(OpError::QuotaExceeded(it)),
        Some(Created::Refused(why)) => Err(OpError::JobRefused { job: job.id, why }),
        None => {
            let error = "the store answered fewer jobs than it was given";
            Err(OpError::Write(store::StoreError::unavailable(error)))
        }
    }
}

pub async fn get(api: &Api, tenant: TenantId, id: JobId) -> Result<Job, OpError> {
    api.store
        .get_job(tenant, id)
        .await?
        .ok_or(OpError::JobMissing)
}

pub async fn find(api: &Api, tenant: TenantId, key: &JobKey) -> Result<Job, OpError> {
    api.store
        .find_job(tenant, key)
        .await?
        .ok_or_else(|| OpError::KeyMissing(key.clone()))
}

/// Newest first. A page holds `limit` jobs or fewer: large ones fill it sooner.
pub async fn list(
    api: &Api,
    tenant: TenantId,
    filter: &JobFilter,
    page: Page<JobId>,
) -> Result<Listed<Job, JobId>, OpError> {
    let read = |page| api.store.list_jobs(tenant, filter, page);
    Ok(page::fill(page, read, weigh).await?)
}

fn weigh(job: &Job) -> (JobId, usize) {
    let payload = job.def.payload.as_ref();
    (job.id, payload.map_or(0, bytes::Bytes::len))
}

/// What a create-or-update came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Put {
    Created(Arc<Job>),
    Updated(Changed),
}

/// The job of that key becomes what the draft says, whether it was there or not.
pub async fn put(
    api: &Api,
    caller: Caller,
    key: &JobKey,
    mut draft: JobDraft,
    expect: &Expect,
    mode: Mode,
) -> Result<Put, OpError> {
    match draft.key.given() {
        Some(given) if given != key => {
            let detail = format!("the body says {given}, the path says {key}: leave it out here");
            return Err(FieldError::invalid("key", detail).into());
        }
        Some(_) | None => draft.key = super::Patch::Set(key.clone()),
    }
    let (tenant, name) = (caller.tenant, api.access.name(caller));
    for _ in 0..PUT_TRIES_MAX {
        if let Some(job) = api.store.find_job(tenant, key).await? {
            match replace(api, caller, job, &draft, expect, mode).await {
                Err(OpError::JobMissing) => continue,
                changed => return changed.map(Put::Updated),
            }
        }
        match expect {
            Expect::Anything | Expect::Absent => {}
            Expect::Existing | Expect::OneOf(_) => {
                // Whoever sends nonsense hears about that first.
                let known = calendars::known(api, tenant, draft.calendars()).await?;
                build(tenant, &name, draft, &known, api.engine.now())?;
                return Err(OpError::NothingToMatch);
            }
        }
        match create(api, caller, draft.clone(), None, mode).await {
            // Someone else made it meanwhile: look again.
            Err(OpError::KeyTaken(_)) => {}
            made => return made.map(|made| Put::Created(made.job)),
        }
    }
    Err(OpError::Contended)
}

async fn replace(
    api: &Api,
    caller: Caller,
    job: Job,
    draft: &JobDraft,
    expect: &Expect,
    mode: Mode,
) -> Result<Changed, OpError> {
    let known = calendars::known(api, caller.tenant, draft.calendars()).await?;
    edit(api, caller, job, draft, (expect, mode), |job, now| {
        let before = Some(&job.def.schedule);
        Ok((
            job.key.clone(),
            draft.clone().define(Context {
                now,
                hash: job.id.hash(),
                before,
                target: Some(&job.def.target),
                known: &known,
            })?,
        ))
    })
    .await
}

/// Changes what the draft speaks of and nothing else.
pub async fn patch(
    api: &Api,
    caller: Caller,
    id: JobId,
    draft: JobDraft,
    expect: &Expect,
    mode: Mode,
) -> Result<Changed, OpError> {
    let job = get(api, caller.tenant, id).await?;
    let known = calendars::known(api, caller.tenant, draft.calendars()).await?;
    edit(api, caller, job, &draft, (expect, mode), |job, now| {
        let mut key = job.key.clone();
        draft.key.clone().put_option(&mut key);
        let context = Context {
            now,
            hash: job.id.hash(),
            before: None,
            target: None,
            known: &known,
        };
        Ok((key, draft.clone().amend(&job.def, context)?))
    })
    .await
}

/// An edit that says what is so already writes nothing: neither version nor plan changes.
pub(super) async fn edit(
    api: &Api,
    caller: Caller,
    job: Job,
    draft: &JobDraft,
    (expect, mode): (&Expect, Mode),
    build: impl Fn(&Job, Timestamp) -> Result<(Option<JobKey>, Definition), OpError> + Send + Sync,
) -> Result<Changed, OpError> {
    let name = api.access.name(caller);
    let changed = change::change(api, caller.tenant, job, expect, mode, |job, now| {
        let (key, def) = build(job, now)?;
        let owner = draft.owner(job.owner.as_ref(), &name);
        let is_same = key == job.key && owner == job.owner;
        if is_same && def == *job.def && job.state != JobState::Invalid {
            return Ok(None);
        }
        let mut edited = job.edited(key, def, now, &name);
        edited.0.owner = owner;
        if edited.0.def.schedule != job.def.schedule {
            schedule::check_once(&edited.0, now)?;
        }
        Ok(Some(Edit::new(edited, RunsOfChange::TakeBack)))
    })
    .await?;
    if changed.written {
        api.engine.offer(&changed.job);
    }
    Ok(changed)
}

pub async fn delete(
    api: &Api,
    caller: Caller,
    job: Job,
    expect: &Expect,
) -> Result<Changed, OpError> {
    let (tenant, name) = (caller.tenant, api.access.name(caller));
    change::change(api, tenant, job, expect, Mode::Write, |job, now| {
        let deleted = job.deleted(now, &name);
        Ok(Some(Edit::new(deleted, RunsOfChange::Cancel)))
    })
    .await
}

fn refuse(job: &Job, verb: &'static str) -> OpError {
    OpError::JobState {
        state: job.state,
        verb,
    }
}

/// Pausing what is paused changes nothing.
pub async fn pause(
    api: &Api,
    caller: Caller,
    id: JobId,
    note: Option<String>,
    expect: &Expect,
) -> Result<Changed, OpError> {
    let (tenant, name) = (caller.tenant, api.access.name(caller));
    let job = get(api, tenant, id).await?;
    change::change(
        api,
        tenant,
        job,
        expect,
        Mode::Write,
        |job, now| match job.state {
            JobState::Paused => Ok(None),
            JobState::Active => {
                let paused = job.paused(now, note.clone(), &name);
                Ok(Some(Edit::new(paused, RunsOfChange::TakeBack)))
            }
            JobState::Finished | JobState::Invalid | JobState::Deleted => {
                Err(refuse(job, "paused"))
            }
        },
    )
    .await
}

/// Goes on from now, and the slots that passed meanwhile become one skipped stretch; or from where the
/// pause began, and the catch-up policy decides about them.
pub async fn resume(
    api: &Api,
    caller: Caller,
    id: JobId,
    catch_up: bool,
    expect: &Expect,
) -> Result<Changed, OpError> {
    let (tenant, name) = (caller.tenant, api.access.name(caller));
    let job = get(api, tenant, id).await?;
    let changed = change::change(
        api,
        tenant,
        job,
        expect,
        Mode::Write,
        |job, now| match job.state {
            JobState::Active => Ok(None),
            JobState::Paused => {
                let resumed = job.resumed(now, catch_up, &name);
                Ok(Some(Edit::new(resumed, RunsOfChange::Keep)))
            }
            JobState::Finished | JobState::Invalid | JobState::Deleted => {
                Err(refuse(job, "resumed"))
            }
        },
    )
    .await?;
    if changed.written {
        api.engine.nudge_plan(tenant, changed.job.id);
    }
    Ok(changed)
}
