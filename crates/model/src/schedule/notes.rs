//! What the author of a schedule may not expect: what a field came to mean, which months have no slot, what
//! happens on the days when the clocks change, and what calendars leave out.

use super::civil::DAY;
use super::cron::{Dialect, DstGap, DstOverlap};
use super::days::{Days, bits};
use super::explain::local_of;
use super::expression::Fields;
use super::field::{Field, Range, Reader};
use super::rule::Rule;
use super::zone::{Shift, Zone};
use super::{Cron, Every, Found, Kind, Period, Schedule, names, words};
use crate::run::Stretch;
use crate::time::{Slot, Timestamp};

/// How far ahead changes of the clocks are looked for: a year and a little more.
const AHEAD: i64 = 400 * DAY;
/// So many stretches that calendars leave out are named.
const LEFT_OUT_MAX: usize = 3;
/// Edges of calendars that are looked at to find them.
const LOOKUPS_MAX: usize = 1_000;
/// A schedule in many expressions does not get a page of notes.
const NOTES_MAX: usize = 32;

pub(super) fn of(schedule: &Schedule, from: Timestamp) -> Vec<String> {
    let mut notes = match &schedule.kind {
        Kind::Cron(cron) => of_cron(cron, from),
        Kind::Every(every) => of_every(every, from),
        Kind::Once(_) => Vec::new(),
        Kind::Broken(broken) => vec![broken.error.clone()],
    };
    notes.extend(of_next(schedule, from));
    if schedule.leaves_out() && matches!(schedule.find_kept(from), Found::Kept(_)) {
        notes.extend(of_left_out(schedule, from));
    }
    // Two expressions may well have the same surprise.
    let mut seen = std::collections::BTreeSet::new();
    notes.retain(|note| seen.insert(note.clone()));
    notes.truncate(NOTES_MAX);
    notes
}

/// No slot at all, none for a long time, or no more after a while.
fn of_next(schedule: &Schedule, from: Timestamp) -> Vec<String> {
    let date = |moment: Timestamp| names::date(local_of(moment, &schedule.zone()));
    let far = |next: Timestamp| next.as_millis() - from.as_millis() > 366 * DAY * 1_000;
    let mut notes = match schedule.find_kept(from) {
        Found::Nothing => return vec![format!("has no slot after {from}")],
        Found::Kept(Slot(next)) if far(next) => {
            vec![format!("the next slot is on {}", date(next))]
        }
        Found::Kept(_) => Vec::new(),
        Found::LeftOut(_) if !schedule.is_recurring() => {
            vec![format!(
                "its slot is left out by {}",
                schedule.calendars.named()
            )]
        }
        Found::LeftOut(last) => {
            let (until, by) = (date(last.0), schedule.calendars.named());
            vec![if schedule.is_last(last) {
                format!("every slot is left out by {by}; the last is on {until}")
            } else {
                format!("every slot up to {until} is left out by {by}, nothing later was checked")
            }]
        }
    };
    let soon = |end: &Timestamp| end.as_millis() < from.as_millis() + AHEAD * 1_000;
    if let Some(end) = schedule.bounds.ends_at.filter(soon) {
        notes.push(format!("ends on {}", date(end)));
    }
    notes
}

/// The first slots that calendars leave out, while there are others that they keep.
fn of_left_out(schedule: &Schedule, from: Timestamp) -> Vec<String> {
    let mut notes = Vec::new();
    let mut after = from;
    let until = Timestamp::from_millis(from.as_millis() + AHEAD * 1_000);
    // Nothing is looked for twice: one step goes from one edge of a calendar to the next.
    for _ in 0..LOOKUPS_MAX {
        let left = schedule.left_out(after, until);
        let stretches = left.stretches.iter();
        notes.extend(stretches.map(|(it, name)| of_stretch(schedule, it, name)));
        match left
            .next
            .filter(|_| left.kept && notes.len() < LEFT_OUT_MAX)
        {
            Some(first) => after = schedule.kept_stretch(first, until).last.0,
            None => break,
        }
    }
    notes.truncate(LEFT_OUT_MAX);
    notes
}

/// "25 December 2026 is left out by holidays", with times if only a part of the day is.
fn of_stretch(schedule: &Schedule, stretch: &Stretch, name: &str) -> String {
    let zone = schedule.zone();
    let local = |slot: Slot| local_of(slot.0, &zone);
    let (first, last) = (local(stretch.first), local(stretch.last));
    let day = |local: i64| local.div_euclid(DAY);
    let before = schedule.last_before(stretch.first.0).map(local);
    let after = schedule.next_after(stretch.last.0).map(local);
    let whole = before.map(day) != Some(day(first)) && after.map(day) != Some(day(last));
    let (first_date, last_date) = (names::date(first), names::date(last));
    let (from, to) = (names::clock(first), names::clock(last));
    let what = match (whole, day(first) == day(last)) {
        (true, true) => first_date,
        (true, false) => format!("{first_date} to {last_date}"),
        (false, true) if stretch.count == 1 => format!("{from} on {first_date}"),
        (false, true) => format!("{from} to {to} on {first_date}"),
        (false, false) => format!("{from} on {first_date} to {to} on {last_date}"),
    };
    format!("{what} is left out by {name}")
}

fn of_cron(cron: &Cron, from: Timestamp) -> Vec<String> {
    let mut notes = Vec::new();
    for (text, rule) in cron.texts().iter().zip(cron.rules()) {
        // A macro says what it does; and whatever was read once can be split again.
        if let Ok(fields) = Fields::split(text, cron.dialect()) {
            notes.extend(of_fields(&fields, cron.dialect(), cron.hash()));
        }
        notes.extend(of_days(&rule.days));
        notes.extend(of_months(rule));
        for shift in changes(cron.zone(), from) {
            notes.extend(of_change(rule, cron, shift));
        }
    }
    notes
}

fn changes(zone: &Zone, from: Timestamp) -> impl Iterator<Item = Shift> {
    let from = from.as_millis() / 1_000;
    let shifts = std::iter::successors(zone.shift_after(from), |shift| zone.shift_after(shift.at));
    shifts.take_while(move |shift| shift.at < from + AHEAD)
}

fn of_fields(fields: &Fields<'_>, dialect: Dialect, hash: u64) -> Vec<String> {
    let texts = [
        (Field::Second, fields.second),
        (Field::Minute, fields.minute),
        (Field::Hour, fields.hour),
        (Field::Day, fields.day),
        (Field::Month, fields.month),
        (Field::Weekday, fields.weekday.trim_start_matches('+')),
    ];
    let mut notes = Vec::new();
    for (field, text) in texts {
        let reader = Reader {
            field,
            dialect,
            hash,
        };
        for item in text.split(',') {
            // What is not a range (`L`, `15W`, `FRI#2`) holds no surprise of this kind.
            if let Ok(range) = reader.range(item) {
                notes.extend(of_range(field, item, range));
            }
        }
    }
    notes
}

fn of_range(field: Field, item: &str, range: Range) -> Option<String> {
    let (lowest, highest) = field.bounds();
    let named = |number: u32| match field {
        Field::Month => names::month(number).to_owned(),
        Field::Weekday => names::weekday(number).to_owned(),
        Field::Second | Field::Minute | Field::Hour | Field::Day | Field::Year => {
            number.to_string()
        }
    };
    let set: Vec<u32> = bits(range.set((lowest, highest))).collect();
    if item.starts_with(['H', 'h']) {
        let chosen = names::numbers(&set, named);
        return Some(format!("{field} {item} stands for {chosen} in this job"));
    }
    if range.step > 1 && set.len() == 1 && range.first != range.last {
        let only = named(range.first);
        return Some(format!(
            "{field} {item} is {only} only: the step is longer than the range"
        ));
    }
    if range.last < range.first {
        // A week that ends on Sunday is what everybody means.
        let unsurprising = field == Field::Weekday && range.last == 0;
        let (mut late, mut early) = (set.clone(), set);
        late.retain(|number| *number >= range.first);
        early.retain(|number| *number < range.first);
        let order: Vec<String> = late.into_iter().chain(early).map(named).collect();
        return (!unsurprising).then(|| {
            format!(
                "{field} {item} goes around the end: {}",
                names::list(&order)
            )
        });
    }
    let uneven = range.step > 1 && !(highest - lowest + 1).is_multiple_of(range.step);
    let again = match field {
        Field::Second => "every minute",
        Field::Minute => "every hour",
        Field::Hour => "every day",
        Field::Day => "every month",
        Field::Month | Field::Weekday | Field::Year => return None,
    };
    (item.starts_with('*') && uneven).then(|| {
        format!("{field} {item} starts again at {lowest} {again}, so that one step is shorter")
    })
}

fn of_days(days: &Days) -> Option<String> {
    let either = days.by_date && days.by_weekday && !days.both;
    either.then(|| {
        let (dates, weekdays) = (words::of_dates(days), words::of_weekdays(days));
        format!(
            "both day fields are set, so either is enough: on {dates} and also on {weekdays}; \
             write + before the day of the week to require both"
        )
    })
}

/// Months without a slot because they are too short.
fn of_months(rule: &Rule) -> Option<String> {
    if rule.days.by_weekday || !rule.days.by_date {
        return None;
    }
    // Of these two years the second is a leap year.
    let empty = |year: i32| {
        let months = bits(rule.months).filter(|month| rule.days.in_month(year, *month) == 0);
        months.collect::<Vec<u32>>()
    };
    let (common, leap) = (empty(2_023), empty(2_024));
    let named: Vec<String> = common
        .iter()
        .map(|month| {
            if leap.contains(month) {
                names::month(*month).to_owned()
            } else {
                format!("{} except in leap years", names::month(*month))
            }
        })
        .collect();
    (!named.is_empty()).then(|| format!("has no slot in {}", names::join(&named, "or")))
}

/// What a rule does on a day when the clocks change.
fn of_change(rule: &Rule, cron: &Cron, shift: Shift) -> Option<String> {
    // In every hour of the day, the hour that is missing or repeated surprises nobody.
    if rule.elapsed && rule.hours == 0xff_ffff {
        return None;
    }
    let (from, to) = if shift.is_gap() {
        (shift.local_before(), shift.local_after())
    } else {
        (shift.local_after(), shift.local_before())
    };
    let time = rule.next_local(from).filter(|local| *local < to)?;
    let more = rule.next_local(time + 1).is_some_and(|local| local < to);
    if shift.is_gap() {
        let made_up = !rule.elapsed && cron.dst_gap() == DstGap::RunAfter;
        Some(of_gap(time, more, shift, made_up))
    } else {
        let once = !rule.elapsed && cron.dst_overlap() == DstOverlap::First;
        Some(of_overlap(time, more, once))
    }
}

fn of_gap(time: i64, more: bool, shift: Shift, made_up: bool) -> String {
    let end = shift.local_after();
    let mut missing = names::clock(time);
    // A whole day may be left out; then the time alone would be misleading.
    if time.div_euclid(DAY) != end.div_euclid(DAY) {
        missing = format!("{missing} on {}", names::date(time));
    }
    let does = if more { "and what follows do" } else { "does" };
    if made_up {
        let (date, clock) = (names::date(end), names::clock(end));
        format!("runs once on {date} at {clock} because {missing} {does} not exist")
    } else {
        format!(
            "does not run on {} because {missing} {does} not exist",
            names::date(time)
        )
    }
}

fn of_overlap(time: i64, more: bool, once: bool) -> String {
    let (date, clock) = (names::date(time), names::clock(time));
    let comes = if more {
        "and what follows come"
    } else {
        "comes"
    };
    if once {
        format!("runs once on {date}, the first time, although {clock} {comes} twice")
    } else {
        format!("runs twice on {date} because {clock} {comes} twice")
    }
}

fn of_every(every: &Every, from: Timestamp) -> Vec<String> {
    let Every {
        period,
        anchor,
        zone,
        after_completion,
    } = every;
    if *after_completion {
        return vec!["slots shown assume runs that take no time".to_owned()];
    }
    let anchor = anchor.as_millis() / 1_000;
    let local = anchor + zone.offset_at(anchor);
    match period {
        Period::Elapsed(span) => {
            let whole_days = span.as_millis().is_multiple_of(DAY as u128 * 1_000);
            let moves = whole_days && changes(zone, from).next().is_some();
            let note =
                "counts hours, so that the time of day moves when the clocks change; P1D keeps it";
            moves
                .then(|| format!("{} {note}", period.text()))
                .into_iter()
                .collect()
        }
        Period::Calendar { months, .. } => {
            let day = super::civil::Date::from_days(local.div_euclid(DAY)).day;
            let clamps = *months > 0 && !(day == 29 && months.is_multiple_of(48)) && day > 28;
            let note =
                clamps.then(|| format!("runs on the last day of months that have no day {day}"));
            note.into_iter()
                .chain(changes(zone, from).filter_map(|shift| of_shift(every, local, shift)))
                .collect()
        }
    }
}

/// What a calendar interval does on a day when the clocks change.
fn of_shift(every: &Every, anchor: i64, shift: Shift) -> Option<String> {
    let moved = (shift.before - shift.after).max(0);
    let start = shift.at - moved;
    let slot = every
        .next_after(Timestamp::from_millis(start * 1_000 - 1))?
        .0
        .as_millis()
        / 1_000;
    let time = |day: i64| day.div_euclid(DAY) * DAY + anchor.rem_euclid(DAY);
    if shift.is_gap() {
        let missing = time(shift.local_before());
        let missing = if missing < shift.local_before() {
            missing + DAY
        } else {
            missing
        };
        (slot == shift.at && missing < shift.local_after())
            .then(|| of_gap(missing, false, shift, true))
    } else {
        (slot < shift.at).then(|| of_overlap(slot + shift.before, false, true))
    }
}

#[cfg(test)]
#[path = "notes_tests.rs"]
mod tests;
