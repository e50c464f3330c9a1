//! The jobs that are made up: one of each kind, and what may be edited about them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::policy::CatchUpPolicy;
use model::{
    Definition, Job, JobId, JobKey, Lane, Overlap, Schedule, Slot, Target, TenantId, Timestamp,
};

use super::world::STRANGER;
use crate::conformance::{at, every};
use crate::{Idempotency, NewJob};

const OVERLAPS: [Overlap; 5] = [
    Overlap::Allow,
    Overlap::Skip,
    Overlap::QueueOne,
    Overlap::QueueAll { max: 2 },
    Overlap::CancelRunning,
];

fn overlap(number: u8) -> Overlap {
    OVERLAPS[usize::from(number) % OVERLAPS.len()]
}

fn schedule(number: u8) -> Schedule {
    match number % 3 {
        0 => every(60).unwrap(),
        1 => every(1).unwrap(),
        _ => every(3_600).unwrap(),
    }
}

/// Job number so-and-so. Some share a key, some an idempotency key; one belongs to someone else.
pub(super) fn new_job(number: u8, now: Timestamp) -> NewJob {
    let mut def = Definition::new(schedule(number), Target::Fake(format!("of {number}")));
    def.overlap = overlap(number);
    def.catch_up.policy = CatchUpPolicy::ALL[usize::from(number) % 3];
    def.catch_up.max = 3;
    def.payload = number
        .is_multiple_of(2)
        .then(|| Bytes::from(vec![b'"', 0, number, 0xff, b'"']));
    def.labels.insert("number".to_owned(), number.to_string());
    match number % 8 {
        5 => def.schedule = Schedule::Once(Slot(at(i64::from(number)))),
        6 => def.spread = Duration::from_millis(700),
        7 => def.lane = Lane::Batch,
        _ => {}
    }
    let tenant = if number == 3 {
        STRANGER
    } else {
        TenantId::DEFAULT
    };
    let key = (number % 5 < 2).then(|| key(number % 5));
    let id = JobId::new(at(0), [number; 10]);
    let idempotency = (number % 7 == 2).then(|| Idempotency {
        key: "request".to_owned(),
        digest: [u8::from(number > 10); 32],
    });
    NewJob {
        job: Arc::new(Job::new(id, tenant, key, def, now)),
        idempotency,
    }
}

pub(super) fn key(number: u8) -> JobKey {
    JobKey::new(&format!("key-{number}")).unwrap()
}

pub(super) fn edited(job: &Job, overlapping: u8, scheduled: u8, now: Timestamp) -> Job {
    let mut def = Definition::clone(&job.def);
    def.overlap = overlap(overlapping);
    def.schedule = schedule(scheduled);
    def.payload = Some(Bytes::from_static(b"\0"));
    def.labels.clear();
    job.edited(job.key.clone(), def, now)
}

pub(super) fn renamed(job: &Job, number: u8, now: Timestamp) -> Job {
    let renamed = (number > 0).then(|| key(number));
    job.edited(renamed, Definition::clone(&job.def), now)
}
