//! Create and change: what clients do to jobs.

use std::sync::Arc;

use model::{Job, JobId, JobKey, JobState, QuotaExceeded, TenantId, Usage};

use super::state::{Request, State};
use crate::audit::Change;
use crate::{Created, JobChange, JobChanged, JobFilter, NewJob, Page, doc};

/// Why no store that writes could keep a job, if so.
fn cannot_be_kept(job: &Job) -> Option<String> {
    let encoded = doc::encode_definition(job.id, &job.def);
    encoded.err().map(|error| error.to_string())
}

impl State {
    pub(super) fn create_job(&mut self, new: &NewJob) -> Created {
        let job = &new.job;
        if let Some(why) = cannot_be_kept(job) {
            return Created::Refused(why);
        }
        if let Some(idempotency) = &new.idempotency
            && let Some(before) = self.requests.get(&(job.tenant, idempotency.key.clone()))
        {
            return if before.digest == idempotency.digest {
                Created::Repeated(before.job)
            } else {
                Created::Mismatch
            };
        }
        if self.jobs.contains_key(&job.id) {
            // The id was chosen before the first try: its answer was lost.
            return Created::Repeated(job.id);
        }
        if let Some(other) = self.holder_of_key(job).filter(|other| *other != job.id) {
            return Created::KeyTaken(other);
        }
        if let Some(name) = self.calendar_missing(job) {
            return Created::CalendarMissing(name);
        }
        if let Err(exceeded) = self.count(job.tenant, Usage::default(), Usage::by(job)) {
            return Created::QuotaExceeded(exceeded);
        }
        if let Some(idempotency) = &new.idempotency {
            let request = Request {
                digest: idempotency.digest,
                job: job.id,
                at: job.created_at,
            };
            self.requests
                .insert((job.tenant, idempotency.key.clone()), request);
        }
        if let Ok(stored) = doc::encode_definition(job.id, &job.def) {
            self.audit(Change::job_created(job, &stored));
        }
        self.put_job(Job::clone(job));
        Created::Done
    }

    pub(super) fn change_job(&mut self, change: &JobChange) -> JobChanged {
        let JobChange { before, after, .. } = change;
        if let Some(why) = cannot_be_kept(after) {
            return JobChanged::Refused(why);
        }
        let job = self.jobs.get(&before.id).map(|job| &**job);
        match change.stands(job) {
            None => return JobChanged::Missing,
            Some(false) => {
                let job = job.unwrap_or(before);
                return JobChanged::Conflict(Box::new(job.clone()));
            }
            Some(true) => {}
        }
        if let Some(other) = self.holder_of_key(after).filter(|other| *other != after.id) {
            return JobChanged::KeyTaken(other);
        }
        if let Some(name) = self.calendar_missing(after) {
            return JobChanged::CalendarMissing(name);
        }
        let taken = job.map(Usage::by).unwrap_or_default();
        if let Err(exceeded) = self.count(after.tenant, taken, Usage::by(after)) {
            return JobChanged::QuotaExceeded(exceeded);
        }
        if let Some(stands) = self.jobs.get(&after.id).cloned() {
            self.keep_version(&stands, after);
            self.audit(Change::job_changed(&stands, after));
        }
        self.put_job(Job::clone(after));
        let mut view = self.view(after.id);
        view.history = self.read_history(after.id, view.needs_to_change(change));
        let marked = view.change(change);
        let cancelled = view.effects.runs_cancelled();
        self.apply(after.id, view.effects);
        let job = self.jobs.get(&after.id).unwrap_or(after);
        JobChanged::Done {
            job: Box::new(Job::clone(job)),
            marked,
            cancelled,
        }
    }

    /// Counts what takes `after` instead of `before`, if the tenant may have it.
    pub(super) fn count(
        &mut self,
        tenant: TenantId,
        before: Usage,
        after: Usage,
    ) -> Result<(), QuotaExceeded> {
        let quotas = self.access.tenant(tenant).map(|tenant| tenant.quotas);
        let used = self.uses.entry(tenant).or_default();
        *used = quotas.unwrap_or_default().admit(*used, before, after)?;
        Ok(())
    }

    fn holder_of_key(&self, job: &Job) -> Option<JobId> {
        let key = job.key.clone().filter(|_| job.state != JobState::Deleted)?;
        self.keys.get(&(job.tenant, key)).copied()
    }

    /// Writes a job, and the key it has now instead of the one it had.
    fn put_job(&mut self, job: Job) {
        let before = self.jobs.get(&job.id).and_then(|before| before.key.clone());
        if let Some(key) = before {
            self.keys.remove(&(job.tenant, key));
        }
        if let Some(key) = job.key.clone().filter(|_| job.state != JobState::Deleted) {
            self.keys.insert((job.tenant, key), job.id);
        }
        self.doubt_calendars(&job);
        let job = self.with_calendars(job);
        self.know_zone(job.def.schedule.zone_followed());
        self.jobs.insert(job.id, Arc::new(job));
    }

    pub(super) fn get_job(&self, tenant: TenantId, id: JobId) -> Option<Job> {
        let job = self.jobs.get(&id).filter(|job| job.tenant == tenant)?;
        (job.state != JobState::Deleted).then(|| Job::clone(job))
    }

    pub(super) fn find_job(&self, tenant: TenantId, key: &JobKey) -> Option<Job> {
        let id = self.keys.get(&(tenant, key.clone()))?;
        self.get_job(tenant, *id)
    }

    pub(super) fn list_jobs(
        &self,
        tenant: TenantId,
        filter: &JobFilter,
        page: Page<JobId>,
    ) -> Vec<Job> {
        let jobs = self.jobs.values().rev();
        let before = jobs.filter(|job| page.before.is_none_or(|before| job.id < before));
        let fitting = before.filter(|job| job.tenant == tenant && fits(job, filter));
        fitting
            .take(page.limit)
            .map(|job| Job::clone(job))
            .collect()
    }
}

fn fits(job: &Job, filter: &JobFilter) -> bool {
    let state = if filter.states.is_empty() {
        job.state != JobState::Deleted
    } else {
        filter.states.contains(&job.state)
    };
    let labels = filter
        .labels
        .iter()
        .all(|(name, value)| job.def.labels.get(name) == Some(value));
    let key = filter.q.as_ref().is_none_or(|part| {
        let key = job
            .key
            .as_ref()
            .map(|key| key.as_str().to_ascii_lowercase());
        key.is_some_and(|key| key.contains(&part.to_ascii_lowercase()))
    });
    let owner = filter.owner.as_deref();
    let owner = owner.is_none_or(|owner| job.owner.as_deref() == Some(owner));
    state && labels && key && owner
}
