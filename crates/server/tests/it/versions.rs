//! Versions of jobs: what they were, who changed them, and the way back.

use serde_json::{Value, json};

use crate::world::{OK, World};

async fn edited() -> (World, String) {
    let world = World::new().await;
    let body = json!({"key": "a", "schedule": "@yearly", "target": OK, "payload": 1});
    let id = world.post("/v1/jobs", body).await.is(201).get("id");
    let path = format!("/v1/jobs/{id}");
    world
        .patch(&path, json!({"timeout": "9s", "payload": 2}))
        .await
        .is(200);
    world.post_empty(&format!("{path}/pause")).await.is(200);
    world.post_empty(&format!("{path}/resume")).await.is(200);
    world.patch(&path, json!({"key": "b"})).await.is(200);
    (world, path)
}

fn numbers(list: &Value) -> Vec<u64> {
    let items = list["items"].as_array().unwrap().iter();
    items.map(|it| it["version"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn each_edit_is_a_version_that_says_what_changed() {
    let (world, path) = edited().await;
    let list = world.get(&format!("{path}/versions")).await.is(200).json();
    assert_eq!(numbers(&list), [5, 4, 1]);
    let items = &list["items"];
    assert_eq!(items[0]["changed"], json!(["key"]));
    assert_eq!(items[1]["changed"], json!(["payload", "timeout"]));
    assert_eq!(items[1]["made_by"], "anonymous");
    assert_eq!(items[1]["ended_by"], "anonymous");
    assert!(items[0]["ended_at"].is_null() && items[2]["changed"].is_null());
    let page = world
        .get(&format!("{path}/versions?limit=1"))
        .await
        .is(200)
        .json();
    assert_eq!(numbers(&page), [5]);
    let cursor = page["next_cursor"].as_str().unwrap();
    let next = format!("{path}/versions?limit=5&cursor={cursor}");
    assert_eq!(numbers(&world.get(&next).await.is(200).json()), [4, 1]);
}

#[tokio::test]
async fn a_version_shows_the_job_as_it_was() {
    let (world, path) = edited().await;
    let at = async |version: u32| {
        let reply = world.get(&format!("{path}/versions/{version}")).await;
        reply.is(200).json()["job"].clone()
    };
    let (first, third, last) = (at(1).await, at(3).await, at(5).await);
    assert_eq!((&first["key"], &first["payload"]), (&json!("a"), &json!(1)));
    assert_eq!((&third["key"], &third["payload"]), (&json!("a"), &json!(2)));
    assert_eq!(last["key"], "b");
    for version in ["6", "0", "x"] {
        let reply = world.get(&format!("{path}/versions/{version}")).await;
        reply.refused(404, "version-not-found");
    }
}

#[tokio::test]
async fn a_job_goes_back_to_what_it_was_by_an_edit() {
    let (world, path) = edited().await;
    let revert = format!("{path}/revert");
    let stale = [("if-match", "\"4\"")];
    let body = json!({"to": 1});
    let reply = world.call("POST", &revert, &stale, body.to_string()).await;
    reply.refused(412, "version-conflict");
    let dry = format!("{revert}?dry_run=true");
    assert_eq!(world.post(&dry, body.clone()).await.is(200).get("key"), "a");
    assert_eq!(world.get(&path).await.get("key"), "b");
    let done = world.post(&revert, body.clone()).await.is(200).json();
    assert_eq!((&done["key"], &done["payload"]), (&json!("a"), &json!(1)));
    assert_eq!(done["version"], 6);
    let first = world
        .get(&format!("{path}/versions/1"))
        .await
        .is(200)
        .json();
    assert_eq!(first["job"]["timeout"], done["timeout"]);
    // It is so already.
    assert_eq!(world.post(&revert, body).await.is(200).json()["version"], 6);
    world
        .post(&revert, json!({"to": 9}))
        .await
        .refused(404, "version-not-found");
    world
        .post(&revert, json!({}))
        .await
        .refused(422, "field-missing");
}
