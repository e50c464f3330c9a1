//! Tenants: made by root, each with keys of its own, and none sees another's things.

use model::{Role, TenantId};
use serde_json::{Value, json};

use crate::world::{OK, World};

#[tokio::test]
async fn a_tenant_is_made_given_a_key_and_used() {
    let world = World::with_keys().await;
    let root = world.key(TenantId::DEFAULT, Role::Root).await;
    let call = async |key: &str, method: &str, path: &str, body: Value| {
        world.as_key(key, method, path, body).await
    };
    let body = json!({"name": "team-search", "note": "owned by Ann"});
    let made = call(&root, "POST", "/v1/tenants", body).await.is(201);
    assert_eq!(made.header("location"), Some("/v1/tenants/team-search"));
    let body = json!({"tenant": "team-search", "role": "admin"});
    let key = call(&root, "POST", "/v1/keys", body).await.is(201);
    assert_eq!(key.get("tenant"), "team-search");
    let (id, admin) = (key.get("id"), key.get("key"));

    let job = json!({"key": "nightly", "schedule": "@yearly", "target": OK});
    call(&admin, "POST", "/v1/jobs", job.clone()).await.is(201);
    // The same key of a job is free for everyone else.
    call(&root, "POST", "/v1/jobs", job).await.is(201);
    for key in [&admin, &root] {
        let listed = call(key, "GET", "/v1/jobs", Value::Null).await.json();
        assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    }
    let own = call(&admin, "GET", "/v1/keys", Value::Null).await.json();
    assert_eq!(own["items"].as_array().unwrap().len(), 1);
    let path = format!("/v1/keys/{id}");
    let of_root = call(&root, "GET", &path, Value::Null).await;
    of_root.refused(404, "access-key-not-found");
    let path = format!("{path}?tenant=team-search");
    call(&root, "GET", &path, Value::Null).await.is(200);
    call(&admin, "GET", &path, Value::Null).await.is(200);

    let gone = "/v1/tenants/team-search";
    let refused = async |has: &str| {
        let reply = call(&root, "DELETE", gone, Value::Null).await;
        reply.refused(409, "tenant-in-use");
        assert_eq!(reply.get("has"), has);
    };
    refused("jobs").await;
    let nightly = "/v1/jobs/by-key/nightly";
    call(&admin, "DELETE", nightly, Value::Null).await.is(200);
    let holidays = "/v1/calendars/holidays";
    let body = json!({"yearly": ["12-25"]});
    call(&admin, "PUT", holidays, body).await.is(201);
    refused("calendars").await;
    call(&admin, "DELETE", holidays, Value::Null).await.is(200);
    refused("keys").await;
    call(&root, "DELETE", &path, Value::Null).await.is(200);
    let going = call(&root, "DELETE", gone, Value::Null)
        .await
        .is(202)
        .json();
    let again = call(&root, "DELETE", gone, Value::Null)
        .await
        .is(202)
        .json();
    assert!(going["deleting_at"].is_string(), "{going}");
    assert_eq!(again, going);
    let listed = call(&root, "GET", nightly, Value::Null).await;
    assert_eq!(listed.status, 200, "the other's job stays");
}

#[tokio::test]
async fn tenants_are_listed_and_noted() {
    let world = World::new().await;
    for name in ["beta", "alpha"] {
        world
            .post("/v1/tenants", json!({"name": name}))
            .await
            .is(201);
    }
    let first = world.get("/v1/tenants?limit=2").await.is(200);
    let next = format!("/v1/tenants?cursor={}", first.get("next_cursor"));
    let names = |list: &Value| {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|it| it["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&first.json()), ["alpha", "beta"]);
    assert_eq!(names(&world.get(&next).await.json()), ["default"]);
    let alpha = "/v1/tenants/alpha";
    world.patch(alpha, json!({"note": "a"})).await.is(200);
    assert_eq!(world.patch(alpha, json!({})).await.get("note"), "a");
    let reset = world.patch(alpha, json!({"note": null})).await.is(200);
    assert_eq!(reset.json()["note"], Value::Null);
    assert_eq!(world.get(alpha).await.text, reset.text);
}

#[tokio::test]
async fn a_tenant_that_cannot_be_is_refused_by_its_field() {
    let world = World::new().await;
    let check = async |path: &str, body: Value, problem: &str, field: &str| {
        let reply = world.post(path, body.clone()).await;
        let (name, at) = reply.problem();
        assert_eq!(
            (name.as_str(), at.as_deref()),
            (problem, Some(field)),
            "{body}"
        );
    };
    let tenants = "/v1/tenants";
    check(tenants, json!({}), "field-missing", "name").await;
    let long = "a".repeat(65);
    for name in ["", "Team", "7", "a_b", "a b", "ä", "а", long.as_str()] {
        check(tenants, json!({ "name": name }), "field-invalid", "name").await;
    }
    check(tenants, json!({"name": 7}), "field-invalid", "name").await;
    let body = json!({"name": "a", "note": "\u{7}"});
    check(tenants, body, "field-invalid", "note").await;
    let body = json!({"name": "a", "id": "x"});
    check(tenants, body, "field-unknown", "id").await;
    check(tenants, json!({"name": "default"}), "tenant-exists", "name").await;
    let fixed = world.delete("/v1/tenants/default").await;
    fixed.refused(409, "tenant-in-use");
    world
        .get("/v1/tenants/none")
        .await
        .refused(404, "tenant-not-found");
    world
        .get("/v1/tenants/A")
        .await
        .refused(422, "field-invalid");

    let keys = "/v1/keys";
    let body = json!({"role": "reader", "tenant": "none"});
    check(keys, body, "tenant-not-found", "tenant").await;
    world.post(tenants, json!({"name": "team"})).await.is(201);
    let body = json!({"role": "root", "tenant": "team"});
    check(keys, body, "field-invalid", "role").await;
    let listed = world.get("/v1/keys?tenant=none").await;
    listed.refused(404, "tenant-not-found");
    let listed = world.get("/v1/keys?tenant=A").await;
    listed.refused(400, "parameter-invalid");
}
