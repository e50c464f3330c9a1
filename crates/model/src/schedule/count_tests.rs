use std::ops::Range;

use jiff::tz::TimeZoneDatabase;

use super::*;
use crate::schedule::reference::Chance;
use crate::schedule::{CronOptions, Zone};

const HOUR: i64 = 3_600;
/// From 1970 to 2040.
const CHANGES: Range<i64> = 2 * DAY..2_208_988_800;

/// What walking gives.
fn walked(next: impl Fn(Timestamp) -> Option<Slot>, first: i64, last: i64) -> Count {
    let start = next(Timestamp::from_millis(first - 1));
    let slots = std::iter::successors(start, |slot| next(slot.0));
    let slots = slots.take_while(|slot| slot.0.as_millis() <= last);
    slots.fold(Count::default(), |known, slot| Count {
        count: known.count + 1,
        last: Some(slot),
    })
}

fn counted(cron: &Cron, first: i64, last: i64) -> Count {
    cron.count(Timestamp::from_millis(first), Timestamp::from_millis(last))
}

fn cron(texts: &[&str], zone: &str, gap: DstGap, overlap: DstOverlap) -> Option<Cron> {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    let options = CronOptions {
        zone: Some(Zone::get(zone).unwrap()),
        dst_gap: gap,
        dst_overlap: overlap,
        ..CronOptions::default()
    };
    Cron::parse(&texts, options).ok()
}

fn simple(text: &str, zone: &str) -> Cron {
    cron(&[text], zone, DstGap::RunAfter, DstOverlap::First).unwrap()
}

fn millis_of(text: &str) -> i64 {
    Timestamp::parse(text).unwrap().as_millis()
}

/// One number, range, step or list of them, between two bounds.
fn numbers(chance: &mut Chance, lowest: u64, highest: u64) -> String {
    let size = highest - lowest + 1;
    let one = |chance: &mut Chance| lowest + chance.below(size);
    match chance.below(8) {
        0 | 1 => "*".to_owned(),
        2 => format!("*/{}", 1 + chance.below(size / 2)),
        3 => format!("{lowest}-{}", one(chance)),
        4 => format!("{}-{}", one(chance), one(chance)),
        5 => format!("{},{},{}", one(chance), one(chance), one(chance)),
        _ => one(chance).to_string(),
    }
}

/// An expression of seven fields. Seconds are few unless `dense`.
fn expression(chance: &mut Chance, dense: bool) -> String {
    let seconds = if dense {
        chance.pick(&["*", "*/7", "0", "10-50", "58-3"])
    } else {
        chance.pick(&["0", "0", "0", "30", "59", "0,59"])
    };
    let minutes = if dense {
        numbers(chance, 0, 59)
    } else {
        let some = ["0", "30", "0", "*/15", "59", "0,1", "*", "0-59/20"];
        chance.pick(&some).to_owned()
    };
    // Clocks change by night.
    let hours = match chance.below(3) {
        0 => numbers(chance, 0, 23),
        1 => "*".to_owned(),
        _ => {
            let some = ["0", "1", "2", "3", "23", "0-3", "22-4", "2,3", "0-23/2"];
            chance.pick(&some).to_owned()
        }
    };
    let dates = [
        "*", "*", "*", "*", "?", "L", "LW", "L-3", "15W", "*/2", "1-7", "31", "25-5", "1W,L-1W",
    ];
    let months = ["*", "*", "*", "*", "*", "3,10,11", "2-9", "11-4", "*/2"];
    let weekdays = [
        "*", "*", "*", "*", "?", "0", "SUN", "MON-FRI", "6-1", "0#L", "5L", "FRI#2", "+0", "+1-5",
        "1#1,3#5",
    ];
    let years = [
        "*",
        "*",
        "*",
        "*",
        "1970-2099",
        "*/2",
        "1999,2011/3",
        "2020-2030/2",
    ];
    format!(
        "{seconds} {minutes} {hours} {} {} {} {}",
        chance.pick(&dates),
        chance.pick(&months),
        chance.pick(&weekdays),
        chance.pick(&years)
    )
}

/// A schedule of one expression or several.
fn schedule(chance: &mut Chance, zone: &str, dense: bool) -> Option<Cron> {
    let size = [1, 1, 2, 3, 5, 16][chance.below(6) as usize];
    let texts: Vec<String> = (0..size).map(|_| expression(chance, dense)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let gap = [DstGap::RunAfter, DstGap::Skip][chance.below(2) as usize];
    let overlap = [DstOverlap::First, DstOverlap::Both][chance.below(2) as usize];
    cron(&texts, zone, gap, overlap)
}

/// Draws a schedule and a stretch within `reach` of a moment, in seconds; answers whether there is any slot.
fn compare(chance: &mut Chance, zone: &str, at: i64, reach: i64, dense: bool) -> bool {
    let Some(cron) = schedule(chance, zone, dense) else {
        return false;
    };
    let bound = |chance: &mut Chance, to: i64| match chance.below(3) {
        // The moment itself, which may be the change, or a millisecond beside it.
        0 => at * 1_000 + chance.below(3) as i64 - 1,
        1 => (to + chance.below(reach as u64) as i64) * 1_000,
        _ => to * 1_000 + chance.below(reach as u64 * 1_000) as i64,
    };
    let (first, last) = (bound(chance, at - reach), bound(chance, at));
    let expected = walked(|after| cron.next_after(after), first, last);
    let texts = cron.texts();
    assert_eq!(
        counted(&cron, first, last),
        expected,
        "{texts:?} {zone} {:?} {:?} {first} {last}",
        cron.dst_gap(),
        cron.dst_overlap()
    );
    expected.count > 0
}

fn changes(zone: &str) -> Vec<Shift> {
    let zone = Zone::get(zone).unwrap();
    let first = zone.shift_after(CHANGES.start);
    std::iter::successors(first, |shift| zone.shift_after(shift.at))
        .take_while(|shift| CHANGES.contains(&shift.at))
        .collect()
}

/// One in so many changes of every zone of the tables, and all that move the clocks far.
fn around_changes(seed: u64, one_in: u64, reach: i64, dense: bool) {
    let mut chance = Chance(seed);
    let (mut compared, mut found) = (0, 0);
    for zone in TimeZoneDatabase::bundled().available() {
        if Zone::get(zone.as_str()).is_err() {
            continue;
        }
        for shift in changes(zone.as_str()) {
            let far = !dense && (shift.after - shift.before).abs() > 4 * HOUR;
            if far || chance.below(one_in) == 0 {
                compared += 1;
                found += u32::from(compare(&mut chance, zone.as_str(), shift.at, reach, dense));
            }
        }
    }
    assert!(
        compared > 100 && found > compared / 3,
        "{found} of {compared}"
    );
}

#[test]
fn hours_around_changes_are_counted_as_they_are_walked() {
    around_changes(1, 8, 6 * HOUR, false);
}

#[test]
fn days_around_changes_are_counted_as_they_are_walked() {
    around_changes(2_000_000, 40, 3 * DAY, false);
}

#[test]
fn weeks_around_changes_are_counted_as_they_are_walked() {
    around_changes(4_000_000, 160, 24 * DAY, false);
}

#[test]
fn seconds_around_changes_are_counted_as_they_are_walked() {
    around_changes(6_000_000, 120, 2 * HOUR, true);
}

#[test]
fn any_weeks_are_counted_as_they_are_walked() {
    let zones = ["UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns"];
    let mut chance = Chance(8_000_000);
    for _ in 0..100 {
        let (zone, at) = (
            chance.pick(&zones),
            60 * DAY + chance.below(4_000_000_000) as i64,
        );
        compare(&mut chance, zone, at, 40 * DAY, false);
    }
}

#[test]
fn rare_slots_of_decades_are_counted_as_they_are_walked() {
    let mut chance = Chance(9_000_000);
    for zone in ["UTC", "America/Havana", "Pacific/Apia", "Africa/Casablanca"] {
        for text in [
            "0 0 0 29 2 *",
            "0 30 0 L * *",
            "0 0 12 15W 1-6 FRI#3 2001-2090/3",
            "0 0 0 * * * 2011",
            "0 0 2,3 * * 0",
            "0 0 0 29 2 +1",
        ] {
            let first = chance.below(500_000_000_000) as i64;
            let last = 1_900_000_000_000 + chance.below(1_000_000_000_000) as i64;
            let cron = simple(text, zone);
            let expected = walked(|after| cron.next_after(after), first, last);
            assert_eq!(counted(&cron, first, last), expected, "{text} {zone}");
        }
    }
}

#[test]
fn a_year_of_seconds_is_counted_not_walked() {
    let first = millis_of("2026-01-01T00:00:00Z");
    let last = millis_of("2026-12-31T23:59:59.999Z");
    for zone in ["UTC", "Europe/Berlin", "Australia/Lord_Howe"] {
        let count = counted(&simple("* * * * * *", zone), first, last);
        assert_eq!(count.count, 365 * DAY as u64);
        assert_eq!(count.last.unwrap().0.as_millis(), last - 999);
    }
}

#[test]
fn all_seconds_there_are_can_be_counted() {
    // Walking them would take hours.
    let all = |texts: &[&str], zone: &str| {
        let cron = cron(texts, zone, DstGap::RunAfter, DstOverlap::First).unwrap();
        cron.count(Timestamp::MIN, Timestamp::MAX)
    };
    let expected = Count {
        count: 253_402_207_200,
        last: Some(Slot(Timestamp::from_millis(253_402_207_199_000))),
    };
    assert_eq!(all(&["* * * * * *"], "UTC"), expected);
    assert_eq!(all(&["* * * * * *"], "Europe/Berlin"), expected);
    // Each on its own days, together all of them.
    let split = ["* * * 1-10 * *", "* * * */2 * *", "* * * 11-31 * *"];
    assert_eq!(all(&split, "America/New_York"), expected);
}

#[test]
fn slots_to_the_end_of_time_are_few_for_a_yearly_rule() {
    let cron = simple("0 0 12 1 1 * 2030/10", "Europe/Berlin");
    let count = cron.count(Timestamp::MIN, Timestamp::MAX);
    let expected = walked(
        |after| cron.next_after(after),
        1,
        Timestamp::MAX.as_millis(),
    );
    assert_eq!(count, expected);
}

#[test]
fn a_stretch_may_be_cut_anywhere() {
    let mut chance = Chance(10_000_000);
    for zone in ["Europe/Berlin", "Pacific/Apia", "America/Asuncion"] {
        for _ in 0..20 {
            let Some(cron) = schedule(&mut chance, zone, true) else {
                continue;
            };
            let mut cuts = [(); 3].map(|()| chance.below(3_000_000_000_000) as i64);
            cuts.sort_unstable();
            let [first, middle, last] = cuts;
            let (before, after) = (
                counted(&cron, first, middle),
                counted(&cron, middle + 1, last),
            );
            let whole = Count {
                count: before.count + after.count,
                last: after.last.or(before.last),
            };
            assert_eq!(
                counted(&cron, first, last),
                whole,
                "{:?} {cuts:?}",
                cron.texts()
            );
        }
    }
}

#[test]
fn a_date_that_a_zone_left_out_has_one_slot_at_its_end() {
    // Samoa went from 29 to 31 December 2011.
    let (first, last) = (
        millis_of("2011-12-29T10:00:00Z"),
        millis_of("2012-01-01T09:59:59Z"),
    );
    let apia = |text, gap| {
        let cron = cron(&[text], "Pacific/Apia", gap, DstOverlap::First).unwrap();
        let count = counted(&cron, first, last);
        assert_eq!(count, walked(|after| cron.next_after(after), first, last));
        count.count
    };
    assert_eq!(apia("0 12 * * *", DstGap::Skip), 3);
    assert_eq!(apia("0 12 * * *", DstGap::RunAfter), 4);
    // The end of the gap is midnight, which is a slot anyway.
    assert_eq!(apia("0 0 * * *", DstGap::RunAfter), 3);
}

#[test]
fn both_ends_belong_to_the_stretch() {
    let cron = simple("0 12 * * *", "UTC");
    let noon = 12 * HOUR * 1_000;
    assert_eq!(counted(&cron, noon, noon).count, 1);
    assert_eq!(counted(&cron, noon + 1, noon + DAY * 1_000 - 1).count, 0);
    assert_eq!(counted(&cron, noon - 1, noon + DAY * 1_000).count, 2);
    assert_eq!(counted(&cron, noon, noon - 1), Count::default());
    assert_eq!(counted(&simple("0 0 * * *", "UTC"), 0, 0).count, 1);
}

#[test]
fn intervals_are_counted_as_they_are_walked() {
    let mut chance = Chance(11_000_000);
    for period in [
        "1s", "90s", "7m", "1d", "1001ms", "P1D", "P1W", "P1M", "P1M3D",
    ] {
        for zone in ["UTC", "Europe/Berlin", "Pacific/Apia"] {
            for _ in 0..12 {
                // Around the end of 2011, when Samoa left a day out; half of them at its midnight.
                let mut anchor = 1_325_152_800_000 - chance.below(30) as i64 * DAY * 1_000;
                anchor += chance.below(2) as i64 * chance.below(100_000_000) as i64;
                let zone = Zone::get(zone).unwrap();
                let every = Every::parse(period, Timestamp::from_millis(anchor), zone).unwrap();
                let reach = if period.starts_with('P') {
                    3_000 * DAY
                } else {
                    4 * HOUR
                };
                let bound = |chance: &mut Chance| {
                    let slots = chance.below(3) as i64 * 1_001 * 90 * 7;
                    let near = chance.below(reach as u64 * 2_000) as i64 - reach * 500;
                    anchor + if chance.below(3) == 0 { slots } else { near }
                };
                let (first, last) = (bound(&mut chance), bound(&mut chance));
                let expected = walked(|after| every.next_after(after), first, last);
                let found =
                    every.count(Timestamp::from_millis(first), Timestamp::from_millis(last));
                assert_eq!(found, expected, "{every:?} {first} {last}");
            }
        }
    }
}

#[test]
fn an_interval_from_the_epoch_counts_its_anchor() {
    let all = |period: &str| {
        let every = Every::parse(period, Timestamp::MIN, Zone::utc()).unwrap();
        every.count(Timestamp::MIN, Timestamp::MAX).count
    };
    assert_eq!(all("1s"), 253_402_207_200);
    assert_eq!(all("P1Y"), 8_030);
}
