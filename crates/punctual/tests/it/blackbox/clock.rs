//! A wall clock that is stepped by an hour while the server runs. It is bent by libfaketime, which leaves the
//! clocks that only grow alone, as a step by hand or by NTP would.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use super::ledger::Ledger;
use super::process;
use super::world::{HEAD_START, Planned, create, history, now, pause, stop_all};
use crate::support::{Answer, Delivery, Receiver, Server, program, skip, wait_for};

const HOUR: i64 = 3_600_000;
/// How long the library may go by what it has read before, and a little more.
const NOTICED: Duration = Duration::from_millis(1_500);

/// A server whose clock can be stepped.
struct Bent {
    server: Server,
    receiver: Receiver,
    folder: TempDir,
    /// Since when, by our clock, the server's is how far ahead; in milliseconds.
    steps: Vec<(i64, i64)>,
}

fn library() -> Option<PathBuf> {
    program("faketime")?;
    let folders = fs::read_dir("/usr/lib").unwrap().map_while(Result::ok);
    let found = folders
        .map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"))
        .find(|path| path.is_file());
    if found.is_none() {
        skip("libfaketimeMT.so.1 is not where faketime puts it");
    }
    found
}

fn set_clock(folder: &Path, ahead: i64) {
    let (file, draft) = (folder.join("clock"), folder.join("clock.new"));
    fs::write(&draft, format!("{:+}\n", ahead / 1_000)).unwrap();
    fs::rename(draft, file).unwrap();
}

impl Bent {
    fn start() -> Option<Self> {
        let library = library()?;
        let folder = TempDir::new().unwrap();
        set_clock(folder.path(), 0);
        let preload = format!("LD_PRELOAD={}", library.display());
        let file = format!(
            "FAKETIME_TIMESTAMP_FILE={}",
            folder.path().join("clock").display()
        );
        let before = [
            &*preload,
            &*file,
            "FAKETIME_CACHE_DURATION=1",
            "FAKETIME_DONT_FAKE_MONOTONIC=1",
        ];
        let server = Server::start_under(
            Path::new("/usr/bin/env"),
            &before,
            &folder.path().join("data"),
            &[],
        );
        // A first attempt at this path fails; the others succeed.
        let receiver = Receiver::answering(|delivery| {
            let fails = delivery.path == "/flaky" && delivery.header("punctual-attempt") == "1";
            Answer::status(if fails { 500 } else { 200 })
        });
        Some(Self {
            server,
            receiver,
            folder,
            steps: vec![(i64::MIN, 0)],
        })
    }

    /// The server's clock from now on, against ours.
    fn step(&mut self, ahead: i64) {
        set_clock(self.folder.path(), ahead);
        self.steps.push((now(), ahead));
        pause(NOTICED);
    }

    /// How far ahead the server's clock may have been when something arrived.
    fn ahead(&self, at: i64) -> i64 {
        let in_force = |at: i64| {
            self.steps
                .iter()
                .rfind(|(since, _)| *since <= at)
                .unwrap()
                .1
        };
        in_force(at).max(in_force(at - NOTICED.as_millis() as i64))
    }

    /// Arrivals at a path.
    fn arrived(&self, path: &str) -> Vec<Delivery> {
        let mut found = self.receiver.deliveries();
        found.retain(|delivery| delivery.path == path);
        found
    }

    #[track_caller]
    fn wait_for_arrivals(&self, path: &str, count: usize) {
        wait_for(path, || (self.arrived(path).len() >= count).then_some(()));
    }

    /// Few seconds of a busy loop would show.
    #[track_caller]
    fn is_calm(&self) {
        let share = process::busy(&self.server, Duration::from_secs(3));
        eprintln!("busy for {:.0} % of the time", share * 100.0);
        assert!(share < 0.5, "busy for {share} of the time");
        let health = self.server.http().get("/healthz");
        assert_eq!(health.status, 200, "{:?}", health.json());
    }

    #[track_caller]
    fn balance(&self, planned: &[Planned]) {
        let history = history(&self.server.http());
        let clock = |micros: i64| micros + self.ahead(micros / 1_000) * 1_000;
        let figures = Ledger::new(planned, &history, self.receiver.deliveries())
            .with_clock(&clock)
            .check();
        eprintln!("{figures:?}");
        assert_eq!(figures.repeats, 1, "only the flaky one came twice");
    }
}

/// Recurring jobs of one policy at a path of their own.
fn recurring(bent: &Bent, start: i64, policy: &str) -> Vec<Planned> {
    let url = bent.receiver.url(&format!("/{policy}"));
    let job = |n: i64| Planned::every_second(start + n * 90, &url);
    (0..7)
        .map(|n| job(n).with("catch_up", json!({ "policy": policy })))
        .collect()
}

fn flaky(bent: &Bent, at: i64, delay: &str) -> Planned {
    let retry = json!({ "attempts_max": 3, "delay_first": delay, "delay_max": delay, "jitter": 0 });
    Planned::one_off(at, &bent.receiver.url("/flaky")).with("retry", retry)
}

#[test]
fn a_clock_that_jumps_an_hour_ahead_loses_and_repeats_nothing() {
    let Some(mut bent) = Bent::start() else {
        return;
    };
    let start = now() + HEAD_START.as_millis() as i64;
    let mut jobs: Vec<Planned> = ["all", "latest", "none"]
        .iter()
        .flat_map(|policy| recurring(&bent, start, policy))
        .collect();
    // One in the hour that will be skipped, one soon after it.
    let at = |path, moment| Planned::one_off(moment, &bent.receiver.url(path));
    let mut one_offs = vec![
        at("/within", start + HOUR / 2),
        at("/after", start + HOUR + 15_000),
        flaky(&bent, start + 1_000, "20m"),
    ];
    create(&bent.server.http(), &mut jobs);
    create(&bent.server.http(), &mut one_offs);
    bent.wait_for_arrivals("/none", 21);
    bent.wait_for_arrivals("/flaky", 1);

    bent.step(HOUR);
    bent.wait_for_arrivals("/within", 1);
    bent.wait_for_arrivals("/flaky", 2);
    // Of the hour that passed at once, each job's latest hundred seconds are made up for.
    bent.wait_for_arrivals("/all", 7 * 110);
    bent.wait_for_arrivals("/after", 1);
    bent.is_calm();

    stop_all(&bent.server.http(), &bent.receiver, &mut jobs, HOUR);
    bent.balance(&[jobs, one_offs].concat());
    assert_eq!(bent.server.stop().code(), Some(0));
}

#[test]
fn a_clock_that_jumps_an_hour_back_repeats_nothing_and_goes_on_when_it_returns() {
    let Some(mut bent) = Bent::start() else {
        return;
    };
    let http = bent.server.http();
    let start = now() + HEAD_START.as_millis() as i64;
    let mut jobs = recurring(&bent, start, "all");
    let mut one_offs = vec![
        Planned::one_off(start + 18_000, &bent.receiver.url("/later")),
        flaky(&bent, start + 1_000, "60s"),
    ];
    create(&http, &mut jobs);
    create(&http, &mut one_offs);
    bent.wait_for_arrivals("/all", 7 * 3);
    bent.wait_for_arrivals("/flaky", 1);

    bent.step(-HOUR);
    let before = bent.arrived("/all").len();
    // A retry that would have to wait for an hour longer than its policy allows is due now.
    bent.wait_for_arrivals("/flaky", 2);
    let soon = json!({ "schedule": { "in": "2s" }, "target": bent.receiver.url("/soon") });
    let created = http.post("/v1/jobs", &soon).json();
    let slot = super::world::moment(&created["next_slot"]);
    assert!((now() - HOUR - slot).abs() < 30_000, "in the new time");
    one_offs.push(Planned::one_off(slot, "").named(created["id"].as_str().unwrap()));
    bent.wait_for_arrivals("/soon", 1);
    bent.is_calm();
    let after = bent.arrived("/all").len();
    assert_eq!(before, after, "slots wait for the clock");

    bent.step(0);
    bent.wait_for_arrivals("/all", after + 7 * 3);
    bent.wait_for_arrivals("/later", 1);
    stop_all(&http, &bent.receiver, &mut jobs, 0);
    bent.balance(&[jobs, one_offs].concat());
    assert_eq!(bent.server.stop().code(), Some(0));
}
