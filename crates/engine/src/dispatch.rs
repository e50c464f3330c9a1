//! Dispatch: at the due time exactly, claimed runs go to their executors. No write stands in the
//! way: everything was written when they were fired.
//!
//! What comes in: runs claimed by this presence. What goes out: endings, to settle. What always
//! holds: nothing starts before it is due, without the presence, or twice; every claim of this
//! presence is known here until its end is written.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use model::{AttemptNo, Job, JobId, Reason, Run, RunId, RunKind, Timestamp, Verdict, limits};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use store::StoreError;
use tokio::sync::{Notify, OwnedSemaphorePermit};

use crate::age::{Age, ByAge};
use crate::attempt;
use crate::by_id::MapById;
use crate::duty::{Duty, Wake};
use crate::handle::{Nudge, Shared};
use crate::lanes::Queues;
use crate::lock;
use crate::metrics::Metrics;
use crate::node::Context;
use crate::width::Width;

/// A claimed run and the definition that its attempt runs.
#[derive(Debug)]
pub struct Work {
    pub run: Run,
    pub job: Arc<Job>,
    /// Rung when the attempt is to end where it stands.
    pub stop: Notify,
    /// It was missed before it came here: how late it is says nothing about this node.
    caught_up: bool,
}

impl Work {
    pub fn new(run: Run, job: Arc<Job>) -> Self {
        Self {
            run,
            job,
            stop: Notify::new(),
            caught_up: false,
        }
    }

    /// The run, once nobody else looks at it; a copy until then.
    pub fn into_parts(self: Arc<Self>) -> (Run, Arc<Job>) {
        match Arc::try_unwrap(self) {
            Ok(work) => (work.run, work.job),
            Err(work) => (work.run.clone(), Arc::clone(&work.job)),
        }
    }
}

/// An attempt that starts.
pub struct Start {
    pub work: Arc<Work>,
    /// What it was when it started.
    pub age: Age,
    /// When its turn came. If nothing keeps it then, it is dispatched at that moment.
    pub at: Timestamp,
}

#[derive(Debug)]
pub(crate) enum Stage {
    /// Waits for its due time.
    Held(Arc<Work>),
    /// Due; waits for its lane.
    Queued(Arc<Work>),
    /// Its turn has come.
    Running(Arc<Work>),
    /// Its end is on the way to the store.
    Ending,
    /// Taken back; the store has yet to hear of it.
    TakenBack(Arc<Work>),
}

#[derive(Debug)]
pub(crate) struct Holding {
    pub job: JobId,
    pub attempt: AttemptNo,
    pub stage: Stage,
    /// Why it is to be cancelled, when it is.
    pub reason: Option<Reason>,
    /// The one moment that fire goes by and history shows. None while it waits for its turn, its presence or its payload.
    pub dispatched_at: Option<Timestamp>,
    /// What a large answer takes until it is written.
    pub room: Option<OwnedSemaphorePermit>,
    /// When its run ended for good, while that is on its way to the store.
    pub ended_at: Option<Timestamp>,
}

impl Holding {
    pub fn of(job: JobId, attempt: AttemptNo, stage: Stage) -> Self {
        Self {
            job,
            attempt,
            stage,
            reason: None,
            dispatched_at: None,
            room: None,
            ended_at: None,
        }
    }
}

/// The claims of one job. There is nearly always one, which allocates nothing.
#[derive(Debug)]
pub(crate) struct ClaimsOfJob {
    first: RunId,
    others: Vec<RunId>,
}

impl ClaimsOfJob {
    pub fn iter(&self) -> impl Iterator<Item = &RunId> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub claims: MapById<RunId, Holding>,
    pub held: BTreeMap<Timestamp, Vec<RunId>>,
    lanes: Queues<RunId>,
    /// Tasks that run attempts, by what they run.
    tasks: ByAge<usize>,
    /// Dispatched, oldest first, not yet looked at for `mark_running`; by uptime.
    pub started: VecDeque<(Duration, RunId)>,
    /// Dispatched because somebody asked for them, who may be looking.
    pub asked: Vec<RunId>,
    width: Width,
    pub living: MapById<JobId, ClaimsOfJob>,
    pub closed: bool,
}

impl State {
    /// The run is due.
    fn queue(&mut self, work: &Work, now: Timestamp) {
        let age = Age::of(work.run.due_at, now);
        self.lanes.push(age, work.run.lane, work.run.id);
    }

    /// Whether another run of the backlog may start: three quarters of what may be under way at once, so that slow ones
    /// do not keep what is on time from starting.
    fn backlog_may(&self, running_max: usize) -> bool {
        self.tasks.backlog < (running_max.saturating_mul(3) / 4).max(1)
    }

    /// One claim of the job more.
    pub(crate) fn enter(&mut self, job: JobId, run: RunId) {
        if let Some(claims) = self.living.get_mut(&job) {
            claims.others.push(run);
        } else {
            let (first, others) = (run, Vec::new());
            self.living.insert(job, ClaimsOfJob { first, others });
        }
    }

    /// One claim of the job less.
    fn leave(&mut self, job: JobId, run: RunId) {
        let Some(claims) = self.living.get_mut(&job) else {
            return;
        };
        if claims.first != run {
            claims.others.retain(|held| *held != run);
        } else if let Some(next) = claims.others.pop() {
            claims.first = next;
        } else {
            self.living.remove(&job);
        }
    }
}

pub struct Dispatch {
    pub(crate) state: Mutex<State>,
    lateness: [Histogram; 3],
    caught_up: [Histogram; 3],
    held: Gauge,
    running: Gauge,
}

impl Dispatch {
    pub fn new(metrics: &Metrics) -> Self {
        Self {
            state: Mutex::default(),
            lateness: metrics.lateness_by_lane(),
            caught_up: metrics.caught_up_by_lane(),
            held: metrics.held.clone(),
            running: metrics.running.clone(),
        }
    }

    /// How many more claims fit.
    pub fn room(&self) -> usize {
        limits::HELD_MAX.saturating_sub(lock(&self.state).claims.len())
    }

    /// How many more attempts could start, of so many at once.
    pub fn free(&self, running_max: usize) -> usize {
        running_max.saturating_sub(lock(&self.state).claims.len())
    }

    /// Whether as many are under way, or due, as can be under way at once. What is on time does not wait for the
    /// backlog.
    pub fn is_crowded(&self, age: Age, running_max: usize) -> bool {
        let state = lock(&self.state);
        let due = match age {
            Age::OnTime => state.lanes.of(Age::OnTime).len(),
            Age::Backlog => state.lanes.len(),
        };
        state.tasks.sum() + due >= running_max
    }

    /// Whether anything waits for its time or its turn.
    pub fn is_waiting(&self) -> bool {
        let state = lock(&self.state);
        !state.held.is_empty() || !state.lanes.is_empty()
    }

    /// How late the run is that has waited longest for its turn.
    pub fn lag(&self, now: Timestamp) -> Duration {
        let state = lock(&self.state);
        let first = state.lanes.fronts();
        let waits = first.filter_map(|run| match &state.claims.get(run)?.stage {
            Stage::Queued(work) => Some(now.since(work.run.due_at)),
            Stage::Held(_) | Stage::Running(_) | Stage::Ending | Stage::TakenBack(_) => None,
        });
        waits.max().unwrap_or_default()
    }

    /// Whether this node holds a run of the job.
    pub fn lives(&self, job: JobId) -> bool {
        lock(&self.state).living.contains_key(&job)
    }

    pub fn knows(&self, run: RunId, attempt: AttemptNo) -> bool {
        lock(&self.state)
            .claims
            .get(&run)
            .is_some_and(|holding| holding.attempt == attempt)
    }

    pub fn running(&self) -> usize {
        lock(&self.state).tasks.sum()
    }

    /// Whether any claim has not been ended in the store.
    pub fn is_busy(&self) -> bool {
        !lock(&self.state).claims.is_empty()
    }

    /// How many claims have not been ended in the store.
    pub fn unwritten(&self) -> usize {
        lock(&self.state).claims.len()
    }

    /// Takes claimed runs. One that is known already is the same claim answered twice.
    pub fn take(&self, works: Vec<Work>, now: Timestamp) {
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        for mut work in works {
            let is_first = work.run.attempt == AttemptNo::FIRST;
            work.caught_up = is_first && now.since(work.run.due_at) > limits::LATE_MAX;
            let work = Arc::new(work);
            let (id, job, attempt) = (work.run.id, work.run.job, work.run.attempt);
            if state
                .claims
                .get(&id)
                .is_some_and(|holding| holding.attempt >= attempt)
            {
                continue;
            }
            let stage = if work.run.due_at <= now {
                state.queue(&work, now);
                Stage::Queued(work)
            } else {
                state.held.entry(work.run.due_at).or_default().push(id);
                Stage::Held(work)
            };
            if state.claims.contains_key(&id) {
                state.leave(job, id);
            }
            state.enter(job, id);
            state.claims.insert(id, Holding::of(job, attempt, stage));
        }
    }

    /// Moves what is due from the wait to its lane.
    fn ripen(state: &mut State, now: Timestamp) {
        while let Some(bucket) = state.held.first_entry() {
            let due_at = *bucket.key();
            if due_at > now {
                return;
            }
            let age = Age::of(due_at, now);
            for id in bucket.remove() {
                let Some(holding) = state.claims.get_mut(&id) else {
                    continue;
                };
                let stage = std::mem::replace(&mut holding.stage, Stage::Ending);
                holding.stage = match stage {
                    Stage::Held(work) => {
                        state.lanes.push(age, work.run.lane, id);
                        Stage::Queued(work)
                    }
                    other @ (Stage::Queued(_)
                    | Stage::Running(_)
                    | Stage::Ending
                    | Stage::TakenBack(_)) => other,
                };
            }
        }
    }

    /// The next attempt to start, if any may.
    fn pop(
        state: &mut State,
        (now, uptime): (Timestamp, Duration),
        context: &Context,
    ) -> Option<Start> {
        if state.closed {
            return None;
        }
        let backlog_may = state.backlog_may(context.config.running_max);
        while let Some((age, id)) = state.lanes.pop(backlog_may) {
            let Some(holding) = state.claims.get_mut(&id) else {
                continue;
            };
            let stage = std::mem::replace(&mut holding.stage, Stage::Ending);
            match stage {
                Stage::Queued(work) if work.run.due_at > now => {
                    // It was due, and the clock went back: it waits until it is due again.
                    state.held.entry(work.run.due_at).or_default().push(id);
                    holding.stage = Stage::Held(work);
                }
                Stage::Queued(work) => {
                    let start = Start {
                        work: Arc::clone(&work),
                        age,
                        at: now,
                    };
                    holding.dispatched_at = Some(now);
                    holding.stage = Stage::Running(work);
                    if start.work.run.kind == RunKind::Slot {
                        state.started.push_back((uptime, id));
                    } else {
                        state.asked.push(id);
                        context.shared.nudges.marks.now();
                    }
                    *state.tasks.get_mut(age) += 1;
                    return Some(start);
                }
                other @ (Stage::Held(_)
                | Stage::Running(_)
                | Stage::Ending
                | Stage::TakenBack(_)) => holding.stage = other,
            }
        }
        None
    }

    /// What a task that just ended an attempt does next; none when it should end.
    pub fn next(&self, context: &Context, ended: Age) -> Option<Start> {
        let (now, uptime) = (context.now(), context.shared.clock.uptime());
        let mut state = lock(&self.state);
        *state.tasks.get_mut(ended) -= 1;
        if context.presence.holds(uptime) && state.tasks.sum() < state.width.tasks() {
            Self::pop(&mut state, (now, uptime), context)
        } else {
            None
        }
    }

    pub fn lateness(&self, work: &Work, micros: i64) {
        let late = micros.saturating_sub(work.run.due_at.as_millis().saturating_mul(1_000));
        let histograms = if work.caught_up {
            &self.caught_up
        } else {
            &self.lateness
        };
        if let Some(histogram) = histograms.get(work.run.lane.index()) {
            histogram.observe(late.max(0) as f64 / 1e6);
        }
    }

    /// The attempt has ended, and this follows if it was not to be cancelled; its claim stays until that is written.
    /// Answers what follows; nothing at all when a stop has cut the attempt off already.
    pub fn ended(
        &self,
        run: RunId,
        verdict: Verdict,
        at: Timestamp,
        room: Option<OwnedSemaphorePermit>,
    ) -> Option<Verdict> {
        let mut state = lock(&self.state);
        let holding = state.claims.get_mut(&run)?;
        holding.room = room;
        let verdict = matches!(holding.stage, Stage::Running(_)).then(|| {
            holding.stage = Stage::Ending;
            match holding.reason {
                // One that succeeded before it could be stopped did.
                Some(reason) if verdict != Verdict::Succeed => Verdict::Cancel(reason),
                Some(_) | None => verdict,
            }
        });
        if verdict.and_then(Verdict::end).is_some() {
            holding.ended_at = Some(at);
        }
        state.width.ended();
        verdict
    }

    /// The store has the end of these claims.
    pub fn forget(&self, claims: impl Iterator<Item = (RunId, AttemptNo)>) {
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        for (run, attempt) in claims {
            // The next attempt may have been claimed before this end was heard of.
            if state
                .claims
                .get(&run)
                .is_none_or(|holding| holding.attempt != attempt)
            {
                continue;
            }
            if let Some(holding) = state.claims.remove(&run) {
                state.leave(holding.job, run);
            }
        }
    }

    /// Starts as many tasks as there are attempts to start and room to run them.
    fn pump(&self, context: &Arc<Context>) -> Option<Timestamp> {
        let (now, uptime) = (context.now(), context.shared.clock.uptime());
        let mut starts = Vec::new();
        let mut state = lock(&self.state);
        Self::ripen(&mut state, now);
        let crowded = !state.lanes.is_empty();
        let running_max = context.config.running_max;
        let tasks_max = state.width.now(uptime, crowded).min(running_max);
        while state.tasks.sum() < tasks_max && context.presence.holds(uptime) {
            let Some(start) = Self::pop(&mut state, (now, uptime), context) else {
                break;
            };
            starts.push(start);
        }
        let mut next = state.held.keys().next().copied();
        if !state.lanes.is_empty() && tasks_max < running_max {
            // More may start when few of these have ended by then.
            let soon = now.plus(limits::WIDEN_EVERY);
            next = Some(next.map_or(soon, |next| next.min(soon)));
        }
        let tasks = state.tasks.sum();
        self.held
            .set(state.claims.len().saturating_sub(tasks) as i64);
        self.running.set(tasks as i64);
        drop(state);
        for start in starts {
            tokio::spawn(attempt::run(Arc::clone(context), start));
        }
        next
    }
}

/// Waits for the next due time, and marks what has been under way for a while.
pub struct DispatchDuty {
    context: Arc<Context>,
}

impl DispatchDuty {
    pub fn new(context: Arc<Context>) -> Self {
        Self { context }
    }
}

#[async_trait]
impl Duty for DispatchDuty {
    fn name(&self) -> &'static str {
        "dispatch"
    }

    fn nudge<'a>(&self, shared: &'a Shared) -> &'a Nudge {
        &shared.nudges.dispatch
    }

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError> {
        let next = self.context.dispatch.pump(&self.context);
        Ok(Wake::At(
            next.unwrap_or_else(|| now.plus(limits::SLEEP_MAX)),
        ))
    }
}
