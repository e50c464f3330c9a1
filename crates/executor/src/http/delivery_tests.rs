//! What is sent, and what each answer means.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::target::HttpTarget;
use model::{Outcome, Report, RetryHint};

use super::receiver::{OK, Receiver, bare, deliver, executor, order, post, say, soon};
use super::trace::TraceParent;
use crate::{Executor, Signer};

async fn answered(answer: &str) -> Report {
    let receiver = Receiver::playing(say(answer)).await;
    deliver(post(&receiver.url("/hook"))).await
}

#[tokio::test]
async fn the_target_gets_the_run_and_the_payload() {
    let receiver = Receiver::playing(say(OK)).await;
    let target = post(&receiver.url("/a/b?c=d%20e"))
        .header("X-Team", "ops")
        .unwrap();
    let order = order(target, Some("{ \"é\": [1,2] }\n"));
    let mut report = soon(executor().execute(order.clone())).await;
    let exchange = report.exchange.take().unwrap();
    assert_eq!(exchange.peer, Some(receiver.address));
    assert_eq!(
        report,
        Report::succeeded()
            .with_status(200)
            .with_output(Bytes::from_static(b"ok"))
    );

    let seen = receiver.seen().remove(0);
    assert_eq!(seen.line, "POST /a/b?c=d%20e HTTP/1.1");
    assert_eq!(seen.body, "{ \"é\": [1,2] }\n".as_bytes());
    let run = order.run.to_string();
    let expected = [
        ("host", receiver.address.to_string()),
        ("content-type", "application/json".to_owned()),
        ("content-length", "16".to_owned()),
        ("accept-encoding", "gzip".to_owned()),
        (
            "traceparent",
            TraceParent {
                run: order.run,
                attempt: order.attempt,
            }
            .to_string(),
        ),
        ("x-team", "ops".to_owned()),
        (
            "user-agent",
            format!("punctual/{}", env!("CARGO_PKG_VERSION")),
        ),
        ("idempotency-key", run.clone()),
        ("punctual-run", run),
        ("punctual-job", order.job.id.to_string()),
        ("punctual-slot", "2026-12-24T19:00:00.000Z".to_owned()),
        ("punctual-attempt", "3".to_owned()),
        ("punctual-lane", "standard".to_owned()),
        ("punctual-node", "node-1".to_owned()),
    ];
    for (name, value) in &expected {
        assert_eq!(seen.header(name), Some(value.as_str()), "{name}");
    }
    assert_eq!(seen.headers.len(), expected.len(), "{:?}", seen.headers);
}

#[tokio::test]
async fn what_is_signed_is_the_run_the_moment_and_the_body_as_it_is_sent() {
    let receiver = Receiver::playing(say(OK)).await;
    let signer = Signer::new(["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]).unwrap();
    for (method, payload) in [
        ("POST", Some("{ \"é\": 1 }")),
        ("POST", None),
        ("GET", Some("{}")),
    ] {
        let target = HttpTarget::new(&receiver.url("/"), Some(method)).unwrap();
        let mut order = order(target, payload);
        order.signer = Some(Arc::new(signer.clone()));
        soon(executor().execute(order.clone())).await;
        let seen = receiver.seen().pop().unwrap();
        let run = order.run.to_string();
        assert_eq!(seen.header("webhook-id"), Some(run.as_str()));
        assert_eq!(seen.header("webhook-timestamp"), Some("1798138800"));
        let expected = signer.sign(&run, order.sent_at, &seen.body);
        assert_eq!(seen.header("webhook-signature"), Some(expected.as_str()));
    }
}

#[tokio::test]
async fn a_manual_run_has_no_slot_and_may_bring_its_own_payload() {
    let receiver = Receiver::playing(say(OK)).await;
    let mut order = order(post(&receiver.url("")), Some("{}"));
    order.slot = None;
    order.payload = Some(Bytes::from_static(b"[7]"));
    soon(executor().execute(order)).await;
    let seen = receiver.seen().remove(0);
    assert_eq!(seen.line, "POST / HTTP/1.1");
    assert_eq!(seen.header("punctual-slot"), None);
    assert_eq!(seen.body, b"[7]");
}

#[tokio::test]
async fn a_job_may_say_whose_trace_it_is_and_which_coding_it_takes() {
    let receiver = Receiver::playing(say(OK)).await;
    let theirs = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
    let target = post(&receiver.url("/")).header("Traceparent", theirs);
    let target = target.unwrap().header("accept-encoding", "identity");
    deliver(target.unwrap()).await;
    let seen = receiver.seen().remove(0);
    assert_eq!(seen.header("traceparent"), Some(theirs));
    assert_eq!(seen.header("accept-encoding"), Some("identity"));
}

#[tokio::test]
async fn a_run_goes_on_with_the_trace_of_whoever_started_it() {
    let receiver = Receiver::playing(say(OK)).await;
    let callers = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let traced = |target| crate::WorkOrder {
        trace: model::Trace::parse(callers),
        ..order(target, None)
    };
    soon(executor().execute(traced(post(&receiver.url("/"))))).await;
    let jobs = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
    let target = post(&receiver.url("/")).header("traceparent", jobs);
    soon(executor().execute(traced(target.unwrap()))).await;
    let sent: Vec<_> = receiver.seen();
    let sent: Vec<_> = sent.iter().map(|seen| seen.header("traceparent")).collect();
    assert_eq!(
        sent,
        [Some(callers), Some(jobs)],
        "what a job says comes first"
    );
}

#[tokio::test]
async fn a_job_may_name_another_content_type() {
    let receiver = Receiver::playing(say(OK)).await;
    let target = post(&receiver.url("/"))
        .header("Content-Type", "text/plain")
        .unwrap();
    soon(executor().execute(order(target, Some("7")))).await;
    assert_eq!(
        receiver.seen().remove(0).header("content-type"),
        Some("text/plain")
    );
}

#[tokio::test]
async fn a_body_is_sent_only_where_it_means_something() {
    let receiver = Receiver::playing(say("HTTP/1.1 204 No Content\r\n\r\n")).await;
    let executor = executor();
    let cases = [
        ("GET", Some("{}"), None),
        ("HEAD", Some("{}"), None),
        ("POST", None, Some("0")),
        ("DELETE", None, None),
        ("PUT", Some("{}"), Some("2")),
        ("PATCH", Some("{}"), Some("2")),
        ("DELETE", Some("{}"), Some("2")),
    ];
    for (no, (method, payload, length)) in cases.into_iter().enumerate() {
        let target = HttpTarget::new(&receiver.url("/?q"), Some(method)).unwrap();
        let report = soon(executor.execute(order(target, payload))).await;
        assert_eq!(report.outcome, Outcome::Succeeded, "{method}: {report:?}");
        let seen = receiver.seen().remove(no);
        assert_eq!(seen.line, format!("{method} /?q HTTP/1.1"));
        assert_eq!(seen.header("content-length"), length, "{method}");
        assert_eq!(
            seen.header("content-type").is_some(),
            !seen.body.is_empty(),
            "{method}"
        );
    }
}

#[tokio::test]
async fn every_2xx_is_a_success() {
    for status in [200, 201, 202, 203, 204, 206, 226, 299] {
        let report = answered(&format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n")).await;
        assert_eq!(bare(report), Report::succeeded().with_status(status));
    }
}

async fn check(status: i32, retry: RetryHint) {
    let report = answered(&format!(
        "HTTP/1.1 {status} X\r\ncontent-length: 3\r\n\r\nwhy"
    ))
    .await;
    assert_eq!(
        (report.outcome, report.retry),
        (Outcome::Failed, retry),
        "{status}"
    );
    assert_eq!(report.status, Some(status));
    assert_eq!(
        &report.output[..],
        if status == 304 { &b""[..] } else { &b"why"[..] }
    );
    let error = report.error.unwrap();
    assert!(
        error.starts_with(&format!("the target answered {status}")),
        "{error}"
    );
}

#[tokio::test]
async fn statuses_that_pass_are_tried_again() {
    for status in [408, 425, 429, 500, 501, 502, 503, 504, 507, 529, 599] {
        check(status, RetryHint::Usual).await;
    }
}

#[tokio::test]
async fn statuses_that_stay_are_not_tried_again() {
    for status in [
        300, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 409, 410, 413, 422, 451, 499,
    ] {
        check(status, RetryHint::Never).await;
    }
}

#[tokio::test]
async fn a_status_that_http_does_not_know_counts_as_broken() {
    for status in [600, 999] {
        check(status, RetryHint::Usual).await;
    }
}

#[tokio::test]
async fn retry_after_counts_for_what_is_tried_again_and_for_nothing_else() {
    let with = |status, value| {
        format!(
            "HTTP/1.1 {status} X\r\nretry-after: {value}\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
             content-length: 0\r\n\r\n"
        )
    };
    let after = |seconds| RetryHint::After(Duration::from_secs(seconds));
    let cases = [
        (429, "7", after(7)),
        (503, "120", after(120)),
        (503, "Sun, 06 Nov 1994 08:50:07 GMT", after(30)),
        (503, "soon", RetryHint::Usual),
        (500, "-3", RetryHint::Usual),
        (404, "7", RetryHint::Never),
        (301, "7", RetryHint::Never),
    ];
    for (status, value, expected) in cases {
        assert_eq!(
            answered(&with(status, value)).await.retry,
            expected,
            "{status} {value}"
        );
    }
}

#[tokio::test]
async fn a_redirect_is_named_and_not_followed() {
    let other = Receiver::playing(say(OK)).await;
    let location = other.url("/elsewhere");
    let report = answered(&format!(
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"
    ))
    .await;
    assert_eq!(
        report.error.unwrap(),
        format!(
            "the target answered 307 Temporary Redirect to {location}: redirects are not followed"
        )
    );
    assert_eq!(other.accepted(), 0);

    let long = "x".repeat(10_000);
    let report = answered(&format!(
        "HTTP/1.1 302 Found\r\nlocation: /{long}\r\ncontent-length: 0\r\n\r\n"
    ))
    .await;
    assert!(report.error.unwrap().len() < 400);
}

#[tokio::test]
async fn an_answer_before_the_answer_is_ignored() {
    let report = answered(&format!(
        "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n{OK}"
    ))
    .await;
    assert_eq!(
        (report.outcome, report.status),
        (Outcome::Succeeded, Some(200))
    );
}
