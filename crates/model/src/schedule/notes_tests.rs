use super::*;
use crate::schedule::CronOptions;

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
