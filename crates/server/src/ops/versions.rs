//! What a job was before: its versions, what changed with each, and the way back.

use std::sync::Arc;

use model::{Definition, Job, JobId, TenantId, Timestamp, Version};
use store::{JobVersion, Page};

use super::change::{Changed, Expect, Mode};
use super::draft::JobDraft;
use super::error::OpError;
use super::jobs;
use super::page::Listed;
use crate::access::Caller;
use crate::api::Api;

/// Versions of a page: each may have a payload.
const PAGE_MAX: usize = 20;

/// One version of a job, and the one before it.
#[derive(Debug, Clone, PartialEq)]
pub struct VersionOf {
    pub job: Arc<Job>,
    /// Who made it and when, as far as that is kept: of the first, when the job was created.
    pub made: Option<(Timestamp, Option<String>)>,
    /// None of the one that stands.
    pub ended: Option<(Timestamp, String)>,
    pub before: Option<Arc<Job>>,
}

impl VersionOf {
    fn new(job: Arc<Job>, ended: Option<(Timestamp, String)>, before: Option<&JobVersion>) -> Self {
        let made = match before {
            Some(before) => Some((before.ended_at, Some(before.ended_by.clone()))),
            None if job.version == Version::FIRST || ended.is_none() => {
                Some((job.created_at, None)).filter(|_| job.version == Version::FIRST)
            }
            None => None,
        };
        Self {
            job,
            made,
            ended,
            before: before.map(|before| Arc::clone(&before.job)),
        }
    }

    fn kept(kept: &JobVersion, before: Option<&JobVersion>) -> Self {
        let ended = (kept.ended_at, kept.ended_by.clone());
        Self::new(Arc::clone(&kept.job), Some(ended), before)
    }
}

/// Newest first; the one that stands comes first of all.
pub async fn list(
    api: &Api,
    tenant: TenantId,
    id: JobId,
    page: Page<Version>,
) -> Result<Listed<VersionOf, Version>, OpError> {
    let stands = Arc::new(jobs::get(api, tenant, id).await?);
    let limit = page.limit.min(PAGE_MAX);
    // One more than wanted: what changed is seen beside the one before.
    let wanted = Page {
        before: page.before,
        limit: limit + 1,
    };
    let kept = api.store.access().list_versions(tenant, id, wanted).await?;
    let mut items = Vec::with_capacity(limit + 1);
    if page.before.is_none() {
        items.push(VersionOf::new(stands, None, kept.first()));
    }
    for (at, version) in kept.iter().enumerate() {
        items.push(VersionOf::kept(version, kept.get(at + 1)));
    }
    let more = items.len() > limit;
    items.truncate(limit);
    let last = items.last().map(|it| it.job.version);
    Ok(Listed {
        items,
        next: last.filter(|_| more),
    })
}

/// The job as it was at a version.
pub async fn get(
    api: &Api,
    tenant: TenantId,
    id: JobId,
    version: Version,
) -> Result<VersionOf, OpError> {
    let stands = jobs::get(api, tenant, id).await?;
    let access = api.store.access();
    let before = |version: Version| Page {
        before: Some(version),
        limit: 1,
    };
    let kept = if version < stands.version {
        access.get_version(tenant, id, version).await?
    } else {
        None
    };
    let last = kept
        .as_ref()
        .map_or(stands.version, |kept| kept.job.version);
    let earlier = access.list_versions(tenant, id, before(last)).await?;
    // Pauses and the like have numbers too, and the definition of the next that is kept; but only where the one before is
    // kept as well is it known that nothing was changed between them.
    if version != last && (earlier.is_empty() || version > last) {
        return Err(OpError::VersionMissing(version));
    }
    Ok(match kept {
        Some(kept) => VersionOf::kept(&kept, earlier.first()),
        None => VersionOf::new(Arc::new(stands), None, earlier.first()),
    })
}

/// An edit that says what an earlier version said: its key and its whole definition.
pub async fn revert(
    api: &Api,
    caller: Caller,
    id: JobId,
    to: Version,
    how: (&Expect, Mode),
) -> Result<Changed, OpError> {
    let job = jobs::get(api, caller.tenant, id).await?;
    let old = get(api, caller.tenant, id, to).await?;
    let old = &old.job;
    jobs::edit(api, caller, job, &JobDraft::default(), how, |_, _| {
        Ok((old.key.clone(), Definition::clone(&old.def)))
    })
    .await
}
