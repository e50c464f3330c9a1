//! Replays in bulk, and backfills.

use serde_json::{Value, json};

use crate::world::{FAIL, OK, World, pause};

async fn dead_job(world: &World, runs: usize) -> (String, Vec<String>) {
    let body = json!({"schedule": "@yearly", "target": FAIL, "overlap": "allow"});
    let job = world.post("/v1/jobs", body).await.is(201).get("id");
    let mut dead = Vec::new();
    for _ in 0..runs {
        let run = world.run(&job).await;
        world.wait(&run, &["dead"]).await;
        dead.push(run);
    }
    (job, dead)
}

async fn done(world: &World, id: &str) -> Value {
    for _ in 0..1_000 {
        let replay = world.get(&format!("/v1/replays/{id}")).await.is(200).json();
        if replay["state"] != "running" {
            return replay;
        }
        pause(10).await;
    }
    panic!("{id} does not end");
}

async fn runs(world: &World, job: &str) -> Vec<Value> {
    let path = format!("/v1/jobs/{job}/runs?limit=1000");
    let page = world.get(&path).await.is(200).json();
    page["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn dead_runs_are_replayed_by_filter_with_another_payload() {
    let world = World::new().await;
    let (job, dead) = dead_job(&world, 5).await;
    let (other, _) = dead_job(&world, 1).await;
    world
        .patch(&format!("/v1/jobs/{job}"), json!({"target": OK}))
        .await
        .is(200);
    let body = json!({
        "filter": {"job": job, "error": "NO", "state": "dead"},
        "payload": {"again": true}, "rate": 1000,
    });
    let reply = world.post("/v1/replays", body).await.is(202);
    let id = reply.get("id");
    assert_eq!(
        reply.header("location"),
        Some(format!("/v1/replays/{id}").as_str())
    );
    assert_eq!(reply.json()["filter"]["state"], json!(["dead"]));
    let replay = done(&world, &id).await;
    assert_eq!(
        (&replay["state"], &replay["started"], &replay["skipped"]),
        (&json!("done"), &json!(5), &json!(0))
    );
    assert!(replay["ended_at"].is_string() && replay["has_payload"] == true);
    let mut of = Vec::new();
    for run in runs(&world, &job).await {
        if run["kind"] == "replay" {
            let run = world
                .wait(run["id"].as_str().unwrap(), &["succeeded"])
                .await;
            assert_eq!(run["attempts"][0]["output"], "{\"again\":true}");
            of.push(run["replay_of"].as_str().unwrap().to_owned());
        }
    }
    of.sort();
    assert_eq!(of, dead, "each once");
    assert_eq!(runs(&world, &other).await.len(), 1);
    let listed = world.get("/v1/replays").await.is(200).json();
    assert_eq!(listed["items"][0]["id"], id.as_str());
    let again = world.post_empty(&format!("/v1/replays/{id}/cancel")).await;
    assert_eq!(again.is(200).json()["state"], "done");
    let audit = world.get("/v1/audit?action=replay.create").await.is(200);
    assert_eq!(audit.json()["items"][0]["subject"], id.as_str());
    let ends = world.get("/v1/audit?action=replay.end").await.is(200);
    assert_eq!(ends.json()["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_replay_that_is_cancelled_starts_no_more() {
    let world = World::new().await;
    let (job, _) = dead_job(&world, 4).await;
    let body = json!({"filter": {"job": format!("key:{job}")}, "rate": 1});
    world
        .post("/v1/replays", body)
        .await
        .refused(422, "field-invalid");
    let body = json!({"filter": {"job": job}, "rate": 1});
    let id = world.post("/v1/replays", body).await.is(202).get("id");
    let cancelled = world.post_empty(&format!("/v1/replays/{id}/cancel")).await;
    assert_eq!(cancelled.is(200).json()["state"], "cancelled");
    let before = runs(&world, &job).await.len();
    assert!(before <= 6);
    pause(1_500).await;
    assert_eq!(runs(&world, &job).await.len(), before);
}

#[tokio::test]
async fn what_cannot_be_replayed_is_refused_by_its_field() {
    let world = World::new().await;
    for (body, field) in [
        (json!({}), "filter"),
        (json!({"filter": {"state": "ready"}}), "filter.state"),
        (
            json!({"filter": {"state": ["dead", "skipped"]}}),
            "filter.state",
        ),
        (json!({"filter": {"state": "ded"}}), "filter.state"),
        (
            json!({"filter": {"from": "2999-01-01T00:00:00Z"}}),
            "filter.from",
        ),
        (
            json!({"filter": {"from": "2020-01-02T00:00:00Z", "to": "2020-01-01T00:00:00Z"}}),
            "filter.to",
        ),
        (json!({"filter": {"error": ""}}), "filter.error"),
        (json!({"filter": {"labels": {"a": 1}}}), "filter.labels"),
        (json!({"filter": {"stat": "dead"}}), "filter.stat"),
        (json!({"filter": {}, "rate": 0}), "rate"),
        (json!({"filter": {}, "rate": 1001}), "rate"),
        (json!({"filter": {}, "limit": 0}), "limit"),
    ] {
        let reply = world.post("/v1/replays", body.clone()).await;
        assert_eq!(reply.status, 422, "{body}");
        assert_eq!(reply.problem().1.as_deref(), Some(field), "{body}");
    }
    let nobody = json!({"filter": {"job": "job_0192f0c1a2b37def8123456789abcdef"}});
    world
        .post("/v1/replays", nobody)
        .await
        .refused(404, "job-not-found");
    let none = "/v1/replays/replay_0192f0c1a2b37def8123456789abcdef";
    world.get(none).await.refused(404, "replay-not-found");
    world
        .get("/v1/replays/x")
        .await
        .refused(404, "replay-not-found");
}

#[tokio::test]
async fn past_slots_are_run_on_purpose() {
    let world = World::new().await;
    let body = json!({
        "schedule": {"every": "1h", "anchor": "2020-01-01T00:00:00Z"}, "target": OK, "key": "hourly",
    });
    let job = world.post("/v1/jobs", body).await.is(201).get("id");
    let range = json!({"from": "2024-01-01T00:00:00Z", "to": "2024-01-01T05:00:00Z", "rate": 1000});
    let path = "/v1/jobs/key:hourly/backfill";
    let dry = world
        .post(&format!("{path}?dry_run=true"), range.clone())
        .await;
    let dry = dry.is(200).json();
    assert_eq!(
        (&dry["slots"], &dry["dry_run"], &dry["replay"]),
        (&json!(5), &json!(true), &Value::Null)
    );
    assert_eq!(runs(&world, &job).await, Vec::<Value>::new());
    let begun = world.post(path, range.clone()).await.is(202).json();
    let id = begun["replay"]["id"].as_str().unwrap();
    let replay = done(&world, id).await;
    assert_eq!(
        (&replay["kind"], &replay["started"], &replay["limit"]),
        (&json!("backfill"), &json!(5), &json!(5))
    );
    let mut slots = Vec::new();
    for run in runs(&world, &job).await {
        let run = world
            .wait(run["id"].as_str().unwrap(), &["succeeded"])
            .await;
        assert_eq!(run["kind"], "slot");
        slots.push(run["slot"].as_str().unwrap().to_owned());
    }
    slots.sort();
    assert_eq!(slots.len(), 5);
    assert_eq!(slots[0], "2024-01-01T00:00:00.000Z");
    // They ran: the next one replays them.
    let again = world.post(path, range).await.is(202).json();
    let replay = done(&world, again["replay"]["id"].as_str().unwrap()).await;
    assert_eq!(replay["started"], 5);
    let kinds = runs(&world, &job).await;
    let replays = kinds.iter().filter(|run| run["kind"] == "replay");
    assert_eq!(replays.count(), 5);
}

#[tokio::test]
async fn a_backfill_that_cannot_be_is_refused_with_the_reason() {
    let world = World::new().await;
    let every =
        json!({"schedule": {"every": "1s", "anchor": "2020-01-01T00:00:00Z"}, "target": OK});
    let seconds = world.post("/v1/jobs", every).await.is(201).get("id");
    let rests = json!({"schedule": {"every": "1h", "after_completion": true}, "target": OK});
    let rests = world.post("/v1/jobs", rests).await.is(201).get("id");
    let yearly = world.job(OK).await;
    for (job, body, field) in [
        (&seconds, json!({}), "from"),
        (&seconds, json!({"from": "2024-01-01T00:00:00Z"}), "to"),
        (&seconds, json!({"from": "2999-01-01T00:00:00Z"}), "from"),
        (&rests, json!({"from": "2024-01-01T00:00:00Z"}), "from"),
        (
            &yearly,
            json!({"from": "2024-02-01T00:00:00Z", "to": "2024-03-01T00:00:00Z"}),
            "from",
        ),
        (
            &yearly,
            json!({"from": "2024-02-01T00:00:00Z", "rate": 0}),
            "rate",
        ),
        (
            &yearly,
            json!({"from": "2024-02-01T00:00:00Z", "force": true}),
            "force",
        ),
    ] {
        let reply = world
            .post(&format!("/v1/jobs/{job}/backfill"), body.clone())
            .await;
        assert_eq!(reply.status, 422, "{body}: {}", reply.text);
        assert_eq!(reply.problem().1.as_deref(), Some(field), "{body}");
    }
}
