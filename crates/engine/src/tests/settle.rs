//! Settle: what is written of attempts that ended, and what follows from it.

use model::schedule::Every;
use model::{Job, Outcome, Overlap, Reason, Report, RetryHint, RunState, limits};

use super::bench::{Bench, run_of};
use super::world::{at, every, job_with, ms, once, seconds};

/// Waits for the end of its run, and so many seconds more.
fn after_completion(secs: u64) -> Job {
    let every: Every = seconds(secs).after_completion();
    job_with(1, every.into(), |_| {})
}

#[tokio::test]
async fn a_run_that_succeeded_leaves_for_history() {
    let bench = Bench::holding().await;
    let run = bench.started(once(1, 1_000), 1_000).await;
    assert_eq!(bench.held(), 1, "until its end is written");
    bench.drain(&mut bench.settle()).await;
    let ended = bench.run(run).await.unwrap();
    assert_eq!(ended.state, RunState::Succeeded);
    assert_eq!((bench.mem.live_run(run), bench.held()), (None, 0));
    let [attempt] = &ended.attempts[..] else {
        panic!("{ended:?}");
    };
    assert_eq!(attempt.outcome, Outcome::Succeeded);
    assert_eq!(attempt.dispatched_at, Some(at(1_000)));
    assert_eq!(attempt.node.as_deref(), Some("first"));
}

#[tokio::test]
async fn settle_waits_for_the_next_end_without_a_call() {
    let bench = Bench::holding().await;
    bench.drain(&mut bench.settle()).await;
    assert_eq!(bench.calls.count("settle"), 0);
}

#[tokio::test]
async fn ends_that_came_together_go_in_one_write() {
    let bench = Bench::holding().await;
    for number in 1..=5 {
        bench.put(once(number, 1_000)).await;
    }
    bench.fire_for(&mut bench.fire(), 1_000).await;
    bench.pass_to(at(1_000));
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    bench.drain(&mut bench.settle()).await;
    assert_eq!((bench.calls.count("settle"), bench.held()), (1, 0));
}

#[tokio::test]
async fn ends_from_which_something_may_follow_are_written_apart() {
    let bench = Bench::holding().await;
    bench.put(once(1, 1_000)).await;
    bench
        .put(job_with(2, seconds(1).into(), |def| {
            def.overlap = Overlap::QueueOne;
        }))
        .await;
    bench.fire_for(&mut bench.fire(), 1_000).await;
    bench.pass_to(at(1_000));
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    bench.drain(&mut bench.settle()).await;
    assert_eq!((bench.calls.count("settle"), bench.held()), (2, 0));
}

#[tokio::test]
async fn a_failed_attempt_is_due_again_after_its_delay() {
    let bench = Bench::holding().await;
    bench.target.answers(Report::failed("no"));
    let run = bench.started(once(1, 1_000), 1_000).await;
    bench.drain(&mut bench.settle()).await;
    let stands = bench.mem.live_run(run).unwrap();
    assert_eq!((stands.state, stands.attempt.0), (RunState::Retrying, 2));
    assert!(
        (at(2_000)..=at(2_300)).contains(&stands.due_at),
        "{stands:?}"
    );
    assert_eq!((bench.held(), bench.next_due()), (0, Some(stands.due_at)));
    assert!(bench.heard(&bench.nudges().fire));
}

#[tokio::test]
async fn a_retry_beyond_the_horizon_is_left_to_plan() {
    let bench = Bench::holding().await;
    let hint = RetryHint::After(limits::HORIZON * 2);
    bench
        .target
        .answers(Report::failed("later").with_retry(hint));
    bench.started(once(1, 1_000), 1_000).await;
    bench.drain(&mut bench.settle()).await;
    assert_eq!(bench.in_wheel(), 0);
}

#[tokio::test]
async fn a_retry_starts_again_under_the_next_number() {
    let bench = Bench::holding().await;
    bench.target.answers(Report::failed("no"));
    let run = bench.started(once(1, 1_000), 1_000).await;
    bench.drain(&mut bench.settle()).await;
    bench.target.answers(Report::succeeded());
    bench.pass(ms(1_500));
    bench.rest(&mut bench.fire()).await;
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    bench.drain(&mut bench.settle()).await;
    let ended = bench.run(run).await.unwrap();
    assert_eq!(
        (ended.state, ended.attempts.len()),
        (RunState::Succeeded, 2)
    );
    assert_eq!(bench.target.orders()[1].attempt.0, 2);
}

#[tokio::test]
async fn what_a_target_refuses_for_good_is_dead() {
    let bench = Bench::holding().await;
    bench
        .target
        .answers(Report::failed("gone").with_retry(RetryHint::Never));
    let run = bench.started(once(1, 1_000), 1_000).await;
    bench.drain(&mut bench.settle()).await;
    let ended = bench.run(run).await.unwrap();
    assert_eq!(
        (ended.state, ended.reason),
        (RunState::Dead, Some(Reason::Refused))
    );
    assert_eq!(bench.held(), 0);
}

#[tokio::test]
async fn the_last_attempt_allowed_is_the_last() {
    let bench = Bench::holding().await;
    bench.target.answers(Report::failed("no"));
    let once_only = job_with(1, once(1, 1_000).def.schedule.clone(), |def| {
        def.retry.attempts_max = 1;
    });
    let run = bench.started(once_only, 1_000).await;
    bench.drain(&mut bench.settle()).await;
    let ended = bench.run(run).await.unwrap();
    assert_eq!(
        (ended.state, ended.reason),
        (RunState::Dead, Some(Reason::AttemptsSpent))
    );
}

#[tokio::test]
async fn the_slot_that_follows_an_end_is_offered_to_plan() {
    let bench = Bench::holding().await;
    let job = after_completion(2);
    let id = job.id;
    bench.started(job, 2_000).await;
    assert_eq!(bench.job(id).await.next_slot, None, "it rests");
    bench.drain(&mut bench.settle()).await;
    assert_eq!(bench.job(id).await.next_due_at(), Some(at(4_000)));
    assert_eq!(bench.offered().await, [id]);
}

#[tokio::test]
async fn the_slot_that_follows_an_end_elsewhere_is_hinted_to_its_holder() {
    let bench = Bench::holding().await;
    let job = after_completion(2);
    let (tenant, id) = (job.tenant, job.id);
    bench.started(job, 2_000).await;
    let other = bench.other(super::bench::SCHEDULES).await;
    bench.hold(&model::shard::ShardSet::default()).await;
    bench.hinted(other).await;
    bench.drain(&mut bench.settle()).await;
    assert_eq!(bench.hinted(other).await, [store::Hint::Job(tenant, id)]);
    assert_eq!(bench.offered().await, []);
}

#[tokio::test]
async fn an_end_that_is_another_nodes_shard_is_hinted_to_its_holder() {
    let bench = Bench::holding().await;
    bench.target.answers(Report::failed("no"));
    let job = once(1, 1_000);
    let (tenant, id) = (job.tenant, job.id);
    bench.started(job, 1_000).await;
    let other = bench.other(super::bench::SCHEDULES).await;
    bench.hold(&model::shard::ShardSet::default()).await;
    bench.hinted(other).await;
    bench.drain(&mut bench.settle()).await;
    assert_eq!(bench.hinted(other).await, [store::Hint::Job(tenant, id)]);
    assert_eq!(bench.in_wheel(), 0, "its retry is the holder's");
    assert!(bench.heard(&bench.nudges().claim_due), "or may be taken");
}

#[tokio::test]
async fn nothing_is_written_while_leases_are_requested() {
    let bench = Bench::holding().await;
    bench.started(once(1, 1_000), 1_000).await;
    bench.set_pausing(true);
    let mut settle = bench.settle();
    bench.step(&mut settle).await.unwrap();
    assert_eq!((bench.calls.count("settle"), bench.held()), (0, 1));
    bench.set_pausing(false);
    bench.drain(&mut settle).await;
    assert_eq!((bench.calls.count("settle"), bench.held()), (1, 0));
}

#[tokio::test]
async fn an_end_is_written_although_the_presence_is_in_doubt() {
    let bench = Bench::holding().await;
    let run = bench.started(once(1, 1_000), 1_000).await;
    bench.clock.advance(limits::PRESENCE_TTL * 2);
    bench.drain(&mut bench.settle()).await;
    assert_eq!(bench.run(run).await.unwrap().state, RunState::Succeeded);
}

#[tokio::test]
async fn an_end_that_is_not_ours_any_more_is_forgotten() {
    let bench = Bench::holding().await;
    let run = bench.started(once(1, 1_000), 1_000).await;
    // Somebody fenced this node, and ended its attempt.
    bench.fail(run, at(5_000)).await;
    bench.drain(&mut bench.settle()).await;
    assert_eq!(bench.held(), 0);
    assert_eq!(bench.mem.live_run(run).unwrap().state, RunState::Retrying);
}

#[tokio::test]
async fn the_end_of_a_run_leaves_its_jobs_slots_alone() {
    let bench = Bench::holding().await;
    let job = every(1, 2);
    let (id, run) = (job.id, run_of(&job, 2_000));
    bench.started(job, 2_000).await;
    let before = bench.job(id).await;
    bench.drain(&mut bench.settle()).await;
    assert_eq!(bench.job(id).await, before);
    assert_eq!(bench.run(run).await.unwrap().state, RunState::Succeeded);
    assert_eq!(bench.next_due(), Some(at(4_000)));
}

#[tokio::test]
async fn ends_are_counted_by_how_they_ended() {
    let bench = Bench::holding().await;
    bench.started(once(1, 1_000), 1_000).await;
    bench.drain(&mut bench.settle()).await;
    let by = |outcome| {
        let label = crate::labels::ByOutcome {
            outcome: crate::labels::OutcomeLabel(outcome),
        };
        bench.metrics().settled.get_or_create(&label).get()
    };
    assert_eq!((by(Outcome::Succeeded), by(Outcome::Failed)), (1, 0));
    assert_eq!(bench.metrics().dispatched.get(), 1);
}
