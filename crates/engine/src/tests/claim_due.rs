//! Claim due: runs that other nodes leave.

use model::shard::ShardSet;
use model::{JobId, RunId, RunState, limits};
use store::{EngineStore, Leases};

use super::bench::{Bench, SCHEDULES, run_of};
use super::world::{Fault, at, ms, once};
use crate::duty::Wake;

/// An executing node that has beaten, and another that holds all shards and leaves their runs.
async fn beside_a_scheduler(bench: &Bench) -> Leases {
    let other = bench.other(SCHEDULES).await;
    bench.rest(&mut bench.beats()).await;
    bench.are_left(ShardSet::ALL);
    bench.mem.lease(other, &ShardSet::ALL).await.unwrap()
}

/// A run that the other node has left, due at this moment.
async fn left(bench: &Bench, leases: &Leases, number: u8, due: i64) -> RunId {
    let job = bench.put(once(number, due)).await;
    let firing = store::Firing {
        decision: job.decide(job.next_slot.unwrap(), at(due), &"second".into()),
        job: job.clone(),
        claim: false,
        knows: Vec::new(),
    };
    bench.mem.fire(leases, &[firing]).await.unwrap();
    run_of(&job, due)
}

#[tokio::test]
async fn a_run_that_is_left_is_claimed_a_second_ahead() {
    let bench = Bench::new().await;
    let leases = beside_a_scheduler(&bench).await;
    let soon = left(&bench, &leases, 1, 900).await;
    let later = left(&bench, &leases, 2, 1_500).await;
    let wake = bench.step(&mut bench.claim_due()).await.unwrap();
    assert_eq!(wake, Wake::At(at(250)));
    assert_eq!(bench.mem.live_run(soon).unwrap().claim, Some(bench.me()));
    assert_eq!(bench.mem.live_run(later).unwrap().claim, None);
    assert_eq!(bench.held(), 1);
    assert!(bench.heard(&bench.nudges().dispatch));
}

#[tokio::test]
async fn nothing_is_claimed_before_a_beat_was_answered() {
    let bench = Bench::new().await;
    bench.are_left(ShardSet::ALL);
    let wake = bench.step(&mut bench.claim_due()).await.unwrap();
    assert_eq!(
        (wake, bench.calls.count("claim_due")),
        (Wake::At(at(1_000)), 0)
    );
}

#[tokio::test]
async fn nothing_is_claimed_where_nothing_is_left() {
    let bench = Bench::new().await;
    beside_a_scheduler(&bench).await;
    bench.are_left(ShardSet::default());
    let wake = bench.step(&mut bench.claim_due()).await.unwrap();
    assert_eq!(
        (wake, bench.calls.count("claim_due")),
        (Wake::At(at(1_000)), 0)
    );
}

#[tokio::test]
async fn a_node_that_is_not_sure_of_its_presence_claims_nothing() {
    let bench = Bench::new().await;
    beside_a_scheduler(&bench).await;
    bench.clock.advance(limits::PRESENCE_TTL);
    let wake = bench.step(&mut bench.claim_due()).await.unwrap();
    assert_eq!(
        (wake, bench.calls.count("claim_due")),
        (Wake::At(at(4_000)), 0)
    );
}

#[tokio::test]
async fn a_node_that_stops_claims_nothing() {
    let bench = Bench::new().await;
    beside_a_scheduler(&bench).await;
    bench.begin_stopping();
    bench.step(&mut bench.claim_due()).await.unwrap();
    assert_eq!(bench.calls.count("claim_due"), 0);
}

#[tokio::test]
async fn a_node_with_its_hands_full_claims_nothing() {
    let bench = Bench::with(|config| config.running_max = 1).await;
    let leases = beside_a_scheduler(&bench).await;
    left(&bench, &leases, 1, 500).await;
    left(&bench, &leases, 2, 500).await;
    let mut claim_due = bench.claim_due();
    bench.rest(&mut claim_due).await;
    assert_eq!(bench.held(), 1);
    let wake = bench.step(&mut claim_due).await.unwrap();
    assert_eq!((wake, bench.held()), (Wake::At(at(250)), 1));
}

#[tokio::test]
async fn while_leases_are_requested_it_claims_again_soon() {
    let bench = Bench::new().await;
    beside_a_scheduler(&bench).await;
    bench.set_pausing(true);
    let wake = bench.step(&mut bench.claim_due()).await.unwrap();
    assert_eq!((wake, bench.calls.count("claim_due")), (Wake::At(at(5)), 0));
}

#[tokio::test]
async fn a_full_answer_has_it_claim_again_at_once() {
    let bench = Bench::with(|config| config.running_max = 2).await;
    let leases = beside_a_scheduler(&bench).await;
    for number in 1..=3 {
        left(&bench, &leases, number, 500).await;
    }
    let mut claim_due = bench.claim_due();
    assert_eq!(bench.step(&mut claim_due).await.unwrap(), Wake::Now);
    assert_eq!(bench.held(), 1, "one of the lane, by its weight");
    bench.rest(&mut claim_due).await;
    assert_eq!(bench.held(), 2);
}

#[tokio::test]
async fn what_is_on_time_is_claimed_before_an_older_backlog() {
    let bench = Bench::with(|config| config.running_max = 1).await;
    let leases = beside_a_scheduler(&bench).await;
    let older = left(&bench, &leases, 1, 999).await;
    let on_time = left(&bench, &leases, 2, 1_000).await;
    bench.pass(ms(2_000));
    bench.rest(&mut bench.claim_due()).await;
    let claim = |run| bench.mem.live_run(run).unwrap().claim;
    assert_eq!((claim(on_time), claim(older)), (Some(bench.me()), None));
}

#[tokio::test]
async fn the_backlog_leaves_room_for_what_is_on_time() {
    let bench = Bench::with(|config| config.running_max = 8).await;
    let leases = beside_a_scheduler(&bench).await;
    for number in 1..=9 {
        left(&bench, &leases, number, 500).await;
    }
    bench.pass(ms(2_000));
    let (mut claim_due, mut dispatch) = (bench.claim_due(), bench.dispatch());
    bench.target.is_silent();
    for _ in 0..9 {
        bench.step(&mut claim_due).await.unwrap();
        bench.step(&mut dispatch).await.unwrap();
    }
    assert_eq!(bench.held(), 6);
    left(&bench, &leases, 10, 2_000).await;
    bench.rest(&mut claim_due).await;
    assert_eq!(bench.held(), 7);
}

#[tokio::test]
async fn while_what_is_on_time_fills_a_node_the_backlog_still_moves() {
    let bench = Bench::with(|config| config.running_max = 1).await;
    let leases = beside_a_scheduler(&bench).await;
    let older = left(&bench, &leases, 1, 500).await;
    let (mut claim_due, mut dispatch) = (bench.claim_due(), bench.dispatch());
    let mut settle = bench.settle();
    for number in 2..=17 {
        bench.pass(ms(2_000));
        left(&bench, &leases, number, i64::from(number - 1) * 2_000).await;
        bench.step(&mut claim_due).await.unwrap();
        bench.rest(&mut dispatch).await;
        bench.quiet().await;
        bench.drain(&mut settle).await;
        assert_eq!(bench.held(), 0);
    }
    let started = bench.target.runs();
    let place = started.iter().position(|run| *run == older);
    assert_eq!((started.len(), place), (16, Some(15)));
}

#[tokio::test]
async fn claims_whose_answer_was_lost_are_compared_and_taken_up() {
    let bench = Bench::new().await;
    let leases = beside_a_scheduler(&bench).await;
    let run = left(&bench, &leases, 1, 500).await;
    bench.calls.spoil("claim_due", [Fault::After]);
    bench.heard(&bench.nudges().watchdog);
    assert!(bench.step(&mut bench.claim_due()).await.is_err());
    assert_eq!(bench.mem.live_run(run).unwrap().claim, Some(bench.me()));
    assert_eq!(bench.held(), 0);
    assert!(bench.heard(&bench.nudges().watchdog));
    bench.step(&mut bench.watchdog()).await.unwrap();
    assert_eq!(bench.held(), 1);
}

#[tokio::test]
async fn what_is_beyond_this_node_is_handed_back_under_the_same_number() {
    let bench = Bench::without_executors().await;
    let leases = beside_a_scheduler(&bench).await;
    let run = left(&bench, &leases, 1, 500).await;
    bench.step(&mut bench.claim_due()).await.unwrap();
    assert_eq!(bench.held(), 1, "until that is written");
    bench.drain(&mut bench.settle()).await;
    let stands = bench.mem.live_run(run).unwrap();
    assert_eq!((stands.state, stands.claim), (RunState::Ready, None));
    assert_eq!((stands.attempt.0, bench.held()), (1, 0));
    bench.mem.leave(leases.presence).await.unwrap();
    bench.hold(&ShardSet::ALL).await;
    bench.rest(&mut bench.plan()).await;
    assert_eq!(bench.in_wheel(), 0, "nor is it claimed again for a while");
}

#[tokio::test]
async fn what_is_beyond_this_node_is_handed_back_also_where_its_answer_was_lost() {
    let bench = Bench::without_executors().await;
    let leases = beside_a_scheduler(&bench).await;
    let run = left(&bench, &leases, 1, 500).await;
    bench.calls.spoil("claim_due", [Fault::After]);
    assert!(bench.step(&mut bench.claim_due()).await.is_err());
    bench.step(&mut bench.watchdog()).await.unwrap();
    bench.drain(&mut bench.settle()).await;
    let stands = bench.mem.live_run(run).unwrap();
    assert_eq!((stands.state, stands.claim), (RunState::Ready, None));
    assert_eq!((stands.attempt.0, bench.held()), (1, 0));
}

#[tokio::test]
async fn what_was_claimed_starts_when_it_is_due() {
    let bench = Bench::new().await;
    let leases = beside_a_scheduler(&bench).await;
    let run = left(&bench, &leases, 1, 500).await;
    bench.step(&mut bench.claim_due()).await.unwrap();
    let mut dispatch = bench.dispatch();
    assert_eq!(bench.rest(&mut dispatch).await, Wake::At(at(500)));
    bench.pass(ms(500));
    bench.rest(&mut dispatch).await;
    bench.quiet().await;
    assert_eq!(bench.target.runs(), [run]);
    assert_eq!(bench.offered().await, Vec::<JobId>::new());
}
