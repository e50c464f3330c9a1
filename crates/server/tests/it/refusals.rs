//! Every field of a job wrong in every way: each is refused with its field, and changes nothing.

use serde_json::{Value, json};

use crate::world::{OK, World};

/// A body that would be taken, with one field replaced.
fn with(field: &str, value: Value) -> Value {
    let mut body = json!({"schedule": "@daily", "target": OK});
    body[field] = value;
    body
}

/// Sends a body as create, as edit and as create-or-update; all three must refuse it alike.
async fn check(world: &World, body: &str, problem: &str, field: Option<&str>) {
    let before = world.snapshot();
    let job = world.store.all_jobs().first().unwrap().id;
    for (method, path) in [
        ("POST", "/v1/jobs".to_owned()),
        ("PATCH", format!("/v1/jobs/{job}")),
        ("PUT", "/v1/jobs/by-key/stands".to_owned()),
        ("PUT", "/v1/jobs/by-key/new".to_owned()),
    ] {
        let reply = world.call(method, &path, &[], body.to_owned()).await;
        let shown: String = body.chars().take(300).collect();
        assert!(
            reply.status.is_client_error(),
            "{method} {shown}: {} {}",
            reply.status,
            reply.text
        );
        let found = reply.problem();
        let found = (found.0.as_str(), found.1.as_deref());
        assert_eq!(found, (problem, field), "{method} {shown}: {}", reply.text);
    }
    assert_eq!(world.snapshot(), before, "{body}");
}

async fn world() -> World {
    let world = World::new().await;
    let body = json!({"schedule": "@yearly", "target": OK});
    world.put("/v1/jobs/by-key/stands", body).await.is(201);
    world
}

#[tokio::test]
async fn fields_of_the_wrong_type_are_refused() {
    let world = world().await;
    let wrong = |field: &str| -> Vec<Value> {
        let all = [
            json!(true),
            json!(7),
            json!(-1.5),
            json!("?!"),
            json!([]),
            json!([1]),
            json!({"x": 1}),
        ];
        let fits = |value: &Value| match field {
            "schedule" | "target" | "lane" | "delivery" => false,
            _ => value.is_null(),
        };
        all.into_iter().filter(|value| !fits(value)).collect()
    };
    for field in [
        "key",
        "schedule",
        "target",
        "retry",
        "timeout",
        "lane",
        "overlap",
        "catch_up",
        "spread",
        "delivery",
        "start_within",
        "finish_within",
        "labels",
    ] {
        for value in wrong(field) {
            let body = with(field, value.clone());
            let (problem, at) = match (field, &value) {
                ("schedule", Value::String(_)) => ("schedule-invalid", field.to_owned()),
                ("schedule" | "target" | "retry" | "overlap" | "catch_up", Value::Object(_)) => {
                    ("field-unknown", format!("{field}.x"))
                }
                ("labels", Value::Object(_)) => ("field-invalid", "labels.x".to_owned()),
                _ => ("field-invalid", field.to_owned()),
            };
            check(&world, &body.to_string(), problem, Some(&at)).await;
        }
    }
}

#[tokio::test]
async fn schedules_that_cannot_be_are_refused() {
    let world = world().await;
    let long = "0 0 * * ".repeat(100);
    for (schedule, problem, field) in [
        (json!(""), "schedule-invalid", "schedule"),
        (json!("   "), "schedule-invalid", "schedule"),
        (json!("* * * *"), "schedule-invalid", "schedule"),
        (json!("75 * * * *"), "schedule-invalid", "schedule"),
        (json!("0 0 30 2 *"), "schedule-invalid", "schedule"),
        (json!("@sometimes"), "schedule-invalid", "schedule"),
        (json!("@every"), "schedule-invalid", "schedule"),
        (json!("@every 0s"), "schedule-invalid", "schedule"),
        (
            json!("CRON_TZ=Mars/Olympus 0 0 * * *"),
            "schedule-invalid",
            "schedule",
        ),
        (json!("0 0 * * *\u{0}"), "schedule-invalid", "schedule"),
        (json!(long), "schedule-invalid", "schedule"),
        (json!({}), "field-missing", "schedule"),
        (json!({"cron": null}), "field-missing", "schedule"),
        (json!({"timezone": "UTC"}), "field-missing", "schedule"),
        (json!({"cron": ""}), "schedule-invalid", "schedule.cron"),
        (json!({"cron": []}), "schedule-invalid", "schedule.cron"),
        (
            json!({"cron": ["@daily", ""]}),
            "schedule-invalid",
            "schedule.cron",
        ),
        (
            json!({"cron": vec!["@daily"; 17]}),
            "field-invalid",
            "schedule.cron",
        ),
        (json!({"cron": 5}), "field-invalid", "schedule.cron"),
        (json!({"cron": [5]}), "field-invalid", "schedule.cron"),
        (json!({"cron": {"a": 1}}), "field-invalid", "schedule.cron"),
        (
            json!({"cron": "@daily", "every": "1h"}),
            "field-invalid",
            "schedule",
        ),
        (
            json!({"cron": "@daily", "timezone": "Mars/Olympus"}),
            "schedule-invalid",
            "schedule.timezone",
        ),
        (
            json!({"cron": "@daily", "timezone": ""}),
            "schedule-invalid",
            "schedule.timezone",
        ),
        (
            json!({"cron": "@daily", "timezone": "+02:00"}),
            "schedule-invalid",
            "schedule.timezone",
        ),
        (
            json!({"cron": "@daily", "timezone": 1}),
            "field-invalid",
            "schedule.timezone",
        ),
        (
            json!({"cron": "@daily", "dialect": "vixie"}),
            "field-invalid",
            "schedule.dialect",
        ),
        (
            json!({"cron": "@daily", "dst_gap": "both"}),
            "field-invalid",
            "schedule.dst_gap",
        ),
        (
            json!({"cron": "@daily", "dst_overlap": 1}),
            "field-invalid",
            "schedule.dst_overlap",
        ),
        (
            json!({"cron": "@daily", "anchor": "2026-01-01T00:00:00Z"}),
            "field-invalid",
            "schedule.anchor",
        ),
        (
            json!({"cron": "@daily", "zone": "UTC"}),
            "field-unknown",
            "schedule.zone",
        ),
        (json!({"every": "0s"}), "schedule-invalid", "schedule.every"),
        (
            json!({"every": "-5m"}),
            "schedule-invalid",
            "schedule.every",
        ),
        (
            json!({"every": "PT0S"}),
            "schedule-invalid",
            "schedule.every",
        ),
        (
            json!({"every": "1ms"}),
            "schedule-invalid",
            "schedule.every",
        ),
        (
            json!({"every": "99999999999999999999h"}),
            "schedule-invalid",
            "schedule.every",
        ),
        (
            json!({"every": "P200Y"}),
            "schedule-invalid",
            "schedule.every",
        ),
        (
            json!({"every": "P1DT1H"}),
            "schedule-invalid",
            "schedule.every",
        ),
        (
            json!({"every": "soon"}),
            "schedule-invalid",
            "schedule.every",
        ),
        (json!({"every": 60}), "field-invalid", "schedule.every"),
        (
            json!({"every": "1h", "anchor": "now"}),
            "field-invalid",
            "schedule.anchor",
        ),
        (
            json!({"every": "1h", "timezone": "Nowhere"}),
            "schedule-invalid",
            "schedule.timezone",
        ),
        (
            json!({"every": "1h", "dst_gap": "skip"}),
            "field-invalid",
            "schedule.dst_gap",
        ),
        (
            json!({"at": "2026-02-30T00:00:00Z"}),
            "field-invalid",
            "schedule.at",
        ),
        (
            json!({"at": "2026-13-01T00:00:00Z"}),
            "field-invalid",
            "schedule.at",
        ),
        (
            json!({"at": "2099-01-01T25:00:00Z"}),
            "field-invalid",
            "schedule.at",
        ),
        (
            json!({"at": "2099-01-01T00:00:00"}),
            "field-invalid",
            "schedule.at",
        ),
        (json!({"at": "2099-01-01"}), "field-invalid", "schedule.at"),
        (json!({"at": "tomorrow"}), "field-invalid", "schedule.at"),
        (
            json!({"at": "10000-01-01T00:00:00Z"}),
            "field-invalid",
            "schedule.at",
        ),
        (json!({"at": ""}), "field-invalid", "schedule.at"),
        (json!({"at": true}), "field-invalid", "schedule.at"),
        (json!({"at": -1}), "field-invalid", "schedule.at"),
        (json!({"at": 1.5}), "field-invalid", "schedule.at"),
        (json!({"at": i64::MAX}), "field-invalid", "schedule.at"),
        (json!({"at": u64::MAX}), "field-invalid", "schedule.at"),
        (json!({"at": 1e300}), "field-invalid", "schedule.at"),
        (
            json!({"at": "2020-01-01T00:00:00Z"}),
            "in-past",
            "schedule.at",
        ),
        (json!({"at": 0}), "in-past", "schedule.at"),
        (
            json!({"at": "2099-01-01T00:00:00Z", "timezone": "UTC"}),
            "field-invalid",
            "schedule.timezone",
        ),
        (json!({"in": "-2h"}), "field-invalid", "schedule.in"),
        (json!({"in": 7200}), "field-invalid", "schedule.in"),
        (json!({"in": "2 hours"}), "field-invalid", "schedule.in"),
        (json!({"in": "P1M"}), "field-invalid", "schedule.in"),
        (json!({"in": "9999999w"}), "field-invalid", "schedule.in"),
    ] {
        check(
            &world,
            &with("schedule", schedule).to_string(),
            problem,
            Some(field),
        )
        .await;
    }
}

#[tokio::test]
async fn targets_that_cannot_be_called_are_refused() {
    let world = world().await;
    let http = |value: Value| json!({"http": value});
    let many: serde_json::Map<_, _> = (0..33).map(|n| (format!("x-{n}"), json!("y"))).collect();
    let long = format!("http://a/{}", "b".repeat(2_048));
    for (target, problem, field) in [
        (json!(""), "field-invalid", "target"),
        (json!("example.com"), "field-invalid", "target"),
        (json!("ftp://example.com/"), "field-invalid", "target"),
        (json!("file:///etc/passwd"), "field-invalid", "target"),
        (
            json!("https://user:secret@example.com/"),
            "field-invalid",
            "target",
        ),
        (json!("https:///path"), "field-invalid", "target"),
        (json!("http://a:0/"), "field-invalid", "target"),
        (json!("http://a b/"), "field-invalid", "target"),
        (json!("http://a/\u{0}"), "field-invalid", "target"),
        (json!(long), "field-invalid", "target"),
        (json!({}), "field-missing", "target"),
        (json!({"http": null}), "field-missing", "target"),
        (
            json!({"shell": {"command": "rm"}}),
            "field-unknown",
            "target.shell",
        ),
        (json!({"fake": "x"}), "field-unknown", "target.fake"),
        (http(json!("http://a/")), "field-invalid", "target.http"),
        (http(json!({})), "field-missing", "target.http.url"),
        (http(json!({"url": 5})), "field-invalid", "target.http.url"),
        (
            http(json!({"url": "gopher://a/"})),
            "field-invalid",
            "target.http.url",
        ),
        (
            http(json!({"url": OK, "method": "BREW"})),
            "field-invalid",
            "target.http.method",
        ),
        (
            http(json!({"url": OK, "method": "post"})),
            "field-invalid",
            "target.http.method",
        ),
        (
            http(json!({"url": OK, "method": 1})),
            "field-invalid",
            "target.http.method",
        ),
        (
            http(json!({"url": OK, "headers": []})),
            "field-invalid",
            "target.http.headers",
        ),
        (
            http(json!({"url": OK, "headers": {"x-a": 1}})),
            "field-invalid",
            "target.http.headers.x-a",
        ),
        (
            http(json!({"url": OK, "headers": {"x-a": "b\r\nc: d"}})),
            "field-invalid",
            "target.http.headers.x-a",
        ),
        (
            http(json!({"url": OK, "headers": {"x-a": "\u{0}"}})),
            "field-invalid",
            "target.http.headers.x-a",
        ),
        (
            http(json!({"url": OK, "headers": {"a b": "c"}})),
            "field-invalid",
            "target.http.headers.a b",
        ),
        (
            http(json!({"url": OK, "headers": {"Host": "c"}})),
            "field-invalid",
            "target.http.headers.Host",
        ),
        (
            http(json!({"url": OK, "headers": {"Punctual-Run": "c"}})),
            "field-invalid",
            "target.http.headers.Punctual-Run",
        ),
        (
            http(json!({"url": OK, "headers": {"Content-Length": "0"}})),
            "field-invalid",
            "target.http.headers.Content-Length",
        ),
        (
            http(json!({"url": OK, "headers": {"X-A": "1", "x-a": "2"}})),
            "field-invalid",
            "target.http.headers.x-a",
        ),
        (
            http(json!({"url": OK, "headers": many})),
            "field-invalid",
            "target.http.headers.x-9",
        ),
        (
            http(json!({"url": OK, "output_max": -1})),
            "field-invalid",
            "target.http.output_max",
        ),
        (
            http(json!({"url": OK, "output_max": 65_537})),
            "field-invalid",
            "target.http.output_max",
        ),
        (
            http(json!({"url": OK, "output_max": "4k"})),
            "field-invalid",
            "target.http.output_max",
        ),
        (
            http(json!({"url": OK, "urls": []})),
            "field-unknown",
            "target.http.urls",
        ),
    ] {
        check(
            &world,
            &with("target", target).to_string(),
            problem,
            Some(field),
        )
        .await;
    }
}

#[tokio::test]
async fn values_out_of_range_are_refused() {
    let world = world().await;
    let long = "x".repeat(129);
    let labels: serde_json::Map<_, _> = (0..33).map(|n| (format!("l{n}"), json!("x"))).collect();
    for (top, value, field) in [
        ("retry", json!({"attempts_max": 0}), "retry.attempts_max"),
        ("retry", json!({"attempts_max": 101}), "retry.attempts_max"),
        ("retry", json!({"attempts_max": -1}), "retry.attempts_max"),
        ("retry", json!({"attempts_max": 1.5}), "retry.attempts_max"),
        (
            "retry",
            json!({"attempts_max": i64::MAX}),
            "retry.attempts_max",
        ),
        (
            "retry",
            json!({"attempts_max": u64::MAX}),
            "retry.attempts_max",
        ),
        ("retry", json!({"attempts_max": "4"}), "retry.attempts_max"),
        ("retry", json!({"backoff": "random"}), "retry.backoff"),
        ("retry", json!({"delay_first": "0s"}), "retry.delay_first"),
        ("retry", json!({"delay_first": "-1s"}), "retry.delay_first"),
        ("retry", json!({"delay_first": "10m"}), "retry.delay_first"),
        ("retry", json!({"delay_first": 1}), "retry.delay_first"),
        ("retry", json!({"delay_max": "25h"}), "retry.delay_max"),
        ("retry", json!({"delay_max": "0.0001s"}), "retry.delay_max"),
        ("retry", json!({"jitter": 1.01}), "retry.jitter"),
        ("retry", json!({"jitter": -0.1}), "retry.jitter"),
        ("retry", json!({"jitter": "0.3"}), "retry.jitter"),
        ("retry", json!({"jitter": 1e308}), "retry.jitter"),
        ("timeout", json!("0s"), "timeout"),
        ("timeout", json!("25h"), "timeout"),
        ("timeout", json!("5"), "timeout"),
        ("timeout", json!("5 m"), "timeout"),
        ("timeout", json!(""), "timeout"),
        ("timeout", json!("99999999999999999999s"), "timeout"),
        ("timeout", json!("P1Y"), "timeout"),
        ("lane", json!("express"), "lane"),
        ("lane", json!("Standard"), "lane"),
        ("overlap", json!("never"), "overlap"),
        (
            "overlap",
            json!({"policy": "skip", "max": 1}),
            "overlap.max",
        ),
        (
            "overlap",
            json!({"policy": "queue_all", "max": 0}),
            "overlap.max",
        ),
        (
            "overlap",
            json!({"policy": "queue_all", "max": 101}),
            "overlap.max",
        ),
        ("catch_up", json!("some"), "catch_up"),
        ("catch_up", json!({"policy": "some"}), "catch_up.policy"),
        ("catch_up", json!({"window": "-1h"}), "catch_up.window"),
        ("catch_up", json!({"window": "31d"}), "catch_up.window"),
        ("catch_up", json!({"max": 0}), "catch_up.max"),
        ("catch_up", json!({"max": 10_001}), "catch_up.max"),
        ("spread", json!("24h"), "spread"),
        ("spread", json!("-1s"), "spread"),
        ("spread", json!(30), "spread"),
        ("delivery", json!("exactly_once"), "delivery"),
        ("start_within", json!("0s"), "start_within"),
        ("start_within", json!("31d"), "start_within"),
        ("finish_within", json!("0ms"), "finish_within"),
        ("finish_within", json!("9w"), "finish_within"),
        ("key", json!(""), "key"),
        ("key", json!(long), "key"),
        ("key", json!("a b"), "key"),
        ("key", json!("a\u{0}"), "key"),
        ("key", json!("schlüssel"), "key"),
        ("key", json!("job_x"), "key"),
        ("key", json!("'; DROP TABLE jobs; --"), "key"),
        ("labels", json!({"": "x"}), "labels"),
        ("labels", json!({"a b": "x"}), "labels.a b"),
        ("labels", json!({"a:b": "x"}), "labels.a:b"),
        ("labels", json!({"a": long}), "labels.a"),
        ("labels", json!({"a": "b\u{0}"}), "labels.a"),
        ("labels", json!({"a": "b\nc"}), "labels.a"),
        ("labels", json!({"a": 1}), "labels.a"),
        ("labels", json!({"a": ["b"]}), "labels.a"),
        ("labels", json!(labels), "labels"),
    ] {
        check(
            &world,
            &with(top, value).to_string(),
            "field-invalid",
            Some(field),
        )
        .await;
    }
    let name = json!({long.as_str(): "x"});
    let shown = format!("labels.{}", "x".repeat(64));
    check(
        &world,
        &with("labels", name).to_string(),
        "field-invalid",
        Some(&shown),
    )
    .await;
    let missing = with("overlap", json!({"max": 1}));
    check(
        &world,
        &missing.to_string(),
        "field-missing",
        Some("overlap.policy"),
    )
    .await;
}

#[tokio::test]
async fn a_spread_is_shorter_than_the_period() {
    let world = world().await;
    for (schedule, spread) in [
        (json!({"every": "1m"}), "1m"),
        (json!("* * * * *"), "60s"),
        (json!("@hourly"), "2h"),
    ] {
        let body = json!({"schedule": schedule, "target": OK, "spread": spread});
        check(&world, &body.to_string(), "field-invalid", Some("spread")).await;
    }
    let body = json!({"schedule": {"every": "1m"}, "target": OK, "spread": "59s"});
    world.post("/v1/jobs", body).await.is(201);
}

#[tokio::test]
async fn unknown_fields_are_named_with_the_nearest_known() {
    let world = world().await;
    for (field, near) in [
        ("tiemout", "timeout"),
        ("shedule", "schedule"),
        ("Lane", "lane"),
        ("label", "labels"),
        ("catchup", "catch_up"),
    ] {
        let reply = world.post("/v1/jobs", with(field, json!("x"))).await;
        assert_eq!(
            reply.problem(),
            ("field-unknown".to_owned(), Some(field.to_owned()))
        );
        assert!(
            reply
                .get("detail")
                .contains(&format!("did you mean \"{near}\"")),
            "{}",
            reply.text
        );
    }
    for field in [
        "id",
        "tenant",
        "tenant_id",
        "state",
        "version",
        "next_slot",
        "role",
        "created_at",
        "paused",
        "",
        "__proto__",
    ] {
        let at = (!field.is_empty()).then_some(field);
        check(
            &world,
            &with(field, json!("x")).to_string(),
            "field-unknown",
            at,
        )
        .await;
    }
    for (top, value, field) in [
        ("retry", json!({"max_attempts": 3}), "retry.max_attempts"),
        ("catch_up", json!({"windows": "1h"}), "catch_up.windows"),
        ("overlap", json!({"policy": "skip", "mx": 1}), "overlap.mx"),
    ] {
        check(
            &world,
            &with(top, value).to_string(),
            "field-unknown",
            Some(field),
        )
        .await;
    }
}

#[tokio::test]
async fn fields_that_must_be_there_are_asked_for() {
    let world = World::new().await;
    for (body, field) in [
        (json!({}), "schedule"),
        (json!({"target": OK}), "schedule"),
        (json!({"schedule": null, "target": OK}), "schedule"),
        (json!({"schedule": "@daily"}), "target"),
        (json!({"schedule": "@daily", "target": null}), "target"),
    ] {
        for (method, path) in [("POST", "/v1/jobs"), ("PUT", "/v1/jobs/by-key/new")] {
            let reply = world.call(method, path, &[], body.to_string()).await;
            assert_eq!(
                reply.problem(),
                ("field-missing".to_owned(), Some(field.to_owned()))
            );
        }
    }
    assert!(world.store.all_jobs().is_empty());
}

#[tokio::test]
async fn the_same_field_twice_is_refused() {
    let world = world().await;
    for (body, field) in [
        (
            format!(r#"{{"schedule":"@daily","target":"{OK}","schedule":"@hourly"}}"#),
            "schedule",
        ),
        (
            format!(r#"{{"schedule":"@daily","target":"{OK}","t\u0061rget":"{OK}"}}"#),
            "target",
        ),
        (
            format!(r#"{{"schedule":"@daily","target":"{OK}","retry":{{"jitter":0,"jitter":1}}}}"#),
            "retry.jitter",
        ),
        (
            format!(r#"{{"schedule":"@daily","target":"{OK}","labels":{{"a":"b","a":"c"}}}}"#),
            "labels.a",
        ),
        (
            format!(r#"{{"schedule":{{"cron":"@daily","cron":"@daily"}},"target":"{OK}"}}"#),
            "schedule.cron",
        ),
    ] {
        check(&world, &body, "field-duplicate", Some(field)).await;
    }
}

#[tokio::test]
async fn a_payload_has_a_bound() {
    let world = world().await;
    let payload = "x".repeat(256 * 1024);
    check(
        &world,
        &with("payload", json!(payload)).to_string(),
        "field-invalid",
        Some("payload"),
    )
    .await;
    let fits = "x".repeat(256 * 1024 - 2);
    world
        .post("/v1/jobs", with("payload", json!(fits)))
        .await
        .is(201);
}

#[tokio::test]
async fn what_is_no_json_is_refused() {
    let world = world().await;
    let good = with("lane", json!("batch")).to_string();
    let deep = |depth: usize| {
        format!(
            r#"{{"payload":{}{}}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        )
    };
    for (body, problem, field) in [
        (" ".to_owned(), "body-unreadable", None),
        ("\u{feff}{}".to_owned(), "body-unreadable", None),
        ("nonsense".to_owned(), "body-unreadable", None),
        ("{".to_owned(), "body-unreadable", None),
        (
            good.trim_end_matches('}').to_owned(),
            "body-unreadable",
            None,
        ),
        (format!("{good} x"), "body-unreadable", None),
        (format!("{good}{good}"), "body-unreadable", None),
        (good.replace('"', "'"), "body-unreadable", None),
        (good.replace("\"batch\"", "NaN"), "body-unreadable", None),
        (good.replace("\"batch\"", "01"), "body-unreadable", None),
        (
            good.replace("\"batch\"", "\"a\nb\""),
            "body-unreadable",
            None,
        ),
        (
            good.replace("\"batch\"", "\"batch\","),
            "body-unreadable",
            None,
        ),
        (
            good.replace("\"batch\"", "\"\\ud800\""),
            "field-invalid",
            Some("lane"),
        ),
        ("[]".to_owned(), "field-invalid", None),
        ("null".to_owned(), "field-invalid", None),
        ("5".to_owned(), "field-invalid", None),
        ("\"text\"".to_owned(), "field-invalid", None),
        (deep(32), "too-deep", Some("payload")),
        (deep(100_000), "too-deep", Some("payload")),
        ("[".repeat(100_000), "too-deep", None),
    ] {
        check(&world, &body, problem, field).await;
    }
    let many: serde_json::Map<_, _> = (0..5_000).map(|n| (format!("f{n}"), json!(n))).collect();
    check(
        &world,
        &Value::Object(many).to_string(),
        "field-invalid",
        None,
    )
    .await;
}
