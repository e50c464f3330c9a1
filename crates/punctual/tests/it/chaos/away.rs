//! A node that is ordered to stop while its database is gone.

use std::collections::BTreeSet;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use store::postgres::server::{Mode, PgServer, Stop};
use tempfile::TempDir;

use super::load::LoadJob;
use super::{create, rest};
use crate::support::{Answer, Receiver, Server, list, now, pause, skip, wait_for};

const GRACE: Duration = Duration::from_secs(3);
/// What the end may take beyond the grace; more than that and whoever started the node would kill it.
const MARGIN: Duration = Duration::from_secs(6);
/// Jobs are due over this time; the database goes in the middle of it.
const SPAN: i64 = 4_000;
const JOBS: i64 = 200;

/// Those that are called as the database goes have not been answered by then.
fn target() -> Receiver {
    Receiver::answering(|delivery| match delivery.header("punctual-attempt") {
        "1" => Answer::ok().after(Duration::from_millis(500)),
        _ => Answer::ok(),
    })
}

#[test]
fn a_stop_without_the_database_ends_in_time_and_loses_nothing() {
    let database = match PgServer::private(Mode::Durable) {
        Ok(database) => database,
        Err(why) => return skip(&why.to_string()),
    };
    let (folder, store) = (TempDir::new().unwrap(), database.address());
    let grace = format!("{}s", GRACE.as_secs());
    let arguments = ["--store", &store, "--grace", &grace];
    let mut server = Server::start_in(folder.path(), &arguments);
    let target = target();
    let from = now() + 3_000;
    let due = |number: i64| from + number * SPAN / JOBS;
    let mut jobs: Vec<LoadJob> = (0..JOBS).map(|number| LoadJob::once(due(number))).collect();
    create(&server.http(), &target, &mut jobs);
    pause(Duration::from_millis((from + SPAN / 2 - now()) as u64));

    database.stop(Stop::Fast).unwrap();
    let stopped_at = now();
    server.signal(Signal::SIGTERM);
    assert_eq!(server.wait().code(), Some(0));
    let took = Duration::from_millis((now() - stopped_at).unsigned_abs());
    let log = server.log();
    eprintln!("stopped within {took:?}\n{log}");
    assert!(took < GRACE + MARGIN, "{took:?}");
    let said = log
        .lines()
        .filter(|line| line.contains("stopped without the store"));
    assert_eq!(said.count(), 1, "{log}");
    let before = target.count();
    assert!((1..JOBS as usize).contains(&before), "{before} calls");

    database.start().unwrap();
    let server = Server::start_in(folder.path(), &arguments);
    wait_for("every job's call", || {
        let called: BTreeSet<String> = target
            .deliveries()
            .iter()
            .map(|delivery| delivery.header("punctual-job").to_owned())
            .collect();
        (called.len() == jobs.len()).then_some(())
    });
    assert_eq!(rest(&server.http()), None, "not everything came to rest");
    let runs = list(&server.http(), "/v1/runs?");
    let of = |job: &LoadJob| -> Vec<&Value> {
        let runs = runs.iter().filter(|run| run["job"] == job.id.as_str());
        runs.map(|run| &run["state"]).collect()
    };
    for job in &jobs {
        assert_eq!(of(job), ["succeeded"], "{job:?}");
    }
}
