//! Quotas: how much a tenant may have, what it has, and the answer when that is all.

use std::time::Duration;

use model::{JobId, Role, Run, RunId, RunState, TenantId, Timestamp};
use serde_json::{Value, json};
use store::{ClientStore, StartRun};

use crate::access::now;
use crate::explain::explain;
use crate::explain_past::from_noon;
use crate::world::{OK, World};

fn job(payload: &str) -> Value {
    json!({"schedule": "@daily", "target": OK, "payload": payload})
}

#[tokio::test]
async fn a_tenant_shows_what_it_may_have_and_what_it_has() {
    let world = World::new().await;
    let shown = world.get("/v1/tenants/default").await.is(200).json();
    let defaults = json!({
        "jobs_max": 10_000_000,
        "payload_bytes_max": 68_719_476_736_u64,
        "history_days_max": 30,
        "runs_day_max": "unlimited",
    });
    assert_eq!(shown["quotas"], defaults);
    let none = json!({"jobs": 0, "payload_bytes": 0, "history_days": 0, "runs_day": 0});
    assert_eq!(shown["used"], none);
    let made = world.post("/v1/jobs", job("12345678")).await.is(201);
    world.post("/v1/jobs", job("12")).await.is(201);
    let used = async || world.get("/v1/tenants/default").await.json()["used"].clone();
    let used = async || {
        let mut used = used().await;
        for by_time in ["runs_day", "history_days"] {
            used.as_object_mut().unwrap().remove(by_time).unwrap();
        }
        used
    };
    assert_eq!(used().await, json!({"jobs": 2, "payload_bytes": 14}));
    world
        .delete(&format!("/v1/jobs/{}", made.get("id")))
        .await
        .is(200);
    assert_eq!(used().await, json!({"jobs": 1, "payload_bytes": 4}));
    let listed = world.get("/v1/tenants").await.json();
    assert_eq!(listed["items"][0]["quotas"], defaults);
}

#[tokio::test]
async fn going_over_a_quota_is_refused_with_what_there_is() {
    let world = World::new().await;
    let body = json!({"quotas": {"jobs_max": 2, "payload_bytes_max": 20}});
    let edited = world
        .patch("/v1/tenants/default", body)
        .await
        .is(200)
        .json();
    let stands = json!({"jobs_max": 2, "payload_bytes_max": 20, "history_days_max": 30, "runs_day_max": "unlimited"});
    assert_eq!(edited["quotas"], stands);
    let made = world.post("/v1/jobs", job("12345678")).await.is(201);
    let refused = world.post("/v1/jobs", job("123456789")).await;
    refused.refused(403, "quota-exceeded");
    let said = refused.json();
    let reported = [&said["quota"], &said["limit"], &said["used"]];
    assert_eq!(
        reported,
        [&json!("payload_bytes_max"), &json!(20), &json!(10)]
    );
    let path = format!("/v1/jobs/{}", made.get("id"));
    let grown = world
        .patch(&path, json!({"payload": "1234567890123456789"}))
        .await;
    grown.refused(403, "quota-exceeded");
    world
        .patch(&path, json!({"payload": "123456789012345678"}))
        .await
        .is(200);
    let line = json!({"schedule": "@daily", "target": OK}).to_string();
    let headers = [("content-type", "application/x-ndjson")];
    let lines = [line.clone(), line].join("\n");
    let batch = world
        .call("POST", "/v1/jobs/batch", &headers, lines)
        .await
        .is(200);
    let answers: Vec<Value> = batch
        .text
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    assert_eq!(answers[0]["status"], 201);
    assert_eq!(
        (&answers[1]["status"], &answers[1]["error"]["quota"]),
        (&json!(403), &json!("jobs_max"))
    );
    let put = json!({"schedule": "@daily", "target": OK});
    world
        .put("/v1/jobs/by-key/a", put)
        .await
        .refused(403, "quota-exceeded");
    world
        .patch("/v1/tenants/default", json!({"quotas": null}))
        .await
        .is(200);
    world.post("/v1/jobs", job("1")).await.is(201);
}

#[tokio::test]
async fn what_is_said_of_quotas_is_checked() {
    let world = World::new().await;
    for (quotas, field) in [
        (json!({"jobs_max": -1}), "quotas.jobs_max"),
        (json!({"jobs_max": 1.5}), "quotas.jobs_max"),
        (json!({"jobs_max": "7"}), "quotas.jobs_max"),
        (json!({"jobs_max": 1_000_000_001}), "quotas.jobs_max"),
        (
            json!({"payload_bytes_max": 1_u64 << 51}),
            "quotas.payload_bytes_max",
        ),
        (json!({"history_days_max": 0}), "quotas.history_days_max"),
        (
            json!({"history_days_max": 3_651}),
            "quotas.history_days_max",
        ),
        (json!({"runs_day_max": -1}), "quotas.runs_day_max"),
        (json!({"runs_day_max": "many"}), "quotas.runs_day_max"),
        (
            json!({"runs_day_max": 1_000_000_000_001_u64}),
            "quotas.runs_day_max",
        ),
        (json!({"rate": 7}), "quotas.rate"),
        (json!({"concurrency": null}), "quotas.concurrency"),
        (json!(7), "quotas"),
    ] {
        for (method, path) in [("PATCH", "/v1/tenants/default"), ("POST", "/v1/tenants")] {
            let mut body = json!({ "quotas": quotas });
            if method == "POST" {
                body["name"] = "team".into();
            }
            let reply = world.call(method, path, &[], body.to_string()).await;
            let refused = ("field-invalid".to_owned(), Some(field.to_owned()));
            assert_eq!(reply.problem(), refused, "{body}");
        }
    }
    let unknown = world
        .patch("/v1/tenants/default", json!({"quotas": {"jobs": 7}}))
        .await;
    unknown.refused(422, "field-unknown");
    // What is answered can be sent back.
    let world_wide = json!({"quotas": {"runs_day_max": "unlimited", "history_days_max": 30}});
    let edited = world.patch("/v1/tenants/default", world_wide).await;
    assert_eq!(edited.is(200).json()["quotas"]["runs_day_max"], "unlimited");
    let body = json!({"name": "team", "quotas": {"jobs_max": 0}});
    let made = world.post("/v1/tenants", body).await.is(201).json();
    assert_eq!(made["quotas"]["jobs_max"], 0);
}

#[tokio::test]
async fn each_tenant_has_quotas_of_its_own() {
    let world = World::with_keys().await;
    let root = world.key(TenantId::DEFAULT, Role::Root).await;
    let other = TenantId::from_bytes([7; 16]);
    let theirs = world.key(other, Role::Admin).await;
    let path = "/v1/tenants/other";
    let none = json!({"quotas": {"jobs_max": 0}});
    world.as_key(&root, "PATCH", path, none).await.is(200);
    let reply = world.as_key(&theirs, "POST", "/v1/jobs", job("")).await;
    reply.refused(403, "quota-exceeded");
    world
        .as_key(&root, "POST", "/v1/jobs", job(""))
        .await
        .is(201);
    let edit = world.as_key(&theirs, "PATCH", path, json!({})).await;
    edit.refused(403, "role-insufficient");
}

#[tokio::test]
async fn history_beyond_the_days_of_a_tenant_is_not_seen() {
    let world = World::new().await;
    let (job, _) = from_noon(&world, "0 * * * *", true).await;
    world
        .post(&format!("/v1/jobs/{job}/resume"), json!({}))
        .await
        .is(200);
    let runs = async || -> Vec<Value> {
        let listed = world.get("/v1/runs?limit=100").await.is(200).json();
        listed["items"].as_array().unwrap().clone()
    };
    let all = runs().await;
    let oldest = all.last().unwrap().clone();
    let (id, slot) = (
        oldest["id"].as_str().unwrap(),
        oldest["slot"].as_str().unwrap(),
    );
    // One that still lives is seen, however old it is.
    let alive = old_run(&world, &job, now().minus(Duration::from_secs(2 * 86_400))).await;
    let before = history_days(&world).await;
    assert!(before > 1 && before <= 30, "{before}");
    set_quotas(&world, json!({"history_days_max": 1})).await;
    assert_eq!(history_days(&world).await, 1);
    let from = now().minus(Duration::from_secs(86_400)).to_string();
    let seen = runs().await;
    let is_old = |run: &&Value| run["slot"].as_str().is_some_and(|slot| *slot < *from);
    assert_eq!(seen.iter().find(is_old), None);
    assert!(seen.len() < all.len(), "{}", seen.len());
    assert_eq!(seen.last().unwrap()["id"], alive);
    let two = world.get("/v1/runs?limit=1").await.json();
    assert!(two["next_cursor"].is_string(), "{two}");
    world.get(&format!("/v1/runs/{alive}")).await.is(200);
    world
        .get(&format!("/v1/runs/{id}"))
        .await
        .refused(404, "run-not-found");
    let replay = world
        .post(&format!("/v1/runs/{id}/replay"), json!({}))
        .await;
    replay.refused(404, "run-not-found");
    let page = world
        .get(&format!("/v1/jobs/{job}/slots?from={slot}"))
        .await
        .is(200);
    assert!(
        page.json()["history_from"].as_str().unwrap() >= &*from,
        "{}",
        page.text
    );
    let items = page.json()["items"].to_string();
    assert!(!items.contains(slot), "{items}");
    let said = explain(&world, &job, slot).await.to_string();
    assert!(said.contains("is not kept any more"), "{said}");
    set_quotas(&world, json!({"history_days_max": null})).await;
    // With the one that is alive, and the one that it was made from.
    assert_eq!(runs().await.len(), all.len() + 2);
    world.get(&format!("/v1/runs/{id}")).await.is(200);
}

async fn set_quotas(world: &World, quotas: Value) {
    let body = json!({ "quotas": quotas });
    world.patch("/v1/tenants/default", body).await.is(200);
}

/// How many days back the history of `default` goes.
async fn history_days(world: &World) -> u64 {
    let shown = world.get("/v1/tenants/default").await.json();
    shown["used"]["history_days"].as_u64().unwrap()
}

/// A run that was asked for at a moment, and that nobody has taken since.
async fn old_run(world: &World, job: &str, at: Timestamp) -> String {
    let job: JobId = job.parse().unwrap();
    let job = world
        .store
        .get_job(TenantId::DEFAULT, job)
        .await
        .unwrap()
        .unwrap();
    let manual = world.run(&job.id.to_string()).await.parse().unwrap();
    let run = world
        .store
        .get_run(TenantId::DEFAULT, manual)
        .await
        .unwrap()
        .unwrap();
    let run = Run {
        id: RunId::of_request(job.id, at, rand::random()),
        state: RunState::Ready,
        // Not before the test has ended.
        due_at: now().plus(Duration::from_secs(3_600)),
        claim: None,
        dispatched_at: None,
        settled_at: None,
        attempts: Vec::new(),
        ..run
    };
    let id = run.id.to_string();
    let started = world.store.start_run(&StartRun { run, force: true }).await;
    assert!(matches!(started, Ok(store::Started::Ready)), "{started:?}");
    id
}
