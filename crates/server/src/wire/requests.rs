//! The small requests: pausing, running by hand, looking ahead.

use model::{Timestamp, limits};

use super::job_in::payload;
use super::read::{self, Path, Read, Value};
use super::schedule_in::{options, schedule};
use crate::ops::runs::Asked;
use crate::ops::{CronDraft, Fault, FieldError, ScheduleDraft};

pub const PAUSE_FIELDS: [&str; 1] = ["note"];
pub const START_FIELDS: [&str; 2] = ["payload", "force"];
pub const PREVIEW_FIELDS: [&str; 7] = [
    "schedule",
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

fn note(value: Value<'_>, path: Path<'_>) -> Read<String> {
    let text = value.text(path)?;
    let plain = |c: char| !c.is_control() || c == '\n' || c == '\t';
    if text.len() > NOTE_MAX || !text.chars().all(plain) {
        return Err(path.invalid(format!("a note has at most {NOTE_MAX} bytes of plain text")));
    }
    Ok(text.into_owned())
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

#[derive(Debug, Clone, PartialEq)]
pub struct PreviewRequest {
    pub schedule: ScheduleDraft,
    pub from: Option<Timestamp>,
    pub count: usize,
}

pub fn preview(body: &[u8]) -> Read<PreviewRequest> {
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
    Ok(PreviewRequest {
        schedule: with_options(schedule, options(&fields)?)?,
        from: fields.get("from", Value::moment)?,
        count: count.unwrap_or(COUNT_DEFAULT) as usize,
    })
}

/// Options beside the schedule are those of the schedule, unless it has them itself.
fn with_options(schedule: ScheduleDraft, beside: CronDraft) -> Read<ScheduleDraft> {
    match schedule {
        ScheduleDraft::Text(cron) => merge(cron, beside).map(ScheduleDraft::Text),
        ScheduleDraft::Cron(cron) => merge(cron, beside).map(ScheduleDraft::Cron),
        ScheduleDraft::Every(mut every) => {
            every.zone = one(every.zone, beside.zone.clone(), "timezone")?;
            none(&CronDraft {
                zone: None,
                ..beside
            })?;
            Ok(ScheduleDraft::Every(every))
        }
        ScheduleDraft::At(_) | ScheduleDraft::In(_) => {
            none(&beside)?;
            Ok(schedule)
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
    let given = [
        ("timezone", beside.zone.is_some()),
        ("dialect", beside.dialect.is_some()),
        ("dst_gap", beside.dst_gap.is_some()),
        ("dst_overlap", beside.dst_overlap.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((field, _)) => {
            let detail = format!("{field} means nothing to such a schedule: leave it out");
            Err(FieldError::invalid(field, detail))
        }
        None => Ok(()),
    }
}
