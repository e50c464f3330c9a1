//! The command line against a real server.

mod calendars;
mod changes;
mod errors;
mod exports;
mod files;
mod https;
mod nodes;
mod replays;
mod slots;
mod users;
mod versions;

use std::fs;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use model::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Answer, Receiver, Server, punctual, wait_for};

#[track_caller]
fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Ends with this code and one line that says all of these.
#[track_caller]
pub fn fails(output: &Output, code: i32, parts: &[&str]) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.starts_with("error: "), "{error}");
    for part in parts {
        assert!(error.contains(part), "{error:?} does not say {part:?}");
    }
}

const CREATE: &str = "job create --key team/hello --cron '0 9 * * MON-FRI' --timezone Europe/Berlin \
    --url http://127.0.0.1:9/ --method PUT --header 'X-Team: ops' --payload '{\"n\": 1.0}' --attempts-max 3 \
    --timeout 30s --lane batch --overlap allow --catch-up none --label team=ops";

#[test]
fn every_flag_reaches_the_job() {
    let server = Server::start();
    let created = server.printed(CREATE);
    assert!(created.starts_with("created job_"), "{created}");
    assert!(created.contains("(team/hello), next due 2"), "{created}");
    let shown = server.printed("job show team/hello --json");
    assert!(shown.contains(r#"{"n": 1.0}"#), "byte for byte: {shown}");
    let job = value(&shown);
    assert_eq!(job["schedule"]["cron"], "0 9 * * MON-FRI");
    assert_eq!(job["schedule"]["timezone"], "Europe/Berlin");
    assert_eq!(job["target"]["http"]["url"], "http://127.0.0.1:9/");
    assert_eq!(job["target"]["http"]["method"], "PUT");
    assert_eq!(job["target"]["http"]["headers"]["x-team"], "ops");
    assert_eq!(job["retry"]["attempts_max"], 3);
    assert_eq!(job["timeout"], "30s");
    assert_eq!(job["lane"], "batch");
    assert_eq!(job["overlap"], "allow");
    assert_eq!(job["catch_up"]["policy"], "none");
    assert_eq!(job["labels"], json!({ "team": "ops" }));
}

#[test]
fn a_job_lives_its_life_by_key_and_by_id() {
    let server = Server::start();
    server.printed(CREATE);
    let state = |job: &str| value(&server.printed(&format!("job show {job} --json")));
    let id = state("team/hello")["id"].as_str().unwrap().to_owned();
    let shown = server.printed(&format!("job show {id}"));
    assert!(
        shown.contains("team/hello") && shown.contains("active"),
        "{shown}"
    );
    let list = server.printed("job list --label team=ops");
    assert!(list.starts_with("ID"), "{list}");
    assert!(
        list.contains(&id) && list.contains("0 9 * * MON-FRI Europe/Berlin"),
        "{list}"
    );
    assert_eq!(server.printed("job list --q nothing-like-it"), "");

    let edited = server.printed("job edit team/hello --method GET --retries 0");
    assert!(edited.starts_with("changed"), "{edited}");
    let edited = state(&id);
    assert_eq!(edited["target"]["http"]["method"], "GET");
    assert_eq!(
        edited["target"]["http"]["url"], "http://127.0.0.1:9/",
        "not mentioned: it stays"
    );
    let stale = server.cli(&format!("job edit {id} --if-match 1 --lane critical"));
    fails(&stale, 1, &["version"]);

    assert!(server.printed("job pause team/hello").starts_with("paused"));
    assert_eq!(state(&id)["state"], "paused");
    assert!(
        server
            .printed(&format!("job resume {id}"))
            .starts_with("resumed")
    );
    assert_eq!(state(&id)["state"], "active");
    assert!(
        server
            .printed("job delete team/hello")
            .starts_with("deleted")
    );
    fails(&server.cli("job show team/hello"), 1, &[]);
}

#[test]
fn a_job_fires_and_its_run_can_be_seen() {
    let receiver = Receiver::start();
    let server = Server::start();
    server.printed(&format!(
        "job create --key now --in 0s --url {} --payload [1]",
        receiver.url("/hook")
    ));
    wait_for("the delivery", || (receiver.count() == 1).then_some(()));
    let run = wait_for("the run's end", || {
        let runs = value(&server.printed("run list --job now --state succeeded --json"));
        runs["items"][0]["id"].as_str().map(str::to_owned)
    });
    let delivery = receiver.deliveries().remove(0);
    assert_eq!(
        (delivery.method.as_str(), delivery.path.as_str()),
        ("POST", "/hook")
    );
    assert_eq!(delivery.body, b"[1]");
    assert_eq!(delivery.header("punctual-run"), run);
    let slot = Timestamp::parse(delivery.header("punctual-slot")).unwrap();
    assert!(
        delivery.at_micros >= slot.as_millis() * 1_000,
        "never early"
    );
    let list = server.printed("run list");
    assert!(list.contains(&run) && list.contains("succeeded"), "{list}");
    let head: Vec<&str> = list.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(head[..3], ["ID", "KEY", "SLOT"], "{list}");
    assert!(head.contains(&"DURATION"), "{list}");
    let row: Vec<&str> = list.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(
        row[1..3],
        ["now", delivery.header("punctual-slot")],
        "{list}"
    );
    let shown = server.printed(&format!("run show {run}"));
    assert!(
        shown.contains("ATTEMPT") && shown.contains("200"),
        "{shown}"
    );
    fails(&server.cli(&format!("run cancel {run}")), 1, &[]);

    let started = server.printed("job run now --payload [2]");
    assert!(started.starts_with("started run_"), "{started}");
    wait_for("the manual run", || (receiver.count() == 2).then_some(()));
    assert_eq!(receiver.deliveries().remove(1).body, b"[2]");
}

#[test]
fn a_dead_run_can_be_replayed_and_a_living_one_cancelled() {
    let slow = |path: &str| {
        if path == "/slow" {
            Duration::from_secs(30)
        } else {
            Duration::ZERO
        }
    };
    let receiver =
        Receiver::answering(move |delivery| Answer::status(400).after(slow(&delivery.path)));
    let server = Server::start();
    server.printed(&format!(
        "job create --key bad --in 0s --url {}",
        receiver.url("/")
    ));
    let dead = wait_for("the dead run", || {
        let runs = value(&server.printed("run list --state dead --json"));
        runs["items"][0]["id"].as_str().map(str::to_owned)
    });
    assert!(
        server
            .printed(&format!("run replay {dead}"))
            .contains(&dead)
    );
    wait_for("the replay", || (receiver.count() == 2).then_some(()));

    server.printed(&format!(
        "job create --key slow --in 0s --url {}",
        receiver.url("/slow")
    ));
    wait_for("the slow delivery", || {
        (receiver.count() == 3).then_some(())
    });
    let runs = value(&server.printed("run list --job slow --json"));
    let run = runs["items"][0]["id"].as_str().unwrap();
    server.printed(&format!("run cancel {run}"));
    wait_for("its end", || {
        let run = value(&server.printed(&format!("run show {run} --json")));
        (run["state"] == "cancelled").then_some(())
    });
}

#[test]
fn json_is_exactly_what_the_server_says() {
    let server = Server::start();
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("job.json");
    let job = r#"{"key": "a", "schedule": "@daily", "target": "http://127.0.0.1:9/"}"#;
    fs::write(&path, job).unwrap();
    let path = path.display();
    let created = server.printed(&format!("job create --file {path} --json"));
    assert_eq!(created.lines().count(), 1, "{created}");
    let shown = server.printed("--json job show a");
    let served = server.http().get("/v1/jobs/by-key/a");
    assert_eq!(served.header("content-type"), Some("application/json"));
    assert_eq!(shown.trim_end().as_bytes(), served.body.trim_ascii_end());
    fails(
        &server.cli(&format!("job create --file {path}")),
        1,
        &["key"],
    );
    let stored =
        server.printed("job create --key a --or-update --every 1h --url http://127.0.0.1:9/");
    assert!(stored.starts_with("changed"), "{stored}");
}

#[test]
fn many_jobs_are_created_at_once_and_listed_page_by_page() {
    let server = Server::start();
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("jobs.ndjson");
    let line = |n| {
        format!(
            "{{\"key\": \"j{n}\", \"schedule\": \"@daily\", \"target\": \"http://127.0.0.1:9/\"}}\n"
        )
    };
    fs::write(&path, (0..25).map(line).collect::<String>()).unwrap();
    let create = format!("job create --batch {}", path.display());
    assert_eq!(server.printed(&create), "25 created, 0 refused\n");
    let list = server.cli("job list --limit 10");
    assert_eq!(String::from_utf8_lossy(&list.stdout).lines().count(), 11);
    assert!(String::from_utf8_lossy(&list.stderr).contains("--cursor"));
    let all = server.printed("job list --limit 10 --all");
    assert_eq!(all.lines().count(), 26, "{all}");
    assert_eq!(
        server
            .printed("job list --limit 10 --all --json")
            .lines()
            .count(),
        3
    );

    let again = server.cli(&create);
    assert_eq!(again.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&again.stdout),
        "0 created, 25 refused\n"
    );
    assert!(
        String::from_utf8_lossy(&again.stderr).contains("line 1: "),
        "{again:?}"
    );
}

#[test]
fn refusals_name_the_flag() {
    let server = Server::start();
    let refused = |line: &str, code, parts: &[&str]| fails(&server.cli(line), code, parts);
    let url = "--url http://127.0.0.1:9/";
    refused(
        &format!("job create --cron '75 * * * *' {url}"),
        1,
        &["75", "(--cron)"],
    );
    refused("job create --every 5s", 2, &["--url"]);
    refused(&format!("job create --tz UTC {url}"), 2, &["--cron"]);
    refused("job show job_nonsense", 1, &[]);
    refused("job pause no-such-key", 1, &["no-such-key"]);
    refused(
        &format!("job create --payload {{ --every 5s {url}"),
        2,
        &["not JSON"],
    );
    refused(
        "job create --file /nowhere/job.json",
        2,
        &["/nowhere/job.json"],
    );
    refused("job create --batch /nowhere/jobs", 2, &["/nowhere/jobs"]);
    assert_eq!(
        server.cli("job create --every 5s --in 5s").status.code(),
        Some(2)
    );
}

#[test]
fn no_server_is_code_3_and_no_url_is_code_2() {
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let absent = punctual(&format!("job list --server http://{free}"));
    fails(&absent, 3, &[&free.to_string(), "punctual serve"]);
    fails(&punctual("job list --server nonsense"), 2, &["nonsense"]);
    let stranger = Receiver::answering(|_| Answer::ok().saying("<html>"));
    fails(
        &punctual(&format!("job list --server {}", stranger.url(""))),
        1,
        &["not JSON"],
    );
}

#[test]
fn a_server_cannot_steer_the_terminal() {
    let job = json!({ "id": "job_1", "key": "a\u{1b}[2J\u{9b}31m", "state": "\u{7}active" });
    let body = json!({ "items": [job] }).to_string();
    let nasty = Receiver::answering(move |_| Answer::ok().saying(&body));
    let list = punctual(&format!("job list --server {}", nasty.url("")));
    let list = String::from_utf8(list.stdout).unwrap();
    assert!(list.contains("a\\u{1b}[2J\\u{9b}31m"), "{list}");
    assert!(!list.contains(['\u{1b}', '\u{9b}', '\u{7}']), "{list:?}");

    let body = r#"{"detail": "no\u001b[31m\nway"}"#;
    let refusal = Receiver::answering(move |_| Answer::status(422).saying(body));
    let refused = punctual(&format!("job list --server {}", refusal.url("")));
    fails(&refused, 1, &["no\\u{1b}[31m\\nway"]);
}

#[test]
fn slots_are_worked_out_without_a_server() {
    let gap = "next '30 2 * * *' --tz Europe/Berlin --from 2027-03-27T12:00:00Z --count 2 --json";
    let next = value(&String::from_utf8(punctual(gap).stdout).unwrap());
    assert_eq!(
        next["slots"],
        json!(["2027-03-28T01:00:00.000Z", "2027-03-29T00:30:00.000Z"])
    );
    fails(&punctual("next '75 * * * *'"), 2, &["minute 75"]);
    fails(
        &punctual("next '* * * * *' --tz Mars/Olympus"),
        2,
        &["Mars/Olympus"],
    );
    assert_eq!(
        punctual("next '* * * * *' --count 0").status.code(),
        Some(2)
    );
}

#[test]
fn a_closed_pipe_is_no_error() {
    let script = "\"$0\" next '* * * * *' --count 1000 | head -n 1; exit \"${PIPESTATUS[0]}\"";
    let output = Command::new("bash")
        .args(["-c", script, env!("CARGO_BIN_EXE_punctual")])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_backup_is_taken_while_the_server_works_and_can_be_served_from() {
    let server = Server::start();
    let create = |key: &str| {
        server.printed(&format!(
            "job create --key {key} --cron @daily --url http://127.0.0.1:9/"
        ));
    };
    create("kept");
    let folder = TempDir::new().unwrap();
    let copy = folder.path().join("punctual.db");
    let backup = format!(
        "backup {} --data {}",
        copy.display(),
        server.folder().display()
    );
    assert!(server.printed(&backup).contains(copy.to_str().unwrap()));
    fails(&server.cli(&backup), 2, &[copy.to_str().unwrap()]);
    create("later");
    assert_eq!(server.stop().code(), Some(0));

    let restored = Server::start_in(folder.path(), &[]);
    assert_eq!(restored.http().get("/v1/jobs/by-key/kept").status, 200);
    assert_eq!(restored.http().get("/v1/jobs/by-key/later").status, 404);
}

#[test]
fn a_folder_without_data_gives_no_backup() {
    let empty = TempDir::new().unwrap();
    let copy = empty.path().join("copy.db");
    let output = punctual(&format!(
        "backup {} --data {}",
        copy.display(),
        empty.path().display()
    ));
    fails(&output, 2, &[empty.path().to_str().unwrap()]);
    assert!(!copy.exists());
}

#[test]
fn scripts_for_shells_and_the_contract_are_printed() {
    for shell in ["bash", "zsh", "fish"] {
        let script = punctual(&format!("completions {shell}"));
        assert!(
            String::from_utf8(script.stdout)
                .unwrap()
                .contains("punctual"),
            "{shell}"
        );
    }
    let contract = value(&String::from_utf8(punctual("openapi").stdout).unwrap());
    assert!(contract["openapi"].as_str().unwrap().starts_with("3.1"));
    assert!(contract["paths"]["/v1/jobs"]["post"].is_object());
}

#[test]
fn help_names_the_exit_codes() {
    let help = String::from_utf8(punctual("--help").stdout).unwrap();
    assert!(
        help.contains("Exit codes:") && help.contains("3  no server answers"),
        "{help}"
    );
}
