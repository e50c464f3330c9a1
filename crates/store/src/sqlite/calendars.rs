//! Calendars: kept by name, and looked up by whoever reads a job that names them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Calendar, CalendarName, Job, JobId, TenantId, Timestamp, Version, limits};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::db::Db;
use super::fault::{Done, Fault};
use super::jobs::job_row;
use super::rows::Tenant;
use super::rules::jobs_naming;
use crate::audit::Change;
use crate::code::{Unreadable, bad_row, calendar_name};
use crate::row::{JobRow, Payloads, is_broken, is_gone};
use crate::types::calendars_of;
use crate::{CalendarDropped, CalendarPut, CalendarUse, StoreError, doc};

/// Jobs named to whoever wants to drop a calendar that is in use.
const NAMED_MAX: usize = 5;

/// Those that were looked for, found or not.
type Known = BTreeMap<(TenantId, CalendarName), Option<Arc<Calendar>>>;

/// Jobs and their calendars as one connection sees them at one moment: each calendar is read once,
/// however many jobs name it.
pub(super) struct Lookup<'a> {
    conn: &'a Connection,
    payloads: Payloads,
    known: RefCell<Known>,
    /// A read that failed in the middle of reading a job.
    fault: RefCell<Option<Fault>>,
}

impl<'a> Lookup<'a> {
    pub(super) fn new(conn: &'a Connection, payloads: Payloads) -> Self {
        Self {
            conn,
            payloads,
            known: RefCell::default(),
            fault: RefCell::default(),
        }
    }

    /// One job by its id, deleted ones too.
    pub(super) fn job(&self, id: JobId) -> Done<Option<Job>> {
        let Some(row) = self.row(id)? else {
            return Ok(None);
        };
        Ok(Some(self.decode(row)?.map_err(StoreError::from)?))
    }

    pub(super) fn row(&self, id: JobId) -> Done<Option<JobRow>> {
        job_row(self.conn, id, self.payloads)
    }

    /// The inner answer is about the job, the outer one about the connection.
    pub(super) fn decode(&self, row: JobRow) -> Done<Result<Job, Unreadable>> {
        let tenant = row.narrow.tenant;
        let read = row.decode(&|name| self.find(tenant, name));
        match self.fault.take() {
            Some(fault) => Err(fault),
            None => Ok(read),
        }
    }

    fn find(&self, tenant: TenantId, name: &CalendarName) -> Option<Arc<Calendar>> {
        let key = (tenant, name.clone());
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let found = match self.read(tenant, name) {
            Ok(found) => found,
            Err(fault) => {
                self.fault.replace(Some(fault));
                return None;
            }
        };
        self.known.borrow_mut().insert(key, found.clone());
        found
    }

    /// One that cannot be read is as good as gone for its jobs, and a line in the log.
    fn read(&self, tenant: TenantId, name: &CalendarName) -> Done<Option<Arc<Calendar>>> {
        let row = calendar_row(self.conn, tenant, name)?;
        Ok(row.and_then(|row| match row.decode() {
            Ok(found) => Some(found.calendar),
            Err(error) => {
                tracing::warn!(%tenant, calendar = %name, %error, "unreadable calendar");
                None
            }
        }))
    }
}

/// A calendar as its row has it; what it holds is still to be read.
struct CalendarRow {
    name: String,
    version: Version,
    updated_at: Timestamp,
    doc: Vec<u8>,
    applied: bool,
    jobs: i64,
}

impl CalendarRow {
    /// Columns as `get_calendar.sql` has them.
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            name: row.get(0)?,
            version: Version(row.get(1)?),
            updated_at: Timestamp::from_millis(row.get(2)?),
            doc: row.get(3)?,
            applied: row.get(4)?,
            jobs: row.get(5)?,
        })
    }

    fn decode(self) -> Result<CalendarUse, StoreError> {
        let name = calendar_name(&self.name)?;
        let calendar = doc::decode_calendar(name, self.version, self.updated_at, &self.doc)
            .map_err(|error| bad_row(format!("calendar {}", self.name), &error))?;
        Ok(CalendarUse {
            calendar: Arc::new(calendar),
            jobs: self.jobs.unsigned_abs(),
            applied: self.applied,
        })
    }
}

fn calendar_row(
    conn: &Connection,
    tenant: TenantId,
    name: &CalendarName,
) -> Done<Option<CalendarRow>> {
    let mut select = conn.prepare_cached(include_str!("sql/get_calendar.sql"))?;
    let row = select.query_row(params![Tenant(tenant), name.as_str()], CalendarRow::read);
    Ok(row.optional()?)
}

pub(super) fn get_calendars(
    conn: &Connection,
    tenant: TenantId,
    names: &[CalendarName],
) -> Done<Vec<Option<CalendarUse>>> {
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        let row = calendar_row(conn, tenant, name)?;
        found.push(row.map(CalendarRow::decode).transpose()?);
    }
    Ok(found)
}

pub(super) fn list_calendars(
    conn: &Connection,
    tenant: TenantId,
    after: Option<&CalendarName>,
    limit: usize,
) -> Done<Vec<CalendarUse>> {
    let mut select = conn.prepare_cached(include_str!("sql/list_calendars.sql"))?;
    // Every name is greater than no text at all.
    let after = after.map_or("", CalendarName::as_str);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = select.query_map(params![Tenant(tenant), after, limit], CalendarRow::read)?;
    let mut found = Vec::new();
    for row in rows {
        match row?.decode() {
            Ok(calendar) => found.push(calendar),
            // One row that cannot be read must not hide all others.
            Err(error) => tracing::warn!(%tenant, %error, "unreadable calendar"),
        }
    }
    Ok(found)
}

/// A calendar, encoded before it reaches the writer.
pub(super) struct CalendarToPut {
    name: CalendarName,
    version: Version,
    updated_at: Timestamp,
    zone: Option<String>,
    doc: Vec<u8>,
}

impl CalendarToPut {
    pub(super) fn new(calendar: &Calendar) -> Result<Self, StoreError> {
        let doc = doc::encode_calendar(calendar);
        Ok(Self {
            name: calendar.name.clone(),
            version: calendar.version,
            updated_at: calendar.updated_at,
            zone: calendar.zone_followed().map(|zone| zone.name().to_owned()),
            doc: doc.map_err(|error| bad_row(format!("calendar {}", calendar.name), &error))?,
        })
    }
}

impl Db {
    pub(super) fn put_calendar(
        &mut self,
        tenant: TenantId,
        put: &CalendarToPut,
        before: Option<Version>,
    ) -> Done<CalendarPut> {
        let stands = calendar_row(&self.conn, tenant, &put.name)?;
        if stands.as_ref().map(|row| row.version) != before {
            let stands = stands.map(CalendarRow::decode).transpose()?;
            return Ok(CalendarPut::Conflict(stands.map(|found| found.calendar)));
        }
        if before.is_none() && self.count_calendars(tenant)? >= limits::CALENDARS_MAX {
            return Ok(CalendarPut::Full);
        }
        let mut upsert = self
            .conn
            .prepare_cached(include_str!("sql/put_calendar.sql"))?;
        upsert.execute(params![
            Tenant(tenant),
            put.name.as_str(),
            put.version.0,
            put.updated_at.as_millis(),
            put.doc,
        ])?;
        let zone = put.zone.as_deref();
        self.zones.know(&self.conn, zone, &self.shared)?;
        let was = stands.as_ref().map(|row| row.doc.as_slice());
        self.audit(&Change::calendar(tenant, &put.name, was, Some(&put.doc)))?;
        Ok(CalendarPut::Done)
    }

    fn count_calendars(&self, tenant: TenantId) -> Done<usize> {
        let mut select = self
            .conn
            .prepare_cached(include_str!("sql/count_calendars.sql"))?;
        let count: i64 = select.query_row([Tenant(tenant)], |row| row.get(0))?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    pub(super) fn drop_calendar(
        &mut self,
        tenant: TenantId,
        name: &CalendarName,
        before: Option<Version>,
    ) -> Done<CalendarDropped> {
        let Some(row) = calendar_row(&self.conn, tenant, name)? else {
            return Ok(CalendarDropped::Missing);
        };
        if before.is_some_and(|before| before != row.version) {
            return Ok(CalendarDropped::Conflict(row.decode()?.calendar));
        }
        let users = jobs_naming(&self.conn, tenant, name, None, NAMED_MAX)?;
        if !users.is_empty() {
            let users = users.into_iter().map(|(_, job)| job).collect();
            return Ok(CalendarDropped::InUse(users, row.jobs.unsigned_abs()));
        }
        for sql in [
            include_str!("sql/drop_calendar.sql"),
            include_str!("sql/drop_calendar_uses.sql"),
        ] {
            let mut delete = self.conn.prepare_cached(sql)?;
            delete.execute(params![Tenant(tenant), name.as_str()])?;
        }
        self.audit(&Change::calendar(tenant, name, Some(&row.doc), None))?;
        Ok(CalendarDropped::Done)
    }
}

/// Writes down which calendars a new job names.
pub(super) fn name_calendars(conn: &Connection, job: &Job) -> Done<()> {
    let names = job.def.schedule.calendars.names();
    if names.is_empty() || is_gone(job) {
        return Ok(());
    }
    let mut insert = conn.prepare_cached(include_str!("sql/create_jobs_calendar.sql"))?;
    for name in names {
        let tenant = Tenant(job.tenant);
        let named = insert.execute(params![tenant, name.as_str(), job.id.as_bytes()])?;
        if named == 1 {
            count(conn, job.tenant, name.as_str(), 1)?;
        }
    }
    Ok(())
}

/// The same for a job that was changed; a deleted one names none.
pub(super) fn follow_calendars(conn: &Connection, before: &Job, after: &Job) -> Done<()> {
    let same = before.def.schedule.calendars.names() == after.def.schedule.calendars.names();
    let stays = is_broken(after) || (same && !is_broken(before));
    if stays && !is_gone(after) {
        return Ok(());
    }
    unname_calendars(conn, after.id)?;
    name_calendars(conn, after)
}

/// One that a job names and that is not there.
pub(super) fn calendar_missing(conn: &Connection, job: &Job) -> Done<Option<CalendarName>> {
    for name in calendars_of(job).into_keys() {
        if calendar_version(conn, job.tenant, name)?.is_none() {
            return Ok(Some(name.clone()));
        }
    }
    Ok(None)
}

/// A job that was scheduled by another version of a calendar than the one that stands is to be rescheduled.
pub(super) fn doubt_calendars(conn: &Connection, job: &Job) -> Done<()> {
    for (name, version) in calendars_of(job) {
        let stands = calendar_version(conn, job.tenant, name)?;
        if stands.is_some_and(|stands| stands != version) {
            let mut update = conn.prepare_cached(include_str!("sql/doubt_calendar.sql"))?;
            update.execute(params![Tenant(job.tenant), name.as_str()])?;
        }
    }
    Ok(())
}

fn calendar_version(
    conn: &Connection,
    tenant: TenantId,
    name: &CalendarName,
) -> Done<Option<Version>> {
    let mut select = conn.prepare_cached(include_str!("sql/calendar_version.sql"))?;
    let version = select.query_row(params![Tenant(tenant), name.as_str()], |row| {
        row.get(0).map(Version)
    });
    Ok(version.optional()?)
}

pub(super) fn unname_calendars(conn: &Connection, job: JobId) -> Done<()> {
    let mut delete = conn.prepare_cached(include_str!("sql/drop_calendars.sql"))?;
    let named = delete.query_map([job.as_bytes()], |row| {
        Ok((row.get::<_, Tenant>(0)?.0, row.get::<_, String>(1)?))
    })?;
    for (tenant, name) in named.collect::<rusqlite::Result<Vec<_>>>()? {
        count(conn, tenant, &name, -1)?;
    }
    Ok(())
}

fn count(conn: &Connection, tenant: TenantId, name: &str, more: i64) -> Done<()> {
    let mut upsert = conn.prepare_cached(include_str!("sql/count_calendar.sql"))?;
    upsert.execute(params![Tenant(tenant), name, more])?;
    Ok(())
}
