//! Every field of a job wrong in every way: each is refused with its field, and changes nothing.

use serde_json::{Value, json};

use crate::world::{OK, World};

/// A body that would be taken, with one field replaced.
fn with(field: &str, value: Value) -> Value {
    let mut body = json!({"schedule": "@daily", "target": OK});
    body[field] = value;
    body
}

/// The same with the value as text, which may be more than a `Value` can hold.
fn with_text(field: &str, value: &str) -> String {
    let body = json!({"schedule": "@daily", "target": OK, field: "<here>"});
    body.to_string().replace("\"<here>\"", value)
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
    for (name, calendar) in [
        ("stands", json!({"weekly": ["SAT-SUN"]})),
        ("always", json!({"weekly": ["MON-SUN"]})),
        ("long-ago", json!({"dates": ["2001-01-01"]})),
    ] {
        let path = format!("/v1/calendars/{name}");
        world.put(&path, calendar).await.is(201);
    }
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
            // An empty list is none.
            "exclude" | "only" => *value == json!([]),
            "pause_after_failures" => *value == json!(7),
            _ => value.is_null(),
        };
        all.into_iter().filter(|value| !fits(value)).collect()
    };
    for field in [
        "key",
        "schedule",
        "exclude",
        "only",
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
        "pause_after_failures",
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

/// Lines of `value -> problem field`.
async fn check_table(world: &World, top: &str, table: &str) {
    for line in table.lines() {
        let (value, expected) = line.split_once(" -> ").unwrap();
        let (problem, field) = expected.split_once(' ').unwrap();
        check(world, &with_text(top, value), problem, Some(field)).await;
    }
}

#[tokio::test]
async fn schedules_that_cannot_be_are_refused() {
    let world = world().await;
    check_table(&world, "schedule", include_str!("refusals/schedule.txt")).await;
    let long = json!("0 0 * * ".repeat(100)).to_string();
    check(
        &world,
        &with_text("schedule", &long),
        "schedule-invalid",
        Some("schedule"),
    )
    .await;
    let many = json!({"cron": vec!["@daily"; 17]});
    check(
        &world,
        &with("schedule", many).to_string(),
        "field-invalid",
        Some("schedule.cron"),
    )
    .await;
}

#[tokio::test]
async fn targets_that_cannot_be_called_are_refused() {
    let world = world().await;
    check_table(&world, "target", include_str!("refusals/target.txt")).await;
    let long = json!(format!("http://a/{}", "b".repeat(2_048)));
    check(
        &world,
        &with("target", long).to_string(),
        "field-invalid",
        Some("target"),
    )
    .await;
    let many: serde_json::Map<_, _> = (10..43).map(|n| (format!("x-{n}"), json!("y"))).collect();
    let body = with("target", json!({"http": {"url": OK, "headers": many}})).to_string();
    check(
        &world,
        &body,
        "field-invalid",
        Some("target.http.headers.x-42"),
    )
    .await;
}

#[tokio::test]
async fn values_out_of_range_are_refused() {
    let world = world().await;
    for line in include_str!("refusals/values.txt").lines() {
        let (top, rest) = line.split_once(' ').unwrap();
        check_table(&world, top, rest).await;
    }
    let long = "x".repeat(129);
    check(
        &world,
        &with("key", json!(long)).to_string(),
        "field-invalid",
        Some("key"),
    )
    .await;
    let value = with("labels", json!({"a": long})).to_string();
    check(&world, &value, "field-invalid", Some("labels.a")).await;
    let name = with("labels", json!({long.as_str(): "x"})).to_string();
    let shown = format!("labels.{}", "x".repeat(64));
    check(&world, &name, "field-invalid", Some(&shown)).await;
    let many: serde_json::Map<_, _> = (0..33).map(|n| (format!("l{n}"), json!("x"))).collect();
    check(
        &world,
        &with("labels", json!(many)).to_string(),
        "field-invalid",
        Some("labels"),
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
}

#[tokio::test]
async fn fields_that_must_be_there_are_named() {
    let world = World::new().await;
    for (body, field) in [
        (json!({}), "schedule"),
        (json!({"target": OK}), "schedule"),
        (json!({"schedule": null, "target": OK}), "schedule"),
        (json!({"schedule": "@daily"}), "target"),
        (json!({"schedule": "@daily", "target": null}), "target"),
        (json!({"schedule": {}, "target": OK}), "schedule"),
        (
            json!({"schedule": {"timezone": "UTC"}, "target": OK}),
            "schedule",
        ),
        (
            json!({"schedule": "@daily", "target": {"http": {}}}),
            "target.http.url",
        ),
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
