//! A disk that is full, and one that has room again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::ledger::Ledger;
use super::process;
use super::world::{HEAD_START, Planned, create, history, now, pause, stop_all};
use crate::cli::fails;
use crate::support::{Http, Receiver, Reply, Server, punctual, skip, wait_for};

/// The log alone may take 16 MB before it is moved into the file.
const SIZE: &str = "size=48m";
const BALLAST: usize = 16 * 1024 * 1024;
const PAYLOAD: usize = 200 * 1024;
/// More than the disk can hold.
const JOBS_MAX: usize = 1_000;

/// A small disk of its own. Dropped, it is taken off.
pub struct Disk {
    folder: TempDir,
}

impl Disk {
    /// None, and a word about it, when we may not have one.
    pub fn mount(options: &str) -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(folder.path())
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self { folder }),
            Ok(output) => {
                let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                skip(&format!("a small disk cannot be mounted ({why})"));
                None
            }
            Err(error) => {
                skip(&format!("a small disk cannot be mounted ({error})"));
                None
            }
        }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _gone = Command::new("umount")
            .arg("--lazy")
            .arg(self.folder.path())
            .output();
    }
}

/// A job that takes up room and is not due for long.
fn bulky(url: &str) -> Value {
    json!({ "schedule": { "in": "30d" }, "target": url, "payload": "x".repeat(PAYLOAD) })
}

/// Makes jobs until one is refused: the ids of those that were acknowledged, and the refusal.
fn fill(http: &Http, url: &str) -> (Vec<String>, Reply) {
    let mut made = Vec::new();
    for _ in 0..JOBS_MAX {
        let reply = http.post("/v1/jobs", &bulky(url));
        if reply.status != 201 {
            return (made, reply);
        }
        made.push(reply.json()["id"].as_str().unwrap().to_owned());
    }
    panic!("the disk was never full");
}

#[track_caller]
fn all_are_there(http: &Http, jobs: &[String]) {
    for job in jobs {
        let found = http.get(&format!("/v1/jobs/{job}"));
        assert_eq!(found.status, 200, "{job} is gone");
        let payload = found.json()["payload"].as_str().unwrap().len();
        assert_eq!(payload, PAYLOAD, "{job}");
    }
}

/// What a full disk does not touch.
#[track_caller]
fn reads_answer(http: &Http, made: &[String]) {
    for path in [
        "/healthz",
        "/v1/jobs?limit=1",
        "/v1/runs?limit=1",
        "/metrics",
        "/version",
    ] {
        assert_eq!(http.get(path).status, 200, "{path}");
    }
    all_are_there(http, &made[made.len() - 3..]);
}

#[test]
fn a_full_disk_is_said_clearly_and_room_is_used_again_at_once() {
    let Some(disk) = Disk::mount(SIZE) else {
        return;
    };
    let ballast: PathBuf = disk.path().join("ballast");
    fs::write(&ballast, vec![1; BALLAST]).unwrap();
    let receiver = Receiver::start();
    let url = receiver.url("/");
    let folder = disk.path().join("data");
    let server = Server::start_in(&folder, &[]);
    let http = server.http();
    let start = now() + HEAD_START.as_millis() as i64;
    let mut recurring: Vec<Planned> = (0..5)
        .map(|n| Planned::every_second(start + n * 200, &url))
        .collect();
    create(&http, &mut recurring);
    wait_for("deliveries", || (receiver.count() > 10).then_some(()));

    let (mut made, refusal) = fill(&http, &url);
    eprintln!("full after {} jobs", made.len());
    assert_eq!(refusal.status, 507);
    assert_eq!(refusal.json()["type"], "/problems/storage-full");
    for _ in 0..5 {
        // It may be full for long, and is queried all the while.
        assert!(process::busy(&server, Duration::from_secs(1)) < 0.5);
        assert_eq!(http.post("/v1/jobs", &bulky(&url)).status, 507);
        reads_answer(&http, &made);
    }

    fs::remove_file(&ballast).unwrap();
    let freed = now();
    let id = wait_for("room", || {
        let reply = http.post("/v1/jobs", &bulky(&url));
        (reply.status == 201).then(|| reply.json()["id"].as_str().unwrap().to_owned())
    });
    eprintln!("takes jobs again after {} ms", now() - freed);
    made.push(id);
    pause(Duration::from_secs(2));
    stop_all(&http, &receiver, &mut recurring, 0);
    let history = history(&http);
    let figures = Ledger::new(&recurring, &history, receiver.deliveries()).check();
    eprintln!("{figures:?}");
    all_are_there(&http, &made);
    let log = server.log();
    assert!(!log.contains("panic"), "{log}");
    assert!(log.lines().count() < 200, "it went on about it: {log}");
    assert_eq!(server.stop().code(), Some(0));

    let server = Server::start_in(&folder, &[]);
    all_are_there(&server.http(), &made);
}

#[test]
fn a_server_killed_on_a_full_disk_starts_again_when_there_is_room() {
    let Some(disk) = Disk::mount(SIZE) else {
        return;
    };
    let ballast = disk.path().join("ballast");
    fs::write(&ballast, vec![1; BALLAST]).unwrap();
    let folder = disk.path().join("data");
    let server = Server::start_in(&folder, &[]);
    let (made, refusal) = fill(&server.http(), "http://127.0.0.1:9/");
    assert_eq!(refusal.status, 507);
    server.kill();
    let start = format!("serve --listen 127.0.0.1:0 --data {}", folder.display());
    fails(&punctual(&start), 2, &[folder.to_str().unwrap(), "full"]);

    fs::remove_file(&ballast).unwrap();
    let server = Server::start_in(&folder, &[]);
    all_are_there(&server.http(), &made);
    let reply = server
        .http()
        .post("/v1/jobs", &bulky("http://127.0.0.1:9/"));
    assert_eq!(reply.status, 201);
}
