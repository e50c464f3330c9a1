//! `kill -9`, at any moment.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use tempfile::TempDir;

use super::ledger::{Entry, Ledger};
use super::world::{HEAD_START, Planned, create, history, moment, now, pause, stop_all};
use crate::support::{Answer, Http, Receiver, Server, seed, wait_for};

const ONE_OFFS: usize = 2_000;
const RECURRING: usize = 200;
/// How long there is something to do.
const SPAN: i64 = 20_000;
const KILLS: usize = 3;

/// Jobs that a client makes while the server is being killed: it believes in those that were acknowledged.
struct Client<'a> {
    address: &'a Mutex<String>,
    stop: &'a AtomicBool,
    url: String,
}

impl Client<'_> {
    fn make_jobs(&self) -> Vec<Planned> {
        let mut made = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            let http = Http::new(&self.address.lock().unwrap());
            let job = json!({ "schedule": { "in": "1s" }, "target": self.url });
            if let Some(reply) = http.try_post("/v1/jobs", &job)
                && reply.status == 201
            {
                let created = reply.json();
                let job = Planned::one_off(moment(&created["next_slot"]), &self.url);
                made.push(job.named(created["id"].as_str().unwrap()));
            }
            pause(Duration::from_millis(40));
        }
        made
    }
}

/// Moments within the span, far enough apart for a start in between.
fn moments(seed: u64) -> Vec<i64> {
    let mut random = StdRng::seed_from_u64(seed);
    let part = SPAN / KILLS as i64;
    (0..KILLS as i64)
        .map(|n| n * part + random.random_range(500..part))
        .collect()
}

/// Jobs of a client that got no answer are jobs all the same; their slots are what history says.
fn unacknowledged(planned: &[Planned], history: &[Entry], url: &str) -> Vec<Planned> {
    let known = |entry: &&Entry| planned.iter().all(|job| job.id != entry.job);
    let jobs = history.iter().filter(known);
    jobs.map(|entry| Planned::one_off(entry.slot.unwrap(), url).named(&entry.job))
        .collect()
}

/// Whoever starts a run by hand finds what came of it under their own trace, whatever happens before its first attempt.
#[test]
fn the_trace_of_a_run_by_hand_survives_kill_9() {
    let requested = AtomicBool::new(false);
    // The first attempt hangs, and what was started behind it waits.
    let receiver = Receiver::answering(move |_| {
        let is_first = !requested.swap(true, Ordering::Relaxed);
        Answer::ok().after(Duration::from_secs(if is_first { 20 } else { 0 }))
    });
    let folder = TempDir::new().unwrap();
    let server = Server::start_in(folder.path(), &[]);
    let http = server.http();
    let job = json!({
        "key": "a", "schedule": { "in": "1h" }, "target": receiver.url("/"), "overlap": "queue_one",
        "retry": { "delay_first": "100ms" },
    });
    assert_eq!(http.post("/v1/jobs", &job).status, 201);
    let start = |trace| {
        let headers = [("traceparent", trace)];
        let reply = http.send("POST", "/v1/jobs/key:a/run", &headers, b"");
        assert_eq!(
            reply.status,
            201,
            "{:?}",
            String::from_utf8_lossy(&reply.body)
        );
        reply.json()["id"].as_str().unwrap().to_owned()
    };
    let theirs = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let first = start("00-nonsense");
    wait_for("the first attempt", || {
        (receiver.count() == 1).then_some(())
    });
    let second = start(theirs);
    server.kill();
    let server = Server::start_in(folder.path(), &[]);
    wait_for("both runs", || (receiver.count() == 3).then_some(()));
    let own = format!("00-{}-", first.strip_prefix("run_").unwrap());
    for delivery in receiver.deliveries() {
        let (run, trace) = (
            delivery.header("punctual-run"),
            delivery.header("traceparent"),
        );
        if run == second {
            assert_eq!(trace, theirs);
        } else {
            assert!(run == first && trace.starts_with(&own), "{run} {trace}");
        }
    }
    assert_eq!(server.stop().code(), Some(0));
}

#[test]
fn nothing_is_lost_or_doubled_by_kill_9() {
    let seed = seed();
    let moments = moments(seed);
    eprintln!("killed after {moments:?} ms");
    // Slow enough for every kill to meet deliveries under way.
    let receiver = Receiver::answering(|delivery| {
        let slow = delivery.at_micros % 300_000;
        Answer::ok().after(Duration::from_micros(slow as u64))
    });
    let folder = TempDir::new().unwrap();
    let mut server = Server::start_in(folder.path(), &[]);
    let url = receiver.url("/");
    let start = now() + HEAD_START.as_millis() as i64;
    let mut one_offs: Vec<Planned> = (0..ONE_OFFS as i64)
        .map(|n| Planned::one_off(start + n * SPAN / ONE_OFFS as i64, &url))
        .collect();
    let mut recurring: Vec<Planned> = (0..RECURRING as i64)
        .map(|n| Planned::every_second(start + n * 5, &url))
        .collect();
    create(&server.http(), &mut recurring);
    create(&server.http(), &mut one_offs);

    let (address, stop) = (Mutex::new(server.address.clone()), AtomicBool::new(false));
    let client = Client {
        address: &address,
        stop: &stop,
        url: url.clone(),
    };
    let (made, server) = thread::scope(|scope| {
        let made = scope.spawn(|| client.make_jobs());
        for moment in &moments {
            pause(Duration::from_millis((start + moment - now()).max(0) as u64));
            server.kill();
            server = Server::start_in(folder.path(), &[]);
            address.lock().unwrap().clone_from(&server.address);
        }
        pause(Duration::from_millis((start + SPAN - now()).max(0) as u64));
        stop.store(true, Ordering::Relaxed);
        (made.join().unwrap(), server)
    });
    stop_all(&server.http(), &receiver, &mut recurring, 0);

    let acknowledged = made.len();
    let mut planned = [recurring, one_offs, made].concat();
    let history = history(&server.http());
    planned.extend(unacknowledged(&planned, &history, &url));
    let figures = Ledger::new(&planned, &history, receiver.deliveries()).check();
    eprintln!("{figures:?}, {acknowledged} jobs acknowledged between kills");
    assert!(acknowledged > 20, "{acknowledged}");
    assert!(figures.repeats > 0, "no kill met a delivery");
    assert_eq!(server.http().get("/healthz").status, 200);
}
