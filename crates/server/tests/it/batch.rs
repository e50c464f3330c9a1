use axum::body::Body;
use axum::http::Request;
use futures_util::StreamExt;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::world::{OK, Reply, World};

const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");

fn line(number: usize) -> String {
    format!(r#"{{"schedule":{{"at":"2099-01-01T00:00:00Z"}},"target":"{OK}","payload":{number}}}"#)
}

fn lines(reply: &Reply) -> Vec<Value> {
    assert_eq!(reply.header("content-type"), Some("application/x-ndjson"));
    reply
        .text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn ten_thousand_lines_are_answered_in_order() {
    let world = World::new().await;
    let body: String = (1..=10_000).map(|number| line(number) + "\n").collect();
    let reply = world
        .call("POST", "/v1/jobs/batch", &[NDJSON], body)
        .await
        .is(200);
    let answers = lines(&reply);
    assert_eq!(answers.len(), 10_000);
    for (index, answer) in answers.iter().enumerate() {
        assert_eq!(answer["line"], index + 1);
        assert_eq!(answer["status"], 201);
    }
    assert_eq!(world.store.all_jobs().len(), 10_000);
    let job = world
        .get(&format!(
            "/v1/jobs/{}",
            answers[4_321]["id"].as_str().unwrap()
        ))
        .await
        .is(200);
    assert_eq!(job.get("payload"), "4322");
}

#[tokio::test]
async fn a_bad_line_is_named_and_the_others_go_on() {
    let world = World::new().await;
    let long = format!(r#"{{"payload":"{}"}}"#, "x".repeat(600_000));
    let bad = [
        ("{", "body-unreadable", None),
        ("", "body-unreadable", None),
        ("[]", "field-invalid", None),
        (r#"{"schedule":"@daily"}"#, "field-missing", Some("target")),
        (
            r#"{"schedule":"75 * * * *","target":"http://a/"}"#,
            "schedule-invalid",
            Some("schedule"),
        ),
        (
            r#"{"schedule":"@daily","target":"http://a/","tiemout":"1s"}"#,
            "field-unknown",
            Some("tiemout"),
        ),
        (
            r#"{"schedule":{"at":"2001-01-01T00:00:00Z"},"target":"http://a/"}"#,
            "in-past",
            Some("schedule.at"),
        ),
        (long.as_str(), "body-too-large", None),
    ];
    let mut body = String::new();
    for (text, ..) in &bad {
        body.push_str(&format!("{}\r\n{text}\n", line(0)));
    }
    body.push_str(&line(0));
    let reply = world
        .call("POST", "/v1/jobs/batch", &[NDJSON], body)
        .await
        .is(200);
    let answers = lines(&reply);
    assert_eq!(answers.len(), 17);
    for (index, answer) in answers.iter().enumerate() {
        assert_eq!(answer["line"], index + 1);
        if index % 2 == 0 {
            assert_eq!(answer["status"], 201, "{answer}");
            continue;
        }
        let (text, problem, field) = bad[index / 2];
        let error = &answer["error"];
        assert_eq!(
            error["type"],
            format!("/problems/{problem}"),
            "{text}: {answer}"
        );
        assert_eq!(error["field"].as_str(), field, "{answer}");
        assert_eq!(answer["status"], error["status"]);
    }
    assert_eq!(world.store.all_jobs().len(), 9);
}

#[tokio::test]
async fn invalid_utf8_and_blank_ends_are_no_one_elses_problem() {
    let world = World::new().await;
    let mut body = format!("{}\n", line(1)).into_bytes();
    body.extend_from_slice(b"{\"key\": \"\xff\"}\n");
    body.extend_from_slice(format!("{}\n\n  \n\r\n", line(3)).as_bytes());
    let reply = world
        .call("POST", "/v1/jobs/batch", &[NDJSON], body)
        .await
        .is(200);
    let answers = lines(&reply);
    let statuses: Vec<_> = answers
        .iter()
        .map(|answer| answer["status"].as_u64().unwrap())
        .collect();
    assert_eq!(statuses, [201, 400, 201]);
    let empty = world
        .call("POST", "/v1/jobs/batch", &[NDJSON], "")
        .await
        .is(200);
    assert!(empty.text.is_empty());
}

#[tokio::test]
async fn a_key_that_is_taken_is_an_error_of_its_line() {
    let world = World::new().await;
    let line = |key: &str| json!({"key": key, "schedule": "@daily", "target": OK}).to_string();
    let body = [line("a"), line("b"), line("a")].join("\n");
    let reply = world
        .call("POST", "/v1/jobs/batch", &[NDJSON], body)
        .await
        .is(200);
    let answers = lines(&reply);
    assert_eq!(answers[2]["error"]["type"], "/problems/key-taken");
    assert_eq!(answers[2]["error"]["job"], answers[0]["id"]);
    assert_eq!(world.store.all_jobs().len(), 2);
}

#[tokio::test]
async fn a_batch_with_a_key_can_be_repeated() {
    let world = World::new().await;
    let body: String = (0..2_500).map(|number| line(number) + "\n").collect();
    let headers = [NDJSON, ("idempotency-key", "import-1")];
    let first = lines(
        &world
            .call("POST", "/v1/jobs/batch", &headers, body.clone())
            .await
            .is(200),
    );
    let again = lines(
        &world
            .call("POST", "/v1/jobs/batch", &headers, body)
            .await
            .is(200),
    );
    assert_eq!(world.store.all_jobs().len(), 2_500);
    for (first, again) in first.iter().zip(&again) {
        assert_eq!(first["id"], again["id"]);
        assert_eq!(again["replayed"], true);
    }
}

#[tokio::test]
async fn answers_come_while_lines_still_go() {
    let world = World::new().await;
    let (sender, receiver) = tokio::sync::mpsc::channel::<Result<String, std::io::Error>>(4);
    let body = Body::from_stream(tokio_stream::wrappers::ReceiverStream::new(receiver));
    let request = Request::post("/v1/jobs/batch")
        .header(NDJSON.0, NDJSON.1)
        .body(body)
        .unwrap();
    let response = world.router.clone().oneshot(request).await.unwrap();
    let mut answers = response.into_body().into_data_stream();
    for number in 1..=5 {
        let text = line(number);
        let (head, tail) = text.split_at(text.len() / 2);
        sender.send(Ok(head.to_owned())).await.unwrap();
        sender.send(Ok(format!("{tail}\n"))).await.unwrap();
        let answer: Value =
            serde_json::from_slice(&answers.next().await.unwrap().unwrap()).unwrap();
        assert_eq!(
            (&answer["line"], &answer["status"]),
            (&json!(number), &json!(201))
        );
    }
    drop(sender);
    assert!(answers.next().await.is_none());
}

#[tokio::test]
async fn a_body_that_breaks_off_keeps_what_was_answered() {
    let world = World::new().await;
    let frames = [
        Ok(line(1) + "\n" + &line(2) + "\n"),
        Err(std::io::Error::other("gone")),
    ];
    let body = Body::from_stream(futures_util::stream::iter(frames));
    let request = Request::post("/v1/jobs/batch")
        .header(NDJSON.0, NDJSON.1)
        .body(body)
        .unwrap();
    let response = world.router.clone().oneshot(request).await.unwrap();
    let text = response.into_body().collect().await.unwrap().to_bytes();
    let answers: Vec<Value> = text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let statuses: Vec<_> = answers
        .iter()
        .map(|answer| answer["status"].as_u64().unwrap())
        .collect();
    assert_eq!(statuses, [201, 201, 408]);
    assert_eq!(world.store.all_jobs().len(), 2);
}
