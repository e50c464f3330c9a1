//! `make sim`: many seeds, or one. Exits with 1 and the seed when a check is broken.

use std::io::Write;
use std::process::ExitCode;

use sim::{Plan, run};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn main() -> ExitCode {
    let mut out = std::io::stderr();
    let seeds = match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SEEDS").unwrap_or(1_000),
    };
    let (mut failed, mut deliveries, mut runs) = (0, 0, 0);
    let total = seeds.end - seeds.start;
    for (index, seed) in seeds.enumerate() {
        // Every other seed is a fleet.
        let plan = match seed % 2 {
            0 => Plan::new(seed),
            _ => Plan::fleet(seed),
        };
        let told = run(plan);
        deliveries += told.deliveries.len();
        runs += told.runs.len();
        for broken in told.broken.iter().take(5) {
            let _ = writeln!(out, "seed {seed}: {broken}");
        }
        failed += u32::from(!told.broken.is_empty());
        if (index + 1) % 100 == 0 {
            let _ = writeln!(out, "{} of {total} seeds, {failed} broken", index + 1);
        }
    }
    let _ = writeln!(
        out,
        "{total} seeds, {failed} broken; {runs} runs, {deliveries} deliveries"
    );
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
