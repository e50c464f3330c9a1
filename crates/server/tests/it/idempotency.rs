use std::collections::BTreeSet;

use serde_json::json;

use crate::world::{OK, World};

#[tokio::test]
async fn a_hundred_posts_with_one_key_make_one_job() {
    let world = World::new().await;
    let body = json!({"schedule": {"in": "2h"}, "target": OK}).to_string();
    let posts = (0..100).map(|_| {
        world.call(
            "POST",
            "/v1/jobs",
            &[("idempotency-key", "k-1")],
            body.clone(),
        )
    });
    let replies = futures_util::future::join_all(posts).await;
    assert!(replies.iter().all(|reply| reply.status == 201));
    let ids: BTreeSet<_> = replies.iter().map(|reply| reply.get("id")).collect();
    assert_eq!(ids.len(), 1);
    let first = replies
        .iter()
        .filter(|reply| reply.header("idempotency-replayed").is_none());
    assert_eq!(first.count(), 1);
    assert_eq!(world.store.all_jobs().len(), 1);
}

#[tokio::test]
async fn another_body_under_the_same_key_is_refused() {
    let world = World::new().await;
    let key = [("idempotency-key", "k-1")];
    let body =
        |payload: u32| json!({"schedule": "@daily", "target": OK, "payload": payload}).to_string();
    world.call("POST", "/v1/jobs", &key, body(1)).await.is(201);
    let other = world.call("POST", "/v1/jobs", &key, body(2)).await;
    other.refused(409, "idempotency-mismatch");
    world.call("POST", "/v1/jobs", &key, body(1)).await.is(201);
    assert_eq!(world.store.all_jobs().len(), 1);
}

#[tokio::test]
async fn a_key_whose_job_was_deleted_says_so() {
    let world = World::new().await;
    let key = [("idempotency-key", "k-1")];
    let body = json!({"schedule": "@daily", "target": OK}).to_string();
    let job = world
        .call("POST", "/v1/jobs", &key, body.clone())
        .await
        .is(201)
        .get("id");
    world.delete(&format!("/v1/jobs/{job}")).await.is(200);
    world
        .call("POST", "/v1/jobs", &key, body)
        .await
        .refused(410, "job-gone");
}

#[tokio::test]
async fn a_refused_request_does_not_use_up_its_key() {
    let world = World::new().await;
    let key = [("idempotency-key", "k-1")];
    world
        .call("POST", "/v1/jobs", &key, "{}")
        .await
        .refused(422, "field-missing");
    let body = json!({"schedule": "@daily", "target": OK}).to_string();
    world.call("POST", "/v1/jobs", &key, body).await.is(201);
}

#[tokio::test]
async fn keys_have_bounds() {
    let world = World::new().await;
    let body = json!({"schedule": "@daily", "target": OK}).to_string();
    let long = "k".repeat(129);
    for key in ["", long.as_str()] {
        let reply = world
            .call(
                "POST",
                "/v1/jobs",
                &[("idempotency-key", key)],
                body.clone(),
            )
            .await;
        reply.refused(400, "header-invalid");
    }
    let twice = [("idempotency-key", "a"), ("idempotency-key", "b")];
    world
        .call("POST", "/v1/jobs", &twice, body)
        .await
        .refused(400, "header-invalid");
    assert!(world.store.all_jobs().is_empty());
}
