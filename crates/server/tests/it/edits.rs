use std::time::Duration;

use engine::{Clock, SystemClock};
use model::{Level, Timestamp};
use serde_json::{Value, json};
use store::{EngineStore, NodeInfo, NodeStatus};

use crate::world::{OK, World, pause};

#[tokio::test]
async fn a_patch_changes_what_it_speaks_of_and_nothing_else() {
    let world = World::new().await;
    let body = json!({"key": "k", "schedule": "@daily", "target": OK, "payload": {"a": 1}, "timeout": "30s",
        "retry": {"attempts_max": 9, "jitter": 0.5}, "labels": {"team": "ops", "old": "x"}, "lane": "batch"});
    let job = world.post("/v1/jobs", body).await.is(201).json();
    let path = format!("/v1/jobs/{}", job["id"].as_str().unwrap());
    let patch = json!({"retry": {"attempts_max": 2}, "labels": {"old": null, "new": "y"}, "lane": null, "payload": null});
    let reply = world.patch(&path, patch).await.is(200);
    assert_eq!(reply.header("etag"), Some("\"2\""));
    let changed = reply.json();
    assert_eq!(changed["retry"]["attempts_max"], 2);
    assert_eq!(
        changed["retry"]["jitter"], 0.5,
        "what a merge does not name stays"
    );
    assert_eq!(changed["labels"], json!({"team": "ops", "new": "y"}));
    assert_eq!(changed["lane"], "standard", "null is the default");
    assert_eq!(changed["payload"], Value::Null);
    for field in [
        "id",
        "key",
        "schedule",
        "target",
        "timeout",
        "next_slot",
        "created_at",
    ] {
        assert_eq!(changed[field], job[field], "{field}");
    }
    assert!(changed["runs"].is_object());
    let back = world
        .patch(&path, json!({"retry": null, "labels": null, "key": null}))
        .await
        .is(200)
        .json();
    assert_eq!(back["retry"]["attempts_max"], 4);
    assert_eq!((&back["labels"], &back["key"]), (&json!({}), &Value::Null));
    world
        .get("/v1/jobs/by-key/k")
        .await
        .refused(404, "job-not-found");
}

#[tokio::test]
async fn another_schedule_shows_slots_removed_and_added() {
    let world = World::new().await;
    let body = json!({"schedule": "0 9 * * *", "target": OK});
    let job = world.post("/v1/jobs", body).await.is(201).get("id");
    let path = format!("/v1/jobs/{job}");
    let changed = world
        .patch(&path, json!({"schedule": "0 9,21 * * *"}))
        .await
        .is(200)
        .json();
    assert_eq!(changed["slots"]["removed"], json!([]));
    let added = changed["slots"]["added"].as_array().unwrap();
    assert_eq!(added.len(), 20);
    assert!(
        added
            .iter()
            .all(|slot| slot.as_str().unwrap().ends_with("T21:00:00.000Z"))
    );
    let once = world
        .patch(&path, json!({"schedule": {"at": "2099-01-01T00:00:00Z"}}))
        .await
        .is(200)
        .json();
    assert_eq!(once["slots"]["added"], json!(["2099-01-01T00:00:00.000Z"]));
    assert_eq!(once["slots"]["removed"].as_array().unwrap().len(), 20);
    let other = world
        .patch(&path, json!({"lane": "batch"}))
        .await
        .is(200)
        .json();
    assert_eq!(other.get("slots"), None);
}

#[tokio::test]
async fn an_edit_that_changes_nothing_writes_nothing() {
    let world = World::new().await;
    let job = world.job(OK).await;
    let path = format!("/v1/jobs/{job}");
    for patch in [
        json!({}),
        json!({"timeout": "5m"}),
        json!({"labels": {}}),
        json!({"lane": null}),
    ] {
        let reply = world.patch(&path, patch).await.is(200);
        assert_eq!(reply.get("version"), "1", "{}", reply.text);
    }
}

#[tokio::test]
async fn only_the_version_that_was_read_is_changed() {
    let world = World::new().await;
    let job = world.job(OK).await;
    let path = format!("/v1/jobs/{job}");
    let with = async |method: &str, path: &str, tag: &str, body: Value| {
        world
            .call(method, path, &[("if-match", tag)], body.to_string())
            .await
    };
    with("PATCH", &path, "\"1\"", json!({"timeout": "1m"}))
        .await
        .is(200);
    let late = with("PATCH", &path, "\"1\"", json!({"timeout": "2m"})).await;
    late.refused(412, "version-conflict");
    assert_eq!(late.json()["version"], 2);
    with("DELETE", &path, "\"1\"", json!({}))
        .await
        .refused(412, "version-conflict");
    let pause = format!("{path}/pause");
    with("POST", &pause, "\"7\"", json!({}))
        .await
        .refused(412, "version-conflict");
    with("POST", &pause, "\"7\", \"2\"", json!({}))
        .await
        .is(200);
    with("POST", &format!("{path}/resume"), "\"2\"", json!({}))
        .await
        .refused(412, "version-conflict");
    with("POST", &format!("{path}/resume"), "*", json!({}))
        .await
        .is(200);
    for tag in ["three", "", "\"-1\"", "W/\"1\"", "\"99999999999\""] {
        with("PATCH", &path, tag, json!({}))
            .await
            .refused(400, "header-invalid");
    }
    with("DELETE", &path, "4", json!({})).await.is(200);
}

#[tokio::test]
async fn put_creates_then_updates() {
    let world = World::new().await;
    let path = "/v1/jobs/by-key/reports/daily";
    let body = json!({"schedule": "@daily", "target": OK, "timeout": "10s"});
    let made = world.put(path, body.clone()).await.is(201);
    assert_eq!(made.get("key"), "reports/daily");
    assert_eq!(
        made.header("location").unwrap(),
        format!("/v1/jobs/{}", made.get("id"))
    );
    let same = world.put(path, body).await.is(200);
    assert_eq!(
        (same.get("id"), same.get("version")),
        (made.get("id"), "1".to_owned())
    );
    let other = world
        .put(path, json!({"schedule": "@hourly", "target": OK}))
        .await
        .is(200);
    assert_eq!(
        (other.get("version"), other.get("timeout")),
        ("2".to_owned(), "5m".to_owned())
    );
    let body = json!({"key": "elsewhere", "schedule": "@hourly", "target": OK});
    let reply = world.put(path, body).await;
    assert_eq!(
        reply.problem(),
        ("field-invalid".to_owned(), Some("key".to_owned()))
    );
    let only_new = [("if-none-match", "*")];
    let body = json!({"schedule": "@hourly", "target": OK}).to_string();
    world
        .call("PUT", path, &only_new, body.clone())
        .await
        .refused(412, "job-exists");
    world
        .call("PUT", "/v1/jobs/by-key/new", &only_new, body.clone())
        .await
        .is(201);
    world
        .call(
            "PUT",
            "/v1/jobs/by-key/none",
            &[("if-match", "*")],
            body.clone(),
        )
        .await
        .refused(412, "version-conflict");
    world
        .call("PUT", path, &[("if-match", "\"1\"")], body.clone())
        .await
        .refused(412, "version-conflict");
    world
        .call("PUT", path, &[("if-match", "\"2\"")], body)
        .await
        .is(200);
}

#[tokio::test]
async fn puts_at_once_make_one_job() {
    let world = World::new().await;
    let puts = (0..40).map(|number| {
        let body =
            json!({"schedule": "@hourly", "target": OK, "timeout": format!("{}s", number % 4 + 1)});
        world.put("/v1/jobs/by-key/one", body)
    });
    let replies = futures_util::future::join_all(puts).await;
    let created = replies.iter().filter(|reply| reply.status == 201).count();
    assert_eq!(created, 1);
    assert!(
        replies
            .iter()
            .all(|reply| reply.status == 200 || reply.status == 201)
    );
    assert_eq!(world.store.all_jobs().len(), 1);
}

#[tokio::test]
async fn edits_at_once_all_come_off() {
    let world = World::new().await;
    let body = json!({"schedule": {"every": "1s"}, "target": OK, "overlap": "allow"});
    let job = world.post("/v1/jobs", body).await.is(201).get("id");
    let path = format!("/v1/jobs/{job}");
    // The job fires meanwhile, which moves its slots but not its version.
    for round in 0..4 {
        let patches = (0..8).map(|number| {
            world.patch(
                &path,
                json!({"labels": {format!("l{round}-{number}"): "x"}}),
            )
        });
        for reply in futures_util::future::join_all(patches).await {
            reply.is(200);
        }
        crate::world::pause(300).await;
    }
    let job = world.get(&path).await.is(200).json();
    assert_eq!(job["labels"].as_object().unwrap().len(), 32);
    assert_eq!(job["version"], 33);
    world.delete(&path).await.is(200);
}

#[tokio::test]
async fn an_edit_that_meets_a_claim_names_the_run() {
    let world = World::new().await;
    let now = engine::Clock::now(&engine::SystemClock);
    // Claimed a lead ahead of its due time, and taken back before it.
    let at = now.plus(std::time::Duration::from_millis(1_500));
    let body = json!({"schedule": {"at": at.to_string()}, "target": OK});
    let job = world.post("/v1/jobs", body).await.is(201).get("id");
    let path = format!("/v1/jobs/{job}");
    for _ in 0..200 {
        if !world.store.all_runs().is_empty() {
            break;
        }
        crate::world::pause(5).await;
    }
    let later = json!({"schedule": {"at": "2099-01-01T00:00:00Z"}});
    let edited = world.patch(&path, later).await.is(200).json();
    let named = |kind: &str| edited["runs"][kind].as_array().unwrap().len();
    assert_eq!(named("unconfirmed"), 0, "{edited}");
    if named("dispatched") == 0 {
        assert_eq!(edited["next_slot"], "2099-01-01T00:00:00.000Z", "{edited}");
        assert!(world.store.all_runs().is_empty());
    }
}

#[tokio::test]
async fn a_one_off_that_could_not_run_is_refused() {
    let world = World::new().await;
    let at = |moment: Timestamp| json!({"schedule": {"at": moment.to_string()}});
    let seconds = Duration::from_secs;
    let refused = async |path: &str, moment: Timestamp, part: &str| {
        let before = world.get(path).await.json();
        for path in [path.to_owned(), format!("{path}?dry_run=true")] {
            let reply = world.patch(&path, at(moment)).await;
            reply.refused(422, "schedule-never");
            assert_eq!(reply.problem().1.as_deref(), Some("schedule"));
            assert!(reply.get("detail").contains(part), "{}", reply.text);
        }
        assert_eq!(world.get(path).await.json(), before, "nothing is written");
    };
    // One that has run.
    let body = json!({"schedule": {"in": "0s"}, "target": OK});
    let job = world.post("/v1/jobs", body).await.is(201).get("id");
    let path = format!("/v1/jobs/{job}");
    for _ in 0..500 {
        if world.get(&path).await.get("state") == "finished" {
            break;
        }
        pause(10).await;
    }
    let now = SystemClock.now();
    refused(&path, now.minus(seconds(60)), "decided").await;
    world
        .patch(&path, at(now.plus(seconds(3_600))))
        .await
        .is(200);
    // One that repeats, and has.
    let body = json!({"schedule": {"every": "1s"}, "target": OK});
    let job = world.post("/v1/jobs", body).await.is(201).get("id");
    let path = format!("/v1/jobs/{job}");
    pause(1_500).await;
    world.post_empty(&format!("{path}/pause")).await.is(200);
    refused(&path, now.minus(seconds(60)), "decided").await;
    // While a job is paused, what has passed is let pass.
    pause(20).await;
    refused(
        &path,
        SystemClock.now().minus(Duration::from_millis(5)),
        "paused",
    )
    .await;
    world
        .patch(&path, at(now.plus(seconds(3_600))))
        .await
        .is(200);
}

#[tokio::test]
async fn what_a_living_node_cannot_read_is_refused_by_field_and_node() {
    let world = World::new().await;
    let path = format!("/v1/jobs/{}", world.job(OK).await);
    let older = NodeInfo {
        name: "older".to_owned(),
        level: Level::FIRST,
        ..NodeInfo::default()
    };
    let older = world.store.join(&older).await.unwrap();
    let patch = json!({"lane": "batch", "target": {"http": {"headers": {"x-key": "{{ 1 }}"}}}});
    // The older node shows that it lives for as long as it takes.
    let store = world.store.clone();
    let beats = async {
        loop {
            let beat = store.beat(older, &NodeStatus::default()).await;
            assert!(beat.is_ok(), "{beat:?}");
            pause(10).await;
        }
    };
    let reply = tokio::select! {
        reply = world.patch(&path, patch.clone()) => reply,
        () = beats => unreachable!(),
    };
    reply.refused(409, "node-too-old");
    assert_eq!(reply.problem().1.as_deref(), Some("target"));
    assert!(reply.get("detail").contains("older"), "{}", reply.text);
    assert_eq!(world.get(&path).await.is(200).get("lane"), "standard");
    world.store.leave(older).await.unwrap();
    world.patch(&path, patch).await.is(200);
}
