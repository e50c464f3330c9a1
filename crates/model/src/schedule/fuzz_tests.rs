//! The readers against arbitrary text: they never panic, what they accept always answers, and what they keep
//! reads back as the same. `cargo test` runs a bounded number of cases; `cargo bolero test` fuzzes on.

use std::sync::atomic::{AtomicU32, Ordering};

use super::{Cron, CronOptions, Dialect, DstGap, DstOverlap, Every, Schedule, Zone, parse_span};
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
    if let Schedule::Cron(cron) = &schedule {
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
