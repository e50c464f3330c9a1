//! Settle: writes that fail, and data that a store will not have.

use model::{Report, RunId, RunState};

use super::bench::{Bench, run_of};
use super::world::{Fault, at, once};
use crate::duty::{Duty, Wake};

/// So many attempts have ended, and none of the ends is written.
async fn ended(bench: &Bench, count: u8) -> Vec<RunId> {
    bench
        .target
        .answers(Report::succeeded().with_output("well done".into()));
    let jobs = (1..=count).map(|number| once(number, 1_000));
    let mut runs = Vec::new();
    for job in jobs {
        runs.push(run_of(&job, 1_000));
        bench.put(job).await;
    }
    bench.fire_for(&mut bench.fire(), 1_000).await;
    bench.pass_to(at(1_000));
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    assert_eq!((bench.running(), bench.held()), (0, usize::from(count)));
    runs
}

async fn states(bench: &Bench, runs: &[RunId]) -> Vec<RunState> {
    let mut states = Vec::new();
    for run in runs {
        states.push(bench.run(*run).await.unwrap().state);
    }
    states
}

#[tokio::test]
async fn a_write_that_failed_is_made_again() {
    let bench = Bench::holding().await;
    let runs = ended(&bench, 3).await;
    let mut settle = bench.settle();
    bench.calls.spoil("settle", [Fault::Before]);
    assert!(bench.step(&mut settle).await.is_err());
    assert_eq!(bench.held(), 3);
    bench.drain(&mut settle).await;
    assert_eq!(states(&bench, &runs).await, [RunState::Succeeded; 3]);
    assert_eq!((bench.held(), bench.calls.count("settle")), (0, 2));
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_is_known_to_have_happened() {
    let bench = Bench::holding().await;
    let runs = ended(&bench, 2).await;
    let mut settle = bench.settle();
    bench.calls.spoil("settle", [Fault::After]);
    assert!(bench.step(&mut settle).await.is_err());
    assert_eq!(bench.held(), 2, "nobody knows yet");
    bench.drain(&mut settle).await;
    assert_eq!(states(&bench, &runs).await, [RunState::Succeeded; 2]);
    assert_eq!(bench.held(), 0);
}

#[tokio::test]
async fn an_end_that_is_refused_is_written_without_what_it_said() {
    let bench = Bench::holding().await;
    let runs = ended(&bench, 1).await;
    bench.calls.spoil("settle", [Fault::Data]);
    bench.drain(&mut bench.settle()).await;
    let run = bench.run(runs[0]).await.unwrap();
    assert_eq!(run.state, RunState::Succeeded, "it did, all the same");
    assert!(run.attempts[0].output.is_empty());
    assert!(
        run.attempts[0]
            .error
            .as_deref()
            .is_some_and(|it| it.contains("refused"))
    );
    assert_eq!((bench.held(), bench.metrics().refused.get()), (0, 1));
}

#[tokio::test]
async fn an_end_that_is_refused_even_so_stays_known() {
    let bench = Bench::holding().await;
    let runs = ended(&bench, 1).await;
    bench.calls.spoil("settle", [Fault::Data, Fault::Data]);
    bench.drain(&mut bench.settle()).await;
    assert_eq!(bench.calls.count("settle"), 2, "it is given up");
    assert_eq!(
        bench.held(),
        1,
        "it must not be taken for one that never started"
    );
    assert_eq!(bench.mem.live_run(runs[0]).unwrap().state, RunState::Ready);
}

#[tokio::test]
async fn a_batch_that_fails_for_its_data_is_halved() {
    let bench = Bench::holding().await;
    let runs = ended(&bench, 4).await;
    // The whole, then the first half, then the first of that.
    bench
        .calls
        .spoil("settle", [Fault::Data, Fault::Data, Fault::Data]);
    let mut settle = bench.settle();
    bench.drain(&mut settle).await;
    assert_eq!(states(&bench, &runs).await, [RunState::Succeeded; 4]);
    let mut bare = 0;
    for run in runs {
        let attempts = bench.run(run).await.unwrap().attempts;
        bare += usize::from(attempts[0].output.is_empty());
    }
    assert!(bare <= 2, "{bare} of 4 lost what they said");
    assert_eq!(bench.held(), 0);
}

#[tokio::test]
async fn a_store_that_panics_over_a_batch_is_called_again() {
    let bench = Bench::holding().await;
    let runs = ended(&bench, 2).await;
    let mut settle = bench.settle();
    bench.calls.spoil("settle", [Fault::Panic]);
    assert!(bench.step(&mut settle).await.is_err());
    bench.drain(&mut settle).await;
    assert_eq!(states(&bench, &runs).await, [RunState::Succeeded; 2]);
    assert_eq!(bench.held(), 0);
}

#[tokio::test]
async fn one_over_which_the_store_panics_again_and_again_is_written_bare() {
    let bench = Bench::holding().await;
    let runs = ended(&bench, 1).await;
    let mut settle = bench.settle();
    bench.calls.spoil("settle", [Fault::Panic; 3]);
    for _ in 0..2 {
        assert!(bench.step(&mut settle).await.is_err());
    }
    bench.drain(&mut settle).await;
    let run = bench.run(runs[0]).await.unwrap();
    assert_eq!(
        (run.state, run.attempts[0].output.len()),
        (RunState::Succeeded, 0)
    );
}

#[tokio::test]
async fn what_was_being_written_when_settle_ended_is_written_by_the_next() {
    let bench = Bench::holding().await;
    let runs = ended(&bench, 2).await;
    bench.calls.spoil("settle", [Fault::Silence]);
    let mut settle = bench.settle();
    let stepped = futures_util::FutureExt::now_or_never(settle.step(bench.now()));
    assert!(stepped.is_none(), "the store does not answer");
    drop(settle);
    assert_eq!(bench.held(), 2);
    bench.drain(&mut bench.settle()).await;
    assert_eq!(states(&bench, &runs).await, [RunState::Succeeded; 2]);
    assert_eq!(bench.held(), 0);
}

#[tokio::test]
async fn an_answer_brings_the_next_step_at_once() {
    let bench = Bench::holding().await;
    ended(&bench, 1).await;
    assert_eq!(bench.step(&mut bench.settle()).await.unwrap(), Wake::Now);
    assert_eq!(bench.held(), 0);
}
