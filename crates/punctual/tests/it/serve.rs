//! How a server starts, refuses to start, and ends.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;
use tempfile::TempDir;

use crate::cli::fails;
use crate::support::{Answer, Receiver, Server, pause, punctual, wait_for};

/// Refused with one clear line and code 2.
#[track_caller]
fn is_refused(output: &Output, parts: &[&str]) {
    fails(output, 2, parts);
}

fn serve(folder: &Path) -> Output {
    punctual(&format!(
        "serve --listen 127.0.0.1:0 --data {}",
        folder.display()
    ))
}

#[test]
fn a_first_start_says_where_data_lives_and_a_signal_ends_it_in_good_order() {
    let own = TempDir::new().unwrap();
    let folder = own.path().join("made/by/us");
    let server = Server::start_in(&folder, &[]);
    let log = server.log();
    assert!(log.contains(folder.to_str().unwrap()), "{log}");
    assert!(log.contains("punctual job create"), "{log}");
    assert_eq!(server.http().get("/healthz").status, 200);
    assert_eq!(server.stop().code(), Some(0));

    let mut again = Server::start_in(&folder, &[]);
    assert!(!again.log().contains("punctual job create"), "said once");
    again.signal(Signal::SIGINT);
    assert_eq!(again.wait().code(), Some(0));
}

#[test]
fn a_port_in_use_is_refused() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let own = TempDir::new().unwrap();
    let folder = own.path().join("data");
    let output = punctual(&format!(
        "serve --listen {address} --data {}",
        folder.display()
    ));
    is_refused(&output, &[&address, "in use"]);
    assert!(!folder.exists(), "nothing was touched");
}

#[test]
fn a_folder_that_cannot_be_made_is_refused() {
    let own = TempDir::new().unwrap();
    let file = own.path().join("a-file");
    fs::write(&file, "").unwrap();
    is_refused(&serve(&file.join("below")), &["a-file/below"]);
    is_refused(&serve(&file), &["a-file"]);
    // Nobody can make a folder there, not even root.
    is_refused(&serve(Path::new("/proc/punctual")), &["/proc/punctual"]);
}

#[test]
fn other_machines_are_let_in_only_with_keys() {
    let own = TempDir::new().unwrap();
    let output = punctual(&format!(
        "serve --insecure-no-auth --listen 0.0.0.0:0 --data {}",
        own.path().display()
    ));
    is_refused(&output, &["0.0.0.0:0", "--insecure-no-auth"]);
}

#[test]
fn a_part_that_nobody_could_do_is_not_left_out() {
    let own = TempDir::new().unwrap();
    let folder = own.path().join("data");
    let with = |more: &str| {
        let start = format!("serve --listen 127.0.0.1:0 --data {}", folder.display());
        punctual(&format!("{start} {more}"))
    };
    is_refused(
        &with("--parts api,execute"),
        &["api,execute", "no other node", "--store postgres://"],
    );
    is_refused(
        &with("--parts api,clock"),
        &["--parts", "'clock'", "schedule"],
    );
    is_refused(&with("--parts ''"), &["--parts", "no part is named"]);
    assert!(!folder.exists(), "nothing was touched");
}

#[test]
fn a_second_server_on_the_same_folder_is_refused() {
    let server = Server::start();
    is_refused(
        &serve(server.folder()),
        &[server.folder().to_str().unwrap()],
    );
    assert_eq!(
        server.http().get("/healthz").status,
        200,
        "the first goes on"
    );
    assert_eq!(server.stop().code(), Some(0));
}

#[test]
fn a_killed_server_lets_go_of_its_folder_and_loses_nothing() {
    let own = TempDir::new().unwrap();
    let server = Server::start_in(own.path(), &[]);
    server.printed("job create --key kept --cron @daily --url http://127.0.0.1:9/");
    server.kill();
    let server = Server::start_in(own.path(), &[]);
    assert_eq!(server.http().get("/v1/jobs/by-key/kept").status, 200);
}

#[test]
fn data_that_is_not_ours_is_refused_and_left_as_it_is() {
    let own = TempDir::new().unwrap();
    let database = own.path().join("punctual.db");
    let garbage = "this is no database ".repeat(1_000);
    fs::write(&database, &garbage).unwrap();
    is_refused(&serve(own.path()), &[database.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(&database).unwrap(), garbage);
}

#[test]
fn work_under_way_finishes_before_the_end() {
    let receiver = Receiver::answering(|_| Answer::ok().after(Duration::from_secs(2)));
    let own = TempDir::new().unwrap();
    let server = Server::start_in(own.path(), &[]);
    let job = json!({ "schedule": { "in": "0s" }, "target": receiver.url("/slow") });
    let created = server.http().post("/v1/jobs", &job).json();
    wait_for("the delivery", || (receiver.count() == 1).then_some(()));
    assert_eq!(server.stop().code(), Some(0));

    let server = Server::start_in(own.path(), &[]);
    let runs = format!("/v1/jobs/{}/runs", created["id"].as_str().unwrap());
    let runs = server.http().get(&runs).json();
    assert_eq!(runs["items"][0]["state"], "succeeded", "{runs}");
    assert_eq!(receiver.count(), 1, "delivered once");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let receiver = Receiver::answering(|_| Answer::ok().after(Duration::from_secs(60)));
    let mut server = Server::start();
    let job = json!({ "schedule": { "in": "0s" }, "target": receiver.url("/never") });
    assert_eq!(server.http().post("/v1/jobs", &job).status, 201);
    wait_for("the delivery", || (receiver.count() == 1).then_some(()));
    server.signal(Signal::SIGTERM);
    wait_for("the first signal", || {
        server.log().contains("stopping").then_some(())
    });
    pause(Duration::from_millis(100));
    server.signal(Signal::SIGTERM);
    assert_eq!(server.wait().code(), Some(130));
}

#[test]
fn contradictions_are_warned_about() {
    let own = TempDir::new().unwrap();
    let server = Server::start_in(own.path(), &["--finished-keep", "90d"]);
    let log = server.log();
    assert!(log.contains("finished_keep is longer"), "{log}");
    assert_eq!(server.stop().code(), Some(0));
}
