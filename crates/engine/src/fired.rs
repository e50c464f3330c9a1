//! What became of firings and claims: runs that are ours go to dispatch, jobs move on to their next slots.

use std::sync::Arc;

use model::job::Decision;
use model::rollup::Count;
use model::{Job, JobId, Reason, Run, RunId, RunState, Slot, Stretch, TenantId, Timestamp, limits};
use store::{Claimed, DueRun, Fired, Firing, Hint, Settlement};

use crate::board::{Decided, Then, Work};
use crate::fire::Ports;
use crate::trouble::{What, is_trouble};

/// Takes the runs that were made, puts in the next slots. Answers what can never be fired.
pub(crate) fn fired(
    ports: &Ports,
    firings: Vec<Firing>,
    answers: Vec<Fired>,
    now: Timestamp,
) -> Vec<(JobId, String)> {
    let horizon = now.plus(limits::HORIZON);
    let mut decided = Vec::with_capacity(firings.len());
    let (mut refused, mut stale) = (Vec::new(), Vec::new());
    let mut lease_lost = false;
    let mut tally = Tally::default();
    for (firing, answer) in firings.into_iter().zip(answers) {
        let Firing { job, decision, .. } = firing;
        tally.count(&job, &answer);
        tally.note_skips(&job, &decision, &answer);
        let (then, inserted) = match answer {
            Fired::Claimed(_) => (then_claimed(ports, &job, &decision, now), Some(true)),
            Fired::Ready(run) => (left_ready(ports, run, &job, &decision), Some(true)),
            Fired::Waiting(_) => (Then::Decided, Some(true)),
            Fired::Skipped(_) | Fired::Decided => (Then::Decided, Some(false)),
            Fired::Early(at) => (Then::Early(at), None),
            Fired::Stale => {
                stale.push((job.tenant, job.id));
                (Then::Gone, None)
            }
            Fired::LeaseLost => {
                lease_lost = true;
                (Then::Gone, None)
            }
            Fired::Refused(why) => {
                refused.push((job.id, why));
                (Then::Gone, None)
            }
        };
        if inserted != Some(true) {
            ports.take_out(&job, &decision);
        }
        decided.push(Decided {
            run: decision.start.map(|slot| RunId::for_slot(job.id, slot)),
            next: inserted.and_then(|inserted| onward(&job, &decision, inserted, horizon)),
            then,
            job,
        });
    }
    let has_room = ports.board.fired(decided, now);
    tally.publish(ports);
    ports.dispatch.now();
    if has_room {
        ports.offers.nudge_plan();
    }
    if lease_lost {
        ports.shards.doubt.make();
    }
    for offer in stale {
        // Plan may have passed it over while this was under way.
        ports.offers.offer_here(offer);
    }
    refused
}

/// A run that was just inserted, claimed by us.
fn then_claimed(ports: &Ports, job: &Arc<Job>, decision: &Decision, now: Timestamp) -> Then {
    let Some(slot) = decision.start else {
        return Then::Decided;
    };
    let run = Run {
        claim: Some(ports.presence.id),
        ..Run::of_slot(job, slot)
    };
    Then::Claimed(Work::new(run, Arc::clone(job), now))
}

/// A run that was not claimed is, as soon as there is room for it; unless it is for others.
fn left_ready(ports: &Ports, run: RunId, job: &Job, decision: &Decision) -> Then {
    let Some(slot) = decision.start.filter(|_| ports.executes) else {
        return Then::Decided;
    };
    if !ports.executors.can_execute(job) {
        ports.executors.leave(job, run);
        return Then::Decided;
    }
    Then::Ready(DueRun {
        run,
        tenant: job.tenant,
        job: job.id,
        due_at: job.due_at(slot),
        state: RunState::Ready,
    })
}

/// The job at the slot that a decision leads to, if it is due soon.
fn onward(job: &Job, decision: &Decision, inserted: bool, horizon: Timestamp) -> Option<Arc<Job>> {
    let stands = job.standing_after(decision, inserted);
    let due_at = stands.next_slot.map(|slot| job.due_at(slot));
    let is_soon = due_at.is_some_and(|due_at| due_at <= horizon);
    is_soon.then(|| Arc::new(job.at_standing(stands)))
}

/// Takes the runs that were claimed. Answers those that are beyond this node, to be handed back.
pub(crate) fn claimed(
    ports: &Ports,
    runs: &[(Timestamp, DueRun)],
    answers: Vec<Claimed>,
    now: Timestamp,
) -> Vec<Settlement> {
    let mut works = Vec::with_capacity(answers.len());
    for answer in answers {
        match answer {
            Claimed::Ours(run, job) => works.push(Work::new(*run, job, now)),
            Claimed::Stale => {
                ports.metrics.collided.inc();
            }
            Claimed::LeaseLost => {
                ports.metrics.collided.inc();
                ports.shards.doubt.make();
            }
        }
    }
    let (works, beyond) = ports.executors.sort(works);
    let back = ports.board.claimed(runs, works, beyond, now);
    ports.dispatch.now();
    back
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
    /// The same, and what was skipped, by tenant.
    counts: Vec<(TenantId, Count)>,
    /// Slots that will not run: the first of each stretch, and how many.
    skips: Vec<(Arc<Job>, Slot, Reason, u64)>,
}

impl Tally {
    fn count(&mut self, job: &Job, answer: &Fired) {
        match answer {
            Fired::Claimed(_) | Fired::Waiting(_) => self.fire(job.tenant),
            Fired::Ready(_) => {
                self.fire(job.tenant);
                self.left += 1;
            }
            Fired::Skipped(_) => self.skipped += 1,
            Fired::Stale | Fired::LeaseLost => self.collided += 1,
            Fired::Decided | Fired::Early(_) | Fired::Refused(_) => {}
        }
    }

    fn fire(&mut self, tenant: TenantId) {
        self.fired += 1;
        match self.counts.last_mut() {
            // Most of a batch are often one tenant's.
            Some((last, Count::Fired(slots))) if *last == tenant => *slots += 1,
            Some(_) | None => self.counts.push((tenant, Count::Fired(1))),
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

    fn publish(&self, ports: &Ports) {
        let Ports { metrics, by, .. } = ports;
        let skips = self.skips.iter();
        let skips = skips.map(|(job, _, why, count)| (job.tenant, Count::Skipped(*why, *count)));
        let counts: Vec<_> = self.counts.iter().copied().chain(skips).collect();
        metrics.rollups.count(ports.clock.now(), &counts);
        for (job, slot, reason, count) in &self.skips {
            metrics.slots_skipped(*reason, *count);
            if is_trouble(*reason) {
                let run = RunId::for_slot(job.id, *slot);
                let why = format!("{}: {count} from {slot}", reason.as_str());
                by.trouble.log(What::Skipped, job, run, &why);
            }
        }
        metrics.fired.inc_by(self.fired);
        metrics.skipped.inc_by(self.skipped);
        metrics.collided.inc_by(self.collided);
        if self.left > 0 {
            ports.store.hint(&[Hint::Ready]);
        }
    }
}
