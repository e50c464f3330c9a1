//! What a target's answer leaves behind, as REST shows it: how long each step took, the headers that the job names, and
//! whether there was more than is kept.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::door::{certificates, path};
use crate::planted_doors::made;
use crate::proxy::run;
use crate::secrets::{root, set};
use crate::support::{Answer, Http, Receiver, Server};

/// The one attempt of a run that has ended.
fn attempt(http: &Http, target: Value) -> Value {
    let job = made(http, target, json!({}));
    let mut ended = run(http, &job);
    assert_eq!(ended["attempts"].as_array().unwrap().len(), 1, "{ended}");
    ended["attempts"][0].take()
}

#[track_caller]
fn span(exchange: &Value, name: &str) -> f64 {
    let span = exchange[name].as_f64();
    span.unwrap_or_else(|| panic!("no {name} in {exchange}"))
}

#[test]
fn an_attempt_over_tls_shows_its_times_and_headers_and_that_there_was_more() {
    let Some(files) = certificates() else { return };
    // A target with TLS, which answers more than is kept, and names its answers.
    let own = TempDir::new().unwrap();
    let (cert, key) = (path(&files, "one.pem"), path(&files, "one.key"));
    let target = Server::start_in(own.path(), &["--tls-cert", &cert, "--tls-key", &key]);
    let server = Server::start_with_keys();
    let ca = std::fs::read_to_string(path(&files, "ca.pem")).unwrap();
    set(&server, &["authority", "--host", "127.0.0.1"], &ca);
    let attempt = attempt(
        &root(&server),
        json!({"http": {
            "url": format!("{}/openapi.json", target.url()), "method": "GET", "tls": {"ca": "authority"},
            "keep_headers": ["X-Request-Id", "content-type", "x-none"],
        }}),
    );
    assert_eq!(attempt["outcome"], "succeeded", "{attempt}");
    assert_eq!(attempt["truncated"], true, "{attempt}");
    let exchange = &attempt["exchange"];
    assert_eq!(exchange["peer"], target.address.as_str());
    let steps = ["connect_ms", "tls_ms", "first_byte_ms", "total_ms"];
    let [connect, tls, first, total] = steps.map(|name| span(exchange, name));
    assert!(connect > 0.0 && tls > 0.0, "{exchange}");
    assert!(connect + tls <= first && first <= total, "{exchange}");
    let headers = exchange["headers"].as_object().unwrap();
    assert_eq!(headers.len(), 2, "{exchange}");
    assert_eq!(headers["content-type"], "application/json");
    assert!(headers["x-request-id"].is_string(), "{exchange}");
}

#[test]
fn an_attempt_without_tls_shows_no_time_for_it_and_an_answer_that_is_kept_whole() {
    let server = Server::start();
    let receiver = Receiver::answering(|_| Answer::ok().saying("all of it"));
    let attempt = attempt(&server.http(), json!(receiver.url("/hook")));
    assert_eq!(attempt["output"], "all of it");
    assert_eq!(attempt["truncated"], false, "{attempt}");
    let exchange = &attempt["exchange"];
    assert_eq!(exchange["tls_ms"], Value::Null);
    let steps = ["connect_ms", "first_byte_ms", "total_ms"];
    let [connect, first, total] = steps.map(|name| span(exchange, name));
    assert!(
        0.0 < connect && connect <= first && first <= total,
        "{exchange}"
    );
    assert_eq!(exchange["headers"], json!({}), "none was named");
}
