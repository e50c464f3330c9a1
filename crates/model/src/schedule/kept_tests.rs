use super::*;
use crate::schedule::reference::Chance;
use crate::schedule::samples::{
    at, calendar, cron, every, random_calendars, random_schedule, steps,
};
use crate::schedule::{Calendars, Kind};

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;

fn slot(text: &str) -> Slot {
    Slot(at(text))
}

/// Slots after a moment and up to another, one by one, each with who leaves it out.
fn one_by_one(
    schedule: &Schedule,
    after: Timestamp,
    until: Timestamp,
) -> Vec<(Slot, Option<String>)> {
    let zone = schedule.zone();
    let slots = std::iter::successors(schedule.next_after(after), |slot| {
        schedule.next_after(slot.0)
    });
    slots
        .take_while(|slot| slot.0 <= until)
        .map(|slot| (slot, schedule.calendars.exclusion(slot, &zone).by))
        .collect()
}

/// A schedule with calendars and perhaps bounds, all of which matter around a moment in seconds.
fn narrowed(chance: &mut Chance, around: i64) -> Schedule {
    let mut schedule = random_schedule(chance, around);
    schedule.calendars = random_calendars(chance, around);
    let mut bound = |chances: u64| {
        let moment = around - 5 * DAY as i64 + chance.below(10 * DAY) as i64;
        let millis = moment * 1_000 + [0, 0, 500][chance.below(3) as usize];
        (chance.below(chances) == 0).then(|| Timestamp::from_millis(millis))
    };
    schedule.bounds.starts_at = bound(4);
    schedule.bounds.ends_at = bound(3);
    schedule
}

/// A moment within a few days of another, both in seconds.
fn near(chance: &mut Chance, around: i64) -> Timestamp {
    let moment = (around - 6 * DAY as i64) * 1_000 + chance.below(12 * DAY * 1_000) as i64;
    Timestamp::from_millis(moment)
}

/// Changes of the clocks in Berlin, and a quiet day.
fn around(chance: &mut Chance) -> i64 {
    [1_774_746_000, 1_792_890_000, 1_782_000_000][chance.below(3) as usize]
}

#[test]
fn the_slot_found_is_the_first_that_a_slow_walk_finds_kept() {
    let mut chance = Chance(11);
    let mut found = [0; 3];
    for _ in 0..600 {
        let around = around(&mut chance);
        let schedule = narrowed(&mut chance, around);
        let after = near(&mut chance, around);
        let context = || format!("{schedule:?} after {after}");
        match schedule.find_kept(after) {
            Found::Kept(slot) => {
                found[0] += 1;
                let mut all = one_by_one(&schedule, after, slot.0);
                assert_eq!(all.pop(), Some((slot, None)), "{}", context());
                assert!(all.iter().all(|(_, by)| by.is_some()), "{}", context());
                assert!(schedule.keeps(slot), "{}", context());
            }
            Found::LeftOut(last) => {
                found[1] += 1;
                let month = after.plus(Duration::from_secs(30 * DAY));
                let all = one_by_one(&schedule, after, last.0.min(month));
                assert!(all.iter().all(|(_, by)| by.is_some()), "{}", context());
                assert!(!schedule.keeps(last), "{}", context());
                match schedule.bounds.ends_at {
                    Some(_) => assert_eq!(schedule.next_after(last.0), None, "{}", context()),
                    None => assert!(last.0 > after.plus(Duration::from_secs(300 * DAY))),
                }
            }
            Found::Nothing => {
                found[2] += 1;
                assert_eq!(schedule.next_after(after), None, "{}", context());
            }
        }
    }
    assert!(found.iter().all(|count| *count > 20), "{found:?}");
}

#[test]
fn stretches_left_out_are_those_of_a_slow_walk() {
    let mut chance = Chance(12);
    let (mut stretches, mut kept) = (0, 0);
    for _ in 0..600 {
        let around = around(&mut chance);
        let schedule = narrowed(&mut chance, around);
        let after = near(&mut chance, around);
        let until = after.plus(Duration::from_secs(chance.below(10 * DAY)));
        let context = || format!("{schedule:?} after {after} until {until}");
        let all = one_by_one(&schedule, after, until);
        let (left_out, rest): (Vec<_>, Vec<_>) = {
            let first_kept = all.iter().position(|(_, by)| by.is_none());
            let (out, rest) = all.split_at(first_kept.unwrap_or(all.len()));
            (out.to_vec(), rest.to_vec())
        };
        let mut expected: Vec<(Stretch, String)> = Vec::new();
        for (slot, by) in left_out {
            match expected.last_mut() {
                Some((stretch, name)) if Some(&*name) == by.as_ref() => {
                    stretch.last = slot;
                    stretch.count += 1;
                }
                Some(_) | None => expected.push((Stretch::one(slot), by.unwrap())),
            }
        }
        let found = schedule.left_out(after, until);
        assert_eq!(found.stretches, expected, "{}", context());
        assert_eq!(found.kept, !rest.is_empty(), "{}", context());
        let last = expected.last().map_or(after, |(stretch, _)| stretch.last.0);
        assert_eq!(found.next, schedule.next_after(last), "{}", context());
        stretches += expected.len();
        kept += usize::from(found.kept);
    }
    assert!(stretches > 300 && kept > 100, "{stretches} {kept}");
}

#[test]
fn what_is_kept_goes_on_as_a_slow_walk_says() {
    let mut chance = Chance(13);
    for _ in 0..300 {
        let around = around(&mut chance);
        let schedule = narrowed(&mut chance, around);
        let after = near(&mut chance, around);
        let Found::Kept(first) = schedule.find_kept(after) else {
            continue;
        };
        let until = first.0.plus(Duration::from_secs(chance.below(10 * DAY)));
        let stretch = schedule.kept_stretch(first, until);
        let before = first.0.minus(MILLISECOND);
        let covered = one_by_one(&schedule, before, stretch.last.0);
        assert_eq!(covered.len() as u64, stretch.count);
        assert!(covered.iter().all(|(_, by)| by.is_none()), "{schedule:?}");
        assert!(stretch.last.0 <= until);
    }
}

#[test]
fn a_job_of_christmas_without_christmas_ends_somewhere() {
    let never = cron("0 12 25 12 *", "Europe/Berlin").excluding(calendar("holidays", &["12-25"]));
    let Found::LeftOut(last) = never.find_kept(at("2026-01-01T00:00:00Z")) else {
        panic!("there is no other day");
    };
    assert!(last > slot("2100-01-01T00:00:00Z"), "{last}");
    assert!(!never.keeps(last));
    let each_minute = cron("* * * * *", "UTC").only(calendar("past", &["2020-01-01"]));
    let Found::LeftOut(last) = each_minute.find_kept(at("2026-01-01T00:00:00Z")) else {
        panic!("it has passed");
    };
    assert!(last > slot("2036-01-01T00:00:00Z"), "{last}");
    let left = each_minute.left_out(at("2025-12-31T23:59:59Z"), at("2026-12-31T23:59:59Z"));
    let [(stretch, name)] = left.stretches.as_slice() else {
        panic!("one stretch for a year of minutes");
    };
    assert_eq!((stretch.count, name.as_str()), (365 * 24 * 60, "past"));
}

#[test]
fn a_schedule_that_ends_while_left_out_names_its_last_slot() {
    let ending = cron("0 * * * *", "UTC")
        .ending("2026-12-25T18:30:00Z")
        .excluding(calendar("holidays", &["12-25", "12-26"]));
    assert_eq!(
        ending.find_kept(at("2026-12-24T23:00:00Z")),
        Found::LeftOut(slot("2026-12-25T18:00:00Z"))
    );
    assert_eq!(ending.find_kept(at("2026-12-25T18:00:00Z")), Found::Nothing);
    assert_eq!(
        ending.find_kept(at("2026-12-24T22:00:00Z")),
        Found::Kept(slot("2026-12-24T23:00:00Z"))
    );
    let once =
        Schedule::from(slot("2026-12-25T18:00:00Z")).excluding(calendar("holidays", &["12-25"]));
    assert_eq!(
        once.find_kept(at("2026-01-01T00:00:00Z")),
        Found::LeftOut(slot("2026-12-25T18:00:00Z"))
    );
}

#[test]
fn many_names_in_turn_are_written_in_bounded_steps() {
    let hours = |odd: usize| -> Vec<String> {
        let hours = (odd..24).step_by(2);
        hours
            .map(|hour| format!("MON-SUN {hour:02}:00-{:02}:00", hour + 1))
            .collect()
    };
    let named = |name: &str, odd: usize| {
        let hours = hours(odd);
        calendar(name, &hours.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let never = cron("0,30 * * * *", "UTC")
        .excluding(named("even", 0))
        .excluding(named("odd", 1));
    let after = at("2026-06-01T00:00:00Z");
    let left = never.left_out(after, at("2026-06-30T00:00:00Z"));
    assert_eq!(left.stretches.len(), limits::SKIPS_MAX);
    assert!(!left.kept);
    let (last, _) = left.stretches.last().unwrap();
    assert_eq!(left.next, never.next_after(last.last.0));
}

fn delay(text: &str) -> Schedule {
    let mut schedule = every(text, "2026-01-01T00:00:00Z", "UTC");
    if let Kind::Every(every) = &mut schedule.kind {
        every.after_completion = true;
    }
    schedule
}

#[test]
fn a_slot_set_by_the_end_of_a_run_waits_for_calendars() {
    let after_office = delay("1h").excluding(calendar("office", &["MON-FRI 09:00-17:00"]));
    let found = |after: &str| after_office.find_kept(at(after));
    let kept = |text: &str| Found::Kept(slot(text));
    // 6 November 2026 is a Friday.
    assert_eq!(found("2026-11-06T07:30:00Z"), kept("2026-11-06T08:30:00Z"));
    assert_eq!(found("2026-11-06T08:30:00Z"), kept("2026-11-06T17:00:00Z"));
    assert_eq!(found("2026-11-06T16:30:00Z"), kept("2026-11-06T17:30:00Z"));
    assert!(!after_office.leaves_out());
    // One that was set and is left out since waits from where it is: no second period is added.
    assert_eq!(
        after_office.first_kept(slot("2026-11-06T09:15:00Z")),
        kept("2026-11-06T17:00:00Z")
    );
    assert_eq!(
        after_office.first_kept(slot("2026-11-06T08:15:00Z")),
        kept("2026-11-06T08:15:00Z")
    );
}

#[test]
fn a_slot_that_waits_past_the_end_is_none() {
    let ending = delay("1h")
        .ending("2026-11-06T16:00:00Z")
        .excluding(calendar("office", &["MON-FRI 09:00-17:00"]));
    assert_eq!(ending.find_kept(at("2026-11-06T08:30:00Z")), Found::Nothing);
    let inclusive = ending.ending("2026-11-06T17:00:00Z");
    assert_eq!(
        inclusive.find_kept(at("2026-11-06T08:30:00Z")),
        Found::Kept(slot("2026-11-06T17:00:00Z"))
    );
}

#[test]
fn a_slot_set_by_the_end_of_a_run_waits_for_the_start() {
    let starting = delay("1h").starting("2026-11-06T12:00:00Z");
    let next = |after: &str| starting.next_after(at(after));
    assert_eq!(
        next("2026-11-06T08:00:00Z"),
        Some(slot("2026-11-06T12:00:00Z"))
    );
    assert_eq!(
        next("2026-11-06T11:30:00Z"),
        Some(slot("2026-11-06T12:30:00Z"))
    );
    assert_eq!(
        next("2026-11-06T12:00:00Z"),
        Some(slot("2026-11-06T13:00:00Z"))
    );
}

#[test]
fn without_calendars_every_slot_is_kept() {
    let hourly = cron("0 * * * *", "UTC");
    assert_eq!(hourly.calendars, Calendars::default());
    assert!(hourly.keeps(slot("2026-12-25T00:00:00Z")) && !hourly.leaves_out());
    assert_eq!(
        hourly.next_to_decide(at("2026-12-25T00:00:00Z")),
        Some(slot("2026-12-25T01:00:00Z"))
    );
    let left = hourly.left_out(at("2026-12-25T00:00:00Z"), at("2026-12-26T00:00:00Z"));
    assert_eq!(
        (left.stretches.len(), left.next, left.kept),
        (0, Some(slot("2026-12-25T01:00:00Z")), true)
    );
}

#[test]
fn what_lies_decades_ahead_is_found_in_a_few_lookups() {
    for zone in ["UTC", "Europe/Berlin"] {
        let far = cron("0 12 * * *", zone).only(calendar("later", &["2081-07-01/2081-08-01"]));
        let (found, took) = steps::of(|| far.find_kept(at("2026-01-01T00:00:00Z")));
        let Found::Kept(Slot(moment)) = found else {
            panic!("{found:?} in {zone}");
        };
        assert!(moment.to_string().starts_with("2081-07-01T1"), "{moment}");
        assert!(took.lookups <= 4, "{took:?} in {zone}");
    }
}

#[test]
fn a_calendar_without_an_end_leaves_out_all_there_is() {
    for zone in ["UTC", "Europe/Berlin"] {
        let never = || calendar("never", &["2020-01-01/2026-06-30", "2026-07-01/9998-12-31"]);
        let minutes = cron("* * * * *", zone).excluding(never());
        let (found, took) = steps::of(|| minutes.find_kept(at("2026-01-01T00:00:00Z")));
        assert_eq!(found, Found::LeftOut(slot("9999-12-30T21:59:00Z")));
        assert!(minutes.is_last(slot("9999-12-30T21:59:00Z")));
        assert!(took.lookups <= 4, "{took:?} in {zone}");
        // What waits for calendars waits to the end of time, and is not queried again and again.
        let waits = delay("1h").excluding(never());
        let (found, took) = steps::of(|| waits.find_kept(at("2026-01-01T00:00:00Z")));
        assert_eq!(found, Found::LeftOut(Slot(Timestamp::MAX)));
        assert!(waits.is_last(Slot(Timestamp::MAX)));
        assert!(took.lookups <= 4, "{took:?}");
    }
}

#[test]
fn where_the_search_ends_is_not_where_the_schedule_does() {
    let after = at("2026-01-01T00:00:00Z");
    let left_out = |schedule: &Schedule| match schedule.find_kept(after) {
        Found::LeftOut(last) => (last, schedule.is_last(last)),
        found @ (Found::Kept(_) | Found::Nothing) => panic!("{found:?}"),
    };
    let all_week = || calendar("week", &["MON-SUN"]);
    let hourly = cron("0 * * * *", "UTC").excluding(all_week());
    assert_eq!(left_out(&hourly), (slot("2039-09-09T00:00:00Z"), false));
    let ending = hourly.ending("2030-01-01T12:30:00Z");
    assert_eq!(left_out(&ending), (slot("2030-01-01T12:00:00Z"), true));
    let once = Schedule::from(slot("2026-12-25T18:00:00Z")).excluding(all_week());
    assert_eq!(left_out(&once), (slot("2026-12-25T18:00:00Z"), true));
    let past = || calendar("past", &["2020-01-01"]);
    for (text, last) in [
        ("0 0 29 2 *", "9996-02-29T00:00:00Z"),
        ("0 0 0 1 1 * 2030", "2030-01-01T00:00:00Z"),
        ("* * * * * *", "9999-12-30T21:59:59Z"),
    ] {
        let found = left_out(&cron(text, "UTC").only(past()));
        assert_eq!(found, (slot(last), true), "{text}");
    }
}

#[test]
fn edges_say_of_slots_in_order_what_calendars_say_of_each() {
    let mut chance = Chance(14);
    for _ in 0..300 {
        let around = around(&mut chance);
        let schedule = narrowed(&mut chance, around);
        let after = near(&mut chance, around);
        let mut edges = schedule.edges();
        for (slot, by) in one_by_one(&schedule, after, after.plus(Duration::from_secs(3 * DAY))) {
            assert_eq!(edges.keep(slot), by.is_none(), "{schedule:?} {slot}");
            let next = edges.next();
            assert!(next.is_none_or(|next| next > slot), "{schedule:?} {slot}");
        }
    }
}
