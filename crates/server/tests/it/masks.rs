//! Values that are secrets by their names are not shown, and stay when they are written back as they were shown.

use model::{JobId, Target, TenantId};
use serde_json::{Value, json};
use store::ClientStore;

use crate::world::World;

const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");
const URL: &str = "http://target.example/ok?token=planted-0&team=a";

fn job() -> Value {
    json!({"key": "masked", "schedule": "@yearly", "target": {"http": {"url": URL, "headers": {
        "Authorization": "Bearer planted-1", "X-Api-Key": "planted-2", "X-Team": "shown"}}}})
}

/// The headers that would be sent, and the address.
async fn sent(world: &World, id: &str) -> (Vec<(String, String)>, String) {
    let id: JobId = id.parse().unwrap();
    let job = world.store.get_job(TenantId::DEFAULT, id).await;
    let Target::Http(http) = job.unwrap().unwrap().def.target.clone() else {
        panic!("no address");
    };
    let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
    let headers = http.headers.iter();
    let mut headers: Vec<_> = headers
        .map(|(name, value)| (name.to_string(), text(value.as_bytes())))
        .collect();
    headers.sort();
    (headers, http.url.to_string())
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[tokio::test]
async fn no_answer_about_a_job_shows_a_secret() {
    let world = World::new().await;
    let created = world.post("/v1/jobs", job()).await.is(201);
    let path = format!("/v1/jobs/{}", created.get("id"));
    let patch = json!({"timeout": "9s"});
    let answers = [
        world.get(&path).await,
        world.get("/v1/jobs").await,
        world
            .patch(&format!("{path}?dry_run=true"), patch.clone())
            .await,
        world.patch(&path, patch).await,
        world.post(&format!("{path}/pause"), json!({})).await,
        world
            .get(&format!("{path}/explain?at=2030-01-01T00:00:00Z"))
            .await,
        world
            .get(&format!(
                "{path}/slots?from=2030-01-01T00:00:00Z&to=2031-01-01T00:00:00Z"
            ))
            .await,
        created,
    ];
    for answer in answers {
        assert!(answer.status.is_success(), "{}", answer.text);
        assert!(!answer.text.contains("planted"), "{}", answer.text);
    }
    let shown = world.get(&path).await.json();
    let http = &shown["target"]["http"];
    let headers = json!({"authorization": "***", "x-api-key": "***", "x-team": "shown"});
    assert_eq!(http["headers"], headers);
    assert_eq!(http["url"], "http://target.example/ok?token=***&team=a");
}

#[tokio::test]
async fn what_is_written_back_as_it_was_shown_stays() {
    let world = World::new().await;
    let id = world.post("/v1/jobs", job()).await.is(201).get("id");
    let path = format!("/v1/jobs/{id}");
    let before = sent(&world, &id).await;
    let target = world.get(&path).await.json()["target"].clone();
    let edit = json!({"target": target, "timeout": "9s"});
    world.patch(&path, edit).await.is(200);
    assert_eq!(sent(&world, &id).await, before);
    // A whole definition that is put back is the same, too.
    let put = json!({"schedule": "@yearly", "target": target, "timeout": "9s"});
    let answer = world.put("/v1/jobs/by-key/masked", put).await.is(200);
    assert_eq!(answer.json()["version"], 2, "{}", answer.text);
    assert_eq!(sent(&world, &id).await, before);
    let headers = json!({"authorization": "***", "x-team": "new"});
    let put = json!({"schedule": "@yearly", "target": {"http": {"url": "http://target.example/b?token=***", "headers": headers}}});
    world.put("/v1/jobs/by-key/masked", put).await.is(200);
    let (headers, url) = sent(&world, &id).await;
    let kept = [("authorization", "Bearer planted-1"), ("x-team", "new")];
    assert_eq!(headers, pairs(&kept));
    assert_eq!(url, "http://target.example/b?token=planted-0");
}

#[tokio::test]
async fn what_is_not_shown_does_not_follow_to_another_origin() {
    let world = World::new().await;
    let id = world.post("/v1/jobs", job()).await.is(201).get("id");
    let path = format!("/v1/jobs/{id}");
    let before = sent(&world, &id).await;
    let masked = json!({"authorization": "***", "x-api-key": "***"});
    let again = json!({"authorization": "Bearer new", "x-api-key": null});
    for (url, headers, field) in [
        ("http://evil.example/", json!({}), "headers.authorization"),
        (
            "https://target.example/ok",
            json!({}),
            "headers.authorization",
        ),
        (
            "http://target.example:81/",
            json!({}),
            "headers.authorization",
        ),
        ("http://evil.example/", masked, "headers.authorization"),
        (
            "http://evil.example/",
            json!({"authorization": null}),
            "headers.x-api-key",
        ),
        ("http://evil.example/?token=***", again.clone(), "url"),
        (
            "http://evil.example/{{ slot }}?token=***",
            again.clone(),
            "url",
        ),
    ] {
        let target = json!({"http": {"url": url, "headers": headers}});
        let refused = world.patch(&path, json!({"target": target})).await;
        refused.refused(422, "field-invalid");
        let field = Some(format!("target.http.{field}"));
        assert_eq!(refused.problem().1, field, "{url} {}", refused.text);
        assert!(!refused.text.contains("planted"), "{}", refused.text);
    }
    let short = json!({"target": "http://evil.example/"});
    world
        .patch(&path, short)
        .await
        .refused(422, "field-invalid");
    let whole = json!({"schedule": "@yearly", "target": {"http": {
        "url": "http://evil.example/", "headers": {"authorization": "***"}}}});
    let refused = world.put("/v1/jobs/by-key/masked", whole).await;
    refused.refused(422, "field-invalid");
    assert_eq!(sent(&world, &id).await, before);
    // The same origin in other words, and another one with values of its own.
    let target = json!({"http": {"url": "http://TARGET.example:80/c?token=***"}});
    world.patch(&path, json!({"target": target})).await.is(200);
    let target = json!({"http": {"url": "http://b.example/", "headers": again}});
    world.patch(&path, json!({"target": target})).await.is(200);
    let (headers, _) = sent(&world, &id).await;
    let kept = [("authorization", "Bearer new"), ("x-team", "shown")];
    assert_eq!(headers, pairs(&kept));
}

#[tokio::test]
async fn a_value_that_names_secrets_goes_where_they_may() {
    let world = World::new().await;
    let secret = json!({"value": "planted-value", "hosts": ["a.example", "b.example"]});
    world.put("/v1/secrets/a", secret).await.is(201);
    let target = json!({"http": {"url": "http://a.example/", "headers": {
        "Authorization": "Bearer {{ secret('a') }}"}}});
    let body = json!({"schedule": "@yearly", "target": target});
    let id = world.post("/v1/jobs", body).await.is(201).get("id");
    let path = format!("/v1/jobs/{id}");
    let moved = json!({"target": {"http": {"url": "http://b.example/"}}});
    world.patch(&path, moved).await.is(200);
}

#[tokio::test]
async fn a_mask_that_stands_for_nothing_is_refused() {
    let world = World::new().await;
    let target = |url: &str, name: &str| json!({"http": {"url": url, "headers": {name: "***"}}});
    let body = |target: Value| json!({"schedule": "@yearly", "target": target});
    let masked = body(target("http://a/", "Cookie"));
    let refused = world.post("/v1/jobs", masked.clone()).await;
    refused.refused(422, "field-invalid");
    let field = Some("target.http.headers.cookie".to_owned());
    assert_eq!(refused.problem().1, field);
    let line = masked.to_string();
    let batch = world.call("POST", "/v1/jobs/batch", &[NDJSON], line).await;
    assert!(batch.text.contains("none to keep"), "{}", batch.text);
    let url = body(target("http://a/?sig=***", "x-a"));
    let refused = world.post("/v1/jobs", url).await;
    assert_eq!(refused.problem().1, Some("target.http.url".to_owned()));
    let id = world.post("/v1/jobs", job()).await.is(201).get("id");
    let patch = json!({"target": {"http": {"headers": {"Cookie": "***"}}}});
    let refused = world.patch(&format!("/v1/jobs/{id}"), patch).await;
    refused.refused(422, "field-invalid");
}
