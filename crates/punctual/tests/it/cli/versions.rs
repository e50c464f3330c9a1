//! What a job was, and who changed it.

use serde_json::Value;

use super::{fails, value};
use crate::support::{Receiver, Server, wait_for};

const SECRET: &str = "Bearer of-the-first-version";

/// A job with a header that is a secret, and two edits: the second takes the header away.
fn changed(receiver: &Receiver) -> Server {
    let server = Server::start_with_keys();
    let url = receiver.url("/hook");
    server.printed(&format!(
        "job create --key hello --every 1h --url {url} --header 'Authorization: {SECRET}'"
    ));
    server.printed("job edit hello --every 2h");
    server.printed("job edit hello --header 'Authorization: Bearer of-another'");
    server
}

#[test]
fn a_job_goes_back_to_a_version_with_what_is_not_shown_of_it() {
    let receiver = Receiver::start();
    let server = changed(&receiver);
    let listed = server.printed("job versions hello");
    let numbers: Vec<&str> = listed
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(numbers, ["3", "2", "1"], "{listed}");
    assert!(listed.contains("schedule"), "{listed}");
    let first = server.printed("job show hello --version 1 --json");
    assert_eq!(value(&first)["job"]["schedule"]["every"], "1h", "{first}");
    let all = format!(
        "{listed}{first}{}",
        server.printed("job show hello --version 1")
    );
    assert!(!all.contains("of-the-first-version"), "{all}");

    let stale = server.cli("job revert hello --to 1 --if-match 2");
    fails(&stale, 1, &["version"]);
    let shown = server.printed("job revert hello --to 1 --dry-run");
    assert!(shown.contains("2h → 1h"), "{shown}");
    assert!(shown.ends_with("nothing was changed\n"), "{shown}");
    assert_eq!(
        value(&server.printed("job show hello --json"))["version"],
        3
    );
    server.printed("job revert hello --to 1 --if-match 3");
    let job = value(&server.printed("job show hello --json"));
    assert_eq!(
        (&job["version"], &job["schedule"]["every"]),
        (&Value::from(4), &Value::from("1h"))
    );
    server.printed("job run hello");
    let delivery = wait_for("the run", || receiver.deliveries().pop());
    assert_eq!(delivery.header("authorization"), SECRET);
    fails(&server.cli("job revert hello --to 9"), 1, &["version 9"]);
}

#[test]
fn the_audit_log_is_listed_and_exported_without_secrets() {
    let server = changed(&Receiver::start());
    server.printed("job pause hello");
    let listed = server.printed("audit list --action job.edit");
    assert_eq!(listed.matches("job.edit").count(), 2, "{listed}");
    assert!(listed.contains("127.0.0.1"), "{listed}");
    let exported = server.printed("audit export");
    let actions: Vec<String> = exported
        .lines()
        .map(|line| value(line)["action"].as_str().unwrap().to_owned())
        .collect();
    let jobs: Vec<&str> = actions
        .iter()
        .map(String::as_str)
        .filter(|action| action.starts_with("job."))
        .collect();
    assert_eq!(jobs, ["job.create", "job.edit", "job.edit", "job.pause"]);
    assert!(exported.contains("***"), "{exported}");
    for part in ["of-the-first-version", "of-another", &server.root_key()] {
        assert!(!exported.contains(part), "{part}");
    }
    let bad = server.cli("audit list --action job.rename");
    fails(&bad, 1, &["job.reschedule", "--action"]);
}
