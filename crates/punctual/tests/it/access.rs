//! Who may call: the first key, how commands find theirs, and what a fleet makes of them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

use store::postgres::server::PgServer;
use tempfile::TempDir;

use crate::cli::fails;
use crate::support::{BINARY, Http, KEYS, Server, pause, skip, wait_for, wait_within};

/// What is printed once.
const SHOWN: &str = "The root key, shown this once: ";

fn printed(server: &Server) -> Option<String> {
    let log = server.log();
    let (_, rest) = log.split_once(SHOWN)?;
    Some(rest.lines().next().unwrap().to_owned())
}

fn root(server: &Server) -> Http {
    server.http().with_key(&server.root_key())
}

#[test]
fn the_first_start_makes_one_root_key_and_commands_find_it() {
    let own = TempDir::new().unwrap();
    let server = Server::start_in(own.path(), &[KEYS]);
    let key = server.root_key();
    assert_eq!(printed(&server).as_deref(), Some(key.as_str()));
    let file = fs::metadata(own.path().join("root.key")).unwrap();
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
    assert_eq!(server.http().get("/v1/jobs").status, 401);
    assert_eq!(root(&server).get("/v1/jobs").status, 200);
    server.printed("job create --key a --every 1h --url http://127.0.0.1:9/");
    let elsewhere = TempDir::new().unwrap();
    let data = elsewhere.path().to_str().unwrap();
    let output = server.cli_with(&[("PUNCTUAL_DATA", data)], "job list");
    fails(&output, 1, &["PUNCTUAL_KEY", "punctual login"]);
    assert_eq!(server.stop().code(), Some(0));

    let again = Server::start_in(own.path(), &[KEYS]);
    assert_eq!(printed(&again), None);
    assert_eq!(again.root_key(), key);
    let keys = root(&again).get("/v1/keys").json();
    assert_eq!(keys["items"].as_array().unwrap().len(), 1);
    assert!(keys["items"][0]["last_used_at"].is_string(), "{keys}");
}

#[test]
fn a_store_from_before_there_were_keys_gets_one() {
    let own = TempDir::new().unwrap();
    let server = Server::start_in(own.path(), &[]);
    server.printed("job create --key kept --every 1h --url http://127.0.0.1:9/");
    assert!(!own.path().join("root.key").exists());
    assert_eq!(server.stop().code(), Some(0));
    let server = Server::start_in(own.path(), &[KEYS]);
    assert!(printed(&server).is_some());
    assert!(server.printed("job list").contains("kept"));
}

#[test]
fn a_start_that_was_cut_off_left_a_key_that_the_next_one_uses() {
    let own = TempDir::new().unwrap();
    let key = format!("punctual_{}_{}", "0a".repeat(16), "0b".repeat(32));
    fs::write(own.path().join("root.key"), &key).unwrap();
    let server = Server::start_in(own.path(), &[KEYS]);
    assert_eq!(printed(&server), Some(key.clone()));
    assert_eq!(root(&server).get("/v1/keys").status, 200);
    assert_eq!(server.stop().code(), Some(0));
    fs::write(own.path().join("root.key"), "not a key").unwrap();
    let server = Server::start_in(own.path(), &[KEYS]);
    let http = server.http().with_key(&key);
    assert_eq!(http.get("/v1/keys").status, 200);
    assert_eq!(printed(&server), None, "the store has one");
}

#[test]
fn a_key_that_cannot_be_kept_is_shown_and_not_called_kept() {
    let own = TempDir::new().unwrap();
    fs::create_dir(own.path().join("root.key")).unwrap();
    let server = Server::start_in(own.path(), &[KEYS]);
    let key = printed(&server).unwrap();
    assert_eq!(server.http().with_key(&key).get("/v1/keys").status, 200);
    let log = server.log();
    assert!(log.contains("It is kept nowhere"), "{log}");
    assert!(!log.contains("It is kept in"), "{log}");
}

#[test]
fn keys_are_made_listed_and_revoked() {
    let server = Server::start_with_keys();
    let made = server.cli("key create --role reader --label 'for tests' --expires-in 90d");
    assert!(made.status.success(), "{made:?}");
    let key = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let said = String::from_utf8(made.stderr).unwrap();
    let id = said.split(',').next().unwrap();
    assert!(
        key.starts_with("punctual_") && !said.contains(&key),
        "{said}"
    );
    let listed = server.printed("key list");
    assert!(
        listed.contains(id) && listed.contains("for tests"),
        "{listed}"
    );
    let with = |line: &str| server.cli_with(&[("PUNCTUAL_KEY", &key)], line);
    assert!(with("job list").status.success());
    let create = "job create --every 1h --url http://127.0.0.1:9/";
    fails(&with(create), 1, &["role admin", "role reader"]);
    assert_eq!(
        server.printed(&format!("key revoke {id}")),
        format!("revoked {id}\n")
    );
    fails(&with("job list"), 1, &["no valid key"]);
    let bad = server.cli("key create --role owner");
    fails(&bad, 1, &["owner", "--role"]);
    let worker = server.printed("key create --role worker --queue mail --queue gpu");
    assert!(server.printed("key list").contains("gpu mail"));
    let with = |line: &str| server.cli_with(&[("PUNCTUAL_KEY", worker.trim())], line);
    fails(&with("job list"), 1, &["role reader", "role worker"]);
    let bad = server.cli("key create --role reader --queue mail");
    fails(&bad, 1, &["--queue", "only a worker has queues"]);
}

/// The command line with a home of its own, and something on its standard input.
fn at_home(home: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(BINARY)
        .args(arguments)
        .env_clear()
        .env("HOME", home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

#[test]
fn a_login_is_kept_for_the_commands_that_follow() {
    let (server, home) = (Server::start_with_keys(), TempDir::new().unwrap());
    let (url, key) = (server.url(), server.root_key());
    let call = |arguments: &[&str], input: &str| at_home(home.path(), arguments, input);
    let list = ["job", "list", "--server", &url];
    fails(&call(&list, ""), 1, &["no valid key"]);
    fails(&call(&["login", &url], "wrong\n"), 1, &["no valid key"]);
    fails(&call(&["login", &url], "\n"), 2, &["no key was given"]);
    let output = call(&["login", &url], &format!("{key}\n"));
    assert!(output.status.success(), "{output:?}");
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!shown.contains(&key), "{shown}");
    let path = home.path().join(".config/punctual/profiles/default.toml");
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(call(&["job", "list"], "").status.success());
    assert!(call(&list, "").status.success());

    let named = ["login", &url, "--profile", "other"];
    assert!(call(&named, &key).status.success());
    let with = |name: &str| call(&["job", "list", "--profile", name], "");
    assert!(with("other").status.success());
    fails(&with("none"), 2, &["none", "punctual login"]);
    fails(&with("../x"), 2, &["letters, digits"]);
    let elsewhere = [
        "job",
        "list",
        "--profile",
        "other",
        "--server",
        "http://127.0.0.1:1",
    ];
    fails(&call(&elsewhere, ""), 2, &["other", "http://127.0.0.1:1"]);
}

#[test]
fn a_profiles_key_is_sent_to_its_own_server_alone() {
    let (server, other) = (Server::start_with_keys(), Server::start_with_keys());
    let home = TempDir::new().unwrap();
    let login = ["login", &server.url()];
    assert!(
        at_home(home.path(), &login, &server.root_key())
            .status
            .success()
    );
    let list = ["job", "list", "--server", &other.url()];
    fails(&at_home(home.path(), &list, ""), 1, &["no valid key"]);
}

#[test]
fn metrics_are_shown_to_root_or_when_configured_to_everyone() {
    let server = Server::start_with_keys();
    assert_eq!(server.http().get("/metrics").status, 401);
    assert_eq!(root(&server).get("/metrics").status, 200);
    let own = TempDir::new().unwrap();
    let open = Server::start_in(own.path(), &[KEYS, "--metrics-open"]);
    assert_eq!(open.http().get("/metrics").status, 200);
    assert_eq!(open.http().get("/version").status, 401);
}

/// The database that tests share, if there can be one.
fn shared() -> Option<PgServer> {
    let found = PgServer::shared();
    found.map_err(|why| skip(&why.to_string())).ok()
}

#[test]
fn of_a_fleet_that_starts_at_once_one_makes_the_root_key() {
    let Some(database) = shared() else { return };
    let store = database.fresh_schema();
    let folder = TempDir::new().unwrap();
    let start = |name: &str| {
        let (store, data) = (store.clone(), folder.path().join(name));
        thread::spawn(move || Server::start_in(&data, &[KEYS, "--store", &store]))
    };
    // Two of them share a folder.
    let starts = ["a", "b", "b"].map(start);
    let nodes = starts.map(|start| start.join().unwrap());
    let keys: Vec<String> = nodes.iter().filter_map(printed).collect();
    let [key] = keys.as_slice() else {
        panic!("{keys:?}");
    };
    let files = ["a", "b"].map(|name| folder.path().join(name).join("root.key"));
    let kept: Vec<String> = files
        .iter()
        .filter_map(|it| fs::read_to_string(it).ok())
        .collect();
    assert_eq!(kept, [format!("{key}\n")]);
    for node in &nodes {
        let http = node.http().with_key(key);
        wait_within(1, "the key", || {
            (http.get("/v1/keys").status == 200).then_some(())
        });
    }
}

#[test]
fn tenants_are_made_and_each_sees_its_own() {
    let server = Server::start_with_keys();
    let made = server.printed("tenant create team-search --note 'owned by Ann'");
    assert_eq!(made, "created team-search\n");
    assert!(server.printed("tenant list").contains("owned by Ann"));
    assert!(
        server
            .printed("tenant show team-search")
            .contains("team-search")
    );
    let create = "job create --key mine --every 1h --url http://127.0.0.1:9/";
    server.printed(create);
    let key = server.printed("key create --tenant team-search --role admin");
    let with = |line: &str| server.cli_with(&[("PUNCTUAL_KEY", key.trim())], line);
    fails(&with("job show mine"), 1, &["mine"]);
    let listed = with("job list --json");
    assert!(!String::from_utf8_lossy(&listed.stdout).contains("mine"));
    assert!(with(create).status.success());
    fails(&with("tenant list"), 1, &["role root", "role admin"]);
    let refused = server.cli("tenant delete team-search");
    fails(&refused, 1, &["team-search has jobs"]);
    assert!(with("job delete mine").status.success());
    let keys = server.printed("key list --tenant team-search");
    let id = keys
        .split_whitespace()
        .find(|word| word.starts_with("key_"))
        .unwrap();
    server.printed(&format!("key revoke {id} --tenant team-search"));
    assert_eq!(
        server.printed("tenant edit team-search --note ''"),
        "changed team-search\n"
    );
    assert_eq!(
        server.printed("tenant delete team-search"),
        "deleting team-search: 0 jobs are left\n"
    );
    assert!(server.printed("job show mine").contains("mine"));
}

#[test]
fn a_tenant_gets_no_more_than_its_quota_and_goes_with_everything() {
    let server = Server::start_with_keys();
    server.printed("tenant create team-search --jobs-max 1");
    let key = server.printed("key create --tenant team-search --role admin --label Ann");
    let as_ann = |line: &str| server.cli_with(&[("PUNCTUAL_KEY", key.trim())], line);
    let create = "job create --every 1h --url http://127.0.0.1:9/";
    assert!(as_ann(create).status.success());
    fails(&as_ann(create), 1, &["1 of at most 1 (jobs_max)"]);
    let listed = as_ann("job list --owner Ann --json");
    assert!(String::from_utf8_lossy(&listed.stdout).contains("Ann"));
    server.printed("tenant edit team-search --jobs-max 2 --history-days-max 7");
    let shown = server.printed("tenant show team-search");
    assert!(shown.contains("history_days_max"), "{shown}");
    assert!(as_ann(create).status.success());
    let said = server.printed("tenant delete team-search --with-everything");
    assert_eq!(said.trim(), "deleting team-search: 2 jobs are left");
    fails(&as_ann("job list"), 1, &["no valid key"]);
    assert!(
        server
            .printed("tenant show team-search")
            .contains("deleting_at")
    );
}

/// Waits until the tenant shows so many runs of today.
fn wait_runs(server: &Server, count: u64) {
    wait_for("the count of runs", || {
        let shown = server.printed("tenant show default --json");
        let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
        (shown["used"]["runs_day"] == count).then_some(())
    });
}

#[test]
fn a_tenant_has_so_many_runs_a_day_also_after_a_restart() {
    let own = tempfile::TempDir::new().unwrap();
    let server = Server::start_in(own.path(), &[KEYS]);
    server.printed("tenant edit default --runs-day-max 3");
    server.printed("job create --key tick --every 1s --url http://127.0.0.1:9/ --overlap allow");
    let skipped = || {
        let slots = server.printed("job slots tick");
        slots.contains("quota").then_some(())
    };
    wait_for("a slot beyond the quota", skipped);
    wait_runs(&server, 3);
    fails(
        &server.cli("job run tick"),
        1,
        &["3 of at most 3", "runs_day_max"],
    );
    // Slots are skipped each second, and the log has one line.
    pause(std::time::Duration::from_secs(3));
    let lines = |log: String| {
        let all = log
            .lines()
            .filter(|line| line.contains("has had all its runs"));
        all.map(str::to_owned).collect::<Vec<_>>()
    };
    let said = lines(server.log());
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains("WARN") && said[0].contains("default"),
        "{said:?}"
    );
    server.stop();
    let server = Server::start_in(own.path(), &[KEYS]);
    wait_for("the node to know of it", || {
        (lines(server.log()).len() == 1).then_some(())
    });
    let listed = server.printed("run list --job tick --json --all");
    let (all, skips) = (
        listed.matches("\"run_").count(),
        listed.matches("\"quota\"").count(),
    );
    assert!(all > skips, "{listed}");
}
