//! One field of a cron expression: from text to a set. Numbers, names, ranges, steps
//! and `H` are read here; what only the day fields know (`L`, `W`, `#`, `?`, `+`) in `day_field`.

use std::fmt;

use super::ScheduleError;
use super::cron::Dialect;
use super::names;
use super::rule::Years;
use crate::hash::hash;

/// A field of an expression, in the order of its seven fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    Second,
    Minute,
    Hour,
    Day,
    Month,
    Weekday,
    Year,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day of the month",
            Self::Month => "month",
            Self::Weekday => "day of the week",
            Self::Year => "year",
        })
    }
}

impl Field {
    /// The numbers that `*` stands for.
    pub(super) fn bounds(self) -> (u32, u32) {
        match self {
            Self::Second | Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::Day => (1, 31),
            Self::Month => (1, 12),
            Self::Weekday => (0, 6),
            Self::Year => (1970, 9_999),
        }
    }
}

/// What reading a field needs to know besides its text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader {
    pub(super) field: Field,
    pub(super) dialect: Dialect,
    /// The job's own number, for `H`.
    pub(super) hash: u64,
}

/// Numbers from a first to a last by a step; a last below the first wraps around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) step: u32,
}

impl Reader {
    pub(super) fn refuse(&self, text: &str, fix: &'static str) -> ScheduleError {
        ScheduleError::Unreadable {
            field: self.field,
            text: text.to_owned(),
            fix,
        }
    }

    /// Reads a whole field of numbers into a set.
    pub(super) fn set(&self, text: &str) -> Result<u64, ScheduleError> {
        let mut set = 0;
        for item in text.split(',') {
            set |= self.range(item)?.set(self.field.bounds());
        }
        Ok(set)
    }

    /// Reads one item of numbers: `*`, `5`, `5-9`, `H`, `H(0-29)`, each perhaps with a step.
    pub(super) fn range(&self, item: &str) -> Result<Range, ScheduleError> {
        let (base, step) = match item.split_once('/') {
            Some((base, step)) => (base, Some(self.step(item, step)?)),
            None => (item, None),
        };
        let (first, last) = self.field.bounds();
        if base == "*" {
            return Ok(Range {
                first,
                last,
                step: step.unwrap_or(1),
            });
        }
        if let Some(within) = base.strip_prefix(['H', 'h']) {
            return self.hashed(item, within, step);
        }
        match base.split_once('-') {
            Some((from, to)) => {
                let range = Range {
                    first: self.number(item, from)?,
                    last: self.number(item, to)?,
                    step: step.unwrap_or(1),
                };
                self.whole_week(range, item)
            }
            None => {
                let first = self.number(item, base)?;
                // A number with a step runs from there to the end; Sunday as 7 is its own end.
                let last = if step.is_some() {
                    last.max(first)
                } else {
                    first
                };
                Ok(Range {
                    first,
                    last,
                    step: step.unwrap_or(1),
                })
            }
        }
    }

    /// A week may start at 7 as well as at 0, and years do not come around again.
    fn whole_week(&self, range: Range, item: &str) -> Result<Range, ScheduleError> {
        match self.field {
            Field::Weekday if range.first == 7 && range.last < 7 => Ok(Range { first: 0, ..range }),
            Field::Year if range.first > range.last => {
                Err(self.refuse(item, "the first year is after the last"))
            }
            Field::Second
            | Field::Minute
            | Field::Hour
            | Field::Day
            | Field::Month
            | Field::Weekday
            | Field::Year => Ok(range),
        }
    }

    /// `H` is one number of the range, chosen by the job's hash and the field; with a step it is where the
    /// steps begin.
    fn hashed(&self, item: &str, within: &str, step: Option<u32>) -> Result<Range, ScheduleError> {
        let fix = "write H, H(0-29), H/15 or H(0-29)/10";
        let (first, last) = match (within, self.field) {
            (_, Field::Year) => return Err(self.refuse(item, "H cannot stand for a year")),
            // Every month has a 28th.
            ("", Field::Day) => (1, 28),
            ("", _) => self.field.bounds(),
            (within, _) => {
                let inner = within
                    .strip_prefix('(')
                    .and_then(|rest| rest.strip_suffix(')'));
                let (from, to) = inner
                    .and_then(|inner| inner.split_once('-'))
                    .ok_or_else(|| self.refuse(item, fix))?;
                (self.number(item, from)?, self.number(item, to)?)
            }
        };
        if first > last {
            return Err(self.refuse(item, "the first number of H(first-last) is after the last"));
        }
        let choices = (last - first + 1).min(step.unwrap_or(u32::MAX));
        let chosen = hash(self.hash, &[self.field as u64]) % u64::from(choices);
        let first = first + chosen as u32;
        Ok(Range {
            first,
            last: if step.is_some() { last } else { first },
            step: step.unwrap_or(1),
        })
    }

    fn step(&self, item: &str, text: &str) -> Result<u32, ScheduleError> {
        match digits(text) {
            Some(0) => Err(self.refuse(item, "a step is at least 1")),
            Some(step) => Ok(step),
            None => Err(self.refuse(item, "after / comes one number, the step")),
        }
    }

    /// Reads a number or a name; weekdays become 0 (Sunday) to 6, and 7 stays 7 in the Unix dialect.
    pub(super) fn number(&self, item: &str, text: &str) -> Result<u32, ScheduleError> {
        let (mut first, mut last) = self.field.bounds();
        let quartz_weekday = self.field == Field::Weekday && self.dialect == Dialect::Quartz;
        if quartz_weekday {
            first = 1;
        }
        if self.field == Field::Weekday {
            last = 7;
        }
        if let Some(value) = digits(text) {
            if !(first..=last).contains(&value) {
                return Err(ScheduleError::OutOfRange {
                    field: self.field,
                    value,
                    first,
                    last,
                });
            }
            return Ok(if quartz_weekday { value - 1 } else { value });
        }
        let named = match self.field {
            Field::Month => names::month_number(text),
            Field::Weekday => names::weekday_number(text),
            Field::Second | Field::Minute | Field::Hour | Field::Day | Field::Year => None,
        };
        named.ok_or_else(|| self.refuse(item, self.fix()))
    }

    /// What the field takes, said to someone who wrote something else.
    pub(super) fn fix(&self) -> &'static str {
        match self.field {
            Field::Second | Field::Minute | Field::Hour | Field::Year => {
                "write a number, a range such as 1-5, a list such as 1,3 or a step such as */5"
            }
            Field::Day => "write 1 to 31, L, L-3, LW or 15W, or lists of these",
            Field::Month => "write 1 to 12 or JAN to DEC",
            Field::Weekday => {
                "write a number or SUN to SAT, FRI#2 for the second or FRIL for the last Friday"
            }
        }
    }

    /// Reads the year field; an empty answer is every year.
    pub(super) fn years(&self, text: &str) -> Result<Vec<Years>, ScheduleError> {
        if text == "*" {
            return Ok(Vec::new());
        }
        let ranges = text.split(',').map(|item| self.range(item));
        ranges
            .map(|range| range.map(|Range { first, last, step }| Years { first, last, step }))
            .collect()
    }
}

impl Range {
    /// The numbers as a set, going around the end of the bounds if the range wraps.
    pub(super) fn set(self, (lowest, highest): (u32, u32)) -> u64 {
        let size = highest - lowest + 1;
        let wraps = self.last < self.first;
        let count = if wraps {
            self.last + size - self.first
        } else {
            self.last - self.first
        };
        let mut set = 0;
        let mut past = 0;
        while past <= count {
            let number = self.first + past;
            set |= 1_u64
                << if wraps && number > highest {
                    number - size
                } else {
                    number
                };
            past = past.saturating_add(self.step);
        }
        set
    }
}

/// A number of at most nine digits.
pub(super) fn digits(text: &str) -> Option<u32> {
    let fine = (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if fine { text.parse().ok() } else { None }
}
