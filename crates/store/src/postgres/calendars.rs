//! Calendars: kept by name, and looked up by whoever reads a job that names them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{Calendar, CalendarName, Job, JobId, TenantId, Timestamp, Version, limits};
use tokio_postgres::Row;
use uuid::Uuid;

use super::fault::Done;
use super::pool::Conn;
use super::rows::{calendars, read_job};
use super::store::{PgStore, limit};
use crate::audit::Change;
use crate::code::{Unreadable, bad_row, calendar_name};
use crate::row::JobRow;
use crate::types::calendars_of;
use crate::{CalendarDropped, CalendarPut, CalendarUse, StoreError, doc};

/// Jobs named to whoever wants to drop a calendar that is in use.
const NAMED_MAX: usize = 5;

/// Jobs from their rows, in the order of these. The inner answer is about one job, the outer about the connection.
pub(super) async fn read_jobs(
    conn: &Conn,
    rows: &[Row],
) -> Done<Vec<(JobId, Result<Job, Unreadable>)>> {
    let mut read = Vec::with_capacity(rows.len());
    let mut named = BTreeSet::new();
    for row in rows {
        let row = read_job(row)?;
        let tenant = row.narrow.tenant;
        named.extend(calendars(&row).into_iter().map(|name| (tenant, name)));
        read.push(row);
    }
    let calendars = find(conn, named).await?;
    let decode = |row: JobRow| {
        let tenant = row.narrow.tenant;
        row.decode(&|name| {
            let key = (tenant, name.as_str().to_owned());
            calendars.get(&key).cloned()
        })
    };
    let decoded = read.into_iter().map(|row| (row.narrow.id, decode(row)));
    Ok(decoded.collect())
}

/// Jobs from their rows; the first that cannot be read is an error.
pub(super) async fn readable_jobs(conn: &Conn, rows: &[Row]) -> Done<Vec<Job>> {
    let mut jobs = Vec::with_capacity(rows.len());
    for (_, job) in read_jobs(conn, rows).await? {
        jobs.push(job.map_err(StoreError::from)?);
    }
    Ok(jobs)
}

/// Jobs by their ids; none for one that cannot be read.
pub(super) type JobsById = BTreeMap<JobId, Option<Arc<Job>>>;

/// The same for whoever goes on without those that cannot be read, which are lines in the log.
pub(super) async fn jobs_by_id(conn: &Conn, rows: &[Row]) -> Done<JobsById> {
    let log = |bad: &Unreadable| {
        tracing::warn!(job = %bad.job, error = bad.detail, "unreadable job");
    };
    let jobs = read_jobs(conn, rows).await?.into_iter();
    let jobs = jobs.map(|(id, job)| (id, job.inspect_err(log).ok().map(Arc::new)));
    Ok(jobs.collect())
}

/// One that cannot be read is as good as gone for its jobs, and a line in the log.
async fn find(
    conn: &Conn,
    named: BTreeSet<(TenantId, String)>,
) -> Done<BTreeMap<(TenantId, String), Arc<Calendar>>> {
    let mut found = BTreeMap::new();
    if named.is_empty() {
        return Ok(found);
    }
    let (tenants, names): (Vec<Uuid>, Vec<String>) = named
        .into_iter()
        .map(|(tenant, name)| (tenant.0, name))
        .unzip();
    let rows = conn
        .rows(include_str!("sql/find_calendars.sql"), &[&tenants, &names])
        .await?;
    for row in &rows {
        let (tenant, row) = (TenantId(row.try_get(6)?), CalendarRow::read(row)?);
        let name = row.name.clone();
        match row.decode() {
            Ok(read) => {
                found.insert((tenant, name), read.calendar);
            }
            Err(error) => tracing::warn!(%tenant, calendar = name, %error, "unreadable calendar"),
        }
    }
    Ok(found)
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
    fn read(row: &Row) -> Done<Self> {
        Ok(Self {
            name: row.try_get(0)?,
            version: Version(row.try_get::<_, i32>(1)?.cast_unsigned()),
            updated_at: Timestamp::from_millis(row.try_get(2)?),
            doc: row.try_get(3)?,
            applied: row.try_get(4)?,
            jobs: row.try_get(5)?,
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

/// A calendar as it stands, locked until the transaction ends.
async fn lock(conn: &Conn, tenant: TenantId, name: &CalendarName) -> Done<Option<CalendarRow>> {
    let name = name.as_str();
    conn.rows(include_str!("sql/lock_calendar.sql"), &[&tenant.0, &name])
        .await?;
    let row = conn
        .row(include_str!("sql/get_calendar.sql"), &[&tenant.0, &name])
        .await?;
    row.as_ref().map(CalendarRow::read).transpose()
}

impl PgStore {
    pub(super) async fn try_put_calendar(
        &self,
        tenant: TenantId,
        calendar: &Calendar,
        before: Option<Version>,
    ) -> Done<CalendarPut> {
        let doc = doc::encode_calendar(calendar)
            .map_err(|error| bad_row(format!("calendar {}", calendar.name), &error))?;
        let conn = self.clients.begin().await?;
        let stands = lock(&conn, tenant, &calendar.name).await?;
        if stands.as_ref().map(|row| row.version) != before {
            let stands = stands.map(CalendarRow::decode).transpose()?;
            return Ok(CalendarPut::Conflict(stands.map(|found| found.calendar)));
        }
        if before.is_none() {
            let count = conn
                .row(include_str!("sql/count_calendars.sql"), &[&tenant.0])
                .await?;
            let count: i64 = count.map_or(Ok(0), |row| row.try_get(0))?;
            if count >= limit(limits::CALENDARS_MAX) {
                return Ok(CalendarPut::Full);
            }
        }
        // Who was faster with a new one is seen by the key, and this call is made again.
        let sql = match before {
            None => include_str!("sql/put_calendar.sql"),
            Some(_) => include_str!("sql/change_calendar.sql"),
        };
        let (name, version) = (calendar.name.as_str(), calendar.version.0.cast_signed());
        let updated_at = calendar.updated_at.as_millis();
        conn.execute(sql, &[&tenant.0, &name, &version, &updated_at, &doc])
            .await?;
        let was = stands.as_ref().map(|row| row.doc.as_slice());
        let change = Change::calendar(tenant, &calendar.name, was, Some(&doc));
        self.audit(&conn, &[change]).await?;
        let zones = self
            .know_zones(&conn, calendar.zone_followed().into_iter())
            .await?;
        conn.commit().await?;
        self.zones_known(zones);
        Ok(CalendarPut::Done)
    }

    pub(super) async fn try_get_calendars(
        &self,
        tenant: TenantId,
        names: &[CalendarName],
    ) -> Done<Vec<Option<CalendarUse>>> {
        let conn = self.clients.get().await?;
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            let row = conn
                .row(
                    include_str!("sql/get_calendar.sql"),
                    &[&tenant.0, &name.as_str()],
                )
                .await?;
            let row = row.as_ref().map(CalendarRow::read).transpose()?;
            found.push(row.map(CalendarRow::decode).transpose()?);
        }
        Ok(found)
    }

    pub(super) async fn try_list_calendars(
        &self,
        tenant: TenantId,
        after: Option<&CalendarName>,
        count: usize,
    ) -> Done<Vec<CalendarUse>> {
        let conn = self.readers.get().await?;
        // Every name is greater than no text at all.
        let (after, count) = (after.map_or("", CalendarName::as_str), limit(count));
        let rows = conn
            .rows(
                include_str!("sql/list_calendars.sql"),
                &[&tenant.0, &after, &count],
            )
            .await?;
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            match CalendarRow::read(row)?.decode() {
                Ok(calendar) => found.push(calendar),
                // One row that cannot be read must not hide all others.
                Err(error) => tracing::warn!(%tenant, %error, "unreadable calendar"),
            }
        }
        Ok(found)
    }

    pub(super) async fn try_drop_calendar(
        &self,
        tenant: TenantId,
        name: &CalendarName,
        before: Option<Version>,
    ) -> Done<CalendarDropped> {
        let conn = self.clients.begin().await?;
        let Some(row) = lock(&conn, tenant, name).await? else {
            return Ok(CalendarDropped::Missing);
        };
        if before.is_some_and(|before| before != row.version) {
            return Ok(CalendarDropped::Conflict(row.decode()?.calendar));
        }
        let named = limit(NAMED_MAX);
        let users = conn
            .rows(
                include_str!("sql/jobs_under_calendar.sql"),
                &[&tenant.0, &name.as_str(), &None::<Uuid>, &named],
            )
            .await?;
        if !users.is_empty() {
            let users = users.iter().map(|row| row.try_get(1).map(JobId));
            let users = users.collect::<Result<_, _>>()?;
            return Ok(CalendarDropped::InUse(users, row.jobs.unsigned_abs()));
        }
        conn.execute(
            include_str!("sql/drop_calendar.sql"),
            &[&tenant.0, &name.as_str()],
        )
        .await?;
        let change = Change::calendar(tenant, name, Some(&row.doc), None);
        self.audit(&conn, &[change]).await?;
        conn.commit().await?;
        Ok(CalendarDropped::Done)
    }
}

/// Calendars that jobs name, as they stand; they stay so until the call is written.
#[derive(Default)]
pub(super) struct Standing(BTreeMap<(TenantId, CalendarName), Version>);

impl Standing {
    pub(super) async fn share(conn: &Conn, jobs: &[&Job]) -> Done<Self> {
        let named = jobs.iter().flat_map(|job| {
            let names = calendars_of(job).into_keys();
            names.map(|name| (job.tenant, name.as_str()))
        });
        let named: BTreeSet<(TenantId, &str)> = named.collect();
        if named.is_empty() {
            return Ok(Self::default());
        }
        let (tenants, names): (Vec<Uuid>, Vec<&str>) =
            named.iter().map(|(tenant, name)| (tenant.0, *name)).unzip();
        let sql = include_str!("sql/share_calendars.sql");
        let mut stand = BTreeMap::new();
        for row in &conn.rows(sql, &[&tenants, &names]).await? {
            let name: String = row.try_get(1)?;
            let version: i32 = row.try_get(2)?;
            if let Ok(name) = CalendarName::new(&name) {
                let key = (TenantId(row.try_get(0)?), name);
                stand.insert(key, Version(version.cast_unsigned()));
            }
        }
        Ok(Self(stand))
    }

    /// One that a job names and that is not there.
    pub(super) fn missing(&self, job: &Job) -> Option<CalendarName> {
        let mut names = calendars_of(job).into_keys().cloned();
        names.find(|name| !self.0.contains_key(&(job.tenant, name.clone())))
    }

    /// A job that was scheduled by another version of a calendar than the one that stands is to be rescheduled.
    pub(super) async fn doubt(&self, conn: &Conn, jobs: &[&Job]) -> Done<()> {
        let mut doubted: BTreeMap<(TenantId, &str), i32> = BTreeMap::new();
        for job in jobs {
            for (name, version) in calendars_of(job) {
                let stands = self.0.get(&(job.tenant, name.clone()));
                if stands.is_some_and(|stands| *stands != version) {
                    *doubted.entry((job.tenant, name.as_str())).or_default() += 1;
                }
            }
        }
        if doubted.is_empty() {
            return Ok(());
        }
        let (tenants, names): (Vec<Uuid>, Vec<&str>) = doubted
            .keys()
            .map(|(tenant, name)| (tenant.0, *name))
            .unzip();
        let times: Vec<i32> = doubted.into_values().collect();
        let sql = include_str!("sql/doubt_calendars.sql");
        conn.execute(sql, &[&tenants, &names, &times]).await?;
        Ok(())
    }
}
