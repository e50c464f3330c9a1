//! The low-water mark: where plan and the watchdog begin to read, and what appears below it.

use model::shard::ShardSet;
use model::{PresenceId, Shard, Timestamp};
use store::{EngineStore, LowWater, NodeStatus};

use super::bench::{Bench, SCHEDULES};
use super::world::{at, ms, once};
use crate::duty::Duty;

/// Another node had all shards, and left when nothing was due before the mark.
async fn left_at(bench: &Bench, mark: Timestamp) {
    let other = bench.other(SCHEDULES).await;
    let leases = bench.mem.lease(other, &ShardSet::ALL).await.unwrap();
    let said = NodeStatus {
        low_water: Some(LowWater {
            at: mark,
            ..leases.low_water
        }),
        ..SCHEDULES
    };
    bench.mem.beat(other, &said).await.unwrap();
    bench.mem.leave(other).await.unwrap();
}

/// The mark that whoever has all shards next begins at.
async fn next_mark(bench: &Bench) -> Timestamp {
    bench.mem.leave(bench.me()).await.unwrap();
    let next: PresenceId = bench.other(SCHEDULES).await;
    let leases = bench.mem.lease(next, &ShardSet::ALL).await.unwrap();
    leases.low_water.at
}

/// How many seconds it takes until something is in the wheel that is due then.
async fn found_after(
    bench: &Bench,
    watchdog: &mut dyn Duty,
    plan: &mut dyn Duty,
    due_at: Timestamp,
) -> Option<u64> {
    for seconds in 0..20 {
        bench.step(watchdog).await.unwrap();
        bench.rest(plan).await;
        if bench.next_due() == Some(due_at) {
            return Some(seconds);
        }
        bench.pass(ms(1_000));
    }
    None
}

#[tokio::test]
async fn shards_that_others_had_are_read_from_their_mark_and_the_rest_within_five_seconds() {
    let bench = Bench::new().await;
    bench.pass(ms(100_000));
    left_at(&bench, at(50_000)).await;
    // Nobody says that the first is there.
    bench.put(once(1, 40_000)).await;
    bench.put(once(2, 60_000)).await;
    bench.hold(&ShardSet::ALL).await;
    let (mut plan, mut watchdog) = (bench.plan(), bench.watchdog());
    bench.rest(&mut plan).await;
    assert_eq!((bench.in_wheel(), bench.next_due()), (1, Some(at(60_000))));
    let found = found_after(&bench, &mut watchdog, &mut plan, at(40_000)).await;
    assert!(found.is_some_and(|after| after <= 5), "{found:?}");
}

#[tokio::test]
async fn what_appears_below_the_mark_without_a_hint_is_found_within_five_seconds() {
    for (turns, is_run) in (8..23).flat_map(|turns| [(turns, false), (turns, true)]) {
        let bench = Bench::holding().await;
        let (mut plan, mut watchdog) = (bench.plan(), bench.watchdog());
        bench.pass(ms(100_000));
        for _ in 0..turns {
            bench.step(&mut watchdog).await.unwrap();
            bench.rest(&mut plan).await;
            bench.pass(ms(1_000));
        }
        assert!(bench.shards().low_water().at > at(50_000));
        if is_run {
            let job = bench.put(once(1, 3_600_000)).await;
            bench.start_at(&job, at(50_000)).await;
        } else {
            bench.put(once(1, 50_000)).await;
        }
        let found = found_after(&bench, &mut watchdog, &mut plan, at(50_000)).await;
        assert!(found.is_some_and(|after| after <= 5), "{found:?}");
    }
}

#[tokio::test]
async fn the_mark_follows_what_is_undecided_and_is_kept_with_the_leases() {
    let bench = Bench::holding().await;
    let mut watchdog = bench.watchdog();
    bench.pass(ms(100_000));
    bench.put(once(1, 60_000)).await;
    bench.step(&mut watchdog).await.unwrap();
    assert_eq!(
        bench.shards().low_water().at,
        at(55_000),
        "a little before it"
    );
    bench.rest(&mut bench.plan()).await;
    bench.step(&mut watchdog).await.unwrap();
    assert_eq!(
        bench.shards().low_water().at,
        at(55_000),
        "it is not decided yet"
    );
    bench.rest(&mut bench.fire()).await;
    bench.step(&mut watchdog).await.unwrap();
    assert_eq!(bench.shards().low_water().at, at(95_000));
    bench.step(&mut bench.beats()).await.unwrap();
    assert_eq!(next_mark(&bench).await, at(95_000));
}

#[tokio::test]
async fn a_clock_that_went_back_lowers_the_mark() {
    let bench = Bench::holding().await;
    let (mut plan, mut watchdog) = (bench.plan(), bench.watchdog());
    bench.pass(ms(100_000));
    bench.step(&mut watchdog).await.unwrap();
    bench.rest(&mut plan).await;
    assert_eq!(bench.shards().low_water().at, at(95_000));
    bench.clock.step_wall(-60_000);
    bench.put(once(1, 30_000)).await;
    bench.rest(&mut plan).await;
    assert_eq!(bench.next_due(), Some(at(30_000)), "all of it is read");
    bench.rest(&mut bench.fire()).await;
    bench.step(&mut watchdog).await.unwrap();
    assert_eq!(bench.shards().low_water().at, at(35_000));
    bench.step(&mut bench.beats()).await.unwrap();
    assert_eq!(next_mark(&bench).await, at(35_000));
}

#[tokio::test]
async fn a_mark_that_was_measured_before_shards_came_is_not_theirs() {
    let bench = Bench::new().await;
    bench.hold(&[Shard(1)].into_iter().collect()).await;
    let before = bench.shards().low_water();
    bench.hold(&ShardSet::ALL).await;
    let unknown = bench.shards().low_water();
    assert_eq!(unknown.at, Timestamp::MIN);
    let at = at(95_000);
    bench.shards().move_low_water(LowWater { at, ..before });
    assert_eq!(bench.shards().low_water(), unknown);
    bench.shards().move_low_water(LowWater { at, ..unknown });
    assert_eq!(bench.shards().low_water().at, at);
}
