//! The audit log: who changed what, to whom it is shown, and by which words it is found.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use engine::vault::{MasterKey, MasterKeys};
use engine::{NodeConfig, SystemClock};
use model::{Role, TenantId};
use serde_json::{Value, json};
use server::Minted;
use store::mem::MemStore;
use store::{AccessStore, Action, AuditEntry};
use tokio_stream::StreamExt;
use tower::ServiceExt;

use crate::access::now;
use crate::world::{OK, Reply, World, pause};

fn items(reply: &Reply) -> Vec<Value> {
    reply.json()["items"].as_array().unwrap().clone()
}

fn actions(reply: &Reply) -> Vec<String> {
    let items = items(reply).into_iter();
    items
        .map(|entry| entry["action"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn what_a_key_changed_is_listed_with_its_name_and_what_changed() {
    let world = World::with_keys().await;
    let root = world.key(TenantId::DEFAULT, Role::Root).await;
    let body = json!({"role": "admin", "label": "ann"});
    let made = world.as_key(&root, "POST", "/v1/keys", body).await.is(201);
    let (id, ann) = (made.get("id"), made.get("key"));
    let body = json!({"schedule": "@yearly", "target": {"http": {"url": OK, "headers": {"authorization": "Bearer planted"}}}});
    let job = world.as_key(&ann, "POST", "/v1/jobs", body).await.is(201);
    let path = format!("/v1/jobs/{}", job.get("id"));
    let edit = json!({"timeout": "9s"});
    world.as_key(&ann, "PATCH", &path, edit).await.is(200);
    let pause = format!("{path}/pause");
    world
        .as_key(&ann, "POST", &pause, Value::Null)
        .await
        .is(200);

    let subject = format!("/v1/audit?subject={}", job.get("id"));
    let listed = world
        .as_key(&ann, "GET", &subject, Value::Null)
        .await
        .is(200);
    assert_eq!(actions(&listed), ["job.pause", "job.edit", "job.create"]);
    assert!(!listed.text.contains("planted"), "{}", listed.text);
    for entry in items(&listed) {
        assert_eq!(entry["actor"], "ann", "{entry}");
        assert_eq!(entry["key"], id.as_str(), "{entry}");
        assert_eq!(entry["tenant"], "default", "{entry}");
    }
    let edit = &items(&listed)[1];
    assert_eq!(edit["after"]["definition"]["timeout"], 9_000, "{edit}");
    assert!(edit["before"]["definition"]["timeout"].is_null(), "{edit}");

    let found = async |query: &str| {
        let path = format!("/v1/audit?{query}");
        actions(&world.as_key(&ann, "GET", &path, Value::Null).await.is(200))
    };
    assert_eq!(found("action=job.pause").await, ["job.pause"]);
    assert_eq!(found("actor=ann&action=job.edit").await, ["job.edit"]);
    assert_eq!(found("actor=nobody").await, Vec::<String>::new());
    assert_eq!(found(&format!("key={id}&limit=1")).await, ["job.pause"]);
    assert_eq!(
        found("since=2100-01-01T00:00:00Z").await,
        Vec::<String>::new()
    );
    assert_eq!(
        found("until=2000-01-01T00:00:00Z").await,
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn a_list_goes_on_where_its_page_ended() {
    let world = World::new().await;
    for _ in 0..5 {
        world.job(OK).await;
    }
    let all = items(&world.get("/v1/audit").await.is(200));
    let (mut paged, mut path) = (Vec::new(), "/v1/audit?limit=2".to_owned());
    for _ in 0..9 {
        let page = world.get(&path).await.is(200);
        paged.extend(items(&page));
        match page.json()["next_cursor"].as_str() {
            Some(cursor) => path = format!("/v1/audit?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(all.len(), 5);
    assert_eq!(paged, all);
}

#[tokio::test]
async fn a_stream_ends_when_its_key_is_revoked() {
    let world = World::with_keys().await;
    let minted = Minted::new(TenantId::DEFAULT, Role::Root, now());
    let (id, tenant) = (minted.key.id, minted.key.tenant);
    let key = world.put_key(minted).await;
    world.key(tenant, Role::Root).await;
    for _ in 0..1_000 {
        let body = json!({"schedule": "@yearly", "target": OK});
        world.as_key(&key, "POST", "/v1/jobs", body).await.is(201);
    }
    let open = async |path: &str| {
        let request = Request::get(path).header("authorization", format!("Bearer {key}"));
        let request = request.body(Body::empty()).unwrap();
        let response = world.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        response.into_body().into_data_stream()
    };
    let mut streams = [
        open("/v1/audit/export").await,
        open("/v1/audit/verify").await,
    ];
    assert!(streams[0].next().await.unwrap().is_ok());
    // The next ones are ready, and wait to be read.
    pause(50).await;
    world.store.revoke_key(tenant, id, now()).await.unwrap();
    world.access.refresh().await.unwrap();
    for stream in &mut streams {
        let next = stream.next().await.unwrap();
        assert!(next.is_err(), "the key is revoked");
    }
}

#[tokio::test]
async fn an_export_is_the_whole_log_oldest_first() {
    let world = World::new().await;
    for _ in 0..450 {
        world.job(OK).await;
    }
    let exported = world.get("/v1/audit/export").await.is(200);
    assert_eq!(
        exported.header("content-type"),
        Some("application/x-ndjson")
    );
    let lines = exported.text.lines();
    let seqs: Vec<u64> = lines
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["seq"]
                .as_u64()
                .unwrap()
        })
        .collect();
    assert_eq!(seqs, (1..=450).collect::<Vec<_>>());
    let none = world.get("/v1/audit/export?actor=nobody").await.is(200);
    assert_eq!(none.text, "");
}

#[tokio::test]
async fn a_batch_is_entered_for_whoever_sent_it() {
    let world = World::with_keys().await;
    let admin = world.key(TenantId::DEFAULT, Role::Admin).await;
    let line = json!({"schedule": "@yearly", "target": OK}).to_string();
    let bearer = format!("Bearer {admin}");
    let headers = [
        ("content-type", "application/x-ndjson"),
        ("authorization", bearer.as_str()),
    ];
    let lines = format!("{line}\n{line}\n");
    let sent = world.call("POST", "/v1/jobs/batch", &headers, lines).await;
    sent.is(200);
    let path = "/v1/audit?action=job.create";
    let listed = world.as_key(&admin, "GET", path, Value::Null).await.is(200);
    assert_eq!(items(&listed).len(), 2);
    assert!(items(&listed).iter().all(|it| it["key"].is_string()));
}

#[tokio::test]
async fn a_tenant_sees_its_own_changes_and_root_sees_all() {
    let world = World::with_keys().await;
    let root = world.key(TenantId::DEFAULT, Role::Root).await;
    let ours = world.key(TenantId::DEFAULT, Role::Admin).await;
    let body = json!({"name": "team-search"});
    world
        .as_key(&root, "POST", "/v1/tenants", body)
        .await
        .is(201);
    let body = json!({"tenant": "team-search", "role": "admin"});
    let theirs = world.as_key(&root, "POST", "/v1/keys", body).await.is(201);
    let theirs = theirs.get("key");
    let job = json!({"schedule": "@yearly", "target": OK});
    for key in [&ours, &theirs] {
        world
            .as_key(key, "POST", "/v1/jobs", job.clone())
            .await
            .is(201);
    }
    let created = async |key: &str, query: &str| {
        let path = format!("/v1/audit?action=job.create{query}");
        let reply = world.as_key(key, "GET", &path, Value::Null).await.is(200);
        let tenants = items(&reply).into_iter();
        let tenants = tenants.map(|entry| entry["tenant"].as_str().unwrap().to_owned());
        tenants.collect::<Vec<_>>()
    };
    assert_eq!(created(&ours, "").await, ["default"]);
    assert_eq!(created(&theirs, "").await, ["team-search"]);
    assert_eq!(created(&root, "").await, ["team-search", "default"]);
    assert_eq!(created(&root, "&tenant=default").await, ["default"]);
    let named = "/v1/audit?tenant=team-search";
    let refused = world.as_key(&ours, "GET", named, Value::Null).await;
    refused.refused(404, "tenant-not-found");
    assert_eq!(created(&ours, "&tenant=default").await, ["default"]);
}

#[tokio::test]
async fn what_cannot_be_filtered_by_is_refused_by_name() {
    let world = World::new().await;
    for (query, field) in [
        ("action=job.destroy", "action"),
        ("since=yesterday", "since"),
        ("until=x", "until"),
        ("key=job_1", "key"),
        ("tenant=No%20such", "tenant"),
        ("cursor=x", "cursor"),
        ("limit=0", "limit"),
        ("who=ann", "who"),
    ] {
        let reply = world.get(&format!("/v1/audit?{query}")).await;
        reply.refused(400, "parameter-invalid");
        assert_eq!(reply.problem().1.as_deref(), Some(field), "{query}");
    }
}

#[tokio::test]
async fn a_node_without_a_master_key_says_that_it_can_check_nothing() {
    let world = World::without_master_key().await;
    world.job(OK).await;
    let checked = world.get("/v1/audit/verify").await.is(200);
    let last: Value = serde_json::from_str(checked.text.lines().last().unwrap()).unwrap();
    assert_eq!(last["whole"], false);
    assert!(
        last["wrong"]["why"]
            .as_str()
            .unwrap()
            .contains("no master key")
    );
    let bad = world.get("/v1/audit/verify?head=1:abc").await;
    bad.refused(400, "parameter-invalid");
    assert_eq!(bad.problem().1.as_deref(), Some("head"));
}

#[tokio::test]
async fn a_node_with_a_master_key_seals_and_checks_what_it_sealed() {
    let key = MasterKeys::new(MasterKey::new([1; 32]));
    let config = NodeConfig {
        master_keys: Some(Arc::new(key)),
        ..NodeConfig::default()
    };
    let store = MemStore::new(Arc::new(SystemClock));
    let world = World::with_node(store, |store| Arc::new(store), config).await;
    world.job(OK).await;
    let check = async || {
        let checked = world.get("/v1/audit/verify").await.is(200);
        serde_json::from_str::<Value>(checked.text.lines().last().unwrap()).unwrap()
    };
    let mut last = check().await;
    for _ in 0..500 {
        if last["entries"] == 1 {
            break;
        }
        pause(20).await;
        last = check().await;
    }
    assert_eq!(
        (&last["whole"], &last["entries"]),
        (&json!(true), &json!(1))
    );
    let edit = |log: &mut BTreeMap<u64, AuditEntry>| {
        log.values_mut()
            .for_each(|entry| entry.actor = "nobody".to_owned());
    };
    world.store.edit_audit(edit);
    let last = check().await;
    assert_eq!(
        (&last["whole"], &last["wrong"]["segment"]),
        (&json!(false), &json!(1))
    );
}

#[test]
fn the_guide_names_every_action() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/audit.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let rows = guide.lines().filter(|line| line.starts_with("| `"));
    let first: Vec<&str> = rows.filter_map(|row| row.split('|').nth(1)).collect();
    let named = first.join(",");
    for action in Action::ALL {
        let quoted = format!("`{action}`");
        assert!(named.contains(&quoted), "{action} is not in the table");
    }
    assert_eq!(named.matches('`').count(), 2 * Action::ALL.len(), "{named}");
}
