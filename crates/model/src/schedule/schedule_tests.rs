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
