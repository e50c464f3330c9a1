use model::{Definition, RunState, Schedule, Target, TenantId};

use super::*;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + millis)
}

fn job(number: u8, due: i64) -> Arc<Job> {
    let def = Definition::new(
        Schedule::from(Slot(at(due))),
        Target::http("http://localhost/").unwrap(),
    );
    let id = JobId::new(at(0), [number; 10]);
    Arc::new(Job::new(id, TenantId::DEFAULT, None, def, at(0)))
}

fn run(number: u8) -> DueRun {
    let job = JobId::new(at(0), [number; 10]);
    let id = RunId::of_request(job, at(0), 1);
    DueRun {
        run: id,
        tenant: TenantId::DEFAULT,
        job,
        due_at: at(0),
        state: RunState::Ready,
    }
}

#[test]
fn entries_come_out_in_order_and_not_before_their_time() {
    let mut wheel = Wheel::default();
    for (number, due) in [(1, 30), (2, 10), (3, 20)] {
        assert!(wheel.insert_job(job(number, due)));
    }
    assert_eq!(wheel.next_due(Age::OnTime), Some(at(10)));
    let taken: Vec<_> = wheel
        .take(Age::OnTime, at(20), 10)
        .into_iter()
        .map(|(due_at, _)| due_at)
        .collect();
    assert_eq!(taken, [at(10), at(20)]);
    assert_eq!(wheel.len(), 1);
}

#[test]
fn a_slot_is_in_once_until_its_firing_is_answered() {
    let mut wheel = Wheel::default();
    assert!(wheel.insert_job(job(1, 10)));
    assert!(!wheel.insert_job(job(1, 10)));
    let taken = wheel.take(Age::OnTime, at(10), 10);
    assert!(!wheel.insert_read_job(job(1, 10)), "in flight is known");
    wheel.answered(&taken[0].1);
    assert!(wheel.insert_job(job(1, 10)));
}

#[test]
fn what_was_answered_while_plan_read_is_not_put_back() {
    let mut wheel = Wheel::default();
    wheel.insert_job(job(1, 10));
    wheel.insert_run(run(2), at(5));
    wheel.begin_reading();
    for (_, entry) in wheel.take(Age::OnTime, at(10), 10) {
        wheel.answered(&entry);
    }
    assert!(!wheel.insert_read_job(job(1, 10)));
    assert!(!wheel.insert_read_run(run(2), at(5)));
    wheel.end_reading();
    wheel.begin_reading();
    assert!(wheel.insert_read_job(job(1, 10)));
}

#[test]
fn an_edit_replaces_the_older_entry() {
    let mut wheel = Wheel::default();
    let old = job(1, 10);
    wheel.insert_job(Arc::clone(&old));
    let edited = Arc::new(Job {
        version: Version(2),
        ..(*job(1, 20)).clone()
    });
    assert!(wheel.insert_job(edited));
    assert!(
        !wheel.insert_job(Arc::clone(&old)),
        "never back to an older version"
    );
    let taken = wheel.take(Age::OnTime, at(30), 10);
    let current: Vec<_> = taken
        .iter()
        .map(|(_, entry)| wheel.is_current(entry))
        .collect();
    assert_eq!(current, [false, true]);
}

#[test]
fn a_full_bucket_is_taken_in_parts() {
    let mut wheel = Wheel::default();
    for number in 0..10 {
        wheel.insert_job(job(number, 10));
    }
    assert_eq!(wheel.count_until(at(10)), 10);
    assert_eq!(wheel.take(Age::OnTime, at(10), 4).len(), 4);
    assert_eq!(wheel.take(Age::OnTime, at(10), 40).len(), 6);
    assert_eq!(wheel.len(), 0);
}

#[test]
fn entries_of_lost_shards_are_dropped() {
    let mut wheel = Wheel::default();
    wheel.insert_job(job(1, 10));
    wheel.insert_job(job(2, 10));
    let mine: ShardSet = [Shard::of(job(1, 10).id)].into_iter().collect();
    wheel.keep_shards(&mine);
    let left = wheel.take(Age::OnTime, at(10), 10);
    assert!(left.iter().all(|(_, entry)| entry.job() == job(1, 10).id));
}

#[test]
fn what_was_taken_out_is_known_no_more_when_fire_begins_again() {
    let mut wheel = Wheel::default();
    for (number, due) in [(1, 10), (2, 30)] {
        wheel.insert_job(job(number, due));
        wheel.insert_run(run(number), at(due));
    }
    wheel.take(Age::OnTime, at(10), 10);
    wheel.begin_write(std::iter::once(run(1).run));
    assert!(wheel.knows_run(run(1).run));
    let before = wheel.restarts();
    wheel.forget_taken();
    assert_ne!(wheel.restarts(), before);
    assert!(!wheel.knows_run(run(1).run));
    assert!(wheel.insert_job(job(1, 10)) && wheel.insert_run(run(1), at(10)));
    // The others are still in.
    assert!(!wheel.insert_job(job(2, 30)) && !wheel.insert_run(run(2), at(30)));
    assert_eq!(wheel.len(), 4);
}

/// Sets the wheel's time to so many milliseconds past the first moment.
fn aged(wheel: &mut Wheel, millis: i64) {
    wheel.age(at(millis));
}

fn job_in(number: u32, due: i64, lane: Lane) -> Arc<Job> {
    // Ids are their own hash: they have to look like chance.
    let mixed = u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut random = [0; 10];
    random[2..].copy_from_slice(&mixed.to_be_bytes());
    let mut def = Definition::new(
        Schedule::from(Slot(at(due))),
        Target::http("http://localhost/").unwrap(),
    );
    def.lane = lane;
    let id = JobId::new(at(0), random);
    Arc::new(Job::new(id, TenantId::DEFAULT, None, def, at(due)))
}

fn taken(wheel: &mut Wheel, age: Age, until: i64, max: usize) -> Vec<Timestamp> {
    let taken = wheel.take(age, at(until), max);
    taken.into_iter().map(|(due_at, _)| due_at).collect()
}

#[test]
fn an_on_time_slot_leaves_before_an_older_backlog() {
    let mut wheel = Wheel::default();
    aged(&mut wheel, 60_000);
    for number in 0..1_000 {
        wheel.insert_job(job_in(number, i64::from(number), Lane::Critical));
    }
    wheel.insert_job(job_in(1_000, 60_000, Lane::Batch));
    assert_eq!(
        taken(&mut wheel, Age::OnTime, 60_050, 10),
        [at(60_000)],
        "however low its lane"
    );
    assert_eq!(taken(&mut wheel, Age::Backlog, 60_050, 2), [at(0), at(1)]);
}

#[test]
fn what_lies_in_the_wheel_becomes_backlog_and_is_not_if_the_clock_goes_back() {
    let mut wheel = Wheel::default();
    aged(&mut wheel, 0);
    wheel.insert_job(job_in(1, 500, Lane::Standard));
    aged(&mut wheel, 1_500);
    assert_eq!(wheel.next_due(Age::OnTime), Some(at(500)));
    aged(&mut wheel, 1_501);
    assert_eq!(wheel.next_due(Age::OnTime), None);
    assert_eq!(wheel.next_due(Age::Backlog), Some(at(500)));
    aged(&mut wheel, 400);
    assert_eq!(wheel.next_due(Age::OnTime), Some(at(500)));
    assert_eq!(wheel.len(), 1);
}

#[test]
fn lanes_share_a_batch_by_weight_and_none_starves() {
    let mut wheel = Wheel::default();
    for (lane, from) in Lane::ALL.into_iter().zip([0_u32, 1_000, 2_000]) {
        for number in from..from + 1_000 {
            // The critical ones are the latest.
            wheel.insert_job(job_in(number, 5_000 - i64::from(number), lane));
        }
    }
    let batch = wheel.take(Age::OnTime, at(10_000), 210);
    let count = |lane| batch.iter().filter(|(_, it)| it.lane() == lane).count();
    assert_eq!(Lane::ALL.map(count), [160, 40, 10]);
    assert_eq!(wheel.take(Age::OnTime, at(10_000), 5_000).len(), 2_790);
    assert_eq!(wheel.len(), 0);
}

#[test]
fn a_backlog_that_fills_its_room_leaves_the_rest_to_what_is_on_time() {
    let mut wheel = Wheel::default();
    aged(&mut wheel, 60_000);
    let mut number = 0;
    while wheel.has_room(Age::Backlog) {
        wheel.insert_job(job_in(number, 0, Lane::Critical));
        number += 1;
    }
    assert!(wheel.len() <= limits::WHEEL_BACKLOG_MAX);
    assert!(wheel.has_room(Age::OnTime));
    assert!(!wheel.has_room(Age::Backlog) && !wheel.has_room_again());
    wheel.take(Age::Backlog, at(0), wheel.len() / 2);
    assert!(wheel.has_room_again());
    assert!(!wheel.has_room_again(), "said once");
}

#[test]
fn a_wheel_that_became_backlog_makes_room_for_what_is_on_time() {
    let mut wheel = Wheel::default();
    aged(&mut wheel, 0);
    let most = limits::WHEEL_MAX as u32;
    for number in 0..most {
        wheel.insert_job(job_in(number, i64::from(number % 1_000), Lane::Standard));
    }
    assert!(!wheel.has_room(Age::OnTime));
    aged(&mut wheel, 60_000);
    assert!(wheel.has_room(Age::OnTime));
    assert!(!wheel.shed(), "all of it fits");
    wheel.insert_job(job_in(most, 60_000, Lane::Batch));
    assert!(wheel.shed());
    assert!(wheel.len() <= limits::WHEEL_MAX);
    assert_eq!(wheel.next_due(Age::OnTime), Some(at(60_000)));
    let last = job_in(999, 999, Lane::Standard);
    assert!(wheel.insert_read_job(last), "plan may read it again");
}
