use super::*;
use crate::policy::CatchUpPolicy;
use crate::schedule::{Every, Period, Zone};

const BASE: i64 = 1_700_000_000_000;

fn at(secs: i64) -> Timestamp {
    Timestamp::from_millis(BASE + secs * 1_000)
}

fn slot(secs: i64) -> Slot {
    Slot(at(secs))
}

fn every(secs: u64) -> Schedule {
    let period = Period::Elapsed(Duration::from_secs(secs));
    Schedule::Every(Every {
        period,
        anchor: at(0),
        zone: Zone::utc(),
    })
}

fn job(schedule: Schedule) -> Job {
    let def = Definition::new(schedule, Target::Fake(String::new()));
    Job::new(
        JobId::new(at(0), [1; 10]),
        TenantId::DEFAULT,
        None,
        def,
        at(0),
    )
}

fn with_catch_up(policy: CatchUpPolicy, window: u64, max: u32) -> Job {
    let mut job = job(every(60));
    let catch_up = CatchUp {
        policy,
        window: Duration::from_secs(window),
        max,
    };
    Arc::make_mut(&mut job.def).catch_up = catch_up;
    job
}

fn stretch(first: i64, last: i64, count: u64) -> Option<Stretch> {
    Some(Stretch {
        first: slot(first),
        last: slot(last),
        count,
    })
}

#[test]
fn a_slot_on_time_starts_and_names_the_next() {
    let decision = job(every(60)).decide(slot(60), at(60));
    assert_eq!(
        decision,
        Decision {
            missed: None,
            start: Some(slot(60)),
            next: Some(slot(120))
        }
    );
}

#[test]
fn a_young_slot_is_only_late_under_every_policy() {
    for policy in CatchUpPolicy::ALL {
        let decision = with_catch_up(policy, 0, 1).decide(slot(60), at(70));
        assert_eq!(decision.start, Some(slot(60)), "{policy:?}");
        assert_eq!(decision.missed, None);
    }
}

#[test]
fn catch_up_none_passes_over_all_that_was_missed() {
    let decision = with_catch_up(CatchUpPolicy::None, 3_600, 9).decide(slot(60), at(250));
    let expected = Decision {
        missed: stretch(60, 240, 4),
        start: None,
        next: Some(slot(300)),
    };
    // 240 is exactly ten seconds old: only late.
    assert_eq!(
        decision,
        Decision {
            missed: stretch(60, 180, 3),
            next: Some(slot(240)),
            ..expected
        }
    );
}

#[test]
fn catch_up_latest_runs_the_newest_missed_slot() {
    let decision = with_catch_up(CatchUpPolicy::Latest, 3_600, 9).decide(slot(60), at(290));
    let expected = Decision {
        missed: stretch(60, 180, 3),
        start: Some(slot(240)),
        next: Some(slot(300)),
    };
    assert_eq!(decision, expected);
}

#[test]
fn catch_up_latest_respects_its_window() {
    let decision = with_catch_up(CatchUpPolicy::Latest, 30, 9).decide(slot(60), at(290));
    let expected = Decision {
        missed: stretch(60, 240, 4),
        start: None,
        next: Some(slot(300)),
    };
    assert_eq!(decision, expected);
}

#[test]
fn catch_up_all_runs_the_newest_up_to_its_bound_in_order() {
    let job = with_catch_up(CatchUpPolicy::All, 3_600, 2);
    let first = job.decide(slot(60), at(290));
    let expected = Decision {
        missed: stretch(60, 120, 2),
        start: Some(slot(180)),
        next: Some(slot(240)),
    };
    assert_eq!(first, expected);
    let second = job.decide(slot(240), at(290));
    assert_eq!((second.missed, second.start), (None, Some(slot(240))));
}

#[test]
fn a_long_outage_is_passed_over_in_bounded_steps() {
    let mut job = job(every(1));
    job.next_slot = Some(slot(1));
    let now = at(1_000_000);
    let mut decided = 0;
    let mut steps = 0;
    let mut next = slot(1);
    loop {
        let decision = job.decide(next, now);
        decided += decision.missed.map_or(0, |stretch| stretch.count);
        decided += u64::from(decision.start.is_some());
        steps += 1;
        next = decision.next.unwrap();
        if next.0 > now {
            break;
        }
    }
    assert_eq!(decided, 1_000_000);
    assert!(steps < 200, "{steps}");
}

#[test]
fn a_one_off_in_the_past_is_due() {
    let job = job(Schedule::Once(slot(-3_600)));
    assert_eq!(job.next_slot, Some(slot(-3_600)));
    assert_eq!(job.decide(slot(-3_600), at(0)).start, Some(slot(-3_600)));
}

#[test]
fn a_pause_ends_as_one_stretch() {
    let mut fired = job(every(60));
    (fired.slot_last, fired.next_slot) = (Some(at(60)), Some(slot(120)));
    let paused = fired.paused(at(90), None);
    assert_eq!(paused.next_slot, None);
    let (resumed, passed) = paused.resumed(at(310));
    assert_eq!(passed, stretch(120, 300, 4));
    assert_eq!(resumed.next_slot, Some(slot(360)));
    assert_eq!(resumed.slot_last, Some(at(300)));
}

#[test]
fn a_long_pause_is_counted_and_not_walked() {
    let mut fired = job(every(1));
    (fired.slot_last, fired.next_slot) = (Some(at(60)), Some(slot(61)));
    let paused = fired.paused(at(60), None);
    let year = 365 * 86_400;
    let (resumed, passed) = paused.resumed(at(60 + year));
    assert_eq!(passed, stretch(61, 60 + year, year as u64));
    assert_eq!(resumed.next_slot, Some(slot(61 + year)));
}

#[test]
fn a_slot_overdue_at_the_pause_belongs_to_it() {
    let (_, passed) = job(every(60)).paused(at(90), None).resumed(at(130));
    assert_eq!(passed, stretch(60, 120, 2));
}

#[test]
fn an_edit_creates_no_past_slot_and_decides_nothing_twice() {
    let mut fired = job(every(60));
    fired.slot_last = Some(at(180));
    let def = Definition::new(every(30), Target::Fake(String::new()));
    let edited = fired.edited(None, def, at(170));
    assert_eq!(edited.next_slot, Some(slot(210)));
    assert_eq!(edited.version, Version(2));
}

#[test]
fn an_edit_loses_no_overdue_slot() {
    let late = job(every(60));
    let same = Definition {
        timeout: Duration::from_secs(1),
        ..Definition::clone(&late.def)
    };
    assert_eq!(late.dropped_by(&same, at(130)), None);
    let edited = late.edited(None, same, at(130));
    assert_eq!(edited.next_slot, Some(slot(60)), "still due");
    assert_eq!(edited.version, Version(2));

    let other = Definition::new(every(40), Target::Fake(String::new()));
    assert_eq!(late.dropped_by(&other, at(130)), stretch(60, 120, 2));
    let edited = late.edited(None, other, at(130));
    assert_eq!(edited.next_slot, Some(slot(160)));
    assert_eq!(edited.slot_last, Some(at(120)));
}

#[test]
fn a_run_taken_back_is_decided_anew() {
    let mut fired = job(every(60));
    fired.slot_last = Some(at(180));
    fired.next_slot = Some(slot(240));
    let back = fired.taken_back(slot(180), at(179));
    assert_eq!(back.next_slot, Some(slot(180)));
    let paused = fired.paused(at(179), None).taken_back(slot(180), at(179));
    let (_, passed) = paused.resumed(at(200));
    assert_eq!(passed, stretch(180, 180, 1));
}

#[test]
fn runs_taken_back_in_any_order_are_all_decided_anew() {
    let mut fired = job(every(60));
    fired.slot_last = Some(at(240));
    fired.next_slot = Some(slot(300));
    let oldest_first = fired
        .taken_back(slot(180), at(185))
        .taken_back(slot(240), at(185));
    assert_eq!(oldest_first.next_slot, Some(slot(180)));
    let newest_first = fired
        .taken_back(slot(240), at(185))
        .taken_back(slot(180), at(185));
    assert_eq!(newest_first, oldest_first);
}

#[test]
fn an_edit_brings_slots_of_its_own_before_the_one_taken_back() {
    let mut fired = job(Schedule::Once(slot(180)));
    (fired.slot_last, fired.next_slot) = (Some(at(180)), None);
    fired.state = JobState::Finished;
    let sooner = Definition::new(Schedule::Once(slot(179)), Target::Fake(String::new()));
    let edited = fired.edited(None, sooner, at(178));
    assert_eq!(edited.next_slot, None, "180 may have been dispatched");
    let back = edited.taken_back(slot(180), at(178));
    assert_eq!(
        (back.next_slot, back.state),
        (Some(slot(179)), JobState::Active)
    );
}

#[test]
fn what_has_passed_undecided_is_known() {
    let job = job(every(60));
    assert_eq!(job.undecided(at(59)), None);
    assert_eq!(job.undecided(at(130)), stretch(60, 120, 2));
}

#[test]
fn spread_is_a_fixed_offset_within_its_window() {
    let mut job = job(every(60));
    Arc::make_mut(&mut job.def).spread = Duration::from_secs(30);
    let offset = job.due_at(slot(60)).since(at(60));
    assert!(offset < Duration::from_secs(30));
    assert_eq!(job.due_at(slot(120)).since(at(120)), offset);
}

#[test]
fn keys_have_a_small_alphabet() {
    assert!(JobKey::new("nightly-report").is_ok());
    for key in ["", "a b", "job_1", "ümlaut", &"x".repeat(129)] {
        assert!(JobKey::new(key).is_err(), "{key}");
    }
}
