//! Commands whose node or whose supervisor was killed.

use std::fs;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};
use serde_json::json;
use store::postgres::server::PgServer;
use tempfile::TempDir;

use crate::shell::{allowing, ended, job, started};
use crate::support::{Server, moment, now, program, skip, wait_for};

/// The first attempt ends with its node, and any other at once.
const ENDLESS: &str = "[ $PUNCTUAL_ATTEMPT = 1 ] || exit 0; echo begun; exec sleep 1000";

#[test]
fn a_command_of_a_node_that_was_killed_begins_again_on_another_within_five_seconds() {
    let Ok(database) = PgServer::shared().map_err(|why| skip(&why.to_string())) else {
        return;
    };
    let (store, folder) = (database.fresh_schema(), TempDir::new().unwrap());
    let node = |name: &str| {
        let arguments = allowing("/bin/sh");
        let mut all = vec!["--store", &store, "--node", name];
        all.extend(arguments.iter().map(String::as_str));
        Server::start_in(folder.path(), &all)
    };
    let one = node("one");
    one.is_ready();
    let made = one
        .http()
        .post("/v1/jobs", &job(&["/bin/sh", "-c", ENDLESS]));
    let run = started(&one.http(), &made.json());
    let path = format!("/v1/runs/{run}");
    wait_for("the mark", || {
        (one.http().get(&path).json()["state"] == "running").then_some(())
    });
    let other = node("other");
    other.is_ready();
    // Nobody declares another lapsed until it has been heard itself for a whole lifetime.
    wait_for("shards of both", || {
        let nodes = other.http().get("/v1/nodes").json();
        let items = nodes["items"].as_array().unwrap().clone();
        let holds = |node: &serde_json::Value| node["shards"].as_u64() > Some(0);
        (items.len() == 2 && items.iter().all(holds)).then_some(())
    });
    let killed_at = now();
    one.kill();
    let run = ended(&other.http(), &run);
    assert_eq!(run["state"], "succeeded", "{run}");
    let (first, second) = (&run["attempts"][0], &run["attempts"][1]);
    assert_eq!(
        (&first["outcome"], &first["node"]),
        (&json!("lost"), &json!("one"))
    );
    assert_eq!(second["node"], "other");
    let took = moment(&second["dispatched_at"]) - killed_at;
    assert!((0..5_000).contains(&took), "{took} ms: {run}");
}

#[test]
fn a_folder_that_a_killed_supervisor_left_is_removed_at_the_next_start() {
    let Some(env) = program("env") else {
        return skip("there is no program env");
    };
    let (folder, temporary) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let arguments = allowing("/bin/sh");
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let own = format!("TMPDIR={}", temporary.path().display());
    let start = || Server::start_under(&env, &[&own], folder.path(), &arguments);
    let server = start();
    let http = server.http();
    let made = http.post("/v1/jobs", &job(&["/bin/sh", "-c", ENDLESS]));
    let run = started(&http, &made.json());
    let folders = temporary
        .path()
        .join(format!("punctual-commands-{}", Uid::effective()));
    let found = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.collect()
    };
    let supervisor = wait_for("the command's folder", || found(&folders).pop());
    // It is named by its supervisor.
    wait_for("what it says", || {
        let log = http.get(&format!("/v1/runs/{run}/log")).json();
        log.to_string().contains("begun").then_some(())
    });
    kill(Pid::from_raw(supervisor.parse().unwrap()), Signal::SIGKILL).unwrap();
    let run = ended(&http, &run);
    let error = run["attempts"][0]["error"].as_str().unwrap();
    assert!(
        error.starts_with("its supervisor has ended early"),
        "{error}"
    );
    assert!(
        found(&folders).contains(&supervisor),
        "nobody is there to remove it"
    );
    server.kill();
    let _server = start();
    assert_eq!(found(&folders), Vec::<String>::new());
}
