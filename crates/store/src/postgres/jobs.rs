//! Jobs that are there: read by id and by key, listed, and changed; and what create and change both write of them. Listing
//! goes by keyset on the id: a page costs the same at the end of a million as at the start.

use std::collections::BTreeMap;

use model::{Job, JobId, JobKey, JobState, TenantId, Timestamp, Usage};
use uuid::Uuid;

use super::calendars::{Standing, read_jobs, readable_jobs};
use super::fault::Done;
use super::pool::Conn;
use super::put::Param;
use super::rows::text;
use super::store::{PgStore, limit};
use super::uses::{Rooms, UseColumns};
use super::versions::keep_version;
use super::views::{Lock, Views};
use crate::audit::Change;
use crate::code::Code;
use crate::row::{JobToPut, Payloads, due_column, is_broken, is_gone};
use crate::{BadRow, Found, JobChange, JobChanged, JobFilter, Page, StoreError};

impl PgStore {
    pub(super) async fn try_get_jobs(&self, wanted: &[(TenantId, JobId)]) -> Done<Vec<Found<Job>>> {
        let conn = self.clients.get().await?;
        let ids: Vec<Uuid> = wanted.iter().map(|(_, id)| id.0).collect();
        let sql = include_str!("sql/get_job.sql");
        let rows = conn.rows(sql, &[&ids, &Payloads::All.max()]).await?;
        let read = read_jobs(&conn, &rows).await?.into_iter();
        let read: BTreeMap<JobId, Result<Job, BadRow>> = read
            .map(|(id, job)| (id, job.map_err(BadRow::from)))
            .collect();
        let found = |(tenant, id): &(TenantId, JobId)| {
            let job = read.get(id).cloned().transpose()?;
            Ok(job.filter(|job| job.tenant == *tenant && !is_gone(job)))
        };
        Ok(wanted.iter().map(found).collect())
    }

    pub(super) async fn try_find_job(&self, tenant: TenantId, key: &JobKey) -> Done<Option<Job>> {
        let conn = self.clients.get().await?;
        let rows = conn
            .rows(
                include_str!("sql/find_job.sql"),
                &[&tenant.0, &key.as_str()],
            )
            .await?;
        Ok(readable_jobs(&conn, &rows).await?.into_iter().next())
    }
}

/// The key that a job takes, if it takes one.
pub(super) fn key_of(job: &Job) -> Option<(TenantId, String)> {
    let key = job.key.as_ref().filter(|_| !is_gone(job))?;
    Some((job.tenant, key.as_str().to_owned()))
}

pub(super) async fn put_labels(conn: &Conn, jobs: &[&Job]) -> Done<()> {
    let (mut tenants, mut names, mut values, mut ids) = (vec![], vec![], vec![], vec![]);
    for job in jobs {
        for (name, value) in &job.def.labels {
            tenants.push(job.tenant.0);
            names.push(text(name));
            values.push(text(value));
            ids.push(job.id.0);
        }
    }
    if !ids.is_empty() {
        let sql = include_str!("sql/create_jobs_label.sql");
        conn.execute(sql, &[&tenants, &names, &values, &ids])
            .await?;
    }
    Ok(())
}

/// Writes down which calendars jobs name; they are shared, and stay there meanwhile. A deleted job names none.
pub(super) async fn name_calendars(conn: &Conn, jobs: &[&Job]) -> Done<()> {
    let (mut tenants, mut names, mut ids) = (vec![], vec![], vec![]);
    for job in jobs.iter().filter(|job| !is_gone(job)) {
        for name in job.def.schedule.calendars.names() {
            tenants.push(job.tenant.0);
            names.push(name.as_str());
            ids.push(job.id.0);
        }
    }
    if ids.is_empty() {
        return Ok(());
    }
    let sql = include_str!("sql/create_jobs_calendar.sql");
    conn.execute(sql, &[&tenants, &names, &ids]).await?;
    Ok(())
}

/// States that have an index of their own.
const RARE: [JobState; 3] = [JobState::Paused, JobState::Invalid, JobState::Deleted];

/// How many of the newest jobs are looked at for a part of a key before all keys are; few in tests, so that both happen.
const NEAR: i64 = if cfg!(test) { 8 } else { 2_000 };

/// What a list wants: its states, and by which statement they are found.
struct Listing<'a> {
    tenant: TenantId,
    filter: &'a JobFilter,
    states: Vec<JobState>,
}

impl<'a> Listing<'a> {
    fn new(tenant: TenantId, filter: &'a JobFilter) -> Self {
        let wanted = |state: &JobState| {
            if filter.states.is_empty() {
                *state != JobState::Deleted
            } else {
                filter.states.contains(state)
            }
        };
        Self {
            tenant,
            filter,
            states: JobState::ALL.into_iter().filter(wanted).collect(),
        }
    }

    fn is_rare(&self) -> bool {
        self.states.iter().all(|state| RARE.contains(state))
    }

    /// Whether a part of a key is the best that is known of what fits: it is in the index of keys, where deleted jobs are not.
    fn is_by_key(&self) -> bool {
        let JobFilter {
            q, owner, labels, ..
        } = self.filter;
        let has_better = owner.is_some() || !labels.is_empty() || self.is_rare();
        q.is_some() && !has_better && !self.states.contains(&JobState::Deleted)
    }

    /// By the key, only the newest are looked at.
    fn sql(&self) -> &'static str {
        let wants_finished = self.states.contains(&JobState::Finished);
        if self.filter.owner.is_some() {
            include_str!("sql/list_jobs_owner.sql")
        } else if !self.filter.labels.is_empty() {
            include_str!("sql/list_jobs_label.sql")
        } else if self.is_rare() {
            include_str!("sql/list_jobs_rare.sql")
        } else if self.is_by_key() {
            include_str!("sql/list_jobs_near.sql")
        } else if self.tenant != TenantId::DEFAULT && !wants_finished {
            include_str!("sql/list_jobs_open.sql")
        } else {
            include_str!("sql/list_jobs.sql")
        }
    }
}

impl PgStore {
    pub(super) async fn try_list_jobs(
        &self,
        tenant: TenantId,
        filter: &JobFilter,
        page: Page<JobId>,
    ) -> Done<Vec<Job>> {
        let listing = Listing::new(tenant, filter);
        let codes: Vec<i16> = listing.states.iter().map(|state| state.code()).collect();
        let before = page.before.map_or(Uuid::max(), |before| before.0);
        let part = filter.q.as_ref().map(|part| part.to_ascii_lowercase());
        let part = part.as_deref().map(text);
        let (names, values): (Vec<_>, Vec<_>) = filter
            .labels
            .iter()
            .map(|(name, value)| (text(name), text(value)))
            .unzip();
        let owner = filter.owner.as_deref().map(text);
        let conn = self.readers.get().await?;
        let count = limit(page.limit);
        let params: [Param<'_>; 7] = [&tenant.0, &before, &codes, &part, &count, &names, &values];
        let mut more: Vec<Param<'_>> = owner.iter().map(|owner| owner as Param<'_>).collect();
        if listing.is_by_key() {
            more.push(&NEAR);
        }
        let all = [&params[..], &more].concat();
        let mut rows = conn.rows(listing.sql(), &all).await?;
        if listing.is_by_key() && rows.len() < page.limit {
            let sql = include_str!("sql/list_jobs_key.sql");
            rows = conn.rows(sql, &params).await?;
        }
        let mut jobs = Vec::with_capacity(rows.len());
        for (_, job) in read_jobs(&conn, &rows).await? {
            match job {
                Ok(job) => jobs.push(job),
                // One row that cannot be read must not hide all others.
                Err(bad) => tracing::warn!(job = %bad.job, error = bad.detail, "unreadable job"),
            }
        }
        Ok(jobs)
    }
}

impl PgStore {
    pub(super) async fn change(&self, change: &JobChange) -> Result<JobChanged, StoreError> {
        let put = match JobToPut::new(&change.after) {
            Ok(put) => put,
            Err(error) => return Ok(JobChanged::Refused(error.to_string())),
        };
        match self.retried(|| self.try_change(change, &put)).await {
            Err(fault) if fault.is_about_data() && !fault.is_missing_partition() => {
                Ok(JobChanged::Refused(fault.why()))
            }
            changed => changed.map_err(StoreError::from),
        }
    }

    async fn try_change(&self, change: &JobChange, put: &JobToPut) -> Done<JobChanged> {
        let JobChange { before, after, .. } = change;
        let conn = self.clients.begin().await?;
        let ids = [before.id.0];
        let mut views = Views::load(&conn, &ids, Lock::JobsAndRuns).await?;
        views.read_jobs(&conn, &ids, Payloads::All).await?;
        let found = views.job(before.id)?;
        let Some((job, stands)) = found.zip(change.stands(found)) else {
            return Ok(JobChanged::Missing);
        };
        let job = job.clone();
        if !stands {
            return Ok(JobChanged::Conflict(Box::new(job)));
        }
        if let Some(other) = key_taken(&conn, after).await? {
            return Ok(JobChanged::KeyTaken(other));
        }
        let calendars = Standing::share(&conn, &[after]).await?;
        if let Some(name) = calendars.missing(after) {
            return Ok(JobChanged::CalendarMissing(name));
        }
        let (takes, will) = (Usage::by(&job), Usage::by(after));
        if takes != will {
            let mut rooms = Rooms::read(&conn, &[after.tenant.0]).await?;
            if let Err(exceeded) = rooms.admit(after.tenant, takes, will) {
                return Ok(JobChanged::QuotaExceeded(exceeded));
            }
        }
        keep_version(&conn, &job, after).await?;
        self.audit(&conn, &[Change::job_changed(&job, after)])
            .await?;
        put_job(&conn, &job, put).await?;
        calendars.doubt(&conn, &[after]).await?;
        let zones = self
            .know_zones(&conn, after.def.schedule.zone_followed().into_iter())
            .await?;
        // Calendars are as they stand, whatever the caller had read.
        views.read_jobs(&conn, &ids, Payloads::All).await?;
        let needs = views.view(after.id).needs_to_change(change);
        views.read_history(&conn, &[(after.id, needs)]).await?;
        let view = views.view(after.id);
        let marked = view.change(change);
        let cancelled = view.effects.runs_cancelled();
        let job = view.job.clone();
        views.flush(self, &conn).await?;
        // Last: others of the same backend's part wait for it.
        let used = UseColumns::new([(after.tenant, takes, will)]);
        used.write(&conn).await?;
        conn.commit().await?;
        self.zones_known(zones);
        Ok(JobChanged::Done {
            job: Box::new(job.unwrap_or_else(|| Job::clone(after))),
            marked,
            cancelled,
        })
    }
}

/// Another job that has the key.
async fn key_taken(conn: &Conn, job: &Job) -> Done<Option<JobId>> {
    let Some((tenant, key)) = key_of(job) else {
        return Ok(None);
    };
    let (tenants, keys) = ([tenant.0], [key]);
    let row = conn
        .row(
            include_str!("sql/key_holders.sql"),
            &[&tenants.as_slice(), &keys.as_slice()],
        )
        .await?;
    let holder = row.map(|row| row.try_get(2)).transpose()?.map(JobId);
    Ok(holder.filter(|holder| *holder != job.id))
}

async fn put_job(conn: &Conn, before: &Job, put: &JobToPut) -> Done<()> {
    let JobToPut { job, doc } = put;
    let millis = |at: Timestamp| at.as_millis();
    conn.execute(
        include_str!("sql/change_job.sql"),
        &[
            &job.id.0,
            &job.state.code(),
            &job.version.0.cast_signed(),
            &job.next_slot.map(|slot| millis(slot.0)),
            &due_column(job),
            &job.slot_last.map(millis),
            &millis(job.state_at),
            &i64::from(job.runs_made),
            &job.catch_up_to.map(millis),
            &job.manual_runs.cast_signed(),
            &job.failures.map(u32::cast_signed),
        ],
    )
    .await?;
    conn.execute(
        include_str!("sql/change_job_def.sql"),
        &[
            &job.id.0,
            &job.key.as_ref().map(JobKey::as_str),
            &is_gone(job),
            &millis(job.created_at),
            &millis(job.updated_at),
            &job.note.as_deref().map(text),
            doc,
            &job.def.payload.as_deref(),
            &job.paused_by.as_deref().map(text),
            &put.names_calendars(),
            &put.zone(),
            &(is_broken(job) && !is_gone(job)),
            &job.owner.as_deref().map(text),
            &job.once_until.map(|version| version.0.cast_signed()),
        ],
    )
    .await?;
    let ids = [job.id.0];
    if before.def.labels != job.def.labels {
        conn.execute(include_str!("sql/drop_labels.sql"), &[&ids.as_slice()])
            .await?;
        put_labels(conn, &[job]).await?;
    }
    rename_calendars(conn, before, job).await
}

/// Follows a job that was changed; a deleted one names none.
async fn rename_calendars(conn: &Conn, before: &Job, after: &Job) -> Done<()> {
    let same = before.def.schedule.calendars.names() == after.def.schedule.calendars.names();
    let unknown = is_broken(after) || (same && !is_broken(before));
    if unknown && !is_gone(after) {
        return Ok(());
    }
    let ids = [after.id.0];
    conn.execute(include_str!("sql/drop_calendars.sql"), &[&ids.as_slice()])
        .await?;
    name_calendars(conn, &[after]).await
}
