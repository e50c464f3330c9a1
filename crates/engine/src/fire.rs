//! Fire: a lead before they are due, slots become runs and each job moves to its next slot, in one
//! write under the leases' epochs; and due runs that nobody holds are claimed.
//!
//! Batches are natural: whatever became due while the writes before were under way goes next. Slots that simply
//! start, slots that have to be looked at closely, and claims are written apart, so that none waits for what takes
//! others longer; two writes of each are under way at most, so that the store never waits for us. The backlog is written
//! apart from what is on time, a few writes at a time, so that a slot that is on time waits for those at most.

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

use crate::age::{Age, ByAge};
use crate::by_id::MapById;
use crate::duty::{Duty, Wake};
use crate::fired;
use crate::handle::{Nudge, Shared};
use crate::lead::Lead;
use crate::lock;
use crate::node::Context;
use crate::postponed::Postponed;
use crate::wheel::Entry;
use crate::writes::{Kind, Writes};

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

/// A write that was answered.
struct Done {
    age: Age,
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
    writes: Writes,
    /// Slots whose job's last run lives: they wait for its end, at the latest for their due time.
    postponed: Postponed,
    /// Runs that wait until they can be claimed.
    crowded: ByAge<VecDeque<(Timestamp, DueRun)>>,
    /// Their jobs and those of claims under way, with how many runs each: they live, and while they are claimed the store
    /// keeps their jobs locked.
    claiming: MapById<JobId, usize>,
    lead: Lead,
}

/// The firing of a job's next slot, if it has one.
fn firing(context: &Context, job: Arc<Job>, now: Timestamp, claim: bool) -> Option<Firing> {
    Some(Firing {
        decision: job.decide(job.next_slot?, now, &context.node),
        job,
        claim,
        knows: Vec::new(),
    })
}

/// The same for a job that may have runs here: the store is told what is known of them.
fn firing_beside(context: &Context, job: Arc<Job>, now: Timestamp, claim: bool) -> Option<Firing> {
    let matters = job.def.overlap != Overlap::Allow;
    let knows = matters.then(|| context.dispatch.known(job.id));
    let firing = firing(context, job, now, claim)?;
    Some(Firing {
        knows: knows.unwrap_or_default(),
        ..firing
    })
}

impl Fire {
    pub fn new(context: Arc<Context>) -> Self {
        Self {
            context,
            in_flight: FuturesUnordered::new(),
            writes: Writes::default(),
            postponed: Postponed::default(),
            crowded: ByAge::default(),
            claiming: MapById::default(),
            lead: Lead::default(),
        }
    }

    /// How far ahead slots are fired: more when much is due soon, so that all of it is written in time.
    fn lead(&self, now: Timestamp) -> Duration {
        let until = now.plus(limits::LEAD_MAX);
        let due = lock(&self.context.wheel).count_until(until);
        let least = if self.context.is_handing_over() {
            limits::LEAD_HAND_OVER
        } else if self.context.config.parts.execute {
            limits::LEAD_MIN
        } else {
            limits::LEAD_APART
        };
        self.lead.of(least, due)
    }

    /// Whether writes may begin at all.
    fn may_write(&self) -> bool {
        let context = &self.context;
        context.is_present() && !context.dispatch.is_closed() && !context.is_pausing()
    }

    /// Puts writes under way while there is something to write.
    fn fill(&mut self, now: Timestamp, lead: Duration) {
        while self.may_write() {
            let begun = Age::ALL.map(|age| self.fill_with(age, now, lead));
            if begun == [false; 2] {
                return;
            }
        }
    }

    /// Puts one write of each kind under way, if there is something to write. Answers whether there was.
    fn fill_with(&mut self, age: Age, now: Timestamp, lead: Duration) -> bool {
        let mut room = self.room(age);
        let due = self.take(age, now, lead);
        let waiting = self.crowded.get(age).len();
        let claims = if self.writes.has_patience(age) {
            waiting.min(room).min(limits::FIRE_BATCH_MAX)
        } else {
            0
        };
        if due.simple.is_empty() && due.close.is_empty() && claims == 0 {
            return false;
        }
        let crowded = self.crowded.get_mut(age);
        let runs: Vec<(Timestamp, DueRun)> = crowded.drain(..claims).collect();
        room -= claims;
        let (mut simple, mut close) = (Vec::with_capacity(due.simple.len()), Vec::new());
        for job in due.close {
            let claim = room > 0 && self.context.can_execute(&job);
            close.extend(firing_beside(&self.context, job, now, claim));
            room = room.saturating_sub(1);
        }
        for job in due.simple {
            let claim = room > 0 && self.context.can_execute(&job);
            let firing = firing(&self.context, job, now, claim);
            if firing.as_ref().is_some_and(is_simple) {
                simple.extend(firing)
            } else {
                close.extend(firing)
            }
            room = room.saturating_sub(1);
        }
        self.fire(age, Kind::Simple, simple);
        self.fire(age, Kind::Close, close);
        self.claim(age, runs);
        true
    }

    /// How many runs may be claimed. What is due while no more can start is left to others, if they can.
    fn room(&self, age: Age) -> usize {
        let context = &self.context;
        let running_max = context.config.running_max;
        let crowded = context.dispatch.is_crowded(age, running_max) && context.others_have_room();
        let room = if context.config.parts.execute && !crowded {
            context.dispatch.room()
        } else {
            0
        };
        match age {
            Age::OnTime => room,
            Age::Backlog => room.saturating_sub(limits::HELD_ON_TIME),
        }
    }

    /// What is due within the lead and may be written now.
    fn take(&mut self, age: Age, now: Timestamp, lead: Duration) -> Due {
        let mut due = Due::default();
        let most = limits::FIRE_BATCH_MAX;
        if self.writes.has_patience(age) {
            let ripe = self.postponed.due(age, now, most);
            due.close = current(&self.context, ripe);
        }
        if !self.writes.may_take(age) {
            return due;
        }
        let context = Arc::clone(&self.context);
        let lives = |job: JobId| context.dispatch.lives(job);
        let keeps = |job: JobId| lives(job) || self.claiming.contains_key(&job);
        let freed = self.postponed.freed(age, now, keeps, most);
        due.simple = current(&context, freed);
        let mut wheel = lock(&context.wheel);
        wheel.age(now);
        for (due_at, entry) in wheel.take(age, now.plus(lead), most - due.simple.len()) {
            if !wheel.is_current(&entry) {
                continue;
            }
            match entry {
                Entry::Run(run) if self.crowded.get(age).len() < limits::CROWDED_MAX => {
                    *self.claiming.entry(run.job).or_default() += 1;
                    self.crowded.get_mut(age).push_back((due_at, run));
                }
                // The store has it; plan finds it again when there is room.
                left @ Entry::Run(_) => wheel.answered(&left),
                Entry::Slot(job) => {
                    let claiming = self.claiming.contains_key(&job.id);
                    let waits = job.def.overlap != Overlap::Allow && (claiming || lives(job.id));
                    if waits {
                        let missed = due_at < now.minus(limits::LATE_MAX);
                        let ask_at = if missed {
                            // It is its turn when the run before it has ended.
                            now.plus(limits::SLEEP_MAX)
                        } else {
                            context.dispatch.shows_at(job.id, due_at)
                        };
                        self.postponed.add(ask_at, job, false);
                    } else if claiming {
                        due.close.push(job);
                    } else {
                        due.simple.push(job);
                    }
                }
            }
        }
        due
    }

    fn begin(
        &mut self,
        (age, kind): (Age, Kind),
        write: impl Future<Output = Answer> + Send + 'static,
    ) {
        self.writes.begin(age, kind);
        let context = Arc::clone(&self.context);
        self.in_flight.push(Box::pin(async move {
            let begun = context.shared.clock.uptime();
            let answer = write.await;
            let took = context.shared.clock.uptime().saturating_sub(begun);
            Done {
                age,
                kind,
                took,
                answer,
            }
        }));
    }

    fn fire(&mut self, age: Age, kind: Kind, mut firings: Vec<Firing>) {
        if firings.is_empty() {
            return;
        }
        let flaw = self.context.config.flaw;
        firings.iter_mut().for_each(|firing| flaw.spoil(firing));
        let context = Arc::clone(&self.context);
        let metrics = &context.shared.metrics;
        metrics.fire_batch.observe(firings.len() as f64);
        lock(&context.wheel).begin_asking(runs_of(&firings));
        self.begin((age, kind), async move {
            let leases = context.leases();
            let answer = context.store.fire(&leases, &firings).await;
            Answer::Fired { firings, answer }
        });
    }

    fn claim(&mut self, age: Age, runs: Vec<(Timestamp, DueRun)>) {
        if runs.is_empty() {
            return;
        }
        let context = Arc::clone(&self.context);
        let ids: Vec<RunId> = runs.iter().map(|(_, run)| run.run).collect();
        lock(&context.wheel).begin_asking(ids.iter().copied());
        self.begin((age, Kind::Claim), async move {
            let leases = context.leases();
            let answer = context.store.claim(&leases, &ids).await;
            Answer::Claimed { runs, answer }
        });
    }

    /// What a write took, if that says how far ahead the next ones are to begin. One that looks closely takes its
    /// time, and begins when its slots are due; the backlog is late whatever it takes. What others wait for behind it
    /// shows in theirs.
    fn learn(&mut self, done: &Done) {
        if done.age == Age::Backlog {
            return;
        }
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
        self.writes.end(done.age, done.kind);
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
                let beyond = fired::claimed(&context, runs, answers, now);
                context.hand_back(beyond).await;
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
    fn next_write(&self, now: Timestamp, lead: Duration) -> Option<Timestamp> {
        if !self.may_write() {
            return None;
        }
        let ahead = lead.saturating_sub(self.lead.gather(lead));
        let next = |age: Age| {
            let in_wheel = || lock(&self.context.wheel).next_due(age);
            let from_wheel = self.writes.may_take(age).then(in_wheel).flatten();
            let postponed = || self.postponed.next_due(age, now);
            let postponed = self.writes.has_patience(age).then(postponed).flatten();
            [from_wheel.map(|due_at| due_at.minus(ahead)), postponed]
        };
        Age::ALL.into_iter().flat_map(next).flatten().min()
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
        let next = self.next_write(now, lead).map(|moment| moment.max(now));
        Wake::At(next.unwrap_or(latest))
    }

    /// Waits for an answer; none when something may be written first.
    async fn answered(&mut self, now: Timestamp, lead: Duration) -> Option<Done> {
        let latest = now.plus(limits::SLEEP_MAX);
        let next = self.next_write(now, lead).unwrap_or(latest).min(latest);
        let shared = &self.context.shared;
        tokio::select! {
            biased;
            done = self.in_flight.next() => done,
            () = shared.nudges.fire.heard() => None,
            () = shared.clock.sleep(next.since(now)) => None,
        }
    }
}

/// Those that an edit has not replaced: what it put in instead may go with the same write, which holds a job once.
fn current(context: &Context, jobs: Vec<Arc<Job>>) -> Vec<Arc<Job>> {
    let wheel = lock(&context.wheel);
    let is_current = |job: &Arc<Job>| wheel.is_current(&Entry::Slot(Arc::clone(job)));
    jobs.into_iter().filter(is_current).collect()
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
            let crowded = Age::ALL.map(|age| !self.crowded.get(age).is_empty());
            let postponing = crowded.contains(&true) || !self.postponed.is_empty();
            nudges.postponing.store(postponing, Ordering::Release);
            for (age, crowded) in Age::ALL.into_iter().zip(crowded) {
                nudges.crowded.get(age).store(crowded, Ordering::Release);
            }
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
