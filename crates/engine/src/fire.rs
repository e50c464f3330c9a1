//! Fire: a lead before they are due, slots become runs and each job moves to its next slot, in one
//! write under the leases' epochs; and due runs that nobody holds are claimed.
//!
//! Batches are natural: whatever became due while the writes before were under way goes next. Two
//! writes are under way at most, so that the store never waits for us.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesOrdered, StreamExt};
use model::job::Decision;
use model::{AttemptNo, Job, JobId, Overlap, Run, RunId, RunState, Slot, Timestamp, limits};
use store::{Claimed, DueRun, Fired, Firing, Hint, StoreError};
use tracing::error;

use crate::dispatch::Work;
use crate::duty::{Duty, Wake};
use crate::handle::{Nudge, Shared};
use crate::lock;
use crate::node::Context;
use crate::postponed::Postponed;
use crate::wheel::{Entry, Wheel};

/// Writes under way at once.
const DEPTH: usize = 2;
/// What one firing is taken to cost before any was measured.
const COST_FIRST: Duration = Duration::from_micros(15);
/// Batches smaller than this say more about the disk than about a firing.
const COST_BATCH_MIN: usize = 100;

/// A write under way, and what it was about.
enum Answer {
    Fired {
        firings: Vec<Firing>,
        took: Duration,
        answer: Result<Vec<Fired>, StoreError>,
    },
    Claimed {
        runs: Vec<(Timestamp, DueRun)>,
        answer: Result<Vec<Claimed>, StoreError>,
    },
}

pub struct Fire {
    context: Arc<Context>,
    in_flight: FuturesOrdered<BoxFuture<'static, Answer>>,
    /// Slots whose job's last run lives: they wait for its end, at the latest for their due time.
    postponed: Postponed,
    /// Runs that wait until there is room for more claims.
    crowded: VecDeque<(Timestamp, DueRun)>,
    cost: Duration,
}

/// The firing of a wheel's entry, if it is one.
pub fn firing(entry: Entry, now: Timestamp, by: &Arc<str>, claim: bool) -> Option<Firing> {
    match entry {
        Entry::Slot(job) => {
            let decision = job.decide(job.next_slot?, now, by);
            Some(Firing {
                job,
                decision,
                claim,
            })
        }
        Entry::Run(_) => None,
    }
}

impl Fire {
    pub fn new(context: Arc<Context>) -> Self {
        Self {
            context,
            in_flight: FuturesOrdered::new(),
            postponed: Postponed::default(),
            crowded: VecDeque::new(),
            cost: COST_FIRST,
        }
    }

    /// How far ahead slots are fired: more when much is due soon, so that all of it is written in time.
    fn lead(&self, now: Timestamp) -> Duration {
        let until = now.plus(limits::LEAD_MAX);
        let due = lock(&self.context.wheel).count_until(until, limits::WHEEL_MAX);
        let writing = self.cost.saturating_mul(2 * due as u32);
        let least = match () {
            () if self.context.is_handing_over() => limits::LEAD_HAND_OVER,
            () if !self.context.config.parts.execute => limits::LEAD_APART,
            () => limits::LEAD_MIN,
        };
        (least + writing).min(limits::LEAD_MAX)
    }

    /// Puts writes under way while there is something to write.
    fn fill(&mut self, now: Timestamp, lead: Duration) {
        while self.in_flight.len() < DEPTH && self.context.is_present() {
            if self.context.dispatch.is_closed() || self.context.is_pausing() {
                return;
            }
            let mut room = self.room();
            let waited = self.crowded.len().min(room).min(limits::FIRE_BATCH_MAX);
            let mut runs: Vec<(Timestamp, DueRun)> = self.crowded.drain(..waited).collect();
            let due = self.take(now, lead);
            if due.is_empty() && runs.is_empty() {
                return;
            }
            room -= runs.len();
            let mut firings = Vec::with_capacity(due.len());
            for (due_at, entry) in due {
                match entry {
                    Entry::Run(run) if room > 0 => runs.push((due_at, run)),
                    Entry::Run(run) if self.crowded.len() < limits::CROWDED_MAX => {
                        self.crowded.push_back((due_at, run));
                    }
                    // The store has it; plan finds it again when there is room.
                    left @ Entry::Run(_) => lock(&self.context.wheel).answered(&left),
                    slot @ Entry::Slot(_) => {
                        firings.extend(firing(slot, now, &self.context.node, room > 0));
                    }
                }
                room = room.saturating_sub(1);
            }
            if !firings.is_empty() {
                self.fire(firings);
            }
            if !runs.is_empty() {
                self.claim(runs);
            }
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
    fn take(&mut self, now: Timestamp, lead: Duration) -> Vec<(Timestamp, Entry)> {
        let dispatch = &self.context.dispatch;
        let mut wheel = lock(&self.context.wheel);
        let mut due = Vec::new();
        due.extend(self.postponed.ripe(now, dispatch, limits::FIRE_BATCH_MAX));
        for (due_at, entry) in wheel.take(now.plus(lead), limits::FIRE_BATCH_MAX - due.len()) {
            if !wheel.is_current(&entry) {
                continue;
            }
            let waits = due_at > now && is_exclusive(&entry) && dispatch.lives(entry.job());
            if waits {
                self.postponed.add(due_at, entry, false);
            } else {
                due.push((due_at, entry));
            }
        }
        due
    }

    fn fire(&mut self, firings: Vec<Firing>) {
        let context = Arc::clone(&self.context);
        context
            .shared
            .metrics
            .fire_batch
            .observe(firings.len() as f64);
        lock(&context.wheel).begin_asking(runs_of(&firings));
        self.in_flight.push_back(Box::pin(async move {
            let begun = context.shared.clock.uptime();
            let leases = context.leases();
            let answer = context.store.fire(&leases, &firings).await;
            let took = context.shared.clock.uptime().saturating_sub(begun);
            Answer::Fired {
                firings,
                took,
                answer,
            }
        }));
    }

    fn claim(&mut self, runs: Vec<(Timestamp, DueRun)>) {
        let context = Arc::clone(&self.context);
        let ids: Vec<RunId> = runs.iter().map(|(_, run)| run.run).collect();
        lock(&context.wheel).begin_asking(ids.iter().copied());
        self.in_flight.push_back(Box::pin(async move {
            let leases = context.leases();
            let answer = context.store.claim(&leases, &ids).await;
            Answer::Claimed { runs, answer }
        }));
    }

    async fn absorb(&mut self, answer: Answer, now: Timestamp) -> Result<(), StoreError> {
        match answer {
            Answer::Fired {
                firings,
                took,
                answer: Ok(answers),
            } => {
                if firings.len() >= COST_BATCH_MIN {
                    let cost = took / firings.len() as u32;
                    self.cost = (self.cost * 7 + cost) / 8;
                }
                let refused = self.fired(firings, answers, now);
                for (job, why) in &refused {
                    error!(%job, error = %why, "cannot be fired and is parked");
                }
                if refused.is_empty() {
                    Ok(())
                } else {
                    self.context.store.park(&refused, now).await
                }
            }
            Answer::Claimed {
                runs,
                answer: Ok(answers),
            } => {
                self.claimed(runs, answers, now);
                Ok(())
            }
            // A write that failed may have happened: what it was about stays known, and asking
            // again is harmless.
            Answer::Fired {
                firings,
                answer: Err(error),
                ..
            } => {
                let mut wheel = lock(&self.context.wheel);
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
                let mut wheel = lock(&self.context.wheel);
                for (due_at, run) in runs {
                    wheel.end_asking(std::iter::once(run.run));
                    wheel.put_back(due_at, Entry::Run(run));
                }
                Err(error)
            }
        }
    }

    /// Takes the runs that were made, puts in the next slots. Answers what can never be fired.
    fn fired(
        &mut self,
        firings: Vec<Firing>,
        answers: Vec<Fired>,
        now: Timestamp,
    ) -> Vec<(JobId, String)> {
        let context = Arc::clone(&self.context);
        let horizon = now.plus(limits::HORIZON);
        let mut works = Vec::with_capacity(firings.len());
        let mut refused = Vec::new();
        let mut tally = Tally::default();
        let executes = context.config.parts.execute;
        let mut wheel = lock(&context.wheel);
        let runs: Vec<RunId> = runs_of(&firings).collect();
        for (firing, answer) in firings.into_iter().zip(answers) {
            let Firing { job, decision, .. } = firing;
            if answer == Fired::Early {
                self.postponed.add_early(&wheel, job, &decision);
                continue;
            }
            wheel.answered(&Entry::Slot(Arc::clone(&job)));
            tally.count(&answer);
            let born = match answer {
                Fired::Claimed(run) => {
                    let start = decision
                        .start
                        .filter(|_| !wheel.has_ended(run, AttemptNo::FIRST));
                    works.extend(start.map(|slot| born(&context, &job, slot)));
                    true
                }
                Fired::Ready(run) => {
                    if let Some(due) = due_run(run, &job, &decision).filter(|_| executes) {
                        wheel.insert_run(due, due.due_at);
                    }
                    true
                }
                Fired::Waiting(_) => true,
                Fired::Skipped(_) | Fired::Decided => false,
                Fired::Early => continue,
                Fired::Stale => {
                    // Plan may have passed it over while this was under way.
                    context.shared.offer_here((job.tenant, job.id));
                    continue;
                }
                Fired::LeaseLost => {
                    context.shared.doubt_leases();
                    continue;
                }
                Fired::Refused(why) => {
                    refused.push((job.id, why));
                    continue;
                }
            };
            onward(&mut wheel, &job, &decision, born, horizon);
        }
        wheel.end_asking(runs.into_iter());
        // Still under the wheel's lock: settle must not end one of these in between.
        context.dispatch.take(works, now);
        let low = wheel.len() < limits::WHEEL_MAX / 2;
        drop(wheel);
        tally.tell(&context);
        context.shared.nudges.dispatch.now();
        if low {
            context.shared.nudges.plan_if_waiting();
        }
        refused
    }

    fn claimed(&mut self, runs: Vec<(Timestamp, DueRun)>, answers: Vec<Claimed>, now: Timestamp) {
        let context = &self.context;
        let mut works = Vec::new();
        let mut wheel = lock(&context.wheel);
        for ((due_at, due), answer) in runs.into_iter().zip(answers) {
            wheel.answered(&Entry::Run(due));
            match answer {
                Claimed::Ours(run, job) => {
                    let mut run = *run;
                    if due_at < due.due_at {
                        // Plan made it due sooner than it was written: the clock has gone back.
                        run.due_at = run.due_at.min(due_at);
                    }
                    if !wheel.has_ended(run.id, run.attempt) {
                        works.push(Work::new(run, job));
                    }
                }
                Claimed::Stale => {
                    context.shared.metrics.collided.inc();
                }
                Claimed::LeaseLost => {
                    context.shared.metrics.collided.inc();
                    context.shared.doubt_leases();
                }
            }
            wheel.end_asking(std::iter::once(due.run));
        }
        // Still under the wheel's lock, as in `fired`.
        context.dispatch.take(works, now);
        drop(wheel);
        context.shared.nudges.dispatch.now();
    }

    /// When to look again: a good part of the lead before the next is due, so that a few of them
    /// go in one write.
    fn wake(&self, now: Timestamp, lead: Duration) -> Wake {
        let ahead = lead.mul_f64(0.7);
        let next = lock(&self.context.wheel)
            .next_due()
            .map(|due_at| due_at.minus(ahead));
        match next.into_iter().chain(self.postponed.next_due()).min() {
            Some(moment) if self.context.is_present() => Wake::At(moment.max(now)),
            Some(_) | None => Wake::At(now.plus(limits::SLEEP_MAX)),
        }
    }
}

/// What became of a batch, in numbers.
#[derive(Default)]
struct Tally {
    fired: u64,
    skipped: u64,
    /// Runs that nobody has claimed yet.
    left: u64,
    /// Someone else was faster.
    collided: u64,
}

impl Tally {
    fn count(&mut self, answer: &Fired) {
        match answer {
            Fired::Claimed(_) | Fired::Waiting(_) => self.fired += 1,
            Fired::Ready(_) => {
                self.fired += 1;
                self.left += 1;
            }
            Fired::Skipped(_) => self.skipped += 1,
            Fired::Stale | Fired::LeaseLost => self.collided += 1,
            Fired::Decided | Fired::Early | Fired::Refused(_) => {}
        }
    }

    fn tell(&self, context: &Context) {
        context.shared.metrics.fired.inc_by(self.fired);
        context.shared.metrics.skipped.inc_by(self.skipped);
        context.shared.metrics.collided.inc_by(self.collided);
        if self.left > 0 {
            context.store.hint(&[Hint::Ready]);
        }
    }
}

/// Puts in the slot that a decision leads to, if it is due soon.
fn onward(wheel: &mut Wheel, job: &Job, decision: &Decision, born: bool, horizon: Timestamp) {
    let stands = job.standing_after(decision, born);
    let due_at = stands.next_slot.map(|slot| job.due_at(slot));
    if due_at.is_some_and(|due_at| due_at <= horizon) {
        wheel.insert_job(Arc::new(job.at_standing(stands)));
    }
}

/// The runs that firings would make.
fn runs_of(firings: &[Firing]) -> impl Iterator<Item = RunId> + '_ {
    firings.iter().filter_map(|firing| {
        firing
            .decision
            .start
            .map(|slot| RunId::for_slot(firing.job.id, slot))
    })
}

/// Whether a slot of this job looks at the runs alive.
fn is_exclusive(entry: &Entry) -> bool {
    match entry {
        Entry::Slot(job) => job.def.overlap != Overlap::Allow,
        Entry::Run(_) => false,
    }
}

/// A run as it was just born, claimed by us.
fn born(context: &Context, job: &Arc<Job>, slot: Slot) -> Work {
    let run = Run {
        claim: Some(context.presence.id),
        ..Run::of_slot(job, slot)
    };
    Work::new(run, Arc::clone(job))
}

fn due_run(run: RunId, job: &Job, decision: &Decision) -> Option<DueRun> {
    Some(DueRun {
        run,
        tenant: job.tenant,
        job: job.id,
        due_at: job.due_at(decision.start?),
        state: RunState::Ready,
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

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError> {
        let lead = self.lead(now);
        self.fill(now, lead);
        let postponing = !self.postponed.is_empty() || !self.crowded.is_empty();
        let nudges = &self.context.shared.nudges;
        nudges.postponing.store(postponing, Ordering::Release);
        nudges
            .crowded
            .store(!self.crowded.is_empty(), Ordering::Release);
        let Some(answer) = self.in_flight.next().await else {
            if self.context.is_handing_over() {
                self.context.shared.nudges.fired_out.now();
            }
            if self.context.dispatch.is_closed() || self.context.is_pausing() {
                return Ok(Wake::Nudged);
            }
            return Ok(self.wake(now, lead));
        };
        let now = self.context.now();
        self.absorb(answer, now).await?;
        Ok(Wake::Now)
    }
}

impl crate::handle::Nudges {
    /// Plan may be waiting for room in the wheel.
    fn plan_if_waiting(&self) {
        if self.wheel_full.swap(false, Ordering::AcqRel) {
            self.plan.now();
        }
    }
}
