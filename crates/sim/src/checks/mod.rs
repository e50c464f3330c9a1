//! What must hold, whatever happened. Each check has a name; a broken one says what it saw.

mod deliveries;
mod edits;
mod excuses;
mod origins;
mod outside;
mod promises;
mod slots;
mod tables;
mod takeover;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use model::hash::hash;
use model::{AttemptNo, Job, JobId, Outcome, Run, RunId, Timestamp};

use crate::handed::Held;
use crate::story::Delivery;
use crate::world::World;

pub(crate) use origins::may_wait_until;
pub(crate) use tables::jobs_follow_their_zones;
pub(crate) use takeover::nothing_is_overdue;

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

/// The end of a story, as the checks look at it.
pub(crate) struct End<'a> {
    pub world: &'a World,
    pub runs: Vec<Run>,
    pub jobs: BTreeMap<JobId, Arc<Job>>,
    pub deliveries: Vec<Delivery>,
    /// What the outside has or had.
    pub handed: BTreeMap<(RunId, AttemptNo), Held>,
    /// Up to when what it still has is trusted.
    pub trusted: BTreeMap<RunId, Timestamp>,
    pub broken: Vec<Broken>,
}

impl End<'_> {
    pub(crate) fn broken(&mut self, check: &'static str, seen: String) {
        self.broken.push(Broken::new(check, seen));
    }

    /// The places of each job's runs.
    fn runs_by_job(&self) -> BTreeMap<JobId, Vec<Run>> {
        let mut by_job: BTreeMap<JobId, Vec<Run>> = BTreeMap::new();
        for run in &self.runs {
            by_job.entry(run.job).or_default().push(run.clone());
        }
        by_job
    }
}

pub(crate) fn all(world: &World) -> Vec<Broken> {
    let jobs = world.mem.all_jobs();
    let mut end = End {
        world,
        runs: world.mem.all_runs(),
        jobs: jobs.into_iter().map(|job| (job.id, job)).collect(),
        deliveries: world.story.deliveries(),
        handed: world.ledger.book().handed.held.clone(),
        trusted: world.mem.trusted(),
        broken: Vec::new(),
    };
    let by_job = end.runs_by_job();
    end.accepted_jobs_are_kept();
    end.accepted_changes_are_made();
    end.accepted_runs_are_kept();
    end.skips_have_an_excuse();
    end.overlap_has_a_run_that_counts();
    for (job, edited) in &world.accepted {
        let runs = by_job.get(&job.id).map(Vec::as_slice).unwrap_or_default();
        end.every_slot_decided_once(job, *edited, runs);
        end.bounds_hold(job.id, runs);
        end.exclusive_runs_do_not_overlap(job, *edited, runs);
        end.waiting_runs_are_few(job, *edited, runs);
        end.edits_lose_no_slot(job.id, runs);
        end.slots_are_of_their_schedules(job.id, runs);
    }
    end.one_delivery_per_attempt();
    end.at_most_once();
    end.payloads_arrive_whole();
    end.never_early();
    end.attempts_rise_by_one();
    end.every_run_ends_or_waits();
    end.what_succeeded_was_delivered();
    end.limits_hold();
    end.takeover_within_bound();
    end.hand_over_leaves_no_gap();
    end.the_living_keep_their_presence();
    end.accepted_reports_are_kept();
    end.who_beats_is_not_lost();
    end.silence_is_waited_for();
    end.the_silent_end_within_bound();
    end.nothing_waits_for_a_living_origin();
    end.a_dead_origin_is_let_be();
    end.broken
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

/// One number for the whole story.
pub fn digest(deliveries: &[Delivery], runs: &[Run]) -> u64 {
    let mut digest = 0;
    let words_of = |id: RunId| id.0.as_u64_pair();
    for delivery in deliveries {
        let (high, low) = words_of(delivery.run);
        let words = [
            high,
            low,
            u64::from(delivery.attempt.0),
            delivery.from.as_micros() as u64,
        ];
        digest = hash(digest, &words);
    }
    for run in runs {
        let (high, low) = words_of(run.id);
        let settled = run.settled_at.map_or(0, |at| at.as_u64());
        digest = hash(digest, &[high, low, run.state as u64, settled]);
    }
    digest
}
