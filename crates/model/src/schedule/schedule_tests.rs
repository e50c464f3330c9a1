use super::*;

/// A moment from RFC 3339.
fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn slots(schedule: &Schedule, from: &str, count: usize) -> Vec<String> {
    let first = schedule.next_after(at(from));
    let slots = std::iter::successors(first, |slot| schedule.next_after(slot.0));
    slots
        .take(count)
        .map(|slot| slot.to_string().replace(".000Z", "Z"))
        .collect()
}

fn read(text: &str, zone: &str) -> Schedule {
    let zone = Some(Zone::get(zone).unwrap());
    Schedule::parse_text(
        text,
        CronOptions {
            zone,
            ..CronOptions::default()
        },
        at("2026-01-01T00:00:00Z"),
    )
    .unwrap()
}

#[test]
fn a_bare_string_is_a_cron_expression_a_macro_or_an_interval() {
    assert_eq!(
        slots(
            &read("30 9 * * MON-FRI", "Europe/Berlin"),
            "2026-07-03T07:30:00Z",
            2
        ),
        ["2026-07-06T07:30:00Z", "2026-07-07T07:30:00Z"]
    );
    assert_eq!(
        slots(&read("@daily", "UTC"), "2026-07-03T07:30:00Z", 1),
        ["2026-07-04T00:00:00Z"]
    );
    assert_eq!(
        slots(&read("@every 90s", "UTC"), "2026-07-03T07:30:00Z", 1),
        ["2026-07-03T07:31:30Z"]
    );
}

#[test]
fn a_bare_string_may_name_its_zone() {
    let anchor = at("2026-03-28T08:00:00Z");
    let none = || CronOptions::default();
    let daily = Schedule::parse_text("CRON_TZ=Europe/Berlin @every P1D", none(), anchor).unwrap();
    assert_eq!(
        slots(&daily, "2026-03-28T08:00:00Z", 1),
        ["2026-03-29T07:00:00Z"]
    );
    let cron = Schedule::parse_text("TZ=Europe/Berlin @daily", none(), anchor).unwrap();
    assert_eq!(
        slots(&cron, "2026-03-28T08:00:00Z", 1),
        ["2026-03-28T23:00:00Z"]
    );
    let berlin = CronOptions {
        zone: Some(Zone::get("Europe/Berlin").unwrap()),
        ..none()
    };
    assert!(Schedule::parse_text("TZ=Asia/Tokyo @every 5m", berlin, anchor).is_err());
    for text in [
        "@every",
        "@every ",
        "@every5m",
        "@every 0s",
        "PT15M",
        "15m",
        "TZ=UTC @every",
        &"x".repeat(300),
    ] {
        assert!(
            Schedule::parse_text(text, none(), anchor).is_err(),
            "{text}"
        );
    }
}

#[test]
fn a_one_off_has_one_slot_and_no_period() {
    let once = Schedule::from(Slot(at("2026-12-24T18:00:00Z")));
    assert_eq!(
        slots(&once, "2026-12-24T17:59:59.999Z", 2),
        ["2026-12-24T18:00:00Z"]
    );
    assert_eq!(once.next_after(at("2026-12-24T18:00:00Z")), None);
    assert!(!once.is_recurring());
    assert_eq!(once.shortest_period(), None);
    assert!(read("@every 90s", "UTC").is_recurring());
    assert_eq!(
        read("@every 90s", "UTC").shortest_period(),
        Some(Duration::from_secs(90))
    );
    assert_eq!(
        read("@every P1M", "UTC").shortest_period(),
        Some(Duration::from_secs(28 * 86_400))
    );
}
