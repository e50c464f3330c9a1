//! The way between a node and the store: slow, cut, losing calls before they arrive and answers after they were
//! written. A call that is on its way arrives also when whoever sent it is gone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use engine::Clock;
use model::presence::LastBeat;
use model::shard::ShardSet;
use model::{
    AttemptNo, Calendar, CalendarName, Handed, Job, JobId, JobKey, Level, PresenceId, Run, RunId,
    RunLog, TenantId, Timestamp, Version, WaitReason,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use store::mem::MemStore;
use store::*;

use crate::clock::{Pause, SimClock};
use crate::ledger::Ledger;

/// How bad the way to the store is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Badness {
    /// The chance that a call fails before it is written, in thousandths.
    pub before: u32,
    /// The chance that it fails after it was written.
    pub after: u32,
    /// The most that a call takes on each side of the write.
    pub slow: Duration,
    /// The chance that whoever calls panics instead, in thousandths.
    pub panics: u32,
}

/// Whether duties panic: they are to be started again alone, and cost nobody anything.
pub const DUTIES_PANIC: bool = true;

/// Until when nothing gets through, by uptime; silently, or with an error at once.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cut {
    pub until: Duration,
    pub silent: bool,
}

/// What becomes of one call.
#[derive(Clone, Copy)]
struct Fate {
    lost_before: bool,
    lost_after: bool,
    there: Duration,
    back: Duration,
    /// How long it may wait in silence.
    patience: Duration,
}

/// The longest that anyone waits in silence, in milliseconds.
const PATIENCE_MAX: u64 = 10_000;
/// How often one that waits for a way to open looks whether it has.
const CHECK_EVERY: Duration = Duration::from_millis(200);

#[derive(Clone)]
pub struct FaultStore {
    pub inner: MemStore,
    pub clock: SimClock,
    pub rng: Arc<Mutex<StdRng>>,
    pub badness: Arc<Mutex<Badness>>,
    /// The most that a call takes on each side at the best of times.
    pub distance: Duration,
    pub cut: Arc<Mutex<Cut>>,
    /// Whose calls these are may stand still.
    pub pause: Pause,
    pub ledger: Ledger,
    /// Which node these calls are of, and which start of it.
    pub node: usize,
    pub start: u32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FaultStore {
    /// A good way to a store so far off, for a node that stands still with `pause`.
    pub fn at(distance: Duration, inner: &MemStore, clock: &SimClock, pause: &Pause) -> Self {
        Self {
            inner: inner.clone(),
            clock: clock.clone(),
            rng: Arc::new(Mutex::new(StdRng::seed_from_u64(1))),
            badness: Arc::default(),
            distance,
            cut: Arc::default(),
            pause: pause.clone(),
            ledger: Ledger::default(),
            node: 0,
            start: 1,
        }
    }

    pub fn spoil(&self, badness: Badness) {
        *lock(&self.badness) = badness;
    }

    /// Nothing gets through until then, nor before an earlier cut has ended.
    pub fn cut(&self, cut: Cut) {
        let mut before = lock(&self.cut);
        let until = before.until.max(cut.until);
        *before = Cut { until, ..cut };
    }

    /// Panics, if it is so, as a bug in a duty would, and without a line on the screen.
    fn panic(&self) {
        let panics = lock(&self.badness).panics;
        if panics > 0 && lock(&self.rng).random_range(0..1_000) < panics {
            std::panic::resume_unwind(Box::new("the duty has a bug"));
        }
    }

    fn pick(&self) -> Fate {
        let badness = *lock(&self.badness);
        let mut rng = lock(&self.rng);
        let slow = badness.slow.max(self.distance).as_micros() as u64 + 1;
        let (first, second) = (rng.random_range(0..1_000), rng.random_range(0..1_000));
        Fate {
            lost_before: first < badness.before,
            lost_after: second < badness.after,
            there: Duration::from_micros(rng.random_range(0..slow)),
            back: Duration::from_micros(rng.random_range(0..slow)),
            patience: Duration::from_millis(rng.random_range(500..PATIENCE_MAX)),
        }
    }

    /// Waits until the way is open, for as long as `patience` lasts. A cut may be followed by another.
    async fn open(&self, mut patience: Duration) -> Result<(), StoreError> {
        loop {
            let cut = *lock(&self.cut);
            let left = cut.until.saturating_sub(Clock::uptime(&self.clock));
            if left.is_zero() {
                return Ok(());
            }
            if !cut.silent || patience.is_zero() {
                return Err(StoreError::unavailable("the store cannot be reached"));
            }
            let step = left.min(patience).min(CHECK_EVERY);
            self.clock.sleep(step).await;
            patience -= step;
        }
    }

    async fn there(&self, fate: &Fate) -> Result<(), StoreError> {
        self.clock.sleep(fate.there).await;
        self.open(fate.patience).await?;
        if fate.lost_before {
            Err(StoreError::unavailable("lost before it was written"))
        } else {
            Ok(())
        }
    }

    async fn back<T>(&self, fate: &Fate, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        self.clock.sleep(fate.back).await;
        let open = self.open(fate.patience).await;
        self.pause.over(&self.clock).await;
        open?;
        if fate.lost_after {
            Err(StoreError::unavailable("the answer was lost"))
        } else {
            answer
        }
    }

    /// A call that reads.
    async fn read<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.pause.over(&self.clock).await;
        self.panic();
        let fate = self.pick();
        let answer = match self.there(&fate).await {
            Ok(()) => call.await,
            Err(error) => Err(error),
        };
        self.back(&fate, answer).await
    }

    /// A call that writes: it arrives whether or not anyone still waits for the answer.
    async fn send<T: Send + 'static>(
        &self,
        call: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.panic();
        self.carry(call).await
    }

    async fn carry<T: Send + 'static>(
        &self,
        call: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.pause.over(&self.clock).await;
        let fate = self.pick();
        let at_once = fate.there.is_zero() && lock(&self.cut).until <= Clock::uptime(&self.clock);
        let answer = if at_once && !fate.lost_before {
            call.await
        } else {
            let store = self.clone();
            let sent = tokio::spawn(async move {
                store.there(&fate).await?;
                call.await
            });
            let failed = |_| Err(StoreError::unavailable("it failed"));
            sent.await.unwrap_or_else(failed)
        };
        self.back(&fate, answer).await
    }

    /// Hints are lost like anything else, and nobody learns of it.
    fn pass_hints(&self, hints: &[Hint]) {
        let fate = self.pick();
        let is_cut = lock(&self.cut).until > Clock::uptime(&self.clock);
        if is_cut || fate.lost_before || fate.lost_after {
            return;
        }
        if fate.there.is_zero() {
            self.inner.hint(hints);
            return;
        }
        let (store, hints) = (self.clone(), hints.to_vec());
        tokio::spawn(async move {
            store.clock.sleep(fate.there).await;
            store.inner.hint(&hints);
        });
    }
}

/// Calls that read, or that nobody misses, pass through the faults as they are; those that are sent arrive in any case.
macro_rules! faulty {
    ($trait:ident { $($sent:tt)* } $($name:ident($($arg:ident: $kind:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl $trait for FaultStore {
            $(async fn $name(&self, $($arg: $kind),*) -> Result<$answer, StoreError> {
                self.read(self.inner.$name($($arg),*)).await
            })*
            $($sent)*
        }
    };
}

faulty! {
    WaitStore {
        async fn wake_due(&self, shards: &ShardSet, now: Timestamp, limit: usize) -> Result<Vec<DueRun>, StoreError> {
            let (store, shards) = (self.clone(), *shards);
            self.send(async move { store.inner.wake_due(&shards, now, limit).await }).await
        }

        async fn wake(&self, runs: &[RunId], now: Timestamp) -> Result<Vec<DueRun>, StoreError> {
            let (store, runs) = (self.clone(), runs.to_vec());
            self.send(async move { store.inner.wake(&runs, now).await }).await
        }

        async fn wake_run(&self, tenant: TenantId, run: RunId, now: Timestamp) -> Result<Woken, StoreError> {
            let store = self.clone();
            self.send(async move { store.inner.wake_run(tenant, run, now).await }).await
        }
    }

    count_waiting() -> BTreeMap<WaitReason, u64>;
}

faulty! {
    EngineStore {
        async fn join(&self, node: &NodeInfo) -> Result<PresenceId, StoreError> {
            let (store, node) = (self.clone(), node.clone());
            // No duty calls it.
            self.carry(async move { store.join_watched(&node).await }).await
        }

        async fn beat(&self, presence: PresenceId, node_status: &NodeStatus) -> Result<Beat, StoreError> {
            let (store, node_status) = (self.clone(), *node_status);
            self.send(async move { store.inner.beat(presence, &node_status).await }).await
        }

        async fn lease(&self, presence: PresenceId, wanted: &ShardSet) -> Result<Leases, StoreError> {
            let (store, wanted) = (self.clone(), *wanted);
            self.send(async move { store.lease_watched(presence, &wanted).await }).await
        }

        async fn leave(&self, presence: PresenceId) -> Result<(), StoreError> {
            let store = self.clone();
            // No duty calls it.
            self.carry(async move { store.leave_watched(presence).await }).await
        }

        async fn fence(&self, by: PresenceId, lapsed: &[LastBeat]) -> Result<Vec<PresenceId>, StoreError> {
            let (store, lapsed) = (self.clone(), lapsed.to_vec());
            self.send(async move { store.fence_watched(by, &lapsed).await }).await
        }

        fn hint(&self, hints: &[Hint]) {
            self.pass_hints(hints);
        }

        async fn hints(&self, presence: PresenceId) -> Result<Vec<Hint>, StoreError> {
            let hints = self.inner.hints(presence).await;
            self.pause.over(&self.clock).await;
            hints
        }

        async fn fire(&self, leases: &Leases, firings: &[Firing]) -> Result<Vec<Fired>, StoreError> {
            let (store, leases, firings) = (self.clone(), leases.clone(), firings.to_vec());
            self.send(async move { store.fire_watched(&leases, &firings).await }).await
        }

        async fn claim(&self, leases: &Leases, runs: &[RunId]) -> Result<Vec<Claimed>, StoreError> {
            let (store, leases, runs) = (self.clone(), leases.clone(), runs.to_vec());
            self.send(async move { store.claim_watched(&leases, &runs).await }).await
        }

        async fn claim_due(
            &self,
            presence: PresenceId,
            shards: &ShardSet,
            room: DueRoom,
        ) -> Result<Vec<(Run, Arc<Job>)>, StoreError> {
            let (store, shards) = (self.clone(), *shards);
            self.send(async move { store.claim_due_watched(presence, &shards, room).await }).await
        }

        async fn withdraw(
            &self,
            presence: PresenceId,
            answers: &[Withdrawal],
            now: Timestamp,
        ) -> Result<(), StoreError> {
            let (store, answers) = (self.clone(), answers.to_vec());
            self.send(async move { store.withdraw_watched(presence, &answers, now).await }).await
        }

        fn handed(&self) -> &dyn HandedStore {
            self
        }

        async fn settle(
            &self,
            by: PresenceId,
            settlements: &[Settlement],
        ) -> Result<Vec<Settled>, StoreError> {
            let (store, settlements) = (self.clone(), settlements.to_vec());
            self.send(async move { store.settle_watched(by, &settlements).await }).await
        }
    }

    orphans(shards: &ShardSet, limit: usize) -> Vec<Orphan>;
    claims(presence: PresenceId, after: Option<RunId>, limit: usize) -> Vec<HeldClaim>;
    rules_changed() -> Vec<Rule>;
    jobs_under(rule: &Rule, after: Option<JobId>, limit: usize) -> Vec<(TenantId, JobId)>;
    rule_applied(rule: &Rule) -> ();
    due_jobs(shards: &ShardSet, up_to: Timestamp, after: Option<DueCursor>, limit: usize) -> DueJobs;
    due_runs(shards: &ShardSet, up_to: Timestamp, after: Option<(Timestamp, RunId)>, limit: usize) -> Vec<DueRun>;
    due_of(jobs: &[JobId], up_to: Timestamp) -> DueOf;
    payloads(of: &[PayloadOf]) -> Vec<Option<Bytes>>;
    park(jobs: &[(JobId, String)], now: Timestamp) -> ();
    mark_running(presence: PresenceId, runs: &[(RunId, Timestamp)]) -> ();
    retain(keep: &Keep) -> Retained;
    oldest_due(shards: &ShardSet, from: Timestamp, up_to: Timestamp) -> Option<Timestamp>;
    count_jobs(after: Option<JobId>, limit: usize) -> JobCounts;
}

faulty! {
    HandedStore {
        async fn hand_over(
            &self,
            by: PresenceId,
            items: &[HandOver],
            now: Timestamp,
        ) -> Result<Vec<HandedOver>, StoreError> {
            let (store, items, heard) = (self.clone(), items.to_vec(), self.uptime());
            self.send(async move { store.hand_over_watched(by, &items, (now, heard)).await }).await
        }

        async fn report(&self, reports: &[Reported], now: Timestamp) -> Result<Vec<HandedEnd>, StoreError> {
            let (store, reports) = (self.clone(), reports.to_vec());
            self.send(async move { store.report_watched(&reports, now).await }).await
        }

        async fn heartbeat(&self, beats: &[Heartbeat], now: Timestamp) -> Result<Vec<Beaten>, StoreError> {
            let (store, beats, heard) = (self.clone(), beats.to_vec(), self.uptime());
            self.send(async move { store.heartbeat_watched(&beats, (now, heard)).await }).await
        }

        async fn lapse(
            &self,
            leases: &Leases,
            lapses: &[Lapse],
            now: Timestamp,
        ) -> Result<Vec<HandedEnd>, StoreError> {
            let (store, leases, lapses) = (self.clone(), leases.clone(), lapses.to_vec());
            self.send(async move { store.lapse_watched(&leases, &lapses, now).await }).await
        }
    }

    lapsing(shards: &ShardSet, lapsing: Lapsing) -> Vec<Handed>;
    get_handed(runs: &[RunId]) -> Vec<Option<Handed>>;
    whose(runs: &[RunId]) -> Vec<Option<Whose>>;
    get_checkpoint(run: RunId) -> Option<Bytes>;
    is_current(run: RunId, attempt: AttemptNo) -> bool;
    append_log(appends: &[LogAppend]) -> Vec<Appended>;
    get_log(tenant: TenantId, run: RunId) -> Option<RunLog>;
    report_keys() -> Vec<ReportKey>;
    put_report_key(key: &ReportKey) -> ();
}

faulty! {
    ClientStore {
        fn access(&self) -> &dyn AccessStore {
            self.inner.access()
        }

        fn replays(&self) -> &dyn ReplayStore {
            self.inner.replays()
        }

        fn alerts(&self) -> &dyn AlertStore {
            self.inner.alerts()
        }

        async fn create_jobs(&self, jobs: &[NewJob]) -> Result<Vec<Created>, StoreError> {
            let (store, jobs) = (self.clone(), jobs.to_vec());
            self.send(async move { store.create_watched(&jobs).await }).await
        }

        async fn start_run(&self, start: &StartRun) -> Result<Started, StoreError> {
            let (store, start) = (self.clone(), start.clone());
            self.send(async move { store.inner.start_run(&start).await }).await
        }

        async fn cancel_run(
            &self,
            tenant: TenantId,
            run: RunId,
            now: Timestamp,
        ) -> Result<Cancelled, StoreError> {
            let store = self.clone();
            self.send(async move { store.inner.cancel_run(tenant, run, now).await }).await
        }

        async fn change_job(&self, change: &JobChange) -> Result<JobChanged, StoreError> {
            let (store, change) = (self.clone(), change.clone());
            self.send(async move { store.change_watched(&change).await }).await
        }
    }

    raise_level(to: Level) -> Raised;
    get_jobs(jobs: &[(TenantId, JobId)]) -> Vec<Found<Job>>;
    find_job(tenant: TenantId, key: &JobKey) -> Option<Job>;
    list_jobs(tenant: TenantId, filter: &JobFilter, page: Page<JobId>) -> Vec<Job>;
    put_calendar(tenant: TenantId, calendar: &Calendar, before: Option<Version>) -> CalendarPut;
    get_calendars(tenant: TenantId, names: &[CalendarName]) -> Vec<Option<CalendarUse>>;
    list_calendars(tenant: TenantId, after: Option<&CalendarName>, limit: usize) -> Vec<CalendarUse>;
    drop_calendar(tenant: TenantId, name: &CalendarName, before: Option<Version>) -> CalendarDropped;
    get_runs(runs: &[(TenantId, RunId)]) -> Vec<Found<Run>>;
    list_runs(tenant: TenantId, filter: &RunFilter, page: Page<RunId>) -> Vec<Run>;
    list_slots(tenant: TenantId, job: JobId, from: Timestamp, to: Timestamp, limit: usize) -> Vec<Run>;
    count_live() -> u64;
}
