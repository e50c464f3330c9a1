//! Jobs of every kind, drawn from the seed.

use std::time::Duration;

use model::policy::CatchUp;
use model::schedule::{Cron, CronOptions, Every, Period, Zone};
use model::{
    Backoff, CatchUpPolicy, Definition, Delivery, Job, JobId, Lane, Overlap, RetryPolicy, Schedule,
    Slot, Target, TenantId, Timestamp,
};
use rand::RngExt;
use rand::rngs::StdRng;

pub fn job(rng: &mut StdRng, now: Timestamp) -> Job {
    let id = JobId::new(now, rng.random());
    Job::new(id, TenantId::DEFAULT, None, definition(rng, now), now)
}

pub fn definition(rng: &mut StdRng, now: Timestamp) -> Definition {
    let mut def = Definition::new(schedule(rng, now), Target::Fake(String::new()));
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
    if rng.random_bool(0.2) {
        def.delivery = Delivery::AtMostOnce;
    }
    def
}

fn schedule(rng: &mut StdRng, now: Timestamp) -> Schedule {
    match rng.random_range(0..10) {
        0..3 => {
            let ahead = rng.random_range(0..40_000);
            Schedule::Once(Slot(now.plus(Duration::from_millis(ahead))))
        }
        3..7 => {
            let period = Period::Elapsed(Duration::from_millis(rng.random_range(1_000..8_000)));
            Schedule::Every(Every {
                period,
                anchor: now,
                zone: Zone::utc(),
            })
        }
        _ => {
            let texts = ["* * * * * *", "*/3 * * * * *", "7,8,30 * * * * *"];
            let text = texts[rng.random_range(0..texts.len())].to_owned();
            match Cron::parse(&[text], CronOptions::default()) {
                Ok(cron) => Schedule::Cron(cron),
                Err(_) => Schedule::Once(Slot(now)),
            }
        }
    }
}
