//! Plan: when what was read before is read again.

use model::{JobId, TenantId, limits};

use super::bench::Bench;
use super::world::{at, every, ms, once};
use crate::duty::Wake;

#[tokio::test]
async fn the_whole_window_is_read_again_every_five_seconds() {
    let bench = Bench::holding().await;
    let mut plan = bench.plan();
    bench.rest(&mut plan).await;
    // Nobody says so: its offer was lost.
    bench.put(once(1, 9_000)).await;
    for second in 1..5 {
        bench.pass(ms(1_000));
        bench.rest(&mut plan).await;
        assert_eq!(bench.in_wheel(), 0, "{second} s later");
    }
    bench.pass(ms(1_000));
    bench.rest(&mut plan).await;
    assert_eq!(bench.next_due(), Some(at(9_000)));
}

#[tokio::test]
async fn between_two_moves_of_the_window_nothing_is_read() {
    let bench = Bench::holding().await;
    let mut plan = bench.plan();
    bench.rest(&mut plan).await;
    let pages = bench.calls.count("due_jobs");
    bench.pass(ms(400));
    assert_eq!(bench.rest(&mut plan).await, Wake::At(at(1_400)));
    assert_eq!(bench.calls.count("due_jobs"), pages);
    bench.pass(ms(100));
    bench.rest(&mut plan).await;
    assert_eq!(bench.calls.count("due_jobs"), pages + 1);
}

#[tokio::test]
async fn a_clock_that_went_back_has_everything_read_again() {
    let bench = Bench::holding().await;
    let mut plan = bench.plan();
    bench.rest(&mut plan).await;
    bench.put(once(1, 5_000)).await;
    bench.clock.step_wall(-2_000);
    bench.rest(&mut plan).await;
    assert_eq!(bench.next_due(), Some(at(5_000)));
}

#[tokio::test]
async fn a_clock_that_went_far_ahead_leaves_no_gap() {
    let bench = Bench::holding().await;
    let mut plan = bench.plan();
    bench.rest(&mut plan).await;
    bench.put(once(1, 30_000)).await;
    bench.clock.step_wall(60_000);
    bench.rest(&mut plan).await;
    assert_eq!(bench.next_due(), Some(at(30_000)), "it is backlog now");
}

#[tokio::test]
async fn more_offers_than_are_read_one_by_one_have_the_window_read() {
    let bench = Bench::holding().await;
    let mut plan = bench.plan();
    bench.rest(&mut plan).await;
    bench.put(once(1, 5_000)).await;
    let stranger = every(2, 60);
    for _ in 0..300 {
        bench.offer(&stranger);
    }
    bench.rest(&mut plan).await;
    assert_eq!(bench.next_due(), Some(at(5_000)));
    assert_eq!(bench.calls.count("due_of"), 0);
    assert_eq!(bench.offered().await, Vec::<JobId>::new());
}

#[tokio::test]
async fn more_offers_than_fit_have_the_window_read() {
    let bench = Bench::holding().await;
    let mut plan = bench.plan();
    bench.rest(&mut plan).await;
    let job = bench.put(once(1, 5_000)).await;
    let stranger = every(2, 60);
    for _ in 0..limits::OFFERS_MAX {
        bench.offer(&stranger);
    }
    bench.offer(&job);
    bench.rest(&mut plan).await;
    assert_eq!(bench.next_due(), Some(at(5_000)));
}

#[tokio::test]
async fn shards_that_are_new_have_everything_read() {
    let bench = Bench::new().await;
    let (first, second) = (
        bench.put(once(1, 5_000)).await,
        bench.put(once(2, 4_000)).await,
    );
    bench.hold(&[first.shard()].into_iter().collect()).await;
    let mut plan = bench.plan();
    bench.rest(&mut plan).await;
    assert_eq!(bench.in_wheel(), 1);
    bench
        .hold(&[first.shard(), second.shard()].into_iter().collect())
        .await;
    assert!(bench.heard(&bench.nudges().plan));
    bench.rest(&mut plan).await;
    assert_eq!((bench.in_wheel(), bench.next_due()), (2, Some(at(4_000))));
}

#[tokio::test]
async fn an_edited_job_takes_the_place_of_the_one_that_was_read() {
    let bench = Bench::holding().await;
    let job = bench.put(every(1, 8)).await;
    let mut plan = bench.plan();
    bench.rest(&mut plan).await;
    assert_eq!(bench.next_due(), Some(at(8_000)));
    let sooner = every(1, 3).def.as_ref().clone();
    let now = bench.now();
    bench
        .change(bench.job(job.id).await, |job, by| {
            job.edited(None, sooner, now, by)
        })
        .await;
    bench.offer(&job);
    bench.rest(&mut plan).await;
    assert_eq!(bench.next_due(), Some(at(3_000)));
    assert_eq!(job.tenant, TenantId::DEFAULT);
}

#[tokio::test]
async fn a_failed_read_of_an_offered_job_has_the_window_read() {
    let bench = Bench::holding().await;
    let mut plan = bench.plan();
    bench.rest(&mut plan).await;
    let job = bench.put(once(1, 5_000)).await;
    bench.offer(&job);
    bench.calls.spoil("due_of", [super::world::Fault::Before]);
    assert!(bench.step(&mut plan).await.is_err());
    bench.rest(&mut plan).await;
    assert_eq!(bench.next_due(), Some(at(5_000)));
    assert_eq!(bench.calls.count("due_of"), 1, "the offer was taken");
}
