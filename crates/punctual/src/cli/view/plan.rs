//! What a dry run says would be done: field by field, slot by slot, and that nothing was done.

use std::collections::BTreeMap;

use comfy_table::Cell;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::job::{headline, list};
use super::{items, job, parse, text};
use crate::cli::output;
use crate::failure::Failure;

/// What every change changes, and what is said elsewhere.
const BESIDE: [&str; 8] = [
    "version",
    "created_at",
    "updated_at",
    "due_at",
    "dry_run",
    "runs",
    "slots",
    "warning",
];
/// What a job has only once it is there.
const NOT_YET: [&str; 7] = [
    "id",
    "version",
    "created_at",
    "updated_at",
    "dry_run",
    "runs",
    "slots",
];
const NOTHING_DONE: &str = "nothing was changed";

/// What would become of a job that stands.
pub(crate) fn would_change(before: &[u8], answer: &[u8], json: bool) -> Result<(), Failure> {
    let after = planned(answer)?;
    if json {
        return output::json(answer);
    }
    output::line(&headline("would change", &after))?;
    let changes = changes(&leaves(before)?, &leaves(answer)?);
    if changes.is_empty() {
        output::line("no field would change")?;
    }
    let width = changes.iter().map(|(name, _)| name.chars().count()).max();
    let width = width.unwrap_or(0);
    for (name, change) in changes {
        output::line(&format!("{name:width$}  {change}"))?;
    }
    slots(&after)?;
    finish(&after)
}

/// The first slots that go and the first that come, side by side.
fn slots(after: &Value) -> Result<(), Failure> {
    let named = |name: &str| items(&after["slots"][name]);
    let sides = [
        ("SLOTS REMOVED", named("removed")),
        ("SLOTS ADDED", named("added")),
    ];
    let sides: Vec<_> = sides
        .iter()
        .filter(|(_, slots)| !slots.is_empty())
        .collect();
    let length = sides.iter().map(|(_, slots)| slots.len()).max();
    let Some(length) = length else { return Ok(()) };
    let row = |at: usize| {
        let cell = |slots: &[Value]| Cell::new(slots.get(at).map_or(String::new(), text));
        sides.iter().map(|(_, slots)| cell(slots)).collect()
    };
    let head: Vec<&str> = sides.iter().map(|(name, _)| *name).collect();
    output::line("")?;
    output::table(&head, (0..length).map(row).collect())?;
    output::line("")
}

/// What would become a job.
pub(crate) fn would_create(answer: &[u8], json: bool) -> Result<(), Failure> {
    let mut after = planned(answer)?;
    if json {
        return output::json(answer);
    }
    let said = after.clone();
    if let Some(fields) = after.as_object_mut() {
        fields.retain(|name, _| !NOT_YET.contains(&name.as_str()));
    }
    output::line(&headline("would create a job", &after))?;
    job::job(&after)?;
    slots(&said)?;
    finish(&after)
}

/// A server that does not know dry runs made the change: what is shown must not say otherwise.
fn planned(answer: &[u8]) -> Result<Value, Failure> {
    let read = parse(answer)?;
    if read["dry_run"] == true {
        return Ok(read);
    }
    Err(Failure::refused(format!(
        "the server does not know dry runs: {} was written",
        text(&read["id"])
    )))
}

fn finish(after: &Value) -> Result<(), Failure> {
    if after["warning"].is_string() {
        output::warning(&text(&after["warning"]));
    }
    output::line(NOTHING_DONE)
}

/// Every field of a job by its path, in a line each. A payload stays as it is written: two numbers that
/// differ beyond what we can count with are still two payloads.
fn leaves(job: &[u8]) -> Result<BTreeMap<String, String>, Failure> {
    #[derive(Deserialize)]
    struct Written<'a> {
        #[serde(borrow)]
        payload: Option<&'a RawValue>,
    }
    let mut read = parse(job)?;
    let written: Option<Written<'_>> = serde_json::from_slice(job).ok();
    let payload = written.and_then(|written| written.payload);
    if let (Some(payload), Some(fields)) = (payload, read.as_object_mut()) {
        fields.insert("payload".to_owned(), payload.get().into());
    }
    let mut found = BTreeMap::new();
    for (name, value) in read.as_object().into_iter().flatten() {
        if !BESIDE.contains(&name.as_str()) {
            walk(name.clone(), value, &mut found);
        }
    }
    Ok(found)
}

fn walk(path: String, value: &Value, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                walk(format!("{path}.{name}"), value, found);
            }
        }
        // What is not said is not so: one schedule says that it does not wait for runs, another need not.
        Value::Null | Value::Bool(false) => {}
        Value::Array(list) if list.is_empty() => {}
        Value::Array(_) | Value::Bool(true) | Value::Number(_) | Value::String(_) => {
            found.insert(output::clean(&path).into_owned(), list(value));
        }
    }
}

/// What differs, as "before → after".
fn changes(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> Vec<(String, String)> {
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let said = |of: &BTreeMap<String, String>, name: &String| {
        of.get(name)
            .cloned()
            .unwrap_or_else(|| "nothing".to_owned())
    };
    let differs = names
        .into_iter()
        .filter(|name| before.get(*name) != after.get(*name));
    differs
        .map(|name| {
            let change = format!("{} → {}", said(before, name), said(after, name));
            (name.clone(), change)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, after: &str, expected: &[(&str, &str)]) {
        let of = |text: &str| leaves(text.as_bytes()).unwrap();
        let found = changes(&of(before), &of(after));
        let found: Vec<_> = found
            .iter()
            .map(|(name, change)| (name.as_str(), change.as_str()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn only_what_differs_is_named() {
        check(
            r#"{"version": 1, "schedule": {"cron": "a", "timezone": "UTC"}, "exclude": [], "lane": "batch"}"#,
            r#"{"version": 2, "schedule": {"cron": "b", "timezone": "UTC"}, "exclude": ["x", "y"], "lane": "batch"}"#,
            &[("exclude", "nothing → x, y"), ("schedule.cron", "a → b")],
        );
        check(
            r#"{"labels": {"a": "1"}, "schedule": {"ends_at": null}}"#,
            r#"{"labels": {}, "schedule": {"ends_at": "2027"}}"#,
            &[
                ("labels.a", "1 → nothing"),
                ("schedule.ends_at", "nothing → 2027"),
            ],
        );
        check(r#"{"key": "a"}"#, r#"{"key": "a", "resting": false}"#, &[]);
    }

    #[test]
    fn payloads_differ_as_they_are_written() {
        check(
            r#"{"payload": {"n": 10000000000000000000001}}"#,
            r#"{"payload": {"n": 10000000000000000000002}}"#,
            &[(
                "payload",
                r#"{"n": 10000000000000000000001} → {"n": 10000000000000000000002}"#,
            )],
        );
    }

    #[test]
    fn an_answer_that_is_no_dry_run_is_not_taken_for_one() {
        let refused = planned(br#"{"id": "job_1"}"#).unwrap_err();
        assert!(refused.text.contains("job_1 was written"), "{refused}");
        assert!(planned(br#"{"dry_run": true}"#).is_ok());
    }
}
