//! The contract: made from the handlers and the wire types, committed as `api/openapi.json`, served.
//!
//! What no attribute can say is added here from where it is said already: `limits` (words and bounds of the model), `texts`
//! (what texts look like), `parameters` (the same of parameters),
//! `refusals` (the problems of each operation); examples are in `api/examples.json`.

mod limits;
mod limits_of_alerts;
mod limits_of_commands;
mod parameters;
mod refusals;
mod texts;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::OpenApi;

use super::{
    alerts, audit, batch, calendars, events, find, forecast, jobs, keys, nodes, outside, overview,
    preview, replays, runs, secrets, signing, slots, system, targets, tenants, users, versions,
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Punctual",
        description = "A job scheduler: jobs that are due at a moment, on a cron expression or at an interval.",
    ),
    paths(
        jobs::create, jobs::list, batch::create, jobs::show, jobs::patch, jobs::delete,
        jobs::find, jobs::put, jobs::delete_by_key, jobs::pause, jobs::resume,
        versions::list, versions::show, versions::revert,
        runs::start, runs::replay_last, runs::list_of_job, runs::list, find::groups, runs::show, runs::cancel,
        runs::wake,
        runs::replay, outside::report, outside::heartbeat, outside::append_log, outside::log, outside::checkpoint,
        replays::create, replays::list, replays::show, replays::cancel, replays::backfill, slots::list, slots::explain, preview::preview,
        calendars::create, calendars::list, calendars::show, calendars::put, calendars::delete,
        alerts::list, alerts::show, alerts::put, alerts::delete, alerts::mute, alerts::test, alerts::deliveries,
        nodes::list, overview::show, forecast::show, forecast::second, events::watch, targets::list, tenants::create, tenants::list, tenants::show,
        tenants::patch, tenants::delete, keys::create, keys::list, keys::show, keys::revoke,
        users::create, users::list, users::show, users::patch, users::delete, users::link,
        secrets::create, secrets::list, secrets::show, secrets::put, secrets::delete, secrets::rewrap,
        signing::create, signing::list, signing::delete,
        audit::list, audit::export, audit::verify, system::healthz, system::readyz, system::version, system::metrics,
    ),
    tags(
        (name = "jobs", description = "What is due, and where it goes"),
        (name = "runs", description = "What came of each slot"),
        (name = "replays", description = "Many runs at a pace: dead ones again, and past slots"),
        (name = "schedules", description = "When something is due"),
        (name = "calendars", description = "Named times that jobs leave out, or keep to"),
        (name = "alerts", description = "Who is to hear of what"),
        (name = "nodes", description = "Who does the work"),
        (name = "overview", description = "How the jobs fare, and what comes"),
        (name = "tenants", description = "Who owns jobs"),
        (name = "keys", description = "Who may call"),
        (name = "users", description = "Who logs in to the console"),
        (name = "signing", description = "What callbacks are signed with"),
        (name = "secrets", description = "Values that are sent and never shown"),
        (name = "audit", description = "Who changed what"),
        (name = "system", description = "How the node is"),
    ),
)]
struct Contract;

/// One for each operation: a request, and its answer. A validator holds them against the schemas.
const EXAMPLES: &str = include_str!("../../../../../api/examples.json");

/// The contract as it is committed.
pub fn openapi_json() -> String {
    // It is made of texts and numbers, which always can be written; a test reads it back.
    let mut text = complete().unwrap_or_default();
    text.push('\n');
    text
}

fn complete() -> serde_json::Result<String> {
    let mut contract = serde_json::to_value(Contract::openapi())?;
    raise_descriptions(&mut contract["components"]["schemas"]);
    limits::add(&mut contract);
    parameters::add(&mut contract);
    let examples: Value = serde_json::from_str(EXAMPLES)?;
    for (path, operations) in members(&mut contract["paths"]) {
        for (method, operation) in members(operations) {
            if refusals::is_open(path) {
                operation["security"] = json!([]);
            }
            refusals::add(method, path, operation);
            add_examples(operation, &examples);
        }
    }
    contract["components"]["securitySchemes"] = json!({"key": {
        "type": "http", "scheme": "bearer",
        "description": "A key of this installation, punctual_<id>_<secret>. Nodes that were started with --insecure-no-auth ask for none.",
    }});
    serde_json::to_string_pretty(&Document {
        openapi: &contract["openapi"],
        info: &contract["info"],
        security: &json!([{"key": []}]),
        tags: &contract["tags"],
        paths: &contract["paths"],
        components: &contract["components"],
    })
}

/// The order in which the contract is read best.
#[derive(Serialize)]
struct Document<'a> {
    openapi: &'a Value,
    info: &'a Value,
    security: &'a Value,
    tags: &'a Value,
    paths: &'a Value,
    components: &'a Value,
}

fn members(value: &mut Value) -> impl Iterator<Item = (&String, &mut Value)> {
    value.as_object_mut().into_iter().flatten()
}

/// What is said of a field that may be null belongs to the field, not to the form that is not null.
fn raise_descriptions(schemas: &mut Value) {
    for (_, schema) in members(schemas) {
        raise_description(schema);
        if let Some(properties) = schema.get_mut("properties") {
            raise_descriptions(properties);
        }
        let parts = schema.get_mut("allOf").and_then(Value::as_array_mut);
        for part in parts.into_iter().flatten() {
            if let Some(properties) = part.get_mut("properties") {
                raise_descriptions(properties);
            }
        }
    }
}

fn raise_description(schema: &mut Value) {
    let forms = schema.get_mut("oneOf").and_then(Value::as_array_mut);
    let forms = forms.into_iter().flatten();
    let described = forms.filter_map(Value::as_object_mut);
    let said = described
        .filter_map(|form| form.remove("description"))
        .last();
    if let (Some(said), true) = (said, schema["description"].is_null()) {
        schema["description"] = said;
    }
}

/// Puts the examples beside the request and the answer that they belong to.
fn add_examples(operation: &mut Value, examples: &Value) {
    let name = operation["operationId"].as_str().unwrap_or_default();
    let example = &examples[name];
    let status = example["status"].to_string();
    if let Some(request) = operation.get_mut("requestBody") {
        set_example(request, &example["request"]);
    }
    let answers = std::iter::once((&status, &example["answer"]));
    let others = example["others"].as_object().into_iter().flatten();
    for (status, example) in answers.chain(others) {
        if let Some(answer) = operation["responses"].get_mut(status) {
            set_example(answer, example);
        }
    }
    // What can also be followed comes as events then.
    if !example["event"].is_null() {
        let events = &mut operation["responses"][&status]["content"]["text/event-stream"];
        events["example"] = example["event"].clone();
    }
}

fn set_example(of: &mut Value, example: &Value) {
    let content = of.get_mut("content").and_then(Value::as_object_mut);
    for body in content.into_iter().flat_map(|content| content.values_mut()) {
        body["example"] = example.clone();
    }
}

pub(super) async fn serve() -> Response {
    let mut response = Response::new(Body::from(openapi_json()));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

#[cfg(test)]
mod bounds_tests;

#[cfg(test)]
mod tests {
    #[test]
    fn the_contract_can_be_written() {
        super::complete().unwrap();
    }
}
