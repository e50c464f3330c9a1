//! Leases: which shards a node requests and gives up, and when it requests again.

use model::Shard;
use model::shard::{ShardSet, Shares};
use store::{EngineStore, Hint, Leases};

use super::bench::{ABLE, Bench, SCHEDULES};
use super::world::{Fault, at, ms, once};
use crate::duty::Wake;

/// What falls to this node beside another that schedules.
fn share(bench: &Bench, other: model::PresenceId) -> ShardSet {
    let mut both = [bench.me(), other];
    both.sort_unstable();
    Shares::among(&both).of(bench.me())
}

#[tokio::test]
async fn a_node_alone_holds_every_shard() {
    let bench = Bench::new().await;
    bench.rest(&mut bench.beats()).await;
    let wake = bench.step(&mut bench.leases()).await.unwrap();
    assert_eq!(wake, Wake::Nudged);
    assert!(bench.leased().shards().is_all());
    assert!(
        bench.heard(&bench.nudges().plan),
        "there is something to plan"
    );
    assert!(!bench.shards().is_pausing());
}

#[tokio::test]
async fn nothing_is_leased_before_a_beat_was_answered() {
    let bench = Bench::new().await;
    let wake = bench.step(&mut bench.leases()).await.unwrap();
    assert_eq!((wake, bench.calls.count("lease")), (Wake::Nudged, 0));
}

#[tokio::test]
async fn shards_that_are_held_are_not_requested_again() {
    let bench = Bench::new().await;
    let mut leases = bench.leases();
    for _ in 0..3 {
        bench.rest(&mut bench.beats()).await;
        bench.step(&mut leases).await.unwrap();
        bench.pass(ms(1_000));
    }
    assert_eq!(bench.calls.count("lease"), 1);
}

#[tokio::test]
async fn two_nodes_share() {
    let bench = Bench::new().await;
    let other = bench.other(SCHEDULES).await;
    bench.rest(&mut bench.beats()).await;
    bench.step(&mut bench.leases()).await.unwrap();
    let shards = bench.leased().shards();
    assert_eq!(shards, share(&bench, other));
    assert!((1..256).contains(&shards.len()));
}

#[tokio::test]
async fn one_that_does_not_schedule_is_given_nothing() {
    let bench = Bench::new().await;
    let executes = store::NodeStatus {
        schedules: false,
        ..ABLE
    };
    bench.other(executes).await;
    bench.rest(&mut bench.beats()).await;
    bench.step(&mut bench.leases()).await.unwrap();
    assert!(bench.leased().shards().is_all());
}

#[tokio::test]
async fn a_newcomer_is_given_its_share_and_what_was_planned_of_it_goes() {
    let bench = Bench::new().await;
    bench.rest(&mut bench.beats()).await;
    let mut leases = bench.leases();
    bench.step(&mut leases).await.unwrap();
    for number in 1..=20 {
        bench.put(once(number, 5_000)).await;
    }
    bench.rest(&mut bench.plan()).await;
    assert_eq!(bench.in_wheel(), 20);
    let other = bench.other(SCHEDULES).await;
    bench.pass(ms(1_000));
    bench.rest(&mut bench.beats()).await;
    bench.hinted(other).await;
    bench.step(&mut leases).await.unwrap();
    let shards = share(&bench, other);
    assert_eq!(bench.leased().shards(), shards);
    let jobs = bench.mem.all_jobs();
    let ours = jobs.iter().filter(|job| shards.contains(job.shard()));
    assert_eq!(bench.in_wheel(), ours.count());
    assert_eq!(bench.hinted(other).await, [Hint::Leases]);
}

#[tokio::test]
async fn a_shard_that_another_still_holds_is_requested_again_soon() {
    let bench = Bench::new().await;
    let other = bench.other(SCHEDULES).await;
    bench.mem.lease(other, &ShardSet::ALL).await.unwrap();
    bench.rest(&mut bench.beats()).await;
    let mut leases = bench.leases();
    let wake = bench.step(&mut leases).await.unwrap();
    assert_eq!(wake, Wake::At(at(50)));
    assert!(bench.leased().shards().is_empty());
    bench.pass(ms(4_900));
    assert_eq!(bench.step(&mut leases).await.unwrap(), Wake::At(at(4_950)));
    bench.pass(ms(100));
    let wake = bench.step(&mut leases).await.unwrap();
    assert_eq!(wake, Wake::Nudged, "it has to lapse: once a beat is enough");
}

#[tokio::test]
async fn a_shard_that_was_given_up_meanwhile_is_held_at_once() {
    let bench = Bench::new().await;
    let other = bench.other(SCHEDULES).await;
    bench.mem.lease(other, &ShardSet::ALL).await.unwrap();
    bench.rest(&mut bench.beats()).await;
    let mut leases = bench.leases();
    bench.step(&mut leases).await.unwrap();
    bench.mem.lease(other, &ShardSet::default()).await.unwrap();
    bench.pass(ms(50));
    assert_eq!(bench.step(&mut leases).await.unwrap(), Wake::Nudged);
    assert_eq!(bench.leased().shards(), share(&bench, other));
}

#[tokio::test]
async fn a_lease_that_is_doubted_is_requested_again() {
    let bench = Bench::new().await;
    bench.rest(&mut bench.beats()).await;
    let mut leases = bench.leases();
    bench.step(&mut leases).await.unwrap();
    let lost = Shard::all().next().unwrap();
    let rest: ShardSet = Shard::all().filter(|shard| *shard != lost).collect();
    bench.mem.lease(bench.me(), &rest).await.unwrap();
    bench.doubt_leases();
    bench.step(&mut leases).await.unwrap();
    assert_eq!(bench.calls.count("lease"), 2);
    let stands: Leases = bench.mem.lease(bench.me(), &ShardSet::ALL).await.unwrap();
    assert_eq!(*bench.leased(), stands, "with the epoch that it has now");
    bench.step(&mut leases).await.unwrap();
    assert_eq!(bench.calls.count("lease"), 2, "the doubt is gone");
}

#[tokio::test]
async fn a_call_that_failed_is_made_again_and_pauses_nobody_meanwhile() {
    let bench = Bench::new().await;
    bench.rest(&mut bench.beats()).await;
    let mut leases = bench.leases();
    bench.calls.spoil("lease", [Fault::After]);
    assert!(bench.step(&mut leases).await.is_err());
    assert!(!bench.shards().is_pausing());
    assert!(bench.heard(&bench.nudges().fire), "writes go on");
    assert!(bench.leased().shards().is_empty());
    bench.step(&mut leases).await.unwrap();
    assert!(bench.leased().shards().is_all());
}

#[tokio::test]
async fn a_node_that_stops_leases_nothing() {
    let bench = Bench::new().await;
    bench.rest(&mut bench.beats()).await;
    bench.begin_stopping();
    let wake = bench.step(&mut bench.leases()).await.unwrap();
    assert_eq!((wake, bench.calls.count("lease")), (Wake::Nudged, 0));
}

#[tokio::test]
async fn runs_of_a_scheduler_without_hands_are_left_to_this_node() {
    let bench = Bench::new().await;
    let other = bench.other(SCHEDULES).await;
    bench.rest(&mut bench.beats()).await;
    bench.step(&mut bench.leases()).await.unwrap();
    let theirs: ShardSet = Shard::all()
        .filter(|shard| !share(&bench, other).contains(*shard))
        .collect();
    assert_eq!(bench.left(), theirs);
}

#[tokio::test]
async fn runs_of_a_scheduler_with_room_are_not_left() {
    let bench = Bench::new().await;
    bench.other(ABLE).await;
    bench.rest(&mut bench.beats()).await;
    bench.step(&mut bench.leases()).await.unwrap();
    assert!(bench.left().is_empty());
}
