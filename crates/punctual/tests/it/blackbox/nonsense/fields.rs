//! Every field of a request, wrong in every way.

use serde_json::{Value, json};

use super::Target;

const JSON: (&str, &str) = ("content-type", "application/json");
/// Stands where a token goes that may be no JSON at all.
const MARK: &str = "here it goes";

/// Values that are JSON, and mostly wrong.
fn tokens() -> Vec<String> {
    let mut tokens: Vec<String> = [
        "null",
        "true",
        "0",
        "1",
        "-1",
        "0.5",
        "-0",
        "1e308",
        "1e999",
        "18446744073709551616",
        "-9223372036854775809",
        "253402300800000",
        "\"\"",
        "\" \"",
        "\"x\"",
        "\"-1s\"",
        "\"0s\"",
        "\"99999999999999999999y\"",
        "\"P1Y2M3DT4H\"",
        "\"NaN\"",
        "\"2026-02-30T00:00:00Z\"",
        "\"0000-01-01T00:00:00Z\"",
        "\"9999-12-31T23:59:60Z\"",
        "\"* * * * * * * *\"",
        "\"0 0 30 2 *\"",
        "\"Mars/Olympus\"",
        "\"\\u0000\"",
        "\"\\ud800\"",
        "\"\\r\\nx: y\"",
        "\"ä€😀\"",
        "\"http://\"",
        "\"file:///etc/passwd\"",
        "[]",
        "[null]",
        "[[]]",
        "{}",
        "{\"a\":1}",
        "{\"\":{}}",
        "{\"a\":1,\"a\":2}",
    ]
    .map(str::to_owned)
    .to_vec();
    tokens.push(format!("\"{}\"", "long".repeat(5_000)));
    tokens.push(format!("{}{}", "[".repeat(200), "]".repeat(200)));
    tokens.push("9".repeat(5_000));
    tokens
}

/// Tokens that are not even JSON.
const BROKEN: [&str; 10] = [
    "", "nan", "01", "1.", "+1", "'x'", "\"\n\"", "\"\\x\"", "[1,]", "{\"a\"}",
];

/// A job with every field there is; one that is due once has nothing to pause.
fn full(schedule: Value) -> Value {
    let failures = schedule["at"].is_null().then_some(5);
    let mut job = json!({
        "key": "k", "schedule": schedule, "payload": { "a": 1 }, "timeout": "5m",
        "target": { "http": { "url": "http://127.0.0.1:9/", "method": "POST",
            "headers": { "x-a": "b" }, "output_max": 100 } },
        "retry": { "attempts_max": 4, "backoff": "exponential", "delay_first": "1s",
            "delay_max": "5m", "jitter": 0.3 },
        "lane": "standard", "overlap": { "policy": "queue_all", "max": 3 },
        "catch_up": { "policy": "latest", "window": "1h", "max": 5 }, "spread": "1s",
        "delivery": "at_least_once", "start_within": "10s", "finish_within": "10m",
        "labels": { "team": "ops" },
    });
    if let Some(failures) = failures {
        job["pause_after_failures"] = failures.into();
    }
    job
}

fn schedules() -> [Value; 3] {
    [
        json!({ "cron": "0 9 * * *", "timezone": "Europe/Berlin", "dialect": "unix",
            "dst_gap": "skip", "dst_overlap": "first" }),
        json!({ "every": "1h", "anchor": "2026-01-01T00:00:00Z", "timezone": "UTC" }),
        json!({ "at": "2099-01-01T00:00:00Z" }),
    ]
}

/// Every place in a document, from the outside in.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    if let Value::Object(fields) = value {
        for (name, inner) in fields {
            let place = format!("{at}/{name}");
            places(inner, &place, found);
            found.push(place);
        }
    }
}

fn with_token(job: &Value, place: &str, token: &str) -> String {
    let mut job = job.clone();
    *job.pointer_mut(place).unwrap() = json!(MARK);
    job.to_string().replace(&format!("\"{MARK}\""), token)
}

/// The same job without the field, with it twice, and with one beside it that nobody knows.
fn around(job: &Value, place: &str) -> [String; 3] {
    let (parent, name) = place.rsplit_once('/').unwrap();
    let mut without = job.clone();
    let fields = without.pointer_mut(parent).unwrap();
    let field = fields.as_object_mut().unwrap().remove(name).unwrap();
    let mut stranger = job.clone();
    stranger.pointer_mut(parent).unwrap()["stranger"] = json!(1);
    let twice = with_token(job, place, &format!("{field},\"{name}\":{field}"));
    [without.to_string(), stranger.to_string(), twice]
}

impl Target {
    /// Sends a document; a refusal must name the field that is wrong, or one that it makes wrong.
    #[track_caller]
    fn refuses_by_name(&mut self, method: &str, path: &str, body: &str, place: &str) {
        let reply = self.send(method, path, &[JSON], body.as_bytes());
        if reply.status != 422 {
            return;
        }
        let problem = reply.json();
        let field = problem["field"].as_str().unwrap_or_default();
        let top = place.split('/').nth(1).unwrap_or_default();
        let related = [
            "stranger", "schedule", "retry", "catch_up", "spread", "overlap",
        ];
        let named = field.split('.').next().unwrap_or_default();
        assert!(
            named == top || related.contains(&named),
            "{place} is wrong, but the answer says {problem}"
        );
    }
}

#[test]
fn every_field_wrong_in_every_way_is_refused_and_changes_nothing() {
    let mut target = Target::start();
    let tokens = tokens();
    let mut number = 0;
    for schedule in schedules() {
        let mut job = full(schedule);
        let mut found = Vec::new();
        places(&job, "", &mut found);
        for place in &found {
            for token in tokens.iter().map(String::as_str).chain(BROKEN) {
                number += 1;
                job["key"] = json!(format!("k{number}"));
                let body = with_token(&job, place, token);
                target.refuses_by_name("POST", "/v1/jobs", &body, place);
            }
            for body in around(&job, place) {
                target.send("POST", "/v1/jobs", &[JSON], body.as_bytes());
            }
        }
    }
    eprintln!("{} of {} made sense", target.created, target.sent);
    target.end_unharmed();
}

#[test]
fn edits_and_previews_of_nonsense_are_refused_too() {
    let mut target = Target::start();
    let [cron, every, _] = schedules();
    let job = full(cron);
    let made = target.send("POST", "/v1/jobs", &[JSON], job.to_string().as_bytes());
    let path = format!("/v1/jobs/{}", made.json()["id"].as_str().unwrap());
    let mut found = Vec::new();
    places(&job, "", &mut found);
    for place in &found {
        for token in tokens() {
            let body = with_token(&job, place, &token);
            target.send("PATCH", &path, &[JSON], body.as_bytes());
            target.send("PUT", "/v1/jobs/by-key/other", &[JSON], body.as_bytes());
        }
    }
    let preview = json!({ "schedule": every, "from": "2026-01-01T00:00:00Z", "count": 3 });
    let mut found = Vec::new();
    places(&preview, "", &mut found);
    for place in &found {
        for token in tokens().iter().map(String::as_str).chain(BROKEN) {
            let body = with_token(&preview, place, token);
            target.send("POST", "/v1/schedules/preview", &[JSON], body.as_bytes());
        }
    }
    assert_eq!(target.send("GET", &path, &[], b"").status, 200);
    target.end_unharmed();
}
