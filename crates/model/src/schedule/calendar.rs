//! Calendars: named sets of local times, such as the holidays of a country or the hours of an office. A job
//! leaves out what its `exclude` calendars hold, and keeps to what its `only` calendars hold.
//!
//! What always holds: whether a moment is held is a pure function of calendar, zone and moment; the answer
//! comes with the moment until which it stays the same, so that nobody has to query slot by slot.

use std::fmt;
use std::sync::Arc;

use super::Zone;
pub use super::calendar_day::{CalendarError, DateRange, Day, Weekly, Yearly};
use super::compiled::Compiled;
use crate::job::Version;
use crate::limits;
use crate::time::{Slot, Timestamp};

/// No clock on a wall is further from UTC, in seconds: jiff refuses such an offset.
const OFFSET_MAX: i64 = 26 * 3_600;

/// A name that a tenant gives a calendar.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CalendarName(String);

impl CalendarName {
    /// A name stands in paths, in lists and on command lines, so its alphabet is small.
    pub fn new(text: &str) -> Result<Self, CalendarError> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if (1..=limits::NAME_MAX).contains(&text.len()) && text.bytes().all(fits) {
            Ok(Self(text.to_owned()))
        } else {
            Err(CalendarError::Name)
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CalendarName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A named set of local times: the union of its parts. These may be changed until it is queried for the first
/// time, and in a copy; never after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calendar {
    pub name: CalendarName,
    /// Counts its changes from 1.
    pub version: Version,
    pub updated_at: Timestamp,
    pub note: Option<String>,
    /// The zone its dates are meant in; none means that of the job.
    pub zone: Option<Zone>,
    pub dates: Vec<Day>,
    pub yearly: Vec<Yearly>,
    pub weekly: Vec<Weekly>,
    pub ranges: Vec<DateRange>,
    /// Open only so that `..Calendar::new(…)` can be written elsewhere.
    #[doc(hidden)]
    pub compiled: Compiled,
}

/// Whether a moment is held, and until when that stays so at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    inside: bool,
    /// A local time, in seconds.
    until: i64,
}

impl Calendar {
    /// A calendar that holds nothing yet.
    pub fn new(name: CalendarName, updated_at: Timestamp) -> Self {
        Self {
            name,
            version: Version::FIRST,
            updated_at,
            note: None,
            zone: None,
            dates: Vec::new(),
            yearly: Vec::new(),
            weekly: Vec::new(),
            ranges: Vec::new(),
            compiled: Compiled::default(),
        }
    }

    /// How many entries it has.
    pub fn len(&self) -> usize {
        self.dates.len() + self.yearly.len() + self.weekly.len() + self.ranges.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it holds the same times as another, whatever their names and versions.
    pub fn same_times(&self, other: &Self) -> bool {
        let parts = |it: &Self| {
            (
                it.zone.clone(),
                it.dates.clone(),
                it.yearly.clone(),
                it.weekly.clone(),
                it.ranges.clone(),
            )
        };
        parts(self) == parts(other)
    }

    /// The zone of its own whose rules move what it holds.
    pub fn zone_followed(&self) -> Option<&Zone> {
        self.zone.as_ref().filter(|zone| **zone != Zone::utc())
    }

    /// Whether it holds a moment, for a job whose schedule is meant in `zone`.
    pub fn holds(&self, moment: Timestamp, zone: &Zone) -> bool {
        let seconds = moment.as_millis().div_euclid(1_000);
        let zone = self.zone.as_ref().unwrap_or(zone);
        Compiled::of(self)
            .at(seconds + zone.offset_at(seconds))
            .inside
    }

    /// The same for a moment in seconds, with the moment until which the answer stays.
    fn held_at(&self, moment: i64, zone: &Zone) -> Held {
        let zone = self.zone.as_ref().unwrap_or(zone);
        let local = moment + zone.offset_at(moment);
        let around = Compiled::of(self).at(local);
        // Local time runs evenly up to the next change of the clocks, and no further.
        let even = moment.saturating_add(around.until.saturating_sub(local).max(1));
        let until = match zone.shift_after(moment) {
            Some(shift) => even.min(shift.at),
            None => even,
        };
        // Far from either end no change of the clocks matters.
        let begun = moment >= around.since.saturating_add(OFFSET_MAX);
        let sure = around.until.saturating_sub(OFFSET_MAX);
        Held {
            inside: around.inside,
            until: if begun { until.max(sure) } else { until },
        }
    }
}

/// The calendars that a job goes by.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Calendars {
    /// What any of these holds is left out.
    pub exclude: Vec<Arc<Calendar>>,
    /// What none of these holds is left out, if there are any.
    pub only: Vec<Arc<Calendar>>,
}

/// What calendars say about a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exclusion {
    /// Who leaves it out; nobody if it stays.
    pub by: Option<String>,
    /// Until then, itself not included, they say the same.
    pub until: Timestamp,
}

impl Calendars {
    pub fn is_empty(&self) -> bool {
        self.exclude.is_empty() && self.only.is_empty()
    }

    /// Every calendar named, each once.
    pub fn names(&self) -> std::collections::BTreeSet<&CalendarName> {
        let all = self.exclude.iter().chain(&self.only);
        all.map(|calendar| &calendar.name).collect()
    }

    /// When one of them changed last.
    pub fn changed_at(&self) -> Option<Timestamp> {
        let all = self.exclude.iter().chain(&self.only);
        all.map(|calendar| calendar.updated_at).max()
    }

    /// All their names, for people.
    pub fn named(&self) -> String {
        let names: Vec<&str> = self.names().into_iter().map(CalendarName::as_str).collect();
        names.join(", ")
    }

    /// What becomes of a slot of a schedule that is meant in `zone`.
    pub fn exclusion(&self, slot: Slot, zone: &Zone) -> Exclusion {
        #[cfg(test)]
        super::compiled::steps::count_lookup();
        let moment = slot.0.as_millis().div_euclid(1_000);
        let mut until = i64::MAX;
        for calendar in &self.exclude {
            let held = calendar.held_at(moment, zone);
            // Also those before it count: the first that holds a slot is the one to name.
            until = until.min(held.until);
            if held.inside {
                return Exclusion::new(Some(calendar.name.to_string()), until);
            }
        }
        let mut kept = self.only.is_empty();
        for calendar in &self.only {
            let held = calendar.held_at(moment, zone);
            kept |= held.inside;
            until = until.min(held.until);
        }
        let outside = || {
            let names: Vec<&str> = self.only.iter().map(|it| it.name.as_str()).collect();
            names.join(", ")
        };
        Exclusion::new((!kept).then(outside), until)
    }
}

impl Exclusion {
    fn new(by: Option<String>, until: i64) -> Self {
        Self {
            by,
            until: Timestamp::from_millis(until.saturating_mul(1_000)),
        }
    }
}

#[cfg(test)]
#[path = "calendar_tests.rs"]
mod tests;
