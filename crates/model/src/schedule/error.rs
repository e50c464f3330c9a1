//! What can be wrong with a schedule, said so that its author can put it right.

use super::field::Field;
use super::span::SpanError;

/// Why a schedule was refused. Quoted parts are at most as long as an expression may be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    #[error(
        "the expression is empty: write five fields such as \"0 9 * * MON-FRI\", or a macro such as @daily"
    )]
    Empty,
    #[error("the expression is {length} bytes long: at most {max} are read")]
    TooLong { length: usize, max: usize },
    #[error("{count} expressions are given: a schedule has 1 to {max}")]
    Count { count: usize, max: usize },
    #[error(
        "{count} fields are given: write 5 (minute hour day month weekday), 6 (seconds first) or 7 (year last)"
    )]
    FieldCount { count: usize },
    #[error(
        "{count} fields are given: Quartz has 6 (second minute hour day month weekday) or 7 (year last)"
    )]
    QuartzFieldCount { count: usize },
    #[error("{field} {value} is out of range {first}-{last}")]
    OutOfRange {
        field: Field,
        value: u32,
        first: u32,
        last: u32,
    },
    #[error("{field} {text:?} cannot be read: {fix}")]
    Unreadable {
        field: Field,
        text: String,
        fix: &'static str,
    },
    #[error(
        "six fields are read with seconds first, and then {problem}; if the last one is meant as a year, write all seven: \"0 {text}\""
    )]
    SixthField {
        text: String,
        problem: Box<ScheduleError>,
    },
    #[error("exactly one of day of the month and day of the week must be ? in the Quartz dialect")]
    QuartzQuestion,
    #[error("{text:?} never matches: there is no such date or time")]
    Never { text: String },
    #[error("@reboot names the start of a machine, not a moment: use a one-off job, or @every")]
    Reboot,
    #[error(
        "@every is an interval, not a cron expression: give it as the schedule itself, or write {{\"every\": \"90s\"}}"
    )]
    EveryInCron,
    #[error(
        "{text:?} is not a known macro: use @yearly, @monthly, @weekly, @daily, @hourly, @minutely or @every 90s"
    )]
    Macro { text: String },
    #[error("time zone {name:?} is not known: use an IANA name such as Europe/Berlin")]
    ZoneUnknown { name: String },
    #[error("the expression says {prefix} and the schedule says {given}: give the time zone once")]
    ZoneConflict { prefix: String, given: String },
    #[error("only some of the expressions name a time zone: give it once, for the schedule")]
    ZoneMixed,
    #[error(transparent)]
    Span(#[from] SpanError),
    #[error("an interval of {text} is out of range: it lasts at least 1s and at most 100 years")]
    Period { text: String },
    #[error(
        "the interval {text:?} mixes calendar units and hours: use P… for calendar time or PT… for elapsed time"
    )]
    MixedUnits { text: String },
}
