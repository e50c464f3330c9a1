//! What a promise is tried on: a fresh store, a clock that the test moves, two presences; and the smallest
//! jobs, firings and settlements that say what a promise is about.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use model::presence::LastBeat;
use model::schedule::{Every, Period, Zone, tzdb_version};
use model::shard::ShardSet;
use model::view::Known;
use model::{
    Attempt, AttemptNo, Definition, Job, JobId, Level, Outcome, Parts, PresenceId, Reason, Report,
    Run, RunId, RunState, Schedule, Skip, Slot, Stretch, Target, TenantId, Timestamp, Verdict,
};

use crate::mem::MemStore;
use crate::{
    BoxError, Created, Fired, Firing, JobChange, JobChanged, Leases, NewJob, NodeInfo, NodeStatus,
    Page, RunFilter, RunsOfChange, Settled, Settlement, Store, StoreClock,
};

/// What trying a promise comes to.
pub type Kept = Result<(), BoxError>;

/// A store opened (again), and what must outlive it, such as its folder.
pub type Opened = Pin<Box<dyn Future<Output = Result<Arc<dyn Store>, BoxError>> + Send>>;

/// Closes a store as a crash would, and opens it again.
pub type Reopen = Arc<dyn Fn(Arc<dyn Store>) -> Opened + Send + Sync>;

/// 2023-11-14T22:13:20Z: no round number, so that nothing is right by chance.
const BASE: i64 = 1_700_000_000_000;

/// So many seconds after the tests' beginning of time.
pub fn at(secs: i64) -> Timestamp {
    Timestamp::from_millis(BASE + secs * 1_000)
}

pub fn slot(secs: i64) -> Slot {
    Slot(at(secs))
}

/// The node that decides.
pub const NODE: &str = "first";

/// Whoever changes jobs.
pub fn someone() -> Arc<str> {
    Arc::from("someone")
}

/// A node that says so much of itself.
pub fn node(name: &str) -> NodeInfo {
    NodeInfo {
        name: name.to_owned(),
        version: format!("1.0 of {name}"),
        tables: tzdb_version().to_owned(),
        // Not those that a node has unless it is configured otherwise.
        parts: Parts::from_code(6),
        level: Level(3),
        kinds: vec!["http".to_owned(), format!("of {name}")],
    }
}

/// A clock that stands still until it is moved.
#[derive(Clone, Default)]
pub struct TestClock {
    /// Milliseconds since [`BASE`], and since some start of the machine.
    wall: Arc<AtomicI64>,
    uptime: Arc<AtomicI64>,
}

impl TestClock {
    /// Lets time pass.
    pub fn advance(&self, span: Duration) {
        let span = model::time::millis(span);
        self.wall.fetch_add(span, Ordering::SeqCst);
        self.uptime.fetch_add(span, Ordering::SeqCst);
    }

    /// Sets the clock on the wall forward or back; no time passes.
    pub fn step_wall(&self, millis: i64) {
        self.wall.fetch_add(millis, Ordering::SeqCst);
    }
}

impl StoreClock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(BASE + self.wall.load(Ordering::SeqCst))
    }

    fn uptime(&self) -> Duration {
        let passed = self.uptime.load(Ordering::SeqCst);
        Duration::from_secs(1_000) + Duration::from_millis(u64::try_from(passed).unwrap_or(0))
    }
}

/// Every row that decisions write, as text; where a store has rows.
pub type Rows = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Vec<String>> + Send>> + Send + Sync>;

/// A store on trial.
pub struct Subject {
    pub store: Arc<dyn Store>,
    pub clock: TestClock,
    /// The first presence, holding every shard.
    pub leases: Leases,
    /// The second, holding none.
    pub other: Leases,
    /// For stores that one process opens: a crash, and what follows.
    pub reopen: Option<Reopen>,
    pub rows: Option<Rows>,
    /// Dropped last: a folder, a schema.
    pub guard: Box<dyn Any + Send + Sync>,
}

impl Subject {
    /// A subject over a fresh, empty store that was opened with this clock.
    pub async fn over(store: Arc<dyn Store>, clock: TestClock) -> Result<Self, BoxError> {
        let first = store.join(&node(NODE)).await?;
        let second = store.join(&node("second")).await?;
        let leases = store.lease(first, &ShardSet::ALL).await?;
        let other = store.lease(second, &ShardSet::default()).await?;
        Ok(Self {
            store,
            clock,
            leases,
            other,
            reopen: None,
            rows: None,
            guard: Box::new(()),
        })
    }

    pub async fn mem() -> Result<Self, BoxError> {
        let clock = TestClock::default();
        let mem = MemStore::new(Arc::new(clock.clone()));
        let subject = Self::over(Arc::new(mem.clone()), clock).await?;
        let reopen: Reopen = Arc::new(move |_| {
            mem.reopen();
            let again: Arc<dyn Store> = Arc::new(mem.clone());
            Box::pin(async move { Ok(again) })
        });
        Ok(subject.with_reopen(reopen))
    }

    pub fn with_reopen(self, reopen: Reopen) -> Self {
        Self {
            reopen: Some(reopen),
            ..self
        }
    }

    pub fn with_rows(self, rows: Rows) -> Self {
        Self {
            rows: Some(rows),
            ..self
        }
    }

    pub fn with_guard(self, guard: impl Any + Send + Sync) -> Self {
        Self {
            guard: Box::new(guard),
            ..self
        }
    }

    pub fn presence(&self) -> PresenceId {
        self.leases.presence
    }

    /// Creates a job that nothing refuses.
    pub async fn put(&self, job: Job) -> Result<Arc<Job>, BoxError> {
        let job = Arc::new(job);
        let created = self.store.create_jobs(&[new(&job)]).await?;
        assert_eq!(created, [Created::Done]);
        Ok(job)
    }

    /// The job as it stands.
    pub async fn job(&self, id: JobId) -> Result<Arc<Job>, BoxError> {
        let job = self.store.get_job(TenantId::DEFAULT, id).await?;
        Ok(Arc::new(job.ok_or("the job is not there")?))
    }

    /// The run as it stands.
    pub async fn run(&self, id: RunId) -> Result<Run, BoxError> {
        let run = self.store.get_run(TenantId::DEFAULT, id).await?;
        Ok(run.ok_or("the run is not there")?)
    }

    /// What the first presence knows of the runs that it holds: each was dispatched when it was due.
    pub async fn knows(&self, job: JobId) -> Result<Vec<Known>, BoxError> {
        let filter = RunFilter {
            job: Some(job),
            states: vec![RunState::Ready, RunState::Running],
            ..RunFilter::default()
        };
        let page = Page {
            before: None,
            limit: 100,
        };
        let runs = self
            .store
            .list_runs(TenantId::DEFAULT, &filter, page)
            .await?;
        let held = runs.iter().filter(|run| run.claim == Some(self.presence()));
        let known = held.map(|run| Known {
            run: run.id,
            dispatched_at: Some(run.due_at),
            ended_at: None,
        });
        Ok(known.collect())
    }

    /// Fires a job's next slot on time, as the first presence. Runs that it holds were dispatched on time too.
    pub async fn fire(&self, job: JobId, claim: bool) -> Result<Fired, BoxError> {
        let job = self.job(job).await?;
        let due_at = job.next_due_at().ok_or("the job has no next slot")?;
        let firing = Firing {
            claim,
            knows: self.knows(job.id).await?,
            ..firing(&job, due_at)
        };
        let fired = self.store.fire(&self.leases, &[firing]).await?;
        Ok(fired
            .into_iter()
            .next()
            .ok_or("a firing without an answer")?)
    }

    /// Fires a job's next slot on time; the run is claimed by the first presence.
    pub async fn claimed(&self, job: JobId) -> Result<Run, BoxError> {
        let fired = self.fire(job, true).await?;
        let Fired::Claimed(run) = fired else {
            return Err(format!("fired as {fired:?}").into());
        };
        self.run(run).await
    }

    /// Fires a job's next slot on time; nobody holds the run.
    pub async fn ready(&self, job: JobId) -> Result<Run, BoxError> {
        let fired = self.fire(job, false).await?;
        let Fired::Ready(run) = fired else {
            return Err(format!("fired as {fired:?}").into());
        };
        self.run(run).await
    }

    /// Settles one attempt as the first presence.
    pub async fn settle(&self, settlement: Settlement) -> Result<Settled, BoxError> {
        let settled = self.store.settle(self.presence(), &[settlement]).await?;
        Ok(settled
            .into_iter()
            .next()
            .ok_or("a settlement without an answer")?)
    }

    /// Writes a change that nothing stands against, and the slots it explains.
    pub async fn change(
        &self,
        before: &Arc<Job>,
        (after, skipped): (Job, Vec<Skip>),
        runs: RunsOfChange,
    ) -> Result<(Job, Vec<RunId>), BoxError> {
        let change = JobChange {
            before: before.clone(),
            after: Arc::new(after),
            skipped,
            runs,
        };
        let changed = self.store.change_job(&change).await?;
        let JobChanged::Done { job, marked, .. } = changed else {
            return Err(format!("changed as {changed:?}").into());
        };
        Ok((*job, marked))
    }

    /// Lets so many seconds pass while these beat.
    pub async fn pass(&self, secs: u64, beating: &[PresenceId]) -> Kept {
        for _ in 0..secs {
            self.clock.advance(Duration::from_secs(1));
            for presence in beating {
                self.store.beat(*presence, &NodeStatus::default()).await?;
            }
        }
        Ok(())
    }

    /// The last beat of a presence, as another hears it with its own.
    pub async fn last_beat(&self, by: PresenceId, of: PresenceId) -> Result<LastBeat, BoxError> {
        let living = self.store.beat(by, &NodeStatus::default()).await?.living;
        let peer = living.iter().find(|peer| peer.presence == of);
        let peer = peer.ok_or("it is not among the living")?;
        Ok((of, peer.mark))
    }

    /// The first presence falls silent until the second may fence it, and does.
    pub async fn fence_first(&self) -> Kept {
        self.pass(7, &[self.other.presence]).await?;
        let last = self.last_beat(self.other.presence, self.presence()).await?;
        assert_eq!(
            self.store.fence(self.other.presence, &[last]).await?,
            [self.presence()]
        );
        Ok(())
    }
}

pub(crate) fn new(job: &Arc<Job>) -> NewJob {
    NewJob {
        job: job.clone(),
        idempotency: None,
    }
}

/// Every so many seconds from the beginning of time.
pub fn every(secs: u64) -> Result<Schedule, BoxError> {
    let period = Period::Elapsed(Duration::from_secs(secs));
    Ok(Schedule::from(Every::new(period, at(0), Zone::utc())?))
}

/// So many seconds after the end of each run, and after the beginning of time.
pub fn after_completion(secs: u64) -> Result<Schedule, BoxError> {
    let period = Period::Elapsed(Duration::from_secs(secs));
    let every = Every::new(period, at(0), Zone::utc())?;
    Ok(Schedule::from(every.after_completion()))
}

/// Where nothing listens: no store calls a target.
#[expect(clippy::expect_used, reason = "a literal, the same in every test")]
pub(crate) fn target() -> Target {
    Target::http("http://localhost/").expect("an address")
}

/// A job that is due every minute, from second 60 on, and lets its runs overlap.
pub fn job(number: u8) -> Result<Job, BoxError> {
    job_with(number, |_| {})
}

/// The same, with another definition.
pub fn job_with(number: u8, change: impl FnOnce(&mut Definition)) -> Result<Job, BoxError> {
    let mut def = Definition::new(every(60)?, target());
    def.overlap = model::Overlap::Allow;
    change(&mut def);
    Ok(Job::new(
        JobId::new(at(0), [number; 10]),
        TenantId::DEFAULT,
        None,
        def,
        at(0),
    ))
}

/// A job that is due once.
pub fn once(number: u8, secs: i64) -> Result<Job, BoxError> {
    job_with(number, |def| def.schedule = Schedule::from(slot(secs)))
}

/// The job's next slot decided at `now`, to be claimed at birth.
pub fn firing(job: &Arc<Job>, now: Timestamp) -> Firing {
    let slot = job.next_slot.unwrap_or(Slot(Timestamp::MAX));
    Firing {
        job: job.clone(),
        decision: job.decide(slot, now, &Arc::from(NODE)),
        claim: true,
        knows: Vec::new(),
    }
}

/// Slots of a job that is due every minute, which a node has skipped.
pub fn skip(first: i64, last: i64, reason: Reason) -> Skip {
    Skip {
        slots: Stretch {
            first: slot(first),
            last: slot(last),
            count: u64::try_from((last - first) / 60 + 1).unwrap_or(0),
        },
        reason,
        note: None,
        actor: Arc::from(NODE),
    }
}

/// An attempt of a run that ended so, with something to show for it.
pub fn attempt(run: &Run, outcome: Outcome) -> Attempt {
    let report = Report::of(outcome)
        .with_status(200)
        .with_output(Bytes::from_static(b"so it is"));
    let dispatched_at = Some(run.due_at.plus(Duration::from_millis(2)));
    Attempt::new(
        run.attempt,
        dispatched_at,
        run.due_at.plus(Duration::from_secs(1)),
        report,
    )
    .made_by(&Arc::from(NODE))
}

/// A verdict about a run, with the attempt that goes with it.
pub fn settlement(run: &Run, verdict: Verdict) -> Settlement {
    let outcome = match verdict {
        Verdict::Succeed => Some(Outcome::Succeeded),
        Verdict::RetryAt(_) | Verdict::Bury(_) => Some(Outcome::Failed),
        Verdict::Cancel(_) => Some(Outcome::Cancelled),
        Verdict::Release | Verdict::Wait(_) => None,
    };
    let attempt = outcome.map(|outcome| attempt(run, outcome));
    Settlement {
        run: run.clone(),
        verdict,
        attempt,
    }
}

/// Settled, and nothing followed from it.
pub const DONE: Settled = Settled::Done {
    freed: None,
    due_at: None,
    paused: None,
};

/// Settled, and a run that waited may go.
pub fn freed(run: RunId) -> Settled {
    Settled::Done {
        freed: Some(run),
        due_at: None,
        paused: None,
    }
}

/// The number after the first.
pub(crate) const SECOND: AttemptNo = AttemptNo(2);
