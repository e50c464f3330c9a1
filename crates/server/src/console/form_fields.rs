//! What a job's form says, as a body of the API; and a job, as its form says it.

use std::collections::BTreeMap;

use model::schedule::Zone;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::viewer::Fields;
use crate::ops::FieldError;
use crate::problem::Problem;
use crate::wire;

/// The form's field for a path of the API.
pub(super) fn field_of(path: &str) -> &'static str {
    let known = [
        ("schedule.timezone", "timezone"),
        ("timezone", "timezone"),
        ("schedule.every", "every"),
        ("schedule.at", "at"),
        ("schedule", "cron"),
        ("target.http.headers", "headers"),
        ("target.http.method", "method"),
        ("target.shell", ""),
        ("target.python", ""),
        ("target", "url"),
        ("payload", "payload"),
        ("retry", "attempts"),
        ("timeout", "timeout"),
        ("overlap", "overlap"),
        ("catch_up", "catch_up"),
        ("start_within", "start_within"),
        ("finish_within", "finish_within"),
        ("spread", "spread"),
        ("labels", "labels"),
        ("exclude", "exclude"),
        ("only", "only"),
        ("owner", "owner"),
        ("key", "key"),
        ("lane", "lane"),
    ];
    let found = known.iter().find(|(start, _)| path.starts_with(start));
    found.map_or("", |(_, field)| field)
}

/// One `name=value` or `Name: value` on each line.
fn pairs(text: &str, sign: char) -> Result<BTreeMap<String, String>, String> {
    let parts = text
        .split(['\n', '\r'])
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let pair = |line: &str| {
        let (name, value) = line.split_once(sign).ok_or_else(|| {
            format!(
                "{:?} has no {sign}: write one on each line",
                line.chars().take(40).collect::<String>()
            )
        })?;
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    };
    parts.map(pair).collect()
}

/// What is named now, and null for what was named before.
fn merged(now: BTreeMap<String, String>, before: &BTreeMap<String, String>) -> Value {
    let gone = before.keys().filter(|name| !now.contains_key(*name));
    let gone: Vec<(String, Value)> = gone.map(|name| (name.clone(), Value::Null)).collect();
    let kept = now
        .into_iter()
        .map(|(name, value)| (name, Value::from(value)));
    kept.chain(gone).collect::<Map<String, Value>>().into()
}

pub(super) fn names(text: &str) -> Vec<&str> {
    text.split([',', ' ', '\n'])
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect()
}

fn or_null(text: &str) -> Value {
    let text = text.trim();
    if text.is_empty() {
        Value::Null
    } else {
        text.into()
    }
}

fn schedule(fields: &Fields) -> Value {
    let text = |name: &str| fields.get(name).trim().to_owned();
    let zone = text("timezone");
    let mut schedule = match fields.get("kind") {
        "every" => json!({ "every": text("every") }),
        "at" => return json!({ "at": text("at") }),
        _ => {
            // One on each line; most jobs have one.
            let lines: Vec<String> = text("cron")
                .lines()
                .map(|line| line.trim().to_owned())
                .collect();
            match lines.as_slice() {
                [] => json!({ "cron": "" }),
                [one] => json!({ "cron": one }),
                several => json!({ "cron": several }),
            }
        }
    };
    if !zone.is_empty() {
        schedule["timezone"] = zone.into();
    }
    schedule
}

/// The schedule that a form says; nothing if it is the one that stands, so that what the form does not show stays, and a
/// moment that has passed is not refused.
pub(super) fn schedule_said(fields: &Fields, before: Option<&wire::Job>) -> Option<Value> {
    let mut said = schedule(fields);
    let Some(before) = before else {
        return Some(said);
    };
    if said == schedule(&of_job(before)) {
        return None;
    }
    // Who takes the zone away does not want the one before.
    let has_zone = said.get("timezone").is_some() || fields.get("kind") == "at";
    if !has_zone {
        said["timezone"] = Value::Null;
    }
    Some(said)
}

/// The body that the API would get.
fn body(fields: &Fields, before: Option<&wire::Job>) -> Result<String, FieldError> {
    let text = |name: &str| fields.get(name).trim();
    let refuse = |field: &'static str| move |why: String| FieldError::invalid(field, why);
    let none = BTreeMap::new();
    let http = before.and_then(|job| job.target.http.as_ref());
    let headers = pairs(text("headers"), ':').map_err(refuse("target.http.headers"))?;
    let labels = pairs(text("labels"), '=').map_err(refuse("labels"))?;
    let attempts: Option<u32> = text("attempts").parse().ok();
    let attempts = attempts.ok_or_else(|| {
        FieldError::invalid("retry.attempts_max", "write a number, such as 4".to_owned())
    })?;
    let mut body = json!({
        "key": or_null(text("key")),
        "exclude": names(text("exclude")),
        "only": names(text("only")),
        "target": {"http": {
            "url": text("url"),
            "method": text("method"),
            "headers": merged(headers, http.map_or(&none, |http| &http.headers)),
        }},
        "retry": {"attempts_max": attempts},
        "timeout": or_null(text("timeout")),
        "lane": text("lane"),
        "catch_up": {"policy": text("catch_up")},
        "spread": or_null(text("spread")),
        "start_within": or_null(text("start_within")),
        "finish_within": or_null(text("finish_within")),
        "labels": merged(labels, before.map_or(&none, |job| &job.labels)),
    });
    if before.is_some_and(|job| job.target.http.is_none())
        && let Some(body) = body.as_object_mut()
    {
        // The form has no fields for a command or a script: it stays.
        body.remove("target");
    }
    if let Some(schedule) = schedule_said(fields, before) {
        body["schedule"] = schedule;
    }
    // A bound on what waits stays, unless another policy is chosen.
    if before.map(overlap_of) != Some(text("overlap")) {
        body["overlap"] = text("overlap").into();
    }
    let body = body.to_string();
    let payload = match text("payload") {
        "" => "null",
        text => text,
    };
    serde_json::from_str::<&RawValue>(payload)
        .map_err(|error| FieldError::invalid("payload", format!("it is not JSON: {error}")))?;
    // As it was typed: a number of many digits is not rounded.
    let open = body.strip_suffix('}').unwrap_or(&body);
    Ok(format!("{open},\"payload\":{payload}}}"))
}

fn overlap_of(job: &wire::Job) -> &'static str {
    match &job.overlap {
        wire::Overlap::Plain(policy) | wire::Overlap::Bounded { policy, .. } => policy,
    }
}

/// What a new job's form says before anybody has typed.
pub(super) fn blank(zone: &Zone) -> Fields {
    let pairs = [
        ("kind", "cron"),
        ("cron", "0 9 * * MON-FRI"),
        ("every", "15m"),
        ("timezone", zone.name()),
        ("method", "POST"),
        ("lane", "standard"),
        ("overlap", "skip"),
        ("catch_up", "latest"),
        ("attempts", "4"),
        ("timeout", "30s"),
    ];
    Fields(
        pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
    )
}

fn lines(of: &BTreeMap<String, String>, sign: &str) -> String {
    let lines: Vec<String> = of
        .iter()
        .map(|(name, value)| format!("{name}{sign}{value}"))
        .collect();
    lines.join("\n")
}

/// A job as its form says it.
pub(super) fn of_job(job: &wire::Job) -> Fields {
    let schedule = &job.schedule;
    let cron = match &schedule.cron {
        Some(wire::Expressions::One(text)) => text.clone(),
        Some(wire::Expressions::Several(texts)) => texts.join("\n"),
        None => String::new(),
    };
    let kind = match (&schedule.every, &schedule.at) {
        (Some(_), _) => "every",
        (None, Some(_)) => "at",
        (None, None) => "cron",
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let http = job.target.http.as_ref();
    let headers = http
        .map(|http| lines(&http.headers, ": "))
        .unwrap_or_default();
    let payload = job.payload.as_ref().map(|payload| payload.get().to_owned());
    let pairs = [
        ("key", text(&job.key)),
        ("kind", kind.to_owned()),
        ("cron", cron),
        ("every", text(&schedule.every)),
        ("at", text(&schedule.at)),
        ("timezone", text(&schedule.timezone)),
        ("exclude", job.exclude.join(", ")),
        ("only", job.only.join(", ")),
        ("url", http.map(|http| http.url.clone()).unwrap_or_default()),
        ("command", wire::command_line(&job.target)),
        (
            "method",
            http.map(|http| http.method.clone()).unwrap_or_default(),
        ),
        ("headers", headers),
        ("payload", payload.unwrap_or_default()),
        ("attempts", job.retry.attempts_max.to_string()),
        ("timeout", job.timeout.clone()),
        ("lane", job.lane.to_owned()),
        ("overlap", overlap_of(job).to_owned()),
        ("catch_up", job.catch_up.policy.to_owned()),
        ("spread", job.spread.clone()),
        ("start_within", text(&job.start_within)),
        ("finish_within", text(&job.finish_within)),
        ("labels", lines(&job.labels, "=")),
        ("version", job.version.to_string()),
        ("id", job.id.clone()),
    ];
    Fields(pairs.map(|(name, value)| (name.to_owned(), value)).to_vec())
}

pub(super) fn draft(
    fields: &Fields,
    before: Option<&wire::Job>,
) -> Result<crate::ops::JobDraft, Problem> {
    let body = body(fields, before).map_err(Problem::from)?;
    Ok(wire::job_draft(body.as_bytes())?)
}
