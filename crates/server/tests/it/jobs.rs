use serde_json::{Value, json};

use crate::world::{OK, World};

#[tokio::test]
async fn a_job_in_short_is_answered_in_full() {
    let world = World::new().await;
    let reply = world
        .post("/v1/jobs", json!({"schedule": "@daily", "target": OK}))
        .await
        .is(201);
    let job = reply.json();
    let id = job["id"].as_str().unwrap();
    assert!(id.starts_with("job_"));
    assert_eq!(
        reply.header("location"),
        Some(format!("/v1/jobs/{id}").as_str())
    );
    assert_eq!(reply.header("etag"), Some("\"1\""));
    assert_eq!(job["key"], Value::Null);
    assert_eq!(job["state"], "active");
    assert_eq!(job["version"], 1);
    assert_eq!(job["schedule"]["timezone"], "UTC");
    assert_eq!(job["target"]["http"]["url"], OK);
    assert_eq!(job["target"]["http"]["method"], "POST");
    let retry = json!({"attempts_max": 4, "backoff": "exponential", "delay_first": "1s", "delay_max": "5m", "jitter": 0.3});
    assert_eq!(job["retry"], retry);
    assert_eq!(job["timeout"], "5m");
    assert_eq!(job["lane"], "standard");
    assert_eq!(job["overlap"], "skip");
    assert_eq!(job["catch_up"]["policy"], "latest");
    assert_eq!(job["delivery"], "at_least_once");
    let next = job["next_slot"].as_str().unwrap();
    assert!(next.ends_with("T00:00:00.000Z"), "{next}");
    assert_eq!(
        world.get(&format!("/v1/jobs/{id}")).await.is(200).json(),
        job
    );
}

#[tokio::test]
async fn a_job_in_full_keeps_every_word() {
    let world = World::new().await;
    let body = json!({
        "key": "nightly/report", "schedule": {"cron": ["0 9 * * MON-FRI", "0 12 * * SAT"], "timezone": "Europe/Berlin",
        "dst_gap": "skip", "dst_overlap": "both"},
        "target": {"http": {"url": OK, "method": "PUT", "headers": {"X-Team": "ops"}, "output_max": 100}},
        "payload": {"report": "daily"},
        "retry": {"attempts_max": 7, "backoff": "linear", "delay_first": "2s", "delay_max": "PT10M", "jitter": 0.125},
        "timeout": "90s", "lane": "critical", "overlap": {"policy": "queue_all", "max": 3},
        "catch_up": {"policy": "all", "window": "2h", "max": 5}, "spread": "30s", "delivery": "at_most_once",
        "start_within": "10s", "finish_within": "10m", "pause_after_failures": 5, "labels": {"team": "ops", "größe": "x"},
    });
    world
        .post("/v1/jobs", body.clone())
        .await
        .refused(422, "field-invalid");
    let mut body = body;
    body["labels"] = json!({"team": "öps"});
    let job = world.post("/v1/jobs", body.clone()).await.is(201).json();
    for field in [
        "key",
        "payload",
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
        assert_eq!(job[field], body[field], "{field}");
    }
    assert_eq!(job["retry"]["delay_max"], "10m");
    assert_eq!(job["retry"]["jitter"], 0.125);
    assert_eq!(job["schedule"]["cron"], body["schedule"]["cron"]);
    assert_eq!(job["schedule"]["dst_gap"], "skip");
    assert_eq!(job["target"]["http"]["headers"], json!({"x-team": "ops"}));
    assert!(job["due_at"].as_str() >= job["next_slot"].as_str());
    let found = world.get("/v1/jobs/by-key/nightly/report").await.is(200);
    assert_eq!(found.json(), job);
    assert_eq!(
        world
            .get("/v1/jobs/by-key/nightly%2Freport")
            .await
            .is(200)
            .json(),
        job
    );
}

#[tokio::test]
async fn what_is_answered_can_be_sent_again() {
    let world = World::new().await;
    let schedules = [
        json!("@daily"),
        json!({"cron": "*/5 * * * *", "timezone": "Asia/Tokyo"}),
        json!({"every": "15m"}),
        json!({"every": "P1M", "anchor": "2026-01-31T12:00:00Z", "timezone": "Europe/Berlin"}),
        json!({"at": "2099-12-24T18:00:00+01:00"}),
        json!("@every 90s"),
        json!({"every": "1h", "after_completion": true}),
        json!({"every": "1h", "starts_at": "2099-01-01T00:10:00Z", "ends_at": 4_102_444_800_i64}),
        json!({"cron": "@hourly", "ends_at": "2099-01-01T00:00:00+02:00", "runs_max": 7}),
    ];
    for (index, schedule) in schedules.into_iter().enumerate() {
        let key = format!("job-{index}");
        let body = json!({"schedule": schedule, "target": OK});
        let job = world
            .put(&format!("/v1/jobs/by-key/{key}"), body)
            .await
            .is(201)
            .json();
        let mut again = job.clone();
        for field in [
            "id",
            "state",
            "version",
            "next_slot",
            "due_at",
            "resting",
            "runs_left",
            "note",
            "paused_by",
            "created_at",
            "updated_at",
        ] {
            again.as_object_mut().unwrap().remove(field);
        }
        let reply = world
            .put(&format!("/v1/jobs/by-key/{key}"), again)
            .await
            .is(200);
        assert_eq!(reply.get("version"), "1", "nothing changed: {}", reply.text);
        assert_eq!(reply.json()["schedule"], job["schedule"]);
    }
}

#[tokio::test]
async fn every_form_of_a_schedule_is_read() {
    let world = World::new().await;
    let year = 2099;
    for (schedule, kind, expected) in [
        (json!("0 9 * * *"), "cron", "0 9 * * *"),
        (json!({"cron": "0 0 9 * * *"}), "cron", "0 0 9 * * *"),
        (json!({"every": "PT15M"}), "every", "15m"),
        (json!({"every": "P1D"}), "every", "P1D"),
        (
            json!({"at": format!("{year}-12-24T18:00:00Z")}),
            "at",
            "2099-12-24T18:00:00.000Z",
        ),
        (
            json!({"at": 4_102_444_800_i64}),
            "at",
            "2100-01-01T00:00:00.000Z",
        ),
        (
            json!({"at": 4_102_444_800_123_i64}),
            "at",
            "2100-01-01T00:00:00.123Z",
        ),
    ] {
        let body = json!({"schedule": schedule, "target": OK});
        let job = world.post("/v1/jobs", body).await.is(201).json();
        assert_eq!(job["schedule"][kind], expected, "{job}");
    }
    let job = world
        .post("/v1/jobs", json!({"schedule": {"in": "2h"}, "target": OK}))
        .await
        .is(201);
    assert_eq!(job.json()["schedule"]["at"], job.json()["next_slot"]);
    assert_eq!(job.json()["overlap"], "allow");
}

#[tokio::test]
async fn a_one_off_that_just_passed_runs_at_once() {
    let world = World::new().await;
    let now = engine::Clock::now(&engine::SystemClock);
    let hour_ago = now.minus(std::time::Duration::from_secs(3_600));
    let body = json!({"schedule": {"at": hour_ago.to_string()}, "target": OK, "payload": [1, 2]});
    let job = world.post("/v1/jobs", body).await.is(201).get("id");
    for _ in 0..300 {
        let runs = world
            .get(&format!("/v1/jobs/{job}/runs?state=succeeded"))
            .await
            .is(200)
            .json();
        if runs["items"]
            .as_array()
            .is_some_and(|items| items.len() == 1)
        {
            return;
        }
        crate::world::pause(10).await;
    }
    panic!("it did not run");
}

#[tokio::test]
async fn a_payload_is_kept_byte_for_byte() {
    let world = World::new().await;
    for payload in [
        r#"{ "a" :1.0,  "b":[ 1e5, "\u0041" ] }"#,
        "0",
        "\"\"",
        "false",
        "[]",
        "123456789012345678901234567890",
    ] {
        let body = format!(r#"{{"schedule":"@yearly","target":"{OK}","payload":{payload}}}"#);
        let reply = world.call("POST", "/v1/jobs", &[], body).await.is(201);
        assert!(
            reply.text.contains(&format!("\"payload\":{payload},")),
            "{}",
            reply.text
        );
        let run = world.run(&reply.get("id")).await;
        let run = world.wait(&run, &["succeeded"]).await;
        assert_eq!(run["attempts"][0]["output"], payload);
    }
    let body = format!(r#"{{"schedule":"@yearly","target":"{OK}","payload":null}}"#);
    let reply = world.call("POST", "/v1/jobs", &[], body).await.is(201);
    assert_eq!(reply.json()["payload"], Value::Null);
}

#[tokio::test]
async fn deleting_is_final_and_frees_the_key() {
    let world = World::new().await;
    let body = json!({"key": "a", "schedule": "@daily", "target": OK});
    let first = world.post("/v1/jobs", body.clone()).await.is(201).get("id");
    let taken = world.post("/v1/jobs", body.clone()).await;
    taken.refused(409, "key-taken");
    assert_eq!(taken.json()["job"], first);
    let deleted = world.delete("/v1/jobs/by-key/a").await.is(200).json();
    assert_eq!(deleted["state"], "deleted");
    assert_eq!(
        deleted["runs"],
        json!({"withdrawn": [], "dispatched": [], "unconfirmed": []})
    );
    world
        .get(&format!("/v1/jobs/{first}"))
        .await
        .refused(404, "job-not-found");
    world
        .delete(&format!("/v1/jobs/{first}"))
        .await
        .refused(404, "job-not-found");
    world
        .delete("/v1/jobs/by-key/a")
        .await
        .refused(404, "job-not-found");
    let second = world.post("/v1/jobs", body).await.is(201).get("id");
    world.delete(&format!("/v1/jobs/{second}")).await.is(200);
}

#[tokio::test]
async fn a_pause_says_why_and_ends() {
    let world = World::new().await;
    let job = world.job(OK).await;
    let pause = format!("/v1/jobs/{job}/pause");
    let paused = world
        .post(&pause, json!({"note": "maintenance"}))
        .await
        .is(200)
        .json();
    assert_eq!(
        (&paused["state"], &paused["note"]),
        (&json!("paused"), &json!("maintenance"))
    );
    assert_eq!(paused["next_slot"], Value::Null);
    assert_eq!(paused["version"], 2);
    let again = world.post_empty(&pause).await.is(200).json();
    assert_eq!(
        again["version"], 2,
        "pausing what is paused changes nothing"
    );
    let run = world.run(&job).await;
    world.wait(&run, &["succeeded"]).await;
    let resumed = world
        .post_empty(&format!("/v1/jobs/{job}/resume"))
        .await
        .is(200)
        .json();
    assert_eq!(
        (&resumed["state"], &resumed["version"]),
        (&json!("active"), &json!(3))
    );
    assert!(resumed["next_slot"].is_string());
    world
        .post_empty(&format!("/v1/jobs/{job}/resume"))
        .await
        .is(200);
}

#[tokio::test]
async fn slots_that_passed_in_a_pause_are_one_stretch() {
    let world = World::new().await;
    let body = json!({"schedule": {"every": "1s"}, "target": OK});
    let job = world.post("/v1/jobs", body).await.is(201).get("id");
    world
        .post_empty(&format!("/v1/jobs/{job}/pause"))
        .await
        .is(200);
    crate::world::pause(2_300).await;
    world
        .post_empty(&format!("/v1/jobs/{job}/resume"))
        .await
        .is(200);
    let runs = world
        .get(&format!("/v1/jobs/{job}/runs?state=skipped"))
        .await
        .is(200)
        .json();
    let entry = &runs["items"][0];
    assert_eq!(entry["reason"], "paused", "{runs}");
    assert!(entry["stretch"]["count"].as_u64() >= Some(2), "{runs}");
    world.delete(&format!("/v1/jobs/{job}")).await.is(200);
}
