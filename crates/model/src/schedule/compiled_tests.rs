use crate::limits;
use crate::schedule::samples::{Chance, at, calendar, entries, steps, zone};
use crate::schedule::{Calendars, Day, Zone};
use crate::time::Slot;

use super::*;

/// As many entries as a calendar may have, of every kind.
fn full() -> Calendar {
    let mut calendar = calendar(
        "full",
        &["12-25", "02-29", "SAT-SUN", "MON-FRI 22:00-06:00"],
    );
    let first = Day::parse("2026-01-01").unwrap().days();
    while calendar.len() < limits::CALENDAR_ENTRIES_MAX {
        let Date { year, month, day } = Date::from_days(first + 3 * calendar.len() as i64);
        let date = format!("{year:04}-{month:02}-{day:02}");
        calendar.dates.push(Day::parse(&date).unwrap());
    }
    calendar
}

fn calendars_of(calendar: Calendar) -> Calendars {
    Calendars {
        exclude: vec![std::sync::Arc::new(calendar)],
        only: Vec::new(),
    }
}

#[test]
fn many_entries_are_searched_and_not_read() {
    let calendars = calendars_of(full());
    let days = (0..1_000).map(|day| at("2026-06-01T12:00:00Z").plus(DAYS * day));
    let (_, took) = steps::of(|| {
        days.for_each(|moment| drop(calendars.exclusion(Slot(moment), &Zone::utc())));
    });
    assert_eq!((took.compiled, took.lookups), (1, 1_000));
    // The binary logarithm of two thousand spans and of the few windows of a day, and one more for each.
    assert!(took.compared <= 1_000 * (12 + 2), "{took:?}");
}

const DAYS: std::time::Duration = std::time::Duration::from_secs(DAY as u64);

#[test]
fn a_copy_may_be_changed_after_the_original_was_read() {
    let original = calendar("some", &["2026-12-25"]);
    let christmas = at("2026-12-25T12:00:00Z");
    assert!(original.holds(christmas, &Zone::utc()));
    let mut copy = original.clone();
    assert_eq!(copy, original);
    copy.dates = vec![Day::parse("2026-12-26").unwrap()];
    assert!(!copy.holds(christmas, &Zone::utc()));
    assert!(original.holds(christmas, &Zone::utc()));
    assert_ne!(copy, original);
}

#[test]
fn entries_stay_as_they_were_written() {
    let texts = ["2026-12-25", "2026-01-01", "2026-12-25", "2026-06-01"];
    let calendar = calendar("some", &texts);
    assert!(calendar.holds(at("2026-01-01T12:00:00Z"), &Zone::utc()));
    let shown: Vec<String> = calendar.dates.iter().map(ToString::to_string).collect();
    assert_eq!(shown, texts);
}

#[test]
fn what_overlaps_or_touches_is_one() {
    let found = merged(vec![
        (5, 9),
        (0, 2),
        (2, 3),
        (6, 7),
        (9, 10),
        (20, 30),
        (12, 13),
    ]);
    assert_eq!(found, [(0, 3), (5, 10), (12, 13), (20, 30)]);
    assert_eq!(merged(Vec::new()), []);
}

/// For each moment, who leaves it out and until when.
fn check(entries: &[&str], zone_name: &str, moments: &[(&str, bool, &str)]) {
    let calendars = calendars_of(calendar("some", entries));
    for (moment, inside, until) in moments {
        let found = calendars.exclusion(Slot(at(moment)), &zone(zone_name));
        let expected = (*inside, at(until));
        let found = (found.by.is_some(), found.until);
        assert_eq!(found, expected, "{entries:?} in {zone_name} at {moment}");
    }
}

#[test]
fn an_answer_goes_from_date_to_date_and_through_those_in_a_row() {
    let holidays = [
        "2026-12-26",
        "2026-12-25",
        "2026-12-27T00:00/2026-12-28T18:00",
        "2031-02-03",
    ];
    let edges = [
        ("2026-06-01T00:00:00Z", false, "2026-12-25T00:00:00Z"),
        ("2026-12-25T12:00:00Z", true, "2026-12-28T18:00:00Z"),
        ("2026-12-28T18:00:00Z", false, "2031-02-03T00:00:00Z"),
        ("2031-02-03T00:00:00Z", true, "2031-02-04T00:00:00Z"),
        ("2031-02-04T00:00:00Z", false, "9999-12-30T21:59:59.999Z"),
    ];
    check(&holidays, "UTC", &edges);
}

#[test]
fn changes_of_the_clocks_do_not_matter_far_from_an_edge() {
    let edges = [
        // The 26 hours before an edge may be cut by a change, but no more.
        ("2026-06-01T00:00:00Z", false, "2060-05-30T22:00:00Z"),
        ("2060-05-30T22:00:00Z", false, "2060-05-31T22:00:00Z"),
        // Close to the beginning, the next change may lead back.
        ("2060-05-31T22:00:00Z", true, "2060-10-31T01:00:00Z"),
        ("2060-10-31T01:00:00Z", true, "9999-12-30T21:59:59.999Z"),
    ];
    check(&["2060-06-01/9998-12-31"], "Europe/Berlin", &edges);
}

#[test]
fn windows_that_touch_are_one_and_wait_for_the_next_span() {
    let windows = [
        "MON 09:00-12:00",
        "MON 12:00-14:00",
        "MON 10:00-11:00",
        "2026-06-01T15:00/2026-06-01T16:00",
    ];
    // 1 June 2026 is a Monday.
    let edges = [
        ("2026-06-01T00:00:00Z", false, "2026-06-01T09:00:00Z"),
        ("2026-06-01T09:30:00Z", true, "2026-06-01T14:00:00Z"),
        ("2026-06-01T14:00:00Z", false, "2026-06-01T15:00:00Z"),
        ("2026-06-01T15:00:00Z", true, "2026-06-01T16:00:00Z"),
        ("2026-06-01T16:00:00Z", false, "2026-06-02T00:00:00Z"),
    ];
    check(&windows, "UTC", &edges);
}

#[test]
fn a_calendar_holds_what_one_of_its_entries_holds_alone() {
    let mut chance = Chance(31);
    for round in 0..60 {
        let around = [1_774_746_000, 1_792_890_000, 1_782_000_000][round % 3];
        let texts: Vec<String> = (0..12).flat_map(|_| entries(&mut chance, around)).collect();
        let all: Vec<&str> = texts.iter().map(String::as_str).collect();
        let all = calendar("all", &all);
        let alone: Vec<Calendar> = texts.iter().map(|it| calendar("one", &[it])).collect();
        let berlin = zone("Europe/Berlin");
        for _ in 0..300 {
            let second = around - 6 * DAY + chance.below(12 * DAY as u64) as i64;
            let moment = crate::time::Timestamp::from_millis(second * 1_000);
            let expected = alone.iter().any(|one| one.holds(moment, &berlin));
            assert_eq!(all.holds(moment, &berlin), expected, "{texts:?} {moment}");
        }
    }
}
