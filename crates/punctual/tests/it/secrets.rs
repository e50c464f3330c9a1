//! Planted secrets: after everything that can be done with them, a search of logs, answers and the data finds none.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Answer, BINARY, Http, KEYS, Receiver, Reply, Server, moment, wait_for};

const SECRET: &str = "planted+secret/value=1";
/// In a header, as nobody should send it.
const PLAIN: &str = "planted-header-value";
const MASTER: &str = "f00dfeed00112233445566778899aabbccddeeff00112233445566778899aabb";
const NEWER: &str = "0ddba11000112233445566778899aabbccddeeff00112233445566778899aabb";

/// Says back what it was sent, in every way that it can, and fails.
fn parrot() -> Receiver {
    Receiver::answering(|delivery| {
        let sent = delivery.headers.get("authorization");
        let sent = sent.map_or("", String::as_str);
        let word = sent.strip_prefix("Bearer ").unwrap_or(sent);
        let percent = word
            .replace('+', "%2B")
            .replace('/', "%2F")
            .replace('=', "%3D");
        Answer::status(400).saying(&format!("got {sent} and {percent}"))
    })
}

pub(crate) fn root(server: &Server) -> Http {
    server.http().with_key(&server.root_key())
}

/// The command line with something on its standard input.
pub(crate) fn set(server: &Server, arguments: &[&str], input: &str) -> String {
    let mut child = Command::new(BINARY)
        .args(["secret", "set"])
        .args(arguments)
        .args(["--server", &server.url()])
        .env("PUNCTUAL_KEY", server.root_key())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A run of the job, once it is dead.
pub(crate) fn dead(http: &Http, job: &str) -> Value {
    let run = http.post(&format!("/v1/jobs/{job}/run"), &json!({})).json();
    let path = format!("/v1/runs/{}", run["id"].as_str().unwrap());
    wait_for("the run to end", || {
        let run = http.get(&path).json();
        (run["state"] == "dead").then_some(run)
    })
}

pub(crate) fn text(reply: &Reply) -> String {
    assert_eq!(reply.status, 200);
    String::from_utf8_lossy(&reply.body).into_owned()
}

pub(crate) fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|at| at == text.as_bytes())
}

/// Every file of a folder that holds a text.
pub(crate) fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.is_file() && holds(&fs::read(path).unwrap(), text));
    files
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect()
}

fn job(url: &str, header: &str) -> Value {
    json!({"schedule": "@yearly", "retry": {"attempts_max": 1},
        "target": {"http": {"url": url, "headers": {"Authorization": header}}}})
}

/// Everything that can be read about a job and its secret, and what an edit answers.
fn all_about(server: &Server, http: &Http, id: &str) -> Vec<String> {
    let patch = json!({"timeout": "9s"}).to_string();
    let kind = [("content-type", "application/json")];
    let path = format!("/v1/jobs/{id}");
    let mut answers = Vec::new();
    answers.push(text(&http.send("PATCH", &path, &kind, patch.as_bytes())));
    for path in [
        &path,
        "/v1/jobs",
        "/v1/runs",
        "/v1/secrets",
        "/v1/secrets/api",
        &format!("{path}/runs"),
        &format!("{path}/explain?at=2030-01-01T00:00:00Z"),
        "/metrics",
    ] {
        answers.push(text(&http.get(path)));
    }
    for line in [
        "secret list",
        "secret show api",
        "job list",
        &format!("job show {id}"),
    ] {
        answers.push(server.printed(line));
    }
    answers
}

#[test]
fn planted_secrets_are_found_nowhere() {
    let (own, receiver) = (TempDir::new().unwrap(), parrot());
    let key = own.path().join("master");
    fs::write(&key, MASTER).unwrap();
    let data = own.path().join("data");
    let arguments = [
        KEYS,
        "--log",
        "trace",
        "--master-key-file",
        key.to_str().unwrap(),
    ];
    let server = Server::start_in(&data, &arguments);
    assert!(
        server.log().contains("chmod 600"),
        "others can read the key"
    );
    let http = root(&server);
    let said = set(
        &server,
        &["api", "--host", "127.0.0.1"],
        &format!("{SECRET}\n"),
    );
    assert_eq!(said, "api is at version 1\n");
    let url = receiver.url("/hook?token=planted-parameter");
    let template = "Bearer {{ secret('api') }}";
    let made = http.post("/v1/jobs", &job(&url, template)).json();
    let id = made["id"].as_str().unwrap();
    let run = dead(&http, id);
    assert_eq!(
        receiver.deliveries()[0].header("authorization"),
        format!("Bearer {SECRET}")
    );
    let output = run["attempts"][0]["output"].as_str().unwrap();
    assert_eq!(output, "got Bearer *** and ***");
    let mut answers = vec![made.to_string(), run.to_string()];
    answers.extend(all_about(&server, &http, id));
    let plain = http.post("/v1/jobs", &job(&url, PLAIN)).json();
    answers.push(plain.to_string());
    dead(&http, plain["id"].as_str().unwrap());
    answers.push(server.log());
    for answer in &answers {
        assert!(!answer.contains("planted"), "{answer}");
        assert!(!answer.contains(MASTER), "{answer}");
    }
    assert_eq!(server.stop().code(), Some(0));
    for text in [SECRET, MASTER, "planted%2Bsecret"] {
        assert_eq!(files_with(&data, text), Vec::<String>::new(), "{text}");
    }
    // What somebody writes into a header stands in the job: secrets are the way.
    assert!(!files_with(&data, PLAIN).is_empty());
}

#[test]
fn the_master_key_is_changed_without_losing_a_secret() {
    let (own, receiver) = (TempDir::new().unwrap(), parrot());
    let (data, key) = (own.path().join("data"), own.path().join("master"));
    let arguments = [KEYS, "--master-key-file", key.to_str().unwrap()];
    fs::write(&key, MASTER).unwrap();
    let server = Server::start_in(&data, &arguments);
    set(&server, &["api", "--host", "127.0.0.1"], SECRET);
    let job = root(&server).post("/v1/jobs", &job(&receiver.url("/"), "{{ secret('api') }}"));
    let id = job.json()["id"].as_str().unwrap().to_owned();
    server.stop();
    // The new one first: it seals, and the other only opens.
    fs::write(&key, format!("{NEWER}\n{MASTER}\n")).unwrap();
    let server = Server::start_in(&data, &arguments);
    dead(&root(&server), &id);
    assert_eq!(receiver.count(), 1);
    let said = server.printed("secret rewrap");
    assert!(
        said.starts_with("1 secrets are under the master key"),
        "{said}"
    );
    assert!(server.printed("secret rewrap").starts_with("0 secrets"));
    server.stop();
    fs::write(&key, NEWER).unwrap();
    let server = Server::start_in(&data, &arguments);
    dead(&root(&server), &id);
    assert_eq!(receiver.deliveries()[1].header("authorization"), SECRET);
    server.stop();
    // A node that does not have it serves the rest, and says what does not work.
    fs::write(&key, MASTER).unwrap();
    let server = Server::start_in(&data, &arguments);
    let warned = || {
        server
            .log()
            .contains("which this node does not have")
            .then_some(())
    };
    wait_for("the warning", warned);
    let error = dead(&root(&server), &id)["attempts"][0]["error"].to_string();
    assert!(error.contains("which this node does not have"), "{error}");
    assert_eq!(receiver.count(), 2, "nothing was sent");
}

/// What `secret show` says that a secret is under.
fn master_key_of(server: &Server, name: &str) -> String {
    let path = format!("/v1/secrets/{name}");
    let shown = root(server).get(&path).json();
    shown["master_key"].as_str().unwrap().to_owned()
}

/// The keys in the file become those of a node that works on.
fn hang_up(server: &Server, expected: &str) {
    let before = server.log().matches(expected).count();
    server.signal(Signal::SIGHUP);
    wait_for(expected, || {
        (server.log().matches(expected).count() > before).then_some(())
    });
}

/// A run whose target has it, and its token.
fn handed_over(http: &Http, later: &Receiver) -> (String, String) {
    let target = json!({"http": {"url": later.url("/later")}});
    let body = json!({"schedule": "@yearly", "target": target, "completion": "callback"});
    let job = http.post("/v1/jobs", &body).json();
    let path = format!("/v1/jobs/{}/run", job["id"].as_str().unwrap());
    let run = http.post(&path, &json!({})).json()["id"].clone();
    let run = run.as_str().unwrap().to_owned();
    wait_for("the hand-over", || {
        let shown = http.get(&format!("/v1/runs/{run}")).json();
        shown["handed_over"].is_object().then_some(())
    });
    let sent = later.deliveries();
    let sent = sent.iter().find(|it| it.header("punctual-run") == run);
    let token = sent.unwrap().header("punctual-token").to_owned();
    (run, token)
}

fn report(http: &Http, (run, token): &(String, String)) -> u16 {
    let headers = [
        ("punctual-token", token.as_str()),
        ("content-type", "application/json"),
    ];
    let body = json!({"outcome": "succeeded"}).to_string();
    let path = format!("/v1/runs/{run}/report");
    http.send("POST", &path, &headers, body.as_bytes()).status
}

#[test]
fn the_master_key_is_changed_while_a_job_fires_every_second() {
    let (own, receiver) = (TempDir::new().unwrap(), Receiver::start());
    let later = Receiver::answering(|_| Answer::status(202));
    let (data, key) = (own.path().join("data"), own.path().join("master"));
    let arguments = [KEYS, "--master-key-file", key.to_str().unwrap()];
    fs::write(&key, MASTER).unwrap();
    let server = Server::start_in(&data, &arguments);
    let http = root(&server);
    set(&server, &["api", "--host", "127.0.0.1"], SECRET);
    let mut body = job(&receiver.url("/"), "{{ secret('api') }}");
    body["schedule"] = json!({"every": "1s"});
    let id = http.post("/v1/jobs", &body).json()["id"].clone();
    let id = id.as_str().unwrap();
    let (first, second) = (handed_over(&http, &later), handed_over(&http, &later));
    let more = |count: usize| {
        let before = receiver.count();
        wait_for("more callbacks", || {
            (receiver.count() >= before + count).then_some(())
        });
    };
    more(2);
    let old = master_key_of(&server, "api");
    fs::write(&key, format!("{NEWER}\n{MASTER}\n")).unwrap();
    hang_up(&server, "seals from now on");
    more(2);
    // Sealed under the old one, and still open; what is new is under the new one.
    assert_eq!(master_key_of(&server, "api"), old);
    set(&server, &["other", "--host", "127.0.0.1"], SECRET);
    let new = master_key_of(&server, "other");
    assert_ne!(new, old);
    // It fails where a seal is not right; those of both keys are there.
    server.printed("audit verify");
    // What is no key changes nothing.
    fs::write(&key, "planted").unwrap();
    hang_up(&server, "the master keys stay as they were");
    let said = server.printed("secret rewrap");
    assert!(said.starts_with("1 secrets"), "{said}");
    assert_eq!(master_key_of(&server, "api"), new);
    fs::write(&key, NEWER).unwrap();
    hang_up(&server, "seals from now on");
    more(2);
    assert_eq!(report(&http, &first), 200);
    let sent = receiver.deliveries();
    assert!(sent.iter().all(|it| it.header("authorization") == SECRET));
    let runs = http.get(&format!("/v1/jobs/{id}/runs?limit=100")).json();
    let slots = runs["items"].as_array().unwrap().iter();
    let ended = slots.filter(|run| run["state"] == "succeeded");
    let mut slots: Vec<i64> = ended.map(|run| moment(&run["slot"])).collect();
    slots.sort_unstable();
    assert!(slots.len() >= 6, "{slots:?}");
    let gaps: Vec<i64> = slots.windows(2).map(|it| it[1] - it[0]).collect();
    assert!(gaps.iter().all(|gap| *gap == 1_000), "{gaps:?}");
    assert!(!server.log().contains(MASTER) && !server.log().contains(NEWER));
    server.stop();
    // Nothing is left that only the old one opens, tokens included.
    let server = Server::start_in(&data, &arguments);
    assert_eq!(report(&root(&server), &second), 200);
    assert!(!server.log().contains("which this node does not have"));
}
