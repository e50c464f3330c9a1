//! The readers against arbitrary text: they never panic, what they accept always answers, and what they keep
//! reads back as the same. `cargo test` runs a bounded number of cases; `cargo bolero test` fuzzes on.

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

fn read(bytes: &[u8]) {
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
        return;
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
}

#[test]
fn no_text_breaks_the_readers() {
    bolero::check!()
        .with_iterations(4_000)
        .with_max_len(48)
        .for_each(|bytes: &[u8]| read(bytes));
}

#[test]
fn nearly_right_expressions_do_not_break_the_readers() {
    // Five or six fields of a few parts each: most get past the first check, many are accepted.
    let fields = bolero::generator::produce::<[[u8; 3]; 6]>();
    bolero::check!()
        .with_iterations(4_000)
        .with_generator(fields)
        .for_each(|fields| {
            let parts = [
                "*", "0", "1", "5", "L", "W", "-", "/", ",", "#", "H", "2", "MON", "", "", "",
            ];
            let field = |bytes: &[u8; 3]| {
                bytes
                    .map(|byte| parts[byte as usize % parts.len()])
                    .concat()
            };
            let text = fields.iter().map(field).collect::<Vec<_>>().join(" ");
            let mut bytes = vec![fields[0][0] % 40];
            bytes.extend(text.bytes());
            read(&bytes);
        });
}
