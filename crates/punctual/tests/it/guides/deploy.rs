//! The guide from one machine to a fleet: what of it needs no machine to itself is run as it stands.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;
use store::postgres::server::{Mode, PgServer};
use tempfile::TempDir;

use super::block;
use crate::support::{BINARY, KEYS, Server, program, punctual, skip};

const GUIDE: &str = "docs/guides/deploy.md";

/// Runs a script in a folder, with more in its environment.
#[track_caller]
fn run_in(folder: &Path, environment: &[(&str, &str)], script: &str) -> String {
    let binary = Path::new(BINARY).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let script = format!("trap 'kill -9 $(jobs -p) 2>/dev/null || true' EXIT\n{script}");
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new("bash")
        .args(["-euc", &script])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", binary.display()))
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&stdout).into_owned();
    let error = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{script}\n{said}\n{error}");
    said
}

/// The script with free ports in the place of those that it names.
fn on_free_ports(script: &str, ports: &[u16]) -> String {
    let taken: Vec<TcpListener> = ports
        .iter()
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    let mut script = script.to_owned();
    for (port, listener) in ports.iter().zip(&taken) {
        let free = listener.local_addr().unwrap().port();
        script = script.replace(&format!("127.0.0.1:{port}"), &format!("127.0.0.1:{free}"));
    }
    script
}

#[test]
fn the_settings_of_one_machine_are_settings() {
    let own = TempDir::new().unwrap();
    let path = own.path().join("punctual.toml");
    fs::write(&path, block(GUIDE, "## One machine", "toml")).unwrap();
    let printed = punctual(&format!("config print --config {}", path.display()));
    assert!(printed.status.success(), "{printed:?}");
    assert!(printed.stderr.is_empty(), "{printed:?}");
    let said = String::from_utf8_lossy(&printed.stdout);
    assert!(said.contains("https://jobs.example.com:7710"), "{said}");
    // What the unit starts is where the guide puts it, and reads the file that the guide names.
    let commands = block(GUIDE, "## One machine", "sh");
    let unit = include_str!("../../../../../deploy/punctual.service");
    assert!(
        commands.contains("/usr/local/bin/punctual")
            && unit.contains("ExecStart=/usr/local/bin/punctual")
    );
    assert!(commands.contains("> /etc/punctual/environment"));
    assert!(unit.contains("EnvironmentFile=-/etc/punctual/environment"));
}

#[test]
fn a_node_with_a_certificate_of_its_own_answers() {
    if program("openssl").is_none() {
        return;
    }
    let own = TempDir::new().unwrap();
    let script = on_free_ports(&block(GUIDE, "### TLS", "sh"), &[7720]);
    let said = run_in(own.path(), &[], &script);
    assert!(said.contains("hello"), "{said}");
}

#[test]
fn the_nightly_copy_and_the_export_are_made() {
    let own = TempDir::new().unwrap();
    let server = Server::start_in(&own.path().join("data"), &[KEYS]);
    let (url, data) = (server.url(), server.folder().to_str().unwrap().to_owned());
    let environment = [("PUNCTUAL_SERVER", &*url), ("PUNCTUAL_DATA", &*data)];
    fs::create_dir(own.path().join("backups")).unwrap();
    let script = block(GUIDE, "## Backups", "sh").replace("/var/lib/punctual", &data);
    run_in(own.path(), &environment, &script);
    let mut copies = fs::read_dir(own.path().join("backups")).unwrap();
    let copy = copies.next().unwrap().unwrap().path();
    assert!(copy.to_str().unwrap().ends_with(".db"), "{copy:?}");
    let script = block(GUIDE, "### History for other programs", "sh");
    run_in(own.path(), &environment, &script);
    assert!(own.path().join("runs.ndjson").is_file());
}

#[test]
fn prometheus_reads_its_part_and_its_key_opens_the_metrics() {
    let own = TempDir::new().unwrap();
    let server = Server::start_in(&own.path().join("data"), &[KEYS]);
    let (url, data) = (server.url(), server.folder().to_str().unwrap().to_owned());
    let environment = [("PUNCTUAL_SERVER", &*url), ("PUNCTUAL_DATA", &*data)];
    run_in(own.path(), &environment, &block(GUIDE, "## Alerts", "sh"));
    let key = fs::read_to_string(own.path().join("prometheus.key")).unwrap();
    let metrics = server.http().with_key(key.trim()).get("/metrics");
    assert_eq!(metrics.status, 200);
    let Some(promtool) = program("promtool") else {
        return;
    };
    let yaml = block(GUIDE, "## Alerts", "yaml");
    fs::write(own.path().join("prometheus.yml"), yaml).unwrap();
    let rules =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/prometheus/punctual.rules.yml");
    fs::copy(rules, own.path().join("punctual.rules.yml")).unwrap();
    let mut check = Command::new(promtool);
    let check = check.args(["check", "config", "prometheus.yml"]);
    let checked = check.current_dir(own.path()).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
}

#[test]
fn three_nodes_work_over_a_database_with_a_standby_and_one_may_go() {
    let primary = match PgServer::private(Mode::Fast) {
        Ok(primary) => primary,
        Err(why) => return skip(&why.to_string()),
    };
    let standby = primary.standby().unwrap();
    let own = TempDir::new().unwrap();
    let (one, two) = (primary.port(), standby.port());
    let script = block(GUIDE, "## Three nodes", "sh").replace(
        "punctual@db1.internal,db2.internal/punctual?",
        &format!("postgres@127.0.0.1:{one},127.0.0.1:{two}/postgres?sslmode=disable&"),
    );
    let script = on_free_ports(&script, &[7731, 7732, 7733]);
    let said = run_in(own.path(), &[], &script);
    let (before, after) = said.split_once("created job_").unwrap();
    let nodes = |text: &str| -> Vec<String> {
        let names = text
            .lines()
            .filter_map(|line| line.split_whitespace().next());
        let names = names.filter(|name| ["a", "b", "c"].contains(name));
        names.map(str::to_owned).collect()
    };
    assert_eq!(nodes(before), ["a", "b", "c"], "{said}");
    assert_eq!(nodes(after), ["a", "c"], "{said}");
    assert!(after.contains("@daily"), "{said}");
}

#[test]
fn jobs_go_from_one_store_to_another() {
    let (old, new) = (Server::start(), Server::start());
    for key in ["first", "second"] {
        let job = json!({"key": key, "schedule": "@yearly", "target": "http://127.0.0.1:9/", "labels": {"team": "ops"}});
        assert_eq!(old.http().post("/v1/jobs", &job).status, 201);
    }
    let own = TempDir::new().unwrap();
    let (from, to) = (old.url(), new.url());
    let script = block(GUIDE, "### From one file to the database", "sh");
    run_in(
        own.path(),
        &[("PUNCTUAL_SERVER", &from), ("NEW_SERVER", &to)],
        &script,
    );
    for key in ["first", "second"] {
        let job = new.http().get(&format!("/v1/jobs/key:{key}")).json();
        assert_eq!(job["labels"]["team"], "ops", "{job}");
    }
}
