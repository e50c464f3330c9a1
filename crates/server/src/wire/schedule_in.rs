//! A schedule as clients write it: an expression, or an object that says what kind it is.

use model::schedule::{Dialect, DstGap, DstOverlap, EXPRESSIONS_MAX, Zone};

use super::read::{Fields, Path, Read, Shape, Value};
use crate::ops::{CronDraft, EveryDraft, Fault, FieldError, ScheduleDraft};

pub const SCHEDULE_FIELDS: [&str; 9] = [
    "cron",
    "every",
    "at",
    "in",
    "timezone",
    "dialect",
    "dst_gap",
    "dst_overlap",
    "anchor",
];
const SCHEDULE: Path<'static> = Path {
    parent: "",
    name: "schedule",
};

pub fn schedule(value: Value<'_>, path: Path<'_>) -> Read<ScheduleDraft> {
    match value.shape() {
        Shape::Text => {
            let texts = vec![value.text(path)?.into_owned()];
            Ok(ScheduleDraft::Text(CronDraft { texts, ..CronDraft::default() }))
        }
        Shape::Object => object(value),
        Shape::Null | Shape::Bool | Shape::Number | Shape::List => Err(path.invalid(
            "expected a cron expression such as \"@daily\", or an object with one of cron, every, at, in",
        )),
    }
}

fn object(value: Value<'_>) -> Read<ScheduleDraft> {
    let fields = Fields::of(value, SCHEDULE, "schedule", &SCHEDULE_FIELDS)?;
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
    let options = options(&fields)?;
    let anchor = fields.get("anchor", Value::moment)?;
    let only = |given: bool, field: &str, kind: &str| match given {
        true => Err(FieldError::invalid(
            format!("schedule.{field}"),
            format!("{field} belongs to {kind}: leave it out"),
        )),
        false => Ok(()),
    };
    if cron.is_none() {
        only(options.dialect.is_some(), "dialect", "cron")?;
        only(options.dst_gap.is_some(), "dst_gap", "cron")?;
        only(options.dst_overlap.is_some(), "dst_overlap", "cron")?;
    }
    if every.is_none() {
        only(anchor.is_some(), "anchor", "every")?;
    }
    if let Some(texts) = cron {
        return Ok(ScheduleDraft::Cron(CronDraft { texts, ..options }));
    }
    if let Some(period) = every {
        let period = period.into_owned();
        return Ok(ScheduleDraft::Every(EveryDraft {
            period,
            anchor,
            zone: options.zone,
        }));
    }
    only(options.zone.is_some(), "timezone", "cron and every")?;
    match (at, later) {
        (Some(moment), _) => Ok(ScheduleDraft::At(moment)),
        (None, Some(span)) => Ok(ScheduleDraft::In(span)),
        (None, None) => Err(SCHEDULE.invalid("a schedule has exactly one of cron, every, at, in")),
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

fn zone(value: Value<'_>, path: Path<'_>) -> Read<Zone> {
    let name = value.text_or(path, "a time zone such as \"Europe/Berlin\"")?;
    Zone::get(&name).map_err(|error| path.refuse(Fault::Schedule, error.to_string()))
}
