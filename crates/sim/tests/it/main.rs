//! The simulator judges the engine, and these tests judge the simulator.

use sim::{Plan, run};
use store::mem::Flaw;

fn seeds() -> u64 {
    std::env::var("SEEDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(300)
}

#[test]
fn nothing_breaks_under_any_seed() {
    for seed in 0..seeds() {
        let told = run(Plan::new(seed));
        assert!(told.broken.is_empty(), "seed {seed}: {:#?}", told.broken);
    }
}

#[test]
fn the_same_seed_tells_the_same_story() {
    for seed in [1, 42, 1_234] {
        let (first, second) = (run(Plan::new(seed)), run(Plan::new(seed)));
        assert_eq!(first.digest, second.digest, "seed {seed}");
        assert!(!first.deliveries.is_empty());
    }
}

/// Whether some seed of the first few finds the flaw.
fn finds(flaw: Flaw) -> bool {
    (0..100).any(|seed| {
        !run(Plan {
            flaw,
            ..Plan::new(seed)
        })
        .broken
        .is_empty()
    })
}

#[test]
fn a_fire_without_its_compare_and_swap_is_found() {
    assert!(finds(Flaw::SkipCompareAndSwap));
}

#[test]
fn a_settle_without_its_claim_is_found() {
    assert!(finds(Flaw::SkipClaimCheck));
}
