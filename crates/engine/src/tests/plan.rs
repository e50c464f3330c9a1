//! Plan: what goes into the wheel, and when.

use std::sync::Arc;

use model::schedule::{Broken, Kind, Schedule};
use model::shard::ShardSet;
use model::{Definition, Job, JobState, Parts, RetryPolicy, limits};
use store::Hint;

use super::bench::{Bench, SCHEDULES};
use super::world::{Fault, at, every, job_with, ms, once};
use crate::duty::Wake;

#[tokio::test]
async fn a_slot_within_the_horizon_goes_into_the_wheel() {
    let bench = Bench::holding().await;
    bench.put(once(1, 5_000)).await;
    let mut plan = bench.plan();
    let wake = bench.rest(&mut plan).await;
    assert_eq!((bench.in_wheel(), bench.next_due()), (1, Some(at(5_000))));
    assert_eq!(wake, Wake::At(at(1_000)), "the window moves every second");
    assert!(bench.heard(&bench.nudges().fire));
    assert!(bench.mem.live_runs().is_empty(), "plan writes nothing");
}

#[tokio::test]
async fn a_slot_beyond_the_horizon_is_read_when_the_window_has_come_to_it() {
    let bench = Bench::holding().await;
    bench.put(once(1, 11_000)).await;
    let mut plan = bench.plan();
    bench.rest(&mut plan).await;
    assert_eq!(bench.in_wheel(), 0);
    bench.pass(ms(1_000));
    bench.rest(&mut plan).await;
    assert_eq!(bench.next_due(), Some(at(11_000)));
}

#[tokio::test]
async fn a_node_without_shards_reads_nothing_and_steps_again_in_a_second() {
    let bench = Bench::new().await;
    bench.put(once(1, 5_000)).await;
    let wake = bench.step(&mut bench.plan()).await.unwrap();
    assert_eq!(wake, Wake::At(at(1_000)));
    assert_eq!((bench.in_wheel(), bench.calls.count("due_jobs")), (0, 0));
}

#[tokio::test]
async fn only_jobs_of_the_shards_held_are_planned() {
    let bench = Bench::new().await;
    let ours = bench.put(once(1, 5_000)).await;
    let other = bench.put(once(2, 4_000)).await;
    assert_ne!(ours.shard(), other.shard());
    bench.hold(&ShardSet::from_iter([ours.shard()])).await;
    bench.rest(&mut bench.plan()).await;
    assert_eq!((bench.in_wheel(), bench.next_due()), (1, Some(at(5_000))));
}

#[tokio::test]
async fn what_is_on_time_is_read_before_the_backlog() {
    let bench = Bench::holding().await;
    bench.put(once(1, 1_000)).await;
    bench.put(once(2, 9_000)).await;
    bench.pass(ms(8_000));
    let mut plan = bench.plan();
    assert_eq!(bench.step(&mut plan).await.unwrap(), Wake::Now);
    assert_eq!(bench.next_due(), Some(at(9_000)));
    bench.rest(&mut plan).await;
    assert_eq!((bench.in_wheel(), bench.next_due()), (2, Some(at(1_000))));
}

#[tokio::test]
async fn a_run_that_nobody_holds_goes_into_the_wheel() {
    let bench = Bench::holding().await;
    let job = bench.put(once(1, 60_000)).await;
    bench.start(&job).await;
    bench.rest(&mut bench.plan()).await;
    assert_eq!((bench.in_wheel(), bench.next_due()), (1, Some(at(0))));
}

#[tokio::test]
async fn a_node_that_only_schedules_leaves_runs_in_the_store() {
    let bench = Bench::with(|config| config.parts = Parts::from_code(2)).await;
    bench.hold(&ShardSet::ALL).await;
    let job = bench.put(once(1, 60_000)).await;
    bench.start(&job).await;
    bench.rest(&mut bench.plan()).await;
    assert_eq!((bench.in_wheel(), bench.calls.count("due_runs")), (0, 0));
}

#[tokio::test]
async fn a_job_that_is_in_the_wheel_is_not_put_in_again() {
    let bench = Bench::holding().await;
    bench.put(every(1, 5)).await;
    let mut plan = bench.plan();
    for _ in 0..3 {
        bench.rest(&mut plan).await;
        bench.pass(ms(900));
    }
    assert_eq!(bench.in_wheel(), 1);
}

#[tokio::test]
async fn an_offered_job_is_read_by_itself() {
    let bench = Bench::holding().await;
    let mut plan = bench.plan();
    bench.rest(&mut plan).await;
    let pages = bench.calls.count("due_jobs");
    let job = bench.put(once(1, 5_000)).await;
    bench.rest(&mut plan).await;
    assert_eq!(bench.in_wheel(), 0, "the window was read before");
    bench.offer(&job);
    assert!(bench.heard(&bench.nudges().plan));
    bench.rest(&mut plan).await;
    assert_eq!(bench.next_due(), Some(at(5_000)));
    assert_eq!(bench.calls.count("due_jobs"), pages);
}

#[tokio::test]
async fn an_offered_job_beyond_the_horizon_is_left() {
    let bench = Bench::holding().await;
    let mut plan = bench.plan();
    bench.rest(&mut plan).await;
    bench.offer(&*bench.put(once(1, 60_000)).await);
    bench.rest(&mut plan).await;
    assert_eq!(bench.in_wheel(), 0);
}

#[tokio::test]
async fn an_offered_job_of_anothers_shard_is_hinted_to_its_holder() {
    let bench = Bench::new().await;
    let other = bench.other(SCHEDULES).await;
    let job = bench.put(once(1, 5_000)).await;
    bench.offer(&job);
    bench.step(&mut bench.plan()).await.unwrap();
    assert_eq!(bench.hinted(other).await, [Hint::Job(job.tenant, job.id)]);
    assert_eq!(bench.calls.count("due_of"), 0);
}

#[tokio::test]
async fn a_job_that_cannot_be_read_is_parked_with_its_error() {
    let bench = Bench::holding().await;
    let broken = Broken {
        stored: r#"{"cron":["0 9 * * *"],"zone":"Mars/Olympus"}"#.to_owned(),
        error: "there is no time zone Mars/Olympus".to_owned(),
        recurring: true,
    };
    let sound = every(1, 5);
    let def = Definition {
        schedule: Schedule::from(Kind::Broken(Arc::new(broken))),
        ..(*sound.def).clone()
    };
    let job = Job {
        def: Arc::new(def),
        ..sound
    };
    let (job, sound) = (bench.put(job).await, bench.put(once(2, 4_000)).await);
    bench.rest(&mut bench.plan()).await;
    assert_eq!(bench.next_due(), sound.next_due_at(), "it stops no other");
    let parked = bench.job(job.id).await;
    assert_eq!(parked.state, JobState::Invalid);
    assert!(
        parked
            .note
            .is_some_and(|note| note.contains("Mars/Olympus"))
    );
}

#[tokio::test]
async fn a_retry_set_by_a_clock_that_went_back_is_due_now() {
    let bench = Bench::holding().await;
    let run = bench.claimed(once(1, 1_000), 1_000).await;
    let far = bench.now().plus(limits::RETRY_AFTER_MAX * 3);
    bench.fail(run, far).await;
    assert!(RetryPolicy::default().delay_bound() < limits::RETRY_AFTER_MAX * 3);
    bench.rest(&mut bench.plan()).await;
    assert_eq!((bench.in_wheel(), bench.next_due()), (1, Some(bench.now())));
}

#[tokio::test]
async fn a_retry_that_its_policy_lets_wait_so_long_is_left() {
    let bench = Bench::holding().await;
    let patient = job_with(1, once(1, 1_000).def.schedule.clone(), |def| {
        def.retry.delay_max = limits::DELAY_MAX;
    });
    let run = bench.claimed(patient, 1_000).await;
    let far = bench.now().plus(limits::RETRY_AFTER_MAX * 3);
    bench.fail(run, far).await;
    bench.rest(&mut bench.plan()).await;
    assert_eq!(bench.in_wheel(), 0);
}

#[tokio::test]
async fn a_read_that_failed_is_made_again() {
    let bench = Bench::holding().await;
    bench.put(once(1, 5_000)).await;
    let mut plan = bench.plan();
    bench.calls.spoil("due_jobs", [Fault::Before]);
    assert!(bench.step(&mut plan).await.is_err());
    assert_eq!(bench.in_wheel(), 0);
    bench.rest(&mut plan).await;
    assert_eq!(bench.in_wheel(), 1);
}

#[tokio::test]
async fn a_node_is_ready_when_it_has_read_its_window() {
    let bench = Bench::holding().await;
    bench.put(once(1, 5_000)).await;
    assert!(!bench.health().planned);
    bench.step(&mut bench.plan()).await.unwrap();
    assert!(bench.health().planned);
}

#[tokio::test]
async fn a_node_of_one_shard_reads_that_shard_alone() {
    let bench = Bench::new().await;
    let (ours, other) = (once(1, 5_000), once(2, 4_000));
    assert_ne!(ours.shard(), other.shard());
    bench.hold(&ShardSet::from_iter([ours.shard()])).await;
    bench.put(ours).await;
    bench.put(other).await;
    bench.rest(&mut bench.plan()).await;
    assert_eq!(bench.leased().shards().len(), 1);
    assert_eq!((bench.in_wheel(), bench.next_due()), (1, Some(at(5_000))));
}
