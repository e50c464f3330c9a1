use model::job::Definition;
use model::schedule::CronOptions;
use model::{JobId, Schedule, Target, TenantId};

use super::*;

const BASE: i64 = 1_772_582_400_000;

/// Seconds after a midnight.
fn at(secs: i64) -> Timestamp {
    Timestamp::from_millis(BASE + secs * 1_000)
}

fn job(number: u16, text: &str, change: impl FnOnce(&mut Definition)) -> Arc<Job> {
    let schedule = Schedule::parse_text(text, CronOptions::default(), at(0)).unwrap();
    let mut def = Definition::new(schedule, Target::http("http://localhost/").unwrap());
    change(&mut def);
    let mut chance = [7; 10];
    // Spread over all places, as chance is.
    chance[8..].copy_from_slice(&number.wrapping_mul(40_503).to_be_bytes());
    let id = JobId::new(at(-10), chance);
    Arc::new(Job::new(id, TenantId::DEFAULT, None, def, at(-1)))
}

fn read(jobs: Vec<Arc<Job>>) -> Read {
    Read {
        whole: jobs,
        whole_until: Timestamp::MAX,
        sample: None,
        until: Timestamp::MAX,
    }
}

fn count(jobs: Vec<Arc<Job>>, reach: i64) -> Seconds {
    Seconds::count(&read(jobs), at(0), at(reach))
}

fn sum(counts: &[f32]) -> f64 {
    counts.iter().copied().map(f64::from).sum()
}

#[test]
fn slots_are_counted_by_second_and_lane() {
    let jobs = vec![
        job(1, "* * * * *", |def| def.lane = Lane::Critical),
        job(2, "0 1 * * *", |_| {}),
        job(3, "0 1 * * *", |_| {}),
        job(4, "@every 10s", |def| def.lane = Lane::Batch),
    ];
    let found = count(jobs, 7_200);
    let [critical, standard, batch] = &found.lanes;
    assert_eq!(
        (sum(critical), sum(standard), sum(batch)),
        (120.0, 2.0, 720.0)
    );
    assert_eq!((standard[3_600], standard[3_599]), (2.0, 0.0));
    assert_eq!((found.exact_until, found.share), (at(7_200), 1.0));
    // Whoever is due at the first second and whoever is at the end: the first belongs to it.
    assert_eq!((critical[0], critical.len()), (1.0, 7_201));
}

#[test]
fn a_spread_moves_slots_and_such_jobs_may_not_be_spread_again() {
    let minute = Duration::from_secs(60);
    let spread = job(1, "0 1 * * *", |def| def.spread = minute);
    let offset = spread.id.offset_within(minute);
    assert!(offset > Duration::from_secs(1));
    let once = job(2, "@every 1s", |_| {});
    let found = count(vec![spread, once], 7_200);
    let place = 3_600 + offset.as_secs() as usize;
    assert_eq!(found.lanes[1][place], 2.0);
    assert_eq!(sum(&found.movable), 0.0);
}

#[test]
fn jobs_that_end_are_not_walked_beyond_their_end() {
    let few = job(1, "@every 10s", |def| {
        def.schedule.bounds.runs_max = Some(3)
    });
    let rests = job(2, "@every 10s", |def| {
        let model::schedule::Kind::Every(every) = &mut def.schedule.kind else {
            panic!("it is an interval");
        };
        every.after_completion = true;
    });
    assert_eq!(sum(&count(vec![few], 3_600).lanes[1]), 3.0);
    assert_eq!(sum(&count(vec![rests], 3_600).lanes[1]), 1.0);
}

#[test]
fn too_many_slots_are_sampled_and_the_estimate_is_near() {
    let jobs: Vec<_> = (0..1_000)
        .map(|number| job(number, "@every 1s", |_| {}))
        .collect();
    let found = count(jobs, 86_400);
    assert!(found.exact_until < at(3_600), "{}", found.exact_until);
    assert!(found.exact_until >= at(60), "{}", found.exact_until);
    assert!(found.share < 0.05, "{}", found.share);
    let exact = found.exact_until.since(at(0)).as_secs() as usize;
    assert!(
        found.lanes[1][1..exact]
            .iter()
            .all(|slots| *slots == 1_000.0)
    );
    let mean = sum(&found.lanes[1][exact..86_400]) / (86_400 - exact) as f64;
    assert!((700.0..1_300.0).contains(&mean), "{mean}");
}

#[test]
fn what_was_not_read_is_not_forecast() {
    let daily = job(1, "0 1 * * *", |_| {});
    let part = Read {
        whole_until: at(1_000),
        sample: Some((Vec::new(), 100)),
        until: at(2_000),
        ..read(vec![daily])
    };
    let found = Seconds::count(&part, at(0), at(86_400));
    assert_eq!((found.exact_until, found.until), (at(1_000), at(2_000)));
    assert_eq!(found.movable.len(), 2_001);
}
