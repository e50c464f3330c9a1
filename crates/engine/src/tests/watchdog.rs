//! The watchdog: who is fenced, what becomes of the attempts of the gone, and which claims are taken up.

use std::sync::Arc;

use model::shard::ShardSet;
use model::{Definition, Delivery, Job, Outcome, PresenceId, Reason, RunId, RunState, limits};
use store::{EngineStore, Firing, Hint, Leases, StoreError};

use super::bench::{ABLE, Bench, SCHEDULES, run_of};
use super::world::{Fault, at, job_with, ms, once};
use crate::duty::Wake;

/// Fires the job's next slot, and claims its run for whoever holds the leases.
async fn fire(bench: &Bench, leases: &Leases, job: Job) -> RunId {
    let job = bench.put(job).await;
    let slot = job.next_slot.unwrap();
    let firing = Firing {
        decision: job.decide(slot, job.due_at(slot), &"second".into()),
        job: Arc::clone(&job),
        claim: true,
        knows: Vec::new(),
    };
    bench.mem.fire(leases, &[firing]).await.unwrap();
    RunId::for_slot(job.id, slot)
}

/// Another node, which holds a claim on the job's run, and leaves at this moment.
async fn abandoned(bench: &Bench, job: Job, left_at: i64) -> RunId {
    let other = bench.other(ABLE).await;
    let leases = bench.mem.lease(other, &ShardSet::ALL).await.unwrap();
    let run = fire(bench, &leases, job).await;
    bench.pass_to(at(left_at));
    bench.mem.leave(other).await.unwrap();
    bench.hold(&ShardSet::ALL).await;
    run
}

/// So many seconds pass, with a beat at the end of each.
async fn beat_for(bench: &Bench, seconds: u64) {
    for _ in 0..seconds {
        bench.pass(ms(1_000));
        bench.rest(&mut bench.beats()).await;
    }
}

async fn lives(bench: &Bench, presence: PresenceId) -> bool {
    let beat = bench.mem.beat(presence, &SCHEDULES).await;
    !matches!(beat, Err(StoreError::Fenced))
}

#[tokio::test]
async fn a_node_that_is_silent_for_a_lifetime_is_fenced() {
    let bench = Bench::new().await;
    let other = bench.other(SCHEDULES).await;
    bench.rest(&mut bench.beats()).await;
    let mut watchdog = bench.watchdog();
    beat_for(&bench, 2).await;
    bench.step(&mut watchdog).await.unwrap();
    assert_eq!(bench.calls.count("fence"), 0);
    beat_for(&bench, 1).await;
    bench.heard(&bench.nudges().beat);
    bench.hinted(bench.me()).await;
    bench.step(&mut watchdog).await.unwrap();
    assert!(!lives(&bench, other).await);
    assert_eq!(bench.metrics().fenced.get(), 1);
    assert!(bench.heard(&bench.nudges().beat), "its shards are free");
    assert_eq!(bench.hinted(bench.me()).await, [Hint::Leases]);
}

#[tokio::test]
async fn a_node_that_beats_is_not_fenced() {
    let bench = Bench::new().await;
    let other = bench.other(SCHEDULES).await;
    bench.rest(&mut bench.beats()).await;
    for _ in 0..6 {
        assert!(lives(&bench, other).await);
        beat_for(&bench, 1).await;
        bench.step(&mut bench.watchdog()).await.unwrap();
    }
    assert_eq!(bench.calls.count("fence"), 0);
}

#[tokio::test]
async fn a_node_whose_own_beats_were_broken_fences_nobody() {
    let bench = Bench::new().await;
    let other = bench.other(SCHEDULES).await;
    bench.rest(&mut bench.beats()).await;
    bench.pass(limits::PRESENCE_TTL * 2);
    bench.rest(&mut bench.beats()).await;
    bench.step(&mut bench.watchdog()).await.unwrap();
    assert!(lives(&bench, other).await);
}

#[tokio::test]
async fn it_wakes_when_the_next_node_may_have_lapsed() {
    let bench = Bench::new().await;
    bench.other(SCHEDULES).await;
    bench.rest(&mut bench.beats()).await;
    let mut watchdog = bench.watchdog();
    let wake = bench.step(&mut watchdog).await.unwrap();
    assert_eq!(wake, Wake::At(at(1_000)), "at least once a second");
    beat_for(&bench, 2).await;
    bench.pass(ms(400));
    let wake = bench.step(&mut watchdog).await.unwrap();
    assert_eq!(wake, Wake::At(at(3_000)));
}

#[tokio::test]
async fn an_attempt_of_the_gone_is_lost_and_tried_again() {
    let bench = Bench::new().await;
    let run = abandoned(&bench, once(1, 1_000), 2_000).await;
    bench.step(&mut bench.watchdog()).await.unwrap();
    bench.drain(&mut bench.settle()).await;
    let stands = bench.mem.live_run(run).unwrap();
    assert_eq!((stands.state, stands.attempt.0), (RunState::Retrying, 2));
    assert_eq!((stands.claim, stands.lost), (None, 1));
    assert_eq!(stands.attempts[0].outcome, Outcome::Lost);
    assert_eq!(stands.attempts[0].node.as_deref(), Some("second"));
}

#[tokio::test]
async fn a_claim_that_ended_before_its_run_was_due_is_handed_back() {
    let bench = Bench::new().await;
    let run = abandoned(&bench, once(1, 3_000), 2_000).await;
    bench.step(&mut bench.watchdog()).await.unwrap();
    bench.drain(&mut bench.settle()).await;
    let stands = bench.mem.live_run(run).unwrap();
    assert_eq!((stands.state, stands.attempt.0), (RunState::Ready, 1));
    assert_eq!((stands.claim, stands.attempts.len()), (None, 0));
}

#[tokio::test]
async fn a_lost_attempt_of_a_job_that_wants_no_second_delivery_is_dead() {
    let bench = Bench::new().await;
    let job = job_with(1, once(1, 1_000).def.schedule.clone(), |def| {
        def.delivery = Delivery::AtMostOnce;
    });
    let run = abandoned(&bench, job, 2_000).await;
    bench.step(&mut bench.watchdog()).await.unwrap();
    bench.drain(&mut bench.settle()).await;
    let ended = bench.run(run).await.unwrap();
    assert_eq!(
        (ended.state, ended.reason),
        (RunState::Dead, Some(Reason::Lost))
    );
}

#[tokio::test]
async fn it_is_dead_also_when_its_job_was_edited_since() {
    let bench = Bench::new().await;
    let wanted = once(1, 1_000).def.schedule.clone();
    let job = job_with(1, wanted, |def| def.delivery = Delivery::AtMostOnce);
    let id = job.id;
    let run = abandoned(&bench, job, 2_000).await;
    let now = bench.now();
    let edit = |job: &Job, by: &Arc<str>| {
        let mut def = Definition::clone(&job.def);
        def.delivery = Delivery::AtLeastOnce;
        job.edited(None, def, now, by)
    };
    bench.change(bench.job(id).await, edit).await;
    bench.step(&mut bench.watchdog()).await.unwrap();
    bench.drain(&mut bench.settle()).await;
    let ended = bench.run(run).await.unwrap();
    assert_eq!(
        (ended.state, ended.reason),
        (RunState::Dead, Some(Reason::Lost))
    );
}

#[tokio::test]
async fn the_gone_are_left_to_whoever_holds_their_shards() {
    let bench = Bench::new().await;
    let run = abandoned(&bench, once(1, 1_000), 2_000).await;
    let third = bench.other(ABLE).await;
    bench.hold(&ShardSet::default()).await;
    bench.mem.lease(third, &ShardSet::ALL).await.unwrap();
    bench.rest(&mut bench.beats()).await;
    bench.step(&mut bench.watchdog()).await.unwrap();
    assert_eq!(bench.calls.count("orphans"), 0);
    assert!(bench.mem.live_run(run).unwrap().claim.is_some());
}

#[tokio::test]
async fn a_claim_that_memory_does_not_know_is_taken_up_within_five_seconds() {
    let bench = Bench::holding().await;
    let mut watchdog = bench.watchdog();
    bench.step(&mut watchdog).await.unwrap();
    let run = fire(&bench, &bench.leased(), once(1, 10_000)).await;
    bench.pass(ms(4_900));
    bench.step(&mut watchdog).await.unwrap();
    assert_eq!(bench.held(), 0);
    bench.pass(ms(100));
    bench.step(&mut watchdog).await.unwrap();
    assert_eq!(bench.held(), 1);
    assert!(bench.heard(&bench.nudges().dispatch));
    bench.pass_to(at(10_000));
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    assert_eq!(bench.target.runs(), [run]);
}

#[tokio::test]
async fn claims_are_compared_at_once_when_an_answer_was_lost() {
    let bench = Bench::holding().await;
    let mut watchdog = bench.watchdog();
    bench.step(&mut watchdog).await.unwrap();
    fire(&bench, &bench.leased(), once(1, 1_000)).await;
    bench.compare_claims();
    bench.step(&mut watchdog).await.unwrap();
    assert_eq!(bench.held(), 1);
}

#[tokio::test]
async fn a_comparison_that_failed_is_made_again() {
    let bench = Bench::holding().await;
    fire(&bench, &bench.leased(), once(1, 1_000)).await;
    let mut watchdog = bench.watchdog();
    bench.calls.spoil("claim", [Fault::Before]);
    assert!(bench.step(&mut watchdog).await.is_err());
    assert_eq!(bench.held(), 0);
    bench.compare_claims();
    bench.step(&mut watchdog).await.unwrap();
    assert_eq!(bench.held(), 1);
}

#[tokio::test]
async fn claims_that_are_known_are_left_alone() {
    let bench = Bench::holding().await;
    bench.claimed(once(1, 1_000), 1_000).await;
    bench.step(&mut bench.watchdog()).await.unwrap();
    assert_eq!(
        (bench.calls.count("claims"), bench.calls.count("claim")),
        (1, 0)
    );
    assert_eq!(bench.held(), 1);
}

#[tokio::test]
async fn health_shows_the_oldest_that_is_due_and_unheld() {
    let bench = Bench::holding().await;
    let job = bench.put(once(1, 1_000)).await;
    bench.pass_to(at(6_000));
    let mut watchdog = bench.watchdog();
    bench.step(&mut watchdog).await.unwrap();
    assert_eq!(bench.health().oldest_due, ms(5_000));
    bench.rest(&mut bench.plan()).await;
    bench.rest(&mut bench.fire()).await;
    bench.step(&mut watchdog).await.unwrap();
    assert_eq!(bench.health().oldest_due, ms(0), "it is held now");
    assert!(bench.mem.live_run(run_of(&job, 1_000)).is_some());
}
