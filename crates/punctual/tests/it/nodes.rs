//! Several real nodes over one database: how they see each other, what parts they take, how one leaves.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::Level;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use store::conformance::TestClock;
use store::postgres::server::{Mode, PgServer, Stop};
use store::sqlite::SqliteStore;
use store::{ClientStore, Raised};
use tempfile::TempDir;

use crate::cli::fails;
use crate::support::{Receiver, Server, punctual, skip, wait_for};

/// The database that tests share, if there can be one.
fn shared() -> Option<PgServer> {
    PgServer::shared()
        .map_err(|why| skip(&why.to_string()))
        .ok()
}

/// A node over the database at this address.
fn node(folder: &TempDir, store: &str, more: &[&str]) -> Server {
    let store = ["--store", store];
    Server::start_in(folder.path(), &[&store, more].concat())
}

fn nodes(server: &Server) -> Vec<Value> {
    let list = server.http().get("/v1/nodes").json();
    list["items"].as_array().unwrap().clone()
}

#[test]
fn nodes_over_one_database_see_each_other() {
    let Some(database) = shared() else { return };
    let (store, folder) = (database.fresh_schema(), TempDir::new().unwrap());
    let (one, other) = (node(&folder, &store, &[]), node(&folder, &store, &[]));
    let seen = wait_for("both with their shards", || {
        let seen = nodes(&one);
        let held = |node: &Value| node["shards"].as_u64().unwrap();
        let known = |node: &Value| !node["clock_offset"].is_null();
        let settled = seen.iter().all(|node| held(node) > 0 && known(node));
        let all: u64 = seen.iter().map(held).sum();
        (seen.len() == 2 && settled && all == 256).then_some(seen)
    });
    let port = |server: &Server| server.address.rsplit_once(':').unwrap().1.to_owned();
    let names: BTreeSet<String> = seen
        .iter()
        .map(|node| node["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names.len(), 2, "one machine, two names: {names:?}");
    for node in &seen {
        let is_self = node["name"].as_str().unwrap().ends_with(&port(&one));
        assert_eq!(node["self"], is_self, "{node}");
        let uncertainty = node["clock_uncertainty"].as_str().unwrap();
        let millis: f64 = uncertainty.trim_end_matches("ms").parse().unwrap();
        assert!((0.0..50.0).contains(&millis), "{node}");
    }
    let listed = other.printed("node list");
    let rows: Vec<&str> = listed.lines().skip(1).collect();
    assert_eq!(rows.len(), 2, "{listed}");
    for row in rows {
        let is_self = row
            .split_whitespace()
            .next()
            .unwrap()
            .ends_with(&port(&other));
        assert_eq!(row.ends_with('*'), is_self, "{listed}");
        assert!(row.contains(" ± "), "{listed}");
    }
    one.is_ready();
    other.is_ready();
}

#[test]
fn clock_and_hands_work_apart() {
    let Some(database) = shared() else { return };
    let (store, folder) = (database.fresh_schema(), TempDir::new().unwrap());
    let start = |part: &str| node(&folder, &store, &["--parts", part, "--node", part]);
    let (api, clock, hands) = (start("api"), start("schedule"), start("execute"));
    for server in [&api, &clock, &hands] {
        server.is_ready();
    }
    wait_for("all of them, and the clock's shards", || {
        let seen = nodes(&api);
        let shards = |node: &Value| node["shards"].as_u64().unwrap();
        let shards: Vec<u64> = seen.iter().map(shards).collect();
        // By name: api, execute, schedule.
        (shards == [0, 0, 256]).then_some(())
    });

    let receiver = Receiver::start();
    let every = json!({ "schedule": { "every": "1s" }, "target": receiver.url("/every") });
    let once = json!({ "schedule": { "in": "0s" }, "target": receiver.url("/once") });
    let (every, once) = (
        api.http().post("/v1/jobs", &every).json(),
        api.http().post("/v1/jobs", &once).json(),
    );
    wait_for("deliveries", || (receiver.count() >= 4).then_some(()));
    for delivery in receiver.deliveries() {
        assert_eq!(delivery.header("punctual-node"), "execute");
    }
    let succeeded = |job: &Value| {
        let path = format!(
            "/v1/jobs/{}/runs?state=succeeded",
            job["id"].as_str().unwrap()
        );
        api.http().get(&path).json()["items"]
            .as_array()
            .unwrap()
            .len()
    };
    wait_for("ended runs", || {
        (succeeded(&once) == 1 && succeeded(&every) >= 3).then_some(())
    });
    // By hand, too.
    let run = format!("/v1/jobs/{}/run", once["id"].as_str().unwrap());
    assert_eq!(api.http().send("POST", &run, &[], b"").status, 201);
    wait_for("the run by hand", || (succeeded(&once) == 2).then_some(()));

    for server in [&clock, &hands] {
        let refused = server.http().get("/v1/jobs");
        assert_eq!(refused.status, 421);
        assert_eq!(refused.json()["type"], "/problems/not-api");
        fails(&server.cli("job list"), 1, &["call one with api"]);
        fails(&server.cli("job show x"), 1, &["call one with api"]);
    }
    for server in [api, clock, hands] {
        assert_eq!(server.stop().code(), Some(0));
    }
}

#[test]
fn a_node_that_stops_says_so_before_it_closes_its_door() {
    let Some(database) = shared() else { return };
    let (store, folder) = (database.fresh_schema(), TempDir::new().unwrap());
    let mut leaves = node(&folder, &store, &["--node", "leaves"]);
    let stays = node(&folder, &store, &["--node", "stays"]);
    leaves.is_ready();
    stays.is_ready();
    wait_for("both", || (nodes(&stays).len() == 2).then_some(()));
    leaves.signal(Signal::SIGTERM);
    let said = wait_for("the word", || {
        let reply = leaves.http().get("/readyz");
        (reply.status == 503).then_some(reply)
    });
    assert_eq!(said.json()["detail"], "the node is stopping");
    let job = json!({ "schedule": "@yearly", "target": "http://127.0.0.1:9/" });
    assert_eq!(leaves.http().post("/v1/jobs", &job).status, 201);
    wait_for("the shards", || {
        let seen = nodes(&stays);
        let stays = seen.iter().find(|node| node["name"] == "stays").unwrap();
        (stays["shards"] == 256).then_some(())
    });
    assert_eq!(leaves.wait().code(), Some(0));
    wait_for("one", || (nodes(&stays).len() == 1).then_some(()));
    assert_eq!(stays.http().get("/readyz").status, 200);
}

#[test]
fn while_the_database_is_away_a_node_says_what_it_last_heard() {
    let database = match PgServer::private(Mode::Fast) {
        Ok(database) => database,
        Err(why) => return skip(&why.to_string()),
    };
    let folder = TempDir::new().unwrap();
    let mut server = node(&folder, &database.address(), &["--node", "alone"]);
    server.is_ready();
    database.stop(Stop::Fast).unwrap();
    let said = wait_for("the word", || {
        let reply = server.http().get("/readyz");
        (reply.status == 503).then(|| reply.json())
    });
    let detail = said["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("store"), "{detail}");
    let output = wait_for("the note", || {
        let output = server.cli("node list");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        error.contains("this is how it was then").then_some(output)
    });
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("alone"));
    database.start().unwrap();
    server.is_ready();
    assert!(!server.has_ended());
    assert_eq!(server.stop().code(), Some(0));
}

#[test]
fn a_version_that_does_not_know_the_stores_level_does_not_start() {
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(folder.path(), Arc::new(TestClock::default())).unwrap();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let Level(ours) = Level::OURS;
    let newer = store.raise_level(Level(ours + 1));
    let raised = runtime.build().unwrap().block_on(newer).unwrap();
    assert_eq!(raised, Raised::Done);
    drop(store);
    let path = folder.path().display();
    let output = punctual(&format!("serve --data {path} --listen 127.0.0.1:0"));
    let (needs, knows) = (format!("level {},", ours + 1), format!("level {ours}:"));
    fails(&output, 2, &[&needs, &knows, "use a newer one"]);
}
