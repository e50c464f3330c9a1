//! The `http` executor: one attempt is one request, its answer is the outcome.
//!
//! ```text
//!   order ─▶ request ─▶ pool ──idle──▶ link ─▶ answer ─▶ report
//!                        │               ▲        │
//!                        └─none─▶ connect┘        └─whole─▶ back to the pool
//! ```
//!
//! What always holds: a request that may have reached its target is never sent twice; redirects are
//! followed only within one origin and where the target says so; proxy variables are not read, and a tenant's proxy is never
//! called past; a link is in the pool only between two whole
//! exchanges, so dropping a delivery, at whatever point, closes its connection; no lock is held
//! while anything is awaited, so a dead host holds up nobody else.

mod answer;
mod body;
mod broken;
mod connect;
mod gzip;
mod link;
mod pool;
mod redirect;
mod request;
mod retry_after;
mod shared;
mod signed;
mod success;
mod tls;
mod trace;
mod tunnel;

use std::sync::Arc;

use async_trait::async_trait;
use hyper::body::Incoming;
use hyper::{Request, Response};
use model::target::HttpTarget;
use model::{Redirects, Report, RetryHint, Target};
use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::egress::Dialer;
use crate::{Executor, Progress, WorkOrder};
use broken::Broken;
use connect::{Connector, Origin};
use link::{Body, Link};
use pool::Pool;
use redirect::Next;

pub use tls::SetupError;

/// Calls http targets over HTTP/1.1, and https targets over HTTP/2 where they speak it, keeping connections between calls.
pub struct HttpExecutor {
    connector: Connector,
    pool: Pool,
}

impl HttpExecutor {
    /// An executor that calls through this dialer, and trusts the usual public authorities.
    pub fn new(dialer: Arc<Dialer>) -> Result<Self, SetupError> {
        Self::trusting(dialer, [])
    }

    /// The same, which also trusts `roots`.
    pub fn trusting(
        dialer: Arc<Dialer>,
        roots: impl IntoIterator<Item = CertificateDer<'static>>,
    ) -> Result<Self, SetupError> {
        Ok(Self {
            connector: Connector::new(dialer, tls::Connectors::new(roots)?),
            pool: Pool::default(),
        })
    }

    async fn deliver(
        &self,
        request: Request<Body>,
        order: &WorkOrder,
        target: &HttpTarget,
    ) -> Result<Report, Broken> {
        let identity = order.identity.as_deref();
        let origin = Origin::of(&target.url)?.with(identity, order.proxy.as_ref());
        match target.redirects {
            Redirects::None => {
                let (link, answer) = self.send(&origin, request, order).await?;
                Ok(self
                    .finish(origin, link, answer, target, &order.progress)
                    .await)
            }
            // Boxed because it is rare and large, as is a new link below: the usual delivery stays a small future.
            Redirects::SameOrigin => Box::pin(self.follow(origin, request, order, target)).await,
        }
    }

    /// Sends a request, and gets the head of its answer.
    async fn send(
        &self,
        origin: &Origin,
        mut request: Request<Body>,
        order: &WorkOrder,
    ) -> Result<(Link, Response<Incoming>), Broken> {
        let progress = &*order.progress;
        if let Some(mut link) = self.pool.take(origin) {
            progress.reached(link.peer());
            match link.send(request).await {
                Ok(answer) => return Ok((link, answer)),
                Err(refused) => match refused.unsent {
                    // The target had closed this link while it lay idle and saw nothing of the
                    // request: that is no failure of an attempt, so a new link gets it.
                    Some(unsent) => request = unsent,
                    None => return Err(Broken::before_the_answer(refused.error)),
                },
            }
        }
        let identity = order.identity.as_deref();
        let link = Box::pin(self.connector.open(origin, identity, progress)).await?;
        let mut link = self.pool.share(origin, link);
        let answer = link
            .send(request)
            .await
            .map_err(|refused| Broken::before_the_answer(refused.error))?;
        Ok((link, answer))
    }

    /// Sends a request, and what redirects within its origin ask for. Each is a request that the target has answered, so none
    /// is sent twice.
    async fn follow(
        &self,
        origin: Origin,
        mut request: Request<Body>,
        order: &WorkOrder,
        target: &HttpTarget,
    ) -> Result<Report, Broken> {
        let progress = &*order.progress;
        let mut followed = 0;
        loop {
            let sent = request.clone();
            let (mut link, answer) = self.send(&origin, request, order).await?;
            let (head, body) = answer.into_parts();
            let why = match redirect::next(&head, sent, (order, target), followed) {
                Next::Follow(next) => {
                    let body = body::read(body, 0).await;
                    link.answered();
                    if body.is_whole() {
                        link.settle().await;
                        self.pool.put(origin.clone(), link);
                    }
                    (request, followed) = (*next, followed + 1);
                    continue;
                }
                Next::Done => None,
                Next::Not(why) => Some(answer::not_followed(head.status, &why)),
            };
            let answer = Response::from_parts(head, body);
            let mut report = self.finish(origin, link, answer, target, progress).await;
            report.error = why.or(report.error);
            if let Some(exchange) = &mut report.exchange {
                redirect::note(exchange, followed);
            }
            return Ok(report);
        }
    }

    /// Reads the answer, and keeps the link if the answer was read to its end.
    async fn finish(
        &self,
        origin: Origin,
        mut link: Link,
        answer: Response<Incoming>,
        target: &HttpTarget,
        progress: &Progress,
    ) -> Report {
        progress.answered();
        let (head, body) = answer.into_parts();
        let body = body::read(body, answer::bytes_read(&head.headers, target)).await;
        progress.ended();
        link.answered();
        if body.is_whole() {
            link.settle().await;
            self.pool.put(origin, link);
        }
        answer::report(&head, body, target, progress.exchange())
    }
}

#[async_trait]
impl Executor for HttpExecutor {
    async fn execute(&self, mut order: WorkOrder) -> Report {
        let target = match &order.job.def.target {
            Target::Http(target) => target,
            Target::Shell(_) | Target::Python(_) => {
                return Report::failed("this executor calls addresses only");
            }
        };
        let request = request::build(&order, target);
        // The request alone keeps it from here on, until it is sent: somebody may wait for the room that it takes.
        order.payload = None;
        let progress = &order.progress;
        match self.deliver(request, &order, target).await {
            Ok(report) => report,
            Err(broken) => {
                progress.ended();
                tracing::debug!(run = %order.run, attempt = %order.attempt, cause = ?broken, "{broken}");
                let report = Report::failed(broken.to_string())
                    .with_retry(broken.retry())
                    .with_exchange(progress.exchange());
                match broken.retry() {
                    // It was not even tried.
                    RetryHint::Never => report,
                    // Others may be welcome.
                    _ if broken.is_personal(order.identity.is_some()) => report,
                    RetryHint::Usual | RetryHint::After(_) | RetryHint::Always => {
                        report.unreached()
                    }
                }
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
#[path = "exchange_tests.rs"]
mod exchange_tests;
#[cfg(test)]
#[path = "fault_tests.rs"]
mod fault_tests;
#[cfg(test)]
#[path = "floor_tests.rs"]
mod floor_tests;
#[cfg(test)]
#[path = "http2_tests.rs"]
mod http2_tests;
#[cfg(test)]
#[path = "identity_tests.rs"]
mod identity_tests;
#[cfg(test)]
#[path = "keep_alive_tests.rs"]
mod keep_alive_tests;
#[cfg(test)]
#[path = "proxy_tests.rs"]
mod proxy_tests;
#[cfg(test)]
#[path = "receiver.rs"]
mod receiver;
#[cfg(test)]
#[path = "receiver_tls.rs"]
mod receiver_tls;
#[cfg(test)]
#[path = "redirect_tests.rs"]
mod redirect_tests;
#[cfg(test)]
#[path = "tls_tests.rs"]
mod tls_tests;
