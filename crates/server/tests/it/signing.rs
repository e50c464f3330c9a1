//! Signing secrets: shown once, two at most, and in the way of nothing else.

use serde_json::{Value, json};

use crate::world::World;

const PATH: &str = "/v1/signing-secrets";
const KNOWN: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

#[tokio::test]
async fn a_signing_secret_is_shown_once_and_there_are_two_at_most() {
    let world = World::new().await;
    let first = world.post_empty(PATH).await.is(201);
    let text = first.get("secret");
    assert!(text.starts_with("whsec_") && text.len() == 50, "{text}");
    let second = world.post(PATH, json!({"secret": KNOWN})).await.is(201);
    assert_eq!(second.get("secret"), KNOWN);
    world
        .post(PATH, json!({}))
        .await
        .refused(409, "signing-secrets-full");
    let listed = world.get(PATH).await.is(200);
    let items = listed.json()["items"].as_array().unwrap().clone();
    let mut shown: Vec<&str> = items.iter().filter_map(|it| it["id"].as_str()).collect();
    shown.sort_unstable();
    assert_eq!(shown, [first.get("id"), second.get("id")]);
    let path = format!("{PATH}/{}", first.get("id"));
    let gone = world.delete(&path).await.is(200);
    for answer in [&listed, &gone] {
        assert!(!answer.text.contains("whsec_"), "{}", answer.text);
    }
    crate::world::pause(2).await;
    let third = world.post(PATH, json!({})).await.is(201);
    assert_ne!(third.get("id"), first.get("id"), "a place has a new id");
    let repeated = world.delete(&path).await;
    repeated.refused(404, "signing-secret-not-found");
    let audit = world.get("/v1/audit?limit=1000").await.is(200).text;
    assert!(!audit.contains("whsec_"), "{audit}");
    for action in ["signing.create", "signing.delete"] {
        assert!(audit.contains(action), "{audit}");
    }
}

#[tokio::test]
async fn signing_secrets_are_none_of_the_secrets_that_jobs_name() {
    let world = World::new().await;
    world.post_empty(PATH).await.is(201);
    let body = json!({"value": "a value", "hosts": ["a.example"]});
    world.put("/v1/secrets/a", body.clone()).await.is(201);
    world.put("/v1/secrets/b", body).await.is(201);
    let listed = world.get("/v1/secrets?limit=1").await.is(200).json();
    assert_eq!(listed["items"][0]["name"], "a");
    let cursor = listed["next_cursor"].as_str().unwrap();
    let path = format!("/v1/secrets?limit=1&cursor={cursor}");
    let next = world.get(&path).await.is(200).json();
    assert_eq!(next["items"][0]["name"], "b");
    assert_eq!(next["next_cursor"], Value::Null);
    for method in ["GET", "DELETE"] {
        let path = "/v1/secrets/$signing-1";
        let answer = world.call(method, path, &[], String::new()).await;
        answer.refused(422, "field-invalid");
    }
    let headers = json!({"x": "{{ secret('$signing-1') }}"});
    let target = json!({"http": {"url": "http://target.example/echo", "headers": headers}});
    let job = json!({"schedule": "@yearly", "target": target});
    let refused = world.post("/v1/jobs", job).await;
    refused.refused(422, "field-invalid");
    // They go under another master key with all the others.
    let rewrapped = world.post_empty("/v1/secrets/rewrap").await.is(200);
    assert_eq!(rewrapped.json()["closed"], 0);
}

#[tokio::test]
async fn what_is_no_signing_secret_is_refused_and_not_repeated() {
    let world = World::new().await;
    for text in [json!("whsec_dGVzdA=="), json!("planted"), json!(7)] {
        let reply = world.post(PATH, json!({"secret": text})).await;
        reply.refused(422, "field-invalid");
        assert_eq!(reply.problem().1.as_deref(), Some("secret"));
        assert!(!reply.text.contains("planted"), "{}", reply.text);
    }
    let reply = world.post(PATH, json!({"value": "a"})).await;
    reply.refused(422, "field-unknown");
    for id in ["sign_1_5", "none", "sign_3_1"] {
        let reply = world.delete(&format!("{PATH}/{id}")).await;
        reply.refused(404, "signing-secret-not-found");
    }
    assert_eq!(world.get(PATH).await.is(200).json(), json!({"items": []}));
}

#[tokio::test]
async fn without_a_master_key_none_can_be_made() {
    let world = World::without_master_key().await;
    let refused = world.post(PATH, json!({})).await;
    refused.refused(409, "master-key-missing");
}
