//! Claims of this presence: each is known from the answer that made it until its end is written.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use model::view::{Known, grace};
use model::{
    Attempt, AttemptNo, Completion, Job, JobId, Lane, Outcome, Reason, Report, Run, RunId,
    Timestamp, Verdict, limits,
};
use store::Settlement;
use tokio::sync::{Notify, OwnedSemaphorePermit};

use super::lanes::Queues;
use super::width::Width;
use crate::age::{Age, ByAge};
use crate::by_id::MapById;
use crate::origins::Origin;

/// A claimed run and the definition that its attempt runs.
#[derive(Debug)]
pub(crate) struct Work {
    pub run: Run,
    pub job: Arc<Job>,
    /// Rung when the attempt is to end where it stands.
    pub stop: Notify,
    /// It was missed before it came here: how late it is says nothing about this node.
    pub caught_up: bool,
}

impl Work {
    /// A run that turns out to be ours at this moment.
    pub(crate) fn new(run: Run, job: Arc<Job>, now: Timestamp) -> Arc<Self> {
        let is_first = run.attempt == AttemptNo::FIRST;
        let caught_up = is_first && now.since(run.could_start_at()) > limits::LATE_MAX;
        Arc::new(Self {
            run,
            job,
            stop: Notify::new(),
            caught_up,
        })
    }

    /// What the attempt goes by.
    pub(crate) fn key(&self) -> (RunId, AttemptNo) {
        (self.run.id, self.run.attempt)
    }

    /// The run, once nobody else looks at it; a copy until then.
    pub(crate) fn into_parts(self: Arc<Self>) -> (Run, Arc<Job>) {
        match Arc::try_unwrap(self) {
            Ok(work) => (work.run, work.job),
            Err(work) => (work.run.clone(), Arc::clone(&work.job)),
        }
    }

    /// The end of an attempt that never left us.
    pub(crate) fn undispatched(self: Arc<Self>, verdict: Verdict, now: Timestamp) -> Settlement {
        let outcome = match verdict {
            Verdict::Release | Verdict::Wait(_) => None,
            Verdict::Succeed | Verdict::RetryAt(_) | Verdict::Bury(_) | Verdict::Cancel(_) => {
                Some(Outcome::Cancelled)
            }
        };
        let (run, _) = self.into_parts();
        let attempt =
            outcome.map(|outcome| Attempt::new(run.attempt, None, now, Report::of(outcome)));
        Settlement {
            run,
            verdict,
            attempt,
        }
    }
}

#[derive(Debug)]
pub(super) enum Stage {
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
pub(super) struct Holding {
    pub(super) job: JobId,
    pub(super) attempt: AttemptNo,
    pub(super) stage: Stage,
    /// Why it is to be cancelled, when it is.
    pub(super) reason: Option<Reason>,
    /// The one moment that fire goes by and history shows. None while it waits for its turn, its presence or its payload.
    pub(super) dispatched_at: Option<Timestamp>,
    /// What a large answer takes until it is written.
    pub(super) room: Option<OwnedSemaphorePermit>,
    /// When its run ended for good, while that is on its way to the store.
    pub(super) ended_at: Option<Timestamp>,
    /// Where it goes, from its turn on.
    pub(super) origin: Option<Arc<Origin>>,
    /// Its end decides whether its origin is well again.
    pub(super) is_probe: bool,
    /// Its origin has kept it until now, or still does.
    pub(super) is_kept: bool,
    /// Whom it waits for, or who has given it back and keeps room for it, until its turn.
    pub(super) kept_by: Option<Arc<Origin>>,
}

impl Holding {
    fn of(job: JobId, attempt: AttemptNo, stage: Stage) -> Self {
        Self {
            job,
            attempt,
            stage,
            reason: None,
            dispatched_at: None,
            room: None,
            ended_at: None,
            origin: None,
            is_probe: false,
            is_kept: false,
            kept_by: None,
        }
    }
}

/// The claims of one job. There is nearly always one, which allocates nothing.
#[derive(Debug)]
struct ClaimsOfJob {
    first: RunId,
    others: Vec<RunId>,
}

impl ClaimsOfJob {
    fn iter(&self) -> impl Iterator<Item = &RunId> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

#[derive(Debug, Default)]
pub(super) struct Claims {
    pub(super) by_run: MapById<RunId, Holding>,
    by_job: MapById<JobId, ClaimsOfJob>,
    pub(super) held: BTreeMap<Timestamp, Vec<RunId>>,
    pub(super) lanes: Queues<RunId>,
    /// Tasks that run attempts, by what they run.
    pub(super) tasks: ByAge<usize>,
    /// Dispatched, oldest first, not yet looked at for `mark_running`; by uptime.
    pub(super) started: VecDeque<(Duration, RunId)>,
    /// Dispatched because somebody asked for them, who may be looking.
    pub(super) requested: Vec<RunId>,
    pub(super) width: Width,
    /// Calls whose attempt has ended before they have: what their target reported came first, and the next attempt is here.
    outlived: BTreeMap<(RunId, AttemptNo), (Arc<Origin>, bool)>,
    /// Attempts that may not start, on their way to settle.
    pub(super) refused: Vec<Settlement>,
    pub(super) closed: bool,
}

impl Claims {
    pub(super) fn len(&self) -> usize {
        self.by_run.len()
    }

    /// Whether this node holds a run of the job.
    pub(super) fn lives(&self, job: JobId) -> bool {
        self.by_job.contains_key(&job)
    }

    pub(super) fn knows(&self, run: RunId, attempt: AttemptNo) -> bool {
        let holding = self.by_run.get(&run);
        holding.is_some_and(|holding| holding.attempt == attempt)
    }

    pub(super) fn running(&self) -> usize {
        self.tasks.sum()
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.held.is_empty() || !self.lanes.is_empty()
    }

    /// How many are under way or wait for their turn, as far as those of this age are concerned.
    pub(super) fn due_or_under_way(&self, age: Age) -> usize {
        let due = match age {
            Age::OnTime => self.lanes.of(Age::OnTime).len(),
            Age::Backlog => self.lanes.len(),
        };
        self.tasks.sum() + due
    }

    pub(super) fn lateness(&self, now: Timestamp) -> Duration {
        let waits = self.lanes.fronts().filter_map(|run| self.late(run, now));
        waits.max().unwrap_or_default()
    }

    /// How many runs wait for their turn in a lane, and how late the one is that has waited longest.
    pub(super) fn waits_in(&self, lane: Lane, now: Timestamp) -> (usize, Duration) {
        let depth = self.lanes.of_lane(lane).map(VecDeque::len).sum();
        let first = self.lanes.of_lane(lane).filter_map(VecDeque::front);
        let waits = first.filter_map(|run| self.late(run, now));
        (depth, waits.max().unwrap_or_default())
    }

    /// How late a run is that waits for its turn.
    fn late(&self, run: &RunId, now: Timestamp) -> Option<Duration> {
        match &self.by_run.get(run)?.stage {
            Stage::Queued(work) => Some(now.since(work.run.could_start_at())),
            Stage::Held(_) | Stage::Running(_) | Stage::Ending | Stage::TakenBack(_) => None,
        }
    }

    /// One claim of the job more.
    fn enter(&mut self, job: JobId, run: RunId) {
        if let Some(claims) = self.by_job.get_mut(&job) {
            claims.others.push(run);
        } else {
            let (first, others) = (run, Vec::new());
            self.by_job.insert(job, ClaimsOfJob { first, others });
        }
    }

    /// One claim of the job less.
    fn leave(&mut self, job: JobId, run: RunId) {
        let Some(claims) = self.by_job.get_mut(&job) else {
            return;
        };
        if claims.first != run {
            claims.others.retain(|held| *held != run);
        } else if let Some(next) = claims.others.pop() {
            claims.first = next;
        } else {
            self.by_job.remove(&job);
        }
    }

    /// A claimed run. One that is known already is the same claim answered twice.
    pub(super) fn insert(&mut self, work: Arc<Work>, now: Timestamp) {
        let (id, job, attempt) = (work.run.id, work.run.job, work.run.attempt);
        let known = self.by_run.get(&id);
        if known.is_some_and(|holding| holding.attempt >= attempt) {
            return;
        }
        let stage = if work.run.due_at <= now {
            let age = Age::of(work.run.due_at, now);
            self.lanes.push(age, work.run.lane, id);
            Stage::Queued(work)
        } else {
            self.held.entry(work.run.due_at).or_default().push(id);
            Stage::Held(work)
        };
        if self.by_run.contains_key(&id) {
            self.leave(job, id);
        }
        self.enter(job, id);
        let before = self.by_run.insert(id, Holding::of(job, attempt, stage));
        let Some(before) = before else {
            return;
        };
        self.give_up(before.kept_by, id, Some(now));
        if let Some(origin) = before.origin {
            let call = (origin, before.is_probe);
            self.outlived.insert((id, before.attempt), call);
        }
    }

    /// The claim of an attempt. The next one of its run may have taken its place.
    pub(super) fn get_mut(&mut self, run: RunId, attempt: AttemptNo) -> Option<&mut Holding> {
        let holding = self.by_run.get_mut(&run);
        holding.filter(|holding| holding.attempt == attempt)
    }

    /// Whom an attempt has called, and whether it was the probe; once.
    pub(super) fn take_call(
        &mut self,
        run: RunId,
        attempt: AttemptNo,
    ) -> Option<(Arc<Origin>, bool)> {
        match self.get_mut(run, attempt) {
            Some(holding) => Some((holding.origin.take()?, holding.is_probe)),
            None => self.outlived.remove(&(run, attempt)),
        }
    }

    /// A claim that does not start: it is known until it is handed back. None where it was known before.
    pub(super) fn refuse(&mut self, work: Arc<Work>) -> Option<Settlement> {
        let (id, job, attempt) = (work.run.id, work.run.job, work.run.attempt);
        if self.by_run.contains_key(&id) {
            return None;
        }
        self.enter(job, id);
        let ending = Holding::of(job, attempt, Stage::Ending);
        self.by_run.insert(id, ending);
        Some(work.undispatched(Verdict::Release, Timestamp::MIN))
    }

    /// The store has the end of this claim. Answers of which job it was.
    pub(super) fn remove(&mut self, run: RunId, attempt: AttemptNo) -> Option<JobId> {
        // The next attempt may have been claimed before this end was heard of.
        if !self.knows(run, attempt) {
            return None;
        }
        let holding = self.by_run.remove(&run)?;
        self.leave(holding.job, run);
        self.give_up(holding.kept_by, run, None);
        Some(holding.job)
    }

    fn of_job(&self, job: JobId) -> impl Iterator<Item = (RunId, &Holding)> {
        let runs = self.by_job.get(&job).into_iter();
        let runs = runs.flat_map(ClaimsOfJob::iter);
        runs.filter_map(|run| Some((*run, self.by_run.get(run)?)))
    }

    /// What is known here of the job's runs, before the store knows: whether they were dispatched, and when they ended. The
    /// store has to know whether one counts against a slot.
    pub(super) fn known(&self, job: JobId) -> Vec<Known> {
        let known = self.of_job(job).map(|(run, holding)| Known {
            run,
            dispatched_at: holding.dispatched_at,
            ended_at: holding.ended_at,
        });
        known.collect()
    }

    /// Whether a run that is held here was dispatched before a slot was due, by this attempt or an earlier one, and has not
    /// ended since.
    pub(super) fn was_dispatched_before(&self, job: JobId, due_at: Timestamp) -> bool {
        let before = |at: Option<Timestamp>| at.is_some_and(|at| at < due_at);
        self.of_job(job).any(|(_, holding)| match &holding.stage {
            Stage::Held(work) | Stage::Queued(work) | Stage::Running(work) => {
                before(holding.dispatched_at) || before(work.run.dispatched_at)
            }
            Stage::Ending | Stage::TakenBack(_) => false,
        })
    }

    /// When it shows whether the job's runs that are under way here count against a slot due at `due_at`.
    pub(super) fn shows_at(&self, job: JobId, due_at: Timestamp) -> Timestamp {
        let moments = self
            .of_job(job)
            .filter_map(|(_, holding)| match &holding.stage {
                // What others report ends it too, and that is not heard of here: the store knows.
                Stage::Running(work) if work.job.def.completion != Completion::Answer => None,
                Stage::Running(work) => {
                    let dispatched_at = holding.dispatched_at.filter(|at| *at < due_at)?;
                    Some(due_at.plus(grace(dispatched_at, work.run.due_at)))
                }
                Stage::Held(_) | Stage::Queued(_) | Stage::Ending | Stage::TakenBack(_) => None,
            });
        moments.max().unwrap_or(due_at)
    }
}
