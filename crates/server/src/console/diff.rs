//! What changed between two versions of a job: one line for each field, by its path.

use std::collections::BTreeMap;

use model::Job;
use serde_json::Value;

use crate::wire;

pub(super) struct Line {
    pub path: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

/// What moves by itself, or differs between any two versions.
pub(super) const STANDING: [&str; 10] = [
    "version",
    "updated_at",
    "created_at",
    "next_slot",
    "due_at",
    "state",
    "resting",
    "runs_left",
    "note",
    "paused_by",
];

fn flatten(path: &str, value: &Value, into: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                let below = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                flatten(&below, value, into);
            }
        }
        Value::Null => {}
        Value::Object(_) | Value::Array(_) | Value::Bool(_) | Value::Number(_) => {
            into.insert(path.to_owned(), value.to_string());
        }
        Value::String(text) => {
            into.insert(path.to_owned(), text.clone());
        }
    }
}

fn fields(job: &Job) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::new();
    if let Ok(Value::Object(all)) = serde_json::to_value(wire::Job::of(job)) {
        let compared = all
            .iter()
            .filter(|(name, _)| !STANDING.contains(&name.as_str()));
        for (name, value) in compared {
            flatten(name, value, &mut fields);
        }
    }
    fields
}

pub(super) fn jobs(before: &Job, after: &Job) -> Vec<Line> {
    let (before, after) = (fields(before), fields(after));
    let mut paths: Vec<&String> = before.keys().chain(after.keys()).collect();
    paths.sort();
    paths.dedup();
    let changed = paths
        .into_iter()
        .filter(|path| before.get(*path) != after.get(*path));
    let line = |path: &String| Line {
        path: path.clone(),
        before: before.get(path).cloned(),
        after: after.get(path).cloned(),
    };
    changed.map(line).collect()
}
