//! Work that reports later: what a definition says of it, and what its token opens.

use serde_json::{Value, json};

use crate::promised::contract;
use crate::world::{LATER, OK, Reply, World, token_of};

impl World {
    /// A run whose target has taken it over, and its token.
    async fn taken_over(&self) -> (String, String) {
        self.taken_over_by(json!(LATER)).await
    }

    async fn taken_over_by(&self, target: Value) -> (String, String) {
        let body = json!({"schedule": "@yearly", "target": target, "completion": "callback",
            "retry": {"attempts_max": 1}});
        let job = self.post("/v1/jobs", body).await.is(201).get("id");
        let run = self.run(&job).await;
        for _ in 0..500 {
            let shown = self.get(&format!("/v1/runs/{run}")).await.json();
            if shown["handed_over"].is_object() {
                return (run.clone(), token_of(&run));
            }
            crate::world::pause(10).await;
        }
        panic!("{run} was not handed over");
    }

    async fn say(&self, run: &str, what: &str, token: &str, body: String) -> Reply {
        let path = format!("/v1/runs/{run}/{what}");
        let kind = if what == "log" {
            "text/plain"
        } else {
            "application/json"
        };
        let headers = [("punctual-token", token), ("content-type", kind)];
        self.call("POST", &path, &headers, body).await
    }
}

fn example(operation: &str) -> String {
    let path = match operation {
        "report" => "/paths/~1v1~1runs~1{id}~1report/post",
        "heartbeat" => "/paths/~1v1~1runs~1{id}~1heartbeat/post",
        _ => "/paths/~1v1~1runs~1{id}~1log/post",
    };
    let body = &contract().pointer(path).unwrap()["requestBody"]["content"];
    let body = body.as_object().unwrap().values().next().unwrap();
    let text = body["example"].as_str().map(str::to_owned);
    text.unwrap_or_else(|| body["example"].to_string())
}

#[tokio::test]
async fn every_example_is_taken_from_whoever_has_the_token() {
    let world = World::new().await;
    let (run, token) = world.taken_over().await;
    for what in ["heartbeat", "log", "report"] {
        let refused = world.say(&run, what, "pt1_x_1_0_00", example(what)).await;
        assert_eq!(refused.status, 401, "{what}: {}", refused.text);
        let reply = world.say(&run, what, &token, example(what)).await;
        assert_eq!(reply.status, 200, "{what}: {}", reply.text);
    }
    world.wait(&run, &["succeeded"]).await;
    let log = world.get(&format!("/v1/runs/{run}/log")).await.json();
    assert_eq!(
        (&log["text"], &log["ended"]),
        (&json!(example("log")), &json!(true))
    );
    let late = world.say(&run, "heartbeat", &token, String::new()).await;
    assert_eq!(
        (late.status.as_u16(), late.problem().0),
        (409, "attempt-ended".into())
    );
}

#[tokio::test]
async fn what_is_said_of_an_attempt_is_checked() {
    let world = World::new().await;
    let (run, token) = world.taken_over().await;
    let many = "x".repeat(70_000);
    for (what, body, field) in [
        ("report", json!({}), "outcome"),
        ("report", json!({"outcome": "lost"}), "outcome"),
        (
            "report",
            json!({"outcome": "failed", "retry": "soon"}),
            "retry",
        ),
        (
            "report",
            json!({"outcome": "succeeded", "output": many}),
            "output",
        ),
        ("heartbeat", json!({"progress": 1.5}), "progress"),
        ("heartbeat", json!({"progress": "two\nlines"}), "progress"),
        ("heartbeat", json!({"checkpoint": many}), "checkpoint"),
        ("heartbeat", json!({"beat": 1}), "beat"),
    ] {
        let reply = world.say(&run, what, &token, body.to_string()).await;
        assert_eq!(
            (reply.status.as_u16(), reply.get("field")),
            (422, field.to_owned())
        );
    }
    let reply = world.say(&run, "log", &token, many).await;
    assert_eq!(reply.status, 413);
    let path = format!("/v1/runs/{run}/checkpoint");
    let headers = [("punctual-token", token.as_str())];
    assert_eq!(world.call("GET", &path, &headers, "").await.status, 204);
}

const SECRET: &str = "planted+secret=1";

/// A target that holds secrets in every place.
fn with_secrets() -> Value {
    json!({"http": {"url": LATER, "headers": {
        "Authorization": "Bearer {{ secret('a') }}", "X-Api-Key": "planted-literal"}}})
}

async fn set_secret(world: &World) {
    let secret = json!({"value": SECRET, "hosts": ["target.example"]});
    world.put("/v1/secrets/a", secret).await.is(201);
}

/// Says all that was sent, in every way there is, and finds none of it in what is kept.
async fn say_all(world: &World, (run, token): (&str, &str)) {
    let progress = format!("with {SECRET}");
    let beat = json!({"progress": progress, "checkpoint": format!("[{SECRET}]")});
    let beat = world.say(run, "heartbeat", token, beat.to_string()).await;
    assert_eq!(beat.status, 200, "{}", beat.text);
    let (head, tail) = SECRET.split_at(7);
    let (middle, tail) = tail.split_at(5);
    for part in [
        &format!("a {SECRET} b {head}"),
        middle,
        &format!("{tail} c planted-literal"),
    ] {
        let logged = world.say(run, "log", token, part.to_owned()).await;
        assert_eq!(logged.status, 200, "{}", logged.text);
    }
    let shown = world.get(&format!("/v1/runs/{run}")).await.is(200);
    assert!(!shown.text.contains("planted"), "{}", shown.text);
    let path = format!("/v1/runs/{run}/checkpoint");
    let kept = [("punctual-token", token)];
    let kept = world.call("GET", &path, &kept, "").await.text;
    assert_eq!(kept, "[***]");
    let report = json!({"outcome": "failed", "retry": "never", "output": format!("o {SECRET} planted-literal"),
        "error": format!("e {SECRET}")});
    let taken = world.say(run, "report", token, report.to_string()).await;
    assert_eq!(taken.status, 200, "{}", taken.text);
    let ended = world.wait(run, &["dead"]).await;
    assert_eq!(ended["attempts"][0]["output"], "o *** ***", "{ended}");
    assert_eq!(ended["attempts"][0]["error"], "e ***", "{ended}");
    let log = world.get(&format!("/v1/runs/{run}/log")).await.json();
    assert_eq!(log["text"], "a *** b ********* c ***", "{log}");
}

#[tokio::test]
async fn what_is_said_of_an_attempt_is_kept_without_what_it_was_sent() {
    let world = World::new().await;
    set_secret(&world).await;
    let (run, token) = world.taken_over_by(with_secrets()).await;
    // What it was sent, whatever the secret and the job have become since.
    let other = json!({"value": "planted-other"});
    world.put("/v1/secrets/a", other).await.is(200);
    say_all(&world, (&run, &token)).await;
}

#[tokio::test]
async fn another_node_takes_it_out_as_well() {
    let world = World::new().await;
    set_secret(&world).await;
    let (run, token) = world.taken_over_by(with_secrets()).await;
    let shown = world.get(&format!("/v1/runs/{run}")).await.json();
    let path = format!("/v1/jobs/{}", shown["job"].as_str().unwrap());
    // The attempt was made by the version before.
    let headers = json!({"authorization": null, "x-api-key": "other"});
    let edit = json!({"target": {"http": {"headers": headers}}});
    world.patch(&path, edit).await.is(200);
    let other = world.beside("other").await;
    say_all(&other, (&run, &token)).await;
}

#[tokio::test]
async fn what_cannot_be_compared_is_not_kept() {
    let world = World::new().await;
    set_secret(&world).await;
    let (run, token) = world.taken_over_by(with_secrets()).await;
    world.delete("/v1/secrets/a").await.is(200);
    let other = world.beside("other").await;
    other
        .say(&run, "log", &token, SECRET.to_owned())
        .await
        .is(200);
    let report = json!({"outcome": "failed", "retry": "never", "output": SECRET, "error": SECRET});
    let taken = other.say(&run, "report", &token, report.to_string()).await;
    assert_eq!(taken.status, 200, "{}", taken.text);
    let ended = other.wait(&run, &["dead"]).await;
    assert!(!ended.to_string().contains("planted"), "{ended}");
    let error = ended["attempts"][0]["error"].as_str().unwrap();
    assert!(error.contains("there is no secret a"), "{error}");
    let log = other.get(&format!("/v1/runs/{run}/log")).await;
    assert!(!log.text.contains("planted"), "{}", log.text);
}

#[tokio::test]
async fn a_definition_says_what_completes_an_attempt_and_an_edit_keeps_it() {
    let world = World::new().await;
    let create = async |more: Value| {
        let mut body = json!({"schedule": "@yearly", "target": OK});
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        world.post("/v1/jobs?dry_run=true", body).await
    };
    for (more, field) in [
        (json!({"heartbeat_within": "1m"}), "heartbeat_within"),
        (json!({"completion": "later"}), "completion"),
        (
            json!({"completion": "callback", "timeout": "1m", "heartbeat_within": "2m"}),
            "heartbeat_within",
        ),
        (
            json!({"completion": "callback", "heartbeat_within": "1ms"}),
            "heartbeat_within",
        ),
    ] {
        let reply = create(more.clone()).await;
        assert_eq!(reply.status, 422, "{more}");
        assert_eq!(reply.get("field"), field, "{more}");
    }
    let short = create(json!({"completion": "callback", "timeout": "1m"})).await;
    assert_eq!(short.json()["heartbeat_within"], "60s");
    let body = json!({"schedule": "@yearly", "target": OK, "completion": "callback", "heartbeat_within": "2m"});
    let job = world.post("/v1/jobs", body).await.is(201).get("id");
    let path = format!("/v1/jobs/{job}");
    let edited = world.patch(&path, json!({"labels": {"a": "b"}})).await;
    assert_eq!(edited.json()["heartbeat_within"], "2m");
    let shorter = world.patch(&path, json!({"timeout": "1m"})).await;
    assert_eq!(shorter.get("field"), "heartbeat_within");
    let usual = world.patch(&path, json!({"heartbeat_within": null})).await;
    assert_eq!(usual.json()["heartbeat_within"], "5m");
    let answer = world.patch(&path, json!({"completion": null})).await;
    assert_eq!(answer.json()["completion"], "answer");
    assert_eq!(answer.json()["heartbeat_within"], Value::Null);
}
