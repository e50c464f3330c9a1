//! The small requests: pausing, running by hand, looking ahead.

use model::limits;
use model::schedule::Bounds;

use super::job_in::payload;
use super::read::{self, Path, Read, Value};
use super::schedule_in::{bounds, calendars, given, options, schedule};
use crate::ops::runs::Asked;
use crate::ops::{CronDraft, Fault, FieldError, KindDraft, ScheduleDraft, preview};

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

/// A note may be a sentence or two.
const NOTE_MAX: usize = 1_024;
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

pub fn note(value: Value<'_>, path: Path<'_>) -> Read<String> {
    let text = value.text(path)?;
    let plain = |c: char| !c.is_control() || c == '\n' || c == '\t';
    if text.len() > NOTE_MAX || !text.chars().all(plain) {
        return Err(path.invalid(format!("a note has at most {NOTE_MAX} bytes of plain text")));
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

/// What a manual run, a replay or a retry may carry.
pub fn start(body: &[u8]) -> Read<Asked> {
    if body.is_empty() {
        return Ok(Asked::default());
    }
    let fields = read::document(body, &START_FIELDS)?;
    Ok(Asked {
        payload: fields.get("payload", payload)?,
        force: fields.get("force", Value::boolean)?.unwrap_or(false),
    })
}

pub fn preview(body: &[u8]) -> Read<preview::Asked> {
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
    let ScheduleDraft { kind, bounds: own } = schedule;
    let bounds = with_bounds(&kind, own, bounds(&fields)?)?;
    Ok(preview::Asked {
        schedule: ScheduleDraft {
            kind: with_options(kind, options(&fields)?)?,
            bounds,
        },
        exclude: fields.get("exclude", calendars)?.unwrap_or_default(),
        only: fields.get("only", calendars)?.unwrap_or_default(),
        from: fields.get("from", Value::moment)?,
        count: count.unwrap_or(COUNT_DEFAULT) as usize,
    })
}

/// Bounds beside the schedule are those of the schedule, unless it has them itself.
fn with_bounds(kind: &KindDraft, within: Bounds, beside: Bounds) -> Read<Bounds> {
    if !kind.repeats() {
        for (given, field) in given(&beside) {
            useless(given, field)?;
        }
    }
    Ok(Bounds {
        starts_at: one(within.starts_at, beside.starts_at, "starts_at")?,
        ends_at: one(within.ends_at, beside.ends_at, "ends_at")?,
        runs_max: one(within.runs_max, beside.runs_max, "runs_max")?,
    })
}

/// Options beside the schedule are those of the schedule, unless it has them itself.
fn with_options(kind: KindDraft, beside: CronDraft) -> Read<KindDraft> {
    match kind {
        KindDraft::Text(cron) => merge(cron, beside).map(KindDraft::Text),
        KindDraft::Cron(cron) => merge(cron, beside).map(KindDraft::Cron),
        KindDraft::Every(mut every) => {
            every.zone = one(every.zone, beside.zone.clone(), "timezone")?;
            none(&CronDraft {
                zone: None,
                ..beside
            })?;
            Ok(KindDraft::Every(every))
        }
        KindDraft::At(_) | KindDraft::In(_) => {
            none(&beside)?;
            Ok(kind)
        }
    }
}

fn merge(within: CronDraft, beside: CronDraft) -> Read<CronDraft> {
    Ok(CronDraft {
        texts: within.texts,
        zone: one(within.zone, beside.zone, "timezone")?,
        dialect: one(within.dialect, beside.dialect, "dialect")?,
        dst_gap: one(within.dst_gap, beside.dst_gap, "dst_gap")?,
        dst_overlap: one(within.dst_overlap, beside.dst_overlap, "dst_overlap")?,
    })
}

fn one<T>(within: Option<T>, beside: Option<T>, field: &str) -> Read<Option<T>> {
    match (within, beside) {
        (Some(_), Some(_)) => {
            let detail = format!("{field} is given twice, here and in the schedule");
            Err(FieldError::invalid(field, detail))
        }
        (within, beside) => Ok(within.or(beside)),
    }
}

/// Nothing may be said beside a schedule that has no use for it.
fn none(beside: &CronDraft) -> Read<()> {
    useless(beside.zone.is_some(), "timezone")?;
    useless(beside.dialect.is_some(), "dialect")?;
    useless(beside.dst_gap.is_some(), "dst_gap")?;
    useless(beside.dst_overlap.is_some(), "dst_overlap")
}

fn useless(given: bool, field: &str) -> Read<()> {
    if !given {
        return Ok(());
    }
    let detail = format!("{field} means nothing to such a schedule: leave it out");
    Err(FieldError::invalid(field, detail))
}
