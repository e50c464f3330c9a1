//! History in a file: complete, in bounded pages, and going on where it was stopped.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{Read, Write, copy};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{fails, value};
use crate::support::{Receiver, Server, list, wait_for};

/// More than two pages.
const RUNS: usize = 450;

/// A server with so many runs that have ended.
fn filled(receiver: &Receiver) -> Server {
    let server = Server::start();
    let job = json!({"key": "many", "schedule": "@yearly", "overlap": "allow", "target": receiver.url("/"),
        "payload": [1.0]});
    server.http().post("/v1/jobs", &job);
    for number in 0..RUNS {
        // Line breaks of a payload are nobody's line.
        let body = format!("{{\"payload\": [\n {number}\n]}}");
        let headers = [("content-type", "application/json")];
        let path = "/v1/jobs/key:many/run";
        let made = server.http().send("POST", path, &headers, body.as_bytes());
        assert_eq!(made.status, 201);
    }
    wait_for("the ends of all runs", || {
        let alive = server
            .http()
            .get("/v1/runs?state=ready,running,retrying")
            .json();
        (alive["items"] == json!([])).then_some(())
    });
    server
}

/// Passes calls on to a server, but for one, which it breaks off.
fn breaking(server: &Server, broken: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let address = server.address.clone();
    thread::spawn(move || {
        for (at, incoming) in listener.incoming().enumerate() {
            let mut client = incoming.unwrap();
            if at == broken {
                let _sent = client.read(&mut [0; 1_024]);
                continue;
            }
            let mut server = TcpStream::connect(&address).unwrap();
            let (mut to, mut from) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || {
                let _sent = copy(&mut from, &mut to);
                let _closed = to.shutdown(Shutdown::Write);
            });
            thread::spawn(move || {
                let _sent = copy(&mut server, &mut client);
                let _closed = client.shutdown(Shutdown::Both);
            });
        }
    });
    url
}

#[track_caller]
fn ids(text: &str) -> Vec<String> {
    let runs = text.lines().map(value);
    runs.map(|run| run["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn an_export_that_broke_off_goes_on_and_has_each_run_once() {
    let receiver = Receiver::start();
    let server = filled(&receiver);
    let own = TempDir::new().unwrap();
    let path = own.path().join("runs.ndjson");
    let (part, cursor) = (
        own.path().join("runs.ndjson.part"),
        own.path().join("runs.ndjson.cursor"),
    );
    let line = format!(
        "export runs --since 1h --job many --output {}",
        path.display()
    );
    let url = breaking(&server, 2);
    let broken = server.cli_with(&[("PUNCTUAL_SERVER", &url)], &line);
    fails(&broken, 3, &["the same command goes on"]);
    assert!(!path.exists() && part.exists() && cursor.exists());
    assert_eq!(fs::read_to_string(&part).unwrap().lines().count(), 400);

    let other = server.cli(&line.replace("--since 1h", "--since 2h"));
    fails(
        &other,
        2,
        &["runs.ndjson.part", "other flags", "to begin again"],
    );

    // As if it had been killed in the middle of a page.
    let mut file = OpenOptions::new().append(true).open(&part).unwrap();
    file.write_all(b"{\"id\": \"half a line").unwrap();
    let done = server.cli_with(&[("PUNCTUAL_SERVER", &url)], &line);
    assert!(done.status.success(), "{done:?}");
    assert!(String::from_utf8_lossy(&done.stderr).contains("450 runs in"));
    assert!(!part.exists() && !cursor.exists());

    let text = fs::read_to_string(&path).unwrap();
    let exported = ids(&text);
    let all = list(&server.http(), "/v1/runs?");
    let shown: Vec<&str> = all.iter().map(|run| run["id"].as_str().unwrap()).collect();
    assert_eq!(exported, shown);
    assert_eq!(exported.iter().collect::<BTreeSet<_>>().len(), RUNS);
    let first: Value = value(text.lines().next().unwrap());
    assert_eq!(first, all[0]);
    fails(&server.cli(&line), 2, &["runs.ndjson is there, and whole"]);
}

#[test]
fn an_export_to_a_pipe_says_where_to_go_on() {
    let receiver = Receiver::start();
    let server = filled(&receiver);
    let url = breaking(&server, 1);
    let line = "export runs --since 1h";
    let broken = server.cli_with(&[("PUNCTUAL_SERVER", &url)], line);
    fails(&broken, 3, &["go on with --from ", " --to ", " --cursor "]);
    let error = String::from_utf8_lossy(&broken.stderr).into_owned();
    let (_, flags) = error.trim().split_once("go on with ").unwrap();
    let rest = server.printed(&format!("export runs {flags}"));
    let begun = String::from_utf8(broken.stdout).unwrap();
    assert_eq!(ids(&begun).len(), 200);
    let all: BTreeSet<String> = ids(&begun).into_iter().chain(ids(&rest)).collect();
    assert_eq!(all.len(), RUNS);
}

#[test]
fn an_export_keeps_to_its_range_and_its_job() {
    let receiver = Receiver::start();
    let server = Server::start();
    for key in ["one", "two"] {
        server.printed(&format!(
            "job create --key {key} --cron @yearly --url {}",
            receiver.url("/")
        ));
        server.printed(&format!("job run {key}"));
    }
    let count = |flags: &str| {
        server
            .printed(&format!("export runs {flags}"))
            .lines()
            .count()
    };
    assert_eq!(count("--since 1h"), 2);
    assert_eq!(count("--since 1h --job two"), 1);
    assert_eq!(
        count("--from 2020-01-01T00:00:00Z --to 2020-02-01T00:00:00Z"),
        0
    );
    fails(&server.cli("export runs"), 2, &["--from or --since"]);
    fails(&server.cli("export runs --from soon"), 1, &["--from"]);
    fails(
        &server.cli("export runs --since 1h --output /nowhere/runs.ndjson"),
        2,
        &["/nowhere/runs.ndjson.part cannot be written"],
    );
}
