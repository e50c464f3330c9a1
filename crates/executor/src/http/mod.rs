//! The `http` executor: one attempt is one request, its answer is the outcome.
//!
//! ```text
//!   order ─▶ request ─▶ pool ──idle──▶ link ─▶ answer ─▶ report
//!                        │               ▲        │
//!                        └─none─▶ connect┘        └─whole─▶ back to the pool
//! ```
//!
//! What always holds: a request that may have reached its target is never sent twice; redirects are
//! not followed and proxy variables are not read; a link is in the pool only between two whole
//! exchanges, so dropping a delivery, at whatever point, closes its connection; no lock is held
//! while anything is awaited, so a dead host holds up nobody else.

mod answer;
mod broken;
mod connect;
mod link;
mod names;
mod pool;
mod request;
mod retry_after;
mod tls;

use async_trait::async_trait;
use hyper::body::Incoming;
use hyper::{Request, Response};
use model::target::HttpTarget;
use model::{Report, RetryHint, Target};
use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::{Executor, WorkOrder};
use broken::Broken;
use connect::{Connector, Origin};
use link::{Body, Link};
use pool::Pool;

pub use tls::SetupError;

/// Calls http and https targets over HTTP/1.1, keeping connections between calls.
pub struct HttpExecutor {
    connector: Connector,
    pool: Pool,
}

impl HttpExecutor {
    /// An executor that trusts the usual public authorities.
    pub fn new() -> Result<Self, SetupError> {
        Self::trusting([])
    }

    /// The same, which also trusts `roots`.
    pub fn trusting(
        roots: impl IntoIterator<Item = CertificateDer<'static>>,
    ) -> Result<Self, SetupError> {
        Ok(Self {
            connector: Connector::new(tls::connector(roots)?),
            pool: Pool::default(),
        })
    }

    async fn deliver(
        &self,
        mut request: Request<Body>,
        target: &HttpTarget,
    ) -> Result<Report, Broken> {
        let origin = Origin::of(&target.url)?;
        if let Some(mut link) = self.pool.take(&origin) {
            match link.send(request).await {
                Ok(answer) => return Ok(self.finish(origin, link, answer, target).await),
                Err(mut refused) => match refused.take_message() {
                    // The target had closed this link while it lay idle and saw nothing of the
                    // request: that is no failure of an attempt, so a new link gets it.
                    Some(unsent) => request = unsent,
                    None => return Err(Broken::before_the_answer(refused.into_error())),
                },
            }
        }
        // Boxed because it is rare and large: the usual delivery stays a small future.
        let mut link = Box::pin(self.connector.open(&origin)).await?;
        let answer = link
            .send(request)
            .await
            .map_err(|refused| Broken::before_the_answer(refused.into_error()))?;
        Ok(self.finish(origin, link, answer, target).await)
    }

    /// Reads the answer, and keeps the link if the answer was read to its end.
    async fn finish(
        &self,
        origin: Origin,
        link: Link,
        answer: Response<Incoming>,
        target: &HttpTarget,
    ) -> Report {
        let (head, body) = answer.into_parts();
        let kept = answer::read(body, target.output_max).await;
        if kept.is_whole() {
            link.settle().await;
            self.pool.put(origin, link);
        }
        answer::report(&head, kept)
    }
}

#[async_trait]
impl Executor for HttpExecutor {
    async fn execute(&self, mut order: WorkOrder) -> Report {
        let target = match &order.job.def.target {
            Target::Http(target) => target,
            Target::Fake(_) => {
                return Report::failed("the target is not an http target")
                    .with_retry(RetryHint::Never);
            }
        };
        let request = request::build(&order, target);
        // The request alone keeps it from here on, until it is sent: somebody may wait for the room that it takes.
        order.payload = None;
        match self.deliver(request, target).await {
            Ok(report) => report,
            Err(broken) => {
                tracing::debug!(run = %order.run, attempt = %order.attempt, cause = ?broken, "{broken}");
                Report::failed(broken.to_string()).with_retry(broken.retry())
            }
        }
    }
}

#[cfg(test)]
#[path = "conformance_tests.rs"]
mod conformance_tests;
#[cfg(test)]
#[path = "delivery_tests.rs"]
mod delivery_tests;
#[cfg(test)]
#[path = "fault_tests.rs"]
mod fault_tests;
#[cfg(test)]
#[path = "floor_tests.rs"]
mod floor_tests;
#[cfg(test)]
#[path = "keep_alive_tests.rs"]
mod keep_alive_tests;
#[cfg(test)]
#[path = "receiver.rs"]
mod receiver;
#[cfg(test)]
#[path = "tls_tests.rs"]
mod tls_tests;
