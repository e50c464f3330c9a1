//! The promises of every executor, kept by this one.

use std::sync::Arc;

use super::HttpExecutor;
use super::receiver::{OK, Receiver, Step, executor, order, pause, post, say};
use crate::conformance::{Subject, conformance_suite};
use crate::{Executor, WorkOrder};

struct Http {
    executor: Arc<HttpExecutor>,
    ok: Receiver,
    refusing: Receiver,
    flooding: Receiver,
    hanging: Receiver,
}

impl Http {
    async fn new() -> Self {
        let head = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
        let flood = vec![Step::Say(head.into()), Step::Flood(vec![b'x'; 4096])];
        Self {
            executor: Arc::new(executor()),
            ok: Receiver::playing(say(OK)).await,
            refusing: Receiver::playing(say("HTTP/1.1 500 \x1b[31m\r\n\r\n")).await,
            flooding: Receiver::playing(flood).await,
            hanging: Receiver::playing(vec![Step::Hang]).await,
        }
    }
}

impl Subject for Http {
    fn executor(&self) -> Arc<dyn Executor> {
        self.executor.clone()
    }

    fn succeeding(&self) -> WorkOrder {
        order(post(&self.ok.url("/")), Some("{}"))
    }

    fn failing(&self) -> WorkOrder {
        order(post(&self.refusing.url("/")), Some("{}"))
    }

    fn flooding(&self) -> (WorkOrder, usize) {
        let target = post(&self.flooding.url("/")).output_max(10_000).unwrap();
        (order(target, Some("{}")), 10_000)
    }

    fn hanging(&self) -> WorkOrder {
        order(post(&self.hanging.url("/")), Some("{}"))
    }

    async fn begun(&self, count: usize) {
        while self.hanging.seen().len() < count {
            pause(5).await;
        }
    }

    async fn ended(&self, count: usize) {
        self.hanging.ended(count).await;
    }
}

conformance_suite!(async || Http::new().await);
