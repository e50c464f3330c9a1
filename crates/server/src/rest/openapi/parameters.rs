//! What parameters take: their bounds, and the words of those that name states, reasons and the like.

use model::{JobState, Reason, RunState, WaitReason, limits};
use serde_json::{Value, json};
use store::Action;

pub(super) fn add(contract: &mut Value) {
    for (path, operations) in super::members(&mut contract["paths"]) {
        for (_, operation) in super::members(operations) {
            let parameters = operation
                .get_mut("parameters")
                .and_then(Value::as_array_mut);
            for parameter in parameters.into_iter().flatten() {
                bound(parameter);
                name_words(path, parameter);
            }
        }
    }
}

/// Parameters of one name are bounded alike wherever they stand. None can be null: there is no way to write that.
fn bound(parameter: &mut Value) {
    if let Some(named) = parameter["schema"]["type"]
        .as_array()
        .and_then(|types| types.first())
    {
        parameter["schema"]["type"] = named.clone();
    }
    let bounds: &[(&str, usize)] = match parameter["name"].as_str().unwrap_or_default() {
        "limit" => &[("minimum", 1), ("maximum", limits::PAGE_MAX)],
        "events_max" => &[("minimum", 1), ("maximum", u32::MAX as usize)],
        "q" => &[("maxLength", limits::NAME_MAX)],
        "owner" => &[("maxLength", limits::OWNER_MAX)],
        "error" => &[("maxLength", limits::ERROR_MAX)],
        "target" => &[("maxLength", limits::URL_MAX)],
        "key" | "name" | "Idempotency-Key" => &[("minLength", 1), ("maxLength", limits::NAME_MAX)],
        _ => &[],
    };
    for (member, bound) in bounds {
        parameter["schema"][*member] = json!(bound);
    }
}

/// Several words stand in one parameter, with commas between them; an action stands alone.
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
        _ => return,
    };
    parameter["style"] = json!("form");
    parameter["explode"] = json!(false);
    parameter["schema"] = json!({
        "type": "array",
        "items": { "type": "string", "enum": words },
        "minItems": 1,
    });
}
