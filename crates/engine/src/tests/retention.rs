//! Retention: what is forgotten when, and how often it looks.

use std::time::Duration;

use model::JobState;

use super::bench::Bench;
use super::world::{Fault, at, ms, once};
use crate::duty::Wake;

const DAY: Duration = Duration::from_secs(24 * 3_600);

#[tokio::test]
async fn a_run_is_kept_as_long_as_it_is_to_be_and_then_forgotten() {
    let bench = Bench::holding().await;
    let run = bench.started(once(1, 1_000), 1_000).await;
    bench.drain(&mut bench.settle()).await;
    let mut retention = bench.retention();
    bench.pass(DAY * 29);
    bench.rest(&mut retention).await;
    assert!(bench.run(run).await.is_some());
    bench.pass(DAY * 3);
    bench.rest(&mut retention).await;
    assert_eq!(bench.run(run).await, None);
}

#[tokio::test]
async fn a_run_that_lives_is_not_forgotten() {
    let bench = Bench::holding().await;
    let run = bench.claimed(once(1, 1_000), 1_000).await;
    bench.pass(DAY * 100);
    bench.rest(&mut bench.retention()).await;
    assert!(bench.run(run).await.is_some());
}

#[tokio::test]
async fn a_one_off_is_forgotten_a_while_after_it_has_finished() {
    let bench = Bench::holding().await;
    let job = once(1, 1_000);
    let id = job.id;
    bench.started(job, 1_000).await;
    bench.drain(&mut bench.settle()).await;
    let mut retention = bench.retention();
    bench.pass(DAY * 6);
    bench.rest(&mut retention).await;
    assert_eq!(bench.job(id).await.state, JobState::Finished);
    bench.pass(DAY * 2);
    bench.rest(&mut retention).await;
    assert!(bench.mem.all_jobs().is_empty());
}

#[tokio::test]
async fn it_runs_once_a_minute() {
    let bench = Bench::new().await;
    let mut retention = bench.retention();
    assert_eq!(bench.rest(&mut retention).await, Wake::At(at(60_000)));
    bench.pass(ms(59_999));
    bench.rest(&mut retention).await;
    assert_eq!(bench.calls.count("retain"), 1);
    bench.pass(ms(1));
    bench.rest(&mut retention).await;
    assert_eq!(bench.calls.count("retain"), 2);
}

#[tokio::test]
async fn a_step_that_failed_is_repeated() {
    let bench = Bench::new().await;
    let mut retention = bench.retention();
    bench.calls.spoil("retain", [Fault::Before]);
    assert!(bench.step(&mut retention).await.is_err());
    bench.rest(&mut retention).await;
    assert_eq!(bench.calls.count("retain"), 2);
}

#[tokio::test]
async fn a_held_node_forgets_nothing() {
    let bench = Bench::with(|config| config.hold = true).await;
    bench.pass(DAY * 100);
    bench.rest(&mut bench.retention()).await;
    assert_eq!(bench.calls.count("retain"), 0);
}
