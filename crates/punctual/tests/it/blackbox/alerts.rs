//! Alerts: what a real receiver gets when jobs fail, on both stores, and what is left of it after kill -9.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use store::postgres::server::{Mode, PgServer};
use tempfile::TempDir;

use super::world::pause;
use crate::support::{Answer, Http, Receiver, Server, moment, skip, wait_for, wait_within};

/// An alert leaves so long after its cause at most; the test's machine may be busy.
const LEAVES_WITHIN: i64 = 4_000;

fn database() -> Option<PgServer> {
    PgServer::private(Mode::Durable)
        .map_err(|why| skip(&why.to_string()))
        .ok()
}

fn put(http: &Http, path: &str, body: &Value) -> u16 {
    let headers = [("content-type", "application/json")];
    let reply = http.send("PUT", path, &headers, body.to_string().as_bytes());
    assert!(
        reply.status < 300,
        "{}",
        String::from_utf8_lossy(&reply.body)
    );
    reply.status
}

/// What the receiver got of alerts, each delivery once, as it was sent.
fn got(receiver: &Receiver) -> Vec<Value> {
    let mut seen = Vec::new();
    let mut bodies = Vec::new();
    for delivery in receiver.deliveries() {
        let run = delivery.header("punctual-run").to_owned();
        if !seen.contains(&run) {
            seen.push(run);
            bodies.push(serde_json::from_slice(&delivery.body).unwrap());
        }
    }
    bodies
}

fn states(receiver: &Receiver) -> Vec<String> {
    let got = got(receiver);
    let state = |it: &Value| it["state"].as_str().unwrap().to_owned();
    got.iter().map(state).collect()
}

/// Somebody to call whose answer can be changed, and a job that calls it when it is run.
struct Broken {
    receiver: Receiver,
    status: Arc<AtomicU16>,
}

impl Broken {
    fn new() -> Self {
        let status = Arc::new(AtomicU16::new(400));
        let answer = Arc::clone(&status);
        let receiver = Receiver::answering(move |_| Answer::status(answer.load(Ordering::SeqCst)));
        Self { receiver, status }
    }

    fn job(&self, http: &Http, key: &str) {
        let job = json!({
            "key": key, "target": self.receiver.url("/"), "schedule": "@yearly", "overlap": "allow",
        });
        assert_eq!(http.post("/v1/jobs", &job).status, 201);
    }

    fn run(&self, http: &Http, key: &str, status: u16) -> Value {
        self.status.store(status, Ordering::SeqCst);
        let path = format!("/v1/jobs/key:{key}/run");
        let run = http.post(&path, &json!({}));
        assert_eq!(run.status, 201);
        let path = format!("/v1/runs/{}", run.json()["id"].as_str().unwrap());
        wait_for("the run's end", || {
            let run = http.get(&path).json();
            let ended = ["dead", "succeeded"].contains(&run["state"].as_str().unwrap());
            ended.then_some(run)
        })
    }
}

fn fires_once_and_recovers_once(folder: &Path, arguments: &[&str]) {
    let (broken, ops) = (Broken::new(), Receiver::start());
    let server = Server::start_in(folder, arguments);
    let http = server.http();
    broken.job(&http, "nightly");
    // Nobody has asked for an alert yet.
    broken.run(&http, "nightly", 400);
    let rule = json!({"on": "dead", "url": ops.url("/alerts")});
    assert_eq!(put(&http, "/v1/alerts/ops", &rule), 201);
    let test = http.post("/v1/alerts/ops/test", &json!({}));
    assert_eq!(test.status, 202, "{:?}", test.json());
    wait_for("the test", || (states(&ops) == ["test"]).then_some(()));
    let dead = broken.run(&http, "nightly", 400);
    wait_for("the alert", || {
        (states(&ops) == ["test", "firing"]).then_some(())
    });
    let got_at = ops.deliveries()[1].at_micros / 1_000;
    let took = got_at - moment(&dead["settled_at"]);
    assert!(took < LEAVES_WITHIN, "{took} ms");
    let fired = &got(&ops)[1]["jobs"][0];
    assert_eq!(fired["run"], dead["id"]);
    assert_eq!(
        (&fired["key"], &fired["reason"]),
        (&json!("nightly"), &json!("refused"))
    );
    let shown = http.get("/v1/alerts/ops").json();
    assert_eq!(shown["alerts"][0]["state"], "firing", "{shown}");
    // It fires already: nothing is sent for the next.
    broken.run(&http, "nightly", 400);
    pause(Duration::from_millis(1_500));
    assert_eq!(states(&ops), ["test", "firing"]);
    broken.run(&http, "nightly", 200);
    wait_for("the end", || {
        (states(&ops) == ["test", "firing", "recovered"]).then_some(())
    });
    pause(Duration::from_millis(1_500));
    assert_eq!(states(&ops).len(), 3);
    let shown = http.get("/v1/alerts/ops").json();
    assert_eq!(shown["alerts"], json!([]));
    let deliveries = http.get("/v1/alerts/ops/deliveries").json();
    let ends: Vec<&Value> = deliveries["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| &run["state"])
        .collect();
    assert_eq!(ends, ["succeeded"; 3]);
    // What delivers is the system's: no tenant sees it among its own.
    assert_eq!(
        http.get("/v1/jobs").json()["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    server.stop();
}

/// Many jobs die, and the server with them, again and again: each alert arrives, and of none a second delivery is made.
fn loses_nothing(folder: &Path, arguments: &[&str]) {
    const JOBS: usize = 12;
    let (broken, ops) = (Broken::new(), Receiver::start());
    let mut server = Server::start_in(folder, arguments);
    let http = server.http();
    let rule = json!({"on": "failed", "label": "team=ops", "url": ops.url("/alerts")});
    put(&http, "/v1/alerts/ops", &rule);
    for n in 0..JOBS {
        let job = json!({
            "key": format!("job-{n}"), "target": broken.receiver.url("/"), "labels": {"team": "ops"},
            "schedule": "@yearly",
        });
        assert_eq!(http.post("/v1/jobs", &job).status, 201);
    }
    for (round, jobs) in (0..JOBS).collect::<Vec<_>>().chunks(3).enumerate() {
        let http = server.http();
        for n in jobs {
            broken.run(&http, &format!("job-{n}"), 400);
        }
        // At another moment each time: before it is looked at, while it is, after it was.
        pause(Duration::from_millis(170 * round as u64));
        server.kill();
        server = Server::start_in(folder, arguments);
    }
    let named = || {
        let got = got(&ops);
        let jobs = got
            .iter()
            .flat_map(|it| it["jobs"].as_array().unwrap().clone());
        let mut keys: Vec<String> = jobs
            .map(|it| it["key"].as_str().unwrap().to_owned())
            .collect();
        keys.sort();
        keys
    };
    wait_within(30, "every alert", || (named().len() >= JOBS).then_some(()));
    pause(Duration::from_secs(2));
    let mut wanted: Vec<String> = (0..JOBS).map(|n| format!("job-{n}")).collect();
    wanted.sort();
    assert_eq!(named(), wanted, "each once");
    server.stop();
}

#[test]
fn an_alert_fires_once_and_recovers_once() {
    let folder = TempDir::new().unwrap();
    fires_once_and_recovers_once(folder.path(), &[]);
}

#[test]
fn an_alert_fires_once_and_recovers_once_over_postgres() {
    let Some(database) = database() else { return };
    let folder = TempDir::new().unwrap();
    fires_once_and_recovers_once(folder.path(), &["--store", &database.address()]);
}

#[test]
fn no_alert_is_lost_by_kill_9_and_none_is_sent_twice() {
    let folder = TempDir::new().unwrap();
    loses_nothing(folder.path(), &[]);
}

#[test]
fn no_alert_is_lost_by_kill_9_over_postgres() {
    let Some(database) = database() else { return };
    let folder = TempDir::new().unwrap();
    loses_nothing(folder.path(), &["--store", &database.address()]);
}

#[test]
fn slots_in_a_row_that_are_skipped_and_a_text_for_slack() {
    let slow = Receiver::answering(|_| Answer::ok().after(Duration::from_secs(20)));
    let ops = Receiver::start();
    let server = Server::start();
    let rule = format!(
        "alert create stuck --on skipped --count 2 --slack --url {}",
        ops.url("/T0/x")
    );
    assert!(server.printed(&rule).starts_with("stored stuck, version 1"));
    let http = server.http();
    let job = json!({
        "key": "a<b".replace('<', "-"), "schedule": "@every 1s", "target": slow.url("/"),
        "timeout": "30s",
    });
    assert_eq!(http.post("/v1/jobs", &job).status, 201);
    let said = wait_for("the alert", || got(&ops).into_iter().next());
    let said = said["text"].as_str().unwrap();
    assert!(
        said.starts_with("Firing: stuck (skipped)\n• a-b (job_"),
        "{said}"
    );
    assert!(said.contains("is skipped, overlap"), "{said}");
    let listed = server.printed("alert list");
    assert!(listed.contains("skipped 2 in a row"), "{listed}");
    assert!(
        listed.contains("/***") && !listed.contains("T0/x"),
        "{listed}"
    );
    let muted = server.printed("alert mute stuck --for 1h");
    assert!(muted.contains("muted until"), "{muted}");
    assert!(server.printed("alert show stuck").contains("firing"));
    assert!(
        server
            .printed("alert deliveries stuck")
            .contains("succeeded")
    );
    assert_eq!(server.printed("alert delete stuck").trim(), "deleted stuck");
    assert_eq!(http.get("/v1/alerts/stuck").status, 404);
}
