//! Keeping a duty up: waits, nudges, errors, panics and the end.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use model::Timestamp;
use store::StoreError;
use tokio_util::sync::CancellationToken;

use super::bench::Bench;
use super::world::ms;
use crate::duty::{Builder, Duty, Wake};
use crate::lock;
use crate::nudge::Nudge;

/// What one step comes to.
enum Step {
    Wake(Wake),
    /// Wants to be woken so long after the step.
    In(Duration),
    Fails,
    Panics,
    Fenced,
}

/// A duty whose steps are written down; after the last it waits to be nudged.
#[derive(Clone, Default)]
struct Script {
    steps: Arc<Mutex<VecDeque<Step>>>,
    taken: Arc<AtomicUsize>,
    built: Arc<AtomicUsize>,
    recovered: Arc<AtomicUsize>,
    nudge: Nudge,
}

impl Script {
    fn of(steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            steps: Arc::new(Mutex::new(steps.into_iter().collect())),
            ..Self::default()
        }
    }

    fn builder(&self) -> Builder {
        let (script, recovered) = (self.clone(), Arc::clone(&self.recovered));
        let build = move || {
            script.built.fetch_add(1, Ordering::SeqCst);
            script.clone()
        };
        Builder::new(build).recover(move || {
            recovered.fetch_add(1, Ordering::SeqCst);
        })
    }

    fn taken(&self) -> usize {
        self.taken.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Duty for Script {
    fn name(&self) -> &'static str {
        "script"
    }

    fn nudge(&self) -> &Nudge {
        &self.nudge
    }

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError> {
        self.taken.fetch_add(1, Ordering::SeqCst);
        let step = lock(&self.steps).pop_front();
        match step {
            None => Ok(Wake::Nudged),
            Some(Step::Wake(wake)) => Ok(wake),
            Some(Step::In(span)) => Ok(Wake::At(now.plus(span))),
            Some(Step::Fails) => Err(StoreError::unavailable("away")),
            Some(Step::Panics) => std::panic::resume_unwind(Box::new("a bug")),
            Some(Step::Fenced) => Err(StoreError::Fenced),
        }
    }
}

/// A duty that is kept up, and its end.
struct Kept {
    script: Script,
    stop: CancellationToken,
    end: tokio::task::JoinHandle<Result<(), StoreError>>,
}

async fn keep(bench: &Bench, steps: impl IntoIterator<Item = Step>) -> Kept {
    let script = Script {
        nudge: bench.nudges().rules.clone(),
        ..Script::of(steps)
    };
    let stop = CancellationToken::new();
    let end = bench.keep(script.builder(), stop.clone());
    bench.quiet().await;
    Kept { script, stop, end }
}

impl Kept {
    /// How many steps were taken by so much later.
    async fn taken_after(&self, bench: &Bench, span: Duration) -> usize {
        bench.clock.advance(span);
        bench.quiet().await;
        self.script.taken()
    }
}

#[tokio::test]
async fn a_duty_is_stepped_when_it_wants_to_be() {
    let bench = Bench::new().await;
    let kept = keep(&bench, [Step::Wake(Wake::Now), Step::In(ms(100))]).await;
    assert_eq!(kept.script.taken(), 2);
    assert_eq!(kept.taken_after(&bench, ms(99)).await, 2);
    assert_eq!(kept.taken_after(&bench, ms(1)).await, 3);
}

#[tokio::test]
async fn a_nudge_ends_the_wait() {
    let bench = Bench::new().await;
    let kept = keep(&bench, [Step::In(ms(100))]).await;
    assert_eq!(kept.script.taken(), 1);
    bench.nudges().rules.now();
    assert_eq!(kept.taken_after(&bench, ms(0)).await, 2);
    assert_eq!(
        kept.taken_after(&bench, ms(5_000)).await,
        2,
        "it waits to be nudged"
    );
    bench.nudges().rules.now();
    assert_eq!(kept.taken_after(&bench, ms(0)).await, 3);
}

#[tokio::test]
async fn errors_are_waited_out_ever_longer() {
    let bench = Bench::new().await;
    let kept = keep(&bench, [Step::Fails, Step::Fails, Step::Fails]).await;
    assert_eq!(kept.script.taken(), 1);
    assert_eq!(kept.taken_after(&bench, ms(20)).await, 2);
    assert_eq!(kept.taken_after(&bench, ms(39)).await, 2);
    assert_eq!(kept.taken_after(&bench, ms(1)).await, 3);
    assert_eq!(kept.taken_after(&bench, ms(79)).await, 3);
    assert_eq!(kept.taken_after(&bench, ms(1)).await, 4);
    assert_eq!(bench.metrics().store_errors.get(), 3);
}

#[tokio::test]
async fn a_duty_that_panics_is_built_again() {
    let bench = Bench::new().await;
    let kept = keep(&bench, [Step::Panics, Step::In(ms(100))]).await;
    let Script {
        built, recovered, ..
    } = &kept.script;
    assert_eq!(
        recovered.load(Ordering::SeqCst),
        1,
        "what it had taken is given back"
    );
    assert_eq!((built.load(Ordering::SeqCst), kept.script.taken()), (2, 1));
    assert_eq!(kept.taken_after(&bench, ms(20)).await, 2);
    assert!(!kept.end.is_finished());
}

#[tokio::test]
async fn a_duty_that_panics_again_and_again_is_given_ever_more_time() {
    let bench = Bench::new().await;
    let kept = keep(&bench, [Step::Panics, Step::Panics, Step::Panics]).await;
    assert_eq!(kept.taken_after(&bench, ms(20)).await, 2);
    assert_eq!(kept.taken_after(&bench, ms(20)).await, 2);
    assert_eq!(kept.taken_after(&bench, ms(20)).await, 3);
}

#[tokio::test]
async fn a_presence_that_was_fenced_ends_the_duty() {
    let bench = Bench::new().await;
    let kept = keep(&bench, [Step::Fenced]).await;
    assert!(matches!(kept.end.await.unwrap(), Err(StoreError::Fenced)));
}

#[tokio::test]
async fn a_stop_ends_the_duty_whatever_it_waits_for() {
    let bench = Bench::new().await;
    for step in [Step::Wake(Wake::Nudged), Step::In(ms(100)), Step::Fails] {
        let kept = keep(&bench, [step]).await;
        kept.stop.cancel();
        assert!(kept.end.await.unwrap().is_ok());
    }
}
