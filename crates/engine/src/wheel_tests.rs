use model::{Definition, RunState, Schedule, Target, TenantId};

use super::*;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + millis)
}

fn job(number: u8, due: i64) -> Arc<Job> {
    let def = Definition::new(Schedule::from(Slot(at(due))), Target::Fake(String::new()));
    let id = JobId::new(at(0), [number; 10]);
    Arc::new(Job::new(id, TenantId::DEFAULT, None, def, at(0)))
}

fn run(number: u8) -> DueRun {
    let job = JobId::new(at(0), [number; 10]);
    let id = RunId::asked(job, at(0), 1);
    DueRun {
        run: id,
        tenant: TenantId::DEFAULT,
        job,
        due_at: at(0),
        state: RunState::Ready,
    }
}

#[test]
fn entries_come_out_in_order_and_not_before_they_are_asked_for() {
    let mut wheel = Wheel::default();
    for (number, due) in [(1, 30), (2, 10), (3, 20)] {
        assert!(wheel.insert_job(job(number, due)));
    }
    assert_eq!(wheel.next_due(), Some(at(10)));
    let taken: Vec<_> = wheel
        .take(at(20), 10)
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
    let taken = wheel.take(at(10), 10);
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
    for (_, entry) in wheel.take(at(10), 10) {
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
    let taken = wheel.take(at(30), 10);
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
    assert_eq!(wheel.count_until(at(10), 100), 10);
    assert_eq!(wheel.take(at(10), 4).len(), 4);
    assert_eq!(wheel.take(at(10), 40).len(), 6);
    assert!(wheel.is_empty());
}

#[test]
fn entries_of_lost_shards_are_dropped() {
    let mut wheel = Wheel::default();
    wheel.insert_job(job(1, 10));
    wheel.insert_job(job(2, 10));
    let mine: ShardSet = [Shard::of(job(1, 10).id)].into_iter().collect();
    wheel.keep_shards(&mine);
    let left = wheel.take(at(10), 10);
    assert!(left.iter().all(|(_, entry)| entry.job() == job(1, 10).id));
}

#[test]
fn what_was_taken_out_is_known_no_more_when_fire_begins_anew() {
    let mut wheel = Wheel::default();
    for (number, due) in [(1, 10), (2, 30)] {
        wheel.insert_job(job(number, due));
        wheel.insert_run(run(number), at(due));
    }
    wheel.take(at(10), 10);
    wheel.begin_asking(std::iter::once(run(1).run));
    assert!(wheel.knows_run(run(1).run));
    let before = wheel.anew();
    wheel.forget_taken();
    assert_ne!(wheel.anew(), before);
    assert!(!wheel.knows_run(run(1).run));
    assert!(wheel.insert_job(job(1, 10)) && wheel.insert_run(run(1), at(10)));
    // The others are still in.
    assert!(!wheel.insert_job(job(2, 30)) && !wheel.insert_run(run(2), at(30)));
    assert_eq!(wheel.len(), 4);
}
