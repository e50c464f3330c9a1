//! Marks: what becomes of claims that somebody wants back, and what readers see of runs under way.

use model::{Job, Mark, Reason, Report, RunId, RunState, TenantId, limits};
use store::{Cancelled, ClientStore};

use super::bench::Bench;
use super::world::{Fault, at, every, ms, once};
use crate::duty::Wake;

/// Somebody pauses the job.
async fn pause(bench: &Bench, job: &Job) -> Vec<RunId> {
    let now = bench.now();
    let stands = bench.job(job.id).await;
    bench
        .change(stands, |job, by| job.paused(now, None, by))
        .await
}

/// Somebody cancels the run.
pub(super) async fn cancel(bench: &Bench, run: RunId) {
    let now = bench.now();
    let cancelled = bench.mem.cancel_run(TenantId::DEFAULT, run, now).await;
    assert!(matches!(cancelled, Ok(Cancelled::Marked)), "{cancelled:?}");
}

/// A beat brings the marks, and they are answered.
pub(super) async fn answer(bench: &Bench) {
    bench.rest(&mut bench.beats()).await;
    assert_eq!(bench.step(&mut bench.marks()).await.unwrap(), Wake::Nudged);
    bench.quiet().await;
}

#[tokio::test]
async fn a_run_that_was_not_dispatched_is_taken_back() {
    let bench = Bench::holding().await;
    let job = every(1, 5);
    let run = bench.claimed(job.clone(), 5_000).await;
    assert_eq!(pause(&bench, &job).await, [run]);
    assert_eq!(bench.mem.live_run(run).unwrap().mark, Some(Mark::TakeBack));
    bench.offered().await;
    answer(&bench).await;
    assert_eq!((bench.run(run).await, bench.held()), (None, 0));
    assert_eq!(bench.offered().await, [job.id], "it is decided again");
}

#[tokio::test]
async fn a_run_that_was_taken_back_does_not_start() {
    let bench = Bench::holding().await;
    let job = every(1, 5);
    bench.claimed(job.clone(), 5_000).await;
    pause(&bench, &job).await;
    bench.calls.spoil("withdraw", [Fault::Before]);
    bench.rest(&mut bench.beats()).await;
    assert!(bench.step(&mut bench.marks()).await.is_err());
    bench.pass_to(at(5_000));
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    assert!(bench.target.runs().is_empty());
    assert_eq!(bench.held(), 1, "the store has yet to hear of it");
    answer(&bench).await;
    assert_eq!(bench.held(), 0);
}

#[tokio::test]
async fn a_run_that_was_dispatched_is_too_late_to_take_back() {
    let bench = Bench::holding().await;
    bench.target.is_silent();
    let job = every(1, 5);
    let run = bench.claimed(job.clone(), 5_000).await;
    pause(&bench, &job).await;
    bench.pass_to(at(5_000));
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    answer(&bench).await;
    assert_eq!(bench.mem.live_run(run).unwrap().mark, Some(Mark::TooLate));
    assert_eq!((bench.running(), bench.held()), (1, 1));
}

#[tokio::test]
async fn a_cancelled_run_that_waits_ends_without_an_attempt() {
    let bench = Bench::holding().await;
    let run = bench.claimed(once(1, 1_000), 1_000).await;
    cancel(&bench, run).await;
    answer(&bench).await;
    bench.drain(&mut bench.settle()).await;
    let ended = bench.run(run).await.unwrap();
    assert_eq!(
        (ended.state, ended.reason),
        (RunState::Cancelled, Some(Reason::Requested))
    );
    assert!(bench.target.runs().is_empty());
    assert_eq!(bench.held(), 0);
}

#[tokio::test]
async fn a_cancelled_run_under_way_is_ended_where_it_stands() {
    let bench = Bench::holding().await;
    bench.target.is_silent();
    let run = bench.started(once(1, 1_000), 1_000).await;
    cancel(&bench, run).await;
    answer(&bench).await;
    assert_eq!(bench.running(), 0);
    bench.drain(&mut bench.settle()).await;
    assert_eq!(bench.run(run).await.unwrap().state, RunState::Cancelled);
}

#[tokio::test]
async fn a_run_that_failed_while_it_was_to_be_cancelled_is_not_tried_again() {
    let bench = Bench::holding().await;
    bench.target.is_silent();
    let run = bench.started(once(1, 1_000), 1_000).await;
    cancel(&bench, run).await;
    bench.rest(&mut bench.beats()).await;
    bench.target.answers(Report::failed("no"));
    bench.step(&mut bench.marks()).await.unwrap();
    bench.quiet().await;
    bench.drain(&mut bench.settle()).await;
    let ended = bench.run(run).await.unwrap();
    assert_eq!(
        (ended.state, ended.reason),
        (RunState::Cancelled, Some(Reason::Requested))
    );
}

#[tokio::test]
async fn a_run_under_way_for_a_second_is_shown_as_running() {
    let bench = Bench::holding().await;
    bench.target.is_silent();
    let run = bench.started(once(1, 1_000), 1_000).await;
    let mut marks = bench.marks();
    bench.pass(limits::RUNNING_MARK_AFTER - ms(1));
    assert_eq!(bench.step(&mut marks).await.unwrap(), Wake::Nudged);
    assert_eq!(bench.mem.live_run(run).unwrap().state, RunState::Ready);
    bench.pass(ms(1));
    bench.step(&mut marks).await.unwrap();
    let shown = bench.mem.live_run(run).unwrap();
    assert_eq!(shown.state, RunState::Running);
    assert_eq!(shown.dispatched_at, Some(at(1_000)));
    bench.step(&mut marks).await.unwrap();
    assert_eq!(bench.calls.count("mark_running"), 1, "once is enough");
}

#[tokio::test]
async fn a_run_by_hand_is_shown_as_running_at_once() {
    let bench = Bench::holding().await;
    bench.target.is_silent();
    let job = bench.put(once(1, 60_000)).await;
    let run = bench.start(&job).await;
    bench.rest(&mut bench.plan()).await;
    bench.rest(&mut bench.fire()).await;
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    assert!(bench.heard(&bench.nudges().marks));
    bench.step(&mut bench.marks()).await.unwrap();
    assert_eq!(bench.mem.live_run(run).unwrap().state, RunState::Running);
}

#[tokio::test]
async fn a_run_that_has_ended_is_not_shown_as_running() {
    let bench = Bench::holding().await;
    bench.started(once(1, 1_000), 1_000).await;
    bench.pass(limits::RUNNING_MARK_AFTER);
    bench.step(&mut bench.marks()).await.unwrap();
    assert_eq!(bench.calls.count("mark_running"), 0);
}

#[tokio::test]
async fn a_mark_that_failed_is_written_again() {
    let bench = Bench::holding().await;
    bench.target.is_silent();
    let run = bench.started(once(1, 1_000), 1_000).await;
    bench.pass(limits::RUNNING_MARK_AFTER);
    let mut marks = bench.marks();
    bench.calls.spoil("mark_running", [Fault::Before]);
    assert!(bench.step(&mut marks).await.is_err());
    bench.step(&mut marks).await.unwrap();
    assert_eq!(bench.mem.live_run(run).unwrap().state, RunState::Running);
}

#[tokio::test]
async fn a_run_whose_slot_has_come_is_not_marked() {
    let bench = Bench::holding().await;
    bench.target.is_silent();
    let job = every(1, 5);
    bench.started(job.clone(), 5_000).await;
    assert_eq!(pause(&bench, &job).await, []);
    answer(&bench).await;
    assert_eq!((bench.calls.count("withdraw"), bench.running()), (0, 1));
}
