//! Dispatch: what starts when, and what an attempt that ends leaves behind.

use model::shard::ShardSet;
use model::{AttemptNo, Lane, Outcome, Report, RunState, limits};

use super::bench::{Bench, run_of};
use super::world::{at, job_with, ms, once};
use crate::duty::Wake;

/// A one-off in a lane.
fn in_lane(number: u8, due: i64, lane: Lane) -> model::Job {
    job_with(number, once(number, due).def.schedule.clone(), |def| {
        def.lane = lane;
    })
}

/// A node that runs so many attempts at once.
async fn narrow(running_max: usize) -> Bench {
    let bench = Bench::with(|config| config.running_max = running_max).await;
    bench.hold(&ShardSet::ALL).await;
    bench
}

#[tokio::test]
async fn a_claimed_run_starts_at_its_due_time_and_not_before() {
    let bench = Bench::holding().await;
    let run = bench.claimed(once(1, 1_000), 1_000).await;
    let mut dispatch = bench.dispatch();
    assert_eq!(bench.rest(&mut dispatch).await, Wake::At(at(1_000)));
    bench.pass_to(at(999));
    bench.rest(&mut dispatch).await;
    bench.quiet().await;
    assert!(bench.target.runs().is_empty());
    bench.pass_to(at(1_000));
    assert_eq!(bench.rest(&mut dispatch).await, Wake::At(at(2_000)));
    bench.quiet().await;
    assert_eq!(bench.target.runs(), [run]);
}

#[tokio::test]
async fn nothing_is_written_at_the_due_moment() {
    let bench = Bench::holding().await;
    bench.claimed(once(1, 1_000), 1_000).await;
    let before = ["fire", "claim", "settle", "mark_running"].map(|it| bench.calls.count(it));
    bench.pass_to(at(1_000));
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    let after = ["fire", "claim", "settle", "mark_running"].map(|it| bench.calls.count(it));
    assert_eq!((after, bench.target.runs().len()), (before, 1));
}

#[tokio::test]
async fn no_more_attempts_are_under_way_than_may_be() {
    let bench = narrow(2).await;
    bench.target.is_silent();
    for number in 1..=3 {
        bench.put(once(number, 1_000)).await;
    }
    bench.fire_for(&mut bench.fire(), 1_000).await;
    bench.pass_to(at(1_000));
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    assert_eq!((bench.running(), bench.target.runs().len()), (2, 2));
    bench.target.answers(Report::succeeded());
    bench.quiet().await;
    assert_eq!(
        bench.target.runs().len(),
        3,
        "one that ends starts the next"
    );
    assert_eq!(bench.running(), 0);
}

#[tokio::test]
async fn the_critical_lane_starts_first() {
    let bench = narrow(1).await;
    bench.target.is_silent();
    let batch = bench.put(in_lane(1, 1_000, Lane::Batch)).await;
    let critical = bench.put(in_lane(2, 1_000, Lane::Critical)).await;
    bench.fire_for(&mut bench.fire(), 1_000).await;
    bench.pass_to(at(1_000));
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    assert_eq!(bench.target.runs(), [run_of(&critical, 1_000)]);
    bench.target.answers(Report::succeeded());
    bench.quiet().await;
    let both = [run_of(&critical, 1_000), run_of(&batch, 1_000)];
    assert_eq!(bench.target.runs(), both);
}

#[tokio::test]
async fn a_backlog_leaves_a_quarter_of_the_permits_free() {
    let bench = narrow(4).await;
    bench.target.is_silent();
    for number in 1..=6 {
        bench.put(once(number, 1_000)).await;
    }
    bench.pass_to(at(5_000));
    bench.rest(&mut bench.plan()).await;
    bench.rest(&mut bench.fire()).await;
    assert_eq!(bench.held(), 6);
    bench.rest(&mut bench.dispatch()).await;
    assert_eq!(bench.running(), 3);
    let on_time = bench.started(once(7, 6_000), 6_000).await;
    assert_eq!(
        (bench.running(), bench.target.runs().last()),
        (4, Some(&on_time))
    );
}

#[tokio::test]
async fn nothing_starts_while_the_presence_is_in_doubt() {
    let bench = Bench::holding().await;
    let run = bench.claimed(once(1, 1_000), 1_000).await;
    bench.clock.advance(limits::PRESENCE_TTL);
    let mut dispatch = bench.dispatch();
    bench.rest(&mut dispatch).await;
    bench.quiet().await;
    assert!(bench.target.runs().is_empty());
    bench.rest(&mut bench.beats()).await;
    assert!(bench.heard(&bench.nudges().dispatch));
    bench.rest(&mut dispatch).await;
    bench.quiet().await;
    assert_eq!(bench.target.runs(), [run]);
}

#[tokio::test]
async fn nothing_starts_once_it_is_closed() {
    let bench = Bench::holding().await;
    bench.claimed(once(1, 1_000), 1_000).await;
    bench.close();
    bench.pass_to(at(1_000));
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    assert!(bench.target.runs().is_empty());
}

#[tokio::test]
async fn a_run_that_is_due_no_more_waits_until_it_is_due_again() {
    let bench = narrow(1).await;
    bench.target.is_silent();
    for number in 1..=2 {
        bench.put(once(number, 1_000)).await;
    }
    bench.fire_for(&mut bench.fire(), 1_000).await;
    bench.pass_to(at(1_000));
    let mut dispatch = bench.dispatch();
    bench.rest(&mut dispatch).await;
    bench.quiet().await;
    bench.clock.step_wall(-500);
    bench.target.answers(Report::succeeded());
    bench.quiet().await;
    assert_eq!(bench.target.runs().len(), 1);
    assert_eq!(bench.rest(&mut dispatch).await, Wake::At(at(1_000)));
    bench.pass_to(at(1_000));
    bench.rest(&mut dispatch).await;
    bench.quiet().await;
    assert_eq!(bench.target.runs().len(), 2);
}

#[tokio::test]
async fn while_more_are_due_than_may_start_it_checks_whether_more_may() {
    let bench = Bench::with(|config| {
        config.running_max = limits::WIDTH_MIN * 2;
        config.origin_calls_max = config.running_max;
    })
    .await;
    bench.hold(&ShardSet::ALL).await;
    bench.target.is_silent();
    for number in 0..=u8::MAX {
        bench.put(once(number, 1_000)).await;
    }
    bench.fire_for(&mut bench.fire(), 1_000).await;
    let more = bench.claimed(once_more(), 1_000).await;
    let mut dispatch = bench.dispatch();
    bench.pass_to(at(995));
    bench.rest(&mut dispatch).await;
    bench.pass_to(at(1_000));
    let soon = at(1_000).plus(limits::WIDEN_EVERY);
    assert_eq!(bench.rest(&mut dispatch).await, Wake::At(soon));
    assert_eq!(bench.running(), limits::WIDTH_MIN);
    bench.pass_to(soon);
    bench.rest(&mut dispatch).await;
    bench.quiet().await;
    assert_eq!(bench.running(), limits::WIDTH_MIN + 1);
    assert!(bench.target.runs().contains(&more));
}

/// One more than numbers allow.
fn once_more() -> model::Job {
    let id = model::JobId::new(at(1), [1; 10]);
    model::Job {
        id,
        ..once(1, 1_000)
    }
}

#[tokio::test]
async fn an_attempt_that_takes_too_long_is_ended() {
    let bench = Bench::holding().await;
    bench.target.is_silent();
    let slow = job_with(1, once(1, 1_000).def.schedule.clone(), |def| {
        def.timeout = ms(300);
    });
    let run = bench.started(slow, 1_000).await;
    bench.pass(ms(299));
    bench.quiet().await;
    assert_eq!(bench.running(), 1);
    bench.pass(ms(1));
    bench.quiet().await;
    assert_eq!(bench.running(), 0);
    bench.drain(&mut bench.settle()).await;
    let stands = bench.mem.live_run(run).unwrap();
    assert_eq!(stands.state, RunState::Retrying);
    assert_eq!(stands.attempts[0].outcome, Outcome::TimedOut);
}

#[tokio::test]
async fn an_executor_that_panics_fails_the_attempt_and_nothing_else() {
    struct Broken;
    #[async_trait::async_trait]
    impl executor::Executor for Broken {
        async fn execute(&self, _order: executor::WorkOrder) -> Report {
            std::panic::resume_unwind(Box::new("the executor has a bug"))
        }
    }
    let bench = Bench::executing(std::sync::Arc::new(Broken)).await;
    bench.hold(&ShardSet::ALL).await;
    let run = bench.claimed(once(1, 1_000), 1_000).await;
    bench.pass_to(at(1_000));
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    bench.drain(&mut bench.settle()).await;
    let stands = bench.mem.live_run(run).unwrap();
    assert_eq!(stands.state, RunState::Retrying);
    assert_eq!((bench.running(), bench.held()), (0, 0));
}

#[tokio::test]
async fn an_attempt_is_delivered_with_its_number_and_slot() {
    let bench = Bench::holding().await;
    let run = bench.started(once(1, 1_000), 1_000).await;
    let order = bench.target.orders().remove(0);
    assert_eq!((order.run, order.attempt.0), (run, 1));
    assert_eq!(order.slot.map(|slot| slot.0), Some(at(1_000)));
    assert_eq!(&*order.node, "first");
}

#[tokio::test]
async fn a_store_that_cannot_say_what_signs_an_attempt_costs_none() {
    let bench = Bench::holding().await;
    bench.mem.set_secrets_away(true);
    let run = bench.claimed(once(1, 1_000), 1_000).await;
    bench.pass_to(at(1_000));
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    bench.drain(&mut bench.settle()).await;
    let waits = bench.mem.live_run(run).unwrap();
    assert_eq!(
        (waits.attempt, waits.dispatched_at),
        (AttemptNo::FIRST, None)
    );
    assert!(waits.attempts.is_empty() && bench.target.runs().is_empty());
    bench.mem.set_secrets_away(false);
    bench.pass(ms(250));
    bench.quiet().await;
    assert_eq!(bench.target.runs(), [run]);
}
