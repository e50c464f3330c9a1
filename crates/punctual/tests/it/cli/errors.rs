//! Errors: in the words of the command line, or as problem documents for programs.

use std::process::Output;
use std::time::Duration;

use serde_json::Value;

use super::{fails, value};
use crate::support::{Answer, Receiver, Server, punctual, wait_for};

const URL: &str = "--url http://127.0.0.1:9/";

/// The one line on standard error, read as JSON; nothing is on standard output.
#[track_caller]
fn problem(output: &Output, code: i32) -> Value {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(output.stdout.is_empty(), "{output:?}");
    value(&error)
}

#[test]
fn with_json_every_error_is_a_problem_document() {
    let server = Server::start();
    let refused = server.cli(&format!("job create --cron '75 * * * *' {URL} --json"));
    let refused = problem(&refused, 1);
    assert_eq!(refused["type"], "/problems/schedule-invalid");
    assert_eq!(
        (&refused["status"], &refused["field"]),
        (&422.into(), &"schedule.cron".into())
    );
    let missing = problem(&server.cli("--json job show nobody"), 1);
    assert_eq!(
        (&missing["status"], &missing["key"]),
        (&404.into(), &"nobody".into())
    );
    for line in [
        "job create --every 5s --json",
        "job edit x --json",
        "job show --json",
    ] {
        let usage = problem(&server.cli(line), 2);
        assert_eq!(usage["type"], "about:blank", "{line}: {usage}");
        assert!(
            !usage["detail"].as_str().unwrap().is_empty(),
            "{line}: {usage}"
        );
    }
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let absent = problem(
        &punctual(&format!("job list --json --server http://{free}")),
        3,
    );
    assert!(
        absent["detail"]
            .as_str()
            .unwrap()
            .contains("punctual serve"),
        "{absent}"
    );
}

#[test]
fn errors_speak_of_flags_and_commands() {
    let receiver = Receiver::answering(|_| Answer::ok().after(Duration::from_secs(20)));
    let server = Server::start();
    let refused = |line: &str, parts: &[&str]| {
        let output = server.cli(line);
        fails(&output, 1, parts);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        for word in [
            "/v1/",
            "If-Match",
            "PUT ",
            "PATCH ",
            "POST ",
            "\"force\"",
            "schedule.",
            "target.",
        ] {
            assert!(!error.contains(word), "{line}: {error}");
        }
    };
    server.printed(&format!(
        "job create --key a --cron @yearly --url {}",
        receiver.url("/")
    ));
    refused("job edit a --lane batch --if-match 7", &["--if-match"]);
    refused(
        &format!("job create --key a --every 5s {URL}"),
        &["--or-update", "(--key)"],
    );
    refused(
        "job edit a --exclude nowhere",
        &["punctual calendar put nowhere", "(--exclude)"],
    );
    refused("job replay a", &["punctual run replay"]);
    refused("job edit a --attempts-max 1000", &["(--attempts-max)"]);
    refused("job edit a --header 'Host: x'", &["host", "(--header)"]);
    refused("job edit a --url nowhere", &["(--url)"]);
    refused("job edit a --runs-max many", &["(--runs-max)"]);
    refused("job list --label team", &["(--label)"]);
    refused("job list --state asleep", &["asleep", "(--state)"]);
    refused("run list --job nobody", &["nobody"]);
    refused("run list --limit 0", &["(--limit)"]);
    refused("run show nonsense", &["nonsense"]);
    refused("job explain a --at someday", &["--at 20", "(--at)"]);
    server.printed("job run a");
    wait_for("the delivery", || (receiver.count() == 1).then_some(()));
    refused("job run a", &["--force"]);
}

#[test]
fn a_file_at_fault_is_named_by_its_field() {
    let server = Server::start();
    let script = "echo '{\"schedule\": {\"cron\": \"75 * * * *\"}, \"target\": \"http://a/\"}' | punctual job create --file -";
    fails(&server.bash(script), 1, &["75", "(schedule.cron)"]);
    fails(
        &server.bash("echo hello | punctual job create --file -"),
        2,
        &["JSON"],
    );
}

#[test]
fn a_dead_run_is_replayed_by_its_job_and_its_answer_is_shown() {
    let answer = format!("first line\n{}", "x".repeat(5_000));
    let receiver = Receiver::answering(move |delivery| match delivery.body.as_slice() {
        b"\"short\"" => Answer::status(400).saying("no\nway"),
        _ => Answer::status(400).saying(&answer),
    });
    let server = Server::start();
    server.printed(&format!(
        "job create --key bad --in 0s --url {}",
        receiver.url("/")
    ));
    let dead = |count: usize| {
        wait_for("the dead runs", || {
            let runs = value(&server.printed("run list --job key:bad --state dead --json"));
            let items = runs["items"].as_array().unwrap();
            (items.len() == count).then(|| items[0]["id"].as_str().unwrap().to_owned())
        })
    };
    let first = dead(1);
    let shown = server.printed(&format!("run show {first}"));
    for part in [
        "\nkey ",
        "\nduration ",
        "answer (cut: only the first 4096 bytes are kept):\n  first line\n  xxx",
    ] {
        assert!(shown.contains(part), "{shown} does not say {part:?}");
    }
    let started = server.printed("job retry bad --payload '\"short\"'");
    assert!(started.contains(&format!(" from {first}")), "{started}");
    let second = dead(2);
    let shown = server.printed(&format!("run show {second}"));
    assert!(
        shown.ends_with("answer (6 bytes, all of it):\n  no\n  way\n"),
        "{shown}"
    );
    assert!(
        server
            .printed(&format!("run retry {second}"))
            .contains(&second)
    );
}

#[test]
fn a_deleted_job_breaks_its_running_run_off_as_the_help_says() {
    let receiver = Receiver::answering(|_| Answer::ok().after(Duration::from_secs(20)));
    let server = Server::start();
    server.printed(&format!(
        "job create --key slow --in 0s --url {}",
        receiver.url("/")
    ));
    wait_for("the delivery", || (receiver.count() == 1).then_some(()));
    let runs = value(&server.printed("run list --job slow --json"));
    let run = runs["items"][0]["id"].as_str().unwrap().to_owned();
    server.printed("job delete slow");
    wait_for("its end", || {
        let run = value(&server.printed(&format!("run show {run} --json")));
        (run["state"] == "cancelled").then_some(())
    });
    let help = String::from_utf8(punctual("job delete --help").stdout).unwrap();
    assert!(help.contains("under way is broken off"), "{help}");
}
