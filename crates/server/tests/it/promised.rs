//! What the contract says of the API is complete, and is what the server does.

use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::world::World;

/// The contract, read once.
pub fn contract() -> &'static Value {
    static CONTRACT: OnceLock<Value> = OnceLock::new();
    CONTRACT.get_or_init(|| serde_json::from_str(&server::openapi_json()).unwrap())
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// Every operation with its name: `POST /v1/jobs`.
fn operations() -> impl Iterator<Item = (String, &'static Value)> {
    members(&contract()["paths"]).flat_map(|(path, of_path)| {
        members(of_path).map(move |(method, it)| (format!("{} {path}", method.to_uppercase()), it))
    })
}

/// Whether a path is one of a template; `{key}` may be several parts long.
fn is_of(template: &str, path: &str) -> bool {
    let (mut template, mut path) = (template.split('/'), path.split('/'));
    loop {
        match (template.next(), path.next()) {
            (Some("{key}"), Some(_)) => return true,
            (Some(part), Some(found)) if part == found || part.starts_with('{') => {}
            (None, None) => return true,
            _ => return false,
        }
    }
}

/// Fails when an operation gave an answer that the contract does not name. Every answer in these tests comes by here.
#[track_caller]
pub fn is_promised(method: &str, path: &str, status: u16, body: &str) {
    let method = if method == "HEAD" {
        "get".to_owned()
    } else {
        method.to_lowercase()
    };
    let templates: Vec<_> = members(&contract()["paths"])
        .filter(|(template, _)| is_of(template, path))
        .collect();
    let exact = templates
        .iter()
        .find(|(template, _)| !template.contains('{'));
    let Some((template, of_path)) = exact.or(templates.first()) else {
        return;
    };
    let answers = &of_path[&method]["responses"];
    let problem: Value = serde_json::from_str(body).unwrap_or_default();
    // A path that only looks like one of ours is no operation's.
    if answers.is_null() || problem["type"] == "/problems/route-unknown" {
        return;
    }
    let promise = answers[status.to_string()]["description"].as_str();
    let named = |promise: &str| match problem["type"].as_str() {
        Some(problem) if status >= 400 => promise.contains(&format!("({problem})")),
        Some(_) | None => true,
    };
    assert!(
        promise.is_some_and(named),
        "the contract names no {status} of {method} {template}: {body}"
    );
}

#[test]
fn every_operation_has_an_example_and_names_its_refusals() {
    let mut lacking = Vec::new();
    for (name, operation) in operations() {
        let answers: Vec<_> = members(&operation["responses"]).collect();
        for class in ['2', '4', '5'] {
            let of_class = |(status, _): &&(&String, &Value)| {
                status.starts_with(class) && !status.contains('X')
            };
            if answers.iter().filter(of_class).count() == 0 {
                lacking.push(format!("{name}: no {class}xx"));
            }
        }
        let bodies = |it: &'static Value| members(&it["content"]).map(|(_, body)| body);
        let mut examples = answers.iter().flat_map(|(_, answer)| bodies(answer));
        if examples.all(|body| body["example"].is_null()) {
            lacking.push(format!("{name}: no example of an answer"));
        }
        if bodies(&operation["requestBody"]).any(|body| body["example"].is_null()) {
            lacking.push(format!("{name}: no example of a request"));
        }
        if operation["summary"].as_str().is_none_or(str::is_empty) {
            lacking.push(format!("{name}: no summary"));
        }
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            if parameter["description"].as_str().is_none_or(str::is_empty) {
                lacking.push(format!("{name}: {} is not described", parameter["name"]));
            }
        }
    }
    assert!(lacking.is_empty(), "{lacking:#?}");
}

/// Every property below a schema, also of its parts and forms.
fn undescribed(at: &str, schema: &Value, found: &mut Vec<String>) {
    for (name, property) in members(&schema["properties"]) {
        let at = format!("{at}.{name}");
        if property["description"].as_str().is_none_or(str::is_empty) {
            found.push(at.clone());
        }
        undescribed(&at, property, found);
    }
    for several in ["allOf", "oneOf", "anyOf"] {
        for part in schema[several].as_array().into_iter().flatten() {
            undescribed(at, part, found);
        }
    }
}

#[test]
fn every_schema_and_every_property_is_described() {
    let mut found = Vec::new();
    for (name, schema) in members(&contract()["components"]["schemas"]) {
        if schema["description"].as_str().is_none_or(str::is_empty) {
            found.push(name.clone());
        }
        undescribed(name, schema, &mut found);
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// What is one of some words, or several of them, says which.
#[test]
fn parameters_that_are_words_name_them() {
    for (path, operations) in members(&contract()["paths"]) {
        for (method, operation) in members(operations) {
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let name = parameter["name"].as_str().unwrap_or_default();
                let schema = &parameter["schema"];
                let words = match name {
                    "state" | "reason" | "waiting" => &schema["items"]["enum"],
                    "action" => &schema["enum"],
                    _ => continue,
                };
                assert!(words.is_array(), "{method} {path}: {name}");
            }
        }
    }
}

/// A number that somebody sends has both its ends, and a word is one of some words.
#[test]
fn every_number_and_every_list_that_is_read_is_bounded() {
    let mut found = Vec::new();
    for (name, schema) in members(&contract()["components"]["schemas"]) {
        let is_read = ["Request", "Body", "Patch"]
            .iter()
            .any(|end| name.ends_with(end))
            && name != "ProblemBody";
        for (field, property) in members(&schema["properties"]).filter(|_| is_read) {
            let is = |kind: &str| {
                property["type"] == kind
                    || property["type"]
                        .as_array()
                        .is_some_and(|all| all.contains(&json!(kind)))
            };
            let lacks = |bound: &str| property[bound].is_null();
            if (is("integer") || is("number")) && (lacks("minimum") || lacks("maximum"))
                || is("array") && lacks("maxItems")
            {
                found.push(format!("{name}.{field}"));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// A job with one thing about it that is another than usual, at a path such as `retry/backoff`.
fn job_with(path: &str, value: &Value) -> Value {
    let mut job = json!({"schedule": {"cron": "0 9 * * *"}, "target": {"http": {"url": "https://example.com/"}}});
    let mut place = &mut job;
    for part in path.split('/') {
        place = &mut place[part];
    }
    *place = value.clone();
    job
}

fn field(name: &str) -> &'static Value {
    let (schema, field) = name.split_once('.').unwrap();
    let field = &contract()["components"]["schemas"][schema]["properties"][field];
    assert!(field.is_object(), "{name}");
    field
}

const WORDS: [(&str, &str); 7] = [
    ("JobRequest.lane", "lane"),
    ("JobRequest.delivery", "delivery"),
    ("RetryRequest.backoff", "retry/backoff"),
    ("CatchUpRequest.policy", "catch_up/policy"),
    ("OverlapRequest.policy", "overlap/policy"),
    ("HttpRequest.method", "target/http/method"),
    ("ScheduleRequest.dialect", "schedule/dialect"),
];

#[tokio::test]
async fn every_word_of_the_contract_is_taken_and_no_other() {
    let world = World::new().await;
    let dst = [
        ("ScheduleRequest.dst_gap", "schedule/dst_gap"),
        ("ScheduleRequest.dst_overlap", "schedule/dst_overlap"),
    ];
    for (name, path) in WORDS.into_iter().chain(dst) {
        let words = field(name)["enum"].as_array().unwrap();
        assert!(words.len() >= 2, "{name}");
        for word in words {
            // To the Quartz dialect one of the days is a question mark.
            let mut job = job_with(path, word);
            if word == "quartz" {
                job["schedule"]["cron"] = json!("0 0 9 * * ?");
            }
            let reply = world.post("/v1/jobs?dry_run=true", job).await;
            assert_eq!(reply.status, 200, "{name}: {word}: {}", reply.text);
        }
        let reply = world
            .post("/v1/jobs?dry_run=true", job_with(path, &json!("nonsense")))
            .await;
        assert_eq!(reply.status, 422, "{name}: {}", reply.text);
    }
}

#[tokio::test]
async fn every_number_of_the_contract_is_taken_up_to_its_ends_and_no_further() {
    let world = World::new().await;
    let numbers = [
        ("RetryRequest.attempts_max", "retry/attempts_max"),
        ("RetryRequest.jitter", "retry/jitter"),
        ("CatchUpRequest.max", "catch_up/max"),
        ("HttpRequest.output_max", "target/http/output_max"),
        ("ScheduleRequest.runs_max", "schedule/runs_max"),
    ];
    for (name, path) in numbers {
        let (least, most) = (
            field(name)["minimum"].as_i64().unwrap(),
            field(name)["maximum"].as_i64().unwrap(),
        );
        for (number, status) in [(least, 200), (most, 200), (least - 1, 422), (most + 1, 422)] {
            let reply = world
                .post("/v1/jobs?dry_run=true", job_with(path, &json!(number)))
                .await;
            assert_eq!(reply.status, status, "{name}: {number}: {}", reply.text);
        }
    }
    let texts = [
        ("JobRequest.key", "key", "k"),
        ("HttpRequest.url", "target/http/url", "http://a/"),
    ];
    for (name, path, begin) in texts {
        let most = usize::try_from(field(name)["maxLength"].as_u64().unwrap()).unwrap();
        for (length, status) in [(most, 200), (most + 1, 422)] {
            let text = format!("{begin}{}", "x".repeat(length - begin.len()));
            let reply = world
                .post("/v1/jobs?dry_run=true", job_with(path, &json!(text)))
                .await;
            assert_eq!(reply.status, status, "{name}: {length}: {}", reply.text);
        }
    }
}

#[tokio::test]
async fn every_example_of_a_request_is_taken() {
    let world = World::new().await;
    world
        .put("/v1/calendars/spare", json!({"dates": ["2027-01-01"]}))
        .await
        .is(201);
    world
        .post("/v1/tenants", json!({"name": "spare"}))
        .await
        .is(201);
    let user = json!({"name": "spare", "password": "correct horse battery", "role": "reader"});
    world.post("/v1/users", user).await.is(201);
    for (name, operation) in operations() {
        let (method, path) = name.split_once(' ').unwrap();
        for (media_type, body) in members(&operation["requestBody"]["content"]) {
            let example = &body["example"];
            let job = world.job(crate::world::OK).await;
            let run = world.run(&job).await;
            world.wait(&run, &["succeeded"]).await;
            if path.ends_with("/resume") {
                world
                    .post_empty(&format!("/v1/jobs/{job}/pause"))
                    .await
                    .is(200);
            }
            if ["/report", "/heartbeat", "/log"]
                .iter()
                .any(|it| path.ends_with(it))
            {
                // They take a token: `outside` has one.
                continue;
            }
            if path.ends_with("jobs/{id}/replay") {
                // It has no dead run: what the body says is read before.
                continue;
            }
            let id = if path.starts_with("/v1/runs") {
                &run
            } else {
                &job
            };
            let path = path
                .replace("{id}", id)
                .replace("{key}", "a-key")
                .replace("{name}", "spare");
            let text = example
                .as_str()
                .map_or_else(|| example.to_string(), str::to_owned);
            let reply = world
                .call(method, &path, &[("content-type", media_type)], text)
                .await;
            assert!(
                reply.status.is_success(),
                "{name}: {}: {}",
                reply.status,
                reply.text
            );
        }
    }
}
