//! What calendars are made of, read from text and written as text: `2026-12-25`, `12-25`, `SAT-SUN`,
//! `MON-FRI 09:00-17:00`, `2026-12-24T18:00/2027-01-02`.

use std::fmt;

use super::civil::{DAY, Date, days_in_month};
use super::names;
use crate::limits;

/// Why a calendar was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CalendarError {
    #[error("a calendar's name has 1 to {max} letters, digits or any of . _ -", max = limits::NAME_MAX)]
    Name,
    #[error("{text:?} is not a date: write 2026-12-25")]
    Date { text: String },
    #[error("{text:?} is not a day of every year: write 12-25, month first")]
    Yearly { text: String },
    #[error("{text:?} is not a part of the week: write SAT, MON-FRI or \"MON-FRI 09:00-17:00\"")]
    Weekly { text: String },
    #[error(
        "{text:?} is not a range of dates: write 2026-12-24/2027-01-02 or 2026-12-24T18:00/2026-12-27T06:00"
    )]
    Range { text: String },
    #[error("{text:?} ends before it begins")]
    Backwards { text: String },
}

fn shown(text: &str) -> String {
    text.chars().take(64).collect()
}

/// Exactly so many digits.
fn number(text: &str, digits: usize) -> Option<u32> {
    let fits = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| fits)
}

/// One date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i64);

impl Day {
    pub fn parse(text: &str) -> Result<Self, CalendarError> {
        let read = || {
            let mut parts = text.splitn(3, '-');
            let year = number(parts.next()?, 4).filter(|year| (1970..=9998).contains(year))? as i32;
            let month = number(parts.next()?, 2).filter(|month| (1..=12).contains(month))?;
            let day = number(parts.next()?, 2)?;
            let fits = (1..=days_in_month(year, month)).contains(&day);
            fits.then(|| Self(Date::new(year, month, day).to_days()))
        };
        read().ok_or_else(|| CalendarError::Date { text: shown(text) })
    }

    pub(super) fn days(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Date { year, month, day } = Date::from_days(self.0);
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

/// A day of every year. The 29th of February comes in leap years only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Yearly {
    month: u32,
    day: u32,
}

impl Yearly {
    pub fn parse(text: &str) -> Result<Self, CalendarError> {
        let read = || {
            let (month, day) = text.split_once('-')?;
            let month = number(month, 2).filter(|month| (1..=12).contains(month))?;
            let day = number(day, 2)?;
            let fits = (1..=days_in_month(2_024, month)).contains(&day);
            fits.then_some(Self { month, day })
        };
        read().ok_or_else(|| CalendarError::Yearly { text: shown(text) })
    }

    /// Both count from 1.
    pub(super) fn month_and_day(self) -> (u32, u32) {
        (self.month, self.day)
    }
}

impl fmt::Display for Yearly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}-{:02}", self.month, self.day)
    }
}

/// Days of every week, whole or between two times of day. A window that ends at or before its start
/// goes on into the next day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Weekly {
    /// The first and the last day, Sunday being 0; the week goes round.
    first: u32,
    last: u32,
    /// Seconds of the day.
    window: Option<(i64, i64)>,
}

impl Weekly {
    pub fn parse(text: &str) -> Result<Self, CalendarError> {
        let read = || {
            let mut words = text.split_ascii_whitespace();
            let days = words.next()?;
            let (first, last) = days.split_once('-').unwrap_or((days, days));
            let window = match words.next() {
                None => None,
                Some(window) => Some(times(window)?),
            };
            let (first, last) = (names::weekday_number(first)?, names::weekday_number(last)?);
            words.next().is_none().then_some(Self {
                first,
                last,
                window,
            })
        };
        read().ok_or_else(|| CalendarError::Weekly { text: shown(text) })
    }

    fn is_on(self, weekday: u32) -> bool {
        let length = (self.last + 7 - self.first) % 7;
        (weekday + 7 - self.first) % 7 <= length
    }

    /// What it holds of a day, in seconds of that day.
    pub(super) fn windows(self, weekday: u32) -> impl Iterator<Item = (i64, i64)> {
        let today = self.is_on(weekday);
        let yesterday = self.is_on((weekday + 6) % 7);
        let (from, to) = self.window.unwrap_or((0, DAY));
        let wraps = to <= from;
        let begun = today.then_some((from, if wraps { DAY } else { to }));
        let carried = (yesterday && wraps && to > 0).then_some((0, to));
        begun.into_iter().chain(carried)
    }
}

/// `09:00-17:00`; 24:00 is the end of a day.
fn times(text: &str) -> Option<(i64, i64)> {
    let (from, to) = text.split_once('-')?;
    let time = |text: &str| {
        let (hour, minute) = text.split_once(':')?;
        let (hour, minute) = (number(hour, 2)?, number(minute, 2)?);
        let seconds = i64::from(hour) * 3_600 + i64::from(minute) * 60;
        (minute < 60 && seconds <= DAY).then_some(seconds)
    };
    let (from, to) = (time(from)?, time(to)?);
    (from < DAY && from != to).then_some((from, to))
}

struct Clock(i64);

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 3_600, self.0 / 60 % 60)
    }
}

impl fmt::Display for Weekly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(names::weekday_short(self.first))?;
        if self.last != self.first {
            write!(f, "-{}", names::weekday_short(self.last))?;
        }
        match self.window {
            None => Ok(()),
            Some((from, to)) => write!(f, " {}-{}", Clock(from), Clock(to)),
        }
    }
}

/// From one local time to another. A date alone means the whole of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DateRange {
    from: End,
    to: End,
}

/// One end of a range: a date, and a time of day if it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct End {
    day: Day,
    time: Option<i64>,
}

impl End {
    fn parse(text: &str) -> Option<Self> {
        let (day, time) = match text.split_once('T') {
            None => (text, None),
            Some((day, time)) => (day, Some(times(&format!("{time}-24:00"))?.0)),
        };
        Some(Self {
            day: Day::parse(day).ok()?,
            time,
        })
    }
}

impl DateRange {
    pub fn parse(text: &str) -> Result<Self, CalendarError> {
        let read = || {
            let (from, to) = text.split_once('/')?;
            Some(Self {
                from: End::parse(from)?,
                to: End::parse(to)?,
            })
        };
        let range = read().ok_or_else(|| CalendarError::Range { text: shown(text) })?;
        if range.end() > range.start() {
            Ok(range)
        } else {
            Err(CalendarError::Backwards { text: shown(text) })
        }
    }

    pub(super) fn start(self) -> i64 {
        self.from.day.0 * DAY + self.from.time.unwrap_or(0)
    }

    /// The first local time that is not within it.
    pub(super) fn end(self) -> i64 {
        self.to.day.0 * DAY + self.to.time.unwrap_or(DAY)
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.time {
            None => write!(f, "{}", self.day),
            Some(time) => write!(f, "{}T{}", self.day, Clock(time)),
        }
    }
}

impl fmt::Display for DateRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.from, self.to)
    }
}
