//! Signed callbacks, from the command to what a receiver gets.

use std::fs;

use executor::Signer;
use model::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Answer, Delivery, KEYS, Receiver, Server, list, wait_for};

/// What a signature by these secrets would be.
fn expected(delivery: &Delivery, secrets: &[&str]) -> String {
    let seconds: i64 = delivery.header("webhook-timestamp").parse().unwrap();
    let at = Timestamp::from_millis(seconds * 1_000);
    let signer = Signer::new(secrets.iter().copied()).unwrap();
    signer.sign(delivery.header("webhook-id"), at, &delivery.body)
}

/// Runs the job, and gives what the receiver got of it.
fn delivered(server: &Server, receiver: &Receiver) -> Delivery {
    let before = receiver.count();
    server.printed("job run signed");
    wait_for("the callback", || (receiver.count() > before).then_some(()));
    receiver.deliveries().pop().unwrap()
}

fn id_of(server: &Server, at: usize) -> String {
    let listed: Value = serde_json::from_str(&server.printed("signing list --json")).unwrap();
    listed["items"][at]["id"].as_str().unwrap().to_owned()
}

#[test]
fn callbacks_are_signed_while_there_is_a_secret_and_by_both_while_there_are_two() {
    let folder = TempDir::new().unwrap();
    let server = Server::start_in(folder.path(), &[KEYS]);
    let receiver = Receiver::start();
    let url = receiver.url("/");
    server.printed(&format!(
        "job create --key signed --cron @yearly --url {url} --payload '{{\"n\": 1}}'"
    ));
    let unsigned = delivered(&server, &receiver);
    assert!(
        !unsigned
            .headers
            .keys()
            .any(|name| name.starts_with("webhook-"))
    );

    let first = server.printed("signing create");
    let first = first.trim();
    let one = delivered(&server, &receiver);
    assert_eq!(one.header("webhook-id"), one.header("punctual-run"));
    let sent = one.header("webhook-timestamp").parse::<i64>().unwrap();
    assert!((one.at_micros / 1_000_000 - sent).abs() <= 5, "{sent}");
    assert_eq!(one.header("webhook-signature"), expected(&one, &[first]));

    let second = server.printed("signing create");
    let second = second.trim();
    let both = delivered(&server, &receiver);
    assert_eq!(
        both.header("webhook-signature"),
        expected(&both, &[first, second])
    );
    let third = server.cli("signing create");
    assert!(!third.status.success());

    server.printed(&format!("signing delete {}", id_of(&server, 0)));
    let last = delivered(&server, &receiver);
    assert_eq!(last.header("webhook-signature"), expected(&last, &[second]));
    assert!(!server.log().contains("whsec_") && !server.printed("audit list").contains("whsec_"));
    server.printed(&format!("signing delete {}", id_of(&server, 0)));
    let unsigned = delivered(&server, &receiver);
    assert!(!unsigned.headers.contains_key("webhook-signature"));
}

#[test]
fn every_attempt_of_a_run_has_the_same_id_and_its_own_moment() {
    let server = Server::start();
    let receiver = Receiver::answering(|delivery| {
        let is_first = delivery.header("punctual-attempt") == "1";
        if is_first {
            Answer::status(503)
        } else {
            Answer::ok()
        }
    });
    let secret = server.printed("signing create");
    let job = json!({"schedule": {"in": "0s"}, "target": receiver.url("/"),
        "retry": {"attempts_max": 2, "delay_first": "1100ms", "jitter": 0}});
    assert_eq!(server.http().post("/v1/jobs", &job).status, 201);
    wait_for("both attempts", || (receiver.count() == 2).then_some(()));
    let [first, second] = <[Delivery; 2]>::try_from(receiver.deliveries()).unwrap();
    assert_eq!(first.header("webhook-id"), second.header("webhook-id"));
    assert_ne!(
        first.header("webhook-timestamp"),
        second.header("webhook-timestamp")
    );
    for delivery in [first, second] {
        let signature = expected(&delivery, &[secret.trim()]);
        assert_eq!(delivery.header("webhook-signature"), signature);
    }
}

#[test]
fn a_node_that_cannot_sign_sends_nothing() {
    let folder = TempDir::new().unwrap();
    let receiver = Receiver::start();
    let server = Server::start_in(folder.path(), &[]);
    server.printed("signing create");
    let job = json!({"key": "signed", "schedule": "@yearly", "target": receiver.url("/"),
        "retry": {"attempts_max": 2, "delay_first": "1ms"}});
    assert_eq!(server.http().post("/v1/jobs", &job).status, 201);
    assert!(server.stop().success());
    let key = folder.path().join("other.key");
    fs::write(&key, "07".repeat(32)).unwrap();
    let server = Server::start_in(folder.path(), &["--master-key-file", key.to_str().unwrap()]);
    server.printed("job run signed");
    let run = wait_for("its end", || {
        let runs = list(&server.http(), "/v1/runs?state=dead&");
        runs.into_iter().next()
    });
    let run = server
        .http()
        .get(&format!("/v1/runs/{}", run["id"].as_str().unwrap()));
    let run = run.json();
    assert_eq!(run["attempts"].as_array().unwrap().len(), 2, "{run}");
    let error = run["attempts"][0]["error"].as_str().unwrap();
    assert!(
        error.starts_with("not sent, because it could not be signed"),
        "{error}"
    );
    assert_eq!(receiver.count(), 0);
}
