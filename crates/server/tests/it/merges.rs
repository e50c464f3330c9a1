//! One merge rule for edits: what is not mentioned stays, null removes, names within headers and labels are merged.

use serde_json::{Value, json};

use crate::world::{OK, World};

/// Creates a job of this schedule and edits it; its schedule afterwards.
async fn edited(stands: Value, edit: Value) -> Value {
    let world = World::new().await;
    let body = json!({"schedule": stands, "target": OK});
    let job = world.post("/v1/jobs", body).await.is(201).get("id");
    let path = format!("/v1/jobs/{job}");
    let changed = world.patch(&path, json!({"schedule": edit})).await.is(200);
    changed.json()["schedule"].clone()
}

/// Some fields of a schedule.
fn of(schedule: &Value, names: &[&str]) -> Value {
    names
        .iter()
        .map(|name| ((*name).to_owned(), schedule[*name].clone()))
        .collect()
}

#[tokio::test]
async fn another_expression_keeps_the_zone_and_all_that_stands_beside_it() {
    let stands = json!({"cron": "0 9 * * *", "timezone": "Asia/Tokyo", "dst_gap": "skip", "dst_overlap": "both",
        "ends_at": "2099-01-01T00:00:00.000Z", "runs_max": 5});
    let names = ["timezone", "dst_gap", "dst_overlap", "ends_at", "runs_max"];
    let kept = of(&stands, &names);
    for edit in [json!("0 10 * * *"), json!({"cron": "0 10 * * *"})] {
        let after = edited(stands.clone(), edit).await;
        assert_eq!(after["cron"], "0 10 * * *");
        assert_eq!(of(&after, &names), kept);
    }
    let after = edited(stands.clone(), json!({"every": "P1D"})).await;
    let shared = ["timezone", "ends_at", "runs_max"];
    assert_eq!(of(&after, &shared), of(&stands, &shared));
    assert_eq!(after["dst_gap"], Value::Null, "an interval has none");
    let after = edited(stands.clone(), json!({"at": "2098-01-01T00:00:00Z"})).await;
    assert_eq!(after, json!({"at": "2098-01-01T00:00:00.000Z"}));
    let after = edited(stands, json!("CRON_TZ=Europe/Berlin 0 10 * * *")).await;
    assert_eq!(after["timezone"], "Europe/Berlin", "it brings its own zone");
}

#[tokio::test]
async fn what_stands_beside_an_expression_changes_without_it() {
    let stands = json!({"cron": "0 9 * * *", "timezone": "Asia/Tokyo", "runs_max": 5});
    let edit = json!({"timezone": "Europe/Berlin", "runs_max": null, "dst_gap": "skip"});
    let after = edited(stands.clone(), edit).await;
    assert_eq!(
        of(&after, &["cron", "timezone", "runs_max", "dst_gap"]),
        json!({"cron": "0 9 * * *", "timezone": "Europe/Berlin", "runs_max": null, "dst_gap": "skip"})
    );
    let after = edited(stands.clone(), json!({"timezone": null})).await;
    assert_eq!(after["timezone"], "UTC", "null is the default");
    assert_eq!(edited(stands, json!({})).await["runs_max"], 5);
}

#[tokio::test]
async fn an_interval_keeps_its_anchor_unless_it_is_counted_again() {
    let anchor = "2026-01-01T00:05:00.000Z";
    let stands = json!({"every": "15m", "anchor": anchor, "after_completion": true});
    let after = edited(stands.clone(), json!({"every": "30m"})).await;
    assert_eq!(
        of(&after, &["every", "anchor", "after_completion"]),
        json!({"every": "30m", "anchor": anchor, "after_completion": true})
    );
    let after = edited(stands.clone(), json!("@every 1h")).await;
    assert_eq!(
        of(&after, &["every", "anchor", "after_completion"]),
        json!({"every": "1h", "anchor": anchor, "after_completion": true})
    );
    let start = "2098-01-01T00:00:00.000Z";
    let after = edited(stands.clone(), json!({"starts_at": start})).await;
    assert_eq!(
        of(&after, &["anchor", "starts_at"]),
        json!({"anchor": anchor, "starts_at": start})
    );
    let after = edited(stands.clone(), json!({"every": "1h", "starts_at": start})).await;
    assert_eq!(
        after["anchor"], start,
        "said with its start, it is counted from there"
    );
    let after = edited(stands, json!({"anchor": null})).await;
    assert_ne!(after["anchor"], anchor, "null is the default, now");
}

#[tokio::test]
async fn what_means_nothing_to_the_schedule_that_stands_is_refused() {
    let world = World::new().await;
    let refused = async |stands: Value, edit: Value, field: &str, problem: &str| {
        let body = json!({"schedule": stands, "target": OK});
        let job = world.post("/v1/jobs", body).await.is(201).get("id");
        let path = format!("/v1/jobs/{job}");
        let reply = world.patch(&path, json!({"schedule": edit})).await;
        reply.refused(422, problem);
        assert_eq!(reply.problem().1.as_deref(), Some(field), "{}", reply.text);
        assert_eq!(world.get(&path).await.get("version"), "1");
    };
    let once = json!({"at": "2098-01-01T00:00:00Z"});
    let invalid = "field-invalid";
    refused(
        once.clone(),
        json!({"timezone": "UTC"}),
        "schedule.timezone",
        invalid,
    )
    .await;
    refused(
        once.clone(),
        json!({"runs_max": 3}),
        "schedule.runs_max",
        invalid,
    )
    .await;
    refused(
        json!("@daily"),
        json!({"after_completion": true}),
        "schedule.after_completion",
        invalid,
    )
    .await;
    refused(
        json!("@every 5m"),
        json!({"dialect": "unix"}),
        "schedule.dialect",
        invalid,
    )
    .await;
    refused(
        json!("@daily"),
        json!({"cron": null}),
        "schedule",
        "field-missing",
    )
    .await;
    refused(once, Value::Null, "schedule", invalid).await;
}

#[tokio::test]
async fn redirects_of_a_target_stay_until_they_are_taken_back() {
    let world = World::new().await;
    let path = format!("/v1/jobs/{}", world.job(OK).await);
    for (http, expected) in [
        (json!({"redirects": "same_origin"}), json!("same_origin")),
        (json!({"method": "PUT"}), json!("same_origin")),
        (json!({"redirects": null}), Value::Null),
        (json!({"redirects": "same_origin"}), json!("same_origin")),
        (json!({"redirects": "none"}), Value::Null),
    ] {
        let edit = json!({"target": {"http": http}});
        let reply = world.patch(&path, edit).await.is(200);
        assert_eq!(
            reply.json()["target"]["http"]["redirects"],
            expected,
            "{http}"
        );
    }
}

#[tokio::test]
async fn a_target_keeps_what_is_not_mentioned_and_headers_merge_by_name() {
    let world = World::new().await;
    let http =
        json!({"url": OK, "method": "PUT", "headers": {"X-A": "1", "X-B": "2"}, "output_max": 10});
    let body = json!({"schedule": "@daily", "target": {"http": http}});
    let job = world.post("/v1/jobs", body).await.is(201).get("id");
    let path = format!("/v1/jobs/{job}");
    let edited = async |target: Value| {
        let reply = world.patch(&path, json!({"target": target})).await.is(200);
        reply.json()["target"]["http"].clone()
    };
    let other = "http://target.example/other";
    assert_eq!(
        edited(json!(other)).await,
        json!({"url": other, "method": "PUT", "headers": {"x-a": "1", "x-b": "2"}, "output_max": 10})
    );
    let headers = json!({"http": {"headers": {"x-b": null, "X-A": "3", "x-c": "4"}}});
    assert_eq!(
        edited(headers).await["headers"],
        json!({"x-a": "3", "x-c": "4"})
    );
    let back = json!({"http": {"headers": null, "method": null, "output_max": null}});
    assert_eq!(
        edited(back).await,
        json!({"url": other, "method": "POST", "headers": {}, "output_max": 4096})
    );
    let rule = json!({"status": 404, "json": {"pointer": "/a", "equals": null}});
    let http = edited(json!({"http": {"keep_headers": ["ETag"], "success": rule}})).await;
    assert_eq!(http["keep_headers"], json!(["etag"]));
    let json = json!({"pointer": "/a", "equals": null});
    assert_eq!(http["success"], json!({"status": ["404"], "json": json}));
    let http = edited(json!({"http": {"success": {"status": ["2xx", "300-301"]}}})).await;
    assert_eq!(
        http["success"],
        json!({"status": ["2xx", "300-301"], "json": json})
    );
    let none = json!({"http": {"keep_headers": null, "success": {"status": null, "json": null}}});
    let http = edited(none).await;
    assert_eq!(
        (&http["keep_headers"], &http["success"]),
        (&Value::Null, &Value::Null)
    );
    for (target, field) in [
        (json!({"http": {"url": null}}), "target.http.url"),
        (
            json!({"http": {"headers": {"a": "1", "A": null}}}),
            "target.http.headers.a",
        ),
        (Value::Null, "target"),
    ] {
        let reply = world.patch(&path, json!({"target": target})).await;
        reply.refused(422, "field-invalid");
        assert_eq!(reply.problem().1.as_deref(), Some(field), "{}", reply.text);
    }
    let many: serde_json::Map<String, Value> =
        (0..200).map(|n| (format!("x-{n}"), json!("v"))).collect();
    let reply = world
        .patch(&path, json!({"target": {"http": {"headers": many}}}))
        .await;
    reply.refused(422, "field-invalid");
}

#[tokio::test]
async fn a_policy_keeps_its_bound_and_a_bound_its_policy() {
    let world = World::new().await;
    let body =
        json!({"schedule": "@daily", "target": OK, "overlap": {"policy": "queue_all", "max": 7}});
    let job = world.post("/v1/jobs", body).await.is(201).get("id");
    let path = format!("/v1/jobs/{job}");
    let edited = async |overlap: Value| {
        let reply = world
            .patch(&path, json!({"overlap": overlap}))
            .await
            .is(200);
        reply.json()["overlap"].clone()
    };
    let bounded = |max: u32| json!({"policy": "queue_all", "max": max});
    assert_eq!(edited(json!("queue_all")).await, bounded(7));
    assert_eq!(edited(json!({"max": 9})).await, bounded(9));
    assert_eq!(edited(json!({"max": null})).await, "queue_all");
    assert_eq!(edited(json!("skip")).await, "skip");
    let reply = world.patch(&path, json!({"overlap": {"max": 9}})).await;
    reply.refused(422, "field-invalid");
    assert_eq!(reply.problem().1.as_deref(), Some("overlap.max"));
}

#[tokio::test]
async fn a_put_replaces_the_whole_job() {
    let world = World::new().await;
    let path = "/v1/jobs/by-key/k";
    let body = json!({"schedule": {"cron": "0 9 * * *", "timezone": "Asia/Tokyo"}, "labels": {"a": "1"},
        "target": {"http": {"url": OK, "method": "PUT", "headers": {"X-A": "1"}}}, "lane": "batch"});
    world.put(path, body).await.is(201);
    let body = json!({"schedule": {"cron": "0 10 * * *"}, "target": OK});
    let after = world.put(path, body).await.is(200).json();
    assert_eq!(after["schedule"]["timezone"], "UTC");
    assert_eq!(after["target"]["http"]["headers"], json!({}));
    assert_eq!(after["target"]["http"]["method"], "POST");
    assert_eq!(
        (&after["labels"], &after["lane"]),
        (&json!({}), &json!("standard"))
    );
    let reply = world
        .put(path, json!({"schedule": {"timezone": "UTC"}, "target": OK}))
        .await;
    reply.refused(422, "field-missing");
    let reply = world
        .put(
            path,
            json!({"schedule": "@daily", "target": {"http": {"method": "GET"}}}),
        )
        .await;
    reply.refused(422, "field-missing");
    assert_eq!(reply.problem().1.as_deref(), Some("target.http.url"));
}
