//! Keys: who is let in, and what each role may do.

use std::sync::Arc;
use std::time::Duration;

use engine::{Clock, SystemClock};
use model::{Role, Tenant, TenantId, TenantName, Timestamp};
use serde_json::{Value, json};
use server::{Access, Minted};
use store::AccessStore;

use crate::world::{OK, Reply, World, pause};

pub fn now() -> Timestamp {
    Clock::now(&SystemClock)
}

impl World {
    /// A key that is in the store and known; its text.
    pub async fn key(&self, tenant: TenantId, role: Role) -> String {
        self.put_key(Minted::new(tenant, role, now())).await
    }

    pub async fn put_key(&self, minted: Minted) -> String {
        let id = minted.key.tenant;
        if id != TenantId::DEFAULT {
            let tenant = Tenant::new(id, TenantName::new("other").unwrap(), now());
            self.kept.access().create_tenant(&tenant).await.unwrap();
        }
        self.kept.access().create_key(&minted.key).await.unwrap();
        self.access.refresh().await.unwrap();
        minted.text
    }

    /// A request with a key.
    pub async fn as_key(&self, key: &str, method: &str, path: &str, body: Value) -> Reply {
        let bearer = format!("Bearer {key}");
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let headers = [("authorization", bearer.as_str())];
        self.call(method, path, &headers, body).await
    }
}

pub fn revoked(tenant: TenantId) -> Minted {
    let mut minted = Minted::new(tenant, Role::Root, now());
    minted.key.revoked_at = Some(now());
    minted
}

pub fn expired(tenant: TenantId) -> Minted {
    let mut minted = Minted::new(tenant, Role::Root, now());
    minted.key.expires_at = Some(now());
    minted
}

#[tokio::test]
async fn whatever_is_wrong_with_a_key_the_answer_is_the_same() {
    let world = World::with_keys().await;
    let good = world.key(TenantId::DEFAULT, Role::Root).await;
    let unknown = Minted::new(TenantId::DEFAULT, Role::Root, now()).text;
    let revoked = world.put_key(revoked(TenantId::DEFAULT)).await;
    let expired = world.put_key(expired(TenantId::DEFAULT)).await;
    let (id, _) = good.rsplit_once('_').unwrap();
    let (_, secret) = unknown.rsplit_once('_').unwrap();
    let values = [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        good.clone(),
        format!("Basic {good}"),
        format!("Bearer  {good}"),
        format!("Bearer {good} {good}"),
        format!("Bearer {good}0"),
        format!("Bearer {}", &good[..good.len() - 1]),
        format!("Bearer {}", good.to_uppercase()),
        format!("Bearer {id}_{secret}"),
        format!("Bearer {id}_"),
        format!("Bearer {unknown}"),
        format!("Bearer {revoked}"),
        format!("Bearer {expired}"),
        format!("Bearer {}", "a".repeat(8_000)),
    ];
    let none = world.get("/v1/jobs").await;
    none.refused(401, "unauthorized");
    assert_eq!(none.header("www-authenticate"), Some("Bearer"));
    for value in values {
        let headers = [("authorization", value.as_str())];
        let reply = world.call("GET", "/v1/jobs", &headers, "").await;
        assert_eq!(reply.status, none.status, "{value}");
        assert_eq!(reply.text, none.text, "{value}");
        assert_eq!(reply.headers, none.headers, "{value}");
    }
    let bearer = format!("Bearer {good}");
    let twice = [("authorization", bearer.as_str()); 2];
    let reply = world.call("GET", "/v1/jobs", &twice, "").await;
    reply.refused(401, "unauthorized");
    let in_url = world.get(&format!("/v1/jobs?key={good}")).await;
    in_url.refused(401, "unauthorized");
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let value = format!("{scheme} {good}");
        let headers = [("authorization", value.as_str())];
        world.call("GET", "/v1/jobs", &headers, "").await.is(200);
    }
}

#[tokio::test]
async fn what_helps_to_get_a_key_is_open() {
    let world = World::with_keys().await;
    for path in [
        "/healthz",
        "/docs",
        "/docs/api",
        "/docs/style.css",
        "/problems",
        "/problems/unauthorized",
        "/openapi.json",
    ] {
        world.get(path).await.is(200);
    }
    for path in ["/version", "/metrics", "/v1/nodes", "/v1/none", "/none"] {
        world.get(path).await.refused(401, "unauthorized");
    }
    let reader = world.key(TenantId::DEFAULT, Role::Reader).await;
    let get = async |path| world.as_key(&reader, "GET", path, Value::Null).await;
    get("/version").await.is(200);
    get("/metrics").await.refused(403, "role-insufficient");
    get("/v1/none").await.refused(404, "route-unknown");
    let wrong = world.as_key(&reader, "PUT", "/v1/jobs", Value::Null).await;
    wrong.refused(405, "method-not-allowed");
}

#[tokio::test]
async fn a_key_opens_until_it_is_revoked() {
    let world = World::with_keys().await;
    let root = world.key(TenantId::DEFAULT, Role::Root).await;
    let body = json!({"role": "operator", "label": "on call"});
    let made = world.as_key(&root, "POST", "/v1/keys", body).await.is(201);
    let (id, key) = (made.get("id"), made.get("key"));
    let path = format!("/v1/keys/{id}");
    assert_eq!(made.header("location"), Some(path.as_str()));
    assert_eq!(made.header("cache-control"), Some("no-store"));
    world
        .as_key(&key, "GET", "/v1/jobs", Value::Null)
        .await
        .is(200);

    let shown = world.as_key(&root, "GET", &path, Value::Null).await.is(200);
    assert_eq!(shown.json()["label"], "on call");
    assert_eq!(shown.json()["last_used_at"], Value::Null);
    assert!(shown.json().get("key").is_none());
    world.access.write_uses().await.unwrap();
    let shown = world.as_key(&root, "GET", &path, Value::Null).await;
    assert!(shown.json()["last_used_at"].is_string(), "{}", shown.text);

    let listed = world
        .as_key(&root, "GET", "/v1/keys?limit=1", Value::Null)
        .await;
    let next = format!("/v1/keys?cursor={}", listed.get("next_cursor"));
    let rest = world.as_key(&root, "GET", &next, Value::Null).await.is(200);
    // Two keys of one millisecond come in either order.
    let pages = [listed.json(), rest.json()];
    let of_page = pages
        .each_ref()
        .map(|page| page["items"].as_array().unwrap());
    assert_eq!(of_page.map(Vec::len), [1, 1]);
    assert!(of_page.iter().any(|items| items[0]["id"] == json!(id)));
    let (_, secret) = key.rsplit_once('_').unwrap();
    assert!(!listed.text.contains(secret) && !shown.text.contains(secret));

    let gone = world
        .as_key(&root, "DELETE", &path, Value::Null)
        .await
        .is(200);
    assert!(gone.json()["revoked_at"].is_string());
    let refused = world.as_key(&key, "GET", "/v1/jobs", Value::Null).await;
    refused.refused(401, "unauthorized");
    let again = world
        .as_key(&root, "DELETE", &path, Value::Null)
        .await
        .is(200);
    assert_eq!(again.text, gone.text);
}

#[tokio::test]
async fn a_key_revoked_elsewhere_opens_nothing_here() {
    let world = World::with_keys().await;
    let other = Access::by_keys(Arc::new(world.store.clone()))
        .await
        .unwrap();
    let minted = Minted::new(TenantId::DEFAULT, Role::Reader, now());
    let key = world.put_key(minted.clone()).await;
    world
        .as_key(&key, "GET", "/v1/jobs", Value::Null)
        .await
        .is(200);
    let (tenant, id) = (minted.key.tenant, minted.key.id);
    world.store.revoke_key(tenant, id, now()).await.unwrap();
    // A node looks twice a second; this one has nobody who does.
    world.access.refresh().await.unwrap();
    other.refresh().await.unwrap();
    let refused = world.as_key(&key, "GET", "/v1/jobs", Value::Null).await;
    refused.refused(401, "unauthorized");
}

/// Nobody hints: the store is changed behind everyone's back.
#[tokio::test]
async fn a_node_that_hears_no_hint_reads_for_itself() {
    let world = World::with_keys().await;
    let minted = Minted::new(TenantId::DEFAULT, Role::Reader, now());
    let (tenant, id) = (minted.key.tenant, minted.key.id);
    let (access, handle) = (Arc::clone(&world.access), world.handle());
    let keeping = tokio::spawn(async move { access.keep(handle).await });
    world.store.create_key(&minted.key).await.unwrap();
    let status = async || {
        let reply = world.as_key(&minted.text, "GET", "/v1/jobs", Value::Null);
        reply.await.status.as_u16()
    };
    let within_a_second = async |wanted: u16| {
        for _ in 0..100 {
            if status().await == wanted {
                return;
            }
            pause(10).await;
        }
        panic!("not {wanted} within a second");
    };
    within_a_second(200).await;
    world.store.revoke_key(tenant, id, now()).await.unwrap();
    within_a_second(401).await;
    keeping.abort();
}

#[tokio::test]
async fn a_key_expires() {
    let world = World::with_keys().await;
    let root = world.key(TenantId::DEFAULT, Role::Root).await;
    let body = json!({"role": "reader", "expires_in": "1s"});
    let made = world.as_key(&root, "POST", "/v1/keys", body).await.is(201);
    let key = made.get("key");
    world
        .as_key(&key, "GET", "/v1/jobs", Value::Null)
        .await
        .is(200);
    pause(1_050).await;
    let refused = world.as_key(&key, "GET", "/v1/jobs", Value::Null).await;
    refused.refused(401, "unauthorized");
}

#[tokio::test]
async fn nobody_makes_or_revokes_a_key_that_may_do_more_than_its_own() {
    let world = World::with_keys().await;
    let admin = world.key(TenantId::DEFAULT, Role::Admin).await;
    let root = Minted::new(TenantId::DEFAULT, Role::Root, now());
    let path = format!("/v1/keys/{}", root.key.id);
    world.put_key(root).await;
    let body = json!({"role": "root"});
    let made = world.as_key(&admin, "POST", "/v1/keys", body).await;
    made.refused(403, "role-insufficient");
    assert_eq!(made.get("needed"), "root");
    let gone = world.as_key(&admin, "DELETE", &path, Value::Null).await;
    gone.refused(403, "role-insufficient");
    for role in ["reader", "operator", "admin"] {
        let body = json!({"role": role});
        world.as_key(&admin, "POST", "/v1/keys", body).await.is(201);
    }
}

#[tokio::test]
async fn the_last_root_key_stays() {
    let world = World::with_keys().await;
    let first = Minted::new(TenantId::DEFAULT, Role::Root, now());
    let path = format!("/v1/keys/{}", first.key.id);
    let first = world.put_key(first).await;
    let kept = world.as_key(&first, "DELETE", &path, Value::Null).await;
    kept.refused(409, "last-root-key");
    let body = json!({"role": "root"});
    let second = world.as_key(&first, "POST", "/v1/keys", body).await.is(201);
    let second = second.get("key");
    world
        .as_key(&second, "DELETE", &path, Value::Null)
        .await
        .is(200);
    let refused = world.as_key(&first, "GET", "/v1/keys", Value::Null).await;
    refused.refused(401, "unauthorized");
}

#[tokio::test]
async fn a_key_that_cannot_be_made_is_refused_by_its_field() {
    let world = World::new().await;
    let check = async |body: Value, problem: &str, field: &str| {
        let reply = world.post("/v1/keys", body.clone()).await;
        let (name, at) = reply.problem();
        assert_eq!(
            (name.as_str(), at.as_deref()),
            (problem, Some(field)),
            "{body}"
        );
    };
    check(json!({}), "field-missing", "role").await;
    check(json!({"role": null}), "field-missing", "role").await;
    for role in [
        json!("owner"),
        json!("Root"),
        json!(""),
        json!(1),
        json!(["root"]),
    ] {
        check(json!({"role": role}), "field-invalid", "role").await;
    }
    for label in [json!(""), json!("a\nb"), json!("a".repeat(129)), json!(7)] {
        let body = json!({"role": "reader", "label": label});
        check(body, "field-invalid", "label").await;
    }
    for moment in [
        json!("yesterday"),
        json!("2020-01-01T00:00:00Z"),
        json!(0),
        json!(true),
    ] {
        let body = json!({"role": "reader", "expires_at": moment});
        check(body, "field-invalid", "expires_at").await;
    }
    let body = json!({"role": "reader", "expires_in": "0s"});
    check(body, "field-invalid", "expires_at").await;
    let body = json!({"role": "reader", "expires_in": "soon"});
    check(body, "field-invalid", "expires_in").await;
    let body = json!({"role": "reader", "expires_in": "1d", "expires_at": "2099-01-01T00:00:00Z"});
    check(body, "field-invalid", "expires_in").await;
    for unknown in ["tenants", "key", "id", "digest", "revoked_at"] {
        let body = json!({"role": "reader", unknown: "x"});
        check(body, "field-unknown", unknown).await;
    }
    for id in ["none", "job_0192f0c1a2b37def8123456789abcdef"] {
        let reply = world.get(&format!("/v1/keys/{id}")).await;
        reply.refused(404, "access-key-not-found");
    }
    let unknown = "/v1/keys/key_0192f0c1a2b37def8123456789abcdef";
    world
        .get(unknown)
        .await
        .refused(404, "access-key-not-found");
    world
        .delete(unknown)
        .await
        .refused(404, "access-key-not-found");
}

#[tokio::test]
async fn a_batch_ends_when_its_key_is_revoked() {
    let world = World::with_keys().await;
    let minted = Minted::new(TenantId::DEFAULT, Role::Admin, now());
    let (id, tenant) = (minted.key.id, minted.key.tenant);
    let key = world.put_key(minted).await;
    let (lines, body) = tokio::sync::mpsc::channel::<Result<String, std::io::Error>>(4);
    let line = json!({"schedule": "@yearly", "target": OK});
    let line = format!("{line}\n");
    let request = axum::http::Request::post("/v1/jobs/batch")
        .header("authorization", format!("Bearer {key}"))
        .header("content-type", "application/x-ndjson")
        .body(axum::body::Body::from_stream(
            tokio_stream::wrappers::ReceiverStream::new(body),
        ))
        .unwrap();
    let sending = async {
        lines.send(Ok(line.clone())).await.unwrap();
        while world.store.all_jobs().is_empty() {
            pause(5).await;
        }
        world.store.revoke_key(tenant, id, now()).await.unwrap();
        world.access.refresh().await.unwrap();
        lines.send(Ok(line.clone())).await.unwrap();
        drop(lines);
    };
    let ((), reply) = tokio::join!(sending, world.send(request));
    let answers: Vec<Value> = reply
        .text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let statuses: Vec<_> = answers.iter().map(|line| line["status"].clone()).collect();
    assert_eq!(statuses, [201, 401], "{}", reply.text);
    assert_eq!(world.store.all_jobs().len(), 1);
}

/// The least of many rounds is what the work itself takes.
#[tokio::test]
async fn a_wrong_key_takes_as_long_as_any_other() {
    const ROUNDS: usize = 40;
    let world = World::with_keys().await;
    let good = world.key(TenantId::DEFAULT, Role::Root).await;
    let unknown = Minted::new(TenantId::DEFAULT, Role::Root, now()).text;
    let (id, _) = good.rsplit_once('_').unwrap();
    let (_, secret) = unknown.rsplit_once('_').unwrap();
    let keys = [
        format!("{id}_{secret}"),
        unknown.clone(),
        "short".to_owned(),
        "a".repeat(200),
        world.put_key(revoked(TenantId::DEFAULT)).await,
        world.put_key(expired(TenantId::DEFAULT)).await,
    ];
    let mut least = [Duration::MAX; 6];
    for _ in 0..ROUNDS {
        for (key, least) in keys.iter().zip(&mut least) {
            let begun = SystemClock.uptime();
            for _ in 0..20 {
                let reply = world.as_key(key, "GET", "/version", Value::Null).await;
                assert_eq!(reply.status, 401);
            }
            *least = (*least).min(SystemClock.uptime().saturating_sub(begun));
        }
    }
    let (shortest, longest) = (least.iter().min().unwrap(), least.iter().max().unwrap());
    assert!(*longest < *shortest * 3 / 2, "{least:?}");
}
