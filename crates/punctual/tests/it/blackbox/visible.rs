//! Trouble is visible: in the run, in the metrics, in the log; and a held node makes none.

use std::time::Duration;

use model::Timestamp;
use model::schedule::parse_span;
use serde_json::{Value, json};
use store::postgres::server::PgServer;
use tempfile::TempDir;

use super::world::{list, now, pause};
use crate::support::{Answer, Receiver, Server, skip, wait_for};

fn at(millis: i64) -> Value {
    json!({ "at": Timestamp::from_millis(millis).to_string() })
}

#[track_caller]
fn create(server: &Server, body: &Value) -> String {
    let reply = server.http().post("/v1/jobs", body);
    assert_eq!(reply.status, 201, "{}", reply.json());
    reply.json()["id"].as_str().unwrap().to_owned()
}

fn runs(server: &Server, job: &str) -> Vec<Value> {
    list(&server.http(), &format!("/v1/jobs/{job}/runs?"))
}

/// The only run of a job, once it is in this state.
#[track_caller]
fn run_in(server: &Server, job: &str, state: &str) -> Value {
    wait_for(state, || {
        let found = runs(server, job).into_iter().next();
        found.filter(|run| run["state"] == state)
    })
}

/// What a counter or a gauge says, all labels together with those that are given.
fn metric(server: &Server, name: &str) -> f64 {
    let text = String::from_utf8(server.http().get("/metrics").body).unwrap();
    let of = |line: &str| {
        let (found, value) = line.rsplit_once(' ')?;
        let is_it = found == name || found.starts_with(&format!("{name}{{"));
        is_it.then(|| value.parse::<f64>().unwrap())
    };
    text.lines().filter_map(of).sum()
}

/// The lines of trouble about a job.
fn lines(server: &Server, message: &str, key: &str) -> Vec<String> {
    let log = server.log();
    let about = |line: &&str| {
        line.contains("WARN") && line.contains(message) && line.contains(&format!("key=\"{key}\""))
    };
    log.lines().filter(about).map(str::to_owned).collect()
}

fn span(text: &Value) -> Duration {
    parse_span(text.as_str().unwrap_or_else(|| panic!("no span: {text}"))).unwrap()
}

#[test]
fn a_run_that_starts_late_is_marked_counted_and_logged() {
    let (target, folder) = (Receiver::start(), TempDir::new().unwrap());
    let server = Server::start_in(folder.path(), &["--node", "a"]);
    let due = now() + 1_500;
    let body = json!({ "key": "tardy", "schedule": at(due), "target": target.url("/"), "start_within": "500ms" });
    let job = create(&server, &body);
    let other = json!({ "key": "easy", "schedule": at(due), "target": target.url("/"), "start_within": "1h" });
    let easy = create(&server, &other);
    assert!(server.stop().success());
    pause(Duration::from_millis(
        (due + 2_000 - now()).max(0).unsigned_abs(),
    ));
    let server = Server::start_in(folder.path(), &["--node", "a"]);
    let run = run_in(&server, &job, "succeeded");
    assert!(
        span(&run["late_by"]) >= Duration::from_millis(1_400),
        "{run}"
    );
    assert_eq!(run["long_by"], Value::Null, "{run}");
    assert_eq!(run["attempts"][0]["node"], "a", "{run}");
    let found = lines(&server, "a run starts late", "tardy");
    assert_eq!(found.len(), 1, "{}", server.log());
    assert!(found[0].contains(run["id"].as_str().unwrap()), "{found:?}");
    assert!(found[0].contains("node=\"a\""), "{found:?}");
    assert_eq!(run_in(&server, &easy, "succeeded")["late_by"], Value::Null);
    assert_eq!(metric(&server, "punctual_late_runs_total"), 1.0);
}

#[test]
fn a_run_that_takes_long_is_marked_while_it_does_and_after() {
    let answer = Answer::ok().after(Duration::from_millis(3_500));
    let target = Receiver::answering(move |_| answer.clone());
    let server = Server::start();
    let body = json!({ "key": "slow", "schedule": at(now() + 300), "target": target.url("/"), "finish_within": "500ms" });
    let job = create(&server, &body);
    wait_for("a line", || {
        lines(&server, "a run takes long", "slow").pop()
    });
    let run = run_in(&server, &job, "running");
    let path = format!("/v1/runs/{}", run["id"].as_str().unwrap());
    let seen = server.http().get(&path).json();
    assert!(span(&seen["long_by"]) > Duration::ZERO, "{seen}");
    let run = run_in(&server, &job, "succeeded");
    let long_by = span(&run["long_by"]);
    assert!((3..10).contains(&long_by.as_secs()), "{run}");
    assert_eq!(run["late_by"], Value::Null, "{run}");
    assert_eq!(metric(&server, "punctual_long_runs_total"), 1.0);
    assert_eq!(lines(&server, "a run takes long", "slow").len(), 1);
    assert!(metric(&server, "punctual_attempt_duration_seconds_sum") >= 3.5);
}

#[test]
fn dead_runs_and_skipped_slots_are_logged_once_a_minute_and_counted() {
    let slow = Answer::ok().after(Duration::from_millis(2_500));
    let target = Receiver::answering(move |delivery| match delivery.path.as_str() {
        "/bad" => Answer::status(500).saying("no"),
        _ => slow.clone(),
    });
    let server = Server::start();
    let of = |key: &str, path: &str| {
        json!({ "key": key, "schedule": { "every": "1s" }, "target": target.url(path),
            "overlap": "skip", "retry": { "attempts_max": 1 } })
    };
    let bad = create(&server, &of("bad", "/bad"));
    create(&server, &of("long", "/long"));
    wait_for("three dead runs", || {
        (metric(&server, "punctual_runs_ended_total{state=\"dead\"}") >= 3.0).then_some(())
    });
    wait_for("skipped slots", || {
        let name = "punctual_skipped_slots_total{reason=\"overlap\"}";
        (metric(&server, name) >= 2.0).then_some(())
    });
    let dead = lines(&server, "a run is dead", "bad");
    assert_eq!(dead.len(), 1, "{}", server.log());
    assert!(dead[0].contains("attempts_spent"), "{dead:?}");
    let skipped = lines(&server, "slots were skipped", "long");
    assert_eq!(skipped.len(), 1, "{}", server.log());
    assert!(skipped[0].contains("overlap"), "{skipped:?}");
    let node = runs(&server, &bad).last().unwrap()["attempts"][0]["node"].clone();
    assert!(dead[0].contains(&format!("node={node}")), "{dead:?} {node}");
    for name in [
        "punctual_build_info",
        "punctual_http_latency_seconds_count",
        "punctual_store_latency_seconds_count",
    ] {
        assert!(metric(&server, name) >= 1.0, "{name}");
    }
    // The first count may have been made before there was a job.
    wait_for("a count of jobs", || {
        (metric(&server, "punctual_jobs{state=\"active\"}") == 2.0).then_some(())
    });
}

#[test]
fn lost_attempts_are_logged_and_counted_alike() {
    let answer = Answer::ok().after(Duration::from_secs(20));
    let (target, folder) = (
        Receiver::answering(move |_| answer.clone()),
        TempDir::new().unwrap(),
    );
    let server = Server::start_in(folder.path(), &["--node", "first"]);
    let body = json!({ "key": "lost", "schedule": at(now() + 300), "target": target.url("/"), "delivery": "at_most_once" });
    let job = create(&server, &body);
    run_in(&server, &job, "running");
    server.kill();
    let server = Server::start_in(folder.path(), &["--node", "second"]);
    let run = run_in(&server, &job, "dead");
    assert_eq!(run["attempts"][0]["node"], "first", "{run}");
    let found = lines(&server, "an attempt was lost", "lost");
    assert_eq!(found.len(), 1, "{}", server.log());
    assert!(found[0].contains("node=\"first\""), "{found:?}");
    assert_eq!(lines(&server, "a run is dead", "lost").len(), 1);
    let settled = metric(&server, "punctual_settled_total{outcome=\"lost\"}");
    let lost = metric(&server, "punctual_lost_attempts_total");
    assert_eq!((settled, lost), (1.0, 1.0));
}

#[test]
fn a_node_that_is_fenced_is_named() {
    let database = match PgServer::shared() {
        Ok(database) => database,
        Err(why) => return skip(&why.to_string()),
    };
    let (store, folder) = (database.fresh_schema(), TempDir::new().unwrap());
    let node = |name: &str| {
        let more = ["--store", &store, "--node", name];
        Server::start_in(folder.path(), &more)
    };
    let (one, other) = (node("one"), node("other"));
    wait_for("both", || {
        (metric(&one, "punctual_nodes") == 2.0).then_some(())
    });
    other.kill();
    let line = wait_for("a line", || {
        let log = one.log();
        let line = log.lines().find(|line| line.contains("fenced a node"));
        line.map(str::to_owned)
    });
    assert!(
        line.contains("WARN") && line.contains("node=\"other\""),
        "{line}"
    );
    assert_eq!(metric(&one, "punctual_fenced_nodes_total"), 1.0);
}

#[test]
fn a_manual_run_reads_running_once_it_is_dispatched() {
    let answer = Answer::ok().after(Duration::from_secs(3));
    let target = Receiver::answering(move |_| answer.clone());
    let server = Server::start();
    let body = json!({ "schedule": at(now() + 86_400_000), "target": target.url("/"), "overlap": "allow" });
    let job = create(&server, &body);
    // Others are marked a second after their dispatch at the earliest; a busy machine may take a while now and then.
    let soon = (0..3).any(|tried| {
        let run = server
            .http()
            .post(&format!("/v1/jobs/{job}/run"), &json!({}));
        let path = format!("/v1/runs/{}", run.json()["id"].as_str().unwrap());
        wait_for("its delivery", || (target.count() > tried).then_some(()));
        let delivered = target.deliveries()[tried].at_micros / 1_000;
        wait_for("running", || {
            (server.http().get(&path).json()["state"] == "running").then_some(())
        });
        now() - delivered < 900
    });
    assert!(soon);
}

#[test]
fn a_held_node_answers_and_fires_nothing() {
    let (target, folder) = (Receiver::start(), TempDir::new().unwrap());
    let server = Server::start_in(folder.path(), &[]);
    let body =
        json!({ "schedule": { "every": "1s" }, "target": target.url("/"), "overlap": "allow" });
    let job = create(&server, &body);
    wait_for("a delivery", || (target.count() > 0).then_some(()));
    assert!(server.stop().success());
    let before = (
        target.count(),
        runs(&Server::start_in(folder.path(), &["--hold"]), &job).len(),
    );
    let held = Server::start_in(folder.path(), &["--hold", "--health-bound", "3s"]);
    held.is_ready();
    assert!(held.log().contains("nothing fires here"), "{}", held.log());
    let reply = held.http().post(&format!("/v1/jobs/{job}/run"), &json!({}));
    assert!(reply.status < 300, "{}", reply.json());
    pause(Duration::from_secs(5));
    let health = held.http().get("/healthz");
    assert_eq!(
        (health.status, &health.json()["status"]),
        (200, &json!("held"))
    );
    assert_eq!(
        (target.count(), runs(&held, &job).len()),
        (before.0, before.1 + 1)
    );
    let path = format!("/v1/runs/{}", reply.json()["id"].as_str().unwrap());
    assert_eq!(held.http().get(&path).json()["state"], "ready");
    assert!(held.stop().success());
    let server = Server::start_in(folder.path(), &[]);
    wait_for("deliveries again", || {
        (target.count() > before.0 + 1).then_some(())
    });
    wait_for("what was asked for", || {
        (server.http().get(&path).json()["state"] == "succeeded").then_some(())
    });
}
