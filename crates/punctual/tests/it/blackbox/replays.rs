//! Replays in bulk, while the server is killed.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::world::pause;
use crate::support::{Answer, Http, Receiver, Server, wait_for};

const RUNS: usize = 120;
const KILLS: usize = 3;

fn runs(http: &Http, query: &str) -> Vec<Value> {
    let page = http.get(&format!("/v1/runs?limit=1000&{query}")).json();
    page["items"].as_array().unwrap().clone()
}

fn all_ended(http: &Http) -> bool {
    runs(http, "state=ready,running,retrying").is_empty()
}

#[test]
fn a_replay_goes_on_after_kill_9_and_no_run_is_replayed_twice() {
    let refusing = Receiver::answering(|_| Answer::status(400));
    let receiver = Receiver::start();
    let folder = TempDir::new().unwrap();
    let mut server = Server::start_in(folder.path(), &[]);
    let job = json!({
        "key": "broken", "target": refusing.url("/"), "overlap": "allow", "schedule": "@yearly",
    });
    let http = server.http();
    assert_eq!(http.post("/v1/jobs", &job).status, 201);
    for _ in 0..RUNS {
        let run = http.post("/v1/jobs/key:broken/run", &json!({}));
        assert_eq!(run.status, 201);
    }
    wait_for("the last end", || all_ended(&http).then_some(()));
    let dead = runs(&http, "state=dead");
    assert_eq!(dead.len(), RUNS);
    let patch = json!({"target": receiver.url("/")}).to_string();
    let headers = [("content-type", "application/json")];
    let patched = http.send("PATCH", "/v1/jobs/key:broken", &headers, patch.as_bytes());
    assert_eq!(patched.status, 200);
    let body = json!({"filter": {"job": "key:broken"}, "rate": 40});
    let replay = http.post("/v1/replays", &body);
    assert_eq!(replay.status, 202);
    let path = format!("/v1/replays/{}", replay.json()["id"].as_str().unwrap());
    for _ in 0..KILLS {
        pause(Duration::from_millis(700));
        server.kill();
        server = Server::start_in(folder.path(), &[]);
    }
    let http = server.http();
    let done = wait_for("the replay's end", || {
        let replay = http.get(&path).json();
        (replay["state"] != "running").then_some(replay)
    });
    assert_eq!(done["state"], "done", "{done}");
    assert_eq!(done["started"], dead.len(), "{done}");
    wait_for("the last end", || all_ended(&http).then_some(()));
    let mut of = BTreeMap::<String, usize>::new();
    for run in runs(&http, "state=succeeded") {
        if let Some(old) = run["replay_of"].as_str() {
            assert_eq!(run["state"], "succeeded", "{run}");
            *of.entry(old.to_owned()).or_default() += 1;
        }
    }
    assert_eq!(of.len(), dead.len());
    assert!(of.values().all(|count| *count == 1), "{of:?}");
}
