//! Secrets: written, used and never shown.

use serde_json::{Value, json};

use crate::world::World;

const ECHO: &str = "http://target.example/echo";

fn secret(hosts: &[&str]) -> Value {
    json!({"value": "planted-value", "hosts": hosts})
}

fn job(header: &str) -> Value {
    json!({"schedule": "@yearly", "retry": {"attempts_max": 1},
        "target": {"http": {"url": ECHO, "headers": {"Authorization": header}}}})
}

async fn put(world: &World, name: &str, body: Value) -> crate::world::Reply {
    world.put(&format!("/v1/secrets/{name}"), body).await
}

#[tokio::test]
async fn a_secret_goes_in_and_never_comes_out() {
    let world = World::new().await;
    let body = json!({"name": "a", "value": "planted-value", "hosts": ["B.example", "a.example"], "note": "n"});
    let created = world.post("/v1/secrets", body.clone()).await.is(201);
    assert_eq!(created.header("location"), Some("/v1/secrets/a"));
    let shown = world.get("/v1/secrets/a").await.is(200);
    assert_eq!(shown.json()["hosts"], json!(["a.example", "b.example"]));
    assert_eq!(shown.json()["version"], 1);
    let listed = world.get("/v1/secrets").await.is(200);
    assert_eq!(listed.json()["items"], json!([shown.json()]));
    world
        .post("/v1/secrets", body)
        .await
        .refused(409, "secret-exists");
    let changed = put(&world, "a", json!({"value": "planted-other"}))
        .await
        .is(200);
    assert_eq!(changed.json()["version"], 2);
    assert_eq!(changed.json()["hosts"], shown.json()["hosts"]);
    let hosts = put(&world, "a", json!({"hosts": ["b.example"], "note": null}))
        .await
        .is(200);
    assert_eq!(
        (&hosts.json()["version"], &hosts.json()["note"]),
        (&json!(3), &Value::Null)
    );
    let gone = world.delete("/v1/secrets/a").await.is(200);
    for answer in [created, shown, listed, changed, hosts, gone] {
        assert!(!answer.text.contains("planted"), "{}", answer.text);
    }
    for method in ["GET", "DELETE"] {
        let answer = world
            .call(method, "/v1/secrets/a", &[], String::new())
            .await;
        answer.refused(404, "secret-not-found");
    }
}

#[tokio::test]
async fn hosts_that_a_secret_was_not_given_for_need_its_value_again() {
    let world = World::new().await;
    let body = secret(&["a.example", "*.b.example"]);
    put(&world, "a", body).await.is(201);
    for hosts in [
        json!(["evil.example"]),
        json!(["a.example", "evil.example"]),
        json!(["*.a.example"]),
        json!(["b.example"]),
    ] {
        let refused = put(&world, "a", json!({"hosts": hosts})).await;
        refused.refused(422, "field-missing");
        assert_eq!(refused.problem().1, Some("value".to_owned()));
        assert!(refused.text.contains("write it again"), "{}", refused.text);
    }
    let stands = world.get("/v1/secrets/a").await.json();
    assert_eq!(stands["version"], 1, "nothing was written");
    let fewer = json!({"hosts": ["c.b.example", "*.d.b.example"]});
    put(&world, "a", fewer).await.is(200);
    // What was taken away is new again.
    let refused = put(&world, "a", json!({"hosts": ["a.example"]})).await;
    refused.refused(422, "field-missing");
    put(&world, "a", secret(&["evil.example"])).await.is(200);
}

#[tokio::test]
async fn what_is_wrong_with_a_secret_is_said_without_its_value() {
    let world = World::new().await;
    let long = "planted".repeat(2_000);
    let many: Vec<String> = (0..40).map(|number| format!("a{number}.example")).collect();
    for (body, field) in [
        (json!({"hosts": ["a.example"]}), "value"),
        (json!({"value": "planted-value"}), "hosts"),
        (json!({"value": "pla", "hosts": ["a.example"]}), "value"),
        (json!({"value": long, "hosts": ["a.example"]}), "value"),
        (
            json!({"value": ["planted-value"], "hosts": ["a.example"]}),
            "value",
        ),
        (json!({"value": "planted-value", "hosts": []}), "hosts"),
        (
            json!({"value": "planted-value", "hosts": "a.example"}),
            "hosts",
        ),
        (
            json!({"value": "planted-value", "hosts": ["https://a.example/"]}),
            "hosts",
        ),
        (json!({"value": "planted-value", "hosts": ["*"]}), "hosts"),
        (json!({"value": "planted-value", "hosts": many}), "hosts"),
        (
            json!({"name": "b", "value": "planted-value", "hosts": ["a.example"]}),
            "name",
        ),
        (
            json!({"value": "planted-value", "hosts": ["a.example"], "more": 1}),
            "more",
        ),
    ] {
        let refused = put(&world, "a", body).await;
        assert_eq!(refused.status, 422, "{}", refused.text);
        assert_eq!(
            refused.problem().1.as_deref(),
            Some(field),
            "{}",
            refused.text
        );
        assert!(!refused.text.contains("planted"), "{}", refused.text);
    }
    for name in ["A", "rewrap", "a%20b", "1"] {
        let refused = put(&world, name, secret(&["a.example"])).await;
        assert!(
            refused.status == 422 || refused.status == 405,
            "{name}: {}",
            refused.text
        );
    }
    let listed = world.get("/v1/secrets").await.json();
    assert_eq!(listed["items"], json!([]));
}

#[tokio::test]
async fn a_header_names_a_secret_and_what_is_kept_holds_none() {
    let world = World::new().await;
    put(&world, "a", secret(&["target.example"])).await.is(201);
    let created = world
        .post("/v1/jobs", job("Bearer {{ secret('a') }}"))
        .await
        .is(201);
    let header = &created.json()["target"]["http"]["headers"]["authorization"];
    assert_eq!(header, "Bearer {{ secret('a') }}", "a name is no secret");
    let run = world.run(&created.get("id")).await;
    let ended = world.wait(&run, &["dead"]).await;
    assert_eq!(ended["attempts"][0]["error"], "Bearer ***", "{ended}");
    assert!(!ended.to_string().contains("planted"), "{ended}");
    world.delete("/v1/secrets/a").await.is(200);
    let run = world.run(&created.get("id")).await;
    let ended = world.wait(&run, &["dead"]).await;
    let error = ended["attempts"][0]["error"].as_str().unwrap();
    assert!(error.contains("there is no secret a"), "{error}");
    // Attempts of other jobs leave as before.
    put(&world, "b", secret(&["target.example"])).await.is(201);
    let other = world.post("/v1/jobs", job("{{ secret('b') }}")).await;
    let run = world.run(&other.is(201).get("id")).await;
    let ended = world.wait(&run, &["dead"]).await;
    assert_eq!(ended["attempts"][0]["error"], "***", "it was sent");
    let path = format!("/v1/jobs/{}", created.get("id"));
    // What has nothing to do with it can be changed all the same.
    world.patch(&path, json!({"timeout": "9s"})).await.is(200);
}

#[tokio::test]
async fn a_job_that_could_not_be_sent_is_refused() {
    let world = World::new().await;
    put(&world, "a", secret(&["other.example"])).await.is(201);
    put(&world, "b", secret(&["target.example"])).await.is(201);
    let id = world
        .post("/v1/jobs", job("{{ secret('b') }}"))
        .await
        .is(201);
    let path = format!("/v1/jobs/{}", id.get("id"));
    for (header, part) in [
        ("{{ secret('a') }}", "may not be sent to target.example"),
        ("{{ secret('c') }}", "there is no secret c"),
        ("{{ secret('b' }}", "cannot be read"),
        ("{{ env('HOME') }}", "secret('name')"),
        ("{{ secret('B') }}", "lower-case"),
    ] {
        let refused = world.post("/v1/jobs", job(header)).await;
        refused.refused(422, "field-invalid");
        let field = Some("target.http.headers.authorization".to_owned());
        assert_eq!(refused.problem().1, field);
        assert!(refused.text.contains(part), "{}", refused.text);
        let target = json!({"target": job(header)["target"]});
        world
            .patch(&path, target)
            .await
            .refused(422, "field-invalid");
        let lines = job(header).to_string();
        let kind = [("content-type", "application/x-ndjson")];
        let batch = world.call("POST", "/v1/jobs/batch", &kind, lines).await;
        assert!(batch.text.contains("field-invalid"), "{}", batch.text);
    }
    let moved = json!({"target": {"http": {"url": "http://elsewhere.example/"}}});
    world
        .patch(&path, moved)
        .await
        .refused(422, "field-invalid");
}

#[tokio::test]
async fn a_rewrap_says_what_it_did() {
    let world = World::new().await;
    put(&world, "a", secret(&["a.example"])).await.is(201);
    let done = world.post_empty("/v1/secrets/rewrap").await.is(200);
    assert_eq!(done.json()["rewrapped"], 0, "it is under the current key");
    assert_eq!(done.json()["next_cursor"], Value::Null);
}

#[tokio::test]
async fn a_node_without_a_master_key_says_so_and_serves_the_rest() {
    let world = World::without_master_key().await;
    let refused = put(&world, "a", secret(&["a.example"])).await;
    refused.refused(409, "master-key-missing");
    assert!(
        refused.text.contains("--master-key-file"),
        "{}",
        refused.text
    );
    let rewrap = world.post_empty("/v1/secrets/rewrap").await;
    rewrap.refused(409, "master-key-missing");
    world.get("/v1/secrets").await.is(200);
    world
        .post("/v1/jobs", json!({"schedule": "@yearly", "target": ECHO}))
        .await
        .is(201);
}
