//! Intervals: slots at an anchor and every period after it. Elapsed periods (`PT15M`, `90s`, `1d`) count
//! seconds; calendar periods (`P1D`, `P1M`) keep the time of day in the zone, and months that are too
//! short give their last day without moving the slots after it.

use std::time::Duration;

use super::civil::{DAY, Date, days_in_month};
use super::span::{IsoSpan, format_span, is_iso, parse_iso, parse_span};
use super::{ScheduleError, Zone};
use crate::time::{Slot, Timestamp, millis};

const ELAPSED_MIN: Duration = Duration::from_secs(1);
const YEARS_MAX: u32 = 100;

/// An interval, counted from its anchor, which is slot 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Every {
    pub period: Period,
    pub anchor: Timestamp,
    pub zone: Zone,
    /// A slot is a period after the last run's end, not after the last slot.
    pub after_completion: bool,
}

/// How far apart slots are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    /// Elapsed time, whatever the clocks on the wall do.
    Elapsed(Duration),
    /// Calendar time in the zone; slot n is n times the months and then n times the days after the anchor.
    Calendar { months: u32, days: u32 },
}

impl Period {
    /// Reads `90s` or `PT15M` as elapsed time, `P1D` or `P1M` as calendar time.
    pub fn parse(text: &str) -> Result<Self, ScheduleError> {
        let text = text.trim();
        if !is_iso(text) {
            return Self::Elapsed(parse_span(text)?).checked();
        }
        match parse_iso(text)? {
            IsoSpan {
                months: 0,
                days: 0,
                millis,
            } => Self::Elapsed(Duration::from_millis(millis)).checked(),
            IsoSpan {
                months,
                days,
                millis: 0,
            } => Self::Calendar { months, days }.checked(),
            IsoSpan { .. } => Err(ScheduleError::MixedUnits {
                text: text.chars().take(64).collect(),
            }),
        }
    }

    /// The period, if it is neither too short nor too long.
    pub fn checked(self) -> Result<Self, ScheduleError> {
        let fine = match self {
            Self::Elapsed(span) => {
                let whole = span.subsec_nanos().is_multiple_of(1_000_000);
                (ELAPSED_MIN..=Duration::from_secs(36_525 * 86_400)).contains(&span) && whole
            }
            Self::Calendar { months, days } => {
                let length = u64::from(months) * 30 + u64::from(days);
                length > 0 && months <= YEARS_MAX * 12 && length <= 36_525
            }
        };
        if fine {
            Ok(self)
        } else {
            Err(ScheduleError::Period { text: self.text() })
        }
    }

    /// The text that reads back as this period.
    pub fn text(self) -> String {
        match self {
            Self::Elapsed(span) => format_span(span),
            Self::Calendar { months, days } => {
                let part = |number: u32, unit: &str| match number {
                    0 => String::new(),
                    number => format!("{number}{unit}"),
                };
                let (years, months) = (months / 12, months % 12);
                let days = match (years, months, days) {
                    (0, 0, 0) => "0D".to_owned(),
                    // Weeks only when they say it all.
                    (0, 0, days) if days.is_multiple_of(7) => part(days / 7, "W"),
                    (_, _, days) => part(days, "D"),
                };
                format!("P{}{}{days}", part(years, "Y"), part(months, "M"))
            }
        }
    }

    /// The shortest it can be; February for a month.
    pub(super) fn shortest(self) -> Duration {
        match self {
            Self::Elapsed(span) => span,
            Self::Calendar { months, days } => {
                // Whole years lose only their leap days, other months at most three days each.
                let years = u64::from(months / 12) * 365;
                let total = years + u64::from(months % 12) * 28 + u64::from(days);
                Duration::from_secs(total * DAY as u64)
            }
        }
    }
}

impl Every {
    pub fn new(period: Period, anchor: Timestamp, zone: Zone) -> Result<Self, ScheduleError> {
        Ok(Self {
            period: period.checked()?,
            anchor,
            zone,
            after_completion: false,
        })
    }

    /// The same, counted from the end of each run.
    pub fn after_completion(self) -> Self {
        Self {
            after_completion: true,
            ..self
        }
    }

    /// Reads the period as [`Period::parse`] does.
    pub fn parse(text: &str, anchor: Timestamp, zone: Zone) -> Result<Self, ScheduleError> {
        Self::new(Period::parse(text)?, anchor, zone)
    }

    /// The first slot strictly after a moment.
    pub fn next_after(&self, after: Timestamp) -> Option<Slot> {
        if after < self.anchor {
            return Some(Slot(self.anchor));
        }
        if self.after_completion {
            return self.counted_from(after).next_after(after);
        }
        match self.period {
            Period::Elapsed(span) => {
                let step = millis(span).max(1);
                let passed = (after.as_millis() - self.anchor.as_millis()) / step;
                let next = (passed + 1)
                    .checked_mul(step)?
                    .checked_add(self.anchor.as_millis())?;
                Timestamp::checked(next).map(Slot)
            }
            Period::Calendar { months, days } => self.next_date(months, days, after),
        }
    }

    /// The same period from another anchor.
    fn counted_from(&self, anchor: Timestamp) -> Self {
        Self {
            anchor,
            after_completion: false,
            ..self.clone()
        }
    }

    fn next_date(&self, months: u32, days: u32, after: Timestamp) -> Option<Slot> {
        let anchor = self.local_anchor();
        let after_s = after.as_millis().div_euclid(1_000);
        let passed = (after_s + self.zone.offset_at(after_s) - anchor)
            .div_euclid(DAY)
            .max(0);
        // Slot numbers between which the answer lies: a month has 28 to 31 days, and zones shift by a day.
        let (months, days) = (i64::from(months), i64::from(days));
        let mut low = ((passed - 2) / (months * 31 + days).max(1)).max(1);
        let mut high = (passed + 2) / (months * 28 + days).max(1) + 2;
        while low < high {
            let middle = low + (high - low) / 2;
            match self.slot(middle, months, days) {
                Some(slot) if slot.0 <= after => low = middle + 1,
                Some(_) | None => high = middle,
            }
        }
        self.slot(low, months, days).filter(|slot| slot.0 > after)
    }

    /// The anchor as the clock on the wall showed it, in seconds.
    fn local_anchor(&self) -> i64 {
        let anchor = self.anchor.as_millis().div_euclid(1_000);
        anchor + self.zone.offset_at(anchor)
    }

    /// Slot number n, if it lies before the end of time.
    fn slot(&self, n: i64, months: i64, days: i64) -> Option<Slot> {
        let local = self.local_anchor();
        let date = Date::from_days(local.div_euclid(DAY));
        let month = i64::from(date.year) * 12 + i64::from(date.month) - 1 + n * months;
        let year = i32::try_from(month.div_euclid(12))
            .ok()
            .filter(|year| *year <= 10_000)?;
        let month = month.rem_euclid(12) as u32 + 1;
        let day = date.day.min(days_in_month(year, month));
        let days = Date::new(year, month, day).to_days() + n * days;
        let local_s = days * DAY + local.rem_euclid(DAY);
        let moment =
            self.zone.moment_of(local_s) * 1_000 + self.anchor.as_millis().rem_euclid(1_000);
        Timestamp::checked(moment).map(Slot)
    }
}

#[cfg(test)]
#[path = "every_tests.rs"]
mod tests;
