//! Why a moment is a slot, or why it is not: each step says what it found, for people. A moment or a local time
//! comes in. What always holds: the answer is that of `next_after`; the steps only say how it comes about.

use std::sync::Arc;
use std::time::Duration;

use super::calendar_day::Day;
use super::civil::{DAY, Date, weekday};
use super::zone::{Shift, Zone};
use super::{Calendar, Every, Kind, Period, Schedule, explain_rule, names, words};
use crate::time::{MomentError, Slot, Timestamp};

const MILLISECOND: Duration = Duration::from_millis(1);

/// What is to be explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    Moment(Timestamp),
    /// What the clock on the wall shows in the schedule's zone, in seconds since the local epoch.
    Local(i64),
}

impl Point {
    /// Reads RFC 3339 with an offset, an epoch number, or a local time such as `2026-03-29T02:30`.
    pub fn parse(text: &str) -> Result<Self, MomentError> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            let number = text.parse().unwrap_or(i64::MAX);
            return Timestamp::from_number(number).map(Self::Moment);
        }
        match Timestamp::parse(text) {
            Ok(moment) => Ok(Self::Moment(moment)),
            Err(MomentError::Unreadable(shown)) => match local(text) {
                Some(local) => Ok(Self::Local(local)),
                None => Err(MomentError::Unreadable(shown)),
            },
            Err(MomentError::OutOfRange(shown)) => Err(MomentError::OutOfRange(shown)),
        }
    }
}

/// `2026-03-29T02:30` or `2026-03-29T02:30:15`, in seconds since the local epoch.
fn local(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let mut parts = time.splitn(3, ':');
    let mut part = |bound: i64| {
        let text = parts.next()?;
        let fits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i64>()
            .ok()
            .filter(|part| fits && *part < bound)
    };
    let (hour, minute) = (part(24)?, part(60)?);
    let second = if time.len() > "02:30".len() {
        part(60)?
    } else {
        0
    };
    let day = Day::parse(date).ok()?.days();
    Some(day * DAY + hour * 3_600 + minute * 60 + second)
}

/// What a schedule says about a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// None if the local time does not exist, two if it comes twice.
    pub moments: Vec<Timestamp>,
    /// What the clock on the wall shows, such as `2026-03-29T02:30:00`.
    pub local: String,
    pub zone: String,
    /// The slot at that moment, calendars aside; for a local time that does not exist, the one made up
    /// for it; of two, the first.
    pub slot: Option<Slot>,
    /// Whether calendars keep it.
    pub kept: bool,
    pub steps: Vec<Step>,
}

/// One thing that speaks for or against a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub step: &'static str,
    pub holds: bool,
    pub says: String,
}

impl Step {
    pub(super) fn new(step: &'static str, holds: bool, says: String) -> Self {
        Self { step, holds, says }
    }
}

impl Schedule {
    /// Why a moment is a slot, or why it is not.
    pub fn explain(&self, point: &Point) -> Explanation {
        let zone = self.zone();
        let place = Place::of(point, &zone);
        let moment = place.moment(|moment| self.is_slot(moment));
        let (mut steps, made_up) = match (moment, place.gap) {
            (Some(moment), _) => (self.steps_at(moment, &zone), None),
            (None, Some(gap)) => self.steps_in(gap, place.local),
            (None, None) => (Vec::new(), None),
        };
        let slot = moment.or(made_up).filter(|moment| self.is_slot(*moment));
        let slot = slot.map(Slot);
        steps.insert(0, place.step(point, &zone));
        if let Some(slot) = slot {
            steps.extend(self.of_calendars(slot, &zone));
        } else {
            let around = moment.or(place.gap.map(|gap| seconds(gap.at)));
            steps.extend(around.and_then(|around| self.of_nearest(around, &zone)));
        }
        Explanation {
            moments: place.moments,
            local: iso(place.local, place.millis),
            zone: zone.name().to_owned(),
            slot,
            kept: slot.is_some_and(|slot| self.keeps(slot)),
            steps,
        }
    }

    fn is_slot(&self, moment: Timestamp) -> bool {
        self.next_after(moment.minus(MILLISECOND)) == Some(Slot(moment))
    }

    fn steps_at(&self, moment: Timestamp, zone: &Zone) -> Vec<Step> {
        let mut steps = self.of_bounds(moment, zone);
        match &self.kind {
            Kind::Cron(cron) => steps.extend(explain_rule::at(cron, moment)),
            Kind::Every(every) => steps.extend(of_every(every, moment)),
            Kind::Once(slot) => {
                let says = format!("it is due {}", words::of_once(*slot));
                steps.push(Step::new("schedule", slot.0 == moment, says));
            }
            Kind::Broken(broken) => steps.push(Step::new("schedule", false, broken.error.clone())),
        }
        steps
    }

    /// About a local time that does not exist, and the moment that makes up for it.
    fn steps_in(&self, gap: Shift, local: i64) -> (Vec<Step>, Option<Timestamp>) {
        let end = seconds(gap.at);
        let mut steps = self.of_bounds(end, &self.zone());
        let found = match &self.kind {
            Kind::Cron(cron) => explain_rule::within(cron, gap, local),
            Kind::Every(every) => of_every_within(every, gap, local),
            Kind::Once(_) | Kind::Broken(_) => Vec::new(),
        };
        let made_up = found
            .iter()
            .any(|it| it.step == DAYLIGHT_SAVING && it.holds);
        steps.extend(found);
        (steps, made_up.then_some(end))
    }

    fn of_bounds(&self, moment: Timestamp, zone: &Zone) -> Vec<Step> {
        let start = self.bounds.starts_at.map(|start| {
            let holds = moment >= start;
            let only = if holds { "" } else { "only " };
            let says = format!("the schedule starts {only}at {}", show_moment(start, zone));
            Step::new("starts_at", holds, says)
        });
        let end = self.bounds.ends_at.map(|end| {
            let holds = moment <= end;
            let ends = if holds { "ends" } else { "ended" };
            Step::new(
                "ends_at",
                holds,
                format!("the schedule {ends} at {}", show_moment(end, zone)),
            )
        });
        start.into_iter().chain(end).collect()
    }

    fn of_calendars(&self, slot: Slot, zone: &Zone) -> Option<Step> {
        if self.calendars.is_empty() {
            return None;
        }
        let those = |list: &[Arc<Calendar>], inside: bool| -> Vec<String> {
            let held = list.iter().filter(|it| it.holds(slot.0, zone) == inside);
            held.map(|it| it.name.to_string()).collect()
        };
        let out = those(&self.calendars.exclude, true);
        let within = those(&self.calendars.only, true);
        let says = if !out.is_empty() {
            format!("left out: it is within {}", names::list(&out))
        } else if !within.is_empty() {
            format!("kept: it is within {}", names::list(&within))
        } else if !self.calendars.only.is_empty() {
            let outside = those(&self.calendars.only, false);
            format!("left out: it is not within {}", names::join(&outside, "or"))
        } else {
            let outside = those(&self.calendars.exclude, false);
            format!("kept: it is not within {}", names::join(&outside, "or"))
        };
        Some(Step::new("calendars", self.keeps(slot), says))
    }

    /// The slots before and after a moment that is none, or the end of a gap, which may well be one: it
    /// comes after every time within the gap.
    fn of_nearest(&self, moment: Timestamp, zone: &Zone) -> Option<Step> {
        let before = self.last_before(moment).map(|slot| slot.0);
        let after = self.next_after(moment.minus(MILLISECOND));
        let after = after.map(|slot| slot.0);
        let show_moment = |moment| format!("{} ({moment})", show_moment(moment, zone));
        let says = match (before, after) {
            (Some(before), Some(after)) => {
                format!(
                    "the slots next to it are {} and {}",
                    show_moment(before),
                    show_moment(after)
                )
            }
            (Some(before), None) => format!("the last slot before it is {}", show_moment(before)),
            (None, Some(after)) => format!("the first slot after it is {}", show_moment(after)),
            (None, None) => return None,
        };
        Some(Step::new("nearest", false, says))
    }

    /// The last slot before a moment: the last of those counted from further and further back.
    pub(super) fn last_before(&self, moment: Timestamp) -> Option<Slot> {
        let until = moment.minus(MILLISECOND);
        let days = [1, 40, 400, 4_000, 40_000, u64::from(u32::MAX)];
        days.into_iter().find_map(|days| {
            let from = moment.minus(Duration::from_secs(days * DAY as u64));
            let first = self.next_after(from).filter(|first| first.0 <= until)?;
            Some(self.stretch(first, until).last)
        })
    }
}

pub(super) const DAYLIGHT_SAVING: &str = "daylight_saving";

/// Where what is explained lies.
struct Place {
    moments: Vec<Timestamp>,
    local: i64,
    millis: i64,
    /// The change of the clocks that leaves the local time out.
    gap: Option<Shift>,
}

impl Place {
    fn of(point: &Point, zone: &Zone) -> Self {
        match point {
            Point::Moment(moment) => Self {
                moments: vec![*moment],
                local: local_of(*moment, zone),
                millis: moment.as_millis().rem_euclid(1_000),
                gap: None,
            },
            Point::Local(local) => {
                // Changes are more than four days apart, so two offsets are all there can be.
                let mut offsets = [-2, 2]
                    .map(|days| zone.offset_at(local + days * DAY))
                    .to_vec();
                offsets.dedup();
                let moments = offsets.into_iter().map(|offset| (local - offset, offset));
                let real = moments.filter(|(moment, offset)| zone.offset_at(*moment) == *offset);
                let mut moments: Vec<i64> = real.map(|(moment, _)| moment).collect();
                moments.sort_unstable();
                let gap = zone.shift_after(local - 2 * DAY);
                Self {
                    gap: gap.filter(|_| moments.is_empty()),
                    moments: moments.into_iter().map(seconds).collect(),
                    local: *local,
                    millis: 0,
                }
            }
        }
    }

    /// The moment to speak of: the first that is a slot, or the first.
    fn moment(&self, is_slot: impl Fn(Timestamp) -> bool) -> Option<Timestamp> {
        let mut slots = self.moments.iter().filter(|moment| is_slot(**moment));
        slots.next().or(self.moments.first()).copied()
    }

    fn step(&self, point: &Point, zone: &Zone) -> Step {
        let day = names::weekday(weekday(self.local.div_euclid(DAY)));
        let date = names::date(self.local);
        let local = format!("{} on {date}", names::clock(self.local));
        let says = match (point, self.moments.as_slice()) {
            (Point::Moment(moment), _) => format!("{moment} is {local}, a {day}, in {zone}"),
            (Point::Local(_), [moment]) => format!("{local}, a {day}, in {zone} is {moment}"),
            (Point::Local(_), [first, second, ..]) => {
                format!("{local} comes twice in {zone}: {first} and {second}")
            }
            (Point::Local(_), []) => match self.gap {
                Some(gap) => format!(
                    "{local} does not exist in {zone}: the clocks go from {} to {}",
                    clock_on(gap.local_before(), self.local),
                    clock_on(gap.local_after(), self.local)
                ),
                None => format!("{local} does not exist in {zone}"),
            },
        };
        Step::new("zone", !self.moments.is_empty(), says)
    }
}

fn of_every(every: &Every, moment: Timestamp) -> Vec<Step> {
    let Every { anchor, zone, .. } = every;
    let period = words::of_period(every.period);
    let start = show_moment(*anchor, zone);
    let (holds, says) = if moment < *anchor {
        (false, format!("counting begins later, at {start}"))
    } else if moment == *anchor {
        (true, format!("counting begins here, at {start}"))
    } else if every.after_completion {
        let says = format!("each slot is set by the end of a run, {period} after it");
        (false, says)
    } else {
        let count = every.count(*anchor, moment);
        let number = count.count.saturating_sub(1);
        match (every.period, count.last == Some(Slot(moment))) {
            (_, true) if number == 1 => (true, format!("it is {period} after {start}")),
            (_, true) => (true, format!("it is {number} times {period} after {start}")),
            (Period::Elapsed(_), false) => {
                let passed = words::of_duration(moment.since(*anchor));
                (
                    false,
                    format!("it is {passed} after {start}, no multiple of {period}"),
                )
            }
            (Period::Calendar { .. }, false) => {
                let says = format!("it is no multiple of {period} after {start}");
                (false, says)
            }
        }
    };
    let mut steps = vec![Step::new("schedule", holds, says)];
    steps.extend(of_every_change(every, moment));
    steps
}

/// What a change of the clocks means for an interval that keeps the time of day.
fn of_every_change(every: &Every, moment: Timestamp) -> Option<Step> {
    if matches!(every.period, Period::Elapsed(_)) || every.after_completion {
        return None;
    }
    let is_slot = |at: i64| {
        let at = Timestamp::from_millis(at * 1_000 + every.anchor.as_millis().rem_euclid(1_000));
        every.next_after(at.minus(MILLISECOND)) == Some(Slot(at))
    };
    let at = moment.as_millis().div_euclid(1_000);
    let local = local_of(moment, &every.zone);
    let step = |holds, says| Some(Step::new(DAYLIGHT_SAVING, holds, says));
    if let Some(shift) = every.zone.shift_until(at) {
        let missing = local_of(every.anchor, &every.zone).rem_euclid(DAY) + local / DAY * DAY;
        let moved = shift.at == at && shift.is_gap() && missing != local && is_slot(at);
        if moved {
            return step(true, made_up(missing, shift));
        }
        let first = at - (shift.before - shift.after);
        if shift.is_overlap() && first < shift.at && is_slot(first) {
            return step(false, second_time(local));
        }
    }
    let ahead = every.zone.shift_after(at)?;
    let repeated = ahead.is_overlap() && local >= ahead.local_after() && is_slot(at);
    repeated.then(|| step(true, first_time(local, false)))?
}

fn of_every_within(every: &Every, gap: Shift, local: i64) -> Vec<Step> {
    let end = seconds(gap.at);
    let same_time = (local - local_of(every.anchor, &every.zone)).rem_euclid(DAY) == 0;
    let slot = every.next_after(end.minus(MILLISECOND)).map(|slot| slot.0);
    let due = slot.is_some_and(|slot| slot.as_millis() / 1_000 == gap.at);
    let (start, period) = (
        show_moment(every.anchor, &every.zone),
        words::of_period(every.period),
    );
    let step = match every.period {
        Period::Calendar { .. } if same_time && due && !every.after_completion => {
            Step::new(DAYLIGHT_SAVING, true, made_up(local, gap))
        }
        Period::Calendar { .. } => {
            let says = format!("it is no multiple of {period} after {start}");
            Step::new("schedule", false, says)
        }
        Period::Elapsed(_) => {
            let says = format!("every {period} is counted in elapsed time: nothing is made up for");
            Step::new("schedule", false, says)
        }
    };
    vec![step]
}

pub(super) fn made_up(missing: i64, shift: Shift) -> String {
    format!(
        "{} on {} does not exist: what falls into the gap runs once at its end, {}",
        names::clock(missing),
        names::date(missing),
        clock_on(shift.local_after(), missing)
    )
}

pub(super) fn second_time(local: i64) -> String {
    let (clock, date) = (names::clock(local), names::date(local));
    format!(
        "{clock} comes twice on {date}, and this is the second time: it runs the first time only"
    )
}

pub(super) fn first_time(local: i64, both: bool) -> String {
    let (clock, date) = (names::clock(local), names::date(local));
    if both {
        format!("{clock} comes twice on {date}: it runs both times")
    } else {
        format!("{clock} comes twice on {date}, and this is the first time: it runs now only")
    }
}

/// "03:00", with its date if it is another than that of `near`.
fn clock_on(local: i64, near: i64) -> String {
    let clock = names::clock(local);
    if local.div_euclid(DAY) == near.div_euclid(DAY) {
        clock
    } else {
        format!("{clock} on {}", names::date(local))
    }
}

fn seconds(moment: i64) -> Timestamp {
    Timestamp::from_millis(moment.saturating_mul(1_000))
}

pub(super) fn local_of(moment: Timestamp, zone: &Zone) -> i64 {
    let seconds = moment.as_millis().div_euclid(1_000);
    seconds + zone.offset_at(seconds)
}

/// "09:00 on 31 January 2026".
pub(super) fn show_moment(moment: Timestamp, zone: &Zone) -> String {
    let local = local_of(moment, zone);
    format!("{} on {}", names::clock(local), names::date(local))
}

/// `2026-03-29T02:30:00`, with milliseconds if there are any.
fn iso(local: i64, millis: i64) -> String {
    let Date { year, month, day } = Date::from_days(local.div_euclid(DAY));
    let second = local.rem_euclid(DAY);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let fine = match millis {
        0 => String::new(),
        millis => format!(".{millis:03}"),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fine}")
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
