//! What a server logs: objects for programs, and levels that change while it works.

use std::fs;
use std::path::Path;

use model::Timestamp;
use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{KEYS, Server, wait_for};

/// Every line of the log, as the object that it is.
#[track_caller]
fn lines(server: &Server) -> Vec<Value> {
    let log = server.log();
    let read = |line: &str| -> Value {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
    };
    log.lines().map(read).collect()
}

#[track_caller]
fn line(server: &Server, part: &str) -> Value {
    let has = |line: &Value| line["message"].as_str().is_some_and(|it| it.contains(part));
    wait_for(part, || lines(server).into_iter().find(has))
}

/// A server whose levels are in a file.
fn start(folder: &Path, levels: &str) -> Server {
    write(folder, levels);
    let file = folder.join("punctual.toml");
    Server::start_in(
        &folder.join("data"),
        &["--config", file.to_str().unwrap(), "--log-format", "json"],
    )
}

fn write(folder: &Path, levels: &str) {
    fs::write(
        folder.join("punctual.toml"),
        format!("# a file\nlog = {levels:?}\n"),
    )
    .unwrap();
}

#[test]
fn every_line_of_a_json_log_is_an_object_and_the_root_key_is_in_none() {
    let own = TempDir::new().unwrap();
    let server = Server::start_in(
        own.path(),
        &["--log-format", "json", KEYS, "--log", "debug"],
    );
    server.is_ready();
    let kept = line(&server, "a root key was made");
    assert!(kept["message"].as_str().unwrap().contains("root.key"));
    let key = server.root_key();
    server.http().with_key(&key).get("/v1/jobs");
    let answered = wait_for("the line of the request", || {
        let of_jobs = |line: &Value| line["route"] == "/v1/jobs";
        lines(&server).into_iter().find(of_jobs)
    });
    assert_eq!(answered["message"], "answered");
    assert_eq!(answered["level"], "DEBUG");
    assert_eq!(answered["target"], "server::rest::observe");
    assert_eq!(answered["status"], 200);
    assert!(answered["span"]["id"].is_string(), "{answered}");
    for line in lines(&server) {
        let at = line["timestamp"].as_str().unwrap();
        assert!(Timestamp::parse(at).is_ok(), "{at}");
        assert!(line["target"].is_string() && line["level"].is_string());
    }
    assert!(!server.log().contains(&key));
}

#[test]
fn a_level_that_is_changed_while_the_server_works_takes_effect() {
    let own = TempDir::new().unwrap();
    let server = start(own.path(), "info,server=warn");
    server.is_ready();
    server.http().get("/v1/jobs");
    assert!(!server.log().contains("\"answered\""));

    write(own.path(), "info,server::rest=debug");
    server.signal(Signal::SIGHUP);
    let changed = line(
        &server,
        "SIGHUP: the log levels are info,server::rest=debug now",
    );
    let said = changed["message"].as_str().unwrap();
    assert!(said.contains("punctual.toml, line 2"), "{said}");
    assert!(said.contains("were info,server=warn"), "{said}");
    server.http().get("/v1/jobs");
    line(&server, "answered");

    // A slip changes nothing, and is named with the fix.
    write(own.path(), "info,server=verbose");
    server.signal(Signal::SIGHUP);
    let refused = line(&server, "the log levels stay info,server::rest=debug");
    let said = refused["message"].as_str().unwrap();
    assert!(
        said.contains("punctual.toml, line 2: log: \"verbose\" is not a level: write error, warn"),
        "{said}"
    );
    let before = server.log().matches("\"answered\"").count();
    server.http().get("/v1/jobs");
    wait_for("another line", || {
        (server.log().matches("\"answered\"").count() > before).then_some(())
    });
}

#[test]
fn a_flag_wins_over_the_file_and_the_log_says_so() {
    let own = TempDir::new().unwrap();
    write(own.path(), "debug");
    let file = own.path().join("punctual.toml");
    let flags = [
        "--config",
        file.to_str().unwrap(),
        "--log",
        "info",
        "--log-format",
        "json",
    ];
    let server = Server::start_in(&own.path().join("data"), &flags);
    server.signal(Signal::SIGHUP);
    line(&server, "SIGHUP: the log levels are the same: info (--log)");
}

#[test]
#[should_panic(expected = "no log may say")]
fn a_server_whose_log_says_what_it_had_to_keep_fails_its_test() {
    let own = TempDir::new().unwrap();
    let server = Server::start_in(own.path(), &["--log", "debug"]);
    let name = "planted-in-the-log";
    let headers = [("x-request-id", name)];
    assert_eq!(
        server.http().send("GET", "/v1/jobs", &headers, b"").status,
        200
    );
    wait_for("the line", || server.log().contains(name).then_some(()));
}
