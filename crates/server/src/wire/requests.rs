//! The small requests: pausing, running by hand, looking ahead.

use model::limits;

use super::job_in::payload;
use super::read::{self, Path, Read, Value};
use super::schedule_in::{beside, calendars, schedule};
use crate::ops::runs::StartRequest;
use crate::ops::{Fault, FieldError, Patch, ScheduleDraft, preview};

pub const PAUSE_FIELDS: [&str; 1] = ["note"];
pub const START_FIELDS: [&str; 2] = ["payload", "force"];
pub const RESUME_FIELDS: [&str; 1] = ["catch_up"];
pub const PREVIEW_FIELDS: [&str; 12] = [
    "schedule",
    "starts_at",
    "ends_at",
    "runs_max",
    "exclude",
    "only",
    "from",
    "count",
    "timezone",
    "dialect",
    "dst_gap",
    "dst_overlap",
];

const COUNT_DEFAULT: i64 = 10;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct PauseRequest {
    pub note: Option<String>,
}

pub fn pause(body: &[u8]) -> Read<PauseRequest> {
    if body.is_empty() {
        return Ok(PauseRequest::default());
    }
    let fields = read::document(body, &PAUSE_FIELDS)?;
    Ok(PauseRequest {
        note: fields.get("note", note)?,
    })
}

pub(super) fn note(value: Value<'_>, path: Path<'_>) -> Read<String> {
    let text = value.text(path)?;
    let plain = |c: char| !c.is_control() || c == '\n' || c == '\t';
    if text.len() > limits::NOTE_MAX || !text.chars().all(plain) {
        let max = limits::NOTE_MAX;
        return Err(path.invalid(format!("a note has at most {max} bytes of plain text")));
    }
    Ok(text.into_owned())
}

/// Whether what passed while the job was paused is to be caught up with.
pub fn resume(body: &[u8]) -> Read<bool> {
    if body.is_empty() {
        return Ok(false);
    }
    let fields = read::document(body, &RESUME_FIELDS)?;
    Ok(fields.get("catch_up", Value::boolean)?.unwrap_or(false))
}

/// A request that has nothing to say: no body, or an object with nothing in it.
pub fn nothing(body: &[u8]) -> Read<()> {
    if body.is_empty() {
        return Ok(());
    }
    read::document(body, &[]).map(|_| ())
}

/// What a manual run or a replay may carry.
pub fn start(body: &[u8]) -> Read<StartRequest> {
    if body.is_empty() {
        return Ok(StartRequest::default());
    }
    let fields = read::document(body, &START_FIELDS)?;
    Ok(StartRequest {
        payload: fields.get("payload", payload)?,
        force: fields.get("force", Value::boolean)?.unwrap_or(false),
        trace: None,
    })
}

pub fn preview(body: &[u8]) -> Read<preview::PreviewRequest> {
    let fields = read::document(body, &PREVIEW_FIELDS)?;
    let schedule = fields.get("schedule", schedule)?.ok_or_else(|| {
        FieldError::new(
            Fault::Missing,
            "schedule",
            "schedule is missing: write \"@daily\"",
        )
    })?;
    let most = limits::PREVIEW_MAX as i64;
    let count = fields.get("count", |value, path| value.integer(path, 1, most))?;
    Ok(preview::PreviewRequest {
        schedule: merge(schedule, beside(&fields)?)?,
        exclude: fields.get("exclude", calendars)?.unwrap_or_default(),
        only: fields.get("only", calendars)?.unwrap_or_default(),
        from: fields.get("from", Value::moment)?,
        count: count.unwrap_or(COUNT_DEFAULT) as usize,
    })
}

/// What stands beside the schedule is the schedule's, unless it has it itself.
fn merge(within: ScheduleDraft, beside: ScheduleDraft) -> Read<ScheduleDraft> {
    let misfit = within.kind.as_ref().and_then(|kind| beside.misfit(kind));
    if let Some((field, _)) = misfit {
        let detail = format!("{field} means nothing to such a schedule: leave it out");
        return Err(FieldError::invalid(field, detail));
    }
    Ok(ScheduleDraft {
        zone: one(within.zone, beside.zone, "timezone")?,
        dialect: one(within.dialect, beside.dialect, "dialect")?,
        dst_gap: one(within.dst_gap, beside.dst_gap, "dst_gap")?,
        dst_overlap: one(within.dst_overlap, beside.dst_overlap, "dst_overlap")?,
        starts_at: one(within.starts_at, beside.starts_at, "starts_at")?,
        ends_at: one(within.ends_at, beside.ends_at, "ends_at")?,
        runs_max: one(within.runs_max, beside.runs_max, "runs_max")?,
        ..within
    })
}

fn one<T>(within: Patch<T>, beside: Patch<T>, field: &str) -> Read<Patch<T>> {
    if within.given().is_some() && beside.given().is_some() {
        let detail = format!("{field} is given twice, here and in the schedule");
        return Err(FieldError::invalid(field, detail));
    }
    Ok(within.or_keep(|| beside.into_given()))
}
