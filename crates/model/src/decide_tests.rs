use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::id::{JobId, TenantId};
use crate::job::Definition;
use crate::policy::CatchUp;
use crate::schedule::Schedule;
use crate::schedule::samples::{
    Chance, at, calendar, cron, every, random_calendars, random_schedule, steps,
};
use crate::target::Target;

fn node() -> Arc<str> {
    Arc::from("node")
}

fn job(schedule: Schedule, policy: CatchUpPolicy, window: u64, max: u32) -> Job {
    let mut def = Definition::new(schedule, Target::http("http://localhost/").unwrap());
    def.catch_up = CatchUp {
        policy,
        window: Duration::from_secs(window),
        max,
    };
    let now = at("2026-06-01T00:00:00Z");
    let id = JobId::new(now, [7; 10]);
    Job::new(id, TenantId::DEFAULT, None, def, now)
}

/// Decides until nothing is overdue; the slots that run, and all that was skipped.
fn catch_up(mut job: Job, now: &str) -> (Vec<Slot>, Vec<Skip>) {
    let now = at(now);
    let (mut runs, mut skips) = (Vec::new(), Vec::new());
    while let Some(next) = job.next_slot.filter(|slot| slot.0 <= now) {
        let decision = job.decide(next, now, &node());
        runs.extend(decision.start);
        skips.extend(decision.passed.clone());
        job = job.at_standing(job.standing_after(&decision, decision.start.is_some()));
    }
    (runs, skips)
}

fn slot(text: &str) -> Slot {
    Slot(at(text))
}

fn skip(reason: Reason, first: &str, last: &str, count: u64, note: Option<&str>) -> Skip {
    Skip {
        slots: Stretch {
            first: slot(first),
            last: slot(last),
            count,
        },
        reason,
        note: note.map(str::to_owned),
        actor: node(),
    }
}

#[test]
fn what_calendars_leave_out_is_written_with_the_slot_that_runs() {
    // 1 June 2026 is a Monday.
    let office = cron("0 * * * *", "UTC").only(calendar("office", &["MON-FRI 09:00-17:00"]));
    let mut job = job(office, CatchUpPolicy::Latest, 3_600, 1);
    assert_eq!(job.next_slot, Some(slot("2026-06-01T09:00:00Z")));
    assert_eq!(job.slot_last, Some(job.created_at));
    let next = job.next_slot.unwrap();
    let decision = job.decide(next, next.0, &node());
    let night = skip(
        Reason::Calendar,
        "2026-06-01T01:00:00Z",
        "2026-06-01T08:00:00Z",
        8,
        Some("office"),
    );
    assert_eq!(decision.passed, [night]);
    assert_eq!(decision.start, Some(next));
    job = job.at_standing(job.standing_after(&decision, true));
    assert_eq!(job.next_slot, Some(slot("2026-06-01T10:00:00Z")));
    assert_eq!(job.slot_last, Some(next.0));
}

/// The next slot of a job stands in the store; a node with other zone tables has no such slot.
#[test]
fn a_slot_of_older_zone_tables_is_decided_with_calendars_too() {
    let hourly = || cron("0 * * * *", "UTC").excluding(calendar("lunch", &["MON-SUN 12:00-13:00"]));
    let with_next = |next: &str| {
        let mut job = job(hourly(), CatchUpPolicy::Latest, 3_600, 1);
        job.slot_last = Some(at("2026-06-01T11:00:00Z"));
        job.next_slot = Some(slot(next));
        job
    };
    let left_out = |first, count| skip(Reason::Calendar, first, first, count, Some("lunch"));

    // One that calendars keep runs, with what they left out before it.
    let (runs, skips) = catch_up(with_next("2026-06-01T13:30:00Z"), "2026-06-01T13:30:00Z");
    assert_eq!(runs, [slot("2026-06-01T13:30:00Z")]);
    assert_eq!(skips, [left_out("2026-06-01T12:00:00Z", 1)]);

    // One that they leave out is recorded, and the schedule goes on behind it.
    let job = with_next("2026-06-01T12:30:00Z");
    let next = job.next_slot.unwrap();
    let decision = job.decide(next, at("2026-06-01T12:45:00Z"), &node());
    let both = [
        left_out("2026-06-01T12:00:00Z", 1),
        left_out("2026-06-01T12:30:00Z", 1),
    ];
    assert_eq!(decision.passed, both);
    assert_eq!(decision.start, None);
    assert_eq!(decision.next, Some(slot("2026-06-01T13:00:00Z")));

    // A change of the job that comes before it is decided loses neither.
    let skips = job.undecided(at("2026-06-01T12:50:00Z"), Reason::Missed, &node());
    assert_eq!(skips, both);
    let kept = with_next("2026-06-01T13:30:00Z");
    let skips = kept.undecided(at("2026-06-01T13:40:00Z"), Reason::Missed, &node());
    let missed = "2026-06-01T13:30:00Z";
    assert_eq!(
        skips,
        [
            left_out("2026-06-01T12:00:00Z", 1),
            skip(Reason::Missed, missed, missed, 1, None)
        ]
    );
}

#[test]
fn slots_missed_on_either_side_of_a_calendar_are_caught_up_by_the_newest() {
    let lunch = || calendar("lunch", &["MON-SUN 12:00-13:00"]);
    let often = || cron("*/20 * * * *", "UTC").excluding(lunch());
    let now = "2026-06-01T13:50:00Z";
    for (policy, window, max, expected) in [
        (CatchUpPolicy::None, 90_000, 9, vec![]),
        (CatchUpPolicy::Latest, 90_000, 9, vec!["13:40"]),
        (CatchUpPolicy::All, 90_000, 2, vec!["13:20", "13:40"]),
        (
            CatchUpPolicy::All,
            90_000,
            5,
            vec!["11:20", "11:40", "13:00", "13:20", "13:40"],
        ),
        (
            CatchUpPolicy::All,
            3_600,
            5,
            vec!["13:00", "13:20", "13:40"],
        ),
        (CatchUpPolicy::All, 60, 5, vec![]),
    ] {
        let (runs, skips) = catch_up(job(often(), policy, window, max), now);
        let expected: Vec<Slot> = expected
            .into_iter()
            .map(|time| slot(&format!("2026-06-01T{time}:00Z")))
            .collect();
        assert_eq!(runs, expected, "{policy:?} {window} {max}");
        let passed: u64 = skips.iter().map(|skip| skip.slots.count).sum();
        assert_eq!(passed + runs.len() as u64, 41, "{policy:?} {window} {max}");
    }
}

#[test]
fn of_very_many_missed_slots_the_newest_run() {
    let fast = every("1s", "2026-01-01T00:00:00Z", "UTC");
    let job = job(fast, CatchUpPolicy::All, 90_000, 3);
    let (runs, skips) = catch_up(job, "2026-06-01T12:00:00Z");
    // Those of the last ten seconds are only late.
    assert_eq!(runs.len(), 3 + 11);
    assert_eq!(runs.first(), Some(&slot("2026-06-01T11:59:47Z")));
    let passed: u64 = skips.iter().map(|skip| skip.slots.count).sum();
    assert_eq!(passed, 12 * 3_600 - 14);
}

#[test]
fn a_long_outage_is_recorded_in_few_entries() {
    let weekends = || calendar("weekends", &["SAT-SUN"]);
    let hourly = || cron("0 * * * *", "UTC").excluding(weekends());
    let job = job(hourly(), CatchUpPolicy::Latest, 0, 1);
    let recorded = job.undecided(at("2026-07-01T00:00:00Z"), Reason::Missed, &node());
    let found: Vec<(Reason, u64)> = recorded
        .iter()
        .map(|skip| (skip.reason, skip.slots.count))
        .collect();
    // From Monday 1 June 00:00, itself not a slot, to Wednesday 1 July 00:00.
    let (week, weekend) = ((Reason::Missed, 120), (Reason::Calendar, 48));
    let expected = [
        (Reason::Missed, 119),
        weekend,
        week,
        weekend,
        week,
        weekend,
        week,
        weekend,
        (Reason::Missed, 49),
    ];
    assert_eq!(found, expected);
    let years = job.undecided(at("2036-06-01T00:00:00Z"), Reason::Missed, &node());
    assert!(years.len() <= limits::SKIPS_MAX + 2, "{}", years.len());
    let all: u64 = years.iter().map(|skip| skip.slots.count).sum();
    assert_eq!(all, 3_653 * 24);
}

#[test]
fn a_one_off_is_accounted_for_with_calendars_too() {
    let once = |calendar| Schedule::from(slot("2026-06-03T12:00:00Z")).excluding(calendar);
    let kept = job(
        once(calendar("weekends", &["SAT-SUN"])),
        CatchUpPolicy::Latest,
        60,
        1,
    );
    let (_, skips) = kept.deleted(at("2026-06-03T12:00:05Z"), &node());
    assert_eq!(skips.len(), 1);
    assert_eq!(skips[0].reason, Reason::JobDeleted);
    let left_out = job(
        once(calendar("june", &["2026-06-01/2026-06-30"])),
        CatchUpPolicy::Latest,
        60,
        1,
    );
    let (runs, skips) = catch_up(left_out, "2026-06-03T12:00:00Z");
    assert_eq!(runs, []);
    let noon = "2026-06-03T12:00:00Z";
    assert_eq!(skips, [skip(Reason::Calendar, noon, noon, 1, Some("june"))]);
}

#[test]
fn an_hour_of_missed_seconds_reads_calendars_once_for_each_edge() {
    for (policy, expected) in [
        (CatchUpPolicy::None, None),
        (CatchUpPolicy::Latest, Some("2026-06-01T00:59:49Z")),
        (CatchUpPolicy::All, Some("2026-06-01T00:59:30Z")),
    ] {
        let mut seconds = every("1s", "2026-01-01T00:00:00Z", "UTC");
        for name in ["a", "b", "c"] {
            seconds = seconds.excluding(calendar(name, &["12-25", "SAT-SUN", "2026-06-07"]));
        }
        let job = job(seconds, policy, 90_000, 20);
        let next = job.next_slot.unwrap();
        let (decision, took) = steps::of(|| job.decide(next, at("2026-06-01T01:00:00Z"), &node()));
        assert_eq!(decision.start, expected.map(slot), "{policy:?}");
        let passed: u64 = decision.passed.iter().map(|skip| skip.slots.count).sum();
        assert!(passed > 3_500, "{policy:?} {passed}");
        assert!(took.lookups <= 5, "{policy:?} {took:?}");
    }
}

#[test]
fn nothing_is_searched_after_the_slots_that_were_missed() {
    // What follows is left out for years, which is looked through once: for the next slot.
    let minutes = cron("* * * * *", "UTC")
        .only(calendar("morning", &["2026-06-01T00:00/2026-06-01T02:00"]))
        .excluding(calendar("nights", &["MON-SUN 22:00-24:00"]));
    let job = job(minutes, CatchUpPolicy::All, 90_000, 100);
    let next = job.next_slot.unwrap();
    let (decision, took) = steps::of(|| job.decide(next, at("2026-06-01T12:00:00Z"), &node()));
    assert_eq!(decision.start, Some(slot("2026-06-01T00:20:00Z")));
    assert!(took.lookups <= 10, "{took:?}");
}

#[test]
fn of_missed_slots_the_newest_that_calendars_keep_run() {
    let mut chance = Chance(21);
    let mut caught_up = 0;
    for _ in 0..400 {
        let policies = [
            CatchUpPolicy::None,
            CatchUpPolicy::Latest,
            CatchUpPolicy::All,
        ];
        let policy = policies[chance.below(3) as usize];
        let created = at("2026-06-01T00:00:00Z");
        let around = created.as_millis() / 1_000 + 86_400;
        let mut schedule = random_schedule(&mut chance, around);
        schedule.calendars = random_calendars(&mut chance, around);
        let (window, max) = (chance.below(90_000), 1 + chance.below(30) as u32);
        let job = job(schedule, policy, window, max);
        let now = created.plus(Duration::from_secs(chance.below(3 * 86_400)));
        let keep = match policy {
            CatchUpPolicy::None => 0,
            CatchUpPolicy::Latest => 1,
            CatchUpPolicy::All => max as usize,
        };
        // Slot by slot.
        let schedule = &job.def.schedule;
        let all = std::iter::successors(schedule.next_after(created), |slot| {
            schedule.next_after(slot.0)
        });
        let all = all.take_while(|slot| slot.0 <= now);
        let (missed, late): (Vec<Slot>, Vec<Slot>) = all
            .filter(|slot| schedule.keeps(*slot))
            .partition(|slot| slot.0 < now.minus(limits::LATE_MAX));
        let newest = missed.len().saturating_sub(keep);
        let mut expected = missed[newest..].to_vec();
        expected.retain(|slot| now.since(slot.0) <= Duration::from_secs(window));
        caught_up += expected.len();
        expected.extend(late);
        let (runs, _) = catch_up(job.clone(), &now.to_string());
        assert_eq!(runs, expected, "{job:?} at {now}");
    }
    assert!(caught_up > 200, "{caught_up}");
}

/// Everything up to `now` is decided, ten milliseconds after each other; how many slots ran.
fn drain(mut job: Job, mut now: Timestamp) -> u64 {
    let mut runs = 0;
    while let Some(next) = job.next_slot.filter(|slot| slot.0 <= now) {
        let decision = job.decide(next, now, &node());
        runs += u64::from(decision.start.is_some());
        job = job.at_standing(job.standing_after(&decision, decision.start.is_some()));
        now = now.plus(Duration::from_millis(10));
    }
    runs
}

#[test]
fn ten_thousand_missed_slots_take_a_few_steps_each() {
    let all = CatchUp::MAX_MAX;
    let hours =
        |hours: i64| at("2026-06-01T00:00:00Z").plus(Duration::from_secs(3_600 * hours as u64));
    let lunch = calendar("lunch", &["MON-SUN 12:00-13:00"]);
    let plain = [
        cron("* * * * * *", "UTC"),
        cron("* * * * * *", "Europe/Berlin"),
        every("1s", "2026-01-01T00:00:00Z", "UTC"),
    ];
    for schedule in plain {
        // Half a day has more of them than run.
        for outage in [2, 12] {
            let job = job(schedule.clone(), CatchUpPolicy::All, 90_000, all);
            let (runs, took) = steps::of(|| drain(job, hours(outage)));
            let missed = u64::from(all).min(3_600 * outage as u64);
            assert!(runs >= missed, "{runs} of {missed}");
            assert!(took.walked <= 2 * runs, "{runs}: {took:?}");
            // Only what came by the clock since is counted again.
            assert!(took.counted <= runs, "{runs}: {took:?}");
        }
    }
    let often = cron("* * * * * *", "UTC").excluding(lunch);
    let job = job(often, CatchUpPolicy::All, 90_000, all);
    let (runs, took) = steps::of(|| drain(job, hours(2)));
    assert!(runs >= 7_200, "{runs}");
    assert!(took.walked <= 8 * runs, "{runs}: {took:?}");
}

#[test]
fn the_seconds_of_a_year_are_counted_and_not_walked() {
    let now = at("2027-06-01T00:00:00Z");
    for zone in ["UTC", "Europe/Berlin"] {
        let schedule = cron("* * * * * *", zone);
        let job = job(schedule, CatchUpPolicy::All, 90_000, CatchUp::MAX_MAX);
        let (paused, _) = job.paused(job.created_at, None, &node());
        let (passed, took) = steps::of(|| paused.passed_while_paused(now, &node()));
        assert_eq!(passed.unwrap().slots.count, 365 * 86_400, "{zone}");
        assert!(took.walked <= 1, "{zone}: {took:?}");
        // By months, the clocks' changes, and the days on which these begin and end.
        assert!(took.counted <= 40, "{zone}: {took:?}");
        // An entry for each day.
        let ((_, skips), took) = steps::of(|| paused.resumed(now, false, &node()));
        let passed: u64 = skips.iter().map(|skip| skip.slots.count).sum();
        assert_eq!(passed, 365 * 86_400, "{zone}");
        assert!(took.walked <= 2 * 366, "{zone}: {took:?}");
        assert!(took.counted <= 4 * 366, "{zone}: {took:?}");
        // Those that run are found by halves.
        let (resumed, _) = paused.resumed(now, true, &node());
        let next = resumed.next_slot.unwrap();
        let (decision, took) = steps::of(|| resumed.decide(next, now, &node()));
        let first = now.minus(limits::LATE_MAX + Duration::from_secs(10_000));
        assert_eq!(decision.start, Some(Slot(first)), "{zone}");
        assert!(took.walked <= 2 * 366, "{zone}: {took:?}");
        assert!(took.counted <= 4 * 366, "{zone}: {took:?}");
    }
}
