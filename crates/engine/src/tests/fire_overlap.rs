//! Fire: slots that are due while a run of their job lives.

use std::time::Duration;

use model::policy::CatchUp;
use model::shard::ShardSet;
use model::{CatchUpPolicy, Completion, Mark, Overlap, Reason, Report, RunId, RunState, Verdict};
use store::{DueRoom, EngineStore, Settlement};

use super::bench::{ABLE, Bench, run_of};
use super::world::{at, job_with, ms, seconds};
use crate::duty::Wake;
use crate::fire::Fire;

/// A job that is due every second, by which slots overlap so.
fn job(overlap: Overlap) -> model::Job {
    job_with(1, seconds(1).into(), |def| def.overlap = overlap)
}

/// The job's first run is under way, and does not end before the target is released.
async fn under_way(bench: &Bench, overlap: Overlap) -> (RunId, Fire) {
    bench.target.is_silent();
    let mut fire = bench.fire();
    let job = bench.put(job(overlap)).await;
    bench.fire_for(&mut fire, 1_000).await;
    bench.pass_to(at(1_000));
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    let run = run_of(&job, 1_000);
    assert_eq!(bench.target.runs(), [run]);
    (run, fire)
}

/// Every attempt under way succeeds, and its end is written.
async fn end(bench: &Bench) {
    bench.target.answers(Report::succeeded());
    bench.quiet().await;
    bench.drain(&mut bench.settle()).await;
}

#[tokio::test]
async fn a_slot_that_overlaps_is_skipped_when_it_is_due_and_not_before() {
    let bench = Bench::holding().await;
    let (_, mut fire) = under_way(&bench, Overlap::Skip).await;
    let job = job(Overlap::Skip);
    bench.pass_to(at(1_970));
    assert_eq!(bench.rest(&mut fire).await, Wake::At(at(2_000)));
    assert_eq!(bench.state(&job, 2_000).await, None);
    bench.pass_to(at(2_000));
    bench.rest(&mut fire).await;
    let skipped = bench.slot(&job, 2_000).await.unwrap();
    assert_eq!(
        (skipped.state, skipped.reason),
        (RunState::Skipped, Some(Reason::Overlap))
    );
    assert_eq!((bench.held(), bench.next_due()), (1, Some(at(3_000))));
}

#[tokio::test]
async fn the_end_of_the_run_before_it_lets_a_slot_go() {
    let bench = Bench::holding().await;
    let (_, mut fire) = under_way(&bench, Overlap::Skip).await;
    let job = job(Overlap::Skip);
    bench.pass_to(at(1_970));
    bench.rest(&mut fire).await;
    bench.heard(&bench.nudges().fire);
    bench.pass_to(at(1_980));
    end(&bench).await;
    assert!(bench.heard(&bench.nudges().fire), "fire waits for it");
    bench.rest(&mut fire).await;
    let run = bench.slot(&job, 2_000).await.unwrap();
    assert_eq!((run.state, run.claim), (RunState::Ready, Some(bench.me())));
}

#[tokio::test]
async fn an_end_that_is_not_written_yet_still_keeps_a_slot_waiting() {
    let bench = Bench::holding().await;
    let (_, mut fire) = under_way(&bench, Overlap::Skip).await;
    bench.target.answers(Report::succeeded());
    bench.quiet().await;
    bench.pass_to(at(1_970));
    assert_eq!(bench.rest(&mut fire).await, Wake::At(at(2_000)));
    assert_eq!(bench.calls.count("fire"), 1);
}

#[tokio::test]
async fn a_run_that_had_ended_is_waited_for_and_is_no_overlap_while_its_end_is_not_written() {
    let bench = Bench::holding().await;
    let (_, mut fire) = under_way(&bench, Overlap::Skip).await;
    bench.pass_to(at(1_500));
    bench.target.answers(Report::succeeded());
    bench.quiet().await;
    bench.pass_to(at(2_000));
    bench.rest(&mut fire).await;
    let second = bench.slot(&job(Overlap::Skip), 2_000).await.unwrap();
    assert_eq!(
        (second.state, second.waits_for_turn()),
        (RunState::Ready, true)
    );
}

#[tokio::test]
async fn a_slot_after_a_run_by_hand_is_fired_ahead_as_ever() {
    let bench = Bench::holding().await;
    let job = bench.put(job(Overlap::Skip)).await;
    bench.start(&job).await;
    let mut fire = bench.fire();
    bench.rest(&mut bench.plan()).await;
    bench.rest(&mut fire).await;
    bench.rest(&mut bench.dispatch()).await;
    end(&bench).await;
    assert_eq!((bench.target.runs().len(), bench.held()), (1, 0));
    bench.pass_to(at(970));
    bench.rest(&mut fire).await;
    assert_eq!(bench.state(&job, 1_000).await, Some(RunState::Ready));
}

#[tokio::test]
async fn a_run_that_started_late_is_given_as_long_before_it_counts() {
    let bench = Bench::holding().await;
    bench.target.is_silent();
    let mut fire = bench.fire();
    bench.put(job(Overlap::Skip)).await;
    bench.fire_for(&mut fire, 1_000).await;
    bench.pass_to(at(1_200));
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    bench.pass_to(at(1_970));
    assert_eq!(bench.rest(&mut fire).await, Wake::At(at(2_200)));
}

#[tokio::test]
async fn a_slot_behind_a_call_whose_work_may_be_reported_elsewhere_is_queried_when_it_is_due() {
    let bench = Bench::holding().await;
    bench.target.is_silent();
    bench.step(&mut bench.beats()).await.unwrap();
    let mut fire = bench.fire();
    let job = job_with(1, seconds(1).into(), |def| {
        def.completion = Completion::Callback {
            heartbeat_within: ms(60_000),
        };
    });
    bench.put(job).await;
    bench.fire_for(&mut fire, 1_000).await;
    bench.pass_to(at(1_200));
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    assert_eq!(bench.target.runs().len(), 1);
    bench.pass_to(at(1_970));
    assert_eq!(bench.rest(&mut fire).await, Wake::At(at(2_000)));
}

#[tokio::test]
async fn a_slot_behind_a_run_of_another_node_is_queried_when_its_job_was_written() {
    let bench = Bench::holding().await;
    let job = bench.put(job(Overlap::Skip)).await;
    let by_hand = bench.start(&job).await;
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
    let (mut plan, mut fire) = (bench.plan(), bench.fire());
    bench.rest(&mut plan).await;
    bench.pass_to(at(1_000));
    assert_eq!(bench.rest(&mut fire).await, Wake::At(at(1_250)));
    let settlement = Settlement {
        run: bench.mem.live_run(by_hand).unwrap(),
        verdict: Verdict::Succeed,
        attempt: None,
    };
    bench.mem.settle(other, &[settlement]).await.unwrap();
    bench.offer(&job);
    bench.rest(&mut plan).await;
    assert!(bench.heard(&bench.nudges().fire));
    bench.rest(&mut fire).await;
    assert_eq!(bench.state(&job, 1_000).await, Some(RunState::Ready));
}

#[tokio::test]
async fn a_slot_behind_a_run_that_was_not_dispatched_waits_its_turn() {
    let bench = Bench::holding().await;
    let mut fire = bench.fire();
    let job = bench.put(job(Overlap::Skip)).await;
    bench.fire_for(&mut fire, 1_000).await;
    bench.pass_to(at(2_000));
    bench.rest(&mut fire).await;
    let second = bench.slot(&job, 2_000).await.unwrap();
    assert_eq!(
        (second.state, second.waits_for_turn()),
        (RunState::Ready, true)
    );
    assert_eq!(second.claim, None);
}

#[tokio::test]
async fn a_queued_slot_waits_in_the_store_and_is_claimed_when_it_is_freed() {
    let bench = Bench::holding().await;
    let (_, mut fire) = under_way(&bench, Overlap::QueueOne).await;
    let queued = run_of(&job(Overlap::QueueOne), 2_000);
    bench.pass_to(at(2_000));
    bench.rest(&mut fire).await;
    assert!(bench.mem.live_run(queued).unwrap().waits_for_turn());
    assert_eq!(bench.held(), 1);
    bench.pass_to(at(2_100));
    end(&bench).await;
    assert_eq!(
        (bench.held(), bench.in_wheel()),
        (0, 2),
        "it and the next slot"
    );
    bench.rest(&mut fire).await;
    let run = bench.mem.live_run(queued).unwrap();
    assert_eq!((run.waits_for_turn(), run.claim), (false, Some(bench.me())));
}

/// Otherwise they would fall behind by a second each, and be skipped as missed instead.
#[tokio::test]
async fn missed_slots_behind_a_run_that_counts_are_decided_one_at_once_after_another() {
    let bench = Bench::holding().await;
    bench.target.is_silent();
    let mut fire = bench.fire();
    let all = CatchUp {
        policy: CatchUpPolicy::All,
        window: Duration::from_secs(3_600),
        max: 100,
    };
    let job = job_with(1, seconds(1).into(), |def| {
        (def.overlap, def.catch_up) = (Overlap::QueueOne, all);
    });
    let job = bench.put(job).await;
    bench.fire_for(&mut fire, 1_000).await;
    bench.pass_to(at(1_000));
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    assert_eq!(bench.target.runs(), [run_of(&job, 1_000)]);
    bench.pass_to(at(20_000));
    bench.rest(&mut fire).await;
    assert_eq!(bench.job(job.id).await.next_due_at(), Some(at(21_000)));
    assert_eq!(bench.state(&job, 2_000).await, Some(RunState::Ready));
    for slot in 3..=20 {
        let skipped = bench.slot(&job, slot * 1_000).await.unwrap();
        assert_eq!(skipped.reason, Some(Reason::Overlap), "{slot}");
    }
}

#[tokio::test]
async fn a_slot_that_replaces_a_run_has_it_marked() {
    let bench = Bench::holding().await;
    let (first, mut fire) = under_way(&bench, Overlap::CancelRunning).await;
    bench.pass_to(at(2_000));
    bench.rest(&mut fire).await;
    let mark = bench.mem.live_run(first).unwrap().mark;
    assert_eq!(mark, Some(Mark::Cancel(Reason::Replaced)));
    let second = run_of(&job(Overlap::CancelRunning), 2_000);
    assert!(bench.mem.live_run(second).unwrap().waits_for_turn());
}

#[tokio::test]
async fn slots_that_may_overlap_are_fired_ahead_as_ever() {
    let bench = Bench::holding().await;
    let (_, mut fire) = under_way(&bench, Overlap::Allow).await;
    bench.pass_to(at(1_970));
    bench.rest(&mut fire).await;
    let state = bench.state(&job(Overlap::Allow), 2_000).await;
    assert_eq!((state, bench.held()), (Some(RunState::Ready), 2));
}

#[tokio::test]
async fn a_slot_behind_a_run_of_another_node_is_fired_again() {
    let bench = Bench::holding().await;
    let job = bench.put(job(Overlap::Skip)).await;
    let by_hand = bench.start(&job).await;
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
    let mut fire = bench.fire();
    bench.rest(&mut bench.plan()).await;
    bench.pass_to(at(970));
    assert_eq!(bench.rest(&mut fire).await, Wake::At(at(1_000)));
    bench.pass_to(at(1_000));
    assert_eq!(bench.rest(&mut fire).await, Wake::At(at(1_250)));
    assert_eq!(bench.state(&job, 1_000).await, None);
    let settlement = Settlement {
        run: bench.mem.live_run(by_hand).unwrap(),
        verdict: Verdict::Succeed,
        attempt: None,
    };
    bench.mem.settle(other, &[settlement]).await.unwrap();
    bench.pass_to(at(1_250));
    bench.rest(&mut fire).await;
    assert_eq!(bench.state(&job, 1_000).await, Some(RunState::Ready));
}

#[tokio::test]
async fn an_edit_takes_the_place_of_a_slot_that_waits() {
    let bench = Bench::holding().await;
    let (_, mut fire) = under_way(&bench, Overlap::Skip).await;
    bench.pass_to(at(1_970));
    bench.rest(&mut fire).await;
    let stands = bench.job(job(Overlap::Skip).id).await;
    let (now, def) = (bench.now(), job_with(1, seconds(5).into(), |_| {}).def);
    let def = def.as_ref().clone();
    bench
        .change(stands.clone(), |job, by| job.edited(None, def, now, by))
        .await;
    bench.offer(&stands);
    bench.rest(&mut bench.plan()).await;
    bench.pass(ms(100));
    bench.rest(&mut fire).await;
    assert_eq!(
        bench.state(&stands, 2_000).await,
        None,
        "it is no slot any more"
    );
    assert_eq!(bench.next_due(), Some(at(5_000)));
}
