//! Work that reports later, through what happens to the nodes meanwhile.

use std::time::Duration;

use serde_json::{Value, json};
use store::postgres::server::PgServer;
use tempfile::TempDir;

use super::world::pause;
use crate::support::{Answer, Http, Receiver, Reply, Server, skip, wait_for, wait_within};

/// A target that takes everything over.
fn target() -> Receiver {
    Receiver::answering(|_| Answer::status(202))
}

fn create(server: &Server, target: &Receiver, within: &str) {
    let body = json!({
        "schedule": {"in": "100ms"}, "target": target.url("/"), "completion": "callback",
        "heartbeat_within": within, "timeout": "10m", "retry": {"delay_first": "100ms"},
    });
    let reply = server.http().post("/v1/jobs", &body);
    assert_eq!(reply.status, 201, "{}", reply.json());
}

/// The run and the token of a delivery.
fn taken_over(target: &Receiver, count: usize) -> (String, String) {
    let delivered = wait_within(60, "a delivery", || {
        target.deliveries().into_iter().nth(count - 1)
    });
    let header = |name| delivered.header(name).to_owned();
    (header("punctual-run"), header("punctual-token"))
}

fn say(http: &Http, run: &str, what: &str, token: &str, body: &Value) -> Reply {
    let path = format!("/v1/runs/{run}/{what}");
    let headers = [
        ("punctual-token", token),
        ("content-type", "application/json"),
    ];
    http.send("POST", &path, &headers, body.to_string().as_bytes())
}

fn run_of(server: &Server, run: &str) -> Value {
    server.http().get(&format!("/v1/runs/{run}")).json()
}

#[track_caller]
fn is_handed_over(server: &Server, run: &str) {
    wait_for("the hand-over", || {
        let run = run_of(server, run);
        run["handed_over"].is_object().then_some(())
    });
}

/// A node is killed while the work is with its target, and the report goes to the one after it.
fn outlives_a_kill(start: impl Fn() -> Server) {
    let target = target();
    let server = start();
    create(&server, &target, "1m");
    let (run, token) = taken_over(&target, 1);
    is_handed_over(&server, &run);
    server.kill();
    let server = start();
    server.is_ready();
    let heard = say(
        &server.http(),
        &run,
        "heartbeat",
        &token,
        &json!({"progress": 0.5}),
    );
    assert_eq!(heard.status, 200, "{}", heard.json());
    assert_eq!(heard.json()["cancel"], false);
    let stands = run_of(&server, &run);
    assert_eq!(
        (&stands["state"], &stands["handed_over"]["progress"]),
        (&json!("running"), &json!(0.5))
    );
    let succeeded = json!({"outcome": "succeeded", "output": "made"});
    for repeated in [false, true] {
        let taken = say(&server.http(), &run, "report", &token, &succeeded);
        assert_eq!(taken.json()["repeated"], repeated, "{}", taken.json());
    }
    let other = say(
        &server.http(),
        &run,
        "report",
        &token,
        &json!({"outcome": "failed"}),
    );
    assert_eq!(other.status, 409);
    assert_eq!(other.json()["type"], "/problems/attempt-ended");
    let ended = run_of(&server, &run);
    assert_eq!(ended["state"], "succeeded");
    assert_eq!(ended["attempts"][0]["output"], "made");
    assert_eq!(target.count(), 1, "delivered once");
}

/// The first attempts that leave find no key to make their tokens with.
#[test]
fn the_first_tokens_of_many_attempts_at_once_are_all_good() {
    const JOBS: usize = 150;
    let target = target();
    let server = Server::start();
    let one = json!({
        "schedule": {"in": "3s"}, "target": target.url("/"), "completion": "callback",
        "timeout": "10m",
    });
    let lines = format!("{one}\n").repeat(JOBS);
    let ndjson = [("content-type", "application/x-ndjson")];
    let reply = server
        .http()
        .send("POST", "/v1/jobs/batch", &ndjson, lines.as_bytes());
    assert_eq!(reply.status, 200);
    wait_within(60, "all deliveries", || {
        (target.count() >= JOBS).then_some(())
    });
    let mut keys = std::collections::BTreeSet::new();
    for delivered in target.deliveries() {
        let (run, token) = (
            delivered.header("punctual-run"),
            delivered.header("punctual-token"),
        );
        keys.extend(token.split('_').nth(1).map(str::to_owned));
        let heard = say(&server.http(), run, "heartbeat", token, &json!({}));
        assert_eq!(heard.status, 200, "{}", heard.json());
    }
    assert_eq!(keys.len(), 1, "{keys:?}");
}

#[test]
fn work_outlives_a_kill_of_the_only_node() {
    let folder = TempDir::new().unwrap();
    outlives_a_kill(|| Server::start_in(folder.path(), &[]));
}

#[test]
fn work_outlives_a_kill_of_a_node_of_a_database() {
    let database = match PgServer::shared() {
        Ok(database) => database,
        Err(why) => return skip(&why.to_string()),
    };
    let (store, folder) = (database.fresh_schema(), TempDir::new().unwrap());
    outlives_a_kill(|| Server::start_in(folder.path(), &["--store", &store]));
}

#[test]
fn a_report_may_go_to_any_node_and_an_old_token_opens_nothing() {
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
    other.is_ready();
    let target = target();
    create(&one, &target, "1m");
    let (run, first) = taken_over(&target, 1);
    is_handed_over(&one, &run);
    let failed = json!({"outcome": "failed", "error": "no disk"});
    let taken = say(&other.http(), &run, "report", &first, &failed);
    assert_eq!(taken.status, 200, "{}", taken.json());
    let (again, second) = taken_over(&target, 2);
    assert_eq!((&again, first != second), (&run, true));
    let late = say(&one.http(), &run, "heartbeat", &first, &json!({}));
    assert_eq!(
        (late.status, &late.json()["outcome"]),
        (409, &json!("failed"))
    );
    let forged = first.replacen("_1_", "_2_", 1);
    for wrong in ["", "pt1_00000000_1_0_00", &forged] {
        let refused = say(&other.http(), &run, "report", wrong, &failed);
        assert_eq!(refused.status, 401, "{wrong}");
    }
    let succeeded = json!({"outcome": "succeeded"});
    let taken = say(&other.http(), &run, "report", &second, &succeeded);
    assert_eq!(taken.status, 200, "{}", taken.json());
    assert_eq!(run_of(&one, &run)["state"], "succeeded");
}

#[test]
fn silence_loses_an_attempt_and_the_next_finds_its_checkpoint() {
    let (target, server) = (target(), Server::start());
    create(&server, &target, "2s");
    let (run, first) = taken_over(&target, 1);
    let beat = json!({"checkpoint": "row 7"});
    assert_eq!(
        say(&server.http(), &run, "heartbeat", &first, &beat).status,
        200
    );
    let (again, second) = taken_over(&target, 2);
    assert_eq!(again, run);
    let path = format!("/v1/runs/{run}/checkpoint");
    let headers = [("punctual-token", second.as_str())];
    let found = server.http().send("GET", &path, &headers, b"");
    assert_eq!((found.status, &found.body[..]), (200, &b"row 7"[..]));
    let stands = run_of(&server, &run);
    assert_eq!(stands["attempts"][0]["outcome"], "lost");
    let text = b"begun\n";
    let path = format!("/v1/runs/{run}/log");
    let said = server.http().send("POST", &path, &headers, text);
    assert_eq!(said.status, 200, "{}", said.json());
    assert_eq!(server.http().get(&path).json()["text"], "begun\n");
    let cancelled = server
        .http()
        .post(&format!("/v1/runs/{run}/cancel"), &json!({}));
    assert_eq!(cancelled.status, 200);
    pause(Duration::from_millis(50));
    let beaten = say(&server.http(), &run, "heartbeat", &second, &json!({}));
    assert_eq!(beaten.json()["cancel"], true, "{}", beaten.json());
    let stopped = json!({"outcome": "failed", "error": "stopped"});
    say(&server.http(), &run, "report", &second, &stopped);
    assert_eq!(run_of(&server, &run)["state"], "cancelled");
}

/// For scripts that take an attempt over: the token comes from the environment or from standard input, never from a flag.
#[test]
fn the_command_line_beats_and_reports() {
    let (target, server) = (target(), Server::start());
    create(&server, &target, "1m");
    let (run, token) = taken_over(&target, 1);
    is_handed_over(&server, &run);
    let with_token = [("PUNCTUAL_TOKEN", token.as_str())];
    let said = |line: &str| {
        let output = server.cli_with(&with_token, line);
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let heard = said(&format!(
        "run heartbeat {run} --progress 0.5 --checkpoint row-7"
    ));
    assert!(heard.starts_with("trusted until "), "{heard}");
    let stands = run_of(&server, &run);
    assert_eq!(stands["handed_over"]["progress"], json!(0.5), "{stands}");
    let wrong = server.cli_with(
        &[("PUNCTUAL_TOKEN", "pt1_wrong")],
        &format!("run report {run} succeeded"),
    );
    assert!(!wrong.status.success(), "{wrong:?}");
    let report = format!("run report {run} succeeded --output 42");
    assert_eq!(said(&report).trim_end(), "reported: succeeded");
    assert!(said(&report).contains("as was reported before"));
    let ended = run_of(&server, &run);
    assert_eq!(
        (&ended["state"], &ended["attempts"][0]["output"]),
        (&json!("succeeded"), &json!("42"))
    );
}
