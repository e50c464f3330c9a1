//! What a client does to jobs.

use std::sync::Arc;

use model::job::Definition;
use model::{Job, JobId, JobKey, JobState, Reason, TenantId, Timestamp};
use store::{Created, Idempotency, JobFilter, NewJob, Page, RunsOfChange};

use super::build::Context;
use super::change::{self, Changed, Edit, Expect};
use super::draft::JobDraft;
use super::error::OpError;
use super::fault::FieldError;
use super::page::{self, Listed};
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
pub fn draw(tenant: TenantId, draft: JobDraft, now: Timestamp) -> Result<Arc<Job>, FieldError> {
    let id = JobId::new(now, rand::random());
    let key = draft.key.given().cloned();
    let def = draft.define(Context {
        now,
        hash: id.hash(),
        before: None,
    })?;
    Ok(Arc::new(Job::new(id, tenant, key, def, now)))
}

pub async fn create(
    api: &Api,
    tenant: TenantId,
    draft: JobDraft,
    idempotency: Option<Idempotency>,
) -> Result<Made, OpError> {
    let job = draw(tenant, draft, api.engine.now())?;
    let new = NewJob {
        job: Arc::clone(&job),
        idempotency,
    };
    let created = api.store.create_jobs(std::slice::from_ref(&new)).await?;
    match judge(created.into_iter().next(), &job)? {
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

/// Many at once; each is answered by itself, in order.
pub async fn create_many(
    api: &Api,
    news: Vec<NewJob>,
) -> Result<Vec<Result<(JobId, bool), OpError>>, OpError> {
    if news.is_empty() {
        return Ok(Vec::new());
    }
    let created = api.store.create_jobs(&news).await?;
    let mut count = 0;
    let mut answers = Vec::with_capacity(news.len());
    let mut created = created.into_iter();
    for new in &news {
        answers.push(
            judge(created.next(), &new.job).map(|written| match written {
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

fn judge(created: Option<Created>, job: &Job) -> Result<Written, OpError> {
    match created {
        // The id is ours: the store had written it and its first answer was lost.
        Some(Created::Repeated(id)) if id == job.id => Ok(Written::New),
        Some(Created::Done) => Ok(Written::New),
        Some(Created::Repeated(id)) => Ok(Written::Before(id)),
        Some(Created::Mismatch) => Err(OpError::IdempotencyMismatch),
        Some(Created::KeyTaken(holder)) => Err(OpError::KeyTaken(holder)),
        None => {
            let error = "the store answered fewer jobs than it was given";
            Err(store::StoreError::unavailable(error).into())
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
        .ok_or(OpError::JobMissing)
}

/// Newest first. A page holds `limit` jobs or fewer: large ones fill it sooner.
pub async fn list(
    api: &Api,
    tenant: TenantId,
    filter: &JobFilter,
    page: Page<JobId>,
) -> Result<Listed<Job, JobId>, OpError> {
    let read = |page| api.store.list_jobs(tenant, filter, page);
    let weigh = |job: &Job| {
        (
            job.id,
            job.def.payload.as_ref().map_or(0, bytes::Bytes::len),
        )
    };
    Ok(page::fill(page, read, weigh).await?)
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
    tenant: TenantId,
    key: &JobKey,
    mut draft: JobDraft,
    expect: &Expect,
) -> Result<Put, OpError> {
    match draft.key.given() {
        Some(given) if given != key => {
            let detail = format!("the body says {given}, the path says {key}: leave it out here");
            return Err(FieldError::invalid("key", detail).into());
        }
        Some(_) | None => draft.key = super::Patch::Set(key.clone()),
    }
    for _ in 0..PUT_TRIES_MAX {
        if let Some(job) = api.store.find_job(tenant, key).await? {
            match replace(api, tenant, job, &draft, expect).await {
                Err(OpError::JobMissing) => continue,
                changed => return changed.map(Put::Updated),
            }
        }
        match expect {
            Expect::Anything | Expect::Absent => {}
            Expect::Existing | Expect::OneOf(_) => {
                // Whoever sends nonsense hears about that first.
                draw(tenant, draft, api.engine.now())?;
                return Err(OpError::NothingToMatch);
            }
        }
        match create(api, tenant, draft.clone(), None).await {
            // Someone else made it meanwhile: look again.
            Err(OpError::KeyTaken(_)) => {}
            made => return made.map(|made| Put::Created(made.job)),
        }
    }
    Err(OpError::Contended)
}

async fn replace(
    api: &Api,
    tenant: TenantId,
    job: Job,
    draft: &JobDraft,
    expect: &Expect,
) -> Result<Changed, OpError> {
    edit(api, tenant, job, expect, |job, now| {
        let before = Some(&job.def.schedule);
        Ok((
            job.key.clone(),
            draft.clone().define(Context {
                now,
                hash: job.id.hash(),
                before,
            })?,
        ))
    })
    .await
}

/// Changes what the draft speaks of and nothing else.
pub async fn patch(
    api: &Api,
    tenant: TenantId,
    id: JobId,
    draft: JobDraft,
    expect: &Expect,
) -> Result<Changed, OpError> {
    let job = get(api, tenant, id).await?;
    edit(api, tenant, job, expect, |job, now| {
        let mut key = job.key.clone();
        draft.key.clone().put_option(&mut key);
        let context = Context {
            now,
            hash: job.id.hash(),
            before: None,
        };
        Ok((key, draft.clone().amend(&job.def, context)?))
    })
    .await
}

/// An edit that says what is so already writes nothing: neither version nor plan changes.
async fn edit(
    api: &Api,
    tenant: TenantId,
    job: Job,
    expect: &Expect,
    draw: impl Fn(&Job, Timestamp) -> Result<(Option<JobKey>, Definition), OpError> + Send + Sync,
) -> Result<Changed, OpError> {
    let changed = change::change(api, tenant, job, expect, |job, now| {
        let (key, def) = draw(job, now)?;
        if key == job.key && def == *job.def && job.state != JobState::Invalid {
            return Ok(None);
        }
        // What was due by the old schedule and had no turn yet does not vanish with it.
        let dropped = job.dropped_by(&def, now);
        let after = job.edited(key, def, now);
        Ok(Some(Edit {
            after,
            skipped: dropped.map(|stretch| (stretch, Reason::Missed)),
            runs: RunsOfChange::TakeBack,
        }))
    })
    .await?;
    if changed.written {
        api.engine.offer(&changed.job);
    }
    Ok(changed)
}

pub async fn delete(
    api: &Api,
    tenant: TenantId,
    job: Job,
    expect: &Expect,
) -> Result<Changed, OpError> {
    change::change(api, tenant, job, expect, |job, now| {
        Ok(Some(Edit {
            after: job.deleted(now),
            // What was due and had no turn yet does not vanish with its job.
            skipped: job
                .undecided(now)
                .map(|stretch| (stretch, Reason::JobDeleted)),
            runs: RunsOfChange::Cancel,
        }))
    })
    .await
}

/// Pausing what is paused changes nothing.
pub async fn pause(
    api: &Api,
    tenant: TenantId,
    id: JobId,
    note: Option<String>,
    expect: &Expect,
) -> Result<Changed, OpError> {
    let job = get(api, tenant, id).await?;
    change::change(api, tenant, job, expect, |job, now| match job.state {
        JobState::Paused => Ok(None),
        JobState::Active => {
            let after = job.paused(now, note.clone());
            Ok(Some(Edit {
                after,
                skipped: None,
                runs: RunsOfChange::TakeBack,
            }))
        }
        JobState::Finished | JobState::Invalid | JobState::Deleted => Err(OpError::JobState {
            state: job.state,
            verb: "paused",
        }),
    })
    .await
}

/// Goes on from now; the slots that passed meanwhile become one skipped stretch.
pub async fn resume(
    api: &Api,
    tenant: TenantId,
    id: JobId,
    expect: &Expect,
) -> Result<Changed, OpError> {
    let job = get(api, tenant, id).await?;
    let changed = change::change(api, tenant, job, expect, |job, now| match job.state {
        JobState::Active => Ok(None),
        JobState::Paused => {
            let (after, passed) = job.resumed(now);
            let skipped = passed.map(|stretch| (stretch, Reason::Paused));
            Ok(Some(Edit {
                after,
                skipped,
                runs: RunsOfChange::Keep,
            }))
        }
        JobState::Finished | JobState::Invalid | JobState::Deleted => Err(OpError::JobState {
            state: job.state,
            verb: "resumed",
        }),
    })
    .await?;
    if changed.written {
        api.engine.offer(&changed.job);
        api.engine.nudge_plan();
    }
    Ok(changed)
}
