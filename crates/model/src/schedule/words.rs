//! A schedule in words, made from what was understood rather than from what was written.

use std::sync::Arc;
use std::time::Duration;

use super::civil::{DAY, Date, weekday};
use super::days::{Days, bits};
use super::names;
use super::rule::{Rule, Years};
use super::times::{of_time, plain};
use super::{Bounds, Calendar, Calendars, Cron, Every, Kind, Period, Schedule, Zone};
use crate::time::{Slot, Timestamp};

pub(super) fn of(schedule: &Schedule) -> String {
    let mut words = match &schedule.kind {
        Kind::Cron(cron) => of_cron(cron),
        Kind::Every(every) => of_every(every),
        Kind::Once(slot) => of_once(*slot),
        Kind::Broken(_) => "never: it cannot be read any more".to_owned(),
    };
    words.push_str(&of_bounds(&schedule.bounds, &schedule.zone()));
    words.push_str(&of_calendars(&schedule.calendars));
    words
}

fn of_bounds(bounds: &Bounds, zone: &Zone) -> String {
    let moment = |moment: Timestamp| {
        let seconds = moment.as_millis().div_euclid(1_000);
        let local = seconds + zone.offset_at(seconds);
        format!("{} {}", names::date(local), names::clock(local))
    };
    let mut words = String::new();
    if let Some(start) = bounds.starts_at {
        words.push_str(&format!(", from {}", moment(start)));
    }
    if let Some(end) = bounds.ends_at {
        words.push_str(&format!(", until {}", moment(end)));
    }
    if let Some(max) = bounds.runs_max {
        words.push_str(&format!(", at most {}", names::count(max.into(), "run")));
    }
    words
}

fn of_calendars(calendars: &Calendars) -> String {
    let named = |list: &[Arc<Calendar>]| {
        let named: Vec<String> = list.iter().map(|it| it.name.to_string()).collect();
        names::list(&named)
    };
    let mut words = String::new();
    if !calendars.only.is_empty() {
        words.push_str(&format!(", only during {}", named(&calendars.only)));
    }
    if !calendars.exclude.is_empty() {
        words.push_str(&format!(", except during {}", named(&calendars.exclude)));
    }
    words
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
        words = format!(
            "{words} in {}",
            names::numbers(&months, |month| names::month(month).to_owned())
        );
    }
    if !rule.years.is_empty() {
        let years: Vec<String> = rule.years.iter().map(of_years).collect();
        words = format!("{words} in {}", names::list(&years));
    }
    words
}

pub(super) fn of_years(years: &Years) -> String {
    let Years { first, last, step } = *years;
    match step {
        _ if first == last => first.to_string(),
        1 => format!("{first} to {last}"),
        step => format!("every {} year from {first} to {last}", names::ordinal(step)),
    }
}

pub(super) fn of_days(days: &Days) -> String {
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
                && dates
                    .windows(2)
                    .all(|pair| matches!(pair, [a, b] if b - a == next - one)) =>
        {
            let step = names::ordinal(next - one);
            items.push(format!(
                "every {step} day of the month from day {one} to {last}"
            ));
        }
        dates => items.push(format!("days {} of the month", plain(dates))),
    }
    items.extend(bits(days.before_last).map(|back| match back {
        0 => "the last day of the month".to_owned(),
        1 => "the day before the last of the month".to_owned(),
        back => format!(
            "the {} day before the last of the month",
            names::ordinal(back)
        ),
    }));
    items.extend(bits(days.nearest).map(|day| format!("the working day nearest to day {day}")));
    items.extend(bits(days.nearest_last).map(|back| match back {
        0 => "the last working day of the month".to_owned(),
        back => format!(
            "the working day nearest to {} before the last of the month",
            names::count(back.into(), "day")
        ),
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

/// "1 hour 30 minutes", "1 month and 15 days".
pub(super) fn of_period(period: Period) -> String {
    let (months, days) = match period {
        Period::Elapsed(span) => return of_duration(span),
        Period::Calendar { months, days } => (months, days),
    };
    let parts = [(months, "month"), (days, "day")].into_iter();
    let named: Vec<String> = parts
        .filter(|(number, _)| *number > 0)
        .map(|(number, unit)| names::count(number.into(), unit))
        .collect();
    names::list(&named)
}

/// A period that starts again at the end of each run.
fn of_delay(period: Period, zone: &Zone) -> String {
    let words = format!("{} after the end of each run", of_period(period));
    match period {
        Period::Elapsed(_) => words,
        Period::Calendar { .. } => format!("{words}, {zone}"),
    }
}

fn of_every(every: &Every) -> String {
    let Every {
        period,
        anchor,
        zone,
        after_completion,
    } = every;
    if *after_completion {
        return of_delay(*period, zone);
    }
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
            return format!(
                "every {}, counted from {clock} on {date}, {zone}",
                of_span(span)
            );
        }
        Period::Calendar { months: 0, days } if days.is_multiple_of(7) => {
            format!("{} on {weekday}", times(days / 7, "week"))
        }
        Period::Calendar { months: 0, days } => times(days, "day"),
        Period::Calendar { months, days: 0 } if months.is_multiple_of(12) => {
            format!(
                "{} on {day} {}",
                times(months / 12, "year"),
                names::month(month)
            )
        }
        Period::Calendar { months, days: 0 } => {
            format!("{} on day {day}", times(months, "month"))
        }
        Period::Calendar { months, days } => {
            let (months, days) = (
                names::count(months.into(), "month"),
                names::count(days.into(), "day"),
            );
            format!("every {months} and {days}")
        }
    };
    // The place of a day, month or year is known from itself; anything longer needs to know where counting began.
    let counted = match period {
        Period::Calendar {
            months: 0,
            days: 1 | 7,
        }
        | Period::Calendar {
            months: 1 | 12,
            days: 0,
        } => String::new(),
        Period::Calendar { .. } | Period::Elapsed(_) => format!(", counted from {date}"),
    };
    format!("{when} at {clock}{counted}, {zone}")
}

/// "1 hour", "1 hour 30 minutes".
pub(super) fn of_duration(span: Duration) -> String {
    names::counted(&of_span(span))
}

/// "90 seconds", "1 hour 30 minutes"; one of a unit is the unit itself.
pub(super) fn of_span(span: Duration) -> String {
    let text = super::format_span(span);
    let mut words = Vec::new();
    let mut rest = text.as_str();
    while let Some(end) = rest.find(|c: char| c.is_ascii_alphabetic()) {
        let (number, after) = rest.split_at(end);
        let letters = after
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(after.len());
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

pub(super) fn of_once(slot: Slot) -> String {
    let seconds = slot.0.as_millis().div_euclid(1_000);
    format!(
        "once at {} on {}, UTC",
        names::clock(seconds),
        names::date(seconds)
    )
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
