//! The readers against arbitrary text: they never panic, what they accept always answers, and what they keep
//! reads back as the same. `cargo test` runs a bounded number of cases; `cargo bolero test` fuzzes on.

use std::sync::atomic::{AtomicU32, Ordering};

use super::{
    CalendarName, Cron, CronOptions, DateRange, Day, Dialect, DstGap, DstOverlap, Every, Kind,
    Point, Schedule, Weekly, Yearly, Zone, parse_span,
};
use crate::time::Timestamp;

/// What expressions are made of; arbitrary bytes alone would hardly ever be one.
const PARTS: [&str; 40] = [
    " ",
    " ",
    " ",
    " ",
    "*",
    "*",
    "0",
    "1",
    "7",
    "59",
    "31",
    "2030",
    ",",
    "-",
    "/",
    "#",
    "L",
    "W",
    "H",
    "(",
    ")",
    "?",
    "+",
    "MON",
    "fri",
    "JAN",
    "@daily",
    "@every ",
    "PT",
    "P1",
    "S",
    "M",
    "D",
    "TZ=",
    "CRON_TZ=",
    "UTC",
    "Europe/Berlin",
    "\t",
    "é",
    "99999999999",
];

/// Short inputs are text as it is, others are chosen from the parts.
fn text_of(bytes: &[u8]) -> String {
    match bytes.split_first() {
        Some((first, rest)) if *first < 40 => String::from_utf8_lossy(rest).into_owned(),
        _ => bytes
            .iter()
            .map(|byte| PARTS[*byte as usize % PARTS.len()])
            .collect(),
    }
}

/// Answers whether the text was a schedule.
fn read(bytes: &[u8]) -> bool {
    let text = text_of(bytes);
    let first = bytes.first().copied().unwrap_or(0);
    let options = CronOptions {
        zone: (first & 1 == 0).then(|| Zone::get("America/Havana").unwrap()),
        dialect: if first & 2 == 0 {
            Dialect::Unix
        } else {
            Dialect::Quartz
        },
        dst_gap: if first & 4 == 0 {
            DstGap::RunAfter
        } else {
            DstGap::Skip
        },
        dst_overlap: if first & 8 == 0 {
            DstOverlap::First
        } else {
            DstOverlap::Both
        },
        hash: first.into(),
    };
    let now = Timestamp::from_millis(1_772_000_000_000 + i64::from(first) * 86_400_000);
    _ = parse_span(&text);
    _ = Every::parse(&text, now, Zone::utc());
    let Ok(schedule) = Schedule::parse_text(&text, options.clone(), now) else {
        return false;
    };
    let mut after = now;
    for _ in 0..3 {
        let Some(slot) = schedule.next_after(after) else {
            break;
        };
        assert!(slot.0 > after, "{text:?}");
        after = slot.0;
    }
    _ = schedule.next_after(Timestamp::MIN);
    _ = schedule.next_after(Timestamp::MAX);
    assert!(!schedule.words().is_empty());
    _ = schedule.notes(now);
    _ = schedule.shortest_period();
    let last = Timestamp::MAX;
    for moment in [after, if first & 1 == 0 { last } else { now }] {
        assert!(!schedule.explain(&Point::Moment(moment)).steps.is_empty());
        let local = moment.as_millis() / 1_000;
        assert!(!schedule.explain(&Point::Local(local)).steps.is_empty());
    }
    if let Kind::Cron(cron) = &schedule.kind {
        let kept = CronOptions {
            zone: Some(cron.zone().clone()),
            ..options
        };
        assert_eq!(
            Cron::parse(cron.texts(), kept).as_ref(),
            Ok(cron),
            "{text:?}"
        );
    }
    true
}

#[test]
fn no_text_breaks_the_readers() {
    bolero::check!()
        .with_iterations(15_000)
        .with_max_len(48)
        .for_each(|bytes: &[u8]| {
            read(bytes);
        });
}

/// What the entries of calendars are made of.
const CALENDAR_PARTS: [&str; 24] = [
    "2026-12-25",
    "2027-02-28",
    "12-25",
    "02-29",
    "SAT",
    "SUN",
    "mon",
    "-",
    "/",
    "T",
    " ",
    " ",
    ":",
    "09:00",
    "17:00",
    "24:00",
    "00:00",
    "2",
    "0",
    "9",
    "é",
    "9999",
    "1970",
    "FRI-MON",
];

#[test]
fn no_text_breaks_the_readers_of_calendars() {
    let accepted = AtomicU32::new(0);
    bolero::check!()
        .with_iterations(30_000)
        .with_max_len(6)
        .for_each(|bytes: &[u8]| {
            let part = |byte: &u8| CALENDAR_PARTS[usize::from(*byte) % CALENDAR_PARTS.len()];
            let text: String = bytes.iter().map(part).collect();
            _ = Point::parse(&text);
            _ = CalendarName::new(&text);
            let mut count = 0;
            if let Ok(day) = Day::parse(&text) {
                assert_eq!(day.to_string(), text);
                count += 1;
            }
            if let Ok(yearly) = Yearly::parse(&text) {
                assert_eq!(yearly.to_string(), text);
                count += 1;
            }
            if let Ok(weekly) = Weekly::parse(&text) {
                assert_eq!(Weekly::parse(&weekly.to_string()), Ok(weekly), "{text:?}");
                count += 1;
            }
            if let Ok(range) = DateRange::parse(&text) {
                assert_eq!(range.to_string(), text);
                count += 1;
            }
            accepted.fetch_add(count, Ordering::Relaxed);
        });
    assert!(accepted.into_inner() > 300);
}

/// Items that every field takes, and some that only one of them does or none.
const ITEMS: [&str; 24] = [
    "*", "*", "*", "1", "2-5", "3/2", "*/3", "6-2", "H", "H/2", "H(1-4)", "1,4", "*/70", "1-5/9",
    "?", "L", "L-3", "15W", "LW", "MON#2", "fril", "+2", "0", "59",
];

#[test]
fn nearly_right_expressions_do_not_break_the_readers() {
    let accepted = AtomicU32::new(0);
    let fields = bolero::generator::produce::<[[u8; 3]; 7]>();
    bolero::check!()
        .with_iterations(15_000)
        .with_generator(fields)
        .for_each(|fields| {
            let item = |byte: u8| ITEMS[usize::from(byte) % ITEMS.len()];
            let field = |[one, how, other]: &[u8; 3]| match how {
                0..16 => format!("{},{}", item(*one), item(*other)),
                16..20 => format!("{}{}", item(*one), char::from(*other)),
                _ => item(one % 14).to_owned(),
            };
            let count = 5 + usize::from(fields[0][2] % 2);
            let text = fields
                .iter()
                .take(count)
                .map(field)
                .collect::<Vec<_>>()
                .join(" ");
            let mut bytes = vec![fields[6][0] % 40];
            bytes.extend(text.bytes());
            accepted.fetch_add(read(&bytes).into(), Ordering::Relaxed);
        });
    assert!(accepted.into_inner() > 2_000);
}
