//! Jobs of every kind, drawn from the seed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::policy::CatchUp;
use model::schedule::{Cron, CronOptions, DstGap, DstOverlap, Every, Kind, Period, Weekly, Zone};
use model::{
    Backoff, Calendar, CalendarName, CatchUpPolicy, Completion, Definition, Delivery, Job, JobId,
    Lane, Overlap, RetryPolicy, Schedule, Slot, Target, TenantId, Timestamp, limits,
};
use rand::RngExt;
use rand::rngs::StdRng;

use crate::origins::ADDRESSES;

/// A job; when there is time, its periods reach from a second to many minutes.
pub fn job(rng: &mut StdRng, now: Timestamp, calendars: &[Arc<Calendar>], long: bool) -> Job {
    let id = JobId::new(now, rng.random());
    let def = definition(rng, now, calendars, long);
    Job::new(id, TenantId::DEFAULT, None, def, now)
}

/// Every address is answered by the executor that a node is given.
#[expect(clippy::expect_used, reason = "literals")]
fn target(rng: &mut StdRng) -> Target {
    let address = ADDRESSES[rng.random_range(0..ADDRESSES.len())];
    Target::http(address).expect("an address")
}

/// A calendar that holds some of the minutes to come.
pub fn calendar(rng: &mut StdRng, name: &str, now: Timestamp) -> Option<Calendar> {
    let mut calendar = Calendar::new(CalendarName::new(name).ok()?, now);
    let minute = now.as_millis() / 60_000 % (24 * 60);
    for ahead in 0..5 {
        if rng.random_bool(0.5) {
            let clock = |minute: i64| format!("{:02}:{:02}", minute / 60 % 24, minute % 60);
            let (from, to) = (clock(minute + ahead), clock(minute + ahead + 1));
            let weekly = Weekly::parse(&format!("MON-SUN {from}-{to}")).ok()?;
            calendar.weekly.push(weekly);
        }
    }
    Some(calendar)
}

/// Bounds, calendars, and intervals that start again at the end of each run.
fn narrow(
    rng: &mut StdRng,
    schedule: &mut Schedule,
    now: Timestamp,
    calendars: &[Arc<Calendar>],
    scale: u64,
) {
    let mut ahead = |from: u64, to: u64| {
        let millis = rng.random_range(from..to * scale);
        now.plus(Duration::from_millis(millis))
    };
    let (starts_at, ends_at) = (ahead(0, 30_000), ahead(20_000, 90_000));
    if rng.random_bool(0.1) {
        schedule.bounds.starts_at = Some(starts_at);
    }
    if rng.random_bool(0.1) {
        schedule.bounds.ends_at = Some(ends_at);
    }
    if rng.random_bool(0.15) {
        schedule.bounds.runs_max = Some(rng.random_range(1..8));
    }
    if let Kind::Every(every) = &mut schedule.kind
        && rng.random_bool(0.3)
    {
        every.after_completion = true;
    }
    for calendar in calendars {
        if rng.random_bool(0.15) {
            schedule.calendars.exclude.push(Arc::clone(calendar));
        } else if rng.random_bool(0.1) {
            schedule.calendars.only.push(Arc::clone(calendar));
        }
    }
}

/// Bytes of every size, nothing and the most among them; most are small.
pub fn payload(rng: &mut StdRng) -> Bytes {
    let size = match rng.random_range(0..20) {
        0..4 => 0,
        4 => limits::PAYLOAD_MAX,
        5 => rng.random_range(0..limits::PAYLOAD_MAX),
        _ => rng.random_range(1..200),
    };
    Bytes::from(vec![rng.random::<u8>(); size])
}

pub fn definition(
    rng: &mut StdRng,
    now: Timestamp,
    calendars: &[Arc<Calendar>],
    long: bool,
) -> Definition {
    // Most jobs of a long story are seldom due.
    let scale = if long && rng.random_bool(0.7) {
        rng.random_range(2..100)
    } else {
        1
    };
    let mut schedule = schedule(rng, now, scale);
    if schedule.is_recurring() {
        narrow(rng, &mut schedule, now, calendars, scale);
    }
    let mut def = Definition::new(schedule, target(rng));
    def.retry = RetryPolicy {
        attempts_max: rng.random_range(1..5),
        backoff: Backoff::ALL[rng.random_range(0..3)],
        delay_first: Duration::from_millis(rng.random_range(100..2_000)),
        delay_max: Duration::from_secs(5),
        jitter: 300,
    };
    def.timeout = Duration::from_millis(rng.random_range(300..3_000));
    def.lane = Lane::ALL[rng.random_range(0..3)];
    let overlaps = [
        Overlap::Skip,
        Overlap::QueueOne,
        Overlap::QueueAll { max: 3 },
        Overlap::CancelRunning,
        Overlap::Allow,
    ];
    def.overlap = overlaps[rng.random_range(0..overlaps.len())];
    def.catch_up = CatchUp {
        policy: CatchUpPolicy::ALL[rng.random_range(0..3)],
        window: Duration::from_secs(rng.random_range(0..60)),
        max: rng.random_range(1..20),
    };
    if rng.random_bool(0.2) {
        def.spread = Duration::from_millis(rng.random_range(1..900));
    }
    if rng.random_bool(0.4) {
        def.payload = Some(payload(rng));
    }
    if rng.random_bool(0.2) {
        def.delivery = Delivery::AtMostOnce;
    }
    if rng.random_bool(0.25) {
        hand_over(rng, &mut def);
    }
    def
}

/// The same, but for what becomes of attempts that are lost.
pub fn with_other_delivery(def: &Definition) -> Definition {
    let delivery = match def.delivery {
        Delivery::AtLeastOnce => Delivery::AtMostOnce,
        Delivery::AtMostOnce => Delivery::AtLeastOnce,
    };
    Definition {
        delivery,
        ..def.clone()
    }
}

/// Its targets may report later.
fn hand_over(rng: &mut StdRng, def: &mut Definition) {
    let within = Duration::from_millis(rng.random_range(1_000..8_000));
    def.completion = Completion::Callback {
        heartbeat_within: within,
    };
    def.timeout = within + Duration::from_millis(rng.random_range(1_000..40_000));
}

/// UTC more often than not; the others change their clocks within the stories.
fn zone(rng: &mut StdRng) -> Zone {
    let names = [
        "Europe/Berlin",
        "Europe/London",
        "America/New_York",
        "Australia/Lord_Howe",
        "Asia/Kolkata",
    ];
    let other = rng.random_bool(0.4);
    let name = names[rng.random_range(0..names.len())];
    let zone = Zone::get(name).ok().filter(|_| other);
    zone.unwrap_or_else(Zone::utc)
}

fn cron(rng: &mut StdRng, scale: u64) -> Option<Cron> {
    let texts = match scale {
        1 => [
            "* * * * * *",
            "*/3 * * * * *",
            "7,8,30 * * * * *",
            "*/5 * 0-4,20-23 * * *",
        ],
        _ => [
            "*/20 * * * * *",
            "0 * * * * *",
            "*/7 * * * *",
            "0,30 0-59/2 1,2,3,23 * * *",
        ],
    };
    let text = texts[rng.random_range(0..texts.len())].to_owned();
    let options = CronOptions {
        zone: Some(zone(rng)),
        dst_gap: [DstGap::RunAfter, DstGap::Skip][rng.random_range(0..2)],
        dst_overlap: [DstOverlap::First, DstOverlap::Both][rng.random_range(0..2)],
        ..CronOptions::default()
    };
    Cron::parse(&[text], options).ok()
}

fn schedule(rng: &mut StdRng, now: Timestamp, scale: u64) -> Schedule {
    match rng.random_range(0..10) {
        0..3 => {
            let ahead = rng.random_range(0..40_000 * scale);
            Schedule::from(Slot(now.plus(Duration::from_millis(ahead))))
        }
        3..7 => {
            let millis = rng.random_range(1_000..8_000) * scale;
            Schedule::from(Every {
                period: Period::Elapsed(Duration::from_millis(millis)),
                anchor: now,
                zone: zone(rng),
                after_completion: false,
            })
        }
        _ => cron(rng, scale).map_or(Schedule::from(Slot(now)), Schedule::from),
    }
}
