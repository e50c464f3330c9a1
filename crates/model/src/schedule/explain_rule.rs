//! Why a cron expression names a moment, or which of its fields does not.

use super::civil::{DAY, Date, weekday};
use super::cron::{Cron, DstGap, DstOverlap};
use super::days::bits;
use super::explain::{DAYLIGHT_SAVING, Step, first_time, local_of, made_up, second_time};
use super::expression::Fields;
use super::field::Field;
use super::rule::{Rule, Years};
use super::zone::Shift;
use super::{names, words};
use crate::time::Timestamp;

/// As many characters of a list of numbers as are read with ease.
const LIST_MAX: usize = 48;

/// One step for each expression, and another where a change of the clocks matters.
pub(super) fn at(cron: &Cron, moment: Timestamp) -> Vec<Step> {
    let local = local_of(moment, cron.zone());
    if moment.as_millis().rem_euclid(1_000) > 0 {
        let says = "it lies between two seconds, and slots are whole ones".to_owned();
        return vec![Step::new("schedule", false, says)];
    }
    let seconds = moment.as_millis().div_euclid(1_000);
    of_rules(cron, local, |rule| of_change(rule, cron, seconds, local))
}

/// The same for a local time that a gap leaves out.
pub(super) fn within(cron: &Cron, gap: Shift, local: i64) -> Vec<Step> {
    of_rules(cron, local, |rule| {
        let named = refusal(rule, None, local).is_none();
        named.then(|| match (rule.elapsed, cron.dst_gap()) {
            (false, DstGap::RunAfter) => (true, made_up(local, gap)),
            (false, DstGap::Skip) => (false, format!("{} and is left out", missing(local))),
            (true, DstGap::RunAfter | DstGap::Skip) => {
                let says = "and what follows elapsed time is not made up for";
                (false, format!("{} {says}", missing(local)))
            }
        })
    })
}

fn of_rules(
    cron: &Cron,
    local: i64,
    change: impl Fn(&Rule) -> Option<(bool, String)>,
) -> Vec<Step> {
    let mut steps = Vec::new();
    for (text, rule) in cron.texts().iter().zip(cron.rules()) {
        let fields = Fields::split(text, cron.dialect()).ok();
        let (holds, says) = match refusal(rule, fields.as_ref(), local) {
            None => (true, "every field matches".to_owned()),
            Some(no) => (false, no),
        };
        steps.push(Step::new("schedule", holds, format!("{text}: {says}")));
        let change = change(rule);
        steps.extend(change.map(|(holds, says)| Step::new(DAYLIGHT_SAVING, holds, says)));
    }
    steps
}

/// The first field that does not match a local time, from the year down to the second.
fn refusal(rule: &Rule, fields: Option<&Fields<'_>>, local: i64) -> Option<String> {
    let Date { year, month, day } = Date::from_days(local.div_euclid(DAY));
    let second = local.rem_euclid(DAY) as u32;
    let text = |field: Field| {
        let fields = fields?;
        match field {
            Field::Second => Some(fields.second),
            Field::Minute => Some(fields.minute),
            Field::Hour => Some(fields.hour),
            Field::Month => Some(fields.month),
            Field::Day | Field::Weekday | Field::Year => None,
        }
    };
    let set = |field: Field, set: u64, value: u32| {
        (set >> value & 1 == 0).then(|| not_among(field, set, value, text(field)))
    };
    let of_year = || {
        let years = &rule.years;
        let fits = years.is_empty() || years.iter().any(|years| is_among(years, year));
        let named: Vec<String> = years.iter().map(words::of_years).collect();
        (!fits).then(|| format!("the year {year} is not in {}", names::list(&named)))
    };
    let of_day = || {
        let days = rule.days.in_month(year, month);
        (days >> day & 1 == 0).then(|| {
            let (date, on) = (names::date(local), words::of_days(&rule.days));
            let named = names::weekday(weekday(local.div_euclid(DAY)));
            format!("{date}, a {named}, is not {on}")
        })
    };
    of_year()
        .or_else(|| set(Field::Month, rule.months.into(), month))
        .or_else(of_day)
        .or_else(|| set(Field::Hour, rule.hours.into(), second / 3_600))
        .or_else(|| set(Field::Minute, rule.minutes, second / 60 % 60))
        .or_else(|| set(Field::Second, rule.seconds, second % 60))
}

fn is_among(years: &Years, year: i32) -> bool {
    u32::try_from(year).is_ok_and(|year| {
        let within = (years.first..=years.last).contains(&year);
        within && (year - years.first).is_multiple_of(years.step.max(1))
    })
}

/// "minute 15 is not among 0 and 30".
fn not_among(field: Field, set: u64, value: u32, text: Option<&str>) -> String {
    let named = |number: u32| match field {
        Field::Month => names::month(number).to_owned(),
        Field::Second | Field::Minute | Field::Hour | Field::Day | Field::Weekday | Field::Year => {
            number.to_string()
        }
    };
    let numbers: Vec<u32> = bits(set).collect();
    let list = names::numbers(&numbers, named);
    let value = named(value);
    match text {
        Some(text) if list.len() > LIST_MAX => format!("{field} {value} does not match {text}"),
        Some(_) | None if numbers.len() == 1 => format!("{field} {value} is not {list}"),
        Some(_) | None => format!("{field} {value} is not among {list}"),
    }
}

fn missing(local: i64) -> String {
    let (clock, date) = (names::clock(local), names::date(local));
    format!("{clock} on {date} does not exist")
}

/// What a change of the clocks means for a rule at a moment in seconds, if anything.
fn of_change(rule: &Rule, cron: &Cron, at: i64, local: i64) -> Option<(bool, String)> {
    let named = refusal(rule, None, local).is_none();
    let both = rule.elapsed || cron.dst_overlap() == DstOverlap::Both;
    if let Some(shift) = cron.zone().shift_until(at) {
        let gap = (shift.local_before(), shift.local_after());
        if shift.is_gap() && shift.at == at && !rule.elapsed && rule.matches_within(gap.0, gap.1) {
            let time = rule.next_local(gap.0)?;
            return match (cron.dst_gap(), named) {
                (DstGap::RunAfter, _) => Some((true, made_up(time, shift))),
                (DstGap::Skip, true) => None,
                (DstGap::Skip, false) => {
                    Some((false, format!("{} and is left out", missing(time))))
                }
            };
        }
        if shift.is_overlap() && local < shift.local_before() && named {
            return if both {
                Some((true, first_time(local, true)))
            } else {
                Some((false, second_time(local)))
            };
        }
    }
    let ahead = cron.zone().shift_after(at)?;
    let repeated = ahead.is_overlap() && local >= ahead.local_after() && named;
    repeated.then(|| (true, first_time(local, both)))
}
