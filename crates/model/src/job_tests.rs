use super::*;
use crate::policy::CatchUpPolicy;
use crate::run::{Reason, Skip, Stretch};
use crate::schedule::{Broken, Every, Period, Zone};

const BASE: i64 = 1_700_000_000_000;

fn at(secs: i64) -> Timestamp {
    Timestamp::from_millis(BASE + secs * 1_000)
}

fn slot(secs: i64) -> Slot {
    Slot(at(secs))
}

fn every(secs: u64) -> Schedule {
    let period = Period::Elapsed(Duration::from_secs(secs));
    Schedule::from(Every {
        period,
        anchor: at(0),
        zone: Zone::utc(),
        after_completion: false,
    })
}

fn job(schedule: Schedule) -> Job {
    let def = Definition::new(schedule, Target::http("http://localhost/").unwrap());
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

fn me() -> Arc<str> {
    Arc::from("me")
}

fn skip(reason: Reason, first: i64, last: i64, count: u64) -> Skip {
    Skip {
        slots: Stretch {
            first: slot(first),
            last: slot(last),
            count,
        },
        reason,
        note: None,
        actor: me(),
    }
}

fn missed(first: i64, last: i64, count: u64) -> Vec<Skip> {
    vec![skip(Reason::Missed, first, last, count)]
}

fn paused(first: i64, last: i64, count: u64) -> Vec<Skip> {
    vec![skip(Reason::Paused, first, last, count)]
}

fn check(decision: &Decision, passed: Vec<Skip>, start: Option<i64>, next: i64) {
    assert_eq!(decision.passed, passed);
    assert_eq!(decision.start, start.map(slot));
    assert_eq!(decision.next, Some(slot(next)));
}

#[test]
fn a_slot_on_time_starts_and_names_the_next() {
    let decision = job(every(60)).decide(slot(60), at(61), &me());
    let expected = Decision {
        at: at(61),
        actor: me(),
        passed: Vec::new(),
        start: Some(slot(60)),
        next: Some(slot(120)),
        catch_up_to: None,
    };
    assert_eq!(decision, expected);
}

#[test]
fn a_young_slot_is_only_late_under_every_policy() {
    for policy in CatchUpPolicy::ALL {
        let decision = with_catch_up(policy, 0, 1).decide(slot(60), at(70), &me());
        check(&decision, Vec::new(), Some(60), 120);
    }
}

#[test]
fn catch_up_none_skips_all_that_was_missed() {
    let decision = with_catch_up(CatchUpPolicy::None, 3_600, 9).decide(slot(60), at(250), &me());
    // 240 is exactly ten seconds old: only late.
    check(&decision, missed(60, 180, 3), None, 240);
}

#[test]
fn catch_up_latest_runs_the_newest_missed_slot() {
    let decision = with_catch_up(CatchUpPolicy::Latest, 3_600, 9).decide(slot(60), at(290), &me());
    check(&decision, missed(60, 180, 3), Some(240), 300);
}

#[test]
fn catch_up_latest_respects_its_window() {
    let decision = with_catch_up(CatchUpPolicy::Latest, 30, 9).decide(slot(60), at(290), &me());
    check(&decision, missed(60, 240, 4), None, 300);
}

#[test]
fn catch_up_all_runs_the_newest_up_to_its_bound_in_order() {
    let job = with_catch_up(CatchUpPolicy::All, 3_600, 2);
    let first = job.decide(slot(60), at(290), &me());
    check(&first, missed(60, 120, 2), Some(180), 240);
    let second = job.decide(slot(240), at(290), &me());
    check(&second, Vec::new(), Some(240), 300);
}

#[test]
fn a_long_outage_is_skipped_in_bounded_steps() {
    let job = job(every(1));
    let now = at(1_000_000);
    let mut decided = 0;
    let mut steps = 0;
    let mut next = slot(1);
    loop {
        let decision = job.decide(next, now, &me());
        decided += decision
            .passed
            .iter()
            .map(|skip| skip.slots.count)
            .sum::<u64>();
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
    let job = job(Schedule::from(slot(-3_600)));
    assert_eq!(job.next_slot, Some(slot(-3_600)));
    let decision = job.decide(slot(-3_600), at(0), &me());
    assert_eq!(decision.start, Some(slot(-3_600)));
}

#[test]
fn a_pause_ends_as_one_stretch() {
    let mut fired = job(every(60));
    (fired.slot_last, fired.next_slot) = (Some(at(60)), Some(slot(120)));
    let (held, skips) = fired.paused(at(90), None, &me());
    assert_eq!((held.next_slot, skips), (None, Vec::new()));
    let (resumed, passed) = held.resumed(at(310), false, &me());
    assert_eq!(passed, paused(120, 300, 4));
    assert_eq!(resumed.next_slot, Some(slot(360)));
    assert_eq!(resumed.slot_last, Some(at(300)));
}

#[test]
fn a_pause_says_who_and_why() {
    let someone: Arc<str> = Arc::from("someone");
    let (held, _) = job(every(60)).paused(at(30), Some("rest".to_owned()), &someone);
    assert_eq!(held.paused_by, Some(Arc::clone(&someone)));
    let (resumed, passed) = held.resumed(at(70), false, &me());
    let expected = Skip {
        note: Some("rest".to_owned()),
        actor: someone,
        ..skip(Reason::Paused, 60, 60, 1)
    };
    assert_eq!(passed, [expected]);
    assert_eq!((resumed.paused_by, resumed.note), (None, None));
}

#[test]
fn a_pause_that_is_to_catch_up_ends_where_it_began() {
    let (held, _) = with_catch_up(CatchUpPolicy::All, 3_600, 2).paused(at(90), None, &me());
    let (resumed, passed) = held.resumed(at(310), true, &me());
    assert_eq!((resumed.next_slot, passed), (Some(slot(60)), Vec::new()));
    let decision = resumed.decide(slot(60), at(311), &me());
    check(&decision, missed(60, 180, 3), Some(240), 300);
}

#[test]
fn a_long_pause_is_counted_and_not_walked() {
    let mut fired = job(every(1));
    (fired.slot_last, fired.next_slot) = (Some(at(60)), Some(slot(61)));
    let (held, _) = fired.paused(at(60), None, &me());
    let year = 365 * 86_400;
    let (resumed, passed) = held.resumed(at(60 + year), false, &me());
    // One entry for each day of UTC.
    assert_eq!(passed.len(), 366);
    let counted: u64 = passed.iter().map(|skip| skip.slots.count).sum();
    assert_eq!(counted, year as u64);
    let ends = (passed[0].slots.first, passed[365].slots.last);
    assert_eq!(ends, (slot(61), slot(60 + year)));
    assert_eq!(resumed.next_slot, Some(slot(61 + year)));
}

#[test]
fn a_slot_overdue_at_the_pause_belongs_to_it() {
    let (held, skips) = job(every(60)).paused(at(90), None, &me());
    assert_eq!(skips, []);
    let (_, passed) = held.resumed(at(130), false, &me());
    assert_eq!(passed, paused(60, 120, 2));
}

#[test]
fn an_edit_creates_no_past_slot_and_decides_nothing_twice() {
    let mut fired = job(every(60));
    (fired.slot_last, fired.next_slot) = (Some(at(180)), Some(slot(240)));
    let def = Definition::new(every(30), Target::http("http://localhost/").unwrap());
    let (edited, skips) = fired.edited(None, def, at(170), &me());
    assert_eq!((edited.next_slot, skips), (Some(slot(210)), Vec::new()));
    assert_eq!(edited.version, Version(2));
}

#[test]
fn an_edit_loses_no_overdue_slot() {
    let late = job(every(60));
    let same = Definition {
        timeout: Duration::from_secs(1),
        ..Definition::clone(&late.def)
    };
    let (edited, skips) = late.edited(None, same, at(130), &me());
    assert_eq!(skips, []);
    assert_eq!(edited.next_slot, Some(slot(60)), "still due");
    assert_eq!(edited.version, Version(2));

    let other = Definition::new(every(40), Target::http("http://localhost/").unwrap());
    let (edited, skips) = late.edited(None, other, at(130), &me());
    assert_eq!(skips, missed(60, 120, 2));
    assert_eq!(edited.next_slot, Some(slot(160)));
    assert_eq!(edited.slot_last, Some(at(130)));
}

#[test]
fn an_edit_of_a_paused_job_records_what_the_old_schedule_let_pass() {
    let (held, _) = job(every(60)).paused(at(90), None, &me());
    let other = Definition::new(every(7), Target::http("http://localhost/").unwrap());
    let (edited, skips) = held.edited(None, other, at(130), &me());
    assert_eq!(skips, paused(60, 120, 2));
    assert_eq!((edited.state, edited.next_slot), (JobState::Paused, None));
    let (_, passed) = edited.resumed(at(140), false, &me());
    assert_eq!(passed, paused(133, 140, 2));
    let same = Definition::clone(&held.def);
    let (edited, skips) = held.edited(None, same, at(130), &me());
    assert_eq!((edited.slot_last, skips), (held.slot_last, Vec::new()));
}

#[test]
fn what_passed_while_invalid_begins_with_the_schedule() {
    let mut fired = job(every(60));
    (fired.slot_last, fired.next_slot) = (Some(at(60)), Some(slot(120)));
    let other = Definition::new(every(7), Target::http("http://localhost/").unwrap());
    let (edited, _) = fired.edited(None, other, at(100), &me());
    let parked = edited.invalid(at(101), "why".to_owned());
    let passed = parked.passed_while_invalid(at(115), &me());
    let expected = Skip {
        note: Some("why".to_owned()),
        ..skip(Reason::Invalid, 105, 112, 2)
    };
    assert_eq!(passed, [expected]);
}

#[test]
fn a_job_that_cannot_be_read_any_more_is_invalid_and_not_finished() {
    let broken = || {
        let broken = Broken {
            stored: "{}".to_owned(),
            error: "the zone is gone".to_owned(),
            recurring: true,
        };
        Schedule::from(Kind::Broken(Arc::new(broken)))
    };
    let mut active = job(every(60));
    Arc::make_mut(&mut active.def).schedule = broken();
    let (rescheduled, _) = active.rescheduled(at(30), &me());
    assert_eq!(
        (rescheduled.state, rescheduled.state_at),
        (JobState::Invalid, at(30))
    );
    assert_eq!(rescheduled.note.as_deref(), Some("the zone is gone"));
    let (mut held, _) = job(every(60)).paused(at(1), None, &me());
    Arc::make_mut(&mut held.def).schedule = broken();
    let (resumed, _) = held.resumed(at(30), false, &me());
    assert_eq!(
        (resumed.state, resumed.next_slot),
        (JobState::Invalid, None)
    );
    let def = Definition::new(every(60), Target::http("http://localhost/").unwrap());
    let (repaired, _) = resumed.edited(None, def, at(130), &me());
    assert_eq!(
        (repaired.state, repaired.next_slot),
        (JobState::Active, Some(slot(180)))
    );
}

#[test]
fn other_tables_make_no_slot_of_the_past() {
    let mut moved = job(every(60));
    (moved.slot_last, moved.next_slot) = (Some(at(120)), Some(slot(180)));
    // As if the tables had moved every slot by twenty seconds.
    if let Kind::Every(every) = &mut Arc::make_mut(&mut moved.def).schedule.kind {
        every.anchor = at(20);
    }
    let (rescheduled, skips) = moved.rescheduled(at(150), &me());
    assert_eq!(
        (rescheduled.next_slot, skips),
        (Some(slot(200)), Vec::new())
    );
    assert_eq!(rescheduled.version, Version(2));
}

#[test]
fn a_run_taken_back_is_decided_again() {
    let mut fired = job(every(60));
    fired.slot_last = Some(at(180));
    fired.next_slot = Some(slot(240));
    let back = fired.taken_back(slot(180), at(179), &[]);
    assert_eq!(back.next_slot, Some(slot(180)));
    let (held, _) = fired.paused(at(179), None, &me());
    let (_, passed) = held
        .taken_back(slot(180), at(179), &[])
        .resumed(at(200), false, &me());
    assert_eq!(passed, paused(180, 180, 1));
}

#[test]
fn runs_taken_back_in_any_order_are_all_decided_again() {
    let mut fired = job(every(60));
    fired.slot_last = Some(at(240));
    fired.next_slot = Some(slot(300));
    let oldest_first =
        fired
            .taken_back(slot(180), at(185), &[])
            .taken_back(slot(240), at(185), &[]);
    assert_eq!(oldest_first.next_slot, Some(slot(180)));
    let newest_first =
        fired
            .taken_back(slot(240), at(185), &[])
            .taken_back(slot(180), at(185), &[]);
    assert_eq!(newest_first, oldest_first);
}

#[test]
fn an_edit_brings_slots_of_its_own_before_the_one_taken_back() {
    let mut fired = job(Schedule::from(slot(180)));
    (fired.slot_last, fired.next_slot) = (Some(at(180)), None);
    fired.state = JobState::Finished;
    let sooner = Definition::new(
        Schedule::from(slot(179)),
        Target::http("http://localhost/").unwrap(),
    );
    let (edited, _) = fired.edited(None, sooner, at(178), &me());
    assert_eq!(edited.next_slot, None, "180 may have been dispatched");
    let back = edited.taken_back(slot(180), at(178), &[]);
    assert_eq!(
        (back.next_slot, back.state),
        (Some(slot(179)), JobState::Active)
    );
}

#[test]
fn what_has_passed_undecided_is_known() {
    let job = job(every(60));
    assert_eq!(job.undecided(at(59), Reason::Missed, &me()), []);
    assert_eq!(
        job.undecided(at(130), Reason::Missed, &me()),
        missed(60, 120, 2)
    );
}

fn limited(runs_max: u32) -> Job {
    let mut schedule = every(60);
    schedule.bounds.runs_max = Some(runs_max);
    job(schedule)
}

fn fired(job: &Job, inserted: bool) -> Job {
    let next = job.next_slot.unwrap();
    let decision = job.decide(next, next.0, &me());
    job.at_standing(job.standing_after(&decision, inserted))
}

#[test]
fn runs_are_counted_down_and_skipped_slots_are_not() {
    let job = limited(2);
    assert_eq!(job.runs_left(), Some(2));
    let skipped = fired(&job, false);
    assert_eq!(
        (skipped.runs_left(), skipped.state),
        (Some(2), JobState::Active)
    );
    let once = fired(&skipped, true);
    assert_eq!(
        (once.runs_left(), once.next_slot),
        (Some(1), Some(slot(180)))
    );
    let twice = fired(&once, true);
    assert_eq!((twice.runs_left(), twice.next_slot), (Some(0), None));
    assert_eq!((twice.state, twice.state_at), (JobState::Finished, at(180)));
    let back = twice.taken_back(slot(180), at(179), &[]);
    assert_eq!((back.runs_left(), back.state), (Some(1), JobState::Active));
    assert_eq!(back.next_slot, Some(slot(180)));
}

#[test]
fn what_was_claimed_under_a_version_that_wants_one_delivery_keeps_that() {
    let edited = |job: &Job, delivery: Delivery| {
        let def = Definition {
            delivery,
            ..Definition::clone(&job.def)
        };
        job.edited(None, def, at(0), &me()).0
    };
    let at_each = |job: &Job| [1, 2, 3, 4].map(|version| job.delivery_at(Version(version)));
    let (once, again) = (Delivery::AtMostOnce, Delivery::AtLeastOnce);
    let first = job(every(60));
    let second = edited(&first, once);
    assert_eq!(at_each(&second), [once; 4], "as it wants from now on");
    let third = edited(&second, again);
    assert_eq!(at_each(&third), [once, once, again, again]);
    let (paused, _) = third.paused(at(1), None, &me());
    assert_eq!(at_each(&paused), [once, once, again, again]);
    assert_eq!(at_each(&edited(&paused, again)), at_each(&paused));
}

#[test]
fn an_edit_counts_the_runs_made_so_far() {
    let edited = |job: &Job, runs_max: Option<u32>| {
        let mut def = Definition::clone(&job.def);
        def.schedule.bounds.runs_max = runs_max;
        job.edited(None, def, at(130), &me()).0
    };
    let once = fired(&limited(3), true);
    assert_eq!(once.runs_left(), Some(2));
    assert_eq!(edited(&once, Some(5)).runs_left(), Some(4));
    assert_eq!(edited(&once, None).runs_left(), None);
    let spent = edited(&once, Some(1));
    assert_eq!(
        (spent.runs_left(), spent.state),
        (Some(0), JobState::Finished)
    );
    // A run from before there was a bound gives nothing back.
    let unbounded = fired(&job(every(60)), true);
    let bounded = edited(&unbounded, Some(2)).taken_back(slot(60), at(130), &[]);
    assert_eq!(bounded.runs_left(), Some(2));
    let more = edited(&spent, Some(2));
    assert_eq!((more.runs_left(), more.state), (Some(1), JobState::Active));
}

#[test]
fn a_job_ends_with_its_last_slot() {
    let mut schedule = every(60);
    schedule.bounds.ends_at = Some(at(120));
    let last = fired(&job(schedule.clone()), true);
    assert_eq!(
        (last.next_slot, last.state),
        (Some(slot(120)), JobState::Active)
    );
    let done = fired(&last, true);
    assert_eq!((done.next_slot, done.state), (None, JobState::Finished));
    // What passed while it was paused ends there too.
    let (held, _) = job(schedule).paused(at(30), None, &me());
    let (resumed, passed) = held.resumed(at(999), false, &me());
    assert_eq!(passed, paused(60, 120, 2));
    assert_eq!(resumed.state, JobState::Finished);
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

#[test]
fn a_slot_that_ran_stays_decided_when_a_later_one_comes_back() {
    let fired = fired(&fired(&fired(&job(every(1)), true), true), true);
    assert_eq!(fired.slot_last, Some(at(3)));
    let (mut paused, _) = fired.paused(at(0), None, &me());
    paused.slot_last = fired.slot_last;
    let ran = [slot(1), slot(2)];
    let back = paused.taken_back(slot(3), at(1), &ran);
    assert_eq!(back.slot_last, Some(at(2)));
    // The first came back before: it is still to be explained.
    let back = paused.taken_back(slot(3), at(1), &ran[1..]);
    assert_eq!(back.slot_last, Some(at(0)));
    // A new definition has slots of its own before the one that ran.
    let mut def = Definition::clone(&fired.def);
    def.schedule = every(2);
    let (edited, _) = fired.edited(None, def, at(0), &me());
    let back = edited.taken_back(slot(3), at(0), &[slot(1)]);
    assert_eq!(
        (back.slot_last, back.next_slot),
        (Some(at(1)), Some(slot(2)))
    );
}

#[test]
fn runs_made_are_remembered_under_a_bound_that_is_lower() {
    let mut job = limited(10);
    for _ in 0..5 {
        job = fired(&job, true);
    }
    let edited = |job: &Job, max: u32| {
        let mut def = Definition::clone(&job.def);
        def.schedule.bounds.runs_max = Some(max);
        job.edited(None, def, at(400), &me()).0
    };
    let low = edited(&job, 3);
    assert_eq!((low.runs_left(), low.state), (Some(0), JobState::Finished));
    let high = edited(&low, 6);
    assert_eq!((high.runs_left(), high.state), (Some(1), JobState::Active));
}

#[test]
fn other_tables_make_no_slot_in_the_past_also_beside_a_calendar() {
    let name = crate::schedule::CalendarName::new("old").unwrap();
    let mut schedule = every(60);
    let calendar = crate::schedule::Calendar::new(name, at(-1_000));
    schedule.calendars.exclude.push(Arc::new(calendar));
    let mut moved = job(schedule);
    // Older tables had it later.
    moved.next_slot = Some(slot(600));
    let (rescheduled, _) = moved.rescheduled_by_tables(at(300), &me());
    assert_eq!(rescheduled.next_slot, Some(slot(360)));
    let (rescheduled, _) = moved.rescheduled(at(300), &me());
    assert_eq!(
        rescheduled.next_slot,
        Some(slot(60)),
        "a calendar's slots are late"
    );
}

#[test]
fn other_tables_lose_no_slot_of_a_calendar_that_has_changed_and_is_not_applied_yet() {
    let name = crate::schedule::CalendarName::new("new").unwrap();
    let mut schedule = every(60);
    let calendar = crate::schedule::Calendar::new(name, at(100));
    schedule.calendars.exclude.push(Arc::new(calendar));
    let mut left_out = job(schedule);
    // As it stood before, the calendar left out all before this one.
    left_out.next_slot = Some(slot(600));
    let (rescheduled, _) = left_out.rescheduled_by_tables(at(300), &me());
    assert_eq!(rescheduled.next_slot, Some(slot(120)), "late, and not lost");
}
