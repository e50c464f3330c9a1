//! Payloads: large ones are read when their attempts start.

use bytes::Bytes;
use model::{Definition, Job, RunState, limits};
use store::ClientStore;

use super::bench::Bench;
use super::world::{Fault, at, job_with, once};
use crate::duty::Wake;

/// A payload that is too large to be read ahead.
fn large(byte: u8) -> Bytes {
    Bytes::from(vec![byte; limits::PAYLOAD_INLINE_MAX + 1])
}

/// A job with this payload.
fn with_payload(payload: Bytes) -> Job {
    job_with(1, once(1, 1_000).def.schedule.clone(), |def| {
        def.payload = Some(payload);
    })
}

/// The job's run is due, and its attempt starts.
async fn start(bench: &Bench, job: Job) -> model::RunId {
    let run = bench.claimed(job, 1_000).await;
    bench.pass_to(at(1_000));
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    run
}

#[tokio::test]
async fn nothing_wanted_is_nothing_read() {
    let bench = Bench::holding().await;
    assert_eq!(
        bench.step(&mut bench.payloads()).await.unwrap(),
        Wake::Nudged
    );
    assert_eq!(bench.calls.count("payloads"), 0);
}

#[tokio::test]
async fn a_small_payload_is_sent_without_a_read() {
    let bench = Bench::holding().await;
    start(&bench, with_payload(Bytes::from_static(b"{}"))).await;
    assert_eq!(bench.target.payload(), Some(Bytes::from_static(b"{}")));
    assert_eq!(bench.calls.count("payloads"), 0);
}

#[tokio::test]
async fn a_large_payload_is_read_before_its_attempt_leaves() {
    let bench = Bench::holding().await;
    let run = start(&bench, with_payload(large(7))).await;
    assert!(bench.target.runs().is_empty(), "it waits for its payload");
    assert!(bench.heard(&bench.nudges().payloads));
    assert_eq!(bench.step(&mut bench.payloads()).await.unwrap(), Wake::Now);
    bench.quiet().await;
    assert_eq!(bench.target.runs(), [run]);
    assert_eq!(bench.target.payload(), Some(large(7)));
}

#[tokio::test]
async fn an_attempt_that_waited_for_its_payload_left_when_it_had_it() {
    let bench = Bench::holding().await;
    let run = start(&bench, with_payload(large(7))).await;
    bench.pass_to(at(1_250));
    bench.step(&mut bench.payloads()).await.unwrap();
    bench.quiet().await;
    bench.drain(&mut bench.settle()).await;
    let attempt = &bench.run(run).await.unwrap().attempts[0];
    assert_eq!(attempt.dispatched_at, Some(at(1_250)));
}

#[tokio::test]
async fn a_read_that_failed_is_repeated() {
    let bench = Bench::holding().await;
    let run = start(&bench, with_payload(large(7))).await;
    bench.heard(&bench.nudges().payloads);
    let mut payloads = bench.payloads();
    bench.calls.spoil("payloads", [Fault::Before]);
    assert!(bench.step(&mut payloads).await.is_err());
    bench.quiet().await;
    assert!(bench.heard(&bench.nudges().payloads));
    bench.step(&mut payloads).await.unwrap();
    bench.quiet().await;
    assert_eq!(bench.target.runs(), [run]);
}

#[tokio::test]
async fn an_attempt_whose_payload_was_edited_meanwhile_is_handed_back() {
    let bench = Bench::holding().await;
    let job = with_payload(large(7));
    let id = job.id;
    let run = start(&bench, job).await;
    let (now, stands) = (bench.now(), bench.job(id).await);
    let def = Definition {
        payload: Some(large(8)),
        ..stands.def.as_ref().clone()
    };
    bench
        .change(stands, |job, by| job.edited(None, def, now, by))
        .await;
    bench.step(&mut bench.payloads()).await.unwrap();
    bench.quiet().await;
    bench.drain(&mut bench.settle()).await;
    let stands = bench.mem.live_run(run).unwrap();
    assert_eq!((stands.state, stands.claim), (RunState::Ready, None));
    assert_eq!((stands.attempt.0, bench.running()), (1, 0));
    assert!(bench.target.runs().is_empty());
}

#[tokio::test]
async fn an_attempt_that_is_not_due_any_more_when_its_payload_comes_is_handed_back() {
    let bench = Bench::holding().await;
    let run = start(&bench, with_payload(large(7))).await;
    bench.clock.step_wall(-500);
    bench.step(&mut bench.payloads()).await.unwrap();
    bench.quiet().await;
    assert!(bench.target.runs().is_empty(), "nothing leaves early");
    bench.drain(&mut bench.settle()).await;
    let stands = bench.mem.live_run(run).unwrap();
    assert_eq!((stands.state, stands.claim), (RunState::Ready, None));
    assert_eq!(stands.dispatched_at, None);
    assert_eq!((stands.attempt.0, bench.running()), (1, 0));
}

#[tokio::test]
async fn payloads_that_are_wanted_together_are_read_together() {
    let bench = Bench::holding().await;
    for number in 1..=3 {
        let schedule = once(number, 1_000).def.schedule.clone();
        bench
            .put(job_with(number, schedule, |def| {
                def.payload = Some(large(number))
            }))
            .await;
    }
    bench.fire_for(&mut bench.fire(), 1_000).await;
    bench.pass_to(at(1_000));
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    bench.step(&mut bench.payloads()).await.unwrap();
    bench.quiet().await;
    assert_eq!(
        (bench.calls.count("payloads"), bench.target.runs().len()),
        (1, 3)
    );
    assert_eq!(bench.mem.count_live().await.unwrap(), 3);
}
