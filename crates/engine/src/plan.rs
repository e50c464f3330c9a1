//! Plan: what our shards have due up to the horizon goes into the wheel. Nothing is written.
//!
//! The window, from what is on time to the horizon, is read first; the backlog before it has a scan of its own, oldest
//! first, that goes on as the wheel has room for it. Every second the window moves on; every few seconds, and whenever
//! something may have been missed, both are read again. A job that was just written is looked at by itself. The backlog is read
//! from the low-water mark on: what was there is over, and looking through it costs much while somebody's transaction keeps it
//! in the database. All of it is read when something may have been missed there (see `backlog.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use model::shard::ShardSet;
use model::{JobId, RunId, RunState, Shard, TenantId, Timestamp, limits};
use prometheus_client::metrics::gauge::Gauge;
use store::{DueCursor, DueRun, Hint, Store, StoreError};
use tracing::error;
use uuid::Uuid;

use crate::age::{Age, ByAge, on_time_from};
use crate::board::Board;
use crate::clock::Clock;
use crate::duty::{Duty, Wake};
use crate::executors::Executors;
use crate::handle::HealthRecord;
use crate::lock;
use crate::nudge::Nudge;
use crate::offers::{Offer, Offered, Offers};
use crate::shards::Shards;

/// How often the whole window is read again.
const REREAD: Duration = Duration::from_secs(5);
/// How many times as long as reading the backlog took it is left alone after that, and for how long at the most.
const BACKLOG_REST: u32 = 20;
const BACKLOG_REST_MAX: Duration = Duration::from_secs(60);
/// The least between two moves of the window. The horizon is many of these away.
const MOVE: Duration = Duration::from_millis(500);
/// Retries far ahead that are looked at in one step, and how many of their jobs are read at once, with their payloads.
const ASTRAY_PAGE: usize = 256;
const ASTRAY_JOBS: usize = 16;
/// Offers looked at one by one; more than that and reading the window is cheaper.
const OFFERS_STEP_MAX: usize = 256;

/// Where reading stands.
#[derive(Debug, Clone, Copy)]
struct Scan {
    from: Timestamp,
    up_to: Timestamp,
    after: Option<DueCursor>,
    runs_after: Option<(Timestamp, model::RunId)>,
    runs_done: bool,
    jobs_done: bool,
}

impl Scan {
    /// The window: slots due after one moment. Runs may turn up anywhere in it at any time. It ends with a step, so that
    /// what comes next begins with one, and no step is read twice.
    fn of_window(now: Timestamp, after: Timestamp) -> Self {
        Self {
            from: after,
            up_to: now.plus(limits::HORIZON).end_of(limits::PLAN_STEP),
            after: Some(DueCursor::later_than(after)),
            runs_after: Some((on_time_from(now), RunId(Uuid::max()))),
            runs_done: false,
            jobs_done: false,
        }
    }

    /// What is due up to where the window begins, from a moment on.
    fn of_backlog(now: Timestamp, from: Timestamp) -> Self {
        let before = (from > Timestamp::MIN).then(|| from.minus(Duration::from_millis(1)));
        Self {
            from,
            up_to: on_time_from(now),
            after: before.map(DueCursor::later_than),
            runs_after: before.map(|before| (before, RunId(Uuid::max()))),
            runs_done: false,
            jobs_done: false,
        }
    }
}

pub(crate) struct Ports {
    pub board: Arc<Board>,
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub shards: Arc<Shards>,
    pub offers: Offers,
    pub offered: Offered,
    pub executors: Arc<Executors>,
    /// Whether this node executes.
    pub executes: bool,
    pub health: Arc<Mutex<HealthRecord>>,
    /// How many wait in the wheel.
    pub wheel: Gauge,
    pub nudge: Nudge,
    pub fire: Nudge,
}

pub(crate) struct Plan {
    ports: Ports,
    /// Of the window, and of the backlog.
    scans: ByAge<Option<Scan>>,
    /// Everything due up to here has been read, but for the backlog.
    planned_to: Timestamp,
    /// By uptime.
    reread_at: Duration,
    /// Not before this is the backlog read again; and what reading it took so far. While somebody's transaction keeps all
    /// that is over in the database, it takes long.
    backlog_at: Duration,
    backlog_took: Duration,
    moved_at: Duration,
    last_now: Timestamp,
    /// To be read again when the scan under way is through; the backlog from the beginning.
    again: ByAge<bool>,
    from_beginning: bool,
    /// The shards that were read for, and how often some had been taken by then.
    held: (ShardSet, u32),
    /// All runs of the backlog up to here have been read. None: from the mark.
    runs_read_to: Option<Timestamp>,
    /// Retries set by a clock that has since gone back are looked for after this one, once the window is read.
    astray_after: Option<(Timestamp, RunId)>,
}

impl Plan {
    pub(crate) fn new(ports: Ports) -> Self {
        Self {
            ports,
            scans: ByAge::default(),
            planned_to: Timestamp::MIN,
            reread_at: Duration::ZERO,
            backlog_at: Duration::ZERO,
            backlog_took: Duration::ZERO,
            moved_at: Duration::ZERO,
            last_now: Timestamp::MIN,
            again: ByAge::default(),
            from_beginning: false,
            held: (ShardSet::default(), 0),
            runs_read_to: None,
            astray_after: None,
        }
    }

    /// Looks at jobs that were just written, and at their runs; at nothing else.
    async fn take_offers(&self) -> Result<(), StoreError> {
        let Ports { board, store, .. } = &self.ports;
        let Some(offered) = self.offered().await else {
            self.ports.offers.replan();
            return Ok(());
        };
        let leases = self.ports.shards.leases();
        let is_ours = |(_, job): &Offer| leases.epoch(Shard::of(*job)).is_some();
        let (ours, moved): (Vec<Offer>, Vec<Offer>) = offered.into_iter().partition(is_ours);
        let moved = moved
            .into_iter()
            .map(|(tenant, job)| Hint::Job(tenant, job));
        let moved: Vec<Hint> = moved.collect();
        if !moved.is_empty() {
            // They have just gone to others.
            store.hint(&moved);
        }
        if ours.is_empty() {
            return Ok(());
        }
        let jobs: Vec<JobId> = ours.into_iter().map(|(_, job)| job).collect();
        let now = self.ports.clock.now();
        board.begin_reading();
        let read = store.due_of(&jobs, now.plus(limits::HORIZON)).await;
        let due = read.inspect_err(|_| self.ports.offers.replan())?;
        let mut runs = due.runs;
        runs.retain(|run| self.takes_runs(Age::of(run.due_at, now)));
        board.insert_read(due.jobs, self.within_reach(runs));
        board.written(&jobs);
        self.park(&due.unreadable).await
    }

    /// Those that this node did not leave to others a while ago, each with the moment at which it is due.
    fn within_reach(&self, mut runs: Vec<DueRun>) -> Vec<(Timestamp, DueRun)> {
        runs.retain(|run| !self.ports.executors.is_beyond(run.run));
        runs.into_iter().map(|run| (run.due_at, run)).collect()
    }

    /// The jobs that wait to be looked at; none when they are too many.
    async fn offered(&self) -> Option<Vec<Offer>> {
        let mut offers = self.ports.offered.lock().await;
        let mut offered = Vec::new();
        while offered.len() < OFFERS_STEP_MAX
            && let Ok(offer) = offers.try_recv()
        {
            offered.push(offer);
        }
        if offers.is_empty() {
            return Some(offered);
        }
        while offers.try_recv().is_ok() {}
        None
    }

    /// Whether runs are read: fire may have more than it has room for, or none at all; what is left in the store waits
    /// there.
    fn takes_runs(&self, age: Age) -> bool {
        self.ports.executes && !self.ports.board.has_crowd(age)
    }

    /// Takes jobs out of the plan that cannot be read.
    async fn park(&self, unreadable: &[(JobId, String)]) -> Result<(), StoreError> {
        if unreadable.is_empty() {
            return Ok(());
        }
        for (job, why) in unreadable {
            error!(%job, error = %why, "cannot be read and is parked");
        }
        let now = self.ports.clock.now();
        self.ports.store.park(unreadable, now).await
    }

    /// Whether there is something to read, and from where. A scan under way is finished first, or
    /// a store that is written to all the time would have its beginning read over and over.
    fn choose_scan(&mut self, now: Timestamp, held: (ShardSet, u32)) {
        let uptime = self.ports.clock.uptime();
        let stepped_back = now < self.last_now;
        self.last_now = now;
        let replan = self.ports.offers.take_replan();
        if stepped_back {
            self.scans = ByAge::default();
        }
        self.from_beginning |= replan || stepped_back;
        if replan || stepped_back || held != self.held {
            self.held = held;
            self.runs_read_to = None;
            self.again = ByAge {
                on_time: true,
                backlog: true,
            };
        }
        let first = self.reread_at == Duration::ZERO;
        if self.scans.on_time.is_none() {
            self.compute_window(now, uptime);
        }
        if self.scans.backlog.is_none() && self.again.backlog {
            self.again.backlog = false;
            self.backlog_took = Duration::ZERO;
            let from = if std::mem::take(&mut self.from_beginning) {
                Timestamp::MIN
            } else {
                self.mark(now)
            };
            self.scans.backlog = Some(Scan::of_backlog(now, from));
        }
        if first || stepped_back {
            // No policy lets a retry wait less than this at the most.
            let least = now.plus(limits::RETRY_AFTER_MAX);
            self.astray_after = Some((least, RunId(Uuid::max())));
        }
    }

    /// Where the backlog begins.
    fn mark(&self, now: Timestamp) -> Timestamp {
        self.ports.shards.low_water().at.min(on_time_from(now))
    }

    fn compute_window(&mut self, now: Timestamp, uptime: Duration) {
        let from = on_time_from(now);
        // A clock that went far ahead leaves a gap: part of it is backlog now.
        let gap = self.planned_to < from;
        if self.again.on_time || gap || uptime >= self.reread_at {
            self.reread_at = uptime + REREAD;
            self.again.on_time = false;
            // A scan of the backlog that still reads jobs goes on; what it has passed can wait for the next.
            let rests = self.scans.backlog.is_none_or(|scan| scan.jobs_done);
            self.again.backlog |= gap || rests && uptime >= self.backlog_at;
            self.scans.on_time = Some(Scan::of_window(now, from));
        } else if uptime >= self.moved_at + MOVE {
            self.scans.on_time = Some(Scan::of_window(now, self.planned_to));
            // Runs turn up among the backlog too: they were on time a moment ago.
            let mark = self.mark(now);
            let runs = Scan {
                from: mark,
                jobs_done: true,
                ..Scan::of_backlog(now, self.runs_read_to.unwrap_or(mark))
            };
            self.scans.backlog.get_or_insert(runs);
        } else {
            return;
        }
        self.moved_at = uptime;
    }

    /// What to read now: the window if it is to be read and fits, or else the backlog.
    fn pick(&mut self, now: Timestamp) -> Option<(Age, Scan)> {
        if self.ports.board.shed(now) {
            // Some of it may lie before what the scan has come to.
            let from = self.scans.backlog.map(|scan| scan.from);
            let from = from.unwrap_or_else(|| self.mark(now));
            self.scans.backlog = Some(Scan::of_backlog(now, from));
            self.runs_read_to = None;
        }
        let scans = Age::ALL.map(|age| self.scans.get(age).map(|scan| (age, scan)));
        let mut scans = scans.into_iter().flatten();
        // Fire nudges when there is room again.
        scans.find(|(age, _)| self.ports.board.has_room(*age))
    }

    /// Reads one page of jobs.
    async fn read_jobs(&self, mut scan: Scan, shards: &ShardSet) -> Result<Scan, StoreError> {
        let Ports { board, store, .. } = &self.ports;
        board.begin_reading();
        let due = store
            .due_jobs(shards, scan.up_to, scan.after, limits::PLAN_PAGE_MAX)
            .await?;
        board.insert_read(due.jobs, Vec::new());
        self.park(&due.unreadable).await?;
        scan.after = due.next;
        scan.jobs_done = due.next.is_none();
        Ok(scan)
    }

    /// Reads one page of runs that nobody holds.
    async fn read_runs(&self, mut scan: Scan, shards: &ShardSet) -> Result<Scan, StoreError> {
        let Ports { board, store, .. } = &self.ports;
        board.begin_reading();
        let page = limits::PLAN_PAGE_MAX;
        let due = store
            .due_runs(shards, scan.up_to, scan.runs_after, page)
            .await?;
        scan.runs_after = due.last().map(|run| (run.due_at, run.run));
        scan.runs_done = due.len() < page;
        board.insert_read(Vec::new(), self.within_reach(due));
        Ok(scan)
    }

    /// Reads one page of retries far ahead: one that would wait longer than its policy ever lets one wait was set by a
    /// clock that has gone back since, and is due now.
    async fn read_astray(&mut self, shards: &ShardSet, now: Timestamp) -> Result<(), StoreError> {
        let Some(after) = self.astray_after else {
            return Ok(());
        };
        let Ports { board, store, .. } = &self.ports;
        board.begin_reading();
        let mut due = store
            .due_runs(shards, Timestamp::MAX, Some(after), ASTRAY_PAGE)
            .await?;
        let last = due.last().map(|run| (run.due_at, run.run));
        let is_last = due.len() < ASTRAY_PAGE;
        due.retain(|run| run.state == RunState::Retrying);
        let jobs: BTreeSet<(TenantId, JobId)> =
            due.iter().map(|run| (run.tenant, run.job)).collect();
        let jobs: Vec<(TenantId, JobId)> = jobs.into_iter().collect();
        let mut bounds: BTreeMap<JobId, Timestamp> = BTreeMap::new();
        for some in jobs.chunks(ASTRAY_JOBS) {
            // Of a row that cannot be read no policy is known; its runs are due when their rows say so.
            let read = store.get_jobs(some).await?.into_iter().flatten();
            bounds.extend(
                read.flatten()
                    .map(|job| (job.id, now.plus(job.def.retry.delay_bound()))),
            );
        }
        due.retain(|run| {
            let bound = bounds.get(&run.job);
            bound.is_some_and(|bound| run.due_at > *bound)
        });
        let due = due.into_iter().map(|run| (now, run));
        board.insert_read(Vec::new(), due.collect());
        self.astray_after = last.filter(|_| !is_last);
        Ok(())
    }

    fn mark_runs(&mut self, age: Age, read_to: Option<Timestamp>) {
        match age {
            Age::OnTime => {}
            Age::Backlog => self.runs_read_to = read_to,
        }
    }

    /// Reads one page of each that a scan has not come to the end of.
    async fn read(&mut self, age: Age, scan: Scan, shards: &ShardSet) -> Result<(), StoreError> {
        let mut scan = scan;
        if !self.takes_runs(age) {
            scan.runs_done = true;
            self.mark_runs(age, None);
        }
        if !scan.runs_done {
            scan = self.read_runs(scan, shards).await?;
            if scan.runs_done {
                // One that could not be claimed is read again a while longer.
                self.mark_runs(age, Some(scan.up_to.minus(REREAD)));
            }
        }
        if !scan.jobs_done {
            let begun = self.ports.clock.uptime();
            scan = self.read_jobs(scan, shards).await?;
            if age == Age::Backlog {
                let uptime = self.ports.clock.uptime();
                self.backlog_took += uptime.saturating_sub(begun);
                let rest = (self.backlog_took * BACKLOG_REST).min(BACKLOG_REST_MAX);
                self.backlog_at = uptime + rest;
            }
        }
        let Ports {
            board,
            wheel,
            health,
            ..
        } = &self.ports;
        wheel.set(board.in_wheel() as i64);
        let done = scan.jobs_done && scan.runs_done;
        *self.scans.get_mut(age) = Some(scan).filter(|_| !done);
        if done && age == Age::OnTime {
            self.planned_to = scan.up_to;
            lock(health).planned = true;
        }
        Ok(())
    }
}

#[async_trait]
impl Duty for Plan {
    fn name(&self) -> &'static str {
        "plan"
    }

    fn nudge(&self) -> &Nudge {
        &self.ports.nudge
    }

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError> {
        self.take_offers().await?;
        let leases = self.ports.shards.leases();
        let shards = leases.shards();
        if shards.is_empty() {
            // A scan begun now would have to be made again as soon as there are some.
            return Ok(Wake::At(now.plus(limits::SLEEP_MAX)));
        }
        self.choose_scan(now, (shards, leases.low_water.taken));
        let picked = self.pick(now);
        if let Some((age, scan)) = picked {
            self.read(age, scan, &shards).await?;
        }
        let is_read = self.scans.on_time.is_none();
        if is_read && self.ports.executes {
            self.read_astray(&shards, now).await?;
        } else if is_read {
            self.astray_after = None;
        }
        self.ports.fire.now();
        let unread = self.scans.on_time.is_some() || self.scans.backlog.is_some();
        let again = self.again.on_time || self.again.backlog;
        let more = picked.is_some() && (unread || again);
        Ok(if more || is_read && self.astray_after.is_some() {
            Wake::Now
        } else {
            Wake::At(now.plus(limits::SLEEP_MAX))
        })
    }
}
