//! Daylight saving by example: the rules of the design, case by case, with the dates people know.

use super::{Cron, CronOptions, DstGap, DstOverlap, Zone};
use crate::time::Timestamp;

fn slots(text: &str, zone: &str, options: CronOptions, from: &str, count: usize) -> String {
    let options = CronOptions {
        zone: Some(Zone::get(zone).unwrap()),
        ..options
    };
    let cron = Cron::parse(&[text.to_owned()], options).unwrap();
    let first = cron.next_after(Timestamp::parse(from).unwrap());
    let slots = std::iter::successors(first, |slot| cron.next_after(slot.0));
    let shown = slots
        .take(count)
        .map(|slot| slot.to_string().replace(":00.000Z", "Z"));
    shown.collect::<Vec<_>>().join(" ")
}

fn check(text: &str, zone: &str, from: &str, expected: &str) {
    let found = slots(
        text,
        zone,
        CronOptions::default(),
        from,
        expected.split(' ').count(),
    );
    assert_eq!(found, expected, "{text} {zone}");
}

const SPRING: &str = "2026-03-28T12:00:00Z";
const AUTUMN: &str = "2026-10-24T12:00:00Z";

#[test]
fn a_fixed_time_in_a_gap_runs_once_at_its_end() {
    check(
        "30 2 * * *",
        "Europe/Berlin",
        SPRING,
        "2026-03-29T01:00Z 2026-03-30T00:30Z",
    );
    check(
        "0,30 2 * * *",
        "Europe/Berlin",
        SPRING,
        "2026-03-29T01:00Z 2026-03-30T00:00Z",
    );
    check(
        "0 2,3 * * *",
        "Europe/Berlin",
        SPRING,
        "2026-03-29T01:00Z 2026-03-30T00:00Z",
    );
    check(
        "30 2,3 * * *",
        "Europe/Berlin",
        SPRING,
        "2026-03-29T01:00Z 2026-03-29T01:30Z",
    );
    check(
        "30 1,2 * * *",
        "Europe/Berlin",
        SPRING,
        "2026-03-29T00:30Z 2026-03-29T01:00Z 2026-03-29T23:30Z",
    );
    check(
        "0 3 * * *",
        "Europe/Berlin",
        SPRING,
        "2026-03-29T01:00Z 2026-03-30T01:00Z",
    );
}

#[test]
fn a_fixed_time_in_a_gap_may_be_skipped() {
    let skip = || CronOptions {
        dst_gap: DstGap::Skip,
        ..CronOptions::default()
    };
    assert_eq!(
        slots("30 2 * * *", "Europe/Berlin", skip(), SPRING, 1),
        "2026-03-30T00:30Z"
    );
    assert_eq!(
        slots("30 2,3 * * *", "Europe/Berlin", skip(), SPRING, 1),
        "2026-03-29T01:30Z"
    );
}

#[test]
fn a_fixed_time_that_comes_twice_runs_the_first_time() {
    check(
        "30 2 * * *",
        "Europe/Berlin",
        AUTUMN,
        "2026-10-25T00:30Z 2026-10-26T01:30Z",
    );
    check(
        "0,30 2 * * *",
        "Europe/Berlin",
        AUTUMN,
        "2026-10-25T00:00Z 2026-10-25T00:30Z 2026-10-26T01:00Z",
    );
    check(
        "0/20 2 * * *",
        "Europe/Berlin",
        "2026-10-25T00:50:00Z",
        "2026-10-26T01:00Z",
    );
    check("0 3 * * *", "Europe/Berlin", AUTUMN, "2026-10-25T02:00Z");
    let both = CronOptions {
        dst_overlap: DstOverlap::Both,
        ..CronOptions::default()
    };
    assert_eq!(
        slots("30 2 * * *", "Europe/Berlin", both, AUTUMN, 3),
        "2026-10-25T00:30Z 2026-10-25T01:30Z 2026-10-26T01:30Z"
    );
}

#[test]
fn within_the_second_pass_nothing_runs_again() {
    for from in [
        "2026-10-25T00:30:00Z",
        "2026-10-25T00:45:00Z",
        "2026-10-25T01:00:00Z",
        "2026-10-25T01:29:59.999Z",
    ] {
        check("30 2 * * *", "Europe/Berlin", from, "2026-10-26T01:30Z");
    }
}

#[test]
fn a_star_in_minute_or_hour_follows_elapsed_time() {
    check(
        "30 * * * *",
        "Europe/Berlin",
        "2026-03-28T23:45:00Z",
        "2026-03-29T00:30Z 2026-03-29T01:30Z",
    );
    check(
        "30 * * * *",
        "Europe/Berlin",
        "2026-10-24T23:45:00Z",
        "2026-10-25T00:30Z 2026-10-25T01:30Z 2026-10-25T02:30Z",
    );
    check("*/30 2 * * *", "Europe/Berlin", SPRING, "2026-03-30T00:00Z");
    check(
        "*/30 2 * * *",
        "Europe/Berlin",
        AUTUMN,
        "2026-10-25T00:00Z 2026-10-25T00:30Z 2026-10-25T01:00Z 2026-10-25T01:30Z 2026-10-26T01:00Z",
    );
    check(
        "0 */2 * * *",
        "Europe/Berlin",
        "2026-03-28T23:00:00Z",
        "2026-03-29T02:00Z 2026-03-29T04:00Z",
    );
    check(
        "0-59/30 0-23 * * *",
        "Europe/Berlin",
        "2026-10-25T00:20:00Z",
        "2026-10-25T00:30Z 2026-10-25T02:00Z",
    );
}

#[test]
fn a_gap_at_midnight_moves_the_day_and_no_more() {
    // The clocks of Beirut jump from 00:00 to 01:00 on 29 March 2026, those of Havana on 8 March.
    check(
        "0 0 * * *",
        "Asia/Beirut",
        "2026-03-28T12:00:00Z",
        "2026-03-28T22:00Z 2026-03-29T21:00Z",
    );
    check(
        "30 0 29 * *",
        "Asia/Beirut",
        "2026-03-28T12:00:00Z",
        "2026-03-28T22:00Z 2026-04-28T21:30Z",
    );
    check(
        "@daily",
        "America/Havana",
        "2026-03-07T12:00:00Z",
        "2026-03-08T05:00Z 2026-03-09T04:00Z",
    );
    check(
        "0 12 * * *",
        "Africa/Cairo",
        "2026-04-23T12:00:00Z",
        "2026-04-24T09:00Z 2026-04-25T09:00Z",
    );
    check(
        "0 0 * * *",
        "Europe/London",
        "2025-03-29T12:00:00Z",
        "2025-03-30T00:00Z 2025-03-30T23:00Z",
    );
}

#[test]
fn half_hour_shifts_are_followed() {
    // Lord Howe jumps from 02:00 to 02:30 on 4 October 2026 and back on 5 April 2026.
    check(
        "15 2 * * *",
        "Australia/Lord_Howe",
        "2026-10-03T12:00:00Z",
        "2026-10-03T15:30Z 2026-10-04T15:15Z",
    );
    check(
        "45 1 * * *",
        "Australia/Lord_Howe",
        "2026-04-04T12:00:00Z",
        "2026-04-04T14:45Z 2026-04-05T15:15Z",
    );
    check(
        "0 * * * *",
        "Australia/Lord_Howe",
        "2026-04-04T13:30:00Z",
        "2026-04-04T14:00Z 2026-04-04T15:30Z 2026-04-04T16:30Z",
    );
}

#[test]
fn a_day_that_was_left_out_runs_once_when_the_next_begins() {
    // Apia had no 30 December 2011.
    check(
        "0 9 * * *",
        "Pacific/Apia",
        "2011-12-29T00:00:00Z",
        "2011-12-29T19:00Z 2011-12-30T10:00Z 2011-12-30T19:00Z",
    );
    check(
        "0 9 30 12 *",
        "Pacific/Apia",
        "2011-06-01T00:00:00Z",
        "2011-12-30T10:00Z 2012-12-29T19:00Z",
    );
    check(
        "0 0 * * *",
        "Pacific/Apia",
        "2011-12-29T09:00:00Z",
        "2011-12-29T10:00Z 2011-12-30T10:00Z 2011-12-31T10:00Z",
    );
    check(
        "0 * * * *",
        "Pacific/Apia",
        "2011-12-30T08:30:00Z",
        "2011-12-30T09:00Z 2011-12-30T10:00Z 2011-12-30T11:00Z",
    );
}

#[test]
fn each_expression_of_a_union_follows_its_own_rule() {
    let texts = ["30 2 * * *", "*/30 3 * * *"].map(str::to_owned);
    let zone = Some(Zone::get("Europe/Berlin").unwrap());
    let cron = Cron::parse(
        &texts,
        CronOptions {
            zone,
            ..CronOptions::default()
        },
    )
    .unwrap();
    let first = cron.next_after(Timestamp::parse(SPRING).unwrap()).unwrap();
    assert_eq!(first.to_string(), "2026-03-29T01:00:00.000Z");
    // The end of the gap is 03:00, which the other expression names too: still one slot.
    assert_eq!(
        cron.next_after(first.0).unwrap().to_string(),
        "2026-03-29T01:30:00.000Z"
    );
}
