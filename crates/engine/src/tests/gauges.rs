//! What a node shows of its lanes, its leases and its executors.

use model::shard::ShardSet;
use model::{Lane, Report};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use store::EngineStore;

use super::bench::{Bench, SCHEDULES};
use super::world::{at, job_with, once};

/// These lines are among what it exposes.
#[track_caller]
fn exposes(bench: &Bench, lines: &[&str]) {
    let mut registry = Registry::with_prefix("punctual");
    bench.metrics().register(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    for line in lines {
        assert!(text.lines().any(|it| it == *line), "{line}\n{text}");
    }
}

#[tokio::test]
async fn runs_that_wait_for_their_turn_are_counted_by_lane_with_the_age_of_the_oldest() {
    let bench = Bench::with(|config| config.running_max = 1).await;
    bench.hold(&ShardSet::ALL).await;
    bench.target.is_silent();
    for (number, lane) in [(1, Lane::Critical), (2, Lane::Batch), (3, Lane::Batch)] {
        let schedule = once(number, 1_000).def.schedule.clone();
        bench
            .put(job_with(number, schedule, |def| def.lane = lane))
            .await;
    }
    bench.fire_for(&mut bench.fire(), 1_000).await;
    bench.pass_to(at(1_000));
    bench.rest(&mut bench.dispatch()).await;
    bench.pass_to(at(1_750));
    bench.step(&mut bench.watchdog()).await.unwrap();
    exposes(
        &bench,
        &[
            "punctual_lane_depth{lane=\"critical\"} 0",
            "punctual_lane_oldest_age_seconds{lane=\"critical\"} 0.0",
            "punctual_lane_depth{lane=\"batch\"} 2",
            "punctual_lane_oldest_age_seconds{lane=\"batch\"} 0.75",
        ],
    );
    bench.target.answers(Report::succeeded());
    bench.quiet().await;
    bench.step(&mut bench.watchdog()).await.unwrap();
    exposes(
        &bench,
        &[
            "punctual_lane_depth{lane=\"batch\"} 0",
            "punctual_lane_oldest_age_seconds{lane=\"batch\"} 0.0",
            "punctual_executed_total{executor=\"http\",outcome=\"succeeded\"} 3",
            "punctual_executed_total{executor=\"http\",outcome=\"failed\"} 0",
        ],
    );
}

#[tokio::test]
async fn shards_that_another_has_left_are_taken_over() {
    let bench = Bench::new().await;
    let other = bench.other(SCHEDULES).await;
    bench.mem.lease(other, &ShardSet::ALL).await.unwrap();
    bench.mem.leave(other).await.unwrap();
    bench.rest(&mut bench.beats()).await;
    bench.step(&mut bench.leases()).await.unwrap();
    exposes(
        &bench,
        &[
            "punctual_shards 256",
            "punctual_lease_epochs 512",
            "punctual_shard_takeovers_total 256",
        ],
    );
}

#[tokio::test]
async fn shards_that_nobody_had_before_are_not_taken_over() {
    let bench = Bench::new().await;
    bench.rest(&mut bench.beats()).await;
    bench.step(&mut bench.leases()).await.unwrap();
    exposes(
        &bench,
        &[
            "punctual_lease_epochs 256",
            "punctual_shard_takeovers_total 0",
        ],
    );
}
