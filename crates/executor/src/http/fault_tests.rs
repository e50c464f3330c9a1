//! Targets that misbehave, and deliveries that are dropped.

use std::time::Duration;

use model::{Outcome, Report, RetryHint};
use tokio::net::TcpListener;

use super::receiver::{OK, Receiver, Step, bare, deliver, executor, order, post, say, soon};
use crate::Executor;

async fn played(steps: Vec<Step>) -> Report {
    let receiver = Receiver::playing(steps).await;
    let report = deliver(post(&receiver.url("/"))).await;
    // Whatever happened, nothing is left open once the executor has gone.
    receiver.ended(1).await;
    assert_eq!(receiver.seen().len(), 1, "it was sent once");
    report
}

async fn breaks(steps: Vec<Step>, error: &str) {
    let report = played(steps).await;
    assert_eq!(bare(report.clone()), Report::failed(error));
    assert_eq!(report.retry, RetryHint::Usual);
}

#[tokio::test]
async fn a_target_that_says_nothing_has_failed() {
    breaks(
        vec![Step::Close],
        "the target closed the connection without an answer",
    )
    .await;
}

#[tokio::test]
async fn a_reset_has_failed() {
    breaks(
        vec![Step::Reset],
        "the connection broke before the answer came",
    )
    .await;
}

#[tokio::test]
async fn a_head_that_breaks_off_has_failed() {
    let half = Step::Say(b"HTTP/1.1 200 OK\r\nconte".to_vec());
    breaks(
        vec![half, Step::Close],
        "the target closed the connection without an answer",
    )
    .await;
}

#[tokio::test]
async fn what_is_not_http_has_failed() {
    for garbage in [
        &b"SSH-2.0-OpenSSH_9.2\r\n"[..],
        b"220 mail.example.com ESMTP\r\n",
        b"\x16\x03\x01\x00\x05hello\r\n\r\n",
        b"\0\0\0\0\0\0\0\0\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"HTTP/9.9 200 OK\r\n\r\n",
    ] {
        breaks(
            vec![Step::Say(garbage.to_vec()), Step::Close],
            "the answer is not HTTP/1.1",
        )
        .await;
    }
}

#[tokio::test]
async fn a_megabyte_of_headers_has_failed() {
    let huge = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(1_000_000));
    breaks(say(huge), "the head of the answer is too large").await;
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(100_000));
    breaks(say(many), "the head of the answer is too large").await;
    let endless = vec![
        Step::Say(b"HTTP/1.1 200 OK\r\n".to_vec()),
        Step::Flood(b"a: b\r\n".repeat(1_000)),
    ];
    breaks(endless, "the head of the answer is too large").await;
}

#[tokio::test]
async fn a_head_may_be_large_but_not_larger_than_its_bound() {
    let head = |bytes| format!("HTTP/1.1 204 OK\r\nx: {}\r\n\r\n", "y".repeat(bytes));
    assert_eq!(played(say(head(60_000))).await.outcome, Outcome::Succeeded);
    breaks(say(head(70_000)), "the head of the answer is too large").await;
}

#[tokio::test]
async fn an_answer_that_breaks_off_has_failed_although_it_began_well() {
    let long = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf".to_vec();
    let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n".to_vec();
    for answer in [long, chunked] {
        for end in [Step::Close, Step::Reset] {
            let report = played(vec![Step::Say(answer.clone()), Step::Say(Vec::new()), end]).await;
            assert_eq!(
                (report.outcome, report.retry),
                (Outcome::Failed, RetryHint::Usual)
            );
            assert_eq!(report.status, Some(200));
            let error = report.error.unwrap();
            assert!(error.starts_with("the connection broke"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_refusal_that_breaks_off_is_still_a_refusal() {
    let answer = b"HTTP/1.1 404 Not Found\r\ncontent-length: 10\r\n\r\nhalf".to_vec();
    let report = played(vec![Step::Say(answer), Step::Close]).await;
    assert_eq!((report.status, report.retry), (Some(404), RetryHint::Never));
}

#[tokio::test]
async fn a_bad_chunk_has_failed() {
    let answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhalf\r\n".to_vec();
    let report = played(say(answer)).await;
    assert_eq!(
        (report.outcome, report.retry),
        (Outcome::Failed, RetryHint::Usual)
    );
}

#[tokio::test]
async fn a_port_where_nobody_listens_cannot_be_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let report = deliver(post(&format!("http://{address}/secret?token=1"))).await;
    assert_eq!(
        bare(report),
        Report::failed(format!("{address} cannot be reached"))
    );
}

#[tokio::test]
async fn only_the_head_of_an_endless_answer_is_kept() {
    let chunk = b"400\r\n"
        .iter()
        .copied()
        .chain([b'x'; 1024])
        .chain(*b"\r\n")
        .collect::<Vec<_>>();
    for head in [
        "transfer-encoding: chunked",
        "connection: close",
        "content-length: 999999999999",
    ] {
        let head = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").into_bytes();
        let receiver = Receiver::playing(vec![Step::Say(head), Step::Flood(chunk.clone())]).await;
        let executor = executor();
        let target = post(&receiver.url("/")).output_max(5_000).unwrap();
        let report = soon(executor.execute(order(target, None))).await;
        assert_eq!(report.outcome, Outcome::Succeeded);
        assert_eq!(report.output.len(), 5_000);
        // The executor is still there: it was the end of the reading that closed the connection.
        receiver.ended(1).await;
    }
}

#[tokio::test]
async fn an_announced_flood_is_left_as_soon_as_enough_has_come() {
    let head = b"HTTP/1.1 500 Oops\r\ncontent-length: 99999999\r\n\r\n0123456789".to_vec();
    let receiver = Receiver::playing(vec![Step::Say(head), Step::Hang]).await;
    let target = post(&receiver.url("/")).output_max(10).unwrap();
    let report = soon(executor().execute(order(target, None))).await;
    assert_eq!(
        (report.status, &report.output[..]),
        (Some(500), &b"0123456789"[..])
    );
}

/// A delivery that would never end is dropped; its target must see the connection close.
async fn dropped(steps: Vec<Step>) {
    let receiver =
        Receiver::scripted(move |no| if no == 0 { steps.clone() } else { say(OK) }).await;
    let executor = executor();
    let delivery = executor.execute(order(post(&receiver.url("/")), Some("{}")));
    assert!(
        tokio::time::timeout(Duration::from_millis(150), delivery)
            .await
            .is_err()
    );
    receiver.ended(1).await;

    // And what was dropped half-way is not used again.
    let report = soon(executor.execute(order(post(&receiver.url("/")), Some("{}")))).await;
    assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
    assert_eq!((receiver.accepted(), receiver.seen().len()), (2, 2));
}

#[tokio::test]
async fn dropping_a_delivery_that_waits_for_its_answer_closes_the_connection() {
    dropped(vec![Step::Hang]).await;
}

#[tokio::test]
async fn dropping_a_delivery_in_a_slow_head_closes_the_connection() {
    dropped(vec![Step::Drip(
        format!("HTTP/1.1 200 OK\r\n{}", "a: b\r\n".repeat(1_000)).into_bytes(),
    )])
    .await;
}

#[tokio::test]
async fn dropping_a_delivery_in_a_slow_body_closes_the_connection() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 4000\r\n\r\n".to_vec();
    dropped(vec![Step::Say(head.clone()), Step::Drip(vec![b'x'; 4000])]).await;
    dropped(vec![Step::Say(head), Step::Hang]).await;
}

#[tokio::test]
async fn dropping_a_delivery_under_endless_words_before_the_answer_closes_the_connection() {
    dropped(vec![Step::Flood(
        b"HTTP/1.1 100 Continue\r\n\r\n".repeat(100),
    )])
    .await;
}

#[tokio::test]
async fn dropping_a_delivery_that_is_being_sent_closes_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut order = order(post(&format!("http://{address}/")), None);
    // More than the sockets hold, to someone who reads nothing.
    order.payload = Some(vec![b' '; 64 * 1024 * 1024].into());
    let executor = executor();
    assert!(
        tokio::time::timeout(Duration::from_millis(150), executor.execute(order))
            .await
            .is_err()
    );
    let (mut socket, _) = listener.accept().await.unwrap();
    let all = soon(tokio::io::copy(&mut socket, &mut tokio::io::sink())).await;
    assert!(all.is_err() || all.is_ok_and(|read| read < 64 * 1024 * 1024));
}
