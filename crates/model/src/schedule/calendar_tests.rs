use jiff::civil::{Date, DateTime, Time};

use super::*;
use crate::schedule::reference::{Chance, time_zone};
use crate::schedule::samples::{ZONES, at, calendar, calendar_in, entries, zone};

fn holds(calendar: &Calendar, zone_name: &str, moment: &str) -> bool {
    calendar.holds(at(moment), &zone(zone_name))
}

/// For each moment, whether a calendar of these entries holds it.
fn check(entries: &[&str], zone_name: &str, moments: &[(&str, bool)]) {
    let calendar = calendar("some", entries);
    for (moment, expected) in moments {
        let found = holds(&calendar, zone_name, moment);
        assert_eq!(found, *expected, "{entries:?} in {zone_name} at {moment}");
    }
}

#[test]
fn a_date_is_a_whole_day_of_the_jobs_zone() {
    let days = [
        ("2026-12-24T22:59:59.999Z", false),
        ("2026-12-24T23:00:00Z", true),
        ("2026-12-25T22:59:59.999Z", true),
        ("2026-12-25T23:00:00Z", false),
        ("2027-12-25T12:00:00Z", false),
    ];
    check(&["2026-12-25"], "Europe/Berlin", &days);
}

#[test]
fn a_calendar_with_a_zone_keeps_to_it() {
    let tokyo = calendar_in("tokyo", "Asia/Tokyo", &["2026-12-25"]);
    for job_zone in ZONES {
        assert!(holds(&tokyo, job_zone, "2026-12-24T15:00:00Z"));
        assert!(holds(&tokyo, job_zone, "2026-12-25T14:59:59Z"));
        assert!(!holds(&tokyo, job_zone, "2026-12-25T15:00:00Z"));
    }
}

#[test]
fn a_day_of_the_year_comes_every_year_and_the_leap_day_when_there_is_one() {
    let christmas = [
        ("1970-12-25T12:00:00Z", true),
        ("2026-12-25T00:00:00Z", true),
        ("9998-12-25T23:59:59Z", true),
        ("2026-12-26T00:00:00Z", false),
    ];
    check(&["12-25"], "UTC", &christmas);
    let leap_day = [
        ("2027-02-28T12:00:00Z", false),
        ("2027-03-01T12:00:00Z", false),
        ("2028-02-29T12:00:00Z", true),
        ("2100-02-28T12:00:00Z", false),
        ("2100-03-01T00:00:00Z", false),
    ];
    check(&["02-29"], "UTC", &leap_day);
}

#[test]
fn days_of_the_week_go_round() {
    // 1 November 2026 is a Sunday.
    let day = |day: u32| format!("2026-11-0{day}T12:00:00Z");
    let held = |entry: &str| -> Vec<u32> {
        let calendar = calendar("some", &[entry]);
        (1..=7)
            .filter(|n| holds(&calendar, "UTC", &day(*n)))
            .collect()
    };
    assert_eq!(held("SUN"), [1]);
    assert_eq!(held("sat-Sunday"), [1, 7]);
    assert_eq!(held("MON-FRI"), [2, 3, 4, 5, 6]);
    assert_eq!(held("FRI-MON"), [1, 2, 6, 7]);
    assert_eq!(held("TUE-MON"), [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn a_window_is_a_part_of_each_day() {
    // 6 November 2026 is a Friday.
    let office = [
        ("2026-11-06T08:59:59Z", false),
        ("2026-11-06T09:00:00Z", true),
        ("2026-11-06T16:59:59.999Z", true),
        ("2026-11-06T17:00:00Z", false),
        ("2026-11-07T12:00:00Z", false),
    ];
    check(&["MON-FRI 09:00-17:00"], "UTC", &office);
    let to_the_end = [
        ("2026-11-06T17:59:59Z", false),
        ("2026-11-06T23:59:59.999Z", true),
        ("2026-11-07T00:00:00Z", false),
    ];
    check(&["FRI 18:00-24:00"], "UTC", &to_the_end);
    check(&["FRI 18:00-00:00"], "UTC", &to_the_end);
    let all_day = [
        ("2026-11-05T23:59:59Z", false),
        ("2026-11-06T00:00:00Z", true),
        ("2026-11-06T23:59:59Z", true),
        ("2026-11-07T00:00:00Z", false),
    ];
    check(&["FRI 00:00-24:00"], "UTC", &all_day);
}

#[test]
fn a_window_over_midnight_belongs_to_the_day_it_begins() {
    let nights = [
        ("2026-11-06T05:59:59Z", false),
        ("2026-11-06T21:59:59Z", false),
        ("2026-11-06T22:00:00Z", true),
        ("2026-11-07T05:59:59Z", true),
        ("2026-11-07T06:00:00Z", false),
        ("2026-11-07T22:00:00Z", true),
        ("2026-11-08T05:59:59Z", true),
        ("2026-11-08T22:00:00Z", false),
    ];
    check(&["FRI-SAT 22:00-06:00"], "UTC", &nights);
    // From Sunday over the end of the week.
    let sunday = [
        ("2026-11-08T23:00:00Z", true),
        ("2026-11-09T00:59:59Z", true),
        ("2026-11-09T01:00:00Z", false),
    ];
    check(&["SUN 23:00-01:00"], "UTC", &sunday);
}

#[test]
fn a_range_holds_whole_dates_or_times() {
    let dates = [
        ("2026-12-23T23:59:59Z", false),
        ("2026-12-24T00:00:00Z", true),
        ("2027-01-02T23:59:59.999Z", true),
        ("2027-01-03T00:00:00Z", false),
    ];
    check(&["2026-12-24/2027-01-02"], "UTC", &dates);
    let times = [
        ("2026-12-24T17:59:59.999Z", false),
        ("2026-12-24T18:00:00Z", true),
        ("2026-12-27T05:59:59.999Z", true),
        ("2026-12-27T06:00:00Z", false),
    ];
    check(&["2026-12-24T18:00/2026-12-27T06:00"], "UTC", &times);
    let mixed = [
        ("2026-12-24T17:59:00Z", false),
        ("2026-12-24T23:59:00Z", true),
        ("2026-12-25T00:00:00Z", false),
    ];
    check(&["2026-12-24T18:00/2026-12-24"], "UTC", &mixed);
}

#[test]
fn times_that_do_not_exist_hold_nothing_and_repeated_ones_hold_twice() {
    let gap = [
        ("2026-03-29T00:59:59Z", false),
        ("2026-03-29T01:00:00Z", false),
        ("2026-04-05T00:30:00Z", true),
    ];
    check(&["SUN 02:00-03:00"], "Europe/Berlin", &gap);
    let overlap = [
        ("2026-10-24T23:59:59Z", false),
        ("2026-10-25T00:00:00Z", true),
        ("2026-10-25T00:59:59Z", true),
        ("2026-10-25T01:00:00Z", true),
        ("2026-10-25T01:59:59Z", true),
        ("2026-10-25T02:00:00Z", false),
    ];
    check(&["SUN 02:00-03:00"], "Europe/Berlin", &overlap);
    // Half of the repeated hour: it ends, and comes again.
    let twice = [
        ("2026-10-25T00:15:00Z", true),
        ("2026-10-25T00:30:00Z", false),
        ("2026-10-25T01:15:00Z", true),
        ("2026-10-25T01:30:00Z", false),
    ];
    check(
        &["2026-10-25T02:00/2026-10-25T02:30"],
        "Europe/Berlin",
        &twice,
    );
}

#[test]
fn a_day_that_a_zone_left_out_holds_nothing() {
    let skipped = calendar("some", &["2011-12-30"]);
    let apia = zone("Pacific/Apia");
    let start = at("2011-12-29T00:00:00Z").as_millis();
    for minute in 0..4 * 24 * 60 {
        assert!(!skipped.holds(Timestamp::from_millis(start + minute * 60_000), &apia));
    }
}

#[test]
fn entries_read_as_they_print() {
    for text in ["2026-12-25", "1970-01-01", "9998-12-31", "2028-02-29"] {
        assert_eq!(Day::parse(text).unwrap().to_string(), text);
    }
    for text in ["12-25", "02-29", "01-01"] {
        assert_eq!(Yearly::parse(text).unwrap().to_string(), text);
    }
    for text in [
        "SAT",
        "SAT-SUN",
        "MON-FRI 09:00-17:00",
        "FRI-MON 22:00-06:00",
        "SUN 00:00-24:00",
    ] {
        assert_eq!(Weekly::parse(text).unwrap().to_string(), text);
    }
    for text in [
        "2026-12-24/2027-01-02",
        "2026-12-24/2026-12-24",
        "2026-12-24T18:00/2026-12-27T06:00",
        "2026-12-24T00:00/2026-12-24",
    ] {
        assert_eq!(DateRange::parse(text).unwrap().to_string(), text);
    }
}

#[test]
fn what_is_no_entry_is_refused() {
    for text in [
        "",
        "2026-02-29",
        "2026-13-01",
        "2026-1-1",
        "26-01-01",
        "2026-00-10",
        "2026-01-00",
        "2026-12-25T00:00",
        "1969-12-31",
        "9999-01-01",
        "+026-01-01",
    ] {
        assert!(Day::parse(text).is_err(), "{text}");
    }
    for text in ["", "13-01", "02-30", "1-1", "00-01", "12-25-2026", "-1-01"] {
        assert!(Yearly::parse(text).is_err(), "{text}");
    }
    for text in [
        "",
        "MOON",
        "MON-",
        "MON 9-17",
        "MON 09:00",
        "MON 09:00-09:00",
        "MON 24:00-09:00",
        "MON 09:00-24:01",
        "MON 09:60-10:00",
        "MON 09:00-17:00 x",
        "MON,TUE",
    ] {
        assert!(Weekly::parse(text).is_err(), "{text}");
    }
    for text in [
        "",
        "2026-12-24",
        "2026-12-24/",
        "2026-12-24T24:00/2026-12-26",
        "2026-12-24T18:00:00/2026-12-26",
        "2026-12-24T18:00-19:00/2026-12-26",
    ] {
        let error = DateRange::parse(text).unwrap_err();
        assert!(matches!(error, CalendarError::Range { .. }), "{text}");
    }
    for text in [
        "2026-12-25/2026-12-24",
        "2026-12-24T18:00/2026-12-24T18:00",
        "2026-12-24T18:00/2026-12-24T17:59",
    ] {
        let error = DateRange::parse(text).unwrap_err();
        assert!(matches!(error, CalendarError::Backwards { .. }), "{text}");
    }
    for name in ["", "a b", "a/b", "ä", &"x".repeat(129)] {
        assert!(CalendarName::new(name).is_err(), "{name}");
    }
    assert!(CalendarName::new("holidays.de_2026-x").is_ok());
}

#[test]
fn the_same_times_may_have_another_name_but_no_other_zone() {
    let one = calendar("one", &["12-25", "SAT"]);
    let mut other = calendar("other", &["12-25", "SAT"]);
    (other.version, other.note) = (Version(7), Some("note".to_owned()));
    assert!(one.same_times(&other));
    other.zone = Some(zone("Europe/Berlin"));
    assert!(!one.same_times(&other));
    assert!(!one.same_times(&calendar("one", &["12-25", "SUN"])));
    assert_eq!((one.len(), one.is_empty()), (2, false));
}

#[test]
fn what_any_excludes_and_what_none_includes_is_left_out() {
    let calendars = Calendars {
        exclude: vec![
            Arc::new(calendar("holidays", &["12-25"])),
            Arc::new(calendar("nights", &["MON-SUN 22:00-06:00"])),
        ],
        only: vec![
            Arc::new(calendar("week", &["MON-FRI"])),
            Arc::new(calendar("december", &["2026-12-01/2026-12-31"])),
        ],
    };
    let left_out = |moment: &str| calendars.exclusion(Slot(at(moment)), &Zone::utc());
    let by = |moment: &str| left_out(moment).by;
    assert_eq!(by("2026-12-25T12:00:00Z").as_deref(), Some("holidays"));
    assert_eq!(by("2026-12-24T23:00:00Z").as_deref(), Some("nights"));
    assert_eq!(by("2026-12-25T23:00:00Z").as_deref(), Some("holidays"));
    // A Saturday, which only December keeps.
    assert_eq!(by("2026-12-26T12:00:00Z"), None);
    assert_eq!(
        by("2026-11-28T12:00:00Z").as_deref(),
        Some("week, december")
    );
    assert_eq!(
        left_out("2026-12-24T23:00:00Z").until,
        at("2026-12-25T00:00:00Z")
    );
    let names: Vec<&str> = calendars
        .names()
        .into_iter()
        .map(CalendarName::as_str)
        .collect();
    assert_eq!(names, ["december", "holidays", "nights", "week"]);
}

/// The slow reference: whether the clock on the wall shows a time that one of the entries names, with
/// jiff's dates and no arithmetic of ours.
fn one_by_one(entries: &[String], shown: DateTime) -> bool {
    entries.iter().any(|entry| {
        if let Some((from, to)) = entry.split_once('/') {
            let start: DateTime = from.parse().unwrap();
            let end: DateTime = if to.contains('T') {
                to.parse().unwrap()
            } else {
                to.parse::<Date>().unwrap().tomorrow().unwrap().into()
            };
            return start <= shown && shown < end;
        }
        if entry.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return is_in_week(entry, shown);
        }
        shown.date().to_string().ends_with(entry.as_str())
    })
}

fn is_in_week(entry: &str, shown: DateTime) -> bool {
    let order = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
    let place = |name: &str| order.iter().position(|day| *day == name).unwrap();
    let (days, window) = match entry.split_once(' ') {
        Some((days, window)) => (days, Some(window)),
        None => (entry, None),
    };
    let (first, last) = days.split_once('-').unwrap_or((days, days));
    let (mut day, last) = (place(first), place(last));
    let mut named = vec![day];
    while day != last {
        day = (day + 1) % 7;
        named.push(day);
    }
    let is_named = |date: Date| named.contains(&(date.weekday().to_sunday_zero_offset() as usize));
    let (today, yesterday) = (shown.date(), shown.date().yesterday().unwrap());
    let Some((from, to)) = window.and_then(|window| window.split_once('-')) else {
        return is_named(today);
    };
    let from: Time = from.parse().unwrap();
    let time = shown.time();
    if to == "24:00" {
        return is_named(today) && from <= time;
    }
    let to: Time = to.parse().unwrap();
    if from < to {
        return is_named(today) && from <= time && time < to;
    }
    (is_named(today) && from <= time) || (is_named(yesterday) && time < to)
}

/// Walks from answer to answer: each must hold for every step up to where it says it does.
fn compare(entries: &[String], zone_name: &str, first: i64, last: i64, step: i64) {
    let texts: Vec<&str> = entries.iter().map(String::as_str).collect();
    let (calendar, zone) = (calendar("some", &texts), zone(zone_name));
    let time_zone = time_zone(zone_name);
    let mut held = Held {
        inside: false,
        until: first,
    };
    for moment in (first..last).step_by(step as usize) {
        let context = || format!("{entries:?} in {zone_name} at {moment}");
        let shown = time_zone.to_datetime(jiff::Timestamp::from_second(moment).unwrap());
        let expected = one_by_one(entries, shown);
        if moment >= held.until {
            held = calendar.held_at(moment, &zone);
            assert!(held.until > moment, "{}", context());
        }
        assert_eq!(held.inside, expected, "{}, until {}", context(), held.until);
        let holds = calendar.holds(Timestamp::from_millis(moment * 1_000 + 999), &zone);
        assert_eq!(holds, expected, "{}", context());
    }
}

/// Changes of the clocks, and days without any, around which calendars are compared.
fn moments(zone_name: &str) -> Vec<i64> {
    let zone = zone(zone_name);
    let changes = std::iter::successors(zone.shift_after(1_300_000_000), |shift| {
        zone.shift_after(shift.at)
    });
    let changes = changes.map(|shift| shift.at);
    let mut moments: Vec<i64> = changes.take_while(|at| *at < 1_850_000_000).collect();
    moments.push(1_835_400_000); // 29 February 2028.
    moments.push(1_798_761_600); // 1 January 2027.
    moments
}

#[test]
fn every_minute_is_held_as_the_slow_reference_says() {
    let mut chance = Chance(77);
    for name in ZONES {
        for moment in moments(name).into_iter().step_by(2) {
            // Aligned to minutes even where clocks once changed at odd seconds.
            let first = (moment - 2 * 86_400).div_euclid(60) * 60;
            let entries = entries(&mut chance, moment);
            compare(&entries, name, first, first + 4 * 86_400, 60);
        }
    }
}

#[test]
fn every_second_around_a_change_is_held_as_the_slow_reference_says() {
    let mut chance = Chance(4_711);
    for (name, moment) in [
        ("Europe/Berlin", 1_774_746_000),
        ("Europe/Berlin", 1_792_890_000),
        ("Australia/Lord_Howe", 1_775_314_800),
        ("Pacific/Apia", 1_325_239_200),
    ] {
        for _ in 0..6 {
            let entries = entries(&mut chance, moment);
            compare(&entries, name, moment - 5_000, moment + 5_000, 1);
        }
    }
}

#[test]
fn an_answer_at_any_moment_holds_until_it_says() {
    let mut chance = Chance(99);
    for round in 0..3_000 {
        let name = ZONES[round % ZONES.len()];
        let moment = 1_760_000_000 + chance.below(60_000_000) as i64;
        let calendars = crate::schedule::samples::random_calendars(&mut chance, moment);
        let zone = zone(name);
        let exclusion =
            |moment: i64| calendars.exclusion(Slot(Timestamp::from_millis(moment)), &zone);
        let from = moment * 1_000 + chance.below(1_000) as i64;
        let found = exclusion(from);
        let until = found.until.as_millis().min(from + 40 * 86_400_000);
        assert!(until > from);
        for _ in 0..8 {
            let inside = from + chance.below((until - from) as u64) as i64;
            assert_eq!(
                exclusion(inside).by,
                found.by,
                "{calendars:?} {from} {inside}"
            );
        }
        assert_eq!(exclusion(until - 1).by, found.by, "{calendars:?} {from}");
    }
}
