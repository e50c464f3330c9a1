//! Connections that are used again, and those that must not be.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use hyper_util::rt::TokioIo;
use model::{Outcome, Report};

use super::HttpExecutor;
use super::connect::Origin;
use super::link::{Body, Link};
use super::receiver::{OK, Receiver, Step, executor, order, pause, post, say, soon};
use crate::Executor;

async fn call(executor: &HttpExecutor, receiver: &Receiver) -> Report {
    soon(executor.execute(order(post(&receiver.url("/")), Some("{}")))).await
}

async fn connections_for(answer: &str, calls: usize) -> usize {
    let receiver = Receiver::playing(say(answer)).await;
    let executor = executor();
    for _ in 0..calls {
        let report = call(&executor, &receiver).await;
        assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
    }
    assert_eq!(receiver.seen().len(), calls);
    receiver.accepted()
}

#[tokio::test]
async fn a_hundred_calls_take_one_connection() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    for answer in [OK, chunked, "HTTP/1.1 204 No Content\r\n\r\n"] {
        assert_eq!(connections_for(answer, 100).await, 1, "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_take_few_connections_on_two_threads() {
    // Not always one: a call may come while the last one's driver is still held up elsewhere.
    let connections = connections_for(OK, 1_000).await;
    assert!(connections <= 8, "{connections}");
}

#[tokio::test]
async fn an_answer_somewhat_longer_than_what_is_kept_does_not_cost_the_connection() {
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: 9000\r\n\r\n{}",
        "x".repeat(9_000)
    );
    assert_eq!(connections_for(&answer, 10).await, 1);
}

#[tokio::test]
async fn a_target_that_closes_after_each_answer_is_called_again() {
    let answer = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(connections_for(answer, 5).await, 5);
}

#[tokio::test]
async fn a_connection_that_was_closed_while_idle_is_not_the_targets_failure() {
    let receiver = Receiver::playing(vec![Step::Say(OK.into()), Step::Close]).await;
    let executor = executor();
    for done in 1..=5 {
        assert_eq!(call(&executor, &receiver).await.outcome, Outcome::Succeeded);
        receiver.ended(done).await;
        pause(20).await;
    }
    assert_eq!((receiver.accepted(), receiver.seen().len()), (5, 5));
}

#[tokio::test]
async fn a_request_that_was_not_sent_is_sent_on_a_new_connection() {
    let receiver = Receiver::playing(say(OK)).await;
    let executor = executor();
    // A link that is ready, and gone as soon as it is used: a close that crosses with a request.
    let (near, _far) = tokio::io::duplex(64);
    let (sender, conn) = hyper::client::conn::http1::handshake::<_, Body>(TokioIo::new(near))
        .await
        .unwrap();
    let driver = tokio::spawn(async move {
        let mut conn = pin!(conn);
        let mut turns = 0;
        poll_fn(|cx| {
            turns += 1;
            if turns > 1 {
                Poll::Ready(())
            } else {
                conn.as_mut().poll(cx).map(|_| ())
            }
        })
        .await;
    });
    pause(10).await;
    let link = Link::new(sender, driver.abort_handle());
    assert!(link.is_ready());
    executor.pool.put(
        Origin::of(&receiver.url("/").parse().unwrap()).unwrap(),
        link,
    );

    assert_eq!(call(&executor, &receiver).await.outcome, Outcome::Succeeded);
    assert_eq!((receiver.accepted(), receiver.seen().len()), (1, 1));
}

#[tokio::test]
async fn a_request_that_may_have_been_taken_is_never_sent_twice() {
    for end in [Step::Close, Step::Reset] {
        let steps = move |no| if no == 0 { say(OK) } else { vec![end.clone()] };
        let receiver = Receiver::scripted(steps).await;
        let executor = executor();
        assert_eq!(call(&executor, &receiver).await.outcome, Outcome::Succeeded);
        assert_eq!(call(&executor, &receiver).await.outcome, Outcome::Failed);
        assert_eq!((receiver.accepted(), receiver.seen().len()), (1, 2));
    }
}

#[tokio::test]
async fn unrequested_bytes_do_not_become_the_next_answer() {
    let twice = format!("{OK}HTTP/1.1 500 Smuggled\r\ncontent-length: 0\r\n\r\n");
    let receiver = Receiver::playing(say(twice)).await;
    let executor = executor();
    for _ in 0..5 {
        let report = call(&executor, &receiver).await;
        assert_ne!(report.status, Some(500), "{report:?}");
        pause(5).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_at_once_all_end_well() {
    let receiver = Receiver::playing(say(OK)).await;
    let executor = Arc::new(executor());
    for _ in 0..3 {
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..1_000 {
            let (executor, url) = (executor.clone(), receiver.url("/"));
            calls.spawn(async move { executor.execute(order(post(&url), Some("{}"))).await });
        }
        while let Some(report) = soon(calls.join_next()).await {
            let report = report.unwrap();
            assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
        }
    }
    assert_eq!(receiver.seen().len(), 3_000);
    assert!(receiver.accepted() < 3_000, "{}", receiver.accepted());
}
