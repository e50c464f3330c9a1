use serde_json::Value;

use super::{ADDRESS, block, run};
use crate::support::{Server, list, wait_for};

#[test]
fn the_first_job_shows_a_run_at_once() {
    let server = Server::start_with_keys();
    let script = block("README.md", "## A first job", "sh");
    // The binary is where this test has it, not where `make run` leaves it.
    let commands: Vec<&str> = script
        .lines()
        .filter(|line| !line.starts_with("export PATH"))
        .collect();
    let output = run(&commands.join("\n"), &server);
    let shown = String::from_utf8(output.stdout).unwrap();
    let last = shown.lines().last().unwrap();
    let sample = block("README.md", "## A first job", "text");
    let head = sample.lines().next().unwrap();
    assert!(
        shown.lines().any(|line| line == head),
        "the readme shows {head:?}, the command shows\n{shown}"
    );
    assert!(
        last.starts_with("run_") && last.contains("succeeded"),
        "{shown}"
    );
}

#[test]
fn the_job_of_the_readme_that_needs_nothing_but_curl_runs_now() {
    let server = Server::start_with_keys();
    let http = || server.http().with_key(&server.root_key());
    let readme = include_str!("../../../../../README.md");
    let (_, body) = readme.split_once("  -d '").unwrap();
    let body = body
        .split_once("'\n")
        .unwrap()
        .0
        .replace(ADDRESS, &server.address);
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(http().post("/v1/jobs", &body).status, 201);
    wait_for("its run", || {
        let runs = list(&http(), "/v1/runs?");
        runs.iter()
            .any(|run| run["state"] == "succeeded")
            .then_some(())
    });
}
