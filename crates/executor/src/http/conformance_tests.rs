//! The promises of every executor, kept by this one.

use std::sync::Arc;
use std::time::Duration;

use model::{AttemptNo, JobId, RetryHint, RunId};

use super::HttpExecutor;
use super::receiver::{OK, Receiver, Step, executor, order, pause, post, say};
use crate::conformance::Subject;
use crate::{Executor, WorkOrder};

struct Http {
    executor: Option<Arc<HttpExecutor>>,
    ok: Receiver,
    failing: Receiver,
    refusing: Receiver,
    busy: Receiver,
    flooding: Receiver,
    hanging: Receiver,
}

impl Http {
    async fn new() -> Self {
        let head = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
        let flood = vec![Step::Say(head.into()), Step::Flood(vec![b'x'; 4096])];
        let busy = "HTTP/1.1 503 Busy\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n";
        let refusal = "HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n";
        Self {
            executor: Some(Arc::new(executor())),
            ok: Receiver::playing(say(OK)).await,
            failing: Receiver::playing(say("HTTP/1.1 500 \x1b[31m\r\ncontent-length: 0\r\n\r\n"))
                .await,
            refusing: Receiver::playing(say(refusal)).await,
            busy: Receiver::playing(say(busy)).await,
            flooding: Receiver::playing(flood).await,
            hanging: Receiver::playing(vec![Step::Hang]).await,
        }
    }

    fn order(receiver: &Receiver) -> WorkOrder {
        order(post(&receiver.url("/")), Some("{}"))
    }
}

impl Subject for Http {
    fn executor(&self) -> Arc<dyn Executor> {
        self.executor.clone().unwrap()
    }

    fn drop_executor(&mut self) {
        self.executor = None;
    }

    fn succeeding(&self) -> WorkOrder {
        Self::order(&self.ok)
    }

    fn failing(&self) -> WorkOrder {
        Self::order(&self.failing)
    }

    fn flooding(&self) -> (WorkOrder, usize) {
        let target = post(&self.flooding.url("/")).output_max(10_000).unwrap();
        (order(target, Some("{}")), 10_000)
    }

    fn hanging(&self) -> WorkOrder {
        Self::order(&self.hanging)
    }

    fn classified(&self) -> Vec<(WorkOrder, RetryHint)> {
        let after = RetryHint::After(Duration::from_secs(7));
        vec![
            (Self::order(&self.failing), RetryHint::Usual),
            (Self::order(&self.refusing), RetryHint::Never),
            (Self::order(&self.busy), after),
            (order(post("http://127.0.0.1:1/"), None), RetryHint::Usual),
        ]
    }

    async fn hostile(&self) -> Vec<WorkOrder> {
        let gzip = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\nabc";
        let mut orders = Vec::new();
        for steps in [
            say("\0\x01\x02\r\n\r\n"),
            say("HTTP/1.1 999 \r\ncontent-length: 0\r\n\r\n"),
            say("HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n"),
            say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n"),
            say(gzip),
            vec![Step::Reset],
            vec![Step::Close],
        ] {
            let mut steps = steps;
            steps.push(Step::Close);
            let receiver = Receiver::playing(steps).await;
            orders.push(Self::order(&receiver));
        }
        orders
    }

    fn delivered(&self) -> Vec<(JobId, RunId, AttemptNo)> {
        let seen = self.ok.seen();
        let learned = seen.iter().map(|seen| {
            let header = |name| seen.header(name).unwrap();
            (
                header("punctual-job").parse().unwrap(),
                header("punctual-run").parse().unwrap(),
                AttemptNo(header("punctual-attempt").parse().unwrap()),
            )
        });
        learned.collect()
    }

    async fn begun(&self, count: usize) {
        while self.hanging.seen().len() < count {
            pause(5).await;
        }
    }

    async fn ended(&self, count: usize) {
        self.hanging.ended(count).await;
    }

    async fn left_alone(&self) {
        for receiver in [&self.ok, &self.failing, &self.hanging] {
            receiver.ended(receiver.accepted()).await;
        }
    }
}

crate::conformance_suite!(async || Http::new().await);
