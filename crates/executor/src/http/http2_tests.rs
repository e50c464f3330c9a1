//! Over TLS: HTTP/2 where the target speaks it, HTTP/1.1 where it does not, and the promises of every executor over both.

use std::sync::Arc;
use std::time::Duration;

use hyper::Version;
use model::target::HttpTarget;
use model::{AttemptNo, JobId, Outcome, Redirects, RetryHint, RunId, limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::HttpExecutor;
use super::receiver::{order, pause, post, soon};
use super::receiver_tls::{TlsReceiver, acceptor, at_least, trusting};
use crate::conformance::Subject;
use crate::{Executor, WorkOrder};

/// Streams that a server allows which says nothing special.
const STREAMS: u32 = 200;

fn to(receiver: &TlsReceiver, path: &str) -> WorkOrder {
    order(post(&receiver.url(path)), Some(r#"{"n": 1}"#))
}

#[tokio::test]
async fn a_target_that_speaks_http2_alone_is_called_by_it() {
    let receiver = TlsReceiver::speaking("h2", STREAMS).await;
    let executor = trusting();
    for _ in 0..10 {
        let report = soon(executor.execute(to(&receiver, "/ok?a=1"))).await;
        assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
        assert_eq!((report.status, &report.output[..]), (Some(200), &b"ok"[..]));
    }
    let seen = receiver.counts.seen();
    let authority = format!("localhost:{}", receiver.port);
    for one in &seen {
        assert_eq!(one.version, Version::HTTP_2);
        assert_eq!(one.uri.to_string(), format!("https://{authority}/ok?a=1"));
        assert_eq!(one.headers.get("host"), None);
        assert_eq!(one.headers["content-length"], "8");
        assert_eq!(one.headers["content-type"], "application/json");
        assert!(one.headers.contains_key("punctual-run"));
        assert_eq!(one.body, r#"{"n": 1}"#);
    }
    assert_eq!((seen.len(), receiver.counts.accepted()), (10, 1));
}

#[tokio::test]
async fn a_target_that_speaks_http1_alone_is_called_by_that() {
    let receiver = TlsReceiver::speaking("http/1.1", STREAMS).await;
    let executor = trusting();
    for _ in 0..10 {
        let report = soon(executor.execute(to(&receiver, "/ok"))).await;
        assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
    }
    let seen = receiver.counts.seen();
    for one in &seen {
        assert_eq!(one.version, Version::HTTP_11);
        let host = format!("localhost:{}", receiver.port);
        assert_eq!(one.headers["host"], host.as_str());
    }
    assert_eq!((seen.len(), receiver.counts.accepted()), (10, 1));
}

/// Sends so many at once that hang, once one connection is there.
async fn hang(executor: &Arc<HttpExecutor>, receiver: &TlsReceiver, count: usize) -> JoinSet<()> {
    let first = soon(executor.execute(to(receiver, "/ok"))).await;
    assert_eq!(first.outcome, Outcome::Succeeded, "{first:?}");
    let mut all = JoinSet::new();
    for _ in 0..count {
        let (executor, order) = (executor.clone(), to(receiver, "/hang"));
        all.spawn(async move { panic!("{:?}", executor.execute(order).await) });
    }
    soon(at_least(&receiver.counts.hanging, count)).await;
    all
}

#[tokio::test]
async fn requests_at_once_share_a_connection_up_to_its_bound() {
    let receiver = TlsReceiver::speaking("h2", STREAMS).await;
    let executor = Arc::new(trusting());
    let _hanging = hang(&executor, &receiver, limits::STREAMS_MAX).await;
    assert_eq!(receiver.counts.accepted(), 1);
    let report = soon(executor.execute(to(&receiver, "/ok"))).await;
    assert_eq!(report.outcome, Outcome::Succeeded);
    assert_eq!(receiver.counts.accepted(), 2, "the first has no room");
}

#[tokio::test]
async fn a_target_may_allow_fewer_requests_at_once() {
    let receiver = TlsReceiver::speaking("h2", 3).await;
    let executor = Arc::new(trusting());
    let _hanging = hang(&executor, &receiver, 3).await;
    assert_eq!(receiver.counts.accepted(), 1);
    let report = soon(executor.execute(to(&receiver, "/ok"))).await;
    assert_eq!(report.outcome, Outcome::Succeeded);
    assert_eq!(receiver.counts.accepted(), 2);
}

#[tokio::test]
async fn connections_that_were_opened_at_once_become_one() {
    let receiver = TlsReceiver::speaking("h2", STREAMS).await;
    let executor = Arc::new(trusting());
    let mut all = JoinSet::new();
    for _ in 0..20 {
        let (executor, order) = (executor.clone(), to(&receiver, "/ok"));
        all.spawn(async move { soon(executor.execute(order)).await.outcome });
    }
    while let Some(outcome) = all.join_next().await {
        assert_eq!(outcome.unwrap(), Outcome::Succeeded);
    }
    let opened = receiver.counts.accepted();
    for _ in 0..20 {
        soon(executor.execute(to(&receiver, "/ok"))).await;
    }
    assert_eq!(receiver.counts.accepted(), opened, "what is there is used");
    drop(executor);
    soon(receiver.counts.all_gone()).await;
}

#[tokio::test]
async fn a_connection_that_its_target_closed_is_replaced() {
    let receiver = TlsReceiver::speaking("h2", STREAMS).await;
    let executor = trusting();
    for opened in 1..=3 {
        let report = soon(executor.execute(to(&receiver, "/ok"))).await;
        assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
        assert_eq!(receiver.counts.accepted(), opened);
        receiver.counts.close.notify_one();
        soon(receiver.counts.all_gone()).await;
    }
}

#[tokio::test]
async fn redirects_are_followed_over_http2_too() {
    let receiver = TlsReceiver::speaking("h2", STREAMS).await;
    let target = HttpTarget {
        redirects: Redirects::SameOrigin,
        ..post(&receiver.url("/moved"))
    };
    let report = soon(trusting().execute(order(target, Some("{}")))).await;
    assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
    let seen = receiver.counts.seen();
    let paths: Vec<_> = seen.iter().map(|seen| seen.uri.path()).collect();
    assert_eq!(paths, ["/moved", "/ok"]);
    assert_eq!(
        (&seen[1].body[..], receiver.counts.accepted()),
        (&b"{}"[..], 1)
    );
}

/// Its peer may have gone without a word, and others would wait for it in vain.
#[tokio::test]
async fn a_connection_on_which_a_request_was_given_up_is_not_used_again() {
    let receiver = TlsReceiver::speaking("h2", STREAMS).await;
    let executor = Arc::new(trusting());
    let others = hang(&executor, &receiver, 2).await;
    let late = executor.execute(to(&receiver, "/hang"));
    assert!(timeout(Duration::from_millis(300), late).await.is_err());
    soon(at_least(&receiver.counts.ended, 1)).await;
    let report = soon(executor.execute(to(&receiver, "/ok"))).await;
    assert_eq!(report.outcome, Outcome::Succeeded);
    assert_eq!(receiver.counts.accepted(), 2);
    // Those that are on it go on.
    pause(50).await;
    assert_eq!(others.len(), 2);
    assert_eq!(
        receiver
            .counts
            .ended
            .load(std::sync::atomic::Ordering::SeqCst),
        1
    );
}

/// An answer that is cut by us proves that its connection is alive.
#[tokio::test]
async fn an_answer_that_is_not_read_to_its_end_leaves_the_connection_in_use() {
    let receiver = TlsReceiver::speaking("h2", STREAMS).await;
    let executor = trusting();
    for _ in 0..3 {
        let report = soon(executor.execute(to(&receiver, "/flood"))).await;
        assert!(report.truncated);
    }
    let report = soon(executor.execute(to(&receiver, "/ok"))).await;
    assert_eq!(report.outcome, Outcome::Succeeded);
    assert_eq!(receiver.counts.accepted(), 1);
}

/// A peer that agrees on HTTP/2 and then sends these bytes.
async fn raw(bytes: &'static [u8]) -> WorkOrder {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let Ok(mut socket) = acceptor(&["h2"]).accept(socket).await else {
                continue;
            };
            let _ = socket.read(&mut [0; 1024]).await;
            let _ = socket.write_all(bytes).await;
            let _ = socket.shutdown().await;
        }
    });
    order(post(&format!("https://localhost:{port}/")), Some("{}"))
}

struct Tls {
    executor: Option<Arc<HttpExecutor>>,
    receiver: TlsReceiver,
}

impl Tls {
    async fn speaking(protocol: &'static str) -> Self {
        Self {
            executor: Some(Arc::new(trusting())),
            receiver: TlsReceiver::speaking(protocol, STREAMS).await,
        }
    }
}

impl Subject for Tls {
    fn executor(&self) -> Arc<dyn Executor> {
        self.executor.clone().unwrap()
    }

    fn drop_executor(&mut self) {
        self.executor = None;
    }

    fn succeeding(&self) -> WorkOrder {
        to(&self.receiver, "/ok")
    }

    fn failing(&self) -> WorkOrder {
        to(&self.receiver, "/500")
    }

    fn flooding(&self) -> (WorkOrder, usize) {
        let target = post(&self.receiver.url("/flood"));
        (
            order(target.output_max(10_000).unwrap(), Some("{}")),
            10_000,
        )
    }

    fn hanging(&self) -> WorkOrder {
        to(&self.receiver, "/hang")
    }

    fn classified(&self) -> Vec<(WorkOrder, RetryHint)> {
        let after = RetryHint::After(Duration::from_secs(7));
        vec![
            (to(&self.receiver, "/500"), RetryHint::Usual),
            (to(&self.receiver, "/404"), RetryHint::Never),
            (to(&self.receiver, "/busy"), after),
            (order(post("https://localhost:1/"), None), RetryHint::Usual),
        ]
    }

    async fn hostile(&self) -> Vec<WorkOrder> {
        let mut orders = Vec::new();
        for bytes in [
            &b""[..],
            b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            // An empty SETTINGS, and then: GOAWAY, RST_STREAM of the request, an answer without a status, a frame beyond all bounds.
            b"\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0",
            b"\0\0\0\x04\0\0\0\0\0\0\0\x04\x03\0\0\0\0\x01\0\0\0\x07",
            b"\0\0\0\x04\0\0\0\0\0\0\0\x01\x01\x05\0\0\0\x01\x84",
            b"\0\0\0\x04\0\0\0\0\0\xff\xff\xff\0\0\0\0\0\x01",
        ] {
            orders.push(raw(bytes).await);
        }
        orders
    }

    fn delivered(&self) -> Vec<(JobId, RunId, AttemptNo)> {
        let seen = self.receiver.counts.seen();
        let learned = seen.iter().map(|seen| {
            let header = |name| seen.headers[name].to_str().unwrap();
            (
                header("punctual-job").parse().unwrap(),
                header("punctual-run").parse().unwrap(),
                AttemptNo(header("punctual-attempt").parse().unwrap()),
            )
        });
        learned.collect()
    }

    async fn begun(&self, count: usize) {
        at_least(&self.receiver.counts.hanging, count).await;
    }

    async fn ended(&self, count: usize) {
        at_least(&self.receiver.counts.ended, count).await;
    }

    async fn left_alone(&self) {
        self.receiver.counts.all_gone().await;
    }
}

mod over_http2 {
    use super::*;

    crate::conformance_suite!(async || Tls::speaking("h2").await);
}

mod over_http1 {
    use super::*;

    crate::conformance_suite!(async || Tls::speaking("http/1.1").await);
}
