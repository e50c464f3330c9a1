//! Flush: what was counted of tenants is written, and written over when there is more.

use std::sync::Arc;

use model::rollup::Step;
use model::{Outcome, Reason, Report, RetryHint, Rollup, Skip, Stretch, TenantId, Timestamp};
use store::OverviewStore;

use super::bench::Bench;
use super::world::{at, ms, once};
use crate::duty::Wake;

async fn written(bench: &Bench, step: Step) -> Vec<(Timestamp, Rollup)> {
    let all = (Timestamp::MIN, Timestamp::MAX);
    let read = bench
        .mem
        .read_rollups(TenantId::DEFAULT, step, all.0, all.1);
    read.await.unwrap()
}

/// Everything that is written of steps of a kind.
async fn sum(bench: &Bench, step: Step) -> Rollup {
    let mut sum = Rollup::default();
    for (_, rollup) in written(bench, step).await {
        sum.add(&rollup);
    }
    sum
}

#[tokio::test]
async fn a_run_is_counted_when_it_is_fired_dispatched_and_ended() {
    let bench = Bench::holding().await;
    let mut flush = bench.flush();
    bench.started(once(1, 1_000), 1_000).await;
    bench.rest(&mut flush).await;
    let counted = sum(&bench, Step::Minute).await;
    assert_eq!((counted.fired, counted.lateness.count()), (1, 1));
    assert_eq!((counted.succeeded, counted.duration.count()), (0, 0));
    bench.drain(&mut bench.settle()).await;
    bench.rest(&mut flush).await;
    for step in Step::ALL {
        let counted = sum(&bench, step).await;
        assert_eq!((counted.fired, counted.succeeded), (1, 1), "{step:?}");
        assert_eq!(counted.duration.count(), 1);
        assert_eq!((counted.dead, counted.retried, counted.late), (0, 0, 0));
    }
}

#[tokio::test]
async fn an_attempt_that_is_tried_again_is_counted_as_retried_and_a_dead_run_as_dead() {
    let bench = Bench::holding().await;
    let failed = Report::failed("no".to_owned());
    bench.target.answers(failed);
    bench.started(once(1, 1_000), 1_000).await;
    bench.drain(&mut bench.settle()).await;
    let refused = Report {
        retry: RetryHint::Never,
        ..Report::of(Outcome::Failed)
    };
    bench.target.answers(refused);
    bench.started(once(2, 2_000), 2_000).await;
    bench.drain(&mut bench.settle()).await;
    bench.rest(&mut bench.flush()).await;
    let counted = sum(&bench, Step::Quarter).await;
    assert_eq!((counted.fired, counted.retried, counted.dead), (2, 1, 1));
}

#[tokio::test]
async fn what_a_change_of_a_job_skips_and_cancels_is_counted() {
    let bench = Bench::new().await;
    let skip = Skip {
        slots: Stretch {
            first: model::Slot(at(1_000)),
            last: model::Slot(at(9_000)),
            count: 9,
        },
        reason: Reason::Paused,
        note: None,
        actor: Arc::from("me"),
    };
    let metrics = bench.metrics();
    metrics.job_changed(bench.now(), TenantId::DEFAULT, &[skip], 2);
    bench.rest(&mut bench.flush()).await;
    let counted = sum(&bench, Step::Minute).await;
    assert_eq!(counted.skipped_for(Reason::Paused), 9);
    assert_eq!(counted.cancelled, 2);
}

#[tokio::test]
async fn it_writes_every_two_seconds_and_only_what_has_changed() {
    let bench = Bench::holding().await;
    let mut flush = bench.flush();
    assert_eq!(
        bench.rest(&mut flush).await,
        Wake::At(bench.now().plus(ms(2_000)))
    );
    assert_eq!(written(&bench, Step::Minute).await, []);
    bench.started(once(1, 1_000), 1_000).await;
    bench.rest(&mut flush).await;
    let first = written(&bench, Step::Minute).await;
    assert_eq!(first.len(), 1);
    bench.pass(ms(60_000));
    bench.started(once(2, 62_000), 62_000).await;
    bench.rest(&mut flush).await;
    let both = written(&bench, Step::Minute).await;
    assert_eq!(both.len(), 2, "another minute");
    assert_eq!(both.first(), first.first(), "the first stays as it was");
    assert_eq!(written(&bench, Step::Quarter).await.len(), 1);
}

#[tokio::test]
async fn a_node_that_stops_writes_what_it_has_counted() {
    let bench = Bench::holding().await;
    bench.started(once(1, 1_000), 1_000).await;
    bench.drain(&mut bench.settle()).await;
    bench.flush().last().await;
    assert_eq!(sum(&bench, Step::Minute).await.succeeded, 1);
}
