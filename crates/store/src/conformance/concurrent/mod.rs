//! Many at once: several nodes and clients call one store at the same time, and some order must explain all answers.
//!
//! A round is short: a few jobs, and some dozens of calls about them (`stage`, `actors`, `outside`, `jobs`, `chance`). Each call is
//! written down with the moments it began and ended at (`calls`, `history`). Then every job is checked by itself:
//! what must hold of any history (`invariants`), and whether the reference store, called in some order that
//! real time allows, gives the same answers (`checker`, `replay`).
//!
//! From the environment: `CONCURRENT_SECONDS`, how long to go on; `CONCURRENT_SEED`, to pick the same calls again. In
//! what order they meet is the machine's affair, so the same seed may have to be tried for a while.

mod actors;
mod calls;
mod chance;
mod checker;
mod history;
mod invariants;
mod jobs;
mod outside;
mod replay;
mod stage;
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::{Duration, Instant};

use self::chance::Chance;
use self::checker::{Explained, explain, shortest};
use self::history::{of_job, show, show_nearest};
use self::invariants::Left;
use self::stage::{Played, play};
use crate::BoxError;

pub(crate) use self::stage::Arena;

/// How long one store is tried, unless the environment says otherwise.
const SECONDS: u64 = 6;

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub rounds: u64,
    pub jobs: u64,
    pub calls: u64,
    /// Jobs with too many orders to try them all.
    pub unknown: u64,
}

/// Fails with the history of a job that nothing explains.
pub(crate) fn answers_in_some_order(arena: impl AsyncFn() -> Result<Arena, BoxError>) {
    let seconds = setting("CONCURRENT_SECONDS").unwrap_or(SECONDS);
    let by_chance = || RandomState::new().build_hasher().finish();
    let seed = setting("CONCURRENT_SEED").unwrap_or_else(by_chance);
    eprintln!("CONCURRENT_SEED={seed} CONCURRENT_SECONDS={seconds}");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .unwrap();
    let figures = runtime.block_on(async {
        let arena = arena().await?;
        try_for(&arena, seed, Duration::from_secs(seconds)).await
    });
    match figures {
        Ok(figures) => {
            eprintln!("{figures:?}");
            assert!(figures.unknown * 100 <= figures.jobs, "{figures:?}");
        }
        Err(error) => panic!("CONCURRENT_SEED={seed}: {error}"),
    }
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Round after round, and the first that something is wrong with.
#[expect(clippy::disallowed_methods, reason = "real stores take real time")]
async fn try_for(arena: &Arena, seed: u64, time: Duration) -> Result<Figures, BoxError> {
    let start = Instant::now();
    let mut chance = Chance(seed);
    let mut figures = Figures::default();
    while start.elapsed() < time {
        let played = play(arena, chance.next()).await?;
        figures.rounds += 1;
        figures.calls += played.entries.len() as u64;
        check(&played, &mut figures).await?;
    }
    Ok(figures)
}

async fn check(played: &Played, figures: &mut Figures) -> Result<(), BoxError> {
    let opening = &played.opening;
    for job in &played.planned {
        let entries = of_job(&played.entries, job.id);
        figures.jobs += 1;
        if let Some(left) = played.left.get(&job.id) {
            let broken = Left {
                created: job,
                entries: &entries,
                job: left.job.as_ref(),
                live: &left.live,
                ended: &left.ended,
                slots: &left.slots,
            };
            if let Some(what) = broken.broken() {
                return Err(format!("{what}\n{}", show(&entries)).into());
            }
        }
        match explain(opening, job.id, &entries).await? {
            Explained::By(_) => {}
            Explained::Unknown => figures.unknown += 1,
            Explained::Not(_) => {
                let (shortest, nearest) = shortest(opening, job.id, &entries).await?;
                let history = show(&shortest);
                let nearest = show_nearest(&shortest, &nearest);
                let what = format!("no order explains what {} saw", job.id);
                // What is odd first and last: a log that is cut shows one of them.
                return Err(format!("{what}\n{nearest}{history}{nearest}").into());
            }
        }
    }
    Ok(())
}
