use super::*;
use crate::schedule::CronOptions;
use crate::schedule::samples::{at, calendar, cron, every};

fn notes_of(text: &str, zone: &str, options: CronOptions, from: &str) -> Vec<String> {
    let options = CronOptions {
        zone: Some(Zone::get(zone).unwrap()),
        ..options
    };
    let anchor = Timestamp::parse("2026-01-31T01:30:00Z").unwrap();
    let schedule = Schedule::parse_text(text, options, anchor).unwrap();
    schedule.notes(Timestamp::parse(from).unwrap())
}

fn check(text: &str, zone: &str, expected: &[&str]) {
    let found = notes_of(text, zone, CronOptions::default(), "2026-01-01T00:00:00Z");
    assert_eq!(found, expected, "{text}");
}

#[test]
fn plain_schedules_need_no_note() {
    for text in [
        "*/15 * * * *",
        "0 9 * * MON-FRI",
        "@daily",
        "@hourly",
        "0 0 1,15 * *",
        "0 0 * * FRI-SUN",
    ] {
        check(text, "UTC", &[]);
    }
    check("*/15 * * * *", "Europe/Berlin", &[]);
    check("@every 90s", "Europe/Berlin", &[]);
}

#[test]
fn fields_that_mean_something_unexpected_are_noted() {
    check(
        "*/90 * * * *",
        "UTC",
        &["minute */90 is 0 only: the step is longer than the range"],
    );
    check(
        "50/20 9 * * *",
        "UTC",
        &["minute 50/20 is 50 only: the step is longer than the range"],
    );
    check(
        "*/7 * * * *",
        "UTC",
        &["minute */7 starts again at 0 every hour, so that one step is shorter"],
    );
    check(
        "0 22-2 * * *",
        "UTC",
        &["hour 22-2 goes around the end: 22, 23, 0, 1 and 2"],
    );
    check(
        "0 0 * NOV-FEB *",
        "UTC",
        &["month NOV-FEB goes around the end: November, December, January and February"],
    );
}

#[test]
fn days_that_mean_something_unexpected_are_noted() {
    check(
        "0 0 13 * FRI",
        "UTC",
        &[
            "both day fields are set, so either is enough: on day 13 of the month and also on Friday; \
         write + before the day of the week to require both",
        ],
    );
    check("0 0 13 * +FRI", "UTC", &[]);
    check(
        "0 0 31 * *",
        "UTC",
        &["has no slot in February, April, June, September or November"],
    );
    check(
        "0 0 29 * *",
        "UTC",
        &["has no slot in February except in leap years"],
    );
    check(
        "0 0 29 2 *",
        "UTC",
        &[
            "has no slot in February except in leap years",
            "the next slot is on 29 February 2028",
        ],
    );
    check(
        "0 0 0 1 1 ? 2020",
        "UTC",
        &["has no slot after 2026-01-01T00:00:00.000Z"],
    );
    let hashed = notes_of(
        "H H(0-3) * * *",
        "UTC",
        CronOptions::default(),
        "2026-01-01T00:00:00Z",
    );
    assert!(
        hashed[0].starts_with("minute H stands for ")
            && hashed[1].starts_with("hour H(0-3) stands")
    );
}

#[test]
fn changes_of_the_clocks_are_noted() {
    check(
        "30 2 * * *",
        "Europe/Berlin",
        &[
            "runs once on 29 March 2026 at 03:00 because 02:30 does not exist",
            "runs once on 25 October 2026, the first time, although 02:30 comes twice",
        ],
    );
    check(
        "0,30 2 * * *",
        "Europe/Berlin",
        &[
            "runs once on 29 March 2026 at 03:00 because 02:00 and what follows do not exist",
            "runs once on 25 October 2026, the first time, although 02:00 and what follows come twice",
        ],
    );
    check(
        "*/30 2 * * *",
        "Europe/Berlin",
        &[
            "does not run on 29 March 2026 because 02:00 and what follows do not exist",
            "runs twice on 25 October 2026 because 02:00 and what follows come twice",
        ],
    );
    check("30 3 * * *", "Europe/Berlin", &[]);
    let other = CronOptions {
        dst_gap: DstGap::Skip,
        dst_overlap: DstOverlap::Both,
        ..CronOptions::default()
    };
    assert_eq!(
        notes_of(
            "30 2 * * *",
            "Europe/Berlin",
            other.clone(),
            "2026-01-01T00:00:00Z"
        ),
        [
            "does not run on 29 March 2026 because 02:30 does not exist",
            "runs twice on 25 October 2026 because 02:30 comes twice",
        ]
    );
    assert_eq!(
        notes_of(
            "0 9 * * *",
            "Pacific/Apia",
            CronOptions::default(),
            "2011-12-01T00:00:00Z"
        ),
        ["runs once on 31 December 2011 at 00:00 because 09:00 on 30 December 2011 does not exist",]
    );
}

#[test]
fn intervals_have_notes_too() {
    check(
        "@every 1d",
        "Europe/Berlin",
        &["1d counts hours, so that the time of day moves when the clocks change; P1D keeps it"],
    );
    check("@every 1d", "Asia/Tokyo", &[]);
    check(
        "@every P1M",
        "UTC",
        &["runs on the last day of months that have no day 31"],
    );
    check(
        "@every P1D",
        "Europe/Berlin",
        &[
            "runs once on 29 March 2026 at 03:00 because 02:30 does not exist",
            "runs once on 25 October 2026, the first time, although 02:30 comes twice",
        ],
    );
    check("@every P1W", "Europe/Berlin", &[]);
}

fn of_narrowed(schedule: &Schedule) -> Vec<String> {
    schedule.notes(at("2026-06-01T00:00:00Z"))
}

#[test]
fn an_end_within_a_year_is_noted() {
    let daily = || cron("0 9 * * *", "Europe/Berlin");
    let ending = |end: &str| of_narrowed(&daily().ending(end));
    assert_eq!(ending("2026-09-30T23:00:00Z"), ["ends on 1 October 2026"]);
    assert_eq!(ending("2028-09-30T23:00:00Z"), [""; 0]);
    assert_eq!(
        ending("2026-05-30T00:00:00Z"),
        ["has no slot after 2026-06-01T00:00:00.000Z"]
    );
    assert_eq!(
        of_narrowed(&daily().starting("2030-01-01T00:00:00Z")),
        ["the next slot is on 1 January 2030"]
    );
}

#[test]
fn days_that_calendars_leave_out_are_noted() {
    let holidays = || calendar("holidays", &["12-25", "12-26", "2026-07-14"]);
    let notes = |text: &str| of_narrowed(&cron(text, "UTC").excluding(holidays()));
    let days = [
        "14 July 2026 is left out by holidays",
        "25 December 2026 to 26 December 2026 is left out by holidays",
    ];
    assert_eq!(notes("0 9 * * *"), days);
    assert_eq!(notes("*/5 * * * *"), days);
    assert_eq!(notes("0 9 * JAN *"), [""; 0]);
    let lunch = calendar("lunch", &["MON-FRI 12:00-13:00"]);
    assert_eq!(
        of_narrowed(&cron("*/20 8-16 * * *", "UTC").excluding(lunch)),
        [
            "12:00 to 12:40 on 1 June 2026 is left out by lunch",
            "12:00 to 12:40 on 2 June 2026 is left out by lunch",
            "12:00 to 12:40 on 3 June 2026 is left out by lunch",
        ]
    );
    let office = calendar("office", &["MON-FRI 09:00-17:00"]);
    assert_eq!(
        of_narrowed(&cron("0 * * * *", "UTC").only(office))[1],
        "17:00 on 1 June 2026 to 08:00 on 2 June 2026 is left out by office"
    );
    let noon = calendar("noon", &["2026-06-03T11:00/2026-06-03T13:00"]);
    assert_eq!(
        of_narrowed(&cron("0 10,12 * * *", "UTC").excluding(noon)),
        ["12:00 on 3 June 2026 is left out by noon"]
    );
}

#[test]
fn what_never_runs_for_its_calendars_is_noted() {
    let christmas = cron("0 9 25 12 *", "UTC").excluding(calendar("holidays", &["12-25"]));
    let found = of_narrowed(&christmas);
    assert_eq!(found.len(), 1);
    let says = "every slot up to 25 December ";
    assert!(found[0].starts_with(says), "{found:?}");
    let how_far = " is left out by holidays, nothing later was checked";
    assert!(found[0].ends_with(how_far), "{found:?}");
    let past = cron("0 9 * * *", "UTC").only(calendar("past", &["2020-01-01"]));
    assert_eq!(
        of_narrowed(&past),
        ["every slot is left out by past; the last is on 30 December 9999"]
    );
    let ending = cron("0 9 * * *", "UTC")
        .ending("2026-06-20T00:00:00Z")
        .excluding(calendar("june", &["2026-06-01/2026-06-30"]));
    assert_eq!(
        of_narrowed(&ending),
        [
            "every slot is left out by june; the last is on 19 June 2026",
            "ends on 20 June 2026",
        ]
    );
    let once = Schedule::from(Slot(at("2026-06-20T00:00:00Z")))
        .excluding(calendar("june", &["2026-06-01/2026-06-30"]));
    assert_eq!(of_narrowed(&once), ["its slot is left out by june"]);
    let far = cron("0 9 * * *", "UTC").only(calendar("later", &["2031-02-03"]));
    assert_eq!(of_narrowed(&far)[0], "the next slot is on 3 February 2031");
}

#[test]
fn a_job_that_waits_for_its_runs_is_noted() {
    let mut delay = every("1d", "2026-06-01T00:00:00Z", "Europe/Berlin");
    if let Kind::Every(every) = &mut delay.kind {
        every.after_completion = true;
    }
    assert_eq!(
        of_narrowed(&delay),
        ["slots shown assume runs that take no time"]
    );
}
