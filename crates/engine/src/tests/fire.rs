//! Fire: when slots are written, what is written, and what becomes of writes that fail.

use model::shard::ShardSet;
use model::{CatchUpPolicy, JobState, Parts, Reason, RunState, limits};
use store::{DueRoom, EngineStore, Hint};

use super::bench::{ABLE, Bench, SCHEDULES, run_of};
use super::world::{Fault, at, every, job_with, ms, once, seconds};
use crate::duty::Wake;

#[tokio::test]
async fn a_slot_is_fired_a_lead_before_it_is_due_and_not_before() {
    let bench = Bench::holding().await;
    let job = bench.put(once(1, 1_000)).await;
    bench.rest(&mut bench.plan()).await;
    let mut fire = bench.fire();
    let Wake::At(moment) = bench.rest(&mut fire).await else {
        panic!("a slot is due");
    };
    assert!((at(950)..at(980)).contains(&moment), "{moment}");
    assert_eq!(bench.state(&job, 1_000).await, None);
    bench.pass_to(moment);
    bench.rest(&mut fire).await;
    let run = bench.slot(&job, 1_000).await.unwrap();
    assert_eq!((run.state, run.claim), (RunState::Ready, Some(bench.me())));
    assert_eq!(bench.job(job.id).await.state, JobState::Finished);
    assert_eq!((bench.held(), bench.in_wheel()), (1, 0));
    assert!(bench.heard(&bench.nudges().dispatch));
}

#[tokio::test]
async fn slots_that_come_up_together_go_in_one_write() {
    let bench = Bench::holding().await;
    for number in 1..=5 {
        bench.put(once(number, 1_000 + i64::from(number))).await;
    }
    bench.rest(&mut bench.plan()).await;
    bench.pass_to(at(975));
    bench.rest(&mut bench.fire()).await;
    assert_eq!((bench.calls.count("fire"), bench.held()), (1, 5));
    assert_eq!(bench.metrics().fired.get(), 5);
}

#[tokio::test]
async fn a_job_that_was_fired_waits_for_its_next_slot() {
    let bench = Bench::holding().await;
    let job = bench.put(every(1, 2)).await;
    let mut fire = bench.fire();
    bench.fire_for(&mut fire, 2_000).await;
    assert_eq!((bench.in_wheel(), bench.next_due()), (1, Some(at(4_000))));
    let stands = bench.job(job.id).await;
    assert_eq!(stands.next_due_at(), Some(at(4_000)));
    assert_eq!(stands.slot_last, Some(at(2_000)));
}

#[tokio::test]
async fn a_next_slot_beyond_the_horizon_is_left_to_plan() {
    let bench = Bench::holding().await;
    bench.put(every(1, 60)).await;
    bench.pass(ms(55_000));
    bench.fire_for(&mut bench.fire(), 60_000).await;
    assert_eq!((bench.held(), bench.in_wheel()), (1, 0));
}

#[tokio::test]
async fn a_write_that_failed_is_made_again() {
    let bench = Bench::holding().await;
    let job = bench.put(once(1, 1_000)).await;
    bench.rest(&mut bench.plan()).await;
    bench.pass_to(at(970));
    let mut fire = bench.fire();
    bench.calls.spoil("fire", [Fault::Before]);
    assert!(bench.step(&mut fire).await.is_err());
    assert_eq!((bench.held(), bench.in_wheel()), (0, 1), "it stays known");
    bench.rest(&mut fire).await;
    assert_eq!(bench.state(&job, 1_000).await, Some(RunState::Ready));
    assert_eq!(bench.held(), 1);
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_makes_one_run() {
    let bench = Bench::holding().await;
    let job = bench.put(every(1, 1)).await;
    bench.rest(&mut bench.plan()).await;
    bench.pass_to(at(970));
    let mut fire = bench.fire();
    bench.calls.spoil("fire", [Fault::After]);
    assert!(bench.step(&mut fire).await.is_err());
    bench.rest(&mut fire).await;
    assert_eq!(bench.mem.all_runs().len(), 1);
    assert_eq!((bench.held(), bench.next_due()), (1, Some(at(2_000))));
    assert_eq!(bench.job(job.id).await.slot_last, Some(at(1_000)));
}

#[tokio::test]
async fn a_node_that_is_not_sure_of_its_presence_writes_nothing() {
    let bench = Bench::holding().await;
    let job = bench.put(once(1, 1_000)).await;
    bench.rest(&mut bench.plan()).await;
    bench.clock.advance(limits::PRESENCE_TTL);
    let mut fire = bench.fire();
    assert_eq!(bench.rest(&mut fire).await, Wake::At(at(4_000)));
    assert_eq!(
        (bench.state(&job, 1_000).await, bench.in_wheel()),
        (None, 1)
    );
    bench.pass(ms(0));
    bench.rest(&mut fire).await;
    assert_eq!(bench.state(&job, 1_000).await, Some(RunState::Ready));
}

#[tokio::test]
async fn nothing_is_written_while_leases_are_requested() {
    let bench = Bench::holding().await;
    bench.put(once(1, 0)).await;
    bench.rest(&mut bench.plan()).await;
    let mut fire = bench.fire();
    bench.set_pausing(true);
    assert_eq!(bench.rest(&mut fire).await, Wake::Nudged);
    assert_eq!(bench.calls.count("fire"), 0);
    bench.set_pausing(false);
    bench.rest(&mut fire).await;
    assert_eq!(bench.held(), 1);
}

#[tokio::test]
async fn nothing_is_written_after_dispatch_was_closed() {
    let bench = Bench::holding().await;
    bench.put(once(1, 0)).await;
    bench.rest(&mut bench.plan()).await;
    bench.close();
    assert_eq!(bench.rest(&mut bench.fire()).await, Wake::Nudged);
    assert_eq!(bench.calls.count("fire"), 0);
}

#[tokio::test]
async fn a_lease_that_was_lost_fires_nothing_and_is_doubted() {
    let bench = Bench::holding().await;
    let job = bench.put(once(1, 1_000)).await;
    bench.rest(&mut bench.plan()).await;
    let other = bench.other(SCHEDULES).await;
    bench
        .mem
        .lease(bench.me(), &ShardSet::default())
        .await
        .unwrap();
    bench.mem.lease(other, &ShardSet::ALL).await.unwrap();
    bench.pass_to(at(970));
    bench.heard(&bench.nudges().beat);
    bench.rest(&mut bench.fire()).await;
    assert_eq!((bench.state(&job, 1_000).await, bench.held()), (None, 0));
    assert!(bench.heard(&bench.nudges().beat), "the next beat finds out");
    assert_eq!(bench.metrics().collided.get(), 1);
}

#[tokio::test]
async fn a_job_that_was_edited_since_it_was_read_is_read_again() {
    let bench = Bench::holding().await;
    let job = bench.put(every(1, 1)).await;
    bench.rest(&mut bench.plan()).await;
    bench.pass_to(at(970));
    let (now, def) = (bench.now(), every(1, 5).def.as_ref().clone());
    bench
        .change(bench.job(job.id).await, |job, by| {
            job.edited(None, def, now, by)
        })
        .await;
    bench.rest(&mut bench.fire()).await;
    assert_eq!((bench.state(&job, 1_000).await, bench.held()), (None, 0));
    assert_eq!(bench.offered().await, [job.id]);
}

#[tokio::test]
async fn a_run_that_nobody_holds_is_claimed() {
    let bench = Bench::holding().await;
    let job = bench.put(once(1, 60_000)).await;
    let run = bench.start(&job).await;
    bench.rest(&mut bench.plan()).await;
    bench.rest(&mut bench.fire()).await;
    assert_eq!(bench.mem.live_run(run).unwrap().claim, Some(bench.me()));
    assert_eq!((bench.held(), bench.in_wheel()), (1, 0));
}

#[tokio::test]
async fn a_run_that_another_was_faster_to_claim_is_left_to_it() {
    let bench = Bench::holding().await;
    let job = bench.put(once(1, 60_000)).await;
    let run = bench.start(&job).await;
    bench.rest(&mut bench.plan()).await;
    let other = bench.other(ABLE).await;
    let taken = bench
        .mem
        .claim_due(
            other,
            &ShardSet::ALL,
            DueRoom::for_earliest(bench.now(), [9; 3]),
        )
        .await;
    assert_eq!(taken.unwrap().len(), 1);
    bench.rest(&mut bench.fire()).await;
    assert_eq!(bench.mem.live_run(run).unwrap().claim, Some(other));
    assert_eq!((bench.held(), bench.in_wheel()), (0, 0));
    assert_eq!(bench.metrics().collided.get(), 1);
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_repeated() {
    let bench = Bench::holding().await;
    let job = bench.put(once(1, 60_000)).await;
    let run = bench.start(&job).await;
    bench.rest(&mut bench.plan()).await;
    let mut fire = bench.fire();
    bench.calls.spoil("claim", [Fault::After]);
    assert!(bench.step(&mut fire).await.is_err());
    assert_eq!((bench.held(), bench.in_wheel()), (0, 1));
    bench.rest(&mut fire).await;
    assert_eq!(
        (bench.held(), bench.mem.live_run(run).unwrap().attempt.0),
        (1, 1)
    );
}

#[tokio::test]
async fn the_backlog_is_written_apart_from_what_is_on_time() {
    let bench = Bench::holding().await;
    bench.put(once(1, 1_000)).await;
    bench.put(once(2, 5_000)).await;
    bench.pass(ms(5_000));
    bench.rest(&mut bench.plan()).await;
    bench.rest(&mut bench.fire()).await;
    assert_eq!((bench.calls.count("fire"), bench.held()), (2, 2));
}

#[tokio::test]
async fn missed_slots_are_one_entry_beside_the_one_that_catches_up() {
    let bench = Bench::holding().await;
    let job = bench.put(every(1, 60)).await;
    bench.pass(ms(330_000));
    bench.rest(&mut bench.plan()).await;
    bench.rest(&mut bench.fire()).await;
    let missed = bench.slot(&job, 60_000).await.unwrap();
    assert_eq!(
        (
            missed.state,
            missed.reason,
            missed.stretch.map(|it| it.count)
        ),
        (RunState::Skipped, Some(Reason::Missed), Some(4))
    );
    assert_eq!(bench.state(&job, 300_000).await, Some(RunState::Ready));
    assert_eq!(bench.job(job.id).await.next_due_at(), Some(at(360_000)));
}

#[tokio::test]
async fn a_job_that_catches_up_with_nothing_only_moves_on() {
    let bench = Bench::holding().await;
    let job = job_with(1, seconds(60).into(), |def| {
        def.catch_up.policy = CatchUpPolicy::None;
    });
    let job = bench.put(job).await;
    bench.pass(ms(330_000));
    bench.rest(&mut bench.plan()).await;
    bench.rest(&mut bench.fire()).await;
    assert_eq!((bench.held(), bench.mem.live_runs().len()), (0, 0));
    assert_eq!(bench.state(&job, 60_000).await, Some(RunState::Skipped));
    assert_eq!(bench.metrics().skipped.get(), 1);
}

#[tokio::test]
async fn a_node_that_only_schedules_leaves_its_runs_to_others_in_time() {
    let bench = Bench::with(|config| config.parts = Parts::from_code(2)).await;
    bench.hold(&ShardSet::ALL).await;
    let other = bench.other(ABLE).await;
    let job = bench.put(once(1, 1_000)).await;
    bench.rest(&mut bench.plan()).await;
    let mut fire = bench.fire();
    let Wake::At(moment) = bench.rest(&mut fire).await else {
        panic!("a slot is due");
    };
    assert!(
        (at(700)..at(800)).contains(&moment),
        "others have to hear of it"
    );
    bench.pass_to(moment);
    bench.rest(&mut fire).await;
    let run = bench.slot(&job, 1_000).await.unwrap();
    assert_eq!((run.state, run.claim), (RunState::Ready, None));
    assert_eq!(
        (bench.held(), bench.hinted(other).await),
        (0, vec![Hint::Ready])
    );
}

#[tokio::test]
async fn a_run_beyond_this_node_is_left_to_others() {
    let bench = Bench::without_executors().await;
    bench.hold(&ShardSet::ALL).await;
    let job = bench.put(once(1, 1_000)).await;
    bench.fire_for(&mut bench.fire(), 1_000).await;
    let run = bench.slot(&job, 1_000).await.unwrap();
    assert_eq!((run.state, run.claim), (RunState::Ready, None));
    assert_eq!((bench.held(), bench.in_wheel()), (0, 0));
    bench.rest(&mut bench.plan()).await;
    assert_eq!(bench.in_wheel(), 0, "nor is it read again for a while");
    bench.pass(ms(10_000));
    bench.rest(&mut bench.plan()).await;
    assert_eq!(
        bench.in_wheel(),
        1,
        "an edit may have given it another target"
    );
}

#[tokio::test]
async fn before_its_shards_are_given_up_a_node_fires_half_a_second_ahead() {
    let bench = Bench::holding().await;
    let (soon, later) = (bench.put(once(1, 400)).await, bench.put(once(2, 700)).await);
    bench.rest(&mut bench.plan()).await;
    bench.set_handing_over();
    let mut fire = bench.fire();
    bench.rest(&mut fire).await;
    assert_eq!(bench.state(&soon, 400).await, Some(RunState::Ready));
    assert_eq!(bench.state(&later, 700).await, None);
    assert!(bench.heard(&bench.nudges().fired_out));
}

#[tokio::test]
async fn a_node_that_is_crowded_leaves_slots_ready_while_others_have_room() {
    let bench = Bench::with(|config| config.running_max = 1).await;
    bench.hold(&ShardSet::ALL).await;
    bench.other(ABLE).await;
    bench.rest(&mut bench.beats()).await;
    bench.target.is_silent();
    bench.started(once(1, 1_000), 1_000).await;
    let job = bench.put(once(2, 2_000)).await;
    bench.fire_for(&mut bench.fire(), 2_000).await;
    let run = bench.mem.live_run(run_of(&job, 2_000)).unwrap();
    assert_eq!((run.claim, bench.held()), (None, 1));
}
