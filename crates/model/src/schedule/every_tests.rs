use proptest::prelude::*;

use super::*;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn every(text: &str, anchor: &str, zone: &str) -> Every {
    Every::parse(text, at(anchor), Zone::get(zone).unwrap()).unwrap()
}

fn slots(every: &Every, from: &str, count: usize) -> Vec<String> {
    let slots = std::iter::successors(every.next_after(at(from)), |slot| every.next_after(slot.0));
    slots
        .take(count)
        .map(|slot| slot.to_string().replace(".000Z", "Z"))
        .collect()
}

#[test]
fn elapsed_periods_count_from_the_anchor_however_old() {
    let every = every("PT15M", "1970-01-01T00:05:00Z", "UTC");
    assert_eq!(
        slots(&every, "2026-07-01T00:00:00Z", 2),
        ["2026-07-01T00:05:00Z", "2026-07-01T00:20:00Z"]
    );
    assert_eq!(
        slots(&every, "2026-07-01T00:05:00Z", 1),
        ["2026-07-01T00:20:00Z"]
    );
    assert_eq!(
        slots(&every, "2026-07-01T00:04:59.999Z", 1),
        ["2026-07-01T00:05:00Z"]
    );
}

#[test]
fn the_anchor_is_the_first_slot() {
    for text in ["90s", "P1D", "P1M"] {
        let every = every(text, "2026-07-01T12:00:00.250Z", "Europe/Berlin");
        assert_eq!(
            slots(&every, "2020-01-01T00:00:00Z", 1),
            ["2026-07-01T12:00:00.250Z"],
            "{text}"
        );
        assert!(every.next_after(every.anchor).unwrap().0 > every.anchor);
    }
}

#[test]
fn elapsed_days_move_with_the_clocks_and_calendar_days_do_not() {
    let anchor = "2026-03-28T08:00:00Z";
    let elapsed = every("1d", anchor, "Europe/Berlin");
    assert_eq!(
        slots(&elapsed, anchor, 2),
        ["2026-03-29T08:00:00Z", "2026-03-30T08:00:00Z"]
    );
    let calendar = every("P1D", anchor, "Europe/Berlin");
    assert_eq!(
        slots(&calendar, anchor, 2),
        ["2026-03-29T07:00:00Z", "2026-03-30T07:00:00Z"]
    );
    let week = every("P1W", anchor, "Europe/Berlin");
    assert_eq!(
        slots(&week, anchor, 2),
        ["2026-04-04T07:00:00Z", "2026-04-11T07:00:00Z"]
    );
}

#[test]
fn month_ends_clamp_without_drift() {
    let every_month = every("P1M", "2026-01-31T09:00:00Z", "UTC");
    assert_eq!(
        slots(&every_month, "2026-01-31T09:00:00Z", 4),
        [
            "2026-02-28T09:00:00Z",
            "2026-03-31T09:00:00Z",
            "2026-04-30T09:00:00Z",
            "2026-05-31T09:00:00Z",
        ]
    );
    let leap = every("P1Y", "2024-02-29T09:00:00Z", "UTC");
    assert_eq!(
        slots(&leap, "2026-03-01T00:00:00Z", 2),
        ["2027-02-28T09:00:00Z", "2028-02-29T09:00:00Z"]
    );
    let mixed = every("P1M15D", "2026-01-31T00:00:00Z", "UTC");
    assert_eq!(
        slots(&mixed, "2026-01-31T00:00:00Z", 2),
        ["2026-03-15T00:00:00Z", "2026-04-30T00:00:00Z"]
    );
}

#[test]
fn calendar_periods_follow_the_rule_for_fixed_times() {
    let daily = every("P1D", "2026-03-27T01:30:00Z", "Europe/Berlin");
    assert_eq!(
        slots(&daily, "2026-03-28T12:00:00Z", 2),
        ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]
    );
    assert_eq!(
        slots(&daily, "2026-10-24T12:00:00Z", 2),
        ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]
    );
    let apia = every("P1D", "2011-12-01T19:00:00Z", "Pacific/Apia");
    assert_eq!(
        slots(&apia, "2011-12-29T12:00:00Z", 3),
        [
            "2011-12-29T19:00:00Z",
            "2011-12-30T10:00:00Z",
            "2011-12-30T19:00:00Z",
        ]
    );
}

#[test]
fn periods_print_as_they_read() {
    for text in [
        "90s", "15m", "1h30m", "1500ms", "P1D", "P1W", "P1M", "P1Y", "P1Y6M", "P1M15D", "P10D",
    ] {
        assert_eq!(Period::parse(text).unwrap().text(), text);
    }
    assert_eq!(Period::parse("PT90M").unwrap().text(), "1h30m");
    assert_eq!(Period::parse("P12M"), Period::parse("P1Y"));
}

#[test]
fn periods_out_of_range_are_refused() {
    let refused = |text: &str| Period::parse(text).unwrap_err().to_string();
    assert_eq!(
        refused("500ms"),
        "an interval of 500ms is out of range: it lasts at least 1s and at most 100 years"
    );
    assert_eq!(
        refused("P1DT12H"),
        "the interval \"P1DT12H\" mixes calendar units and hours: use P… for calendar time or PT… for elapsed time"
    );
    for text in [
        "0s",
        "P0D",
        "PT0S",
        "P101Y",
        "P36526D",
        "P1M36525D",
        "36526d",
        "",
        "P",
        "soon",
        "-5m",
    ] {
        assert!(Period::parse(text).is_err(), "{text}");
    }
    for text in ["1s", "P100Y", "P36525D", "36525d", "P1200M"] {
        assert!(Period::parse(text).is_ok(), "{text}");
    }
}

#[test]
fn time_ends_with_the_year_9999() {
    let zone = || Zone::get("America/New_York").unwrap();
    for text in ["1s", "36525d", "P1D", "P1M", "P100Y"] {
        let every = Every::parse(text, Timestamp::MIN, zone()).unwrap();
        assert_eq!(every.next_after(Timestamp::MAX), None, "{text}");
        let late = Every::parse(text, Timestamp::MAX, zone()).unwrap();
        assert_eq!(
            late.next_after(Timestamp::MIN),
            Some(Slot(Timestamp::MAX)),
            "{text}"
        );
    }
    // Periods that were never checked still do no harm.
    for period in [
        Period::Elapsed(Duration::ZERO),
        Period::Elapsed(Duration::MAX),
        Period::Calendar { months: 0, days: 0 },
        Period::Calendar {
            months: u32::MAX,
            days: u32::MAX,
        },
    ] {
        let every = Every {
            period,
            anchor: Timestamp::MIN,
            zone: Zone::utc(),
            after_completion: false,
        };
        assert!(
            every
                .next_after(at("2026-01-01T00:00:00Z"))
                .is_none_or(|slot| slot.0 > at("2026-01-01T00:00:00Z"))
        );
    }
}

proptest! {
    /// Slot after slot from the anchor must meet what a search from anywhere finds.
    #[test]
    fn slots_are_the_anchor_and_every_period_after_it(
        anchor in 0_i64..2_000_000_000, months in 0_u32..30, days in 0_u32..40, steps in 0_i64..40, early in 1_i64..3_000_000,
        zone in prop::sample::select(vec!["Europe/Berlin", "Pacific/Apia", "Asia/Beirut", "UTC", "Australia/Lord_Howe"]),
    ) {
        prop_assume!(months + days > 0);
        let zone = Zone::get(zone).unwrap();
        let anchor = Timestamp::from_millis(anchor * 1_000);
        let every = Every::new(Period::Calendar { months, days }, anchor, zone.clone()).unwrap();
        // jiff's own calendar says where slot n lies.
        let tz = crate::schedule::reference::time_zone(zone.name());
        let start = anchor.to_jiff().to_zoned(tz.clone()).datetime();
        let span = jiff::Span::new().months(steps * i64::from(months));
        let local = start.checked_add(span).unwrap();
        let local = local.checked_add(jiff::Span::new().days(steps * i64::from(days))).unwrap();
        let expected = match tz.to_ambiguous_timestamp(local).offset() {
            jiff::tz::AmbiguousOffset::Gap { before, .. } => {
                let inside = before.to_timestamp(local).unwrap();
                tz.preceding(inside + jiff::SignedDuration::from_secs(1)).next().unwrap().timestamp()
            }
            jiff::tz::AmbiguousOffset::Fold { before, .. } => before.to_timestamp(local).unwrap(),
            jiff::tz::AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(local).unwrap(),
        };
        let expected = if steps == 0 { anchor } else { Timestamp::from_jiff(expected) };
        prop_assert_eq!(every.next_after(Timestamp::from_millis(expected.as_millis() - 1)), Some(Slot(expected)));
        let before = Timestamp::from_millis(expected.as_millis() - early);
        let next = every.next_after(before).unwrap();
        prop_assert!(next.0 > before && next.0 <= expected.max(anchor));
    }
}
