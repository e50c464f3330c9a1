//! Calendars as we answer them.

use serde::Serialize;
use store::CalendarUse;
use utoipa::ToSchema;

use super::job_out::moment;

/// A named set of local times, and what hangs on it.
#[derive(Debug, Serialize, ToSchema)]
pub struct Calendar {
    /// Its name, by which jobs know it.
    #[schema(example = "holidays")]
    pub name: String,
    /// What it is for.
    pub note: Option<String>,
    /// The zone its dates are meant in; none means that of the job.
    pub timezone: Option<String>,
    /// Whole days.
    #[schema(example = json!(["2026-12-25"]))]
    pub dates: Vec<String>,
    /// Whole days of every year, month first.
    #[schema(example = json!(["12-25"]))]
    pub yearly: Vec<String>,
    /// Days of every week, whole or between two times of day.
    #[schema(example = json!(["SAT-SUN", "MON-FRI 09:00-17:00"]))]
    pub weekly: Vec<String>,
    /// From one local time to another; a date alone means the whole of it.
    #[schema(example = json!(["2026-12-24/2027-01-02"]))]
    pub ranges: Vec<String>,
    /// Counts changes; what `If-Match` names.
    pub version: u32,
    /// When it was changed last.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// How many jobs name it.
    pub jobs: u64,
    /// Whether all of them go by it as it stands; a change takes a moment to reach them.
    pub applied: bool,
}

/// A page of calendars.
#[derive(Debug, Serialize, ToSchema)]
pub struct CalendarList {
    /// By name.
    pub items: Vec<Calendar>,
    /// Where the next page begins; none on the last.
    pub next_cursor: Option<String>,
}

impl Calendar {
    pub fn of(used: &CalendarUse) -> Self {
        let calendar = &used.calendar;
        Self {
            name: calendar.name.to_string(),
            note: calendar.note.clone(),
            timezone: calendar.zone.as_ref().map(|zone| zone.name().to_owned()),
            dates: texts(&calendar.dates),
            yearly: texts(&calendar.yearly),
            weekly: texts(&calendar.weekly),
            ranges: texts(&calendar.ranges),
            version: calendar.version.0,
            updated_at: moment(&calendar.updated_at),
            jobs: used.jobs,
            applied: used.applied,
        }
    }
}

fn texts(entries: &[impl ToString]) -> Vec<String> {
    entries.iter().map(ToString::to_string).collect()
}
