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

#[test]
fn a_fire_without_its_compare_and_swap_is_found() {
    let flaw = Flaw::SkipCompareAndSwap;
    let found = (0..50).find(|seed| {
        !run(Plan {
            flaw,
            ..Plan::new(*seed)
        })
        .broken
        .is_empty()
    });
    assert!(found.is_some());
}
