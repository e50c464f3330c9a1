//! The jobs that are made up: one of each kind, and what may be edited about them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::policy::CatchUpPolicy;
use model::schedule::{Calendars, Cron, CronOptions, Zone};
use model::{
    Calendar, CalendarName, Completion, Definition, FailuresMax, Job, JobId, JobKey, Lane, Overlap,
    Schedule, Skip, Slot, TenantId, Timestamp, limits,
};

use super::world::STRANGER;
use crate::conformance::{after_completion, at, every, someone, target};
use crate::{Idempotency, NewJob};

const OVERLAPS: [Overlap; 5] = [
    Overlap::Allow,
    Overlap::Skip,
    Overlap::QueueOne,
    Overlap::QueueAll { max: 2 },
    Overlap::CancelRunning,
];

/// The zone that some of them follow.
pub(super) const ZONE: &str = "Europe/Berlin";

/// Calendars of a tenant, as they stand.
pub(super) type Known = BTreeMap<CalendarName, Arc<Calendar>>;

fn overlap(number: u8) -> Overlap {
    OVERLAPS[usize::from(number) % OVERLAPS.len()]
}

/// How many kinds of schedule there are.
pub(super) const SCHEDULES: u8 = 14;

/// One of each kind. Only calendars that are there can be named.
fn schedule(number: u8, known: &Known) -> Schedule {
    let mut schedule = match number % SCHEDULES {
        0 | 4 => every(60).unwrap(),
        1 | 6 | 9 => every(1).unwrap(),
        2 | 8 | 11 => after_completion(60).unwrap(),
        3 | 5 | 12 => every(3_600).unwrap(),
        7 => cron("*/10 * * * * *"),
        10 => cron("30 9 * * *"),
        _ => after_completion(1).unwrap(),
    };
    let bounds = &mut schedule.bounds;
    match number % SCHEDULES {
        4 | 11 => bounds.runs_max = Some(2),
        9 => (bounds.starts_at, bounds.ends_at) = (Some(at(30)), Some(at(40))),
        13 => (bounds.ends_at, bounds.runs_max) = (Some(at(600)), Some(3)),
        _ => {}
    }
    let named = |names: &[&str]| {
        let known = names.iter().filter_map(|name| {
            let name = CalendarName::new(name).unwrap();
            known.get(&name).cloned()
        });
        known.collect()
    };
    let (exclude, only) = match number % SCHEDULES {
        3 => (named(&["a", "c"]), named(&[])),
        6 | 8 => (named(&["a"]), named(&[])),
        7 => (named(&["c"]), named(&["b", "a"])),
        12 => (named(&[]), named(&["b"])),
        _ => (named(&[]), named(&[])),
    };
    schedule.calendars = Calendars { exclude, only };
    schedule
}

fn cron(text: &str) -> Schedule {
    let options = CronOptions {
        zone: Some(Zone::get(ZONE).unwrap()),
        ..CronOptions::default()
    };
    Schedule::from(Cron::parse(&[text.to_owned()], options).unwrap())
}

/// Whose job it is: one belongs to someone else.
pub(super) fn owner(number: u8) -> TenantId {
    match number {
        3 => STRANGER,
        _ => TenantId::DEFAULT,
    }
}

/// Job number so-and-so. Some share a key, some an idempotency key.
pub(super) fn new_job(number: u8, known: &Known, now: Timestamp) -> NewJob {
    let mut def = Definition::new(schedule(number, known), target());
    def.overlap = overlap(number);
    def.catch_up.policy = CatchUpPolicy::ALL[usize::from(number) % 3];
    def.catch_up.max = 3;
    // Some of them are larger than what plan reads.
    def.payload = match number % 4 {
        0 => Some(Bytes::from(vec![number; limits::PAYLOAD_INLINE_MAX + 1])),
        2 => Some(Bytes::from(vec![b'"', 0, number, 0xff, b'"'])),
        _ => None,
    };
    def.labels.insert("number".to_owned(), number.to_string());
    match number % 8 {
        5 => def.schedule = Schedule::from(Slot(at(i64::from(number)))),
        6 => def.spread = Duration::from_millis(700),
        7 => def.lane = Lane::Batch,
        _ => {}
    }
    if number % 5 == 1 {
        def.completion = Completion::Callback {
            heartbeat_within: Duration::from_secs(30),
        };
    }
    if number.is_multiple_of(3) {
        def.pause_after_failures = FailuresMax::new(2);
    }
    let key = (number % 5 < 2).then(|| key(number % 5));
    let id = JobId::new(at(0), [number; 10]);
    let idempotency = (number % 7 == 2).then(|| Idempotency {
        key: "request".to_owned(),
        digest: [u8::from(number > 10); 32],
    });
    NewJob {
        job: Arc::new(Job::new(id, owner(number), key, def, now)),
        idempotency,
    }
}

pub(super) fn key(number: u8) -> JobKey {
    JobKey::new(&format!("key-{number}")).unwrap()
}

/// A job as changed, and the slots that this explains.
pub(super) type Changed = (Job, Vec<Skip>);

pub(super) fn edited(
    job: &Job,
    overlapping: u8,
    scheduled: u8,
    known: &Known,
    now: Timestamp,
) -> Changed {
    let mut def = Definition::clone(&job.def);
    def.overlap = overlap(overlapping);
    def.schedule = schedule(scheduled, known);
    def.payload = Some(Bytes::from_static(b"\0"));
    def.labels.clear();
    job.edited(job.key.clone(), def, now, &someone())
}

pub(super) fn renamed(job: &Job, number: u8, now: Timestamp) -> Changed {
    let renamed = (number > 0).then(|| key(number));
    job.edited(renamed, Definition::clone(&job.def), now, &someone())
}
