//! `next_after` against the slow reference: around every change of the clocks in many zones, on the days
//! that calendars left out, and at random moments elsewhere.

use super::civil::{DAY, Date};
use super::reference::{Chance, Reference, Stretch, time_zone};
use super::{Cron, CronOptions, DstGap, DstOverlap, Zone};
use crate::hash::hash;
use crate::time::Timestamp;

/// Zones with daylight saving by half hours, at midnight, by two hours, with days left out, with rules
/// that changed, and a few that only moved once.
const ZONES: [&str; 44] = [
    "Africa/Cairo",
    "Africa/Casablanca",
    "Africa/El_Aaiun",
    "Africa/Juba",
    "Africa/Tripoli",
    "America/Asuncion",
    "America/Caracas",
    "America/Godthab",
    "America/Havana",
    "America/Mexico_City",
    "America/New_York",
    "America/Port-au-Prince",
    "America/Santiago",
    "America/Sao_Paulo",
    "America/Scoresbysund",
    "America/St_Johns",
    "Antarctica/Casey",
    "Antarctica/Macquarie",
    "Antarctica/Troll",
    "Asia/Amman",
    "Asia/Beirut",
    "Asia/Colombo",
    "Asia/Damascus",
    "Asia/Dhaka",
    "Asia/Gaza",
    "Asia/Kathmandu",
    "Asia/Pyongyang",
    "Asia/Tehran",
    "Asia/Ulaanbaatar",
    "Atlantic/Azores",
    "Australia/Lord_Howe",
    "Australia/Sydney",
    "Europe/Berlin",
    "Europe/Dublin",
    "Europe/Istanbul",
    "Europe/London",
    "Europe/Moscow",
    "Europe/Volgograd",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Pacific/Easter",
    "Pacific/Fakaofo",
    "Pacific/Norfolk",
    "Pacific/Tongatapu",
];

const MINUTES: [&str; 14] = [
    "0", "30", "0", "30", "*", "*/15", "0,30", "15-45/10", "5/20", "59", "0-59", "45", "1,31",
    "50-10/5",
];
const HOURS: [&str; 16] = [
    "*", "0", "1", "2", "3", "23", "1-3", "22-2", "0,2,4", "*/2", "0-23", "1/2", "2,3", "0-4/2",
    "23-1", "12",
];
const DAYS: [&str; 12] = [
    "*", "*", "*", "*", "*", "*", "?", "L", "*/2", "1-7", "LW,L-1", "15W,25/1",
];
const WEEKDAYS: [&str; 12] = [
    "*",
    "*",
    "*",
    "*",
    "*",
    "?",
    "0",
    "6-1",
    "0#L,6L",
    "5-7",
    "+0",
    "+0#1,1-6/2",
];

fn policy(chance: &mut Chance) -> (DstGap, DstOverlap) {
    let gap = if chance.below(3) > 0 {
        DstGap::RunAfter
    } else {
        DstGap::Skip
    };
    let overlap = if chance.below(3) > 0 {
        DstOverlap::First
    } else {
        DstOverlap::Both
    };
    (gap, overlap)
}

/// Both answers over a stretch must be the same, whether slot after slot or searched from random moments.
fn compare(text: &str, zone: &Zone, stretch: &Stretch, last: i64, chance: &mut Chance) {
    let (dst_gap, dst_overlap) = policy(chance);
    let options = CronOptions {
        zone: Some(zone.clone()),
        dst_gap,
        dst_overlap,
        ..CronOptions::default()
    };
    let cron = Cron::parse(&[text.to_owned()], options).unwrap();
    let expected = Reference::read(text, dst_gap, dst_overlap).slots(stretch);
    let next = |after: i64| {
        let slot = cron
            .next_after(Timestamp::from_millis(after))?
            .0
            .as_millis();
        assert!(slot > after && slot % 1_000 == 0);
        Some(slot / 1_000).filter(|slot| *slot <= last)
    };
    let context = || {
        format!(
            "{text} {zone} {dst_gap:?} {dst_overlap:?} from {}",
            stretch.first
        )
    };
    let found: Vec<i64> =
        std::iter::successors(next(stretch.first * 1_000), |slot| next(slot * 1_000)).collect();
    assert_eq!(found, expected, "{}", context());
    for _ in 0..3 {
        let after =
            stretch.first * 1_000 + chance.below((last - stretch.first) as u64 * 1_000) as i64;
        let expected = expected.iter().find(|slot| **slot * 1_000 > after).copied();
        assert_eq!(next(after), expected, "{} after {after}", context());
    }
}

fn expression(chance: &mut Chance) -> String {
    let (minute, hour) = (chance.pick(&MINUTES), chance.pick(&HOURS));
    format!(
        "0 {minute} {hour} {} * {}",
        chance.pick(&DAYS),
        chance.pick(&WEEKDAYS)
    )
}

/// Every change of a zone from 2000 to 2030 with some expressions around each.
fn around_changes(zones: &[&str], expressions: usize) {
    let mut changes = 0;
    for name in zones {
        let (zone, time_zone) = (Zone::get(name).unwrap(), time_zone(name));
        let mut chance = Chance(hash(1, &[name.len() as u64, name.as_bytes()[0].into()]) >> 1);
        let mut moment = 946_684_800;
        while let Some(shift) = zone
            .shift_after(moment)
            .filter(|shift| shift.at < 1_924_992_000)
        {
            // Where a whole day is left out, the day before and after belong to the picture.
            let wide = if (shift.after - shift.before).abs() > 4 * 3_600 {
                40
            } else {
                5
            };
            let (first, last) = (shift.at - wide * 3_600, shift.at + wide * 3_600);
            let stretch = Stretch::new(&time_zone, first, last, 60);
            for _ in 0..expressions {
                compare(&expression(&mut chance), &zone, &stretch, last, &mut chance);
            }
            (moment, changes) = (shift.at, changes + 1);
        }
    }
    assert!(changes > zones.len(), "{changes}");
}

#[test]
fn slots_around_every_change_are_those_of_the_slow_walk() {
    around_changes(&ZONES[..22], 8);
}

#[test]
fn slots_around_every_change_are_those_of_the_slow_walk_in_more_zones() {
    around_changes(&ZONES[22..], 8);
}

#[test]
fn a_rare_time_near_a_change_is_found_from_far_away() {
    for name in ZONES.into_iter().step_by(2) {
        let (zone, time_zone) = (Zone::get(name).unwrap(), time_zone(name));
        let mut chance = Chance(hash(2, &[name.len() as u64]) >> 1);
        let mut before = 946_684_800;
        while let Some(shift) = zone
            .shift_after(before)
            .filter(|shift| shift.at < 1_924_992_000)
        {
            let (first, last) = (shift.at - 8 * 3_600, shift.at + 8 * 3_600);
            let stretch = Stretch::new(&time_zone, first, last, 60);
            for _ in 0..4 {
                // One local time a year, within three hours of the change by the old clock or the new.
                let clock = if chance.below(2) == 0 {
                    shift.before
                } else {
                    shift.after
                };
                let local = shift.at + clock - 3 * 3_600 + chance.below(24) as i64 * 900;
                let date = Date::from_days(local.div_euclid(DAY));
                let (hour, minute) = (local.rem_euclid(DAY) / 3_600, local.rem_euclid(3_600) / 60);
                let text = format!("0 {minute} {hour} {} {} *", date.day, date.month);
                let (dst_gap, dst_overlap) = policy(&mut chance);
                let expected = Reference::read(&text, dst_gap, dst_overlap).slots(&stretch);
                let options = CronOptions {
                    dst_gap,
                    dst_overlap,
                    zone: Some(zone.clone()),
                    ..CronOptions::default()
                };
                let cron = Cron::parse(std::slice::from_ref(&text), options).unwrap();
                // From anywhere in the months before, and from next to the change before this one.
                let far = shift.at - 3 * DAY - chance.below(300 * 86_400) as i64;
                let near = before - 3 * 3_600 + chance.below(6 * 3_600) as i64;
                for from in [far, near.max(shift.at - 300 * DAY).min(first)] {
                    let found = cron
                        .next_after(Timestamp::from_millis(from * 1_000))
                        .unwrap();
                    let found = Some(found.0.as_millis() / 1_000).filter(|found| *found <= last);
                    let expected = expected.first().copied();
                    assert_eq!(
                        found, expected,
                        "{text} {name} {dst_gap:?} {dst_overlap:?} from {from}"
                    );
                }
            }
            before = shift.at;
        }
    }
}

#[test]
fn seconds_around_a_change_are_those_of_the_slow_walk() {
    let mut chance = Chance(5);
    for (name, at) in [
        ("Europe/Berlin", 1_774_746_000),
        ("Europe/Berlin", 1_792_890_000),
        ("Asia/Beirut", 1_774_735_200),
    ] {
        let (zone, time_zone) = (Zone::get(name).unwrap(), time_zone(name));
        let stretch = Stretch::new(&time_zone, at - 4_000, at + 8_000, 1);
        for _ in 0..12 {
            let seconds = chance.pick(&["*", "*/10", "0,30", "55-5", "59"]);
            let text = format!("{seconds}{}", &expression(&mut chance)[1..]);
            compare(&text, &zone, &stretch, at + 8_000, &mut chance);
        }
    }
}

#[test]
fn slots_at_random_moments_are_those_of_the_slow_walk() {
    let mut chance = Chance(1_000_000);
    for round in 0..60 {
        let name = ZONES[round % ZONES.len()];
        let (zone, time_zone) = (Zone::get(name).unwrap(), time_zone(name));
        let first = (chance.below(2_500_000_000) as i64) / 900 * 900;
        let last = first + 62 * 86_400;
        let stretch = Stretch::new(&time_zone, first, last, 900);
        for _ in 0..4 {
            let (minute, hour) = (
                chance.pick(&["0", "*/15", "15/30", "45"]),
                chance.pick(&HOURS),
            );
            let day = chance.pick(&["*", "L-3,1W", "31W,30", "*/5", "LW", "28-3", "13"]);
            let month = chance.pick(&["*", "*", "2,3", "11-2", "*/2"]);
            let weekday = chance.pick(&["*", "*", "5", "1#1,3#5", "+5", "5L", "1-5", "6-2/2"]);
            compare(
                &format!("0 {minute} {hour} {day} {month} {weekday}"),
                &zone,
                &stretch,
                last,
                &mut chance,
            );
        }
    }
}
