//! What must hold, whatever happened. Each check has a name; a broken one says what it saw.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use model::hash::hash;
use model::limits;
use model::{
    AttemptNo, Job, JobId, JobState, Outcome, Run, RunId, RunKind, RunState, Schedule, Slot,
};

use crate::story::Delivery;
use crate::world::{RUNNING_MAX, World};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub check: &'static str,
    pub seen: String,
}

impl Broken {
    pub fn new(check: &'static str, seen: String) -> Self {
        Self { check, seen }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check, self.seen)
    }
}

pub(crate) fn all(world: &World) -> Vec<Broken> {
    let runs = world.mem.all_runs();
    let jobs = world.mem.all_jobs();
    let deliveries = world.story.deliveries();
    let mut broken = Vec::new();
    accepted_jobs_are_kept(world, &jobs, &mut broken);
    for (job, edited) in &world.accepted {
        let now = jobs.iter().find(|now| now.id == job.id);
        let of_job: Vec<&Run> = runs.iter().filter(|run| run.job == job.id).collect();
        every_slot_decided_once(job, now.map(|job| &**job), *edited, &of_job, &mut broken);
    }
    for job in &jobs {
        bounds_hold(job, &runs, &mut broken);
    }
    one_delivery_per_attempt(&deliveries, &mut broken);
    never_early(world, &deliveries, &mut broken);
    attempts_rise_by_one(&runs, &deliveries, &mut broken);
    every_run_ends_or_waits(world, &runs, &mut broken);
    what_succeeded_was_delivered(&runs, &deliveries, &mut broken);
    exclusive_runs_do_not_overlap(world, &runs, &deliveries, &mut broken);
    limits_hold(&deliveries, &mut broken);
    broken
}

fn accepted_jobs_are_kept(world: &World, jobs: &[std::sync::Arc<Job>], broken: &mut Vec<Broken>) {
    let kept: BTreeSet<JobId> = jobs.iter().map(|job| job.id).collect();
    for (job, _) in &world.accepted {
        // A deleted job goes when its runs have ended; nothing else takes one away in so short a time.
        let deleted = !kept.contains(&job.id);
        if deleted
            && world
                .mem
                .all_runs()
                .iter()
                .any(|run| run.job == job.id && run.state.is_live())
        {
            broken.push(Broken::new(
                "accepted_jobs_are_kept",
                format!("{} is gone", job.id),
            ));
        }
    }
}

/// The slots a run or an entry stands for, of an unedited schedule.
fn slots_of(run: &Run, schedule: &Schedule) -> Vec<Slot> {
    let Some(stretch) = run.stretch else {
        return run.slot.into_iter().collect();
    };
    let mut slots = vec![stretch.first];
    let mut last = stretch.first;
    while last < stretch.last && (slots.len() as u64) < stretch.count + 1 {
        let Some(next) = schedule.next_after(last.0) else {
            break;
        };
        slots.push(next);
        last = next;
    }
    slots
}

fn every_slot_decided_once(
    accepted: &Job,
    now: Option<&Job>,
    edited: bool,
    runs: &[&Run],
    broken: &mut Vec<Broken>,
) {
    let check = "every_slot_decided_once";
    let mut decided: BTreeMap<Slot, RunId> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.kind == RunKind::Slot) {
        let slots = if edited {
            run.slot.into_iter().collect()
        } else {
            slots_of(run, &accepted.def.schedule)
        };
        if !edited
            && let Some(stretch) = run.stretch
            && slots.len() as u64 != stretch.count
        {
            broken.push(Broken::new(
                check,
                format!("{} counts {} slots, not {stretch:?}", run.id, slots.len()),
            ));
        }
        for slot in slots {
            if let Some(other) = decided.insert(slot, run.id) {
                broken.push(Broken::new(
                    check,
                    format!("{slot} of {} by {other} and {}", run.job, run.id),
                ));
            }
        }
    }
    // Slots that only the end of a run sets cannot be told beforehand.
    let told = !edited && !accepted.def.schedule.after_completion();
    let Some(now) = now.filter(|_| told) else {
        return;
    };
    // Everything up to the last decided slot has an answer.
    let Some(last) = now.slot_last else { return };
    let paused = now.state == JobState::Paused || now.state == JobState::Deleted;
    let mut slot = match accepted.def.schedule.is_recurring() {
        true => accepted.def.schedule.next_after(accepted.created_at),
        false => accepted.next_slot,
    };
    while let Some(at) = slot.filter(|slot| slot.0 <= last) {
        let explained = decided.contains_key(&at) || (paused && at.0 >= now.state_at);
        if !explained {
            broken.push(Broken::new(
                check,
                format!("{at} of {} has no answer (last {last})", now.id),
            ));
            return;
        }
        slot = accepted.def.schedule.next_after(at.0);
    }
}

/// As many runs of slots as the bounds allow, the first no sooner and the last no later than they say;
/// and nobody rests without a run that will end.
fn bounds_hold(job: &Job, runs: &[Run], broken: &mut Vec<Broken>) {
    let of_job = runs.iter().filter(|run| run.job == job.id);
    let of_slots: Vec<&Run> = of_job.filter(|run| run.kind == RunKind::Slot).collect();
    if job.is_resting() && !of_slots.iter().any(|run| run.state.is_live()) {
        let seen = format!("{} rests, and no run of it lives", job.id);
        broken.push(Broken::new("who_rests_is_woken", seen));
    }
    if job.version > model::Version::FIRST {
        return;
    }
    let bounds = &job.def.schedule.bounds;
    let born = of_slots.iter().filter(|run| run.state != RunState::Skipped);
    let count = born.count() as u32;
    if let Some((max, left)) = bounds.runs_max.zip(job.runs_left())
        && count + left != max
    {
        let seen = format!("{} made {count} runs and has {left} left of {max}", job.id);
        broken.push(Broken::new("bounds_hold", seen));
    }
    let outside = |run: &&&Run| {
        let slot = run.slot.map(|slot| slot.0);
        slot < bounds.starts_at.filter(|_| slot.is_some())
            || bounds.ends_at.is_some_and(|end| slot > Some(end))
    };
    if let Some(run) = of_slots.iter().find(outside) {
        broken.push(Broken::new("bounds_hold", format!("{} is outside", run.id)));
    }
}

fn one_delivery_per_attempt(deliveries: &[Delivery], broken: &mut Vec<Broken>) {
    let mut seen: BTreeMap<(RunId, AttemptNo), u32> = BTreeMap::new();
    for delivery in deliveries {
        if let Some(node) = seen.insert((delivery.run, delivery.attempt), delivery.node) {
            let seen = format!(
                "attempt {} of {} by start {node} and by start {}",
                delivery.attempt, delivery.run, delivery.node
            );
            broken.push(Broken::new("one_delivery_per_attempt", seen));
        }
    }
}

fn never_early(world: &World, deliveries: &[Delivery], broken: &mut Vec<Broken>) {
    for delivery in deliveries {
        // A retry made due by a clock that went back is the one exception the rules know.
        let retry = !world.steps.is_empty() && delivery.attempt > AttemptNo::FIRST;
        // Nodes learn of a step of the store's clock with their next beat, and do nothing without one.
        let unaware = world.is_fleet()
            && world
                .steps
                .iter()
                .any(|step| (*step..*step + limits::PRESENCE_TTL).contains(&delivery.from));
        let excused = retry || unaware;
        let job = world
            .accepted
            .iter()
            .find(|(job, edited)| job.id == delivery.job && !edited);
        // The spread of an edited job may have changed since; its slot has not.
        let due_at = match (delivery.slot, job) {
            (Some(slot), Some((job, _))) => job.due_at(slot),
            (Some(slot), None) => slot.0,
            (None, _) => delivery.run.at(),
        };
        if delivery.at < due_at && !excused {
            let seen = format!("{} due {due_at} at {}", delivery.run, delivery.at);
            broken.push(Broken::new("never_early", seen));
        }
    }
}

fn attempts_rise_by_one(runs: &[Run], deliveries: &[Delivery], broken: &mut Vec<Broken>) {
    for run in runs {
        let numbers: Vec<u32> = run.attempts.iter().map(|attempt| attempt.no.0).collect();
        if numbers
            .iter()
            .zip(1..)
            .any(|(number, expected)| *number != expected)
        {
            broken.push(Broken::new(
                "attempts_rise_by_one",
                format!("{}: {numbers:?}", run.id),
            ));
        }
    }
    let mut last: BTreeMap<RunId, AttemptNo> = BTreeMap::new();
    for delivery in deliveries {
        let before = last.insert(delivery.run, delivery.attempt);
        if before.is_some_and(|before| before > delivery.attempt) {
            let seen = format!("{} {before:?} then {:?}", delivery.run, delivery.attempt);
            broken.push(Broken::new("attempts_rise_by_one", seen));
        }
    }
}

/// Nothing lives on without a reason: only what is not due yet, by a clock that may have gone back.
fn every_run_ends_or_waits(world: &World, runs: &[Run], broken: &mut Vec<Broken>) {
    let now = world.ended_at.minus(limits::BEAT_EVERY);
    let is_ahead = |run: &Run| run.state.is_live() && !run.waiting && run.due_at > now;
    let due = |run: &&Run| {
        let excused = match run.waiting {
            // It waits for one that is not due yet.
            true => runs
                .iter()
                .any(|other| other.job == run.job && is_ahead(other)),
            false => is_ahead(run),
        };
        run.state.is_live() && !excused
    };
    for run in runs.iter().filter(due) {
        broken.push(Broken::new("every_run_ends_or_waits", format!("{run:?}")));
    }
}

fn what_succeeded_was_delivered(runs: &[Run], deliveries: &[Delivery], broken: &mut Vec<Broken>) {
    let done: BTreeSet<(RunId, AttemptNo)> = deliveries
        .iter()
        .filter(|delivery| delivery.done)
        .map(|d| (d.run, d.attempt))
        .collect();
    let known: BTreeSet<RunId> = runs.iter().map(|run| run.id).collect();
    for run in runs.iter().filter(|run| run.state == RunState::Succeeded) {
        if !done.contains(&(run.id, run.attempt)) {
            broken.push(Broken::new(
                "what_succeeded_was_delivered",
                run.id.to_string(),
            ));
        }
    }
    for delivery in deliveries
        .iter()
        .filter(|delivery| !known.contains(&delivery.run))
    {
        let seen = format!("{} was delivered and is in no history", delivery.run);
        broken.push(Broken::new("what_succeeded_was_delivered", seen));
    }
}

/// Two runs of a job that wants one at a time are never under way together, as long as nobody
/// forced one or changed the policy.
fn exclusive_runs_do_not_overlap(
    world: &World,
    runs: &[Run],
    deliveries: &[Delivery],
    broken: &mut Vec<Broken>,
) {
    let slots: BTreeSet<RunId> = runs
        .iter()
        .filter(|run| run.kind == RunKind::Slot)
        .map(|run| run.id)
        .collect();
    for (job, edited) in &world.accepted {
        if *edited || job.def.overlap == model::Overlap::Allow {
            continue;
        }
        let mut spans: Vec<&Delivery> = deliveries
            .iter()
            .filter(|delivery| delivery.job == job.id && slots.contains(&delivery.run))
            .collect();
        spans.sort_by_key(|delivery| delivery.from);
        for pair in spans.windows(2) {
            let [first, second] = pair else { continue };
            let overlap = first.to.is_none_or(|to| to > second.from);
            if first.run != second.run && overlap && !was_lost(runs, first) {
                let seen = format!("{} and {}", first.run, second.run);
                broken.push(Broken::new("exclusive_runs_do_not_overlap", seen));
            }
        }
    }
}

/// Whether the node that made a delivery stood still for so long that others took over: what it had
/// under way goes on all the same.
fn was_lost(runs: &[Run], delivery: &Delivery) -> bool {
    let run = runs.iter().find(|run| run.id == delivery.run);
    let attempts = run.map(|run| run.attempts.as_slice()).unwrap_or_default();
    attempts
        .iter()
        .any(|attempt| attempt.no == delivery.attempt && attempt.outcome == Outcome::Lost)
}

fn limits_hold(deliveries: &[Delivery], broken: &mut Vec<Broken>) {
    let mut edges = Vec::new();
    for delivery in deliveries {
        edges.push((delivery.from, 1_i64, delivery.node));
        edges.extend(delivery.to.map(|to| (to, -1, delivery.node)));
    }
    edges.sort_unstable();
    let mut under_way: BTreeMap<u32, i64> = BTreeMap::new();
    for (at, change, node) in edges {
        let count = under_way.entry(node).or_default();
        *count += change;
        if *count > RUNNING_MAX as i64 {
            broken.push(Broken::new("limits_hold", format!("{count} at {at:?}")));
            return;
        }
    }
}

/// One number for the whole story.
pub fn digest(deliveries: &[Delivery], runs: &[Run]) -> u64 {
    let mut digest = 0;
    for delivery in deliveries {
        let (high, low) = delivery.run.0.as_u64_pair();
        let words = [
            high,
            low,
            u64::from(delivery.attempt.0),
            delivery.from.as_micros() as u64,
        ];
        digest = hash(digest, &words);
    }
    for run in runs {
        let (high, low) = run.id.0.as_u64_pair();
        let settled = run.settled_at.map_or(0, |at| at.as_u64());
        digest = hash(digest, &[high, low, run.state as u64, settled]);
    }
    digest
}
