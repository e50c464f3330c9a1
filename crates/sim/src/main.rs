//! `make sim`: many seeds of an hour each, or one. Exits with 1 and the seed when a check is broken.

use std::io::Write;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sim::{Broken, Findings, Plan, run};

/// Seeds between two lines of progress.
const PROGRESS: u64 = 50;
/// Broken checks shown of one seed.
const SHOWN: usize = 5;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// What has come of the seeds so far.
#[derive(Default)]
struct Sum {
    seeds: u64,
    broken: Vec<u64>,
    runs: usize,
    deliveries: usize,
}

impl Sum {
    fn add(&mut self, seed: u64, found: &Findings, total: u64) {
        let mut out = std::io::stderr();
        self.seeds += 1;
        self.runs += found.runs.len();
        self.deliveries += found.deliveries.len();
        if !found.broken.is_empty() {
            self.broken.push(seed);
            for broken in found.broken.iter().take(SHOWN) {
                let _ = writeln!(out, "seed {seed}: {broken}");
            }
            let count = found.broken.len();
            let _ = writeln!(
                out,
                "seed {seed}: {count} broken; alone: make sim SEED={seed}"
            );
        }
        if self.seeds.is_multiple_of(PROGRESS) || self.seeds == total {
            let _ = writeln!(
                out,
                "{} of {total} seeds, {} broken; {} runs, {} deliveries",
                self.seeds,
                self.broken.len(),
                self.runs,
                self.deliveries
            );
        }
    }
}

fn findings(plan: Plan) -> Findings {
    let panicked = |_| Findings {
        broken: vec![Broken::new("runtime", "it panicked".to_owned())],
        deliveries: Vec::new(),
        runs: Vec::new(),
        digest: 0,
    };
    catch_unwind(AssertUnwindSafe(|| run(plan))).unwrap_or_else(panicked)
}

fn seeds() -> Range<u64> {
    match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => {
            let from = number("FROM").unwrap_or(0);
            from..from + number("SEEDS").unwrap_or(1_000)
        }
    }
}

fn main() -> ExitCode {
    let seeds = seeds();
    let total = seeds.end - seeds.start;
    let minutes = number("MINUTES").unwrap_or(60);
    let next = AtomicU64::new(seeds.start);
    let sum = Mutex::new(Sum::default());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let found = findings(Plan::hour(seed).lasting(Duration::from_secs(minutes * 60)));
            let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
            sum.add(seed, &found, total);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    if sum.broken.is_empty() {
        ExitCode::SUCCESS
    } else {
        let _ = writeln!(std::io::stderr(), "broken seeds: {:?}", sum.broken);
        ExitCode::FAILURE
    }
}
