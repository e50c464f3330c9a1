//! Two stores give the same answers to the same random calls.
//!
//! `ops` makes up what happens: few jobs, few presences, every method, in any order, with clocks that move,
//! answers that get lost and calls that are made twice. A `world` turns that into calls on one store (`intents`),
//! knowing only what that store answered, and writes down each answer (`answers`); `rules` does both for calendars
//! and zones, `outside` for what is handed over and what replays want. Here two worlds go side by side.

mod answers;
mod calls;
mod intents;
mod ops;
mod outside;
mod people;
mod rules;
mod world;

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

use self::ops::{Op, Step, steps};
use self::world::World;
use super::Subject;
use crate::BoxError;
use crate::mem::{Flaw, MemStore};

/// How many sequences are tried, unless `PROPTEST_CASES` says otherwise.
const CASES: u32 = 128;

/// How long a shorter sequence is searched for: a server takes its time over each.
const SHRINK_MILLIS: u32 = 60_000;

/// Fails with the shortest sequence found on which the two answer differently.
pub(crate) fn answers_alike(
    first: impl AsyncFn() -> Result<Subject, BoxError>,
    second: impl AsyncFn() -> Result<Subject, BoxError>,
) {
    try_out(CASES, first, second);
}

/// The same for a store without its fast paths and with them; and every step leaves the same rows. So the statements of the
/// fast paths write what the core decides, whatever it sees. Rows take time to read, each store its own.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn rows_alike(
    cases: u32,
    with_fast_paths: impl AsyncFn(bool) -> Result<Subject, BoxError>,
) {
    try_out(
        cases,
        async || with_fast_paths(false).await,
        async || with_fast_paths(true).await,
    );
}

fn try_out(
    cases: u32,
    first: impl AsyncFn() -> Result<Subject, BoxError>,
    second: impl AsyncFn() -> Result<Subject, BoxError>,
) {
    let given = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|text| text.parse().ok());
    let mut config = Config {
        cases: given.unwrap_or(cases),
        failure_persistence: None,
        max_shrink_iters: 4_000,
        max_shrink_time: SHRINK_MILLIS,
        ..Config::default()
    };
    // `PROPTEST_RNG_SEED` has the same sequences tried again.
    let seed = match config.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => RandomState::new().build_hasher().finish(),
    };
    config.rng_seed = RngSeed::Fixed(seed);
    eprintln!("PROPTEST_RNG_SEED={seed}");
    if let Err(error) = run_cases(config, first, second) {
        panic!("PROPTEST_RNG_SEED={seed}: {error}");
    }
}

fn run_cases(
    config: Config,
    first: impl AsyncFn() -> Result<Subject, BoxError>,
    second: impl AsyncFn() -> Result<Subject, BoxError>,
) -> Result<(), TestError<Vec<Step>>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    TestRunner::new(config).run(&steps(), |steps| {
        runtime.block_on(async {
            let mut first = World::new(first().await.unwrap());
            let mut second = World::new(second().await.unwrap());
            compare(&steps, &mut first, &mut second).await
        })
    })
}

async fn compare(
    steps: &[Step],
    first: &mut World,
    second: &mut World,
) -> Result<(), TestCaseError> {
    for (number, step) in steps.iter().enumerate() {
        let answers = (first.take(step).await, second.take(step).await);
        let when = format!("step {number}, {step:?}");
        check(&when, answers)?;
        if let Op::Engine(..) | Op::Outside(..) = step.op {
            let when = format!("after {when}");
            check(&when, (first.rows().await, second.rows().await))?;
        }
        if let Some(job) = first.unsound().await {
            return Err(TestCaseError::fail(format!("{when} leaves {job:?}")));
        }
    }
    check("at the end", (first.rows().await, second.rows().await))?;
    check("at the end", (first.dump().await, second.dump().await))
}

fn check(when: &str, (first, second): (Vec<String>, Vec<String>)) -> Result<(), TestCaseError> {
    for (first, second) in first.iter().zip(&second) {
        if first != second {
            let differ = format!("{when}, one says\n  {first}\nand the other\n  {second}");
            return Err(TestCaseError::fail(differ));
        }
    }
    if first.len() != second.len() {
        let differ = format!("{when}, one says\n  {first:#?}\nand the other\n  {second:#?}");
        return Err(TestCaseError::fail(differ));
    }
    Ok(())
}

#[test]
fn a_store_answers_as_it_does_itself() {
    answers_alike(Subject::mem, Subject::mem);
}

/// Questions that a broken store answers as a whole one does would prove nothing.
#[test]
fn every_flaw_is_found() {
    for flaw in [
        Flaw::SkipCompareAndSwap,
        Flaw::SkipEpochCheck,
        Flaw::SkipClaimCheck,
    ] {
        let flawed = async || -> Result<Subject, BoxError> {
            let subject = Subject::mem().await?;
            let clock = subject.clock.clone();
            let store = MemStore::new(std::sync::Arc::new(clock.clone())).with_flaw(flaw);
            Subject::over(std::sync::Arc::new(store), clock).await
        };
        let config = Config {
            cases: 2_000,
            failure_persistence: None,
            max_shrink_iters: 0,
            ..Config::default()
        };
        let whole = async || -> Result<Subject, BoxError> {
            // Without `reopen`, as the flawed one: both forget nothing.
            Ok(Subject {
                reopen: None,
                ..Subject::mem().await?
            })
        };
        assert!(run_cases(config, whole, flawed).is_err(), "{flaw:?}");
    }
}
