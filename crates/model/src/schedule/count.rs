//! How many slots lie within a stretch of time, without walking from one to the next: a year of seconds is
//! thirty million of them. A schedule and two moments come in; the number and the last slot come out.
//!
//! What always holds: the answer is that of walking `next_after`. As there, time is taken in stretches of
//! one offset each, with what `walk` says of their beginnings; within a stretch the clock on the wall runs
//! evenly, so slots are counted in local time:
//!
//! ```text
//!   stretch ──▶ part of a day │ whole days, by month │ part of a day
//!                             └ the days of a month that the same rules name have equally many times
//! ```
//!
//! The work is bounded by the months, the changes of offset and the different unions of rules on a day,
//! never by the slots.

use std::collections::BTreeMap;

use super::civil::{DAY, Date, days_in_month};
#[cfg(test)]
use super::compiled::steps;
use super::days::bits;
use super::rule::Rule;
use super::zone::Shift;
use super::{Cron, DstGap, DstOverlap, Every, Period};
use crate::time::{Slot, Timestamp, millis};

/// The slots of a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    pub count: u64,
    /// The last of them.
    pub last: Option<Slot>,
}

impl Cron {
    /// How many slots lie within `first..=last`, and the last of them.
    pub fn count(&self, first: Timestamp, last: Timestamp) -> Count {
        // Slots are whole seconds; the end is the first second after the stretch.
        let first = first.as_millis().div_euclid(1_000)
            + i64::from(first.as_millis().rem_euclid(1_000) > 0);
        let end = last.as_millis().div_euclid(1_000) + 1;
        let mut tally = Tally::new(self.rules());
        let mut start = first;
        let mut entered = self.zone().shift_until(start);
        while start < end {
            let left = self.zone().shift_after(start);
            let until = left.map_or(end, |left| left.at.min(end));
            self.count_stretch(&mut tally, entered, start, until);
            (start, entered) = (until, left);
        }
        Count {
            count: tally.count,
            last: tally.last_moment().and_then(slot),
        }
    }

    /// Counts from `start` to before `until`, between which the offset is that of the change before them.
    fn count_stretch(&self, tally: &mut Tally<'_>, entered: Option<Shift>, start: i64, until: i64) {
        let offset = entered.map_or_else(|| self.zone().offset_at(start), |shift| shift.after);
        let (mut from, to) = (start + offset, until + offset);
        if let Some(shift) = entered {
            if shift.at == start && self.dst_gap() == DstGap::RunAfter && shift.is_gap() {
                tally.take_gap(shift);
            }
            if self.dst_overlap() == DstOverlap::First && shift.is_overlap() {
                // Fixed times of the repeated hour have run.
                let repeated = shift.local_before().clamp(from, to);
                tally.take(tally.elapsed, offset, from, repeated);
                from = repeated;
            }
        }
        tally.take(tally.all, offset, from, to);
    }
}

fn slot(moment: i64) -> Option<Slot> {
    Timestamp::checked(moment.checked_mul(1_000)?).map(Slot)
}

/// Some of the expressions: bit n for rule n.
type Rules = u32;

/// Where the last slot so far was counted.
#[derive(Clone, Copy)]
enum Last {
    Moment(i64),
    /// The last time before second `to` of a local day at which one of the rules is due.
    Within {
        day: i64,
        to: u32,
        rules: Rules,
        offset: i64,
    },
}

/// What has been counted, in local time.
struct Tally<'a> {
    rules: &'a [Rule],
    all: Rules,
    /// Those that follow elapsed time.
    elapsed: Rules,
    /// How many times of a whole day each union of rules names.
    sizes: BTreeMap<Rules, u64>,
    count: u64,
    last: Option<Last>,
}

impl<'a> Tally<'a> {
    fn new(rules: &'a [Rule]) -> Self {
        let which = |wanted: fn(&Rule) -> bool| -> Rules {
            let numbered = rules.iter().enumerate();
            numbered.fold(0, |set, (n, rule)| set | Rules::from(wanted(rule)) << n)
        };
        Self {
            rules,
            all: which(|_| true),
            elapsed: which(|rule| rule.elapsed),
            sizes: BTreeMap::new(),
            count: 0,
            last: None,
        }
    }

    /// Counts the local times from `from` to before `to` that some of the rules name.
    fn take(&mut self, rules: Rules, offset: i64, from: i64, to: i64) {
        if from >= to || rules == 0 {
            return;
        }
        let (first, last) = (from.div_euclid(DAY), to.div_euclid(DAY));
        let (from, to) = (second_of_day(from), second_of_day(to));
        if first == last {
            self.take_part(rules, offset, first, from, to);
            return;
        }
        self.take_part(rules, offset, first, from, DAY as u32);
        self.take_days(rules, offset, first + 1, last);
        self.take_part(rules, offset, last, 0, to);
    }

    /// Counts a part of one day.
    fn take_part(&mut self, rules: Rules, offset: i64, day: i64, from: u32, to: u32) {
        #[cfg(test)]
        steps::count_counted();
        let rules = self.on_day(rules, day);
        let count = self.times(rules, from, to);
        self.add(
            count,
            Last::Within {
                day,
                to,
                rules,
                offset,
            },
        );
    }

    /// Counts whole days, from `day` to before `end`.
    fn take_days(&mut self, rules: Rules, offset: i64, mut day: i64, end: i64) {
        while day < end {
            #[cfg(test)]
            steps::count_counted();
            let Date {
                year,
                month,
                day: of_month,
            } = Date::from_days(day);
            let before = day - i64::from(of_month);
            let next = before + 1 + i64::from(days_in_month(year, month));
            let until = (next.min(end) - before) as u32;
            let days = self.days_of(rules, year, month);
            let mut rest = ((1_u64 << until) - (1_u64 << of_month)) as u32;
            rest &= days.iter().fold(0, |any, (_, days)| any | days);
            // From the last day, so that the first group says where the last slot is.
            let mut place = None;
            while let Some(last) = rest.checked_ilog2() {
                let (rules, same) = alike(&days, rest, last);
                let count = self.size(rules) * u64::from(same.count_ones());
                place = place.or(Some(Last::Within {
                    day: before + i64::from(last),
                    to: DAY as u32,
                    rules,
                    offset,
                }));
                self.count += count;
                rest &= !same;
            }
            self.last = place.or(self.last);
            day = next;
        }
    }

    /// Counts the end of a gap, if it left fixed times out and is no slot anyway.
    fn take_gap(&mut self, shift: Shift) {
        let fixed = self.all & !self.elapsed;
        let missed = self.any_within(fixed, shift.local_before(), shift.local_after());
        let due = self.any_within(self.all, shift.local_after(), shift.local_after() + 1);
        self.add(u64::from(missed && !due), Last::Moment(shift.at));
    }

    fn add(&mut self, count: u64, place: Last) {
        if count > 0 {
            self.count += count;
            self.last = Some(place);
        }
    }

    /// Whether some of the rules name a local time of a short stretch.
    fn any_within(&self, rules: Rules, from: i64, to: i64) -> bool {
        (from.div_euclid(DAY)..=to.div_euclid(DAY)).any(|day| {
            let within = |local: i64| (local - day * DAY).clamp(0, DAY) as u32;
            let rules = self.on_day(rules, day);
            self.times(rules, within(from), within(to)) > 0
        })
    }

    /// Those of the rules that name a day.
    fn on_day(&self, rules: Rules, day: i64) -> Rules {
        let Date { year, month, day } = Date::from_days(day);
        alike(&self.days_of(rules, year, month), 0, day).0
    }

    /// The days of a month that each of the rules names; those that name none are left out.
    fn days_of(&self, rules: Rules, year: i32, month: u32) -> Vec<(Rules, u32)> {
        let numbered = self.numbered(rules);
        let named = numbered.map(|(rule, number)| (1 << number, days_of(rule, year, month)));
        named.filter(|(_, days)| *days != 0).collect()
    }

    fn numbered(&self, rules: Rules) -> impl Iterator<Item = (&'a Rule, u32)> {
        let all: &'a [Rule] = self.rules;
        bits(rules).filter_map(move |number| Some((all.get(number as usize)?, number)))
    }

    /// How many times of a whole day the rules name.
    fn size(&mut self, rules: Rules) -> u64 {
        if let Some(size) = self.sizes.get(&rules) {
            return *size;
        }
        let size = self.times(rules, 0, DAY as u32);
        self.sizes.insert(rules, size);
        size
    }

    /// How many times of a day the rules name from second `from` to before second `to`.
    fn times(&self, rules: Rules, from: u32, to: u32) -> u64 {
        let seconds = self.seconds(rules, from, to);
        seconds.map(|(_, set)| u64::from(set.count_ones())).sum()
    }

    /// For each minute of a part of a day, the seconds that one of the rules names.
    fn seconds(
        &self,
        rules: Rules,
        from: u32,
        to: u32,
    ) -> impl DoubleEndedIterator<Item = (u32, u64)> {
        let rules: Vec<&Rule> = self.numbered(rules).map(|(rule, _)| rule).collect();
        (from / 60..to.div_ceil(60)).map(move |minute| {
            let due = |rule: &&&Rule| {
                let hour = rule.hours >> (minute / 60) & 1 == 1;
                hour && rule.minutes >> (minute % 60) & 1 == 1
            };
            let set = rules.iter().filter(due);
            let set = set.fold(0, |set, rule| set | rule.seconds);
            let start = minute * 60;
            let before = (1_u64 << from.saturating_sub(start)) - 1;
            let until = (1_u64 << (to - start).min(60)) - 1;
            (minute, set & until & !before)
        })
    }

    fn last_moment(&self) -> Option<i64> {
        match self.last? {
            Last::Moment(moment) => Some(moment),
            Last::Within {
                day,
                to,
                rules,
                offset,
            } => {
                let minutes = self.seconds(rules, 0, to).rev();
                let mut last =
                    minutes.filter_map(|(minute, set)| Some((minute, set.checked_ilog2()?)));
                let (minute, second) = last.next()?;
                Some(day * DAY + i64::from(minute * 60 + second) - offset)
            }
        }
    }
}

fn second_of_day(local: i64) -> u32 {
    local.rem_euclid(DAY) as u32
}

/// The rules that name a day of a month, and those of the other days that the same rules name.
fn alike(days: &[(Rules, u32)], among: u32, day: u32) -> (Rules, u32) {
    let start = (0, among);
    days.iter().fold(start, |(rules, same), (rule, named)| {
        if named >> day & 1 == 1 {
            (rules | rule, same & named)
        } else {
            (rules, same & !named)
        }
    })
}

/// The days of a month that a rule names.
fn days_of(rule: &Rule, year: i32, month: u32) -> u32 {
    let in_year = rule.years.is_empty()
        || rule.years.iter().any(|years| {
            u32::try_from(year).is_ok_and(|year| {
                let within = (years.first..=years.last).contains(&year);
                within && (year - years.first).is_multiple_of(years.step.max(1))
            })
        });
    if in_year && rule.months >> month & 1 == 1 {
        rule.days.in_month(year, month)
    } else {
        0
    }
}

impl Every {
    /// How many slots lie within `first..=last`, and the last of them.
    pub fn count(&self, first: Timestamp, last: Timestamp) -> Count {
        let first = first.max(self.anchor);
        if last < first {
            return Count::default();
        }
        match self.period {
            Period::Elapsed(span) => {
                let step = millis(span).max(1);
                let passed = |moment: Timestamp| moment.as_millis() - self.anchor.as_millis();
                // Slots 0 to `end`, less those before `first`: rounding up keeps one that lies on it.
                let end = passed(last) / step;
                let before = (passed(first) + step - 1) / step;
                let count = (end + 1 - before).max(0) as u64;
                let slot = Slot(Timestamp::from_millis(self.anchor.as_millis() + end * step));
                Count {
                    count,
                    last: (count > 0).then_some(slot),
                }
            }
            Period::Calendar { .. } => self.count_dates(first, last),
        }
    }

    /// Walks from date to date, which are a day apart or more; `first` is not before the anchor.
    fn count_dates(&self, first: Timestamp, last: Timestamp) -> Count {
        let start = if first == self.anchor {
            Some(Slot(first))
        } else {
            self.next_after(Timestamp::from_millis(first.as_millis() - 1))
        };
        let slots = std::iter::successors(start, |slot| self.next_after(slot.0));
        let within = slots.take_while(|slot| slot.0 <= last);
        within.fold(Count::default(), |known, slot| Count {
            count: known.count + 1,
            last: Some(slot),
        })
    }
}

#[cfg(test)]
#[path = "count_tests.rs"]
mod tests;
