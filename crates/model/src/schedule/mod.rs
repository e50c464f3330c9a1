//! When a job is due. Pure: a schedule and a moment come in, the next slot comes out; nothing here reads a
//! clock, and the time zone tables are those of the binary.
//!
//! What always holds: `next_after` answers a slot strictly later than it was asked, with bounded work and
//! without allocating; the same schedule, moment and tables give the same slot on every node.
//!
//! In reading order: `civil` (dates as numbers), `zone`, `span` (durations), `every`; then cron: `expression`
//! (its fields), `field` and `day_field` (text to sets), `days` (sets to days of a month), `rule` (the search in
//! local time), `walk` (through daylight saving), `cron` (the whole); last, for people, `words` (with `times`
//! and `names`) and `notes`.

use std::time::Duration;

use crate::time::{Slot, Timestamp};

mod civil;
mod cron;
mod day_field;
mod days;
mod error;
mod every;
mod expression;
mod field;
mod names;
mod notes;
mod rule;
mod span;
mod times;
mod walk;
mod words;
mod zone;

pub use cron::{
    Cron, CronOptions, Dialect, DstGap, DstOverlap, EXPRESSION_BYTES_MAX, EXPRESSIONS_MAX,
};
pub use error::ScheduleError;
pub use every::{Every, Period};
pub use field::Field;
pub use span::{SpanError, format_span, parse_span};
pub use zone::{Zone, tzdb_version};

/// When a job is due.
#[derive(Debug, Clone, PartialEq)]
pub enum Schedule {
    Cron(Cron),
    Every(Every),
    Once(Slot),
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
            return Cron::parse(&[text.to_owned()], options).map(Self::Cron);
        };
        let zone = cron::one_zone(prefix, options.zone)?;
        Every::parse(period, anchor, zone).map(Self::Every)
    }

    /// The first slot strictly after a moment.
    pub fn next_after(&self, after: Timestamp) -> Option<Slot> {
        match self {
            Self::Cron(cron) => cron.next_after(after),
            Self::Every(every) => every.next_after(after),
            Self::Once(slot) => (slot.0 > after).then_some(*slot),
        }
    }

    pub fn is_recurring(&self) -> bool {
        match self {
            Self::Cron(_) | Self::Every(_) => true,
            Self::Once(_) => false,
        }
    }

    /// The shortest time between two slots, by the clock on the wall: a change of offset can bring two
    /// slots closer by as much as the clocks move. Nothing for `Once`, and for a cron with one slot only.
    pub fn shortest_period(&self) -> Option<Duration> {
        match self {
            Self::Cron(cron) => cron.shortest_period(),
            Self::Every(every) => Some(every.period.shortest()),
            Self::Once(_) => None,
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
