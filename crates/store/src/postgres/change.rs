//! Change: what clients do to a job that is there, and what that means for its runs.

use model::{Job, JobId, JobKey, Timestamp};

use super::calendars::Standing;
use super::fault::Done;
use super::jobs::{key_of, name_calendars, put_labels};
use super::pool::Conn;
use super::rows::text;
use super::store::PgStore;
use super::views::{Lock, Views};
use crate::code::Code;
use crate::row::{JobToPut, Payloads, due_column, is_broken, is_gone};
use crate::{JobChange, JobChanged, StoreError};

impl PgStore {
    pub(super) async fn change(&self, change: &JobChange) -> Result<JobChanged, StoreError> {
        let put = match JobToPut::new(&change.after) {
            Ok(put) => put,
            Err(error) => return Ok(JobChanged::Refused(error.to_string())),
        };
        match self.retried(|| self.try_change(change, &put)).await {
            Err(fault) if fault.is_about_data() && !fault.is_missing_day() => {
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
        let asked = view.change(change);
        let job = view.job.clone();
        views.flush(self, &conn).await?;
        conn.commit().await?;
        self.zones_known(zones);
        Ok(JobChanged::Done {
            job: Box::new(job.unwrap_or_else(|| Job::clone(after))),
            asked,
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
