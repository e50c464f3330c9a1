//! Templates: paths, headers and bodies that are filled in for each attempt.

use serde_json::{Value, json};

use crate::world::World;

const ORIGIN: &str = "http://target.example";

fn job(http: Value) -> Value {
    json!({"key": "nightly", "schedule": "@yearly", "retry": {"attempts_max": 1}, "labels": {"team": "a b"},
        "payload": {"n": [1, 2]}, "target": {"http": http}})
}

async fn secret(world: &World, host: &str) {
    let body = json!({"value": "planted-value", "hosts": [host]});
    world.put("/v1/secrets/a", body).await.is(201);
}

#[tokio::test]
async fn a_body_is_filled_in_and_what_is_kept_holds_no_secret() {
    let world = World::new().await;
    secret(&world, "target.example").await;
    let body = r#"{"k": {{ job.key }}, "s": {{ 'x ' ~ secret('a') }}, "n": {{ payload.n }}}"#;
    let created = world
        .post("/v1/jobs", job(json!({"url": ORIGIN, "body": body})))
        .await
        .is(201);
    assert_eq!(created.json()["target"]["http"]["body"], body);
    let run = world.run(&created.get("id")).await;
    let ended = world.wait(&run, &["succeeded"]).await;
    let expected = r#"{"k": "nightly", "s": "x ***", "n": [1,2]}"#;
    assert_eq!(ended["attempts"][0]["output"], expected, "{ended}");
    world.delete("/v1/secrets/a").await.is(200);
    let run = world.run(&created.get("id")).await;
    let ended = world.wait(&run, &["dead"]).await;
    let error = ended["attempts"][0]["error"].as_str().unwrap();
    assert!(
        error.starts_with("not sent, body: there is no secret a"),
        "{error}"
    );
}

#[tokio::test]
async fn a_path_is_filled_in_and_shown_as_it_was_written() {
    let world = World::new().await;
    secret(&world, "target.example").await;
    let url = format!(
        "{ORIGIN}/{{{{ job.labels.team }}}}?token={{{{ secret('a') }}}}&key=planted-key-0123456789&a={{{{ attempt }}}}"
    );
    let mut wanted = job(json!({"url": url}));
    wanted["payload"] = Value::Null;
    let created = world.post("/v1/jobs", wanted).await.is(201);
    let shown = created.json()["target"]["http"]["url"].clone();
    assert_eq!(shown, url.replace("planted-key-0123456789", "***"));
    let path = format!("/v1/jobs/{}", created.get("id"));
    // Written back as it is shown, it stays as it is.
    let edit = json!({"target": {"http": {"url": shown, "method": "PUT"}}});
    world.patch(&path, edit).await.is(200);
    let run = world.run(&created.get("id")).await;
    let ended = world.wait(&run, &["succeeded"]).await;
    let expected = "/a%20b?token=***&key=***&a=1";
    assert_eq!(ended["attempts"][0]["output"], expected);
    // An address without a template takes its place.
    let edit = json!({"target": {"http": {"url": format!("{ORIGIN}/plain")}}});
    let edited = world.patch(&path, edit).await.is(200);
    assert_eq!(
        edited.json()["target"]["http"]["url"],
        format!("{ORIGIN}/plain")
    );
}

async fn check_refused(world: &World, http: Value, field: &str, part: &str) {
    let reply = world.post("/v1/jobs?dry_run=true", job(http)).await;
    let problem = reply.json();
    assert_eq!(problem["field"], field, "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains(part), "{problem}");
}

#[tokio::test]
async fn an_address_that_cannot_be_filled_in_is_refused() {
    let world = World::new().await;
    for (url, part) in [
        ("http://{{ job.key }}/", "behind them"),
        ("http://target.example/{{ nam }}", "unknown variable nam"),
        ("http://target.example/a b{{ slot }}", "address"),
    ] {
        let http = json!({"url": url});
        check_refused(&world, http, "target.http.url", part).await;
    }
    let http = json!({"url": ORIGIN, "headers": {"x-a": "{{ job.name }}"}});
    check_refused(&world, http, "target.http.headers.x-a", "job has no name").await;
}

#[tokio::test]
async fn a_body_that_cannot_be_filled_in_is_refused_with_its_line() {
    let world = World::new().await;
    secret(&world, "other.example").await;
    for (body, part) in [
        ("a\n{{ slot|upper }}", "line 2: unknown filter upper"),
        ("{{ slot", "cannot be read"),
        ("{{ secret('b') }}", "there is no secret b"),
        ("{{ secret('a') }}", "may not be sent to target.example"),
        ("{% set a = 1 %}", "use if and for"),
        ("{{ slot|date('%Y', 'Mars/Base') }}", "Mars/Base"),
        (&"a".repeat(65_537), "65536"),
    ] {
        let http = json!({"url": ORIGIN, "body": body});
        check_refused(&world, http, "target.http.body", part).await;
    }
    let http = json!({"url": ORIGIN, "method": "GET", "body": "a"});
    check_refused(&world, http, "target.http.body", "use POST").await;
    let mut large = job(json!({"url": ORIGIN, "body": "{{ payload.n }}"}));
    large["payload"] = json!({"n": "x".repeat(70_000)});
    let problem = world.post("/v1/jobs", large).await.json();
    assert_eq!(problem["field"], "payload", "{problem}");
}
