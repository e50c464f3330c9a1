//! When a job is due. Pure: a schedule and a moment come in, the next slot comes out; nothing here reads a
//! clock, and the time zone tables are those of the binary.
//!
//! What always holds: `next_after` answers a slot strictly later than its argument, with bounded work and
//! without allocating; the same schedule, moment and tables give the same slot on every node.
//!
//! In reading order: `civil` (dates as numbers), `zone`, `span` (durations), `every`; then cron: `expression`
//! (its fields), `field` and `day_field` (text to sets), `days` (sets to days of a month), `rule` (the search in
//! local time), `walk` (through daylight saving), `cron` (the whole); then what narrows a schedule: `bounds`, and
//! `calendar` (of `calendar_day`s, searched as `compiled`) with what it leaves (`kept`); last, for people, `words` (with `times` and `names`),
//! `notes` and `explain` (with `explain_rule`).

use std::sync::Arc;
use std::time::Duration;

use crate::run::Stretch;
use crate::time::{Slot, Timestamp};

mod bounds;
mod calendar;
mod calendar_day;
mod civil;
mod compiled;
mod count;
mod cron;
mod day_field;
mod days;
mod error;
mod every;
mod explain;
mod explain_rule;
mod expression;
mod field;
mod kept;
mod names;
mod notes;
#[cfg(feature = "tables")]
pub mod other_tables;
mod rule;
mod span;
mod times;
mod walk;
mod words;
mod zone;

pub use bounds::Bounds;
pub use calendar::{
    Calendar, CalendarError, CalendarName, Calendars, DateRange, Day, Exclusion, Weekly, Yearly,
};
pub use count::Count;
pub use cron::{
    Cron, CronOptions, Dialect, DstGap, DstOverlap, EXPRESSION_BYTES_MAX, EXPRESSIONS_MAX,
    names_zone,
};
pub use error::ScheduleError;
pub use every::{Every, Period};
pub use explain::{Explanation, Point, Step};
pub use field::Field;
pub use kept::{Found, LeftOut};
pub use span::{SpanError, format_span, parse_span};
pub use zone::{Local, Zone, tzdb_version};

/// When a job is due: what repeats, from when to when, and the days it leaves out.
///
/// Its slots are those of `kind` within `bounds`. Calendars take no slot away: one that they exclude
/// is still a slot, and is decided as skipped.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    pub kind: Kind,
    pub bounds: Bounds,
    pub calendars: Calendars,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Cron(Cron),
    Every(Every),
    Once(Slot),
    /// It was accepted once and cannot be read any more: its zone or calendar is gone.
    Broken(Arc<Broken>),
}

/// A schedule that cannot be read any more, as it was stored, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub stored: String,
    pub error: String,
    /// Whether it was more than a one-off.
    pub recurring: bool,
}

impl From<Kind> for Schedule {
    fn from(kind: Kind) -> Self {
        Self {
            kind,
            bounds: Bounds::default(),
            calendars: Calendars::default(),
        }
    }
}

impl From<Cron> for Schedule {
    fn from(cron: Cron) -> Self {
        Kind::Cron(cron).into()
    }
}

impl From<Every> for Schedule {
    fn from(every: Every) -> Self {
        Kind::Every(every).into()
    }
}

impl From<Slot> for Schedule {
    fn from(slot: Slot) -> Self {
        Kind::Once(slot).into()
    }
}

impl Schedule {
    /// Reads a bare string as the API's short form does: a cron expression, a macro, or `@every 90s`, whose
    /// slots are counted from `anchor`.
    pub fn parse_text(
        text: &str,
        options: CronOptions,
        anchor: Timestamp,
    ) -> Result<Self, ScheduleError> {
        cron::check_length(text)?;
        let (prefix, rest) = cron::split_zone(text.trim())?;
        let Some(period) = strip_every(rest) else {
            return Cron::parse(&[text.to_owned()], options).map(Self::from);
        };
        let zone = cron::one_zone(prefix, options.zone)?;
        Every::parse(period, anchor, zone).map(Self::from)
    }

    /// The first slot strictly after a moment, whatever the calendars say of it.
    pub fn next_after(&self, after: Timestamp) -> Option<Slot> {
        #[cfg(test)]
        compiled::steps::count_walked();
        let enter = self.bounds.enter(after);
        let next = match &self.kind {
            Kind::Cron(cron) => cron.next_after(enter),
            // A period after the end of a run; the start is no such end, so it only holds it back.
            Kind::Every(every) if every.after_completion => {
                every.next_after(after).map(|slot| self.bounds.hold(slot))
            }
            Kind::Every(every) => every.next_after(enter),
            Kind::Once(slot) => (slot.0 > enter).then_some(*slot),
            Kind::Broken(_) => None,
        };
        next.filter(|slot| self.bounds.holds(*slot))
    }

    /// The slots from `first`, which is one, up to `until`: counted, not walked.
    pub fn stretch(&self, first: Slot, until: Timestamp) -> Stretch {
        let until = self.bounds.ends_at.map_or(until, |end| end.min(until));
        let counted = match &self.kind {
            Kind::Cron(cron) => cron.count(first.0, until),
            Kind::Every(every) if !every.after_completion => every.count(first.0, until),
            // Nothing follows a slot whose run sets the next.
            Kind::Every(_) => return Stretch::one(first),
            Kind::Once(_) | Kind::Broken(_) => return Stretch::one(first),
        };
        Stretch {
            first,
            last: counted.last.unwrap_or(first).max(first),
            count: counted.count.max(1),
        }
    }

    /// The zone its times are meant in.
    pub fn zone(&self) -> Zone {
        match &self.kind {
            Kind::Cron(cron) => cron.zone().clone(),
            Kind::Every(every) => every.zone.clone(),
            Kind::Once(_) | Kind::Broken(_) => Zone::utc(),
        }
    }

    /// The zone whose rules move its slots; none where no change of the clocks can.
    pub fn zone_followed(&self) -> Option<&Zone> {
        let zone = match &self.kind {
            Kind::Cron(cron) => cron.zone(),
            Kind::Every(Every {
                period: Period::Calendar { .. },
                zone,
                ..
            }) => zone,
            // Elapsed time does not follow the clocks on the wall, but its calendars do.
            Kind::Every(every) if !self.calendars.is_empty() => &every.zone,
            Kind::Every(_) | Kind::Once(_) | Kind::Broken(_) => return None,
        };
        (*zone != Zone::utc()).then_some(zone)
    }

    pub fn is_recurring(&self) -> bool {
        match self.kind {
            Kind::Cron(_) | Kind::Every(_) => true,
            Kind::Once(_) => false,
            Kind::Broken(ref broken) => broken.recurring,
        }
    }

    /// Whether the end of a run sets the next slot.
    pub fn after_completion(&self) -> bool {
        matches!(&self.kind, Kind::Every(every) if every.after_completion)
    }

    /// The shortest time between two slots, by the clock on the wall: a change of offset can bring two
    /// slots closer by as much as the clocks move. Nothing for `Once`, and for a cron with one slot only.
    pub fn shortest_period(&self) -> Option<Duration> {
        match &self.kind {
            Kind::Cron(cron) => cron.shortest_period(),
            Kind::Every(every) => Some(every.period.shortest()),
            Kind::Once(_) | Kind::Broken(_) => None,
        }
    }

    /// The schedule in words, such as "at 09:00 on Monday to Friday, Europe/Berlin".
    pub fn words(&self) -> String {
        words::of(self)
    }

    /// What its author may not expect, looking ahead from a moment.
    pub fn notes(&self, from: Timestamp) -> Vec<String> {
        notes::of(self, from)
    }
}

fn strip_every(text: &str) -> Option<&str> {
    let (head, rest) = text.split_at_checked("@every".len())?;
    let separated = rest.is_empty() || rest.starts_with([' ', '\t']);
    (head.eq_ignore_ascii_case("@every") && separated).then(|| rest.trim())
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;

// Each of these compares the whole with something else: a slow walk, two other crates, arbitrary bytes.
#[cfg(test)]
mod differential_tests;
#[cfg(test)]
mod dst_tests;
#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod reference_tests;
#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod suites_tests;
