//! Views: what decisions of one call see, read under lock. The rules are the model's (`model::view`); what they decide is
//! written by `effects`.
//!
//! Locks are always taken in this order: a presence, jobs by id, live runs by id. History is read after what lives is known:
//! a run that ends meanwhile is found in one place or the other.

use std::collections::BTreeMap;

use model::view::{Needs, PAST_BACK, PAST_MAX, Past, Span, View};
use model::{Job, JobId, JobState, Reason, Run, RunId, RunState, Slot, TenantId, Timestamp};
use tokio_postgres::Row;
use uuid::Uuid;

use super::calendars::read_jobs;
use super::fault::{Done, Fault};
use super::fire::is_exclusive;
use super::pool::Conn;
use super::put::Param;
use super::rows::{LiveRow, maybe_word, moment, read_narrow, word};
use super::store::limit;
use crate::audit::{Change, is_end};
use crate::code::{bad_row, read_stretch};
use crate::row::{Narrow, Payloads};
use crate::{StoreError, doc};

/// Whether live runs are locked besides their jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lock {
    /// What is written of them says what they were like, and is refused if that has changed.
    Jobs,
    /// Wherever a run may be inserted that waits for one of them, and wherever they are marked.
    JobsAndRuns,
}

impl Lock {
    fn sql(self) -> &'static str {
        match self {
            Self::Jobs => include_str!("sql/live_of_jobs.sql"),
            Self::JobsAndRuns => include_str!("sql/lock_live_of_jobs.sql"),
        }
    }
}

#[derive(Default)]
pub(super) struct Views {
    pub jobs: BTreeMap<JobId, JobView>,
    /// The number of the presence that claims what it inserts.
    pub no: Option<i32>,
}

/// One job: what a decision sees of it, and how that is stored.
#[derive(Default)]
pub(super) struct JobView {
    pub view: View,
    /// Where it stands, locked. None: nothing but some of its runs was read.
    narrow: Option<Narrow>,
    unreadable: Option<String>,
    pub stored: BTreeMap<RunId, Stored>,
}

/// What the row of a living run says besides the run itself.
pub(super) struct Stored {
    /// The number of the presence that holds it.
    pub no: Option<i32>,
    pub exclusive: bool,
    pub attempts: Option<Vec<u8>>,
}

impl JobView {
    /// Whether the end of one of its runs may mean something to the job or to another run, from now on. Where the
    /// definition was not read, what is stored stays: nothing waits that did not wait before.
    pub(super) fn exclusive(&self, stored: bool) -> bool {
        let waits = self.view.live.values().any(Run::waits_for_turn);
        waits || self.view.job.as_ref().map_or(stored, is_exclusive)
    }
}

impl Views {
    /// Jobs and their live runs, locked.
    pub(super) async fn load(conn: &Conn, ids: &[Uuid], lock: Lock) -> Done<Self> {
        Self::load_some(conn, ids, ids, lock).await
    }

    /// Jobs, locked, and the live runs of some of them. Runs are read when the locks are there.
    pub(super) async fn load_some(
        conn: &Conn,
        ids: &[Uuid],
        living: &[Uuid],
        lock: Lock,
    ) -> Done<Self> {
        let jobs = conn.prepare(include_str!("sql/lock_jobs.sql")).await?;
        let live = conn.prepare(lock.sql()).await?;
        let (ids, living) = ([&ids as Param<'_>], [&living as Param<'_>]);
        let (jobs, live) = tokio::try_join!(biased; conn.query_prepared(&jobs, &ids), conn.query_prepared(&live, &living))?;
        let mut views = Self::default();
        for row in &jobs {
            let narrow = read_narrow(row)?;
            views.jobs.entry(narrow.id).or_default().narrow = Some(narrow);
        }
        for row in &live {
            views.add(LiveRow::read(row)?)?;
        }
        Ok(views)
    }

    pub(super) fn add(&mut self, row: LiveRow) -> Done<()> {
        if row.no.is_some() != row.run.claim.is_some() {
            // It was claimed while its lock was waited for: the row is the new one, its holder's name is not.
            return Err(Fault::Overtaken);
        }
        // One whose attempts cannot be read is buried by whoever claims it.
        let (trace, attempts) = doc::decode_live(row.attempts.as_deref());
        let held = self.jobs.entry(row.run.job).or_default();
        let stored = Stored {
            no: row.no,
            exclusive: row.exclusive,
            attempts: row.attempts,
        };
        held.stored.insert(row.run.id, stored);
        let run = Run {
            trace,
            attempts: attempts.unwrap_or_default(),
            ..row.run
        };
        held.view.live.insert(run.id, run);
        Ok(())
    }

    /// Reads jobs that are locked, as they stand; one that cannot be read is known as such. One that was created since the
    /// locks were taken is not locked, and is taken for one that is not there.
    pub(super) async fn read_jobs(
        &mut self,
        conn: &Conn,
        ids: &[Uuid],
        payloads: Payloads,
    ) -> Done<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let sql = include_str!("sql/get_job.sql");
        let rows = conn.rows(sql, &[&ids, &payloads.max()]).await?;
        for (id, job) in read_jobs(conn, &rows).await? {
            let locked = self.jobs.get_mut(&id).filter(|held| held.narrow.is_some());
            let Some(held) = locked else {
                continue;
            };
            let rests = held.narrow.as_ref().is_some_and(is_resting);
            held.unreadable = job.as_ref().err().map(|bad| bad.detail.clone());
            held.view.unreadable = held.unreadable.clone().filter(|_| rests);
            held.view.job = job.ok();
        }
        Ok(())
    }

    /// Reads those that rest or count their failures: what the end of a run means for them takes their definitions.
    pub(super) async fn read_concerned(&mut self, conn: &Conn) -> Done<()> {
        let narrow = self.jobs.values().filter_map(|held| held.narrow);
        let concerned = narrow.filter(|job| is_resting(job) || job.stands.failures.is_some());
        let concerned: Vec<Uuid> = concerned.map(|job| job.id.0).collect();
        self.read_jobs(conn, &concerned, Payloads::Small).await
    }

    /// A job that was read, if it could be.
    pub(super) fn job(&self, id: JobId) -> Result<Option<&Job>, StoreError> {
        let Some(held) = self.jobs.get(&id) else {
            return Ok(None);
        };
        match &held.unreadable {
            None => Ok(held.view.job.as_ref()),
            Some(detail) => Err(bad_row(id, detail)),
        }
    }

    /// A job whose definition the caller has, if that is still its own.
    pub(super) fn know(&mut self, job: &Job) {
        if let Some(held) = self.jobs.get_mut(&job.id)
            && let Some(narrow) = held.narrow.filter(|it| it.version == job.version)
        {
            held.view.job = Some(job.at_standing(narrow.stands));
        }
    }

    /// Jobs that recur and come to their end with what is decided.
    pub(super) fn ends(&self) -> Vec<Change> {
        let end = |held: &JobView| {
            let was = held.narrow?.stands.state;
            let job = held.view.effects.job.as_ref();
            let job = job.filter(|job| was == JobState::Active && is_end(job))?;
            let note = job.note.as_deref();
            Some(Change::job_moved(job.tenant, job.id, job.state, note))
        };
        self.jobs.values().filter_map(end).collect()
    }

    /// A living run, if it was read.
    pub(super) fn run(&self, job: JobId, id: RunId) -> Option<&Run> {
        self.jobs.get(&job)?.view.live.get(&id)
    }

    /// What a decision about a job sees; nothing, if it is gone.
    pub(super) fn view(&mut self, job: JobId) -> &mut View {
        &mut self.jobs.entry(job).or_default().view
    }
}

/// Whether a job waits for its run to end, which sets the next slot.
fn is_resting(job: &Narrow) -> bool {
    job.stands.state == JobState::Active && job.stands.next_slot.is_none()
}

const DAY: i64 = 24 * 3_600 * 1_000;

fn start_of_day(at: Timestamp) -> Timestamp {
    let millis = at.as_millis();
    Timestamp::from_millis(millis - millis.rem_euclid(DAY))
}

fn least_at(at: Timestamp) -> Uuid {
    RunId::least_at(at).0
}

/// What ended under some names: whose it was, and how.
pub(super) async fn ended_named(
    conn: &Conn,
    names: &[Uuid],
) -> Done<BTreeMap<RunId, (TenantId, (RunState, Option<Reason>))>> {
    let mut ended = BTreeMap::new();
    if names.is_empty() {
        return Ok(ended);
    }
    let sql = include_str!("sql/named_ended.sql");
    for row in &conn.rows(sql, &[&names]).await? {
        let tenant = TenantId(row.try_get(3)?);
        let how = (word(row, 1)?, maybe_word(row, 2)?);
        ended.insert(RunId(row.try_get(0)?), (tenant, how));
    }
    Ok(ended)
}

impl Views {
    /// Reads what decisions need; a job may be named several times, with one name and one moment at most.
    pub(super) async fn read_history(&mut self, conn: &Conn, needs: &[(JobId, Needs)]) -> Done<()> {
        let spans = needs.iter().filter_map(|(job, it)| Some((*job, it.ran?)));
        self.read_ran(conn, &spans.collect::<Vec<_>>()).await?;
        let skips = needs.iter().filter(|(_, it)| it.skips);
        let skips = skips.filter_map(|(job, it)| Some((*job, it.ran?.0)));
        self.read_skips(conn, &skips.collect::<Vec<_>>()).await?;
        let names = needs.iter().filter_map(|(_, it)| Some(it.named?.0));
        let ended = ended_named(conn, &names.collect::<Vec<_>>()).await?;
        for (job, needs) in needs {
            if let Some((_, how)) = needs.named.and_then(|id| ended.get(&id)) {
                self.view(*job).history.named = Some(*how);
            }
        }
        let past = needs.iter().filter_map(|(job, it)| Some((*job, it.past?)));
        self.read_past(conn, &past.collect::<Vec<_>>()).await
    }

    async fn read_ran(&mut self, conn: &Conn, spans: &[(JobId, Span)]) -> Done<()> {
        if spans.is_empty() {
            return Ok(());
        }
        let jobs: Vec<Uuid> = spans.iter().map(|(job, _)| job.0).collect();
        let bounds = spans.iter().map(|(_, (a, b))| (least_at(*a), least_at(*b)));
        let (first, end): (Vec<Uuid>, Vec<Uuid>) = bounds.unzip();
        let sql = include_str!("sql/ran.sql");
        for row in &conn.rows(sql, &[&jobs, &first, &end]).await? {
            let (job, run) = (JobId(row.try_get(0)?), RunId(row.try_get(1)?));
            self.view(job).history.ran.insert(Slot(run.at()));
        }
        Ok(())
    }

    /// Of records that begin before the moment, only the last can reach beyond it, and none beyond its day.
    async fn read_skips(&mut self, conn: &Conn, from: &[(JobId, Timestamp)]) -> Done<()> {
        if from.is_empty() {
            return Ok(());
        }
        let jobs: Vec<Uuid> = from.iter().map(|(job, _)| job.0).collect();
        let bounds = from.iter().map(|(_, at)| (*at, start_of_day(*at)));
        let bounds = bounds.map(|(first, day)| (least_at(first), least_at(day)));
        let (first, day): (Vec<Uuid>, Vec<Uuid>) = bounds.unzip();
        let sql = include_str!("sql/skip_records.sql");
        for row in &conn.rows(sql, &[&jobs, &first, &day]).await? {
            let (job, run) = (JobId(row.try_get(0)?), RunId(row.try_get(1)?));
            let slots = read_stretch(run, row.try_get(2)?, row.try_get(3)?);
            self.view(job).history.skips.insert(run, slots);
        }
        Ok(())
    }

    /// Runs that were under way at a moment and have ended since.
    pub(super) async fn read_past(
        &mut self,
        conn: &Conn,
        moments: &[(JobId, Timestamp)],
    ) -> Done<()> {
        for row in &past(conn, moments).await? {
            let past = Past {
                id: RunId(row.try_get(1)?),
                kind: word(row, 2)?,
                dispatched_at: moment(row, 3)?,
                settled_at: moment(row, 4)?,
            };
            let job = JobId(row.try_get(0)?);
            self.view(job).history.past.push(past);
        }
        Ok(())
    }
}

async fn past(conn: &Conn, moments: &[(JobId, Timestamp)]) -> Done<Vec<Row>> {
    let ids = |at: Timestamp| (least_at(at.minus(PAST_BACK)), least_at(at));
    let jobs: Vec<Uuid> = moments.iter().map(|(job, _)| job.0).collect();
    let bounds = moments.iter().map(|(_, at)| ids(*at));
    let (first, end): (Vec<Uuid>, Vec<Uuid>) = bounds.unzip();
    let at: Vec<i64> = moments.iter().map(|(_, at)| at.as_millis()).collect();
    // Bounds of the whole batch, so that partitions are left out that no job needs.
    let (Some(least), Some(most)) = (first.iter().min(), end.iter().max()) else {
        return Ok(Vec::new());
    };
    let params: [super::put::Param<'_>; 7] =
        [&jobs, &first, &end, &at, least, most, &limit(PAST_MAX)];
    conn.rows(include_str!("sql/past.sql"), &params).await
}
