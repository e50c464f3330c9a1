//! Whom a node may call: the same jobs under one setting and another.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Http, KEYS, Receiver, Server, wait_for};

fn start(folder: &TempDir, arguments: &[&str]) -> (Server, Http) {
    let server = Server::start_in(folder.path(), &[&[KEYS], arguments].concat());
    let http = server.http().with_key(&server.root_key());
    (server, http)
}

fn job(url: &str) -> Value {
    json!({"schedule": "@yearly", "target": url, "retry": {"attempts_max": 2, "delay_first": "1ms"}})
}

/// Runs a job by hand, to its end.
fn run(http: &Http, id: &Value) -> Value {
    let path = format!("/v1/jobs/{}/run", id.as_str().unwrap());
    let run = http.post(&path, &json!({})).json();
    let path = format!("/v1/runs/{}", run["id"].as_str().unwrap());
    wait_for("the run to end", || {
        let run = http.get(&path).json();
        ["succeeded", "dead"]
            .contains(&run["state"].as_str().unwrap())
            .then_some(run)
    })
}

#[test]
fn with_keys_a_node_calls_public_addresses_only_and_says_which_flag_allows_others() {
    let folder = TempDir::new().unwrap();
    let receiver = Receiver::start();
    let (server, http) = start(&folder, &["--egress-allow", "public"]);
    let refused = http.post("/v1/jobs", &job(&receiver.url("/literal")));
    assert_eq!(refused.status, 422);
    let refused = refused.json();
    assert_eq!(refused["type"], "/problems/egress-refused");
    assert_eq!(refused["field"], "target.http.url");
    assert_eq!(
        refused["detail"],
        "127.0.0.1 is a loopback address, which this node may not call: its operator can allow it with --egress-allow \
         public,loopback"
    );
    // A name may lead anywhere: it is looked at when it is called.
    let port = receiver.url("").rsplit(':').next().unwrap().to_owned();
    let named = job(&format!("http://localhost:{port}/name"));
    let named = http.post("/v1/jobs", &named).json();
    let run = run(&http, &named["id"]);
    assert_eq!(
        (&run["state"], &run["attempt"]),
        (&json!("dead"), &json!(2))
    );
    assert_eq!(
        run["attempts"][0]["error"],
        "localhost leads to a loopback address, which this node may not call: its operator can allow it with \
         --egress-allow public,loopback"
    );
    assert_eq!(receiver.count(), 0);
    drop(server);

    let (_server, http) = start(&folder, &["--egress-allow", "public,loopback"]);
    assert_eq!(self::run(&http, &named["id"])["state"], "succeeded");
    let literal = http.post("/v1/jobs", &job(&receiver.url("/literal")));
    assert_eq!(run_state(&http, &literal.json()), "succeeded");
    assert_eq!(receiver.count(), 2);
}

fn run_state(http: &Http, job: &Value) -> Value {
    run(http, &job["id"])["state"].clone()
}

#[test]
fn a_job_from_before_the_bound_is_not_sent_and_can_still_be_edited() {
    let folder = TempDir::new().unwrap();
    let receiver = Receiver::start();
    let (server, http) = start(&folder, &["--egress-allow", "all"]);
    let made = http.post("/v1/jobs", &job(&receiver.url("/"))).json();
    drop(server);
    let (_server, http) = start(&folder, &["--egress-allow", "public"]);
    let run = run(&http, &made["id"]);
    // An address stays what it is: another attempt cannot help.
    assert_eq!(
        (&run["state"], &run["attempt"]),
        (&json!("dead"), &json!(1))
    );
    let error = run["attempts"][0]["error"].as_str().unwrap();
    assert!(error.ends_with("--egress-allow public,loopback"), "{error}");
    assert_eq!(receiver.count(), 0);
    let path = format!("/v1/jobs/{}", made["id"].as_str().unwrap());
    let kind = [("content-type", "application/json")];
    let edit = |body: &str| http.send("PATCH", &path, &kind, body.as_bytes()).status;
    assert_eq!(edit(r#"{"timeout": "9s"}"#), 200);
    assert_eq!(edit(r#"{"target": {"http": {"method": "PUT"}}}"#), 422);
    assert_eq!(edit(r#"{"target": "https://example.com/"}"#), 200);
}

#[test]
fn ports_can_be_limited() {
    let folder = TempDir::new().unwrap();
    let (_server, http) = start(&folder, &["--egress-ports", "443,8000-8999"]);
    for (url, status) in [
        ("https://example.com/", 201),
        ("http://example.com:8080/", 201),
        ("http://example.com/", 422),
        ("https://example.com:22/", 422),
    ] {
        assert_eq!(http.post("/v1/jobs", &job(url)).status, status, "{url}");
    }
}

#[test]
fn without_keys_everything_may_be_called_and_the_start_warns_of_it() {
    let receiver = Receiver::start();
    let server = Server::start();
    let made = server.http().post("/v1/jobs", &job(&receiver.url("/")));
    assert_eq!(run_state(&server.http(), &made.json()), "succeeded");
    let warning = "jobs may call every address";
    assert!(server.log().contains(warning), "{}", server.log());
    let folder = TempDir::new().unwrap();
    let bounded = Server::start_in(folder.path(), &["--egress-allow", "public"]);
    assert!(!bounded.log().contains(warning));
    let refused = bounded.http().post("/v1/jobs", &job(&receiver.url("/")));
    assert_eq!(refused.status, 422);
}
