//! Create and change: what clients do to jobs.

use model::schedule::Zone;
use model::{Job, JobId, JobKey, TenantId, Timestamp, Usage};
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};

use super::calendars::{
    Lookup, calendar_missing, doubt_calendars, follow_calendars, name_calendars,
};
use super::db::Db;
use super::fault::Done;
use super::rows::{Tenant, read_job};
use super::uses::Uses;
use crate::audit::Change;
use crate::code::{Code, of_row};
use crate::doc::DocError;
use crate::row::{JobRow, JobToPut, Payloads, due_column, is_broken, is_gone};
use crate::{Created, Found, Idempotency, JobChange, JobChanged, NewJob};

/// A create, encoded before it reaches the writer; or why it cannot be.
pub(super) struct CreateRow {
    put: Result<JobToPut, DocError>,
    idempotency: Option<Idempotency>,
    entered: Option<Change>,
}

impl CreateRow {
    pub(super) fn new(new: &NewJob, audits: bool) -> Self {
        let put = JobToPut::new(&new.job);
        let entered = put.as_ref().ok().filter(|_| audits);
        let entered = entered.map(JobToPut::created);
        Self {
            put,
            idempotency: new.idempotency.clone(),
            entered,
        }
    }
}

/// A change, encoded before it reaches the writer, unless the job cannot be.
pub(super) struct ChangeRow {
    change: JobChange,
    after: Result<JobToPut, DocError>,
}

impl ChangeRow {
    pub(super) fn new(change: &JobChange) -> Self {
        Self {
            change: change.clone(),
            after: JobToPut::new(&change.after),
        }
    }
}

/// One job by its id, deleted ones too.
pub(super) fn job_row(conn: &Connection, id: JobId, payloads: Payloads) -> Done<Option<JobRow>> {
    let mut select = conn.prepare_cached(include_str!("sql/get_job.sql"))?;
    let row = select.query_row(params![id.as_bytes(), payloads.max()], read_job);
    Ok(row.optional()?)
}

pub(super) fn load_job(conn: &Connection, id: JobId) -> Done<Option<Job>> {
    Lookup::new(conn, Payloads::All).job(id)
}

pub(super) fn get_jobs(conn: &Connection, wanted: &[(TenantId, JobId)]) -> Done<Vec<Found<Job>>> {
    let lookup = Lookup::new(conn, Payloads::All);
    let read = |(tenant, id): &(TenantId, JobId)| {
        let is_theirs = |job: &Job| job.tenant == *tenant && !is_gone(job);
        let job = of_row(lookup.job(*id))?;
        Ok(job.map(|job| job.filter(is_theirs)))
    };
    wanted.iter().map(read).collect()
}

pub(super) fn find_job(conn: &Connection, tenant: TenantId, key: &JobKey) -> Done<Option<Job>> {
    match key_holder(conn, tenant, key)? {
        Some(id) => load_job(conn, id),
        None => Ok(None),
    }
}

fn key_holder(conn: &Connection, tenant: TenantId, key: &JobKey) -> Done<Option<JobId>> {
    let mut select = conn.prepare_cached(include_str!("sql/find_job.sql"))?;
    let id = select
        .query_row(params![Tenant(tenant), key.as_str()], |row| row.get(0))
        .optional()?;
    Ok(id.map(JobId::from_bytes))
}

impl Db {
    pub(super) fn create_jobs(&mut self, rows: &[CreateRow]) -> Done<Vec<Created>> {
        let answers = self.insert_jobs(rows)?;
        let created = rows.iter().zip(&answers);
        let created = created.filter(|(_, answer)| **answer == Created::Done);
        for change in created.filter_map(|(row, _)| row.entered.as_ref()) {
            self.audit(change)?;
        }
        Ok(answers)
    }

    fn insert_jobs(&mut self, rows: &[CreateRow]) -> Done<Vec<Created>> {
        let Self {
            conn,
            resting,
            counting,
            zones,
            shared,
            ..
        } = self;
        let mut narrow = conn.prepare_cached(include_str!("sql/create_jobs.sql"))?;
        let mut wide = conn.prepare_cached(include_str!("sql/create_jobs_def.sql"))?;
        let mut answers = Vec::with_capacity(rows.len());
        let mut uses = Uses::default();
        for row in rows {
            let put = match (answered_before(conn, row)?, &row.put) {
                (None, Ok(put)) => put,
                (answer, _) => {
                    answers.extend(answer);
                    continue;
                }
            };
            let job = &put.job;
            let takes = Usage::by(job);
            if let Err(exceeded) = uses.admit(conn, job.tenant, Usage::default(), takes)? {
                answers.push(unless_there(conn, job, Created::QuotaExceeded(exceeded))?);
                continue;
            }
            if !insert_job(&mut narrow, &mut wide, put)? {
                uses.give_back(job.tenant, takes);
                answers.push(Created::Repeated(job.id));
                continue;
            }
            put_labels(conn, job)?;
            name_calendars(conn, job)?;
            doubt_calendars(conn, job)?;
            let followed = job.def.schedule.zone_followed();
            zones.know(conn, followed.map(Zone::name), shared)?;
            resting.follow(job);
            counting.follow(job);
            put_request(conn, job, row.idempotency.as_ref())?;
            answers.push(Created::Done);
        }
        uses.write(conn)?;
        Ok(answers)
    }

    pub(super) fn change_job(&mut self, row: &ChangeRow) -> Done<JobChanged> {
        let ChangeRow { change, after } = row;
        let after = match after {
            Ok(after) => after,
            Err(error) => return Ok(JobChanged::Refused(error.to_string())),
        };
        let id = change.before.id;
        let found = load_job(&self.conn, id)?;
        let job = match (change.stands(found.as_ref()), found) {
            (Some(true), Some(job)) => job,
            (Some(false), Some(job)) => return Ok(JobChanged::Conflict(Box::new(job))),
            (_, _) => return Ok(JobChanged::Missing),
        };
        let key = after.job.key.as_ref().filter(|_| !is_gone(&after.job));
        let holder = key
            .map(|key| key_holder(&self.conn, after.job.tenant, key))
            .transpose()?;
        if let Some(other) = holder.flatten().filter(|other| *other != after.job.id) {
            return Ok(JobChanged::KeyTaken(other));
        }
        if let Some(name) = calendar_missing(&self.conn, &after.job)? {
            return Ok(JobChanged::CalendarMissing(name));
        }
        let mut uses = Uses::default();
        let (takes, will) = (Usage::by(&job), Usage::by(&after.job));
        if takes != will {
            if let Err(exceeded) = uses.admit(&self.conn, job.tenant, takes, will)? {
                return Ok(JobChanged::QuotaExceeded(exceeded));
            }
            uses.write(&self.conn)?;
        }
        self.keep_version(&job, &after.job)?;
        self.audit(&Change::job_changed(&job, &after.job))?;
        self.put_job(&job, after)?;
        let mut view = self.view(id)?;
        view.history = self.read_history(id, view.needs_to_change(change))?;
        let marked = view.change(change);
        let cancelled = view.effects.runs_cancelled();
        self.apply(id, view.effects)?;
        let job = load_job(&self.conn, id)?.unwrap_or_else(|| Job::clone(&after.job));
        Ok(JobChanged::Done {
            job: Box::new(job),
            marked,
            cancelled,
        })
    }

    fn put_job(&mut self, before: &Job, after: &JobToPut) -> Done<()> {
        let JobToPut { job, doc } = after;
        self.put_standing(job)?;
        let mut wide = self
            .conn
            .prepare_cached(include_str!("sql/change_job_def.sql"))?;
        wide.execute(params![
            job.id.as_bytes(),
            job.key.as_ref().map(JobKey::as_str),
            is_gone(job),
            job.created_at.as_millis(),
            job.updated_at.as_millis(),
            job.note,
            doc,
            job.def.payload.as_deref(),
            job.paused_by.as_deref(),
            after.names_calendars(),
            after.zone(),
            is_broken(job) && !is_gone(job),
            job.owner.as_deref(),
            job.once_until.map(|version| version.0),
        ])?;
        let zone = job.def.schedule.zone_followed().map(Zone::name);
        self.zones.know(&self.conn, zone, &self.shared)?;
        follow_calendars(&self.conn, before, job)?;
        doubt_calendars(&self.conn, job)?;
        if before.def.labels != job.def.labels {
            drop_labels(&self.conn, job.id)?;
            put_labels(&self.conn, job)?;
        }
        Ok(())
    }
}

/// Both rows of a new job; false if it is there.
fn insert_job(
    narrow: &mut CachedStatement<'_>,
    wide: &mut CachedStatement<'_>,
    put: &JobToPut,
) -> Done<bool> {
    let JobToPut { job, doc } = put;
    let created = narrow.execute(params![
        job.id.as_bytes(),
        Tenant(job.tenant),
        job.state.code(),
        job.version.0,
        job.next_slot.map(|slot| slot.0.as_millis()),
        due_column(job),
        job.slot_last.map(Timestamp::as_millis),
        job.state_at.as_millis(),
        job.runs_made,
        job.failures,
    ])?;
    if created == 0 {
        return Ok(false);
    }
    wide.execute(params![
        job.id.as_bytes(),
        Tenant(job.tenant),
        job.key.as_ref().map(JobKey::as_str),
        is_gone(job),
        job.created_at.as_millis(),
        job.updated_at.as_millis(),
        job.note,
        doc,
        job.def.payload.as_deref(),
        job.paused_by.as_deref(),
        put.names_calendars(),
        put.zone(),
        job.owner.as_deref(),
    ])?;
    Ok(true)
}

/// Whether a create needs no write: a job that cannot be written, an answered request, a job that is there, a key that
/// is taken, a calendar that is not there.
fn answered_before(conn: &Connection, row: &CreateRow) -> Done<Option<Created>> {
    let job = match &row.put {
        Ok(put) => &put.job,
        Err(error) => return Ok(Some(Created::Refused(error.to_string()))),
    };
    if let Some(idempotency) = &row.idempotency {
        let mut select = conn.prepare_cached(include_str!("sql/find_request.sql"))?;
        let found = select
            .query_row(params![Tenant(job.tenant), idempotency.key], |row| {
                Ok((row.get::<_, [u8; 32]>(0)?, row.get(1)?))
            })
            .optional()?;
        if let Some((digest, id)) = found {
            let same = digest == idempotency.digest;
            let repeated = Created::Repeated(JobId::from_bytes(id));
            return Ok(Some(if same { repeated } else { Created::Mismatch }));
        }
    }
    let key = job.key.as_ref().filter(|_| !is_gone(job));
    let other = key.map(|key| key_holder(conn, job.tenant, key));
    let refused = match other.transpose()?.flatten() {
        Some(other) => Created::KeyTaken(other),
        None => match calendar_missing(conn, job)? {
            Some(name) => Created::CalendarMissing(name),
            None => return Ok(None),
        },
    };
    unless_there(conn, job, refused).map(Some)
}

/// What a create is answered that meets something in its way: if the job is there, that was itself.
fn unless_there(conn: &Connection, job: &Job, refused: Created) -> Done<Created> {
    let mut select = conn.prepare_cached(include_str!("sql/job_exists.sql"))?;
    Ok(if select.exists([job.id.as_bytes()])? {
        Created::Repeated(job.id)
    } else {
        refused
    })
}

fn put_labels(conn: &Connection, job: &Job) -> Done<()> {
    if job.def.labels.is_empty() {
        return Ok(());
    }
    let mut insert = conn.prepare_cached(include_str!("sql/create_jobs_label.sql"))?;
    for (name, value) in &job.def.labels {
        insert.execute(params![Tenant(job.tenant), name, value, job.id.as_bytes()])?;
    }
    Ok(())
}

pub(super) fn drop_labels(conn: &Connection, job: JobId) -> Done<()> {
    conn.prepare_cached(include_str!("sql/drop_labels.sql"))?
        .execute([job.as_bytes()])?;
    Ok(())
}

fn put_request(conn: &Connection, job: &Job, idempotency: Option<&Idempotency>) -> Done<()> {
    let Some(idempotency) = idempotency else {
        return Ok(());
    };
    let mut insert = conn.prepare_cached(include_str!("sql/create_jobs_request.sql"))?;
    insert.execute(params![
        Tenant(job.tenant),
        idempotency.key,
        idempotency.digest,
        job.id.as_bytes(),
        job.created_at.as_millis(),
    ])?;
    Ok(())
}
