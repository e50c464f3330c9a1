//! Origins: whom this node calls, how well they are, and who waits for them. Each node sees for itself, and begins again
//! with each presence. An origin is known by tenant: what one tenant's calls come to holds up no other's.
//!
//! What always holds: a run that waits in memory for an origin takes no permit and stands in no lane, so it holds up
//! nothing else. It is known here exactly as long as its claim waits: one that is cancelled or taken back gives its place to the
//! next, so that what is left never waits for a call that nobody makes. The lock of an origin is taken after the board's, never before.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::breaker::{Admit, Breaker, Calls, Signal, State, Turned};
use model::{RunId, Target, TenantId, Timestamp, Wait, WaitReason, limits};

use crate::age::Age;
use crate::board::{Queues, Work};
use crate::lock;
use crate::metrics::Metrics;

/// Claims that one origin keeps in memory; beyond that runs wait in the store. Few in tests, so that more of them are soon there.
pub(crate) const QUEUE_MAX: usize = if cfg!(test) {
    1_000
} else {
    limits::ORIGIN_QUEUE_MAX
};
/// Runs that are kept no longer and still stand in a queue, besides as many as are kept.
const STALE_MAX: usize = 64;

#[derive(Debug)]
pub(crate) struct Origin {
    tenant: TenantId,
    name: String,
    inner: Mutex<Inner>,
    all: Arc<Counts>,
}

/// Of all origins together.
#[derive(Debug, Default)]
struct Counts {
    /// Runs in their queues.
    queued: AtomicUsize,
    /// Runs that wait in the store, and that are known by name.
    waiting: AtomicUsize,
}

#[derive(Debug)]
struct Inner {
    breaker: Breaker,
    calls: Calls,
    /// Due, and kept here until a call ends.
    kept: BTreeSet<RunId>,
    /// The order of those, and here and there one that is kept no longer.
    queue: Queues<RunId>,
    /// Runs that wait in the store for it, and that this node made to.
    waiting: VecDeque<RunId>,
    /// When one was last woken to be the probe, by uptime.
    probed: Duration,
}

/// Whether an attempt may start.
#[derive(Debug)]
pub(crate) enum Leave {
    Go {
        is_probe: bool,
    },
    /// Its origin has it, and gives it back when a call ends.
    Later,
    Wait(Wait),
}

/// What the end of a call means for others.
#[derive(Debug, Default)]
pub(crate) struct After {
    /// Runs that may be started now, or have to wait after all.
    pub freed: Vec<(Age, RunId)>,
    pub turned: Option<Turned>,
}

/// How a node sees an origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetStatus {
    pub tenant: TenantId,
    pub origin: String,
    pub state: &'static str,
    /// In a row.
    pub failures: u32,
    /// How long until the next call is tried.
    pub open_for: Option<Duration>,
    pub calls: usize,
    pub calls_max: usize,
    /// Runs that wait for it in the memory of this node, and in the store.
    pub queued: usize,
    pub waiting: usize,
}

pub(crate) struct Origins {
    known: Mutex<Known>,
    calls_max: usize,
    all: Arc<Counts>,
    metrics: Metrics,
}

/// The origins that this node knows.
#[derive(Default)]
struct Known {
    by_name: BTreeMap<TenantId, BTreeMap<String, Arc<Origin>>>,
    count: usize,
    /// The name that is looked for. Kept, so that an attempt allocates none.
    wanted: String,
    /// The one that was found last: one attempt after another often goes to the same.
    last: Option<Arc<Origin>>,
}

impl Known {
    fn iter(&self) -> impl Iterator<Item = &Arc<Origin>> {
        self.by_name.values().flat_map(BTreeMap::values)
    }

    /// Where a target of a tenant is, if that is known.
    fn find(&mut self, tenant: TenantId, target: &Target) -> Option<&Arc<Origin>> {
        let is_last = |last: &Arc<Origin>| last.tenant == tenant && target.is_at_origin(&last.name);
        if !self.last.as_ref().is_some_and(is_last) {
            let is_one = target.write_origin(&mut self.wanted);
            let of_tenant = self.by_name.get(&tenant).filter(|_| is_one)?;
            self.last = Some(Arc::clone(of_tenant.get(&self.wanted)?));
        }
        self.last.as_ref()
    }

    /// Forgets those that are idle. A claim under way keeps its own.
    fn tidy(&mut self) {
        self.last = None;
        self.by_name.retain(|_, origins| {
            origins.retain(|_, origin| {
                Arc::strong_count(origin) > 1 || !lock(&origin.inner).is_idle()
            });
            !origins.is_empty()
        });
        self.count = self.iter().count();
    }

    fn insert(&mut self, origin: &Arc<Origin>) {
        let of_tenant = self.by_name.entry(origin.tenant).or_default();
        of_tenant.insert(origin.name.clone(), Arc::clone(origin));
        self.count += 1;
    }
}

impl Origin {
    /// Runs of it wait in the store from now on.
    pub(crate) fn waits(&self, runs: &[RunId]) {
        let mut inner = lock(&self.inner);
        // Those that are not remembered are woken in their time.
        let room = limits::ORIGIN_WAITING_MAX.saturating_sub(inner.waiting.len());
        let left = self.all.waiting.load(Ordering::Relaxed);
        let left = limits::ORIGINS_WAITING_MAX.saturating_sub(left);
        let named = runs.len().min(room).min(left);
        inner.waiting.extend(runs.iter().take(named));
        self.all.waiting.fetch_add(named, Ordering::Relaxed);
    }

    /// A run that was kept here does not start: it was cancelled, taken back, or has to wait for its time again. Answers who
    /// may start in its place.
    pub(crate) fn give_up(&self, run: RunId) -> Vec<(Age, RunId)> {
        let mut inner = lock(&self.inner);
        if inner.kept.remove(&run) {
            self.all.queued.fetch_sub(1, Ordering::Relaxed);
        }
        inner.tidy();
        let freed = inner.free();
        self.all.queued.fetch_sub(freed.len(), Ordering::Relaxed);
        freed
    }
}

impl Inner {
    /// Takes out of the queue what may start, or all of it when nothing may.
    fn free(&mut self) -> Vec<(Age, RunId)> {
        let room = match self.breaker.state() {
            State::Closed => self.calls.bound.saturating_sub(self.calls.under_way),
            State::Open { .. } | State::HalfOpen { .. } => usize::MAX,
        };
        let mut freed = Vec::new();
        while freed.len() < room
            && let Some((age, run)) = self.queue.pop(true)
        {
            if self.kept.remove(&run) {
                freed.push((age, run));
            }
        }
        freed
    }

    /// Those that are kept no longer take no more memory than those that are.
    fn tidy(&mut self) {
        if self.queue.len() > 2 * self.kept.len() + STALE_MAX {
            let kept = &self.kept;
            self.queue.retain(|run| kept.contains(run));
        }
    }

    /// Runs to be woken: all when the breaker is closed and there is room for them, one when a probe is due.
    fn take_waiting(&mut self, uptime: Duration, max: usize) -> Vec<RunId> {
        let count = match self.breaker.state() {
            State::Closed => (QUEUE_MAX / 2).saturating_sub(self.kept.len()),
            State::Open { until }
                if until <= uptime && self.probed + limits::SLEEP_MAX <= uptime =>
            {
                self.probed = uptime;
                1
            }
            State::Open { .. } | State::HalfOpen { .. } => 0,
        };
        let count = count.min(self.waiting.len()).min(max);
        self.waiting.drain(..count).collect()
    }

    fn is_idle(&self) -> bool {
        let rests = self.kept.is_empty() && self.waiting.is_empty();
        rests && self.calls.under_way == 0 && self.breaker == Breaker::default()
    }
}

impl Origins {
    pub(crate) fn new(calls_max: usize, metrics: &Metrics) -> Self {
        Self {
            known: Mutex::default(),
            calls_max,
            all: Arc::default(),
            metrics: metrics.clone(),
        }
    }

    /// How many runs wait for origins in memory.
    pub(crate) fn queued(&self) -> usize {
        self.all.queued.load(Ordering::Relaxed)
    }

    /// Where an attempt goes. None for a target that is no origin, and when too many are known.
    pub(crate) fn of(&self, work: &Work) -> Option<Arc<Origin>> {
        let (tenant, target) = (work.job.sends_for(), &work.job.def.target);
        let mut known = lock(&self.known);
        if let Some(origin) = known.find(tenant, target) {
            return Some(Arc::clone(origin));
        }
        let name = target.origin()?;
        if known.count >= limits::ORIGINS_MAX {
            known.tidy();
            if known.count >= limits::ORIGINS_MAX {
                return None;
            }
        }
        let origin = Arc::new(Origin {
            tenant,
            name,
            all: Arc::clone(&self.all),
            inner: Mutex::new(Inner {
                breaker: Breaker::default(),
                calls: Calls::new(self.calls_max),
                kept: BTreeSet::new(),
                queue: Queues::default(),
                waiting: VecDeque::new(),
                probed: Duration::ZERO,
            }),
        });
        known.insert(&origin);
        Some(origin)
    }

    /// Whether an attempt that is due may start.
    pub(crate) fn leave(
        &self,
        origin: &Origin,
        (work, age): (&Work, Age),
        now: Timestamp,
        uptime: Duration,
    ) -> Leave {
        let mut inner = lock(&origin.inner);
        let admit = inner.breaker.admit(uptime);
        // One that has waited for a day is tried in any case, so that it comes to an end.
        let overdue = now.since(work.run.due_at) > limits::BREAKER_WAIT_MAX;
        let is_probe = match admit {
            Admit::Go => false,
            Admit::Probe => true,
            Admit::Not(_) if overdue => false,
            Admit::Not(again) => {
                let again = again.saturating_sub(uptime) + limits::BREAKER_WAIT_AFTER;
                self.metrics.calls_refused.inc();
                return Leave::Wait(Wait::until(WaitReason::Breaker, now.plus(again)));
            }
        };
        if is_probe || inner.calls.has_room() {
            inner.calls.under_way += 1;
            return Leave::Go { is_probe };
        }
        if inner.kept.len() >= QUEUE_MAX {
            let until = now.plus(limits::BREAKER_WAIT_AFTER);
            return Leave::Wait(Wait::until(WaitReason::Concurrency, until));
        }
        if inner.kept.insert(work.run.id) {
            inner.queue.push(age, work.run.lane, work.run.id);
            self.all.queued.fetch_add(1, Ordering::Relaxed);
        }
        Leave::Later
    }

    /// A call has ended, or did not begin after all.
    pub(crate) fn called(
        &self,
        origin: &Origin,
        signal: Option<Signal>,
        is_probe: bool,
        uptime: Duration,
        chance: impl FnOnce() -> f64,
    ) -> After {
        let mut inner = lock(&origin.inner);
        let signal = inner.calls.observe(signal);
        let chance = match signal {
            Some(Signal::Unwell | Signal::Busy) => chance(),
            Some(Signal::Well) | None => 0.0,
        };
        let was = inner.breaker.state();
        let turned = inner.breaker.observe(signal, is_probe, uptime, chance);
        match turned {
            Some(Turned::Opened) => {
                self.metrics.breakers_opened.inc();
                self.metrics
                    .breakers_open
                    .inc_by(i64::from(was == State::Closed));
            }
            Some(Turned::Closed) => {
                self.metrics.breakers_open.dec();
                inner.calls.begin_again();
            }
            None => {}
        }
        let freed = inner.free();
        self.all.queued.fetch_sub(freed.len(), Ordering::Relaxed);
        After { freed, turned }
    }

    /// Runs to be woken, each with its origin.
    pub(crate) fn to_wake(&self, uptime: Duration, max: usize) -> Vec<(Arc<Origin>, Vec<RunId>)> {
        let origins: Vec<Arc<Origin>> = lock(&self.known).iter().cloned().collect();
        let mut left = max;
        let mut all = Vec::new();
        for origin in origins {
            let runs = lock(&origin.inner).take_waiting(uptime, left);
            self.all.waiting.fetch_sub(runs.len(), Ordering::Relaxed);
            left -= runs.len();
            if !runs.is_empty() {
                all.push((origin, runs));
            }
        }
        all
    }

    /// What is seen of origins: a tenant's, or all.
    pub(crate) fn list(&self, tenant: Option<TenantId>, uptime: Duration) -> Vec<TargetStatus> {
        let origins: Vec<Arc<Origin>> = lock(&self.known).iter().cloned().collect();
        let wanted = origins
            .iter()
            .filter(|it| tenant.is_none_or(|tenant| it.tenant == tenant));
        let statuses = wanted.map(|origin| {
            let inner = lock(&origin.inner);
            let state = inner.breaker.state();
            TargetStatus {
                tenant: origin.tenant,
                origin: origin.name.clone(),
                state: state.as_str(),
                failures: inner.breaker.failures(),
                open_for: match state {
                    State::Open { until } => Some(until.saturating_sub(uptime)),
                    State::Closed | State::HalfOpen { .. } => None,
                },
                calls: inner.calls.under_way,
                calls_max: inner.calls.bound,
                queued: inner.kept.len(),
                waiting: inner.waiting.len(),
            }
        });
        statuses.collect()
    }
}

/// The presence is over: whatever was open is known no more.
impl Drop for Origins {
    fn drop(&mut self) {
        let known = lock(&self.known);
        let open = known.iter();
        let open = open.filter(|it| lock(&it.inner).breaker.state() != State::Closed);
        self.metrics.breakers_open.dec_by(open.count() as i64);
    }
}

#[cfg(test)]
mod tests {
    use model::{Job, JobId, Run, Schedule, Slot};

    use super::*;

    fn work() -> Arc<Work> {
        let at = Timestamp::from_millis(1_700_000_000_000);
        let target = Target::http("http://busy/").unwrap();
        let def = model::Definition::new(Schedule::from(Slot(at)), target);
        let id = JobId::new(at, [1; 10]);
        let job = Arc::new(Job::new(id, TenantId::DEFAULT, None, def, at));
        Work::new(Run::of_slot(&job, Slot(at)), job, at)
    }

    fn run(number: usize) -> RunId {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        RunId::from_bytes(bytes)
    }

    #[test]
    fn every_claim_that_was_handed_back_for_one_busy_origin_is_woken_by_name() {
        let metrics = Metrics::default();
        let origins = Origins::new(1, &metrics);
        let origin = origins.of(&work()).unwrap();
        let runs: Vec<RunId> = (0..limits::HELD_MAX).map(run).collect();
        origin.waits(&runs);
        let mut woken = Vec::new();
        while let [(_, some)] = &origins.to_wake(Duration::ZERO, 1_000)[..] {
            woken.extend(some.clone());
        }
        assert_eq!(woken, runs);
        origin.waits(&runs);
        assert_eq!(
            origins.list(None, Duration::ZERO)[0].waiting,
            limits::HELD_MAX,
            "those that were woken are counted no more"
        );
    }
}
