//! Who shares the work, and what a node with only some of the parts answers.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use engine::{ClockOf, NodeConfig, SystemClock};
use model::Timestamp;
use serde_json::{Value, json};
use store::mem::MemStore;

use crate::world::{OK, World, pause, send};

fn config(name: &str, parts: &str) -> NodeConfig {
    NodeConfig {
        name: name.to_owned(),
        parts: parts.parse().unwrap(),
        clock: ClockOf::Store,
        ..NodeConfig::default()
    }
}

async fn node(store: &MemStore, name: &str, parts: &str) -> World {
    World::with_node(store.clone(), |store| Arc::new(store), config(name, parts)).await
}

fn store() -> MemStore {
    MemStore::new(Arc::new(SystemClock))
}

/// Queries until the answer is as wished.
async fn nodes_once(world: &World, wish: impl Fn(&[Value]) -> bool) -> Value {
    let mut list = Value::Null;
    for _ in 0..500 {
        list = world.get("/v1/nodes").await.is(200).json();
        if list["items"].as_array().is_some_and(|items| wish(items)) {
            return list;
        }
        pause(10).await;
    }
    panic!("not as wished: {list}");
}

fn moment(value: &Value) -> Timestamp {
    Timestamp::parse(value.as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn a_node_alone_lists_itself() {
    let world = World::new().await;
    let list = nodes_once(&world, |items| {
        items.len() == 1 && items[0]["shards"] == 256
    })
    .await;
    let node = &list["items"][0];
    assert!(node["id"].as_str().unwrap().starts_with("presence_"));
    assert_eq!(node["name"], "punctual");
    assert_eq!(node["parts"], json!(["api", "schedule", "execute"]));
    let version = world.get("/version").await.json();
    assert_eq!(version["parts"], node["parts"]);
    assert_eq!(version["version"], node["version"]);
    assert_eq!(version["tzdb"], node["tzdb"]);
    assert_eq!(node["self"], true);
    assert_eq!(
        (&node["schedules"], &node["executes"]),
        (&json!(true), &json!(true))
    );
    assert!(node["room"].as_u64().unwrap() > 0);
    assert_eq!(node["lateness"], "0s");
    assert_eq!(
        node["clock_offset"],
        Value::Null,
        "the store goes by its clock"
    );
    let (joined_at, beaten_at) = (moment(&node["joined_at"]), moment(&node["beaten_at"]));
    assert!(joined_at <= beaten_at && beaten_at <= moment(&list["heard_at"]));
    world
        .get("/v1/nodes?limit=1")
        .await
        .refused(400, "parameter-invalid");
}

#[tokio::test]
async fn an_answer_has_the_fields_that_the_contract_names() {
    let world = World::new().await;
    let list = nodes_once(&world, |items| items.len() == 1).await;
    let contract: Value = serde_json::from_str(&server::openapi_json()).unwrap();
    let fields = |value: &Value| -> Vec<String> {
        let mut fields: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        fields.sort();
        fields
    };
    let described = |schema: &str| fields(&contract["components"]["schemas"][schema]["properties"]);
    assert_eq!(fields(&list), described("NodeList"));
    assert_eq!(fields(&list["items"][0]), described("Node"));
}

#[tokio::test]
async fn nodes_that_share_a_store_list_each_other_by_name() {
    let store = store();
    let all = "api,schedule,execute";
    let b = node(&store, "b", all).await;
    let a = node(&store, "a", all).await;
    let both = |items: &[Value]| {
        let held = |item: &Value| item["shards"].as_u64().unwrap() > 0;
        let known = |item: &Value| !item["clock_offset"].is_null();
        items.len() == 2 && items.iter().all(|item| held(item) && known(item))
    };
    let (by_a, by_b) = (nodes_once(&a, both).await, nodes_once(&b, both).await);
    let names = |list: &Value| {
        [
            list["items"][0]["name"].clone(),
            list["items"][1]["name"].clone(),
        ]
    };
    let selves = |list: &Value| {
        [
            list["items"][0]["self"].clone(),
            list["items"][1]["self"].clone(),
        ]
    };
    assert_eq!(
        (names(&by_a), names(&by_b)),
        ([json!("a"), json!("b")], [json!("a"), json!("b")])
    );
    assert_eq!(selves(&by_a), [true, false]);
    assert_eq!(selves(&by_b), [false, true]);
    let shards = |item: &Value| item["shards"].as_u64().unwrap();
    assert_eq!(shards(&by_a["items"][0]) + shards(&by_a["items"][1]), 256);
    for node in by_a["items"].as_array().unwrap() {
        let offset = node["clock_offset"].as_str().unwrap();
        let uncertainty = node["clock_uncertainty"].as_str().unwrap();
        assert!(
            offset.ends_with("ms") && uncertainty.ends_with("ms"),
            "{node}"
        );
    }
    assert!(
        a.get("/metrics")
            .await
            .text
            .contains("\npunctual_nodes 2\n")
    );
}

#[tokio::test]
async fn what_was_heard_last_is_shown_with_its_age() {
    let world = World::new().await;
    let before = nodes_once(&world, |items| items.len() == 1).await;
    let router = world.crash();
    pause(3_100).await;
    let get = |path: &str| Request::get(path).body(Body::empty()).unwrap();
    let list = send(&router, get("/v1/nodes")).await.is(200).json();
    assert_eq!(list["items"][0]["id"], before["items"][0]["id"]);
    let age = list["heard_age"].as_str().unwrap();
    let age = model::schedule::parse_span(age).unwrap();
    assert!(age >= Duration::from_secs(3), "{list}");
    let beaten_at = moment(&list["items"][0]["beaten_at"]);
    assert!(beaten_at <= moment(&list["heard_at"]), "{list}");
    let reply = send(&router, get("/readyz")).await;
    reply.refused(503, "not-ready");
    assert!(
        reply.get("detail").contains("has not answered for 3"),
        "{}",
        reply.text
    );
}

#[tokio::test]
async fn a_node_without_api_says_how_it_is_and_nothing_else() {
    let world = node(&store(), "clock", "schedule").await;
    for path in [
        "/healthz",
        "/version",
        "/metrics",
        "/problems",
        "/problems/not-api",
    ] {
        world.get(path).await.is(200);
    }
    assert_eq!(
        world.get("/version").await.json()["parts"],
        json!(["schedule"])
    );
    for path in [
        "/v1/jobs",
        "/v1/jobs/by-key/a",
        "/v1/nodes",
        "/openapi.json",
        "/",
        "/nowhere",
    ] {
        let reply = world.get(path).await;
        reply.refused(421, "not-api");
        assert!(
            reply.get("detail").contains("its parts are schedule"),
            "{}",
            reply.text
        );
    }
    let job = json!({"schedule": "@yearly", "target": OK});
    world.post("/v1/jobs", job).await.refused(421, "not-api");
    let reply = world.post_empty("/healthz").await;
    reply.refused(405, "method-not-allowed");
    assert_eq!(world.store.all_jobs().len(), 0);
}

#[tokio::test]
async fn nodes_become_ready_with_whatever_parts_they_have() {
    let store = store();
    for parts in [
        "api",
        "schedule",
        "execute",
        "api,execute",
        "api,schedule,execute",
    ] {
        let world = node(&store, parts, parts).await;
        let mut reply = world.get("/readyz").await;
        for _ in 0..500 {
            if reply.status == 200 {
                break;
            }
            pause(10).await;
            reply = world.get("/readyz").await;
        }
        reply.is(200);
    }
}

#[tokio::test]
async fn a_node_that_stops_is_not_ready_and_still_answers() {
    let world = World::new().await;
    world.stopping.cancel();
    let reply = world.get("/readyz").await;
    reply.refused(503, "not-ready");
    assert_eq!(reply.get("detail"), "the node is stopping");
    let reply = world.get("/v1/nodes").await.is(200);
    assert_eq!(reply.header("connection"), Some("close"));
    world.job(OK).await;
}
