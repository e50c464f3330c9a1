//! A real node and its database: hosts that do not answer, one that is away at the start, and clients that give up.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use store::postgres::server::{Mode, PgServer, Stop};
use tempfile::TempDir;

use crate::cli::fails;
use crate::support::{BINARY, Receiver, Server, now, pause, punctual, skip, wait_for};

fn private() -> Option<PgServer> {
    PgServer::private(Mode::Fast)
        .map_err(|why| skip(&why.to_string()))
        .ok()
}

/// Takes everyone in and says nothing, as a server does that hangs.
fn silent() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut held = Vec::new();
        held.extend(listener.incoming());
    });
    port
}

#[test]
fn a_node_is_ready_although_the_first_host_hangs() {
    let Some(database) = private() else { return };
    let folder = TempDir::new().unwrap();
    let store = format!(
        "postgres://postgres@127.0.0.1:{},127.0.0.1:{}/postgres?sslmode=disable&target_session_attrs=read-write",
        silent(),
        database.port()
    );
    let begun = now();
    let server = Server::start_in(folder.path(), &["--store", &store]);
    server.is_ready();
    assert!(now() - begun < 10_000, "{} ms", now() - begun);
    pause(Duration::from_secs(4));
    assert_eq!(server.http().get("/readyz").status, 200, "and stays so");
    assert_eq!(server.stop().code(), Some(0));
}

#[test]
fn a_database_that_is_away_at_the_start_is_waited_for() {
    let Some(database) = private() else { return };
    let (folder, store) = (TempDir::new().unwrap(), database.address());
    database.stop(Stop::Fast).unwrap();
    let server = thread::scope(|scope| {
        scope.spawn(|| {
            pause(Duration::from_secs(3));
            database.start().unwrap();
        });
        Server::start_in(folder.path(), &["--store", &store])
    });
    let log = server.log();
    for part in [
        "waiting for the database",
        "refused",
        "the database answers",
    ] {
        assert!(log.contains(part), "{log}");
    }
    let lines = log.lines().filter(|line| line.contains("waiting for"));
    assert_eq!(lines.count(), 1, "{log}");
    assert_eq!(server.stop().code(), Some(0));
}

/// A node that does not get as far as to be ready.
fn unready(folder: &TempDir, store: &str) -> Child {
    Command::new(BINARY)
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--store",
            store,
            "--data",
        ])
        .arg(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_node_that_waits_for_its_database_can_be_stopped() {
    let folder = TempDir::new().unwrap();
    let mut child = unready(&folder, "postgres://postgres@127.0.0.1:1/postgres");
    pause(Duration::from_secs(2));
    assert!(child.try_wait().unwrap().is_none(), "it waits");
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    kill(pid, Signal::SIGTERM).unwrap();
    let ended = wait_for("its end", || child.try_wait().unwrap());
    assert_eq!(ended.code(), Some(0));
}

#[test]
fn what_will_not_pass_by_itself_ends_a_node_at_once() {
    let Some(database) = private() else { return };
    let folder = TempDir::new().unwrap();
    let make = "CREATE ROLE ann LOGIN SUPERUSER PASSWORD 's3cret'";
    database.query(make).unwrap();
    let rules = "host all ann all scram-sha-256\nhost all all all trust\n";
    std::fs::write(database.folder().join("pg_hba.conf"), rules).unwrap();
    database.query("SELECT pg_reload_conf()").unwrap();
    pause(Duration::from_millis(300));
    let at = format!("127.0.0.1:{}", database.port());
    for (store, says) in [
        (format!("postgres://ann:wrong@{at}/postgres"), "password"),
        (format!("postgres://ann@{at}/postgres"), "password"),
        (format!("postgres://postgres@{at}/nowhere"), "nowhere"),
        (
            format!("postgres://postgres@{at}/postgres?sslmode=require"),
            "TLS",
        ),
        (
            format!("postgres://postgres@{at}/postgres?sslrootcert=/nonexistent.pem"),
            "/nonexistent.pem",
        ),
    ] {
        let begun = now();
        let line = format!(
            "serve --listen 127.0.0.1:0 --data '{}' --store '{store}'",
            folder.path().display()
        );
        fails(&punctual(&line), 2, &[says]);
        assert!(now() - begun < 10_000, "{store} took {} ms", now() - begun);
    }
    // The password is a setting like any other.
    let file = folder.path().join("punctual.toml");
    let settings =
        format!("store = \"postgres://ann@{at}/postgres\"\nstore_password = \"s3cret\"\n");
    std::fs::write(&file, settings).unwrap();
    let server = Server::start_in(folder.path(), &["--config", file.to_str().unwrap()]);
    assert_eq!(server.http().get("/v1/jobs").status, 200);
    assert!(!server.log().contains("s3cret"), "{}", server.log());
}

/// Sends a request, and is gone before there is an answer.
fn gives_up(address: &str) {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = "GET /v1/jobs?label=team:a HTTP/1.1\r\nhost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let patience = Some(Duration::from_millis(100));
    stream.set_read_timeout(patience).unwrap();
    let answered = stream.read(&mut [0; 1]);
    assert!(answered.is_err(), "it was to wait");
}

#[test]
fn clients_that_request_too_much_or_give_up_delay_no_slot() {
    let Some(database) = private() else { return };
    let folder = TempDir::new().unwrap();
    let server = Server::start_in(folder.path(), &["--store", &database.address()]);
    let receiver = Receiver::start();
    let every = json!({ "schedule": { "every": "1s" }, "target": receiver.url("/every") });
    assert_eq!(server.http().post("/v1/jobs", &every).status, 201);
    wait_for("the first", || (receiver.count() > 1).then_some(()));

    let hold =
        "BEGIN; LOCK TABLE punctual.labels IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(14); ROLLBACK";
    let (mut from, mut begun) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| database.query(hold).unwrap());
        let held = "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted \
                    AND relation = 'punctual.labels'::regclass";
        wait_for("the lock", || {
            (database.query(held).unwrap().as_str() == "1").then_some(())
        });
        (from, begun) = (receiver.count(), now());
        for _ in 0..12 {
            scope.spawn(|| {
                let reply = server.http().get("/v1/jobs?label=team:a");
                assert_eq!(reply.status, 503);
                let problem = reply.json();
                assert_eq!(problem["type"], "/problems/timed-out", "{problem}");
                assert!(!problem["detail"].to_string().contains("written"));
                assert!(reply.header("retry-after").is_some());
            });
        }
        for _ in 0..40 {
            gives_up(&server.address);
        }
    });
    let seconds = usize::try_from((now() - begun) / 1_000).unwrap();
    assert!(seconds >= 4, "{seconds}");
    let fired = receiver.count() - from;
    assert!(fired >= seconds - 1, "{fired} slots in {seconds} s");
    let times: Vec<i64> = receiver
        .deliveries()
        .iter()
        .map(|it| it.at_micros)
        .collect();
    let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
    let longest = gaps.max().unwrap();
    assert!(longest < 2_000_000, "{longest} µs without one");
    let reply = server.http().get("/v1/jobs?label=team:a");
    assert_eq!(reply.status, 200);
}
