//! The audit log of real nodes: sealed, checked, and rewritten by somebody who owns the database.

use std::time::Duration;

use serde_json::{Value, json};
use store::postgres::server::{Mode, PgServer};
use tempfile::TempDir;

use crate::support::{Server, punctual, skip, wait_for};

/// A key that every start is given.
const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

struct Node {
    server: Server,
    head: String,
    /// How many were logged.
    seals: usize,
}

/// Makes three changes, each sealed by itself, and answers the head that was logged last.
fn changed(server: Server) -> Node {
    let check = |line: &str| verify(&server, line);
    for number in 1..=3 {
        let job = json!({"key": format!("job-{number}"), "schedule": "@yearly", "target": "http://127.0.0.1:9/"});
        assert_eq!(server.http().post("/v1/jobs", &job).status, 201);
        wait_for("the seal", || {
            let entries = check("")["entries"].as_u64().unwrap_or(0);
            (entries >= number).then_some(())
        });
    }
    let last = check("");
    assert_eq!(last["whole"], true, "{last}");
    let head = last["head"].as_str().unwrap().to_owned();
    assert!(server.log().contains(&head), "the head is in the log");
    assert_eq!(check(&format!("--head {head}"))["whole"], true);
    let seals = server.log().matches("the audit log was sealed").count();
    Node {
        server,
        head,
        seals,
    }
}

/// What the command line says of the log, and that its exit code fits.
fn verify(server: &Server, more: &str) -> Value {
    let line = format!(
        "audit verify --json --server http://{} {more}",
        server.address
    );
    let output = punctual(&line);
    let text = String::from_utf8(output.stdout).unwrap();
    let said: Value = serde_json::from_str(&text).unwrap_or_default();
    let expected = if said["whole"] == true { 0 } else { 1 };
    assert_eq!(output.status.code(), Some(expected), "{text}");
    said
}

/// What is done to the database, one after another, and what is found then.
fn rewrites(rewrite: &dyn Fn(&str), node: &Node, hex: &str) {
    let check = |more: &str| verify(&node.server, more)["wrong"].clone();
    rewrite("UPDATE audit SET actor = actor || '#' WHERE seq = 2");
    assert!(check("")["segment"].is_u64());
    rewrite("UPDATE audit SET actor = replace(actor, '#', '') WHERE seq = 2");
    assert_eq!(check(""), Value::Null);
    rewrite("UPDATE audit_seals SET key = '00000000' WHERE number = 1");
    let unchecked = verify(&node.server, "")["unchecked"].clone();
    let why = unchecked["why"].as_str().unwrap_or_default();
    assert!(why.contains("a key that is not given: 00000000"), "{why}");
    rewrite(
        "UPDATE audit_seals SET key = (SELECT key FROM audit_seals WHERE number = 2) WHERE number = 1",
    );
    assert_eq!(verify(&node.server, "")["whole"], true);
    rewrite("UPDATE audit SET after = 'x' WHERE seq = 1");
    assert_eq!(check("")["segment"], 1);
    rewrite("DELETE FROM audit WHERE seq = 1");
    let gone = check("");
    assert_eq!((&gone["segment"], &gone["entry"]), (&json!(1), &json!(1)));
    forge_a_drop(rewrite, node, hex);
    rewrite("DELETE FROM audit_seals; DELETE FROM audit");
    let cut = check(&format!("--head {}", node.head));
    let why = cut["why"].as_str().unwrap_or_default();
    assert!(
        why.contains("cut off") || why.contains("sealed again"),
        "{cut}"
    );
}

/// The two oldest segments are deleted with their entries, and an entry says that they were dropped, with all that can be read
/// of them. The node itself seals it. `hex` writes a code as entries have it.
fn forge_a_drop(rewrite: &dyn Fn(&str), node: &Node, hex: &str) {
    let zeros = "0".repeat(64);
    rewrite(&format!(
        r#"INSERT INTO audit (at, tenant, actor, action, subject, before)
           SELECT last.at, last.tenant, 'system', 'audit.drop', '2',
                  '{{"segments":{{"first":1,"last":2}},"entries":{{"first":1,"last":' || seal.to_seq ||
                  '}},"codes":"{zeros}","mac":"' || {hex} || '","key":"' || seal.key || '","code":"{zeros}"}}'
           FROM audit last, audit_seals seal
           WHERE seal.number = 2 AND last.seq = (SELECT max(seq) FROM audit);
           DELETE FROM audit WHERE seq <= (SELECT to_seq FROM audit_seals WHERE number = 2);
           DELETE FROM audit_seals WHERE number <= 2"#
    ));
    wait_for("the seal of the entry", || {
        let sealed = node
            .server
            .log()
            .matches("the audit log was sealed")
            .count();
        (sealed > node.seals).then_some(())
    });
    let wrong = verify(&node.server, "")["wrong"].clone();
    let why = wrong["why"].as_str().unwrap_or_default();
    assert!(why.contains("no entry that is sealed says"), "{wrong}");
}

#[test]
fn whoever_rewrites_the_file_is_found_out() {
    let folder = TempDir::new().unwrap();
    let node = changed(Server::start_in(folder.path(), &[]));
    let database = rusqlite::Connection::open(folder.path().join("punctual.db")).unwrap();
    database.busy_timeout(Duration::from_secs(10)).unwrap();
    rewrites(
        &|sql| database.execute_batch(sql).unwrap(),
        &node,
        "lower(hex(seal.mac))",
    );
}

#[test]
fn whoever_rewrites_the_postgresql_database_is_found_out() {
    let database = match PgServer::private(Mode::Fast) {
        Ok(database) => database,
        Err(why) => return skip(&why.to_string()),
    };
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, KEY).unwrap();
    private(&file);
    let file = file.display().to_string();
    let address = database.address();
    let args = ["--store", &address, "--master-key-file", &file];
    let node = changed(Server::start_in(folder.path(), &args));
    let rewrite = |sql: &str| {
        let sql = format!("SET search_path = punctual; {sql}");
        database.query(&sql).unwrap();
    };
    rewrites(&rewrite, &node, "encode(seal.mac, 'hex')");
}

fn private(file: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(file, mode).unwrap();
}
