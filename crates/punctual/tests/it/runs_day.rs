//! Runs a day on two nodes of one database: each counts its own, and knows of the other's a second later.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use store::postgres::server::{Mode, PgServer};
use tempfile::TempDir;

use crate::support::{Http, Receiver, Server, list, now, pause, skip, wait_within};

const DAY: i64 = 86_400_000;
/// Due every second, on both nodes.
const JOBS: usize = 30;
const LIMIT: usize = 50;
/// A fleet may go over by what its other nodes insert within a second; a busy machine is given two.
const SLACK: usize = 2 * JOBS;

fn not_at_midnight() {
    let left = DAY - now().rem_euclid(DAY);
    if left < 60_000 {
        // The count starts again at midnight UTC.
        pause(Duration::from_millis(left.unsigned_abs() + 1_000));
    }
}

#[track_caller]
fn bound(http: &Http) {
    let body = json!({"quotas": {"runs_day_max": LIMIT}}).to_string();
    let headers = [("content-type", "application/json")];
    let edited = http.send("PATCH", "/v1/tenants/default", &headers, body.as_bytes());
    assert_eq!(edited.status, 200, "{}", edited.json());
}

/// Half of them on each node.
fn create(http: &Http, beside: &Http, url: &str) {
    for n in 0..JOBS {
        let body = json!({"key": format!("job-{n}"), "schedule": {"every": "1s"}, "target": url, "overlap": "allow"});
        let to = if n % 2 == 0 { http } else { beside };
        assert_eq!(to.post("/v1/jobs", &body).status, 201);
    }
}

#[test]
fn two_nodes_together_insert_no_more_runs_a_day_than_a_tenant_may_have() {
    let database = match PgServer::private(Mode::Fast) {
        Ok(database) => database,
        Err(why) => return skip(&why.to_string()),
    };
    not_at_midnight();
    let (target, store) = (Receiver::start(), database.address());
    let folders = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let node = |name: &str, folder: &TempDir| {
        Server::start_in(folder.path(), &["--store", &store, "--node", name])
    };
    let (one, other) = (node("one", &folders[0]), node("other", &folders[1]));
    let (http, beside) = (one.http(), other.http());
    wait_within(60, "shards on both nodes", || {
        let nodes = http.get("/v1/nodes").json();
        let nodes = nodes["items"].as_array()?.clone();
        let holds = |node: &&Value| node["shards"].as_u64().is_some_and(|shards| shards > 0);
        (nodes.iter().filter(holds).count() == 2).then_some(())
    });
    bound(&http);
    // Nodes hear of a quota once a second.
    pause(Duration::from_secs(3));
    create(&http, &beside, &target.url("/"));
    let skipped = || {
        let entries = list(&beside, "/v1/runs?state=skipped&");
        entries
            .into_iter()
            .filter(|entry| entry["reason"] == "quota")
            .count()
    };
    wait_within(60, "slots beyond the quota", || {
        (skipped() >= 3 * JOBS).then_some(())
    });
    let runs = || {
        list(
            &http,
            "/v1/runs?state=ready,running,retrying,succeeded,dead&",
        )
    };
    let reached = runs();
    let count = reached.len();
    assert!((LIMIT..=LIMIT + SLACK).contains(&count), "{count} runs");
    let nodes: BTreeSet<&str> = reached
        .iter()
        .filter_map(|run| run["attempts"][0]["node"].as_str())
        .collect();
    assert_eq!(nodes, BTreeSet::from(["one", "other"]));
    // And it stays so, on both.
    let before = skipped();
    pause(Duration::from_secs(3));
    assert_eq!(runs().len(), count);
    assert!(skipped() > before);
    let used = wait_within(20, "what both have counted", || {
        let shown = beside.get("/v1/tenants/default").json();
        let used = usize::try_from(shown["used"]["runs_day"].as_u64()?).ok()?;
        (used >= count).then_some(used)
    });
    assert_eq!(used, count, "each run counts once");
    let refused = beside.post("/v1/jobs/key:job-0/run", &json!({}));
    assert_eq!(refused.status, 403, "{}", refused.json());
}
