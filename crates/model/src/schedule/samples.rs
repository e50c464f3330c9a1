//! For tests: schedules and calendars in a few words.

use std::sync::Arc;

pub(crate) use super::compiled::steps;
pub(crate) use super::reference::Chance;
use super::{
    Calendar, CalendarName, Calendars, Cron, CronOptions, DateRange, Day, Every, Schedule, Weekly,
    Yearly, Zone,
};
use crate::time::Timestamp;

/// Zones that change by an hour, at midnight, by half an hour, twice around Ramadan, or that left out a day.
pub(crate) const ZONES: [&str; 8] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Havana",
    "Asia/Beirut",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Pacific/Apia",
];

/// A moment from RFC 3339.
pub(crate) fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

pub(crate) fn zone(name: &str) -> Zone {
    Zone::get(name).unwrap()
}

/// A calendar of entries that are told apart by their looks.
pub(crate) fn calendar(name: &str, entries: &[&str]) -> Calendar {
    let mut calendar = Calendar::new(CalendarName::new(name).unwrap(), Timestamp::MIN);
    for entry in entries {
        if entry.contains('/') {
            calendar.ranges.push(DateRange::parse(entry).unwrap());
        } else if entry.starts_with(|c: char| c.is_ascii_alphabetic()) {
            calendar.weekly.push(Weekly::parse(entry).unwrap());
        } else if entry.len() == "12-25".len() {
            calendar.yearly.push(Yearly::parse(entry).unwrap());
        } else {
            calendar.dates.push(Day::parse(entry).unwrap());
        }
    }
    calendar
}

/// The same in a zone of its own.
pub(crate) fn calendar_in(name: &str, zone_name: &str, entries: &[&str]) -> Calendar {
    Calendar {
        zone: Some(zone(zone_name)),
        ..calendar(name, entries)
    }
}

pub(crate) fn cron(text: &str, zone_name: &str) -> Schedule {
    let options = CronOptions {
        zone: Some(zone(zone_name)),
        ..CronOptions::default()
    };
    Schedule::from(Cron::parse(&[text.to_owned()], options).unwrap())
}

pub(crate) fn every(text: &str, anchor: &str, zone_name: &str) -> Schedule {
    Schedule::from(Every::parse(text, at(anchor), zone(zone_name)).unwrap())
}

impl Schedule {
    pub(crate) fn excluding(mut self, calendar: Calendar) -> Self {
        self.calendars.exclude.push(Arc::new(calendar));
        self
    }

    pub(crate) fn only(mut self, calendar: Calendar) -> Self {
        self.calendars.only.push(Arc::new(calendar));
        self
    }

    pub(crate) fn starting(mut self, text: &str) -> Self {
        self.bounds.starts_at = Some(at(text));
        self
    }

    pub(crate) fn ending(mut self, text: &str) -> Self {
        self.bounds.ends_at = Some(at(text));
        self
    }
}

/// A date within a month of a moment in seconds.
fn near(chance: &mut Chance, around: i64, days: u64) -> Day {
    let day = around.div_euclid(86_400) - days as i64 / 2 + chance.below(days) as i64;
    let date = jiff::Timestamp::from_second(day * 86_400).unwrap();
    Day::parse(&date.to_string()[..10]).unwrap()
}

fn clock(chance: &mut Chance) -> String {
    let minute = chance.below(4) * 15;
    format!("{:02}:{minute:02}", chance.below(24))
}

/// Entries of a calendar that matter around a moment in seconds, as text.
pub(crate) fn entries(chance: &mut Chance, around: i64) -> Vec<String> {
    let weekdays = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
    (0..1 + chance.below(4))
        .map(|_| match chance.below(8) {
            0 => near(chance, around, 8).to_string(),
            1 => near(chance, around, 8).to_string()[5..].to_owned(),
            2 => {
                let (from, to) = (near(chance, around, 8), near(chance, around, 8));
                format!("{}/{}", from.min(to), from.max(to))
            }
            3 => {
                let (from, to) = (near(chance, around, 8), near(chance, around, 8));
                let (from_time, to_time) = (clock(chance), clock(chance));
                let range = format!("{}T{from_time}/{}T{to_time}", from.min(to), from.max(to));
                match DateRange::parse(&range) {
                    Ok(_) => range,
                    Err(_) => from.to_string(),
                }
            }
            4 => chance.pick(&weekdays).to_owned(),
            5 => format!("{}-{}", chance.pick(&weekdays), chance.pick(&weekdays)),
            _ => {
                let days = format!("{}-{}", chance.pick(&weekdays), chance.pick(&weekdays));
                let (from, to) = (clock(chance), clock(chance));
                if from == to {
                    format!("{days} {from}-24:00")
                } else {
                    format!("{days} {from}-{to}")
                }
            }
        })
        .collect()
}

/// A calendar that matters around a moment in seconds, sometimes in a zone of its own.
pub(crate) fn random_calendar(chance: &mut Chance, name: &str, around: i64) -> Calendar {
    let entries = entries(chance, around);
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    match chance.below(3) {
        0 => calendar_in(name, chance.pick(&ZONES), &entries),
        _ => calendar(name, &entries),
    }
}

/// Up to two calendars on each side.
pub(crate) fn random_calendars(chance: &mut Chance, around: i64) -> Calendars {
    let mut some = |names: [&str; 2]| -> Vec<Arc<Calendar>> {
        let count = chance.below(3) as usize;
        let named = names.into_iter().take(count);
        named
            .map(|name| Arc::new(random_calendar(chance, name, around)))
            .collect()
    };
    Calendars {
        exclude: some(["out-a", "out-b"]),
        only: some(["in-a", "in-b"]),
    }
}

/// A schedule with a slot every few minutes to every day or so, without bounds or calendars.
pub(crate) fn random_schedule(chance: &mut Chance, around: i64) -> Schedule {
    let zone_name = chance.pick(&ZONES);
    let anchor = jiff::Timestamp::from_second(around - chance.below(40 * 86_400) as i64).unwrap();
    match chance.below(3) {
        0 => {
            let period = chance.pick(&["7m", "50m", "PT6H", "P1D", "P2D", "1d", "90m"]);
            every(period, &anchor.to_string(), zone_name)
        }
        _ => {
            let texts = [
                "*/15 * * * *",
                "0 * * * *",
                "30 2 * * *",
                "0,30 1-3 * * *",
                "0 9 * * MON-FRI",
                "*/20 8-18 * * *",
                "15 */6 * * *",
                "0 0 * * *",
                "45 23 L,1-28/3 * *",
            ];
            cron(chance.pick(&texts), zone_name)
        }
    }
}
