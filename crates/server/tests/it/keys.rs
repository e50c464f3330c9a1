//! A job's key stands wherever its id may, with `key:` in front.

use serde_json::json;

use crate::world::{FAIL, OK, World};

#[tokio::test]
async fn a_key_stands_wherever_an_id_may() {
    let world = World::new().await;
    let body = json!({"key": "nightly-report", "schedule": "@yearly", "target": FAIL});
    let id = world.post("/v1/jobs", body).await.is(201).get("id");
    let path = |rest: &str| format!("/v1/jobs/key:nightly-report{rest}");
    assert_eq!(world.get(&path("")).await.is(200).get("id"), id);
    world
        .patch(&path(""), json!({"lane": "batch"}))
        .await
        .is(200);
    world.post_empty(&path("/pause")).await.is(200);
    world.post_empty(&path("/resume")).await.is(200);
    let run = world.post_empty(&path("/run")).await.is(201).get("id");
    world.wait(&run, &["dead"]).await;
    world.post_empty(&path("/retry")).await.is(201);
    for listed in [path("/runs"), "/v1/runs?job=key:nightly-report".to_owned()] {
        let runs = world.get(&listed).await.is(200).json();
        assert!(
            runs["items"]
                .as_array()
                .is_some_and(|items| !items.is_empty()),
            "{runs}"
        );
    }
    world.get(&path("/slots")).await.is(200);
    world
        .get(&path("/explain?at=2027-01-01T00:00:00Z"))
        .await
        .is(200);
    let deleted = world.delete(&path("")).await.is(200);
    assert_eq!(deleted.get("id"), id);
}

#[tokio::test]
async fn a_key_that_is_not_there_is_named() {
    let world = World::new().await;
    for (method, rest) in [
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("POST", "/pause"),
        ("POST", "/resume"),
        ("POST", "/run"),
        ("POST", "/retry"),
        ("GET", "/runs"),
        ("GET", "/slots"),
        ("GET", "/explain?at=0"),
    ] {
        let reply = world
            .call(method, &format!("/v1/jobs/key:no-such{rest}"), &[], "")
            .await;
        reply.refused(404, "job-not-found");
        assert_eq!(reply.get("key"), "no-such", "{method} {rest}");
        assert!(reply.get("detail").contains("no-such"), "{}", reply.text);
    }
    for path in ["/v1/runs?job=key:no-such", "/v1/jobs/by-key/no-such"] {
        let reply = world.get(path).await;
        reply.refused(404, "job-not-found");
        assert_eq!(reply.get("key"), "no-such", "{path}");
    }
    let bare = world.get("/v1/jobs/nightly-report/runs").await;
    bare.refused(404, "job-not-found");
    assert!(
        bare.get("detail").contains("write key:nightly-report"),
        "{}",
        bare.text
    );
    world
        .get("/v1/jobs/key:a%20b")
        .await
        .refused(404, "job-not-found");
    let bad = world.get("/v1/runs?job=key:").await;
    bad.refused(400, "parameter-invalid");
    assert_eq!(bad.problem().1.as_deref(), Some("job"));
}

#[tokio::test]
async fn keys_of_any_characters_are_found() {
    let world = World::new().await;
    for (key, encoded) in [
        ("reports/daily", "reports%2Fdaily"),
        ("a:b@c+d=e", "a:b@c+d=e"),
        ("a:b@c+d=f", "a%3Ab%40c%2Bd%3Df"),
        ("key:key:x", "key:key:x"),
        ("batch", "batch"),
        ("by-key", "by-key"),
        ("..", ".."),
    ] {
        let body = json!({"key": key, "schedule": "@yearly", "target": OK});
        let id = world.post("/v1/jobs", body).await.is(201).get("id");
        let found = world.get(&format!("/v1/jobs/key:{encoded}")).await.is(200);
        assert_eq!(found.get("id"), id, "{key}");
        world
            .post_empty(&format!("/v1/jobs/key:{encoded}/pause"))
            .await
            .is(200);
        let listed = world
            .get(&format!("/v1/runs?job=key:{encoded}"))
            .await
            .is(200);
        assert_eq!(listed.json()["items"], json!([]), "{key}");
    }
}
