//! What is kept of an exchange, and what counts as success.

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use model::success::{JsonEquals, Statuses, Success};
use model::target::{HttpTarget, check_keep_headers};
use model::{Exchange, Outcome, Report, RetryHint};

use super::receiver::{OK, Receiver, Step, deliver, executor, order, pause, post, say, soon};
use crate::Executor;

fn exchange(report: &Report) -> &Exchange {
    report.exchange.as_deref().unwrap()
}

#[tokio::test]
async fn an_attempt_keeps_whom_it_reached_and_how_long_each_step_took() {
    let wait = || vec![Step::Drip(OK.into())];
    let receiver = Receiver::scripted(move |_| wait()).await;
    let executor = executor();
    let first = soon(executor.execute(order(post(&receiver.url("/")), None))).await;
    let times = exchange(&first).times;
    assert_eq!(exchange(&first).peer, Some(receiver.address));
    assert!(times.connect.is_some() && times.tls.is_none(), "{times:?}");
    let (answered, total) = (times.first_byte.unwrap(), times.total.unwrap());
    assert!(answered >= Duration::from_millis(100), "{times:?}");
    assert!(total >= answered + Duration::from_millis(5), "{times:?}");
    // The connection is kept, and so the next needs none.
    let second = soon(executor.execute(order(post(&receiver.url("/")), None))).await;
    assert_eq!(exchange(&second).times.connect, None);
    assert_eq!(exchange(&second).peer, Some(receiver.address));
}

#[tokio::test]
async fn whoever_drops_a_delivery_learns_how_far_it_came() {
    let receiver = Receiver::playing(vec![Step::Hang]).await;
    let order = order(post(&receiver.url("/")), None);
    let progress = order.progress.clone();
    let executor = executor();
    tokio::select! {
        report = executor.execute(order) => panic!("{report:?}"),
        () = async { while receiver.seen().is_empty() { pause(5).await } } => {}
    }
    let known = progress.exchange();
    assert_eq!(known.peer, Some(receiver.address));
    assert!(known.times.connect.is_some(), "{known:?}");
    assert_eq!(known.times.first_byte, None);
}

#[tokio::test]
async fn a_delivery_that_gets_no_answer_keeps_what_it_knows() {
    let receiver = Receiver::playing(vec![Step::Close]).await;
    let report = deliver(post(&receiver.url("/"))).await;
    assert_eq!(report.outcome, Outcome::Failed);
    assert_eq!(exchange(&report).peer, Some(receiver.address));
    assert!(exchange(&report).times.total.is_some());
}

#[tokio::test]
async fn the_headers_that_a_job_names_are_kept_and_secrets_are_not() {
    let answer = "HTTP/1.1 200 OK\r\nX-Request-Id: 7\r\nset-cookie: planted\r\netag: x\r\ncontent-length: 0\r\n\r\n";
    let receiver = Receiver::playing(say(answer)).await;
    let target = HttpTarget {
        keep_headers: check_keep_headers(["x-request-id", "Set-Cookie", "x-none"]).unwrap(),
        ..post(&receiver.url("/"))
    };
    let report = deliver(target).await;
    let kept = [("x-request-id", "7"), ("set-cookie", "***")];
    let kept = kept.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(exchange(&report).headers, kept);
}

#[tokio::test]
async fn an_answer_that_is_longer_than_what_is_kept_says_so() {
    let check = async |output_max: usize, expected: (&str, bool)| {
        let receiver = Receiver::playing(say(OK)).await;
        let target = post(&receiver.url("/")).output_max(output_max).unwrap();
        let report = deliver(target).await;
        let output = String::from_utf8(report.output.to_vec()).unwrap();
        assert_eq!((output.as_str(), report.truncated), expected);
    };
    check(2, ("ok", false)).await;
    check(1, ("o", true)).await;
    check(0, ("", true)).await;
}

/// What an answer comes to under a rule.
async fn report_of(rule: Success, answer: &str) -> Report {
    let receiver = Receiver::playing(say(answer)).await;
    let target = HttpTarget {
        success: Some(rule),
        ..post(&receiver.url("/")).output_max(4).unwrap()
    };
    deliver(target).await
}

fn statuses(texts: &[&str]) -> Success {
    let status = Some(Statuses::new(texts.iter().copied()).unwrap());
    Success { status, json: None }
}

#[tokio::test]
async fn the_statuses_of_a_rule_are_success_and_others_are_not() {
    let gone = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
    let report = report_of(statuses(&["404"]), gone).await;
    assert_eq!(
        (report.outcome, report.status),
        (Outcome::Succeeded, Some(404))
    );
    let report = report_of(statuses(&["404"]), OK).await;
    assert_eq!(
        (report.outcome, report.retry),
        (Outcome::Failed, RetryHint::Usual)
    );
    // What is not success is as it always was.
    let report = report_of(statuses(&["200"]), gone).await;
    assert_eq!(
        (report.outcome, report.retry),
        (Outcome::Failed, RetryHint::Never)
    );
}

#[tokio::test]
async fn what_the_answer_says_decides_beyond_the_head_that_is_kept() {
    let rule = || Success {
        status: None,
        json: Some(JsonEquals::new("/ok", "true".to_owned()).unwrap()),
    };
    let say = |status: &str, body: &str| {
        let length = body.len();
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}")
    };
    let report = report_of(rule(), &say("200 OK", r#"{"a": [1, 2], "ok": true}"#)).await;
    assert_eq!(
        (report.outcome, report.truncated),
        (Outcome::Succeeded, true)
    );
    assert_eq!(&report.output[..], br#"{"a""#);
    let report = report_of(rule(), &say("200 OK", r#"{"ok": false}"#)).await;
    assert_eq!(
        report.error.as_deref(),
        Some("the answer does not have true at /ok")
    );
    assert_eq!(
        (report.outcome, report.retry),
        (Outcome::Failed, RetryHint::Usual)
    );
    let report = report_of(rule(), &say("500 No", r#"{"ok": true}"#)).await;
    assert_eq!(report.outcome, Outcome::Failed);
    let long = format!("{{\"ok\": true, \"x\": \"{}\"}}", "x".repeat(65_536));
    let report = report_of(rule(), &say("200 OK", &long)).await;
    assert!(
        report.error.unwrap().contains("longer than the 65536"),
        "too long"
    );
}

fn packed(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn gzip_answer(body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

#[tokio::test]
async fn a_packed_answer_is_kept_unpacked_and_a_bomb_is_cut() {
    let check = async |body: Vec<u8>, output: &[u8], truncated: bool, is_odd: bool| {
        let receiver = Receiver::playing(say(gzip_answer(&body))).await;
        let report = deliver(post(&receiver.url("/")).output_max(9).unwrap()).await;
        assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
        assert_eq!((&report.output[..], report.truncated), (output, truncated));
        assert_eq!(exchange(&report).note.is_some(), is_odd, "{report:?}");
    };
    check(packed(b"{\"ok\": 1}"), b"{\"ok\": 1}", false, false).await;
    check(packed(&vec![b'0'; 20_000_000]), b"000000000", true, false).await;
    check(b"no gzip".to_vec(), b"no gzip", false, true).await;
    check(
        [packed(b"ok"), b"more".to_vec()].concat(),
        b"ok",
        false,
        true,
    )
    .await;
}

#[tokio::test]
async fn success_is_searched_in_what_a_packed_answer_stands_for() {
    let body = packed(br#"{"ok": true}"#);
    let receiver = Receiver::playing(say(gzip_answer(&body))).await;
    let json = Some(JsonEquals::new("/ok", "true".to_owned()).unwrap());
    let target = HttpTarget {
        success: Some(Success { status: None, json }),
        ..post(&receiver.url("/"))
    };
    assert_eq!(deliver(target).await.outcome, Outcome::Succeeded);
}
