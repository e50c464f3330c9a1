//! Runs of a day: what fire counts, what becomes of slots beyond the quota, and when the counts are written.

use std::time::Duration;

use model::runs_day::{Day, RunCount};
use model::{Quota, Reason, RunState, TenantEdit, TenantId};
use store::{AccessStore, EngineStore, RunCountStore};

use super::bench::{Bench, node};
use super::world::{Fault, at, ms, once};
use crate::duty::Wake;

fn today() -> Day {
    Day::of(at(0))
}

/// In milliseconds of these tests' time.
fn midnight() -> i64 {
    let day = 86_400_000;
    day - at(0).as_millis().rem_euclid(day)
}

impl Bench {
    pub(super) async fn bound(&self, max: u64) {
        let edit = TenantEdit {
            quotas: vec![(Quota::RunsDay, Some(max))],
            ..TenantEdit::default()
        };
        let edited = self.mem.edit_tenant(TenantId::DEFAULT, &edit).await;
        assert!(edited.unwrap().is_some());
    }

    async fn counted(&self) -> u64 {
        let counted = self.mem.runs_of_day(TenantId::DEFAULT, today()).await;
        counted.unwrap()
    }
}

#[tokio::test]
async fn slots_beyond_the_quota_are_skipped_also_within_one_write() {
    let bench = Bench::holding().await;
    bench.bound(3).await;
    bench.rest(&mut bench.count_runs()).await;
    for number in 1..=5 {
        bench.put(once(number, 1_000)).await;
    }
    bench.fire_for(&mut bench.fire(), 1_000).await;
    assert_eq!(bench.held(), 3);
    let runs = bench.mem.all_runs();
    let skipped = runs.iter().filter(|run| run.reason == Some(Reason::Quota));
    assert_eq!((runs.len(), skipped.count()), (5, 2));
    bench.pass(ms(1_000));
    bench.rest(&mut bench.count_runs()).await;
    assert_eq!(bench.counted().await, 3);
}

#[tokio::test]
async fn what_other_nodes_have_counted_is_minded() {
    let bench = Bench::holding().await;
    bench.bound(10).await;
    let other = bench.mem.join(&node("second", &["http"])).await.unwrap();
    let theirs = RunCount {
        tenant: TenantId::DEFAULT,
        day: today(),
        runs: 9,
    };
    let said = bench.mem.count_runs(other, &[theirs], today()).await;
    assert_eq!(said.unwrap().len(), 1);
    bench.rest(&mut bench.count_runs()).await;
    let jobs = [
        bench.put(once(1, 1_000)).await,
        bench.put(once(2, 2_000)).await,
    ];
    let mut fire = bench.fire();
    bench.fire_for(&mut fire, 1_000).await;
    bench.fire_for(&mut fire, 2_000).await;
    assert_eq!(bench.state(&jobs[0], 1_000).await, Some(RunState::Ready));
    assert_eq!(bench.state(&jobs[1], 2_000).await, Some(RunState::Skipped));
}

#[tokio::test]
async fn a_run_counts_once_and_only_if_it_is_inserted() {
    let bench = Bench::holding().await;
    bench.put(once(1, 1_000)).await;
    bench.rest(&mut bench.plan()).await;
    bench.pass_to(at(970));
    let mut fire = bench.fire();
    bench.calls.spoil("fire", [Fault::Before, Fault::After]);
    assert!(bench.step(&mut fire).await.is_err());
    assert!(bench.step(&mut fire).await.is_err());
    let mut count = bench.count_runs();
    bench.rest(&mut count).await;
    assert_eq!(bench.counted().await, 0, "nothing is known to be inserted");
    bench.rest(&mut fire).await;
    assert_eq!(bench.held(), 1);
    bench.pass(ms(1_000));
    bench.rest(&mut count).await;
    assert_eq!(bench.counted().await, 1);
}

#[tokio::test]
async fn a_slot_at_midnight_counts_on_the_day_that_begins() {
    let bench = Bench::holding().await;
    let midnight = midnight();
    bench.pass_to(at(midnight - 5_000));
    bench.put(once(1, midnight)).await;
    bench.fire_for(&mut bench.fire(), midnight).await;
    assert_eq!(bench.held(), 1);
    bench.rest(&mut bench.count_runs()).await;
    assert_eq!(bench.counted().await, 0);
    let next = bench
        .mem
        .runs_of_day(TenantId::DEFAULT, Day::of(at(midnight)))
        .await;
    assert_eq!(next.unwrap(), 1);
}

#[tokio::test]
async fn the_quota_begins_again_at_midnight() {
    let bench = Bench::holding().await;
    bench.bound(1).await;
    let midnight = midnight();
    bench.pass_to(at(midnight - 10_000));
    let mut count = bench.count_runs();
    bench.rest(&mut count).await;
    let mut fire = bench.fire();
    let mut states = Vec::new();
    for (number, after) in [(1, -4_000), (2, 0), (3, 4_000)] {
        let due = midnight + after;
        let job = bench.put(once(number, due)).await;
        bench.fire_for(&mut fire, due).await;
        bench.rest(&mut count).await;
        states.push(bench.state(&job, due).await);
    }
    // The first of each day, also the one that is fired before its day begins.
    let expected = [RunState::Ready, RunState::Ready, RunState::Skipped];
    assert_eq!(states, expected.map(Some));
}

#[tokio::test]
async fn counts_are_written_once_a_second() {
    let bench = Bench::new().await;
    let mut count = bench.count_runs();
    assert_eq!(bench.rest(&mut count).await, Wake::At(at(1_000)));
    bench.pass(ms(400));
    assert_eq!(bench.rest(&mut count).await, Wake::At(at(1_000)));
    bench.pass(Duration::from_millis(600));
    assert_eq!(bench.rest(&mut count).await, Wake::At(at(2_000)));
}

#[tokio::test]
async fn a_node_that_stops_says_what_it_has_counted() {
    let bench = Bench::holding().await;
    bench.put(once(1, 1_000)).await;
    bench.fire_for(&mut bench.fire(), 1_000).await;
    assert_eq!(bench.counted().await, 0);
    bench.count_runs().last().await;
    assert_eq!(bench.counted().await, 1);
}
