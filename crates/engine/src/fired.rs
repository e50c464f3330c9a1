//! What became of firings and claims: runs that are ours go to dispatch, jobs move on to their next slots.

use std::sync::Arc;

use model::job::Decision;
use model::{
    AttemptNo, Job, JobId, Reason, Run, RunId, RunState, Slot, Stretch, Timestamp, limits,
};
use store::{Claimed, DueRun, Fired, Firing, Hint, Settlement};

use crate::dispatch::Work;
use crate::fire::runs_of;
use crate::lock;
use crate::node::Context;
use crate::postponed::Postponed;
use crate::trouble::{What, is_trouble};
use crate::wheel::{Entry, Wheel};

/// Takes the runs that were made, puts in the next slots. Answers what can never be fired.
pub fn fired(
    context: &Context,
    postponed: &mut Postponed,
    firings: Vec<Firing>,
    answers: Vec<Fired>,
    now: Timestamp,
) -> Vec<(JobId, String)> {
    let horizon = now.plus(limits::HORIZON);
    let mut works = Vec::with_capacity(firings.len());
    let mut refused = Vec::new();
    let mut tally = Tally::default();
    let mut wheel = lock(&context.wheel);
    let runs: Vec<RunId> = runs_of(&firings).collect();
    for (firing, answer) in firings.into_iter().zip(answers) {
        let Firing { job, decision, .. } = firing;
        if let Fired::Early(at) = answer {
            let elsewhere = !context.dispatch.lives(job.id);
            postponed.add_early(&wheel, at, job, elsewhere);
            continue;
        }
        wheel.answered(&Entry::Slot(Arc::clone(&job)));
        tally.count(&answer);
        tally.note_skips(&job, &decision, &answer);
        let inserted = match answer {
            Fired::Claimed(run) => {
                let start = decision
                    .start
                    .filter(|_| !wheel.has_ended(run, AttemptNo::FIRST));
                works.extend(start.map(|slot| claimed_run(context, &job, slot)));
                true
            }
            Fired::Ready(run) => {
                left_ready(context, &mut wheel, &job, due_run(run, &job, &decision));
                true
            }
            Fired::Waiting(_) => true,
            Fired::Skipped(_) | Fired::Decided => false,
            Fired::Early(_) => continue,
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
        onward(&mut wheel, &job, &decision, inserted, horizon);
    }
    wheel.end_asking(runs.into_iter());
    // Still under the wheel's lock: settle must not end one of these in between.
    context.dispatch.take(works, now);
    let has_room = wheel.has_room_again();
    drop(wheel);
    tally.tell(context);
    context.shared.nudges.dispatch.now();
    if has_room {
        context.shared.nudges.plan.now();
    }
    refused
}

/// A run that was not claimed is, as soon as there is room for it; unless it is for others.
fn left_ready(context: &Context, wheel: &mut Wheel, job: &Job, due: Option<DueRun>) {
    let Some(due) = due.filter(|_| context.config.parts.execute) else {
        return;
    };
    if context.can_execute(job) {
        wheel.insert_run(due, due.due_at);
    } else {
        context.leave_beyond(job, due.run);
    }
}

/// Takes the runs that were claimed. Answers those that are beyond this node, to be handed back.
pub fn claimed(
    context: &Context,
    runs: Vec<(Timestamp, DueRun)>,
    answers: Vec<Claimed>,
    now: Timestamp,
) -> Vec<Settlement> {
    let mut works = Vec::new();
    let mut wheel = lock(&context.wheel);
    for ((_, due), answer) in runs.into_iter().zip(answers) {
        wheel.answered(&Entry::Run(due));
        match answer {
            Claimed::Ours(run, job) => {
                if !wheel.has_ended(run.id, run.attempt) {
                    works.push(Work::new(*run, job));
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
    let beyond = context.take_claimed(works, now);
    drop(wheel);
    context.shared.nudges.dispatch.now();
    beyond
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
    /// Slots that will not run: the first of each stretch, and how many.
    skips: Vec<(Arc<Job>, Slot, Reason, u64)>,
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
            Fired::Decided | Fired::Early(_) | Fired::Refused(_) => {}
        }
    }

    /// What was recorded as skipped with the answer.
    fn note_skips(&mut self, job: &Arc<Job>, decision: &Decision, answer: &Fired) {
        let own = match answer {
            Fired::Claimed(_) | Fired::Ready(_) | Fired::Waiting(_) | Fired::Decided => None,
            Fired::Skipped(reason) => decision.start.map(|slot| (slot, *reason)),
            Fired::Early(_) | Fired::Stale | Fired::LeaseLost | Fired::Refused(_) => return,
        };
        for skip in &decision.passed {
            let Stretch { first, count, .. } = skip.slots;
            self.skips
                .push((Arc::clone(job), first, skip.reason, count));
        }
        if let Some((slot, reason)) = own {
            self.skips.push((Arc::clone(job), slot, reason, 1));
        }
    }

    fn tell(&self, context: &Context) {
        let shared = &context.shared;
        for (job, slot, reason, count) in &self.skips {
            shared.metrics.slots_skipped(*reason, *count);
            if is_trouble(*reason) {
                let (uptime, run) = (shared.clock.uptime(), RunId::for_slot(job.id, *slot));
                let why = format!("{}: {count} from {slot}", reason.as_str());
                shared.trouble.log(uptime, What::Skipped, job, run, &why);
            }
        }
        context.shared.metrics.fired.inc_by(self.fired);
        context.shared.metrics.skipped.inc_by(self.skipped);
        context.shared.metrics.collided.inc_by(self.collided);
        if self.left > 0 {
            context.store.hint(&[Hint::Ready]);
        }
    }
}

/// Puts in the slot that a decision leads to, if it is due soon.
fn onward(wheel: &mut Wheel, job: &Job, decision: &Decision, inserted: bool, horizon: Timestamp) {
    let stands = job.standing_after(decision, inserted);
    let due_at = stands.next_slot.map(|slot| job.due_at(slot));
    if due_at.is_some_and(|due_at| due_at <= horizon) {
        wheel.insert_job(Arc::new(job.at_standing(stands)));
    }
}

/// A run that was just inserted, claimed by us.
fn claimed_run(context: &Context, job: &Arc<Job>, slot: Slot) -> Work {
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
