//! What parameters take: their bounds, what they look like, and the words of those that name states, reasons and the like.

use model::{JobState, Reason, RunState, WaitReason, limits};
use serde_json::{Value, json};
use store::Action;

use super::texts;
use crate::ops::forecast::Reach;
use crate::ops::overview::Span;

pub(super) fn add(contract: &mut Value) {
    for (path, operations) in super::members(&mut contract["paths"]) {
        for (_, operation) in super::members(operations) {
            let parameters = operation
                .get_mut("parameters")
                .and_then(Value::as_array_mut);
            for parameter in parameters.into_iter().flatten() {
                bound(path, parameter);
                name_words(path, parameter);
            }
            // The one body that is text and not a schema with a name.
            if let Some(body) = operation.pointer_mut("/requestBody/content/text~1plain/schema") {
                body["maxLength"] = json!(limits::LOG_APPEND_MAX);
            }
        }
    }
}

/// None can be null: there is no way to write that.
fn bound(path: &str, parameter: &mut Value) {
    if let Some(named) = parameter["schema"]["type"]
        .as_array()
        .and_then(|types| types.first())
    {
        parameter["schema"]["type"] = named.clone();
    }
    let name = parameter["name"].as_str().unwrap_or_default();
    let bounds = match name {
        "id" | "name" | "key" => named(path, name),
        _ => alike(path, name),
    };
    for (member, bound) in bounds.as_object().into_iter().flatten() {
        parameter["schema"][member] = bound.clone();
    }
}

/// What a path names, by what stands before it.
fn named(path: &str, name: &str) -> Value {
    let (pattern, max) = match path.split('/').nth(2).unwrap_or_default() {
        "jobs" if name == "id" => (texts::JOB, Some(texts::JOB_MAX)),
        "jobs" => (texts::JOB_KEY, Some(limits::NAME_MAX)),
        "runs" => (texts::RUN, None),
        "replays" => (texts::REPLAY, None),
        "keys" | "audit" => (texts::ACCESS_KEY, None),
        "signing-secrets" => (texts::SIGNING, None),
        "tenants" => (texts::TENANT, Some(limits::TENANT_NAME_MAX)),
        "users" => (texts::USER, Some(limits::USER_NAME_MAX)),
        "secrets" => (texts::SECRET, Some(limits::SECRET_NAME_MAX)),
        _ => (texts::NAME, Some(limits::NAME_MAX)),
    };
    match max {
        Some(max) => json!({"pattern": pattern, "minLength": 1, "maxLength": max}),
        None => json!({"pattern": pattern}),
    }
}

/// Parameters of one name are bounded alike wherever they stand, but for the moments that one operation also takes by the
/// clock on the wall.
fn alike(path: &str, name: &str) -> Value {
    match name {
        "limit" => json!({"minimum": 1, "maximum": limits::PAGE_MAX}),
        "events_max" => json!({"minimum": 1, "maximum": u32::MAX}),
        "after" => json!({"minimum": 0, "maximum": i64::MAX}),
        "version" => json!({"minimum": 1, "maximum": u32::MAX}),
        "cursor" => json!({"pattern": texts::CURSOR, "maxLength": texts::CURSOR_MAX}),
        "q" | "actor" | "subject" => json!({"maxLength": limits::NAME_MAX}),
        "owner" => json!({"maxLength": limits::OWNER_MAX}),
        "error" => json!({"maxLength": limits::ERROR_MAX}),
        "target" => json!({"maxLength": limits::URL_MAX}),
        "Idempotency-Key" => json!({"minLength": 1, "maxLength": limits::NAME_MAX}),
        "tenant" => json!({"pattern": texts::TENANT, "maxLength": limits::TENANT_NAME_MAX}),
        "job" => json!({"pattern": texts::JOB, "maxLength": texts::JOB_MAX}),
        "run" => json!({"pattern": texts::RUN}),
        "at" if path.ends_with("/explain") => json!({"pattern": texts::MOMENT_OR_LOCAL}),
        "at" | "from" | "to" | "since" | "until" => json!({"pattern": texts::MOMENT}),
        "spread" => json!({"pattern": texts::SPAN}),
        "span" => json!({"enum": Span::ALL.map(Span::as_str)}),
        "reach" => json!({"enum": Reach::ALL.map(Reach::as_str)}),
        "head" => json!({"pattern": texts::HEAD}),
        "If-Match" => json!({"pattern": texts::VERSIONS}),
        "If-None-Match" => json!({"enum": ["*"]}),
        "traceparent" => json!({"pattern": texts::TRACE}),
        "Punctual-Token" => json!({"pattern": texts::TOKEN}),
        _ => json!({}),
    }
}

/// Several words stand in one parameter, with commas between them; an action stands alone, and labels are given one by one.
fn name_words(path: &str, parameter: &mut Value) {
    let words = match parameter["name"].as_str().unwrap_or_default() {
        "state" if path == "/v1/jobs" => JobState::ALL.map(JobState::as_str).to_vec(),
        "state" => RunState::ALL.map(RunState::as_str).to_vec(),
        "reason" => Reason::ALL.map(Reason::as_str).to_vec(),
        "waiting" => WaitReason::ALL.map(WaitReason::as_str).to_vec(),
        "action" => {
            parameter["schema"]["enum"] = json!(Action::ALL.map(Action::as_str).to_vec());
            return;
        }
        "label" => {
            let label = json!({
                "type": "string", "pattern": texts::LABEL, "maxLength": 2 * limits::NAME_MAX + 1,
            });
            parameter["schema"] =
                json!({"type": "array", "items": label, "maxItems": limits::LABELS_MAX});
            return;
        }
        _ => return,
    };
    parameter["style"] = json!("form");
    parameter["explode"] = json!(false);
    parameter["schema"] = json!({
        "type": "array",
        "items": { "type": "string", "enum": words },
        "minItems": 1,
        "maxItems": words.len(),
    });
}
