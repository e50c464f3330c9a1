//! A schedule as clients write it: an expression, or an object that says what kind it is.

use std::collections::BTreeSet;

use model::schedule::{Dialect, DstGap, DstOverlap, EXPRESSIONS_MAX, Zone};
use model::{CalendarName, limits};

use super::read::{Fields, Path, Read, Shape, Value};
use crate::ops::{Fault, KindDraft, Patch, ScheduleDraft, kind_missing, refuse_misfit};

pub const SCHEDULE_FIELDS: [&str; 13] = [
    "cron",
    "every",
    "at",
    "in",
    "timezone",
    "dialect",
    "dst_gap",
    "dst_overlap",
    "anchor",
    "after_completion",
    "starts_at",
    "ends_at",
    "runs_max",
];
const SCHEDULE: Path<'static> = Path {
    parent: "",
    name: "schedule",
};

pub(super) fn schedule(value: Value<'_>, path: Path<'_>) -> Read<ScheduleDraft> {
    match value.shape() {
        Shape::Text => Ok(ScheduleDraft {
            kind: Some(KindDraft::Text(value.text(path)?.into_owned())),
            ..ScheduleDraft::default()
        }),
        Shape::Object => object(value),
        Shape::Null | Shape::Bool | Shape::Number | Shape::List => Err(path.invalid(
            "expected a cron expression such as \"@daily\", or an object with one of cron, every, at, in",
        )),
    }
}

fn object(value: Value<'_>) -> Read<ScheduleDraft> {
    let fields = Fields::of(value, SCHEDULE, "schedule", &SCHEDULE_FIELDS)?;
    let draft = ScheduleDraft {
        anchor: fields.patch("anchor", Value::moment)?,
        after_completion: fields.patch("after_completion", Value::boolean)?,
        ..beside(&fields)?
    };
    let kind = kind(&fields)?;
    match kind.as_ref().and_then(|kind| draft.misfit(kind)) {
        Some(misfit) => Err(refuse_misfit(misfit)),
        None => Ok(ScheduleDraft { kind, ..draft }),
    }
}

/// What repeats, or when it is due once; nothing if it is not said.
fn kind(fields: &Fields<'_>) -> Read<Option<KindDraft>> {
    let cron = fields.patch("cron", |value, path| {
        Ok(KindDraft::Cron(expressions(value, path)?))
    })?;
    let every = fields.patch("every", |value, path| {
        Ok(KindDraft::Every(value.text(path)?.into_owned()))
    })?;
    let at = fields.patch("at", |value, path| Ok(KindDraft::At(value.moment(path)?)))?;
    let later = fields.patch("in", |value, path| Ok(KindDraft::In(value.duration(path)?)))?;
    let mut said = Vec::new();
    let mut removed = false;
    for kind in [cron, every, at, later] {
        match kind {
            Patch::Keep => {}
            Patch::Reset => removed = true,
            Patch::Set(kind) => said.push(kind),
        }
    }
    match (said.pop(), said.is_empty()) {
        (None, _) if removed => Err(kind_missing()),
        (kind, true) => Ok(kind),
        (_, false) => Err(SCHEDULE.invalid("a schedule has exactly one of cron, every, at, in")),
    }
}

/// How a schedule is to be read, from when to when, and how many runs; also beside one, in a preview.
pub(super) fn beside(fields: &Fields<'_>) -> Read<ScheduleDraft> {
    let most = i64::from(u32::MAX);
    Ok(ScheduleDraft {
        zone: fields.patch("timezone", zone)?,
        dialect: fields.patch("dialect", |value, path| {
            value.choice(path, &["unix", "quartz"], |text| match text {
                "unix" => Some(Dialect::Unix),
                "quartz" => Some(Dialect::Quartz),
                _ => None,
            })
        })?,
        dst_gap: fields.patch("dst_gap", |value, path| {
            value.choice(path, &["run_after", "skip"], |text| match text {
                "run_after" => Some(DstGap::RunAfter),
                "skip" => Some(DstGap::Skip),
                _ => None,
            })
        })?,
        dst_overlap: fields.patch("dst_overlap", |value, path| {
            value.choice(path, &["first", "both"], |text| match text {
                "first" => Some(DstOverlap::First),
                "both" => Some(DstOverlap::Both),
                _ => None,
            })
        })?,
        starts_at: fields.patch("starts_at", Value::moment)?,
        ends_at: fields.patch("ends_at", Value::moment)?,
        runs_max: fields.patch("runs_max", |value, path| {
            Ok(value.integer(path, 1, most)? as u32)
        })?,
        ..ScheduleDraft::default()
    })
}

/// Calendars by their names.
pub(super) fn calendars(value: Value<'_>, path: Path<'_>) -> Read<Vec<CalendarName>> {
    let what = "a list of calendars by their names, such as [\"holidays\"]";
    let most = limits::CALENDARS_OF_JOB_MAX;
    let names = value.list(path, what, most, |value, path| {
        let name = value.text_or(path, "the name of a calendar")?;
        CalendarName::new(&name).map_err(|error| path.invalid(error.to_string()))
    })?;
    let mut seen = BTreeSet::new();
    match names.iter().find(|name| !seen.insert(*name)) {
        Some(twice) => Err(path.invalid(format!("{twice} is named twice: leave one out"))),
        None => Ok(names),
    }
}

fn expressions(value: Value<'_>, path: Path<'_>) -> Read<Vec<String>> {
    if value.shape() != Shape::List {
        let text = value.text_or(path, "a cron expression, or a list of them")?;
        return Ok(vec![text.into_owned()]);
    }
    let list: Vec<&serde_json::value::RawValue> = serde_json::from_str(value.0)
        .map_err(|_| path.invalid("expected a cron expression, or a list of them"))?;
    if list.len() > EXPRESSIONS_MAX {
        return Err(path.invalid(format!("at most {EXPRESSIONS_MAX} expressions")));
    }
    list.into_iter()
        .map(|raw| Ok(Value(raw.get()).text(path)?.into_owned()))
        .collect()
}

pub(super) fn zone(value: Value<'_>, path: Path<'_>) -> Read<Zone> {
    let name = value.text_or(path, "a time zone such as \"Europe/Berlin\"")?;
    Zone::get(&name).map_err(|error| path.refuse(Fault::Schedule, error.to_string()))
}
