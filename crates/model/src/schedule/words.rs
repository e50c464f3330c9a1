//! A schedule in words, made from what was understood rather than from what was written.

use std::time::Duration;

use super::civil::{DAY, Date, weekday};
use super::days::{Days, bits};
use super::names;
use super::rule::{Rule, Years};
use super::{Cron, Every, Period, Schedule};
use crate::time::Slot;

/// As many times of day as are listed one by one.
const LISTED_MAX: u32 = 6;

pub(super) fn of(schedule: &Schedule) -> String {
    match schedule {
        Schedule::Cron(cron) => of_cron(cron),
        Schedule::Every(every) => of_every(every),
        Schedule::Once(slot) => of_once(*slot),
    }
}

fn of_cron(cron: &Cron) -> String {
    let rules: Vec<String> = cron.rules().iter().map(of_rule).collect();
    format!("{}, {}", rules.join("; and "), cron.zone())
}

fn of_rule(rule: &Rule) -> String {
    let mut words = of_time(rule);
    let days = of_days(&rule.days);
    if !days.is_empty() {
        words = format!("{words} {days}");
    } else if words.starts_with("at ") && !words.contains("every") {
        words.push_str(" every day");
    }
    if rule.months != 0x1ffe {
        let months: Vec<u32> = bits(rule.months).collect();
        words = format!("{words} in {}", names::numbers(&months, |month| names::month(month).to_owned()));
    }
    if !rule.years.is_empty() {
        let years: Vec<String> = rule.years.iter().map(of_years).collect();
        words = format!("{words} in {}", names::list(&years));
    }
    words
}

fn of_years(years: &Years) -> String {
    let Years { first, last, step } = *years;
    match step {
        _ if first == last => first.to_string(),
        1 => format!("{first} to {last}"),
        step => format!("every {} year from {first} to {last}", names::ordinal(step)),
    }
}

/// How the numbers of a set lie.
enum Shape {
    All,
    One(u32),
    /// From a number below the step to the end.
    Every {
        step: u32,
        first: u32,
    },
    Run(u32, u32),
    List(Vec<u32>),
}

impl Shape {
    fn of(set: impl Into<u64>, size: u32) -> Self {
        let numbers: Vec<u32> = bits(set).collect();
        let step = match numbers.as_slice() {
            [one] => return Self::One(*one),
            [one, next, ..] => next - one,
            [] => 1,
        };
        let (first, last) = (numbers.first().copied(), numbers.last().copied());
        let (first, last) = (first.unwrap_or(0), last.unwrap_or(0));
        let even = numbers.windows(2).all(|pair| matches!(pair, [one, next] if next - one == step));
        if numbers.len() as u32 == size {
            Self::All
        } else if even && step == 1 {
            Self::Run(first, last)
        } else if even && size.is_multiple_of(step) && first < step && last + step >= size {
            Self::Every { step, first }
        } else {
            Self::List(numbers)
        }
    }
}

fn of_time(rule: &Rule) -> String {
    let times = rule.seconds.count_ones() * rule.minutes.count_ones() * rule.hours.count_ones();
    let minute = Shape::of(rule.minutes, 60);
    let hour = Shape::of(rule.hours, 24);
    if times > LISTED_MAX {
        return match (Shape::of(rule.seconds, 60), minute) {
            (Shape::One(second), Shape::One(minute)) => of_hours(&hour, minute * 60 + second),
            (Shape::One(0), minute) => of_minutes(&minute, &hour) + &within_hours(&hour),
            (Shape::One(second), Shape::All) => {
                format!("every minute at second {second}{}", within_hours(&hour))
            }
            (Shape::One(second), minute) => {
                format!("{} at second {second}{}", of_minutes(&minute, &hour), within_hours(&hour))
            }
            (second, minute) => {
                format!("{}{}{}", of_seconds(&second), within_minutes(&minute), within_hours(&hour))
            }
        };
    }
    let mut listed = Vec::new();
    for hour in bits(rule.hours) {
        for minute in bits(rule.minutes) {
            for second in bits(rule.seconds) {
                listed.push(names::clock(i64::from(hour * 3_600 + minute * 60 + second)));
            }
        }
    }
    format!("at {}", names::list(&listed))
}

fn plain(numbers: &[u32]) -> String {
    names::numbers(numbers, |number| number.to_string())
}

fn of_seconds(second: &Shape) -> String {
    match second {
        Shape::All => "every second".to_owned(),
        Shape::One(one) => format!("at second {one}"),
        Shape::Every { step, first: 0 } => format!("every {}", names::count((*step).into(), "second")),
        Shape::Every { step, first } => format!("every {step} seconds from second {first}"),
        Shape::Run(first, last) => format!("every second from {first} to {last}"),
        Shape::List(list) => format!("at seconds {}", plain(list)),
    }
}

/// Which minutes, when seconds came first.
fn within_minutes(minute: &Shape) -> String {
    match minute {
        Shape::All => String::new(),
        Shape::One(one) => format!(" in minute {one}"),
        Shape::Every { step, first: 0 } => format!(" in every {} minute", names::ordinal(*step)),
        Shape::Every { step, first } => {
            format!(" in every {} minute from minute {first}", names::ordinal(*step))
        }
        Shape::Run(first, last) => format!(" in minutes {first} to {last}"),
        Shape::List(list) => format!(" in minutes {}", plain(list)),
    }
}

fn of_minutes(minute: &Shape, hour: &Shape) -> String {
    let past = match hour {
        Shape::All => "past every hour",
        Shape::One(_) | Shape::Every { .. } | Shape::Run(..) | Shape::List(_) => "past the hour",
    };
    match minute {
        Shape::All => "every minute".to_owned(),
        Shape::One(one) => format!("at {} {past}", names::count((*one).into(), "minute")),
        Shape::Every { step, first: 0 } => format!("every {step} minutes"),
        Shape::Every { step, first } => format!("every {step} minutes from minute {first}"),
        Shape::Run(first, last) => format!("every minute from {first} to {last} {past}"),
        Shape::List(list) => format!("at {} minutes {past}", plain(list)),
    }
}

/// Which hours, when something finer came first.
fn within_hours(hour: &Shape) -> String {
    match hour {
        Shape::All => String::new(),
        Shape::One(one) => format!(" from {one:02}:00 to {one:02}:59"),
        Shape::Every { step, first: 0 } => format!(" in every {} hour", names::ordinal(*step)),
        Shape::Every { step, first } => {
            format!(" in every {} hour from {first:02}:00", names::ordinal(*step))
        }
        Shape::Run(first, last) => format!(" from {first:02}:00 to {last:02}:59"),
        Shape::List(list) => format!(" in the hours {}", plain(list)),
    }
}

/// One time in each of several hours; `past` in seconds.
fn of_hours(hour: &Shape, past: u32) -> String {
    let at = |hour: u32| names::clock(i64::from(hour * 3_600 + past));
    let offset = match (past / 60, past % 60) {
        (0, 0) => String::new(),
        (minutes, 0) => format!("at {} past ", names::count(minutes.into(), "minute")),
        (minutes, seconds) => format!("at {minutes:02}:{seconds:02} past "),
    };
    match (hour, past) {
        (Shape::All, _) => format!("{offset}every hour"),
        (Shape::Every { step, first: 0 }, 0) => format!("every {step} hours"),
        (Shape::Every { step, first: 0 }, _) => {
            format!("{offset}every {} hour", names::ordinal(*step))
        }
        (Shape::Run(first, last), _) => format!("every hour from {} to {}", at(*first), at(*last)),
        (Shape::One(one), _) => format!("at {}", at(*one)),
        (Shape::Every { step, first }, _) => format!("every {step} hours from {}", at(*first)),
        (Shape::List(list), _) => {
            let times: Vec<String> = list.iter().map(|hour| at(*hour)).collect();
            format!("at {}", names::list(&times))
        }
    }
}

fn of_days(days: &Days) -> String {
    match (days.by_date, days.by_weekday) {
        (false, false) => String::new(),
        (true, false) => format!("on {}", of_dates(days)),
        (false, true) => format!("on {}", of_weekdays(days)),
        (true, true) if days.both => {
            format!("on {} when it is {}", of_dates(days), of_weekdays(days))
        }
        (true, true) => format!("on {} or on {}", of_dates(days), of_weekdays(days)),
    }
}

pub(super) fn of_dates(days: &Days) -> String {
    let mut items = Vec::new();
    let dates: Vec<u32> = bits(days.dates).collect();
    match dates.as_slice() {
        [] => {}
        [one] => items.push(format!("day {one} of the month")),
        [one, next, .., last]
            if dates.len() > 4
                && next - one > 1
                && dates.windows(2).all(|pair| matches!(pair, [a, b] if b - a == next - one)) =>
        {
            let step = names::ordinal(next - one);
            items.push(format!("every {step} day of the month from day {one} to {last}"));
        }
        dates => items.push(format!("days {} of the month", plain(dates))),
    }
    items.extend(bits(days.before_last).map(|back| match back {
        0 => "the last day of the month".to_owned(),
        1 => "the day before the last of the month".to_owned(),
        back => format!("the {} day before the last of the month", names::ordinal(back)),
    }));
    items.extend(bits(days.nearest).map(|day| format!("the working day nearest to day {day}")));
    items.extend(bits(days.nearest_last).map(|back| match back {
        0 => "the last working day of the month".to_owned(),
        back => format!("the working day nearest to {} before the last of the month", names::count(back.into(), "day")),
    }));
    names::list(&items)
}

pub(super) fn of_weekdays(days: &Days) -> String {
    let named = |number: u32| names::weekday(number).to_owned();
    let mut items = Vec::new();
    if days.weekdays != 0 {
        items.push(names::numbers(&names::weekday_order(days.weekdays), named));
    }
    let which = ["first", "second", "third", "fourth", "fifth"];
    for (nth, set) in which.into_iter().zip(days.nth).chain([("last", days.last)]) {
        let found = names::weekday_order(set).into_iter();
        items.extend(found.map(|day| format!("the {nth} {} of the month", named(day))));
    }
    names::list(&items)
}

fn of_every(every: &Every) -> String {
    let Every { period, anchor, zone } = every;
    let seconds = anchor.as_millis().div_euclid(1_000);
    let local = seconds + zone.offset_at(seconds);
    let (date, clock) = (names::date(local), names::clock(local));
    let weekday = names::weekday(weekday(local.div_euclid(DAY)));
    let Date { month, day, .. } = Date::from_days(local.div_euclid(DAY));
    let times = |number: u32, unit: &str| match number {
        1 => format!("every {unit}"),
        number => format!("every {number} {unit}s"),
    };
    let when = match *period {
        Period::Elapsed(span) => {
            return format!("every {}, counted from {clock} on {date}, {zone}", of_span(span));
        }
        Period::Calendar { months: 0, days } if days.is_multiple_of(7) => {
            format!("{} on {weekday}", times(days / 7, "week"))
        }
        Period::Calendar { months: 0, days } => times(days, "day"),
        Period::Calendar { months, days: 0 } if months.is_multiple_of(12) => {
            format!("{} on {day} {}", times(months / 12, "year"), names::month(month))
        }
        Period::Calendar { months, days: 0 } => {
            format!("{} on day {day}", times(months, "month"))
        }
        Period::Calendar { months, days } => {
            let (months, days) =
                (names::count(months.into(), "month"), names::count(days.into(), "day"));
            format!("every {months} and {days}")
        }
    };
    // Every day, month and year tells its place; anything longer needs to know where counting began.
    let counted = match period {
        Period::Calendar { months: 0, days: 1 | 7 } | Period::Calendar { months: 1 | 12, days: 0 } => {
            String::new()
        }
        Period::Calendar { .. } | Period::Elapsed(_) => format!(", counted from {date}"),
    };
    format!("{when} at {clock}{counted}, {zone}")
}

/// "90 seconds", "1 hour 30 minutes".
pub(super) fn of_span(span: Duration) -> String {
    let text = super::format_span(span);
    let mut words = Vec::new();
    let mut rest = text.as_str();
    while let Some(end) = rest.find(|c: char| c.is_ascii_alphabetic()) {
        let (number, after) = rest.split_at(end);
        let letters = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, tail) = after.split_at(letters);
        let unit = match unit {
            "w" => "week",
            "d" => "day",
            "h" => "hour",
            "m" => "minute",
            "s" => "second",
            _ => "millisecond",
        };
        words.push(match number {
            "1" if text.len() == end + letters => unit.to_owned(),
            number => names::count(number.parse().unwrap_or(0), unit),
        });
        rest = tail;
    }
    words.join(" ")
}

fn of_once(slot: Slot) -> String {
    let seconds = slot.0.as_millis().div_euclid(1_000);
    format!("once at {} on {}, UTC", names::clock(seconds), names::date(seconds))
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
