//! `next_after` against croner 4 and cronexpr 1.7 on the syntax they share, in twelve zones, at moments
//! that are a day or more from any change of the clocks; near one, both differ from cron(8) and from us.
//!
//! Known differences, kept out of the cases, with their reason:
//!
//! * `5/15` (from 5 to the end): croner refuses it unless it is set to be lenient.
//! * `22-2` (wrapping): neither takes it but for weekdays; `SUN-SUN` is every day in croner, one day here.
//! * `*/2` in one day field while the other is set: cronexpr requires both fields then, as Vixie's code
//!   does; we follow the manual page and the larger part of the implementations: either field matches.
//! * `*/90` (a step beyond the range): cronexpr refuses it; we keep the first value and add a note.
//! * `L` and `5L`: cronexpr 1.7 does not find the last day, or the last Friday, of a December.
//! * `LW`, `L-3`, `5#L`, `+`, seconds, years: not in cronexpr; `L-3` is not in croner.
//! * A slot more than four years ahead: cronexpr gives up.
//! * Australia/Lord_Howe: cronexpr does not return.

use croner::parser::CronParser;
use jiff::tz::TimeZone;

use super::civil::DAY;
use super::reference::{Chance, time_zone};
use super::{Cron, CronOptions, Zone};
use crate::time::Timestamp;

const ZONES: [&str; 12] = [
    "America/New_York",
    "Europe/London",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "Africa/Casablanca",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "Asia/Beirut",
    "Europe/Berlin",
    "America/St_Johns",
    "Asia/Tehran",
    "UTC",
];

/// How far ahead each of them looks at least.
const SEARCHED: i64 = 3 * 366 * DAY;

const MONTHS: [&str; 12] = [
    "jan", "FEB", "Mar", "APR", "may", "JUN", "JUL", "aug", "SEP", "OCT", "NOV", "DEC",
];
const WEEKDAYS: [&str; 7] = ["SUN", "mon", "TUE", "Wed", "THU", "FRI", "SAT"];

/// One number, range, step or list of them, between two bounds.
fn numbers(chance: &mut Chance, lowest: u64, highest: u64) -> String {
    let size = highest - lowest + 1;
    let one = |chance: &mut Chance| lowest + chance.below(size);
    let range = |chance: &mut Chance| {
        let (a, b) = (one(chance), one(chance));
        format!("{}-{}", a.min(b), a.max(b))
    };
    match chance.below(8) {
        0 | 1 => "*".to_owned(),
        2 => format!("*/{}", 1 + chance.below(size / 2)),
        3 => range(chance),
        4 => format!("{}/{}", range(chance), 1 + chance.below(size / 2)),
        5 => format!("{},{},{}", one(chance), one(chance), range(chance)),
        _ => one(chance).to_string(),
    }
}

fn months(chance: &mut Chance) -> String {
    match chance.below(6) {
        0 => chance.pick(&MONTHS).to_owned(),
        1 => numbers(chance, 1, 12),
        _ => "*".to_owned(),
    }
}

fn dates(chance: &mut Chance, special: &[&str]) -> String {
    match chance.below(6) {
        0 if !special.is_empty() => chance.pick(special).to_owned(),
        0 | 1 => numbers(chance, 1, 28),
        2 => format!("{}W", 1 + chance.below(28)),
        _ => "*".to_owned(),
    }
}

fn weekdays(chance: &mut Chance, special: &[&str]) -> String {
    match chance.below(7) {
        0 => numbers(chance, 0, 6),
        1 => chance.pick(&WEEKDAYS).to_owned(),
        2 => chance
            .pick(&["MON-FRI", "5-7", "7", "TUE,SAT", "1-5/2", "0,7"])
            .to_owned(),
        3 if !special.is_empty() => chance.pick(special).to_owned(),
        _ => "*".to_owned(),
    }
}

/// Compares over a number of expressions, ten moments each; answers how many could be compared.
fn compare<T>(
    expressions: u64,
    zones: &[&str],
    mut expression: impl FnMut(&mut Chance) -> String,
    read: impl Fn(&str, &str) -> T,
    next: impl Fn(&T, &TimeZone, i64) -> Option<i64>,
) -> u64 {
    let mut compared = 0;
    let mut chance = Chance(expressions);
    for round in 0..expressions {
        let name = zones[round as usize % zones.len()];
        let (zone, time_zone) = (Zone::get(name).unwrap(), time_zone(name));
        let text = expression(&mut chance);
        let ours = CronOptions {
            zone: Some(zone.clone()),
            ..CronOptions::default()
        };
        let Ok(ours) = Cron::parse(std::slice::from_ref(&text), ours) else {
            continue;
        };
        let theirs = read(&text, name);
        for _ in 0..10 {
            let after = 946_684_800 + chance.below(22 * 365 * 86_400) as i64;
            if near_change(&zone, after) {
                continue;
            }
            let mine = ours.next_after(Timestamp::from_millis(after * 1_000));
            let mine = mine.map(|slot| slot.0.as_millis() / 1_000);
            if mine.is_none_or(|mine| near_change(&zone, mine)) {
                continue;
            }
            let other = next(&theirs, &time_zone, after);
            let given_up = other.is_none() && mine.is_some_and(|mine| mine > after + SEARCHED);
            if given_up || other.is_some_and(|other| near_change(&zone, other)) {
                continue;
            }
            assert_eq!(mine, other, "{text:?} in {name} after {after}");
            compared += 1;
        }
    }
    compared
}

fn near_change(zone: &Zone, moment: i64) -> bool {
    zone.shift_after(moment - 2 * DAY)
        .is_some_and(|shift| shift.at < moment + 2 * DAY)
}

fn croner_next(cron: &croner::Cron, zone: &TimeZone, after: i64) -> Option<i64> {
    let after = jiff::Timestamp::from_second(after)
        .unwrap()
        .to_zoned(zone.clone());
    cron.find_next_occurrence(&after, false)
        .ok()
        .map(|found| found.timestamp().as_second())
}

#[test]
fn croner_agrees_on_what_both_can_read() {
    let compared = compare(
        10_000,
        &ZONES,
        |chance| {
            let seconds = match chance.below(3) {
                0 => format!("{} ", numbers(chance, 0, 59)),
                _ => String::new(),
            };
            let (minute, hour) = (numbers(chance, 0, 59), numbers(chance, 0, 23));
            let date = dates(chance, &["L", "31", "LW", "30", "?"]);
            let month = months(chance);
            let weekday = weekdays(
                chance,
                &[
                    "5L",
                    "FRI#2",
                    "1#5",
                    "0#L",
                    "+FRI",
                    "+1-5",
                    "?",
                    "SUN#1,TUE#3",
                ],
            );
            format!("{seconds}{minute} {hour} {date} {month} {weekday}")
        },
        |text, _| CronParser::new().parse(text).unwrap(),
        croner_next,
    );
    assert!(compared > 90_000, "{compared}");
}

#[test]
fn cronexpr_agrees_on_what_both_can_read() {
    let zones: Vec<&str> = ZONES
        .into_iter()
        .filter(|name| *name != "Australia/Lord_Howe")
        .collect();
    let compared = compare(
        4_000,
        &zones,
        |chance| {
            let (minute, hour) = (numbers(chance, 0, 59), numbers(chance, 0, 23));
            let date = dates(chance, &["31", "30"]);
            let weekday = weekdays(chance, &["FRI#2", "1#5"]);
            let both_set = date != "*" && weekday != "*";
            let weekday = if both_set && (date.starts_with('*') || weekday.starts_with('*')) {
                "*"
            } else {
                &weekday
            };
            format!("{minute} {hour} {date} {} {weekday}", months(chance))
        },
        |text, zone| cronexpr::parse_crontab(&format!("{text} {zone}")).unwrap(),
        |cron, _, after| {
            let after = cronexpr::MakeTimestamp::from_second(after).unwrap();
            cron.find_next(after)
                .ok()
                .map(|found| found.timestamp().as_second())
        },
    );
    assert!(compared > 35_000, "{compared}");
}
