//! The simulator judges the engine, and these tests judge the simulator.

#[expect(clippy::unwrap_used, reason = "a test")]
mod rules;

use sim::{Plan, run};
use store::mem::Flaw;

fn seeds() -> u64 {
    std::env::var("SEEDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(300)
}

#[track_caller]
fn holds(plan: impl Fn(u64) -> Plan) {
    for seed in 0..seeds() {
        let told = run(plan(seed));
        assert!(told.broken.is_empty(), "seed {seed}: {:#?}", told.broken);
    }
}

/// Whether some seed finds a bug put in on purpose.
#[track_caller]
fn found(plan: impl Fn(u64) -> Plan) {
    let found = (0..300).find(|seed| !run(plan(*seed)).broken.is_empty());
    assert!(found.is_some(), "no seed finds it");
}

#[test]
fn nothing_breaks_under_any_seed() {
    holds(Plan::new);
}

#[test]
fn nothing_breaks_in_a_fleet_under_any_seed() {
    holds(Plan::fleet);
}

#[test]
fn the_same_seed_tells_the_same_story() {
    for seed in [1, 42, 1_234] {
        for plan in [Plan::new(seed), Plan::fleet(seed)] {
            let (first, second) = (run(plan), run(plan));
            assert_eq!(first.digest, second.digest, "seed {seed}");
            assert!(!first.deliveries.is_empty());
        }
    }
}

#[test]
fn a_fire_without_its_compare_and_swap_is_found() {
    let flaw = Flaw::SkipCompareAndSwap;
    found(|seed| Plan {
        flaw,
        ..Plan::new(seed)
    });
}

#[test]
fn a_settle_without_its_claim_check_is_found() {
    let flaw = Flaw::SkipClaimCheck;
    found(|seed| Plan {
        flaw,
        ..Plan::fleet(seed)
    });
}

#[test]
fn a_fire_without_its_epoch_check_is_found() {
    let flaw = Flaw::SkipEpochCheck;
    found(|seed| Plan {
        flaw,
        ..Plan::fleet(seed)
    });
}

#[test]
fn a_node_that_does_not_renew_its_presence_is_found() {
    let engine_flaw = engine::Flaw::SkipRenewal;
    found(|seed| Plan {
        engine_flaw,
        ..Plan::fleet(seed)
    });
}
