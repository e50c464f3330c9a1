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
use crate::support::{Answer, Http, Receiver, Server};

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

/// Jobs of a client that was not told of them are jobs all the same; their slots are what history says.
fn unacknowledged(planned: &[Planned], history: &[Entry], url: &str) -> Vec<Planned> {
    let known = |entry: &&Entry| planned.iter().all(|job| job.id != entry.job);
    let jobs = history.iter().filter(known);
    jobs.map(|entry| Planned::one_off(entry.slot.unwrap(), url).named(&entry.job))
        .collect()
}

#[test]
fn nothing_is_lost_or_doubled_by_kill_9() {
    let seed = rand::random();
    let moments = moments(seed);
    eprintln!("seed {seed}: killed after {moments:?} ms");
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
