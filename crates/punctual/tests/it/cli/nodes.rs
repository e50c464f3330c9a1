//! Nodes by the command line; what a fleet shows is in the tests of the fleet.

use super::{fails, value};
use crate::support::{Server, punctual, wait_for};

#[test]
fn a_node_alone_is_listed() {
    let server = Server::start();
    let listed = wait_for("its shards", || {
        let listed = server.printed("node list");
        listed.contains(" 256 ").then_some(listed)
    });
    let (head, row) = listed.trim_end().split_once('\n').unwrap();
    let head: Vec<&str> = head.split_whitespace().collect();
    assert_eq!(
        head,
        [
            "NAME", "PARTS", "SHARDS", "ROOM", "LATENESS", "CLOCK", "VERSION", "BEAT", "ANSWERED"
        ]
    );
    assert!(
        row.contains("api,schedule,execute") && row.ends_with('*'),
        "{row}"
    );
    let json = server.printed("node list --json");
    assert_eq!(json.lines().count(), 1, "{json}");
    let list = value(&json);
    assert_eq!(list["items"][0]["self"], true);
    assert!(
        row.starts_with(list["items"][0]["name"].as_str().unwrap()),
        "{row}"
    );
}

#[test]
fn without_a_server_one_line_says_so() {
    let away = punctual("node list --server http://127.0.0.1:9");
    fails(&away, 3, &["127.0.0.1:9", "punctual serve"]);
    let help = punctual("node list --help");
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(help.contains("punctual node list --json"), "{help}");
}
