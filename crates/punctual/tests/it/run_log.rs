//! The log of a run while its command still writes.

use std::fs;
use std::io::{BufRead, BufReader, Read};

use serde_json::{Value, json};
use store::postgres::server::PgServer;
use tempfile::TempDir;

use crate::shell::{allowing, ended, job, start, started};
use crate::support::{Http, Server, skip, wait_for};

/// A command that goes on when there is a file.
fn in_two_parts(folder: &TempDir, first: &str, second: &str) -> Value {
    let go = folder.path().join("go");
    let wait = format!("until [ -e {} ]; do sleep 0.02; done", go.display());
    job(&["/bin/sh", "-c", &format!("{first}; {wait}; {second}")])
}

fn go(folder: &TempDir) {
    fs::write(folder.path().join("go"), "").unwrap();
}

fn made(http: &Http, body: &Value) -> String {
    let job = http.post("/v1/jobs", body).json();
    started(http, &job)
}

fn log(http: &Http, run: &str, query: &str) -> Value {
    let reply = http.get(&format!("/v1/runs/{run}/log{query}"));
    assert_eq!(reply.status, 200, "{}", reply.json());
    reply.json()
}

fn says(http: &Http, run: &str, text: &str) {
    wait_for(text, || (log(http, run, "")["text"] == text).then_some(()));
}

#[test]
fn what_a_command_writes_is_there_while_it_runs_and_can_be_followed() {
    let folder = TempDir::new().unwrap();
    let (server, http) = start(&folder, "/bin/sh");
    let body = in_two_parts(
        &folder,
        "echo one; printf '\\303'",
        "printf '\\244\\ntwo\\n'",
    );
    let run = made(&http, &body);
    says(&http, &run, "one\n");
    let first = log(&http, &run, "");
    assert_eq!(
        (&first["next"], &first["ended"]),
        (&json!(4), &json!(false)),
        "half a character is left for later"
    );
    let follower = server.cli_started(&format!("run log {run} --follow"));
    let rest = server.cli_started(&format!("run log {run} -f --after 4 --json"));
    go(&folder);
    let printed = follower.wait_with_output().unwrap();
    assert!(printed.status.success(), "{printed:?}");
    assert_eq!(String::from_utf8_lossy(&printed.stdout), "one\nä\ntwo\n");
    let rest = rest.wait_with_output().unwrap().stdout;
    let parts: Vec<Value> = String::from_utf8(rest)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let text: String = parts
        .iter()
        .map(|part| part["text"].as_str().unwrap())
        .collect();
    assert_eq!(text, "ä\ntwo\n");
    assert_eq!(parts.last().unwrap()["ended"], true);
    assert_eq!(ended(&http, &run)["attempts"][0]["output"], "one\nä\ntwo\n");
    assert_eq!(log(&http, &run, "")["text"], "one\nä\ntwo\n");
    let wrong = http.get(&format!("/v1/runs/{run}/log?follow=maybe"));
    assert_eq!(
        (wrong.status, &wrong.json()["field"]),
        (400, &json!("follow"))
    );
}

#[test]
fn a_command_that_ends_at_once_leaves_its_log_and_each_attempt_adds_to_it() {
    let folder = TempDir::new().unwrap();
    let (server, http) = start(&folder, "/bin/sh");
    let run = made(
        &http,
        &job(&["/bin/sh", "-c", "echo attempt $PUNCTUAL_ATTEMPT; exit 1"]),
    );
    assert_eq!(ended(&http, &run)["state"], "dead");
    assert_eq!(log(&http, &run, "")["text"], "attempt 1\nattempt 2\n");
    assert_eq!(
        server.printed(&format!("run log {run} -f")),
        "attempt 1\nattempt 2\n",
        "followed, it ends at once"
    );
}

#[test]
fn a_secret_is_in_no_part_of_a_log_however_it_is_written() {
    let folder = TempDir::new().unwrap();
    let (_server, http) = start(&folder, "/bin/sh");
    let mut body = in_two_parts(
        &folder,
        "printf 'a %.5s' \"$TOKEN\"",
        "printf '%s b\n' \"${TOKEN#?????}\"",
    );
    body["target"]["shell"]["env"] = json!({"TOKEN": "planted-one"});
    let run = made(&http, &body);
    says(&http, &run, "a ");
    go(&folder);
    ended(&http, &run);
    assert_eq!(log(&http, &run, "")["text"], "a *** b\n");
}

#[test]
fn of_much_output_the_log_keeps_the_head_and_the_end() {
    let folder = TempDir::new().unwrap();
    let (_server, http) = start(&folder, "/bin/sh");
    let many =
        "echo first; i=0; while [ $i -lt 40000 ]; do echo line $i; i=$((i+1)); done; echo last";
    let run = made(&http, &job(&["/bin/sh", "-c", many]));
    ended(&http, &run);
    let head = log(&http, &run, "");
    assert!(
        head["text"]
            .as_str()
            .unwrap()
            .starts_with("first\nline 0\n")
    );
    let tail = log(&http, &run, &format!("?after={}", head["next"]));
    let text = tail["text"].as_str().unwrap();
    assert!(
        text.ends_with("line 39999\nlast\n"),
        "{}",
        &text[text.len() - 100..]
    );
}

#[test]
fn a_follower_goes_on_when_its_server_is_back() {
    let folder = TempDir::new().unwrap();
    let (server, http) = start(&folder, "/bin/sh");
    let body = in_two_parts(&folder, "echo attempt $PUNCTUAL_ATTEMPT", "echo done");
    let run = made(&http, &body);
    says(&http, &run, "attempt 1\n");
    let mut follower = server.cli_started(&format!("run log {run} --follow"));
    let mut printed = BufReader::new(follower.stdout.take().unwrap());
    let mut text = String::new();
    printed.read_line(&mut text).unwrap();
    let address = server.address.clone();
    server.kill();
    let arguments = [allowing("/bin/sh"), vec!["--listen".to_owned(), address]].concat();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let server = Server::start_in(folder.path(), &arguments);
    says(&server.http(), &run, "attempt 1\nattempt 2\n");
    go(&folder);
    printed.read_to_string(&mut text).unwrap();
    let ended = follower.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(text, "attempt 1\nattempt 2\ndone\n");
    assert!(String::from_utf8_lossy(&ended.stderr).contains("trying again"));
}

#[test]
fn a_log_is_followed_at_a_node_that_does_not_run_the_command() {
    let database = match PgServer::shared() {
        Ok(database) => database,
        Err(why) => return skip(&why.to_string()),
    };
    let (store, folder) = (database.fresh_schema(), TempDir::new().unwrap());
    let node = |parts: &str| {
        let more = ["--store", &store, "--parts", parts, "--node", parts].map(str::to_owned);
        let arguments = [allowing("/bin/sh"), more.to_vec()].concat();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Server::start_in(folder.path(), &arguments)
    };
    let (api, hands) = (node("api"), node("api,schedule,execute"));
    hands.is_ready();
    api.is_ready();
    let run = made(&api.http(), &in_two_parts(&folder, "echo one", "echo two"));
    says(&api.http(), &run, "one\n");
    let follower = api.cli_started(&format!("run log {run} --follow"));
    go(&folder);
    let printed = follower.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&printed.stdout), "one\ntwo\n");
}
