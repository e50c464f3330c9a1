//! The jobs of a round, and what may be changed about them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::{Definition, FailuresMax, Job, JobId, Overlap, Schedule, Timestamp};

use super::chance::Chance;
use super::replay::TENANT;
use crate::conformance::{after_completion, every, someone, target};
use crate::{JobChange, RunsOfChange};

const OVERLAPS: [Overlap; 5] = [
    Overlap::Allow,
    Overlap::Skip,
    Overlap::QueueOne,
    Overlap::QueueAll { max: 2 },
    Overlap::CancelRunning,
];

fn overlap(chance: &mut Chance) -> Overlap {
    chance.pick(&OVERLAPS).unwrap_or(Overlap::Allow)
}

fn schedule(chance: &mut Chance) -> Schedule {
    let made = match chance.below(5) {
        0 => after_completion(60),
        1 => every(30),
        _ => every(60),
    };
    let mut schedule = made.unwrap();
    if chance.percent(20) {
        schedule.bounds.runs_max = Some(2);
    }
    schedule
}

pub(super) fn new_job(chance: &mut Chance, now: Timestamp) -> Job {
    let mut name = [0; 10];
    for (to, from) in name.iter_mut().zip(chance.next().to_be_bytes()) {
        *to = from;
    }
    let mut def = Definition::new(schedule(chance), target());
    def.overlap = overlap(chance);
    if chance.percent(30) {
        def.pause_after_failures = FailuresMax::new(2);
    }
    Job::new(JobId::new(now, name), TENANT, None, def, now)
}

/// Some change of a job, at `now` or a moment before the slot that was decided last.
pub(super) fn change(chance: &mut Chance, before: &Arc<Job>, now: Timestamp) -> JobChange {
    let last = before.slot_last.filter(|_| chance.percent(60));
    let now = last.map_or(now, |last| last.minus(Duration::from_secs(1)));
    let by = someone();
    let ((after, skipped), runs) = match chance.below(16) {
        0..=4 => (before.paused(now, None, &by), RunsOfChange::TakeBack),
        5..=8 => {
            let resumed = before.resumed(now, chance.percent(50), &by);
            (resumed, RunsOfChange::Keep)
        }
        9..=14 => {
            let mut def = Definition::clone(&before.def);
            def.overlap = overlap(chance);
            def.payload = Some(Bytes::from_static(b"other"));
            if chance.percent(30) {
                def.schedule = schedule(chance);
            }
            (before.edited(None, def, now, &by), RunsOfChange::TakeBack)
        }
        _ => (before.deleted(now, &by), RunsOfChange::Cancel),
    };
    JobChange {
        before: before.clone(),
        after: Arc::new(after),
        skipped,
        runs,
    }
}
