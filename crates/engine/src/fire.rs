//! Fire: a lead before they are due, slots become runs and each job moves to its next slot, in one
//! write under the leases' epochs; and due runs that nobody holds are claimed.
//!
//! Batches are natural: whatever became due while the writes before were under way goes next. Slots that simply
//! start, slots that have to be looked at closely, and claims are written apart, so that none waits for what takes
//! others longer; two writes of each are under way at most, so that the store never waits for us.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use model::{Job, JobId, Overlap, RunId, Timestamp, limits};
use store::{Claimed, DueRun, Fired, Firing, StoreError};
use tracing::error;

use crate::by_id::MapById;
use crate::duty::{Duty, Wake};
use crate::fired;
use crate::handle::{Nudge, Shared};
use crate::lead::Lead;
use crate::lock;
use crate::node::Context;
use crate::postponed::Postponed;
use crate::wheel::Entry;

/// Writes of a kind under way at once.
const DEPTH: usize = 2;

/// What a write under way was about, and what became of it.
enum Answer {
    Fired {
        firings: Vec<Firing>,
        answer: Result<Vec<Fired>, StoreError>,
    },
    Claimed {
        runs: Vec<(Timestamp, DueRun)>,
        answer: Result<Vec<Claimed>, StoreError>,
    },
}

/// Writes of different kinds do not wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Slots that start, as far as is known.
    Simple,
    /// Slots that pass others over, that are due while a run lives, or whose job is being claimed from: the store looks
    /// at each of them, or has them wait.
    Close,
    Claim,
}

/// A write that was answered.
struct Done {
    kind: Kind,
    took: Duration,
    answer: Answer,
}

/// What may be written now.
#[derive(Default)]
struct Due {
    simple: Vec<Arc<Job>>,
    close: Vec<Arc<Job>>,
}

pub struct Fire {
    context: Arc<Context>,
    in_flight: FuturesUnordered<BoxFuture<'static, Done>>,
    /// How many of them are of each kind.
    under_way: [usize; 3],
    /// Slots whose job's last run lives: they wait for its end, at the latest for their due time.
    postponed: Postponed,
    /// Runs that wait until they can be claimed.
    crowded: VecDeque<(Timestamp, DueRun)>,
    /// Their jobs and those of claims under way, with how many runs each: they live, and while they are claimed the store
    /// keeps their jobs locked.
    claiming: MapById<JobId, usize>,
    lead: Lead,
}

/// The firing of a job's next slot, if it has one.
pub fn firing(job: Arc<Job>, now: Timestamp, by: &Arc<str>, claim: bool) -> Option<Firing> {
    let decision = job.decide(job.next_slot?, now, by);
    Some(Firing {
        job,
        decision,
        claim,
    })
}

impl Fire {
    pub fn new(context: Arc<Context>) -> Self {
        Self {
            context,
            in_flight: FuturesUnordered::new(),
            under_way: [0; 3],
            postponed: Postponed::default(),
            crowded: VecDeque::new(),
            claiming: MapById::default(),
            lead: Lead::default(),
        }
    }

    /// How far ahead slots are fired: more when much is due soon, so that all of it is written in time.
    fn lead(&self, now: Timestamp) -> Duration {
        let until = now.plus(limits::LEAD_MAX);
        let due = lock(&self.context.wheel).count_until(until, limits::WHEEL_MAX);
        let least = match () {
            () if self.context.is_handing_over() => limits::LEAD_HAND_OVER,
            () if !self.context.config.parts.execute => limits::LEAD_APART,
            () => limits::LEAD_MIN,
        };
        self.lead.of(least, due)
    }

    fn writes(&self, kind: Kind) -> usize {
        let [simple, close, claim] = self.under_way;
        match kind {
            Kind::Simple => simple,
            Kind::Close => close,
            Kind::Claim => claim,
        }
    }

    fn count(&mut self, kind: Kind) -> &mut usize {
        let [simple, close, claim] = &mut self.under_way;
        match kind {
            Kind::Simple => simple,
            Kind::Close => close,
            Kind::Claim => claim,
        }
    }

    /// Whether writes may begin at all.
    fn may_write(&self) -> bool {
        let context = &self.context;
        context.is_present() && !context.dispatch.is_closed() && !context.is_pausing()
    }

    /// Whether another write may begin that the store takes its time for. There are few connections.
    fn has_patience(&self) -> bool {
        self.writes(Kind::Close) + self.writes(Kind::Claim) < DEPTH
    }

    /// Whether the wheel may be taken from. What passes others over is only known when it has been.
    fn may_take(&self) -> bool {
        self.writes(Kind::Simple) < DEPTH && self.writes(Kind::Close) <= DEPTH
    }

    /// Puts writes under way while there is something to write.
    fn fill(&mut self, now: Timestamp, lead: Duration) {
        while self.may_write() {
            let mut room = self.room();
            let due = self.take(now, lead);
            let claims = match self.has_patience() {
                true => self.crowded.len().min(room).min(limits::FIRE_BATCH_MAX),
                false => 0,
            };
            if due.simple.is_empty() && due.close.is_empty() && claims == 0 {
                return;
            }
            let runs: Vec<(Timestamp, DueRun)> = self.crowded.drain(..claims).collect();
            room -= claims;
            let (mut simple, mut close) = (Vec::with_capacity(due.simple.len()), Vec::new());
            for job in due.close {
                close.extend(firing(job, now, &self.context.node, room > 0));
                room = room.saturating_sub(1);
            }
            for job in due.simple {
                let firing = firing(job, now, &self.context.node, room > 0);
                match firing.as_ref().is_some_and(is_simple) {
                    true => simple.extend(firing),
                    false => close.extend(firing),
                }
                room = room.saturating_sub(1);
            }
            self.fire(Kind::Simple, simple);
            self.fire(Kind::Close, close);
            self.claim(runs);
        }
    }

    /// How many runs may be claimed. What is due while no more can start is left to others, if they can.
    fn room(&self) -> usize {
        let context = &self.context;
        let running_max = context.config.running_max;
        let crowded = context.dispatch.is_crowded(running_max) && context.others_have_room();
        match context.config.parts.execute && !crowded {
            true => context.dispatch.room(),
            false => 0,
        }
    }

    /// What is due within the lead and may be written now.
    fn take(&mut self, now: Timestamp, lead: Duration) -> Due {
        let mut due = Due::default();
        if self.has_patience() {
            due.close = self.postponed.due(now, limits::FIRE_BATCH_MAX);
        }
        if !self.may_take() {
            return due;
        }
        let context = Arc::clone(&self.context);
        let lives = |job: JobId| context.dispatch.lives(job);
        let keeps = |job: JobId| lives(job) || self.claiming.contains_key(&job);
        due.simple = self.postponed.freed(keeps, limits::FIRE_BATCH_MAX);
        let mut wheel = lock(&context.wheel);
        let room = limits::FIRE_BATCH_MAX - due.simple.len();
        for (due_at, entry) in wheel.take(now.plus(lead), room) {
            if !wheel.is_current(&entry) {
                continue;
            }
            match entry {
                Entry::Run(run) if self.crowded.len() < limits::CROWDED_MAX => {
                    *self.claiming.entry(run.job).or_default() += 1;
                    self.crowded.push_back((due_at, run));
                }
                // The store has it; plan finds it again when there is room.
                left @ Entry::Run(_) => wheel.answered(&left),
                Entry::Slot(job) => {
                    let claiming = self.claiming.contains_key(&job.id);
                    let waits = job.def.overlap != Overlap::Allow && (claiming || lives(job.id));
                    match () {
                        () if waits => self.postponed.add(due_at, job, false),
                        () if claiming => due.close.push(job),
                        () => due.simple.push(job),
                    }
                }
            }
        }
        due
    }

    fn begin(&mut self, kind: Kind, write: impl Future<Output = Answer> + Send + 'static) {
        *self.count(kind) += 1;
        let context = Arc::clone(&self.context);
        self.in_flight.push(Box::pin(async move {
            let begun = context.shared.clock.uptime();
            let answer = write.await;
            let took = context.shared.clock.uptime().saturating_sub(begun);
            Done { kind, took, answer }
        }));
    }

    fn fire(&mut self, kind: Kind, firings: Vec<Firing>) {
        if firings.is_empty() {
            return;
        }
        let context = Arc::clone(&self.context);
        let metrics = &context.shared.metrics;
        metrics.fire_batch.observe(firings.len() as f64);
        lock(&context.wheel).begin_asking(runs_of(&firings));
        self.begin(kind, async move {
            let leases = context.leases();
            let answer = context.store.fire(&leases, &firings).await;
            Answer::Fired { firings, answer }
        });
    }

    fn claim(&mut self, runs: Vec<(Timestamp, DueRun)>) {
        if runs.is_empty() {
            return;
        }
        let context = Arc::clone(&self.context);
        let ids: Vec<RunId> = runs.iter().map(|(_, run)| run.run).collect();
        lock(&context.wheel).begin_asking(ids.iter().copied());
        self.begin(Kind::Claim, async move {
            let leases = context.leases();
            let answer = context.store.claim(&leases, &ids).await;
            Answer::Claimed { runs, answer }
        });
    }

    /// What a write took, if that says how far ahead the next ones are to begin. One that looks closely takes its
    /// time, and begins when its slots are due.
    fn learn(&mut self, done: &Done) {
        let count = match (&done.answer, done.kind) {
            (_, Kind::Close) => return,
            (Answer::Fired { answer, .. }, _) => answer.as_ref().map(Vec::len),
            (Answer::Claimed { answer, .. }, _) => answer.as_ref().map(Vec::len),
        };
        if let Ok(count) = count {
            let uptime = self.context.shared.clock.uptime();
            self.lead.learn(count, done.took, uptime);
        }
    }

    fn end_claiming(&mut self, answer: &Answer) {
        let runs = match answer {
            Answer::Fired { .. } => return,
            Answer::Claimed { runs, .. } => runs,
        };
        for (_, run) in runs {
            if let Some(count) = self.claiming.get_mut(&run.job) {
                *count -= 1;
                if *count == 0 {
                    self.claiming.remove(&run.job);
                }
            }
        }
    }

    async fn absorb(&mut self, done: Done, now: Timestamp) -> Result<(), StoreError> {
        *self.count(done.kind) -= 1;
        self.learn(&done);
        self.end_claiming(&done.answer);
        let context = Arc::clone(&self.context);
        match done.answer {
            Answer::Fired {
                firings,
                answer: Ok(answers),
            } => {
                let refused = fired::fired(&context, &mut self.postponed, firings, answers, now);
                for (job, why) in &refused {
                    error!(%job, error = %why, "cannot be fired and is parked");
                }
                if refused.is_empty() {
                    Ok(())
                } else {
                    context.store.park(&refused, now).await
                }
            }
            Answer::Claimed {
                runs,
                answer: Ok(answers),
            } => {
                fired::claimed(&context, runs, answers, now);
                Ok(())
            }
            // A write that failed may have happened: what it was about stays known, and asking
            // again is harmless.
            Answer::Fired {
                firings,
                answer: Err(error),
            } => {
                let mut wheel = lock(&context.wheel);
                wheel.end_asking(runs_of(&firings));
                for Firing { job, .. } in firings {
                    let due_at = job.next_due_at().unwrap_or(now);
                    wheel.put_back(due_at, Entry::Slot(job));
                }
                Err(error)
            }
            Answer::Claimed {
                runs,
                answer: Err(error),
            } => {
                let mut wheel = lock(&context.wheel);
                for (due_at, run) in runs {
                    wheel.end_asking(std::iter::once(run.run));
                    wheel.put_back(due_at, Entry::Run(run));
                }
                Err(error)
            }
        }
    }

    /// When the next write may begin: a good part of the lead before the next is due, so that a few of them go in one.
    /// None while that takes an answer first.
    fn next_write(&self, lead: Duration) -> Option<Timestamp> {
        if !self.may_write() {
            return None;
        }
        let ahead = lead.saturating_sub(self.lead.gather(lead));
        let from_wheel = self.may_take().then(|| {
            let next = lock(&self.context.wheel).next_due();
            next.map(|due_at| due_at.minus(ahead))
        });
        let postponed = self.has_patience().then(|| self.postponed.next_due());
        let moments = [from_wheel.flatten(), postponed.flatten()];
        moments.into_iter().flatten().min()
    }

    /// When to look again while nothing is under way.
    fn wake(&self, now: Timestamp, lead: Duration) -> Wake {
        let context = &self.context;
        if context.is_handing_over() {
            context.shared.nudges.fired_out.now();
        }
        if context.dispatch.is_closed() || context.is_pausing() {
            return Wake::Nudged;
        }
        let latest = now.plus(limits::SLEEP_MAX);
        let next = self.next_write(lead).map(|moment| moment.max(now));
        Wake::At(next.unwrap_or(latest))
    }

    /// Waits for an answer; none when something may be written first.
    async fn answered(&mut self, now: Timestamp, lead: Duration) -> Option<Done> {
        let latest = now.plus(limits::SLEEP_MAX);
        let next = self.next_write(lead).unwrap_or(latest).min(latest);
        let shared = &self.context.shared;
        tokio::select! {
            biased;
            done = self.in_flight.next() => done,
            () = shared.nudges.fire.heard() => None,
            () = shared.clock.sleep(next.since(now)) => None,
        }
    }
}

/// Whether a firing starts a run and does nothing else.
fn is_simple(firing: &Firing) -> bool {
    firing.decision.start.is_some() && firing.decision.passed.is_empty()
}

/// The runs that firings would make.
pub fn runs_of(firings: &[Firing]) -> impl Iterator<Item = RunId> + '_ {
    firings.iter().filter_map(|firing| {
        firing
            .decision
            .start
            .map(|slot| RunId::for_slot(firing.job.id, slot))
    })
}

#[async_trait]
impl Duty for Fire {
    fn name(&self) -> &'static str {
        "fire"
    }

    fn nudge<'a>(&self, shared: &'a Shared) -> &'a Nudge {
        &shared.nudges.fire
    }

    async fn step(&mut self, mut now: Timestamp) -> Result<Wake, StoreError> {
        loop {
            let lead = self.lead(now);
            self.fill(now, lead);
            let nudges = &self.context.shared.nudges;
            let crowded = !self.crowded.is_empty();
            let postponing = crowded || !self.postponed.is_empty();
            nudges.postponing.store(postponing, Ordering::Release);
            nudges.crowded.store(crowded, Ordering::Release);
            if self.in_flight.is_empty() {
                return Ok(self.wake(now, lead));
            }
            let done = self.answered(now, lead).await;
            now = self.context.now();
            if let Some(done) = done {
                self.absorb(done, now).await?;
                return Ok(Wake::Now);
            }
        }
    }
}
