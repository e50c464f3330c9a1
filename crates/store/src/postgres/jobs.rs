//! Create and read: jobs as clients make them and see them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::schedule::Zone;
use model::{Job, JobId, JobKey, JobState, TenantId, Timestamp, Version};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::calendars::{Standing, is_broken, readable_jobs};
use super::fault::{Done, bad_row};
use super::gather::SMALL_MAX;
use super::pool::Conn;
use super::rows::text;
use super::scene::due_at;
use super::store::{PgStore, retrying};
use crate::code::Code;
use crate::doc;
use crate::{Created, NewJob, StoreError};

type Param<'a> = &'a (dyn ToSql + Sync);

/// A job with its definition encoded, ready to be bound.
pub(super) struct JobToPut {
    pub job: Arc<Job>,
    pub doc: Vec<u8>,
}

impl JobToPut {
    pub fn new(job: Arc<Job>) -> Result<Self, StoreError> {
        let doc = doc::encode_definition(job.id, &job.def);
        let doc = doc.map_err(|error| bad_row(job.id, &error))?;
        Ok(Self { job, doc })
    }

    /// The zone that it follows, as a column: a deleted job follows none.
    pub fn zone(&self) -> Option<&str> {
        let zone = self.job.def.schedule.zone_followed().map(Zone::name);
        zone.filter(|_| !is_gone(&self.job))
    }

    /// Whether reading it takes more than its own row.
    pub fn names_calendars(&self) -> bool {
        !self.job.def.schedule.calendars.is_empty() || is_broken(&self.job)
    }
}

pub(super) fn is_gone(job: &Job) -> bool {
    job.state == JobState::Deleted
}

impl PgStore {
    pub(super) async fn try_get_job(&self, tenant: TenantId, id: JobId) -> Done<Option<Job>> {
        let conn = self.pool.get().await?;
        let rows = conn
            .rows(include_str!("sql/get_job.sql"), &[&[id.0].as_slice()])
            .await?;
        let job = readable_jobs(&conn, &rows).await?.into_iter().next();
        Ok(job.filter(|job| job.tenant == tenant && !is_gone(job)))
    }

    pub(super) async fn try_find_job(&self, tenant: TenantId, key: &JobKey) -> Done<Option<Job>> {
        let conn = self.pool.get().await?;
        let rows = conn
            .rows(
                include_str!("sql/find_job.sql"),
                &[&tenant.0, &key.as_str()],
            )
            .await?;
        Ok(readable_jobs(&conn, &rows).await?.into_iter().next())
    }

    pub(super) async fn create_all(&self, jobs: &[NewJob]) -> Result<Vec<Created>, StoreError> {
        match jobs.len() {
            0..=SMALL_MAX => self.create_together(jobs).await,
            _ => self.create_now(jobs).await,
        }
    }

    /// Writes those that name nothing by one statement, the others with a look at what they name.
    pub(super) async fn create_now(&self, jobs: &[NewJob]) -> Result<Vec<Created>, StoreError> {
        self.now();
        let puts = jobs.iter().map(|new| JobToPut::new(Arc::clone(&new.job)));
        let puts: Vec<JobToPut> = puts.collect::<Result<_, _>>()?;
        let plain = jobs.iter().all(|new| self.is_plain(new));
        if plain && !jobs.is_empty() {
            match self.create_plainly(&puts).await {
                Ok(()) => return Ok(vec![Created::Done; jobs.len()]),
                // Perhaps one is there already.
                Err(fault) if fault.is_about_data() || fault.is_collision() => {}
                Err(fault) => return Err(fault.into()),
            }
        }
        retrying!(self, self.try_create(jobs, &puts))
    }

    /// Whether nothing but its own two rows is written or looked at: it is as new jobs are, has no names and no labels,
    /// and its zone is known.
    pub(super) fn is_plain(&self, new: &NewJob) -> bool {
        let NewJob { job, idempotency } = new;
        let unmoved = job.version == Version::FIRST
            && job.state == JobState::Active
            && job.slot_last.is_none()
            && job.runs_made == 0;
        let untold = job.note.is_none() && job.paused_by.is_none();
        let nameless = idempotency.is_none() && job.key.is_none() && job.def.labels.is_empty();
        let made = job.created_at == job.state_at && job.created_at == job.updated_at;
        let zone = job.def.schedule.zone_followed().map(Zone::name);
        let known = zone.is_none_or(|zone| Self::known(&self.zones).contains(zone));
        let free = job.def.schedule.calendars.is_empty() && !is_broken(job);
        unmoved && untold && nameless && made && known && free
    }

    async fn create_plainly(&self, puts: &[JobToPut]) -> Done<()> {
        let mut columns = PlainColumns::default();
        for put in puts {
            columns.push(put);
        }
        let conn = self.pool.get().await?;
        let sql = include_str!("sql/create_plain.sql");
        conn.execute(sql, &columns.params()).await?;
        Ok(())
    }

    async fn try_create(&self, jobs: &[NewJob], puts: &[JobToPut]) -> Done<Vec<Created>> {
        let conn = self.pool.begin().await?;
        let mut before = Before::read(&conn, jobs).await?;
        let answers: Vec<Created> = jobs.iter().map(|new| before.create(new)).collect();
        let made =
            |(answer, index): &(&Created, usize)| (**answer == Created::Done).then_some(*index);
        let indexes: Vec<usize> = answers.iter().zip(0..).filter_map(|it| made(&it)).collect();
        let new: Vec<&JobToPut> = indexes
            .iter()
            .filter_map(|index| puts.get(*index))
            .collect();
        let asked: Vec<&NewJob> = indexes
            .iter()
            .filter_map(|index| jobs.get(*index))
            .collect();
        if new.is_empty() {
            return Ok(answers);
        }
        let plain: Vec<&Job> = new.iter().map(|put| &*put.job).collect();
        name_calendars(&conn, &plain).await?;
        put_jobs(&conn, &new).await?;
        before.calendars.doubt(&conn, &plain).await?;
        put_labels(&conn, &plain).await?;
        put_requests(&conn, &asked).await?;
        let zones = self.know_zones(&conn, &plain).await?;
        conn.commit().await?;
        self.zones_known(zones);
        Ok(answers)
    }
}

/// What a create meets: answered requests, jobs that are there, keys that are taken; also by earlier ones of the
/// same batch.
#[derive(Default)]
struct Before {
    calendars: Standing,
    requests: BTreeMap<(TenantId, String), ([u8; 32], JobId)>,
    jobs: BTreeSet<JobId>,
    keys: BTreeMap<(TenantId, String), JobId>,
}

impl Before {
    async fn read(conn: &Conn, jobs: &[NewJob]) -> Done<Self> {
        let all: Vec<&Job> = jobs.iter().map(|new| &*new.job).collect();
        let mut before = Self {
            calendars: Standing::share(conn, &all).await?,
            ..Self::default()
        };
        let ids: Vec<Uuid> = jobs.iter().map(|new| new.job.id.0).collect();
        let exists = include_str!("sql/job_exists.sql");
        for row in &conn.rows(exists, &[&ids]).await? {
            before.jobs.insert(JobId(row.try_get(0)?));
        }
        let asked = jobs.iter().filter_map(|new| {
            let asked = new.idempotency.as_ref()?;
            Some((new.job.tenant.0, text(&asked.key)))
        });
        let (tenants, keys): (Vec<Uuid>, Vec<Cow<'_, str>>) = asked.unzip();
        if !keys.is_empty() {
            let sql = include_str!("sql/find_requests.sql");
            for row in &conn.rows(sql, &[&tenants, &keys]).await? {
                let digest: Vec<u8> = row.try_get(2)?;
                let digest = digest.try_into().unwrap_or([0; 32]);
                let key = (TenantId(row.try_get(0)?), row.try_get(1)?);
                before
                    .requests
                    .insert(key, (digest, JobId(row.try_get(3)?)));
            }
        }
        let keyed = jobs.iter().filter_map(|new| key_of(&new.job));
        let (tenants, keys): (Vec<Uuid>, Vec<String>) =
            keyed.map(|(tenant, key)| (tenant.0, key)).unzip();
        if !keys.is_empty() {
            let sql = include_str!("sql/key_holders.sql");
            for row in &conn.rows(sql, &[&tenants, &keys]).await? {
                let key = (TenantId(row.try_get(0)?), row.try_get(1)?);
                before.keys.insert(key, JobId(row.try_get(2)?));
            }
        }
        Ok(before)
    }

    fn create(&mut self, new: &NewJob) -> Created {
        let job = &new.job;
        let request = new.idempotency.as_ref();
        let request = request.map(|asked| ((job.tenant, text(&asked.key).into_owned()), asked));
        if let Some((key, asked)) = &request
            && let Some((digest, id)) = self.requests.get(key)
        {
            return match *digest == asked.digest {
                true => Created::Repeated(*id),
                false => Created::Mismatch,
            };
        }
        if self.jobs.contains(&job.id) {
            // The id was chosen before the first try: its answer was lost.
            return Created::Repeated(job.id);
        }
        let key = key_of(job);
        if let Some(other) = key.as_ref().and_then(|key| self.keys.get(key)) {
            return Created::KeyTaken(*other);
        }
        if let Some(name) = self.calendars.missing(job) {
            return Created::CalendarMissing(name);
        }
        self.keys.extend(key.map(|key| (key, job.id)));
        let request = request.map(|(key, asked)| (key, (asked.digest, job.id)));
        self.requests.extend(request);
        self.jobs.insert(job.id);
        Created::Done
    }
}

/// The key that a job takes, if it takes one.
pub(super) fn key_of(job: &Job) -> Option<(TenantId, String)> {
    let key = job.key.as_ref().filter(|_| !is_gone(job))?;
    Some((job.tenant, key.as_str().to_owned()))
}

/// Both rows of new jobs.
async fn put_jobs(conn: &Conn, puts: &[&JobToPut]) -> Done<()> {
    let mut narrow = NarrowColumns::default();
    let mut wide = WideColumns::default();
    for put in puts {
        narrow.push(&put.job);
        wide.push(put);
    }
    let jobs = conn.prepare(include_str!("sql/create_jobs.sql")).await?;
    let defs = conn
        .prepare(include_str!("sql/create_jobs_def.sql"))
        .await?;
    let (narrow, wide) = (narrow.params(), wide.params());
    tokio::try_join!(biased; conn.tell(&jobs, &narrow), conn.tell(&defs, &wide))?;
    Ok(())
}

/// Columns as `create_plain.sql` has them.
#[derive(Default)]
struct PlainColumns<'a> {
    id: Vec<Uuid>,
    tenant: Vec<Uuid>,
    shard: Vec<i16>,
    made_at: Vec<i64>,
    next_slot: Vec<Option<i64>>,
    due_at: Vec<Option<i64>>,
    doc: Vec<&'a [u8]>,
    payload: Vec<Option<&'a [u8]>>,
    zone: Vec<Option<&'a str>>,
}

impl<'a> PlainColumns<'a> {
    fn push(&mut self, put: &'a JobToPut) {
        let job = &put.job;
        self.id.push(job.id.0);
        self.tenant.push(job.tenant.0);
        self.shard.push(i16::from(job.shard().0));
        self.made_at.push(job.created_at.as_millis());
        let next_slot = job.next_slot.map(|slot| slot.0.as_millis());
        self.next_slot.push(next_slot);
        self.due_at.push(due_at(job).map(Timestamp::as_millis));
        self.doc.push(&put.doc);
        self.payload.push(job.def.payload.as_deref());
        self.zone.push(put.zone());
    }

    fn params(&self) -> [Param<'_>; 9] {
        [
            &self.id,
            &self.tenant,
            &self.shard,
            &self.made_at,
            &self.next_slot,
            &self.due_at,
            &self.doc,
            &self.payload,
            &self.zone,
        ]
    }
}

/// Columns as `create_jobs.sql` has them.
#[derive(Default)]
struct NarrowColumns {
    id: Vec<Uuid>,
    tenant: Vec<Uuid>,
    shard: Vec<i16>,
    version: Vec<i32>,
    state: Vec<i16>,
    state_at: Vec<i64>,
    next_slot: Vec<Option<i64>>,
    due_at: Vec<Option<i64>>,
    slot_last: Vec<Option<i64>>,
    runs_made: Vec<i64>,
}

impl NarrowColumns {
    fn push(&mut self, job: &Job) {
        self.id.push(job.id.0);
        self.tenant.push(job.tenant.0);
        self.shard.push(i16::from(job.shard().0));
        self.version.push(job.version.0.cast_signed());
        self.state.push(job.state.code());
        self.state_at.push(job.state_at.as_millis());
        let next_slot = job.next_slot.map(|slot| slot.0.as_millis());
        self.next_slot.push(next_slot);
        self.due_at.push(due_at(job).map(Timestamp::as_millis));
        self.slot_last.push(job.slot_last.map(Timestamp::as_millis));
        self.runs_made.push(i64::from(job.runs_made));
    }

    fn params(&self) -> [Param<'_>; 10] {
        [
            &self.id,
            &self.tenant,
            &self.shard,
            &self.version,
            &self.state,
            &self.state_at,
            &self.next_slot,
            &self.due_at,
            &self.slot_last,
            &self.runs_made,
        ]
    }
}

/// Columns as `create_jobs_def.sql` has them.
#[derive(Default)]
struct WideColumns<'a> {
    id: Vec<Uuid>,
    tenant: Vec<Uuid>,
    key: Vec<Option<&'a str>>,
    gone: Vec<bool>,
    created_at: Vec<i64>,
    updated_at: Vec<i64>,
    note: Vec<Option<Cow<'a, str>>>,
    doc: Vec<&'a [u8]>,
    payload: Vec<Option<&'a [u8]>>,
    paused_by: Vec<Option<Cow<'a, str>>>,
    calendars: Vec<bool>,
    zone: Vec<Option<&'a str>>,
}

impl<'a> WideColumns<'a> {
    fn push(&mut self, put: &'a JobToPut) {
        let job = &put.job;
        self.id.push(job.id.0);
        self.tenant.push(job.tenant.0);
        self.key.push(job.key.as_ref().map(JobKey::as_str));
        self.gone.push(is_gone(job));
        self.created_at.push(job.created_at.as_millis());
        self.updated_at.push(job.updated_at.as_millis());
        self.note.push(job.note.as_deref().map(text));
        self.doc.push(&put.doc);
        self.payload.push(job.def.payload.as_deref());
        self.paused_by.push(job.paused_by.as_deref().map(text));
        self.calendars.push(put.names_calendars());
        self.zone.push(put.zone());
    }

    fn params(&self) -> [Param<'_>; 12] {
        [
            &self.id,
            &self.tenant,
            &self.key,
            &self.gone,
            &self.created_at,
            &self.updated_at,
            &self.note,
            &self.doc,
            &self.payload,
            &self.paused_by,
            &self.calendars,
            &self.zone,
        ]
    }
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

async fn put_requests(conn: &Conn, new: &[&NewJob]) -> Done<()> {
    let (mut tenants, mut keys, mut digests) = (vec![], vec![], vec![]);
    let (mut ids, mut moments) = (vec![], vec![]);
    for NewJob { job, idempotency } in new {
        if let Some(asked) = idempotency {
            tenants.push(job.tenant.0);
            keys.push(text(&asked.key));
            digests.push(asked.digest.as_slice());
            ids.push(job.id.0);
            moments.push(job.created_at.as_millis());
        }
    }
    if !ids.is_empty() {
        let sql = include_str!("sql/create_jobs_request.sql");
        conn.execute(sql, &[&tenants, &keys, &digests, &ids, &moments])
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
