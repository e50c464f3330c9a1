//! Errors: in the words of the command line, or as problem documents for programs.

use std::process::Output;

use serde_json::Value;

use super::value;
use crate::support::{Server, punctual};

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
        "job create --payload { --json",
        "job create --tz UTC --json",
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
