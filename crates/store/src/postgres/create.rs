//! Create: new jobs, with what makes requests repeatable. Those that name nothing take one statement; the others are
//! looked at first, and a batch that is refused for one of them is written without it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::schedule::Zone;
use model::{Job, JobId, JobKey, JobState, TenantId, Timestamp, Usage, Version};
use uuid::Uuid;

use super::audit::EntryColumns;
use super::batch::fast;
use super::calendars::Standing;
use super::fault::Done;
use super::gather::SMALL_MAX;
use super::jobs::{key_of, name_calendars, put_labels};
use super::pool::Conn;
use super::put::{Param, columns};
use super::rows::text;
use super::store::PgStore;
use super::uses::{Rooms, UseColumns, defaults};
use crate::audit::Change;
use crate::code::Code;
use crate::doc::DocError;
use crate::row::{JobToPut, due_column, is_broken, is_gone};
use crate::{Acting, Created, NewJob, StoreError};

/// A job to be created.
pub(super) struct Create<'a> {
    new: &'a NewJob,
    acting: Arc<Acting>,
}

impl<'a> Create<'a> {
    pub(super) fn new(new: &'a NewJob, acting: &Arc<Acting>) -> Self {
        let acting = Arc::clone(acting);
        Self { new, acting }
    }
}

/// Those of one call, for whoever makes it.
pub(super) fn for_now(jobs: &[NewJob]) -> Vec<Create<'_>> {
    let acting = Acting::now();
    jobs.iter().map(|new| Create::new(new, &acting)).collect()
}

/// A create, encoded before it is tried; or why it cannot be.
struct CreateRow<'a> {
    new: &'a NewJob,
    acting: &'a Acting,
    put: Result<JobToPut, DocError>,
}

impl CreateRow<'_> {
    /// What the audit log says of it.
    fn entered(&self) -> Option<(&Acting, Change)> {
        let put = self.put.as_ref().ok()?;
        Some((self.acting, put.created()))
    }
}

impl PgStore {
    pub(super) async fn create_all(&self, jobs: &[NewJob]) -> Result<Vec<Created>, StoreError> {
        let held = self.creates.budget.hold_jobs(jobs)?;
        match jobs.len() {
            0..=SMALL_MAX => self.create_together(jobs, held).await,
            _ => self.create_now(&for_now(jobs)).await,
        }
    }

    /// Writes those that name nothing by one statement, the others with a look at what they name.
    pub(super) async fn create_now(&self, jobs: &[Create<'_>]) -> Result<Vec<Created>, StoreError> {
        self.now();
        let rows = jobs.iter().map(|Create { new, acting }| CreateRow {
            new,
            acting,
            put: JobToPut::new(&new.job),
        });
        let rows: Vec<CreateRow<'_>> = rows.collect();
        let plain = |row: &CreateRow<'_>| row.put.is_ok() && self.is_plain(row.new);
        if !rows.is_empty() && rows.iter().all(plain) {
            let created = fast(self.create_fast_path(&rows).await)?;
            if !created.is_empty() {
                return Ok(created);
            }
        }
        self.in_halves(
            &rows,
            |batch| self.create_slow_path(batch),
            Created::Refused,
        )
        .await
    }

    /// Whether nothing but its own two rows is written or looked at: it is as new jobs are, has no names and no labels,
    /// and its zone is known.
    pub(super) fn is_plain(&self, new: &NewJob) -> bool {
        let NewJob { job, idempotency } = new;
        let unmoved = job.version == Version::FIRST
            && job.state == JobState::Active
            && job.slot_last.is_none()
            && job.runs_made == 0
            && job.failures.is_none();
        let without_notes = job.note.is_none() && job.paused_by.is_none();
        let nameless = idempotency.is_none() && job.key.is_none() && job.def.labels.is_empty();
        let made = job.created_at == job.state_at && job.created_at == job.updated_at;
        let zone = job.def.schedule.zone_followed().map(Zone::name);
        let known = zone.is_none_or(|zone| Self::known(&self.zones).contains(zone));
        let free = job.def.schedule.calendars.is_empty() && !is_broken(job);
        unmoved && without_notes && nameless && made && known && free
    }

    async fn create_fast_path(&self, rows: &[CreateRow<'_>]) -> Done<Vec<Created>> {
        let mut columns = PlainJobColumns::default();
        let mut entries = EntryColumns::default();
        for put in rows.iter().filter_map(|row| row.put.as_ref().ok()) {
            columns.push(put);
        }
        let audited = rows.iter().filter(|_| self.audits_creates);
        let entered: Vec<_> = audited.filter_map(CreateRow::entered).collect();
        for (acting, change) in &entered {
            entries.push(change, acting);
        }
        let uses = UseColumns::of_new(rows.iter().map(|row| &*row.new.job));
        let [jobs_max, bytes_max] = defaults();
        let conn = self.clients.get().await?;
        let sql = include_str!("sql/create_plain.sql");
        let now = self.now();
        let mut params = columns.params();
        params.push(&now);
        params.extend(entries.of_new());
        params.extend::<[Param<'_>; 5]>([
            &uses.tenants,
            &uses.jobs,
            &uses.bytes,
            &jobs_max,
            &bytes_max,
        ]);
        let written = conn.execute(sql, &params).await?;
        // None if a tenant may not have as much.
        let created = if written == 0 { 0 } else { rows.len() };
        Ok(vec![Created::Done; created])
    }

    async fn create_slow_path(&self, rows: &[CreateRow<'_>]) -> Done<Vec<Created>> {
        let conn = self.clients.begin().await?;
        let mut before = Before::read(&conn, rows).await?;
        let mut answers = Vec::with_capacity(rows.len());
        let (mut new, mut requested, mut entered) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            let answer = match &row.put {
                Err(error) => Created::Refused(error.to_string()),
                Ok(put) => {
                    let answer = before.create(row.new);
                    if answer == Created::Done {
                        new.push(put);
                        requested.push(row.new);
                        entered.extend(row.entered().filter(|_| self.audits_creates));
                    }
                    answer
                }
            };
            answers.push(answer);
        }
        if new.is_empty() {
            return Ok(answers);
        }
        let jobs: Vec<&Job> = new.iter().map(|put| &*put.job).collect();
        name_calendars(&conn, &jobs).await?;
        put_jobs(&conn, &new).await?;
        UseColumns::of_new(jobs.iter().copied())
            .write(&conn)
            .await?;
        before.calendars.doubt(&conn, &jobs).await?;
        put_labels(&conn, &jobs).await?;
        put_requests(&conn, &requested).await?;
        let mut entries = EntryColumns::default();
        for (acting, change) in &entered {
            entries.push(change, acting);
        }
        self.enter(&conn, &entries).await?;
        let followed = jobs
            .iter()
            .filter_map(|job| job.def.schedule.zone_followed());
        let zones = self.know_zones(&conn, followed).await?;
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
    rooms: Rooms,
    requests: BTreeMap<(TenantId, String), ([u8; 32], JobId)>,
    jobs: BTreeSet<JobId>,
    keys: BTreeMap<(TenantId, String), JobId>,
}

impl Before {
    async fn read(conn: &Conn, rows: &[CreateRow<'_>]) -> Done<Self> {
        let jobs: Vec<&NewJob> = rows.iter().map(|row| row.new).collect();
        let all: Vec<&Job> = jobs.iter().map(|new| &*new.job).collect();
        let tenants: BTreeSet<Uuid> = all.iter().map(|job| job.tenant.0).collect();
        let tenants: Vec<Uuid> = tenants.into_iter().collect();
        let mut before = Self {
            calendars: Standing::share(conn, &all).await?,
            rooms: Rooms::read(conn, &tenants).await?,
            ..Self::default()
        };
        let ids: Vec<Uuid> = jobs.iter().map(|new| new.job.id.0).collect();
        let exists = include_str!("sql/job_exists.sql");
        for row in &conn.rows(exists, &[&ids]).await? {
            before.jobs.insert(JobId(row.try_get(0)?));
        }
        let requested = jobs.iter().filter_map(|new| {
            let requested = new.idempotency.as_ref()?;
            Some((new.job.tenant.0, text(&requested.key)))
        });
        let (tenants, keys): (Vec<Uuid>, Vec<Cow<'_, str>>) = requested.unzip();
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
        let request =
            request.map(|requested| ((job.tenant, text(&requested.key).into_owned()), requested));
        if let Some((key, requested)) = &request
            && let Some((digest, id)) = self.requests.get(key)
        {
            return if *digest == requested.digest {
                Created::Repeated(*id)
            } else {
                Created::Mismatch
            };
        }
        if self.jobs.contains(&job.id) {
            // The id was chosen before the first try: its answer was lost.
            return Created::Repeated(job.id);
        }
        let key = key_of(job);
        if let Some(other) = key.as_ref().and_then(|key| self.keys.get(key)) {
            // Its first try may have come through between two looks.
            return if *other == job.id {
                Created::Repeated(job.id)
            } else {
                Created::KeyTaken(*other)
            };
        }
        if let Some(name) = self.calendars.missing(job) {
            return Created::CalendarMissing(name);
        }
        let takes = Usage::by(job);
        if let Err(exceeded) = self.rooms.admit(job.tenant, Usage::default(), takes) {
            return Created::QuotaExceeded(exceeded);
        }
        self.keys.extend(key.map(|key| (key, job.id)));
        let request = request.map(|(key, requested)| (key, (requested.digest, job.id)));
        self.requests.extend(request);
        self.jobs.insert(job.id);
        Created::Done
    }
}

/// Both rows of new jobs.
async fn put_jobs(conn: &Conn, puts: &[&JobToPut]) -> Done<()> {
    let mut narrow = JobColumns::default();
    let mut wide = DefColumns::default();
    for put in puts {
        narrow.push(&put.job);
        wide.push(put);
    }
    let jobs = conn.prepare(include_str!("sql/create_jobs.sql")).await?;
    let defs = conn
        .prepare(include_str!("sql/create_jobs_def.sql"))
        .await?;
    let (narrow, wide) = (narrow.params(), wide.params());
    tokio::try_join!(biased; conn.execute_prepared(&jobs, &narrow), conn.execute_prepared(&defs, &wide))?;
    Ok(())
}

async fn put_requests(conn: &Conn, new: &[&NewJob]) -> Done<()> {
    let (mut tenants, mut keys, mut digests) = (vec![], vec![], vec![]);
    let (mut ids, mut moments) = (vec![], vec![]);
    for NewJob { job, idempotency } in new {
        if let Some(requested) = idempotency {
            tenants.push(job.tenant.0);
            keys.push(text(&requested.key));
            digests.push(requested.digest.as_slice());
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

columns! {
    /// Columns as `create_plain.sql` has them.
    PlainJobColumns<'a>(put: &'a JobToPut) {
        let job = &put.job;
        let next_slot = job.next_slot.map(|slot| slot.0.as_millis());
    } [
        id: Uuid = job.id.0,
        tenant: Uuid = job.tenant.0,
        shard: i16 = i16::from(job.shard().0),
        made_at: i64 = job.created_at.as_millis(),
        next_slot: Option<i64> = next_slot,
        due_at: Option<i64> = due_column(job),
        doc: &'a [u8] = &put.doc,
        payload: Option<&'a [u8]> = job.def.payload.as_deref(),
        zone: Option<&'a str> = put.zone(),
        owner: Option<Cow<'a, str>> = job.owner.as_deref().map(text),
    ]
}

columns! {
    /// Columns as `create_jobs.sql` has them.
    JobColumns(job: &Job) {
        let next_slot = job.next_slot.map(|slot| slot.0.as_millis());
    } [
        id: Uuid = job.id.0,
        tenant: Uuid = job.tenant.0,
        shard: i16 = i16::from(job.shard().0),
        version: i32 = job.version.0.cast_signed(),
        state: i16 = job.state.code(),
        state_at: i64 = job.state_at.as_millis(),
        next_slot: Option<i64> = next_slot,
        due_at: Option<i64> = due_column(job),
        slot_last: Option<i64> = job.slot_last.map(Timestamp::as_millis),
        runs_made: i64 = i64::from(job.runs_made),
        failures: Option<i32> = job.failures.map(u32::cast_signed),
    ]
}

columns! {
    /// Columns as `create_jobs_def.sql` has them.
    DefColumns<'a>(put: &'a JobToPut) {
        let job = &put.job;
    } [
        id: Uuid = job.id.0,
        tenant: Uuid = job.tenant.0,
        key: Option<&'a str> = job.key.as_ref().map(JobKey::as_str),
        gone: bool = is_gone(job),
        created_at: i64 = job.created_at.as_millis(),
        updated_at: i64 = job.updated_at.as_millis(),
        note: Option<Cow<'a, str>> = job.note.as_deref().map(text),
        doc: &'a [u8] = &put.doc,
        payload: Option<&'a [u8]> = job.def.payload.as_deref(),
        paused_by: Option<Cow<'a, str>> = job.paused_by.as_deref().map(text),
        calendars: bool = put.names_calendars(),
        zone: Option<&'a str> = put.zone(),
        owner: Option<Cow<'a, str>> = job.owner.as_deref().map(text),
    ]
}
