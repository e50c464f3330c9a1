//! Three real nodes over a real database, and everything that can happen to them while jobs fire.
//!
//! `database` (with its standby), `proxy` (the links between) and `fleet` (the nodes) are what things happen to;
//! `faults` is what happens. `load` has the jobs and their target, `client` makes more all along. What was seen
//! becomes a `recording`, and the `checker` says what is wrong with it.
//!
//! `make chaos` runs it for as long as one wants. From the environment: `CHAOS_SECONDS`, `CHAOS_SEED`,
//! `CHAOS_RATE` (slots a second), `CHAOS_PARTS` (what each node is there for, `api,schedule/execute/api,execute`),
//! `CHAOS_BINARY` (another build of the nodes), `CHAOS_KEEP` (write the record down although nothing is wrong).

mod away;
mod checker;
mod client;
mod database;
mod far;
mod faults;
mod fleet;
mod load;
mod proxy;
mod recording;

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use model::Shard;
use serde_json::{Value, json};

use checker::Findings;
use client::{Client, Made};
use database::Database;
use faults::{Faults, Strike};
use fleet::{Fleet, NODES};
use load::{LoadJob, ONE_OFF_SHARE};
use recording::{Arrival, Recording};

use crate::support::{BINARY, Http, Receiver, now, pause, skip};

/// The short form: every fault once.
const SECONDS: u64 = 165;
const RATE: f64 = 300.0;
/// Jobs are made this long before their first slot.
const HEAD_START: i64 = 8_000;
/// What the fleet may take to come to rest after the last slot.
const REST_MAX: Duration = Duration::from_secs(60);
const CLIENTS: u64 = 2;

fn setting<T: FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    let value = text.parse().ok();
    assert!(value.is_some(), "{name}={text} cannot be read");
    value
}

#[test]
fn three_nodes_keep_every_promise_whatever_happens_to_them() {
    let seed: u64 = setting("CHAOS_SEED").unwrap_or_else(rand::random);
    let seconds = setting("CHAOS_SECONDS").unwrap_or(SECONDS);
    let rate = setting("CHAOS_RATE").unwrap_or(RATE);
    let binary: PathBuf = setting("CHAOS_BINARY").unwrap_or_else(|| PathBuf::from(BINARY));
    eprintln!("CHAOS_SEED={seed} CHAOS_SECONDS={seconds} CHAOS_RATE={rate}");
    let mut database = match Database::start() {
        Ok(database) => database,
        Err(why) => return skip(&why),
    };
    let mut fleet = Fleet::start(&binary, &database, setting("CHAOS_PARTS"));
    let story = Story::happen(&mut fleet, &mut database, seed, seconds, rate);
    let unended = rest(&fleet.http());
    let whole = is_whole(&fleet.http());

    let (recording, history) = story.recorded(&fleet.http());
    let mut findings = checker::check(&recording);
    findings.figures.extend(story.figures());
    eprintln!("{}", findings.figures.join("\n"));
    if !findings.violations.is_empty() || setting::<u8>("CHAOS_KEEP").is_some() {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("chaos-{seed}"));
        write_down(&folder, &findings, &recording, &history, &fleet, &database);
        eprintln!("the record is in {}", folder.display());
    }
    assert!(
        findings.violations.is_empty(),
        "{:?}\n{}",
        findings.kinds(),
        findings.shown().join("\n")
    );
    assert_eq!(unended, None, "not everything came to rest");
    assert_eq!(whole, Ok(()), "the fleet is not whole again");
    assert_eq!(story.given_up, 0, "jobs were taken by no node");
}

/// What happened.
struct Story {
    jobs: Vec<LoadJob>,
    arrivals: &'static Mutex<Vec<Arrival>>,
    strikes: Vec<Strike>,
    refusals: Vec<String>,
    given_up: usize,
}

impl Story {
    fn happen(
        fleet: &mut Fleet,
        database: &mut Database,
        seed: u64,
        seconds: u64,
        rate: f64,
    ) -> Self {
        let (target, arrivals) = load::target();
        let from = now() + HEAD_START;
        let until = from + 1_000 * seconds as i64;
        let mut jobs = load::recurring(rate, from, until, seed);
        create(&fleet.http(), &target, &mut jobs);
        assert!(now() < from, "the jobs were made too late");
        let stop = AtomicBool::new(false);
        let client = |number: u64| Client {
            addresses: fleet.addresses(),
            target: &target,
            stop: &stop,
            seed: seed ^ number,
            rate: rate * ONE_OFF_SHARE / CLIENTS as f64,
            until,
        };
        let clients: Vec<Client<'_>> = (0..CLIENTS).map(client).collect();
        let (strikes, made) = thread::scope(|scope| {
            let clients: Vec<_> = clients
                .iter()
                .map(|client| scope.spawn(|| client.make_jobs()))
                .collect();
            pause(Duration::from_millis((from - now()).max(0) as u64));
            let faults = Faults {
                fleet,
                database,
                seed,
                seconds,
                until,
            };
            let strikes = faults.strike_all();
            pause(Duration::from_millis((until - now()).max(0) as u64));
            stop.store(true, Ordering::Relaxed);
            let made = clients.into_iter().map(|client| client.join().unwrap());
            (strikes, made.collect::<Vec<Made>>())
        });
        let mut story = Self {
            jobs,
            arrivals,
            strikes,
            refusals: Vec::new(),
            given_up: 0,
        };
        for made in made {
            story.jobs.extend(made.jobs);
            story.given_up += made.given_up;
            let refusals = made.refusals.iter();
            let refusals = refusals.map(|(said, count)| format!("{count} × {said}"));
            story.refusals.extend(refusals);
        }
        story
    }

    fn recorded(&self, http: &Http) -> (Recording, Vec<Value>) {
        let arrivals = self.arrivals.lock().unwrap().clone();
        Recording::read(http, self.jobs.clone(), arrivals, self.strikes.clone())
    }

    fn figures(&self) -> Vec<String> {
        vec![format!(
            "clients were refused: {}",
            self.refusals.join(", ")
        )]
    }
}

/// Makes all of them in one request.
fn create(http: &Http, target: &Receiver, jobs: &mut [LoadJob]) {
    let lines: Vec<String> = jobs
        .iter()
        .map(|job| job.body(target).to_string())
        .collect();
    let ndjson = [("content-type", "application/x-ndjson")];
    let body = lines.join("\n");
    let reply = http.send("POST", "/v1/jobs/batch", &ndjson, body.as_bytes());
    let answers = String::from_utf8(reply.body).unwrap();
    assert_eq!(answers.lines().count(), jobs.len(), "{answers}");
    for (job, line) in jobs.iter_mut().zip(answers.lines()) {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["status"], 201, "{line}");
        job.acknowledge(line["id"].as_str().unwrap());
    }
}

/// Waits until every job is finished and every run has ended; else what still moves.
fn rest(http: &Http) -> Option<Value> {
    let begun = now();
    loop {
        let runs = http
            .get("/v1/runs?state=ready,running,retrying&limit=5")
            .json();
        let jobs = http.get("/v1/jobs?state=active&limit=5").json();
        if runs["items"] == json!([]) && jobs["items"] == json!([]) {
            return None;
        }
        if now() - begun > REST_MAX.as_millis() as i64 {
            return Some(json!({ "runs": runs["items"], "jobs": jobs["items"] }));
        }
        pause(Duration::from_millis(200));
    }
}

/// Whether every node is there again, and every shard with one of them.
fn is_whole(http: &Http) -> Result<(), Value> {
    let mut nodes = Value::Null;
    for _ in 0..100 {
        nodes = http.get("/v1/nodes").json();
        let items = nodes["items"].as_array().into_iter().flatten();
        let shards: Vec<u64> = items.filter_map(|node| node["shards"].as_u64()).collect();
        if shards.len() == NODES && shards.iter().sum::<u64>() == Shard::COUNT as u64 {
            return Ok(());
        }
        pause(Duration::from_millis(100));
    }
    Err(nodes)
}

/// Everything that may help to understand what is wrong.
fn write_down(
    folder: &Path,
    findings: &Findings,
    recording: &Recording,
    history: &[Value],
    fleet: &Fleet,
    database: &Database,
) {
    let _none_before = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).unwrap();
    let write = |name: &str, lines: Vec<String>| {
        fs::write(folder.join(name), lines.join("\n")).unwrap();
    };
    let violations = findings.violations.iter().map(ToString::to_string);
    write("violations", violations.collect());
    write("figures", findings.figures.clone());
    let strikes = recording.strikes.iter();
    write("strikes", strikes.map(|it| format!("{it:?}")).collect());
    let jobs = recording.jobs.iter();
    write("jobs", jobs.map(|it| format!("{it:?}")).collect());
    let arrivals = recording.arrivals.iter();
    write("arrivals", arrivals.map(|it| format!("{it:?}")).collect());
    write(
        "history.ndjson",
        history.iter().map(Value::to_string).collect(),
    );
    for (number, (name, log)) in fleet.logs().into_iter().enumerate() {
        write(&format!("{name}-{number}.log"), vec![log]);
    }
    let activity = "SELECT pid, application_name, state, wait_event_type, wait_event, query_start, query \
                    FROM pg_stat_activity WHERE datname IS NOT NULL";
    write("database", vec![database.query(activity)]);
}
