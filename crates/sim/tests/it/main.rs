//! The simulator tests the engine, and these tests test the simulator.

#[expect(clippy::unwrap_used, reason = "a test")]
mod backlog;
#[expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]
mod beyond;
#[expect(clippy::unwrap_used, reason = "a test")]
mod doubt;
#[expect(clippy::unwrap_used, reason = "a test")]
mod far;
#[expect(clippy::unwrap_used, reason = "a test")]
mod fleet;
#[expect(clippy::unwrap_used, reason = "a test")]
mod left;
mod moment;
#[expect(clippy::unwrap_used, reason = "a test")]
mod origins;
#[expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]
mod outage;
#[expect(clippy::unwrap_used, reason = "a test")]
mod panics;
#[expect(clippy::unwrap_used, reason = "a test")]
mod payloads;
#[expect(clippy::unwrap_used, reason = "a test")]
mod rules;
#[expect(clippy::unwrap_used, reason = "a test")]
mod settling;
mod wrapped;

use sim::{Plan, run};
use store::mem::Flaw;

/// How many seeds each kind of story gets here; `make sim` gives them an hour each, and many more.
fn seeds() -> u64 {
    std::env::var("SEEDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(100)
}

#[track_caller]
fn holds(seeds: u64, plan: impl Fn(u64) -> Plan) {
    let mut broken = Vec::new();
    for seed in 0..seeds {
        let found = run(plan(seed));
        broken.extend(found.broken.into_iter().map(|it| (seed, it)));
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Whether some seed finds a bug put in on purpose, by the check that is there for it.
#[track_caller]
fn finds(check: &str, plan: impl Fn(u64) -> Plan) {
    let is_it = |seed: &u64| {
        let broken = run(plan(*seed)).broken;
        broken.iter().any(|broken| broken.check == check)
    };
    let found = (0..100).find(is_it);
    assert!(found.is_some(), "no seed breaks {check}");
}

#[test]
fn nothing_breaks_under_any_seed() {
    holds(seeds(), Plan::new);
}

#[test]
fn nothing_breaks_in_a_fleet_under_any_seed() {
    holds(seeds(), Plan::fleet);
}

#[test]
fn nothing_breaks_in_an_hour() {
    holds(seeds().div_ceil(16), Plan::hour);
}

#[test]
fn the_same_seed_gives_the_same_story() {
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
    finds("bounds_hold", |seed| Plan {
        flaw,
        ..Plan::new(seed)
    });
    finds("one_delivery_per_attempt", |seed| Plan {
        flaw,
        ..Plan::fleet(seed)
    });
}

#[test]
fn a_settle_without_its_claim_check_is_found() {
    let flaw = Flaw::SkipClaimCheck;
    finds("old_epoch_settles_nothing", |seed| Plan {
        flaw,
        ..Plan::fleet(seed)
    });
}

#[test]
fn a_fire_without_its_epoch_check_is_found() {
    let flaw = Flaw::SkipEpochCheck;
    finds("old_epoch_fires_nothing", |seed| Plan {
        flaw,
        ..Plan::fleet(seed)
    });
}

#[test]
fn a_node_that_does_not_renew_its_presence_is_found() {
    let engine_flaw = engine::Flaw::SkipRenewal;
    finds("takeover_within_bound", |seed| Plan {
        engine_flaw,
        ..Plan::fleet(seed)
    });
}

#[test]
fn a_node_that_trusts_its_own_broken_beats_is_found() {
    let engine_flaw = engine::Flaw::IgnoreBreaks;
    finds("the_living_keep_their_presence", |seed| Plan {
        engine_flaw,
        ..Plan::fleet(seed)
    });
}

#[test]
fn a_node_that_does_not_check_whether_it_is_present_is_found() {
    let engine_flaw = engine::Flaw::SkipPresenceCheck;
    finds("fenced_dispatches_nothing", |seed| Plan {
        engine_flaw,
        ..Plan::fleet(seed)
    });
}

#[test]
fn a_node_that_skips_everything_is_found() {
    let engine_flaw = engine::Flaw::SkipEverything;
    finds("skips_have_an_excuse", |seed| Plan {
        engine_flaw,
        ..Plan::new(seed)
    });
}

#[test]
fn a_node_that_skips_what_is_late_is_found() {
    let engine_flaw = engine::Flaw::SkipLate;
    finds("overlap_has_a_run_that_counts", |seed| Plan {
        engine_flaw,
        ..Plan::new(seed)
    });
}

#[test]
fn a_store_that_drops_a_job_is_found() {
    let flaw = Flaw::DropJob;
    finds("accepted_jobs_are_kept", |seed| Plan {
        flaw,
        ..Plan::new(seed)
    });
}

#[test]
fn a_lost_attempt_that_is_tried_again_against_its_jobs_will_is_found() {
    let engine_flaw = engine::Flaw::RetryLost;
    finds("at_most_once", |seed| Plan {
        engine_flaw,
        ..Plan::new(seed)
    });
}

#[test]
fn one_that_is_tried_again_because_its_job_was_edited_is_found() {
    let engine_flaw = engine::Flaw::RetryLostOfEdited;
    finds("at_most_once", |seed| Plan {
        engine_flaw,
        ..Plan::new(seed)
    });
}

#[test]
fn an_attempt_that_goes_on_under_its_number_after_it_was_dispatched_is_found() {
    let engine_flaw = engine::Flaw::ReleaseDispatched;
    finds("one_delivery_per_attempt", |seed| Plan {
        engine_flaw,
        ..Plan::new(seed)
    });
}

#[test]
fn a_node_that_counts_silence_that_it_was_not_there_to_hear_is_found() {
    let engine_flaw = engine::Flaw::SkipWatch;
    // It takes a target that sends heartbeats while the only node is down for as long as it may be silent: few stories have one.
    finds("who_beats_is_not_lost", |seed| Plan {
        engine_flaw,
        ..Plan::new(seed + 200)
    });
}

#[test]
fn a_node_that_leaves_jobs_where_other_tables_had_them_is_found() {
    let engine_flaw = engine::Flaw::SkipZones;
    finds("jobs_follow_their_zones", |seed| Plan {
        engine_flaw,
        ..Plan::new(seed)
    });
}

#[test]
fn a_store_that_takes_an_old_token_is_found() {
    let flaw = Flaw::SkipTokenCheck;
    finds("old_token_changes_nothing", |seed| Plan {
        flaw,
        ..Plan::fleet(seed)
    });
}
