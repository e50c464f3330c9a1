//! Runs a day: how many a tenant may have, how many it has had, and what becomes of those beyond.

use serde_json::{Value, json};

use crate::explain::explain;
use crate::world::{FAIL, OK, World, pause};

impl World {
    async fn bound_runs(&self, max: Value) {
        let body = json!({"quotas": {"runs_day_max": max}});
        let edited = self.patch("/v1/tenants/default", body).await.is(200);
        let shown = if max.is_null() {
            json!("unlimited")
        } else {
            max
        };
        assert_eq!(edited.json()["quotas"]["runs_day_max"], shown);
    }

    async fn runs_today(&self) -> u64 {
        let shown = self.get("/v1/tenants/default").await.is(200).json();
        shown["used"]["runs_day"].as_u64().unwrap()
    }

    /// Waits until the node has said what it counted, and heard of the quota: both happen once a second.
    async fn wait_runs(&self, count: u64) {
        for _ in 0..1_000 {
            if self.runs_today().await == count {
                return;
            }
            pause(10).await;
        }
        panic!("{} runs are counted, not {count}", self.runs_today().await);
    }
}

#[tokio::test]
async fn a_run_beyond_the_quota_is_refused_with_what_there_is() {
    let world = World::new().await;
    let body = json!({"schedule": "@yearly", "target": FAIL, "overlap": "allow", "retry": {"attempts_max": 2, "delay_first": "1ms"}});
    let job = world.post("/v1/jobs", body).await.is(201).get("id");
    world.bound_runs(json!(2)).await;
    let run = world.run(&job).await;
    // Two attempts are one run.
    world.wait(&run, &["dead"]).await;
    world.wait_runs(1).await;
    let replay = format!("/v1/runs/{run}/replay");
    world.post(&replay, json!({})).await.is(201);
    for path in [
        format!("/v1/jobs/{job}/run"),
        format!("/v1/jobs/{job}/retry"),
        replay,
    ] {
        let refused = world.post(&path, json!({})).await;
        refused.refused(403, "quota-exceeded");
        let said = refused.json();
        let reported = [&said["quota"], &said["limit"], &said["used"]];
        assert_eq!(reported, [&json!("runs_day_max"), &json!(2), &json!(2)]);
    }
    world.wait_runs(2).await;
    let listed = world.get(&format!("/v1/jobs/{job}/runs")).await.json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
    world.bound_runs(Value::Null).await;
    pause(1_500).await;
    world.run(&job).await;
}

#[tokio::test]
async fn a_slot_beyond_the_quota_is_skipped_and_says_so() {
    let world = World::new().await;
    world.bound_runs(json!(0)).await;
    // The node hears of it within a second.
    pause(1_500).await;
    let body = json!({"schedule": {"in": "1s"}, "target": OK});
    let job = world.post("/v1/jobs", body).await.is(201).get("id");
    let path = format!("/v1/jobs/{job}/slots");
    let mut items = Value::Null;
    for _ in 0..1_000 {
        items = world.get(&path).await.is(200).json()["items"].clone();
        if items[0]["reason"] == "quota" {
            break;
        }
        pause(10).await;
    }
    assert_eq!(items[0]["reason"], "quota", "{items}");
    let slot = items[0]["first"].as_str().or(items[0]["slot"].as_str());
    let said = explain(&world, &job, slot.unwrap()).await.to_string();
    assert!(said.contains("runs_day_max"), "{said}");
    let metrics = world.get("/metrics").await.text;
    let counted = metrics.lines().any(|line| {
        line.contains("skipped") && line.contains(r#"reason="quota""#) && line.ends_with(" 1")
    });
    assert!(counted, "{metrics}");
    assert_eq!(world.runs_today().await, 0);
}
