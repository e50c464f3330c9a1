use serde_json::json;

use super::{block, run};
use crate::support::{Answer, Receiver, Server, program, wait_for};

#[test]
fn work_that_reports_later_needs_nothing_but_curl() {
    if program("curl").is_none() {
        return;
    }
    let target = Receiver::answering(|_| Answer::status(202));
    let server = Server::start();
    let body = json!({
        "schedule": {"in": "100ms"}, "target": target.url("/"), "completion": "callback",
        "timeout": "6h", "heartbeat_within": "5m",
    });
    let made = server.http().post("/v1/jobs", &body);
    assert_eq!(made.status, 201, "{}", made.json());
    let delivered = wait_for("the callback", || target.deliveries().into_iter().next());
    let report = delivered.header("punctual-report-url");
    let (url, token) = (
        report.strip_suffix("/report").unwrap(),
        delivered.header("punctual-token"),
    );
    let commands = block("docs/guides/callbacks.md", "## What it sends", "sh");
    // What is refused must not look like success.
    let commands = commands.replace("curl -sS", "curl -sS --fail-with-body");
    let output = run(
        &format!("URL='{url}'\nTOKEN='{token}'\n{commands}"),
        &server,
    );
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains(r#""cancel":false"#), "{said}");
    assert!(said.contains("row 40000"), "{said}");
    let path = format!("/v1/runs/{}", delivered.header("punctual-run"));
    let ended = server.http().get(&path).json();
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(ended["attempts"][0]["output"], "100000 rows", "{ended}");
    let log = server.http().get(&format!("{path}/log")).json();
    assert_eq!(log["text"], "row 40000 of 100000\n", "{log}");
}
