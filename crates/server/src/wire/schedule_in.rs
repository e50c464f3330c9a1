//! A schedule as clients write it: an expression, or an object that says what kind it is.

use std::collections::BTreeSet;

use model::schedule::{Bounds, Dialect, DstGap, DstOverlap, EXPRESSIONS_MAX, Zone};
use model::{CalendarName, limits};

use super::read::{Fields, Path, Read, Shape, Value};
use crate::ops::{CronDraft, EveryDraft, Fault, FieldError, KindDraft, ScheduleDraft};

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

pub fn schedule(value: Value<'_>, path: Path<'_>) -> Read<ScheduleDraft> {
    match value.shape() {
        Shape::Text => {
            let texts = vec![value.text(path)?.into_owned()];
            Ok(ScheduleDraft {
                kind: KindDraft::Text(CronDraft { texts, ..CronDraft::default() }),
                bounds: Bounds::default(),
            })
        }
        Shape::Object => object(value),
        Shape::Null | Shape::Bool | Shape::Number | Shape::List => Err(path.invalid(
            "expected a cron expression such as \"@daily\", or an object with one of cron, every, at, in",
        )),
    }
}

/// Refuses a field that means nothing to the kind of schedule that it stands in.
fn only(given: bool, field: &str, kind: &str) -> Read<()> {
    match given {
        true => Err(FieldError::invalid(
            format!("schedule.{field}"),
            format!("{field} belongs to {kind}: leave it out"),
        )),
        false => Ok(()),
    }
}

fn object(value: Value<'_>) -> Read<ScheduleDraft> {
    let fields = Fields::of(value, SCHEDULE, "schedule", &SCHEDULE_FIELDS)?;
    let kind = kind(&fields)?;
    let bounds = bounds(&fields)?;
    if !kind.repeats() {
        for (given, field) in given(&bounds) {
            only(given, field, "cron and every")?;
        }
    }
    Ok(ScheduleDraft { kind, bounds })
}

fn kind(fields: &Fields<'_>) -> Read<KindDraft> {
    let cron = fields.get("cron", expressions)?;
    let every = fields.get("every", Value::text)?;
    let at = fields.get("at", Value::moment)?;
    let later = fields.get("in", Value::duration)?;
    let kinds = [
        cron.is_some(),
        every.is_some(),
        at.is_some(),
        later.is_some(),
    ];
    if kinds.into_iter().filter(|given| *given).count() != 1 {
        let fault = if kinds.contains(&true) {
            Fault::Invalid
        } else {
            Fault::Missing
        };
        return Err(SCHEDULE.refuse(fault, "a schedule has exactly one of cron, every, at, in"));
    }
    let options = options(fields)?;
    let anchor = fields.get("anchor", Value::moment)?;
    let after_completion = fields.get("after_completion", Value::boolean)?;
    if cron.is_none() {
        only(options.dialect.is_some(), "dialect", "cron")?;
        only(options.dst_gap.is_some(), "dst_gap", "cron")?;
        only(options.dst_overlap.is_some(), "dst_overlap", "cron")?;
    }
    if every.is_none() {
        only(anchor.is_some(), "anchor", "every")?;
        only(after_completion.is_some(), "after_completion", "every")?;
    }
    if let Some(texts) = cron {
        return Ok(KindDraft::Cron(CronDraft { texts, ..options }));
    }
    if let Some(period) = every {
        return Ok(KindDraft::Every(EveryDraft {
            period: period.into_owned(),
            anchor,
            zone: options.zone,
            after_completion: after_completion.unwrap_or(false),
        }));
    }
    only(options.zone.is_some(), "timezone", "cron and every")?;
    match (at, later) {
        (Some(moment), _) => Ok(KindDraft::At(moment)),
        (None, Some(span)) => Ok(KindDraft::In(span)),
        (None, None) => Err(SCHEDULE.invalid("a schedule has exactly one of cron, every, at, in")),
    }
}

/// From when to when, and how many runs; also beside a schedule, in a preview.
pub fn bounds(fields: &Fields<'_>) -> Read<Bounds> {
    let most = i64::from(u32::MAX);
    Ok(Bounds {
        starts_at: fields.get("starts_at", Value::moment)?,
        ends_at: fields.get("ends_at", Value::moment)?,
        runs_max: fields.get("runs_max", |value, path| {
            Ok(value.integer(path, 1, most)? as u32)
        })?,
    })
}

/// Which bounds are given, by their names.
pub fn given(bounds: &Bounds) -> [(bool, &'static str); 3] {
    [
        (bounds.starts_at.is_some(), "starts_at"),
        (bounds.ends_at.is_some(), "ends_at"),
        (bounds.runs_max.is_some(), "runs_max"),
    ]
}

/// Calendars by their names.
pub fn calendars(value: Value<'_>, path: Path<'_>) -> Read<Vec<CalendarName>> {
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

/// How expressions are to be read; also beside a schedule, in a preview.
pub fn options(fields: &Fields<'_>) -> Read<CronDraft> {
    Ok(CronDraft {
        texts: Vec::new(),
        zone: fields.get("timezone", zone)?,
        dialect: fields.get("dialect", |value, path| {
            value.choice(path, &["unix", "quartz"], |text| match text {
                "unix" => Some(Dialect::Unix),
                "quartz" => Some(Dialect::Quartz),
                _ => None,
            })
        })?,
        dst_gap: fields.get("dst_gap", |value, path| {
            value.choice(path, &["run_after", "skip"], |text| match text {
                "run_after" => Some(DstGap::RunAfter),
                "skip" => Some(DstGap::Skip),
                _ => None,
            })
        })?,
        dst_overlap: fields.get("dst_overlap", |value, path| {
            value.choice(path, &["first", "both"], |text| match text {
                "first" => Some(DstOverlap::First),
                "both" => Some(DstOverlap::Both),
                _ => None,
            })
        })?,
    })
}

pub fn zone(value: Value<'_>, path: Path<'_>) -> Read<Zone> {
    let name = value.text_or(path, "a time zone such as \"Europe/Berlin\"")?;
    Zone::get(&name).map_err(|error| path.refuse(Fault::Schedule, error.to_string()))
}
