//! One connection: hyper's sender, and the task that drives the socket.

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::SendRequest;
use hyper::{Request, Response};
use tokio::task::AbortHandle;

/// What is sent: a payload that is all there, or nothing.
pub(super) type Body = Full<Bytes>;

/// Turns that a driver gets, after the last byte of an answer, to be ready for the next request:
/// on one thread it needs none, on several it may still be about it.
const SETTLE_TURNS: usize = 4;

/// A connection for one request at a time. Dropping it closes the socket.
pub(super) struct Link {
    sender: SendRequest<Body>,
    driver: AbortHandle,
}

impl Link {
    pub(super) fn new(sender: SendRequest<Body>, driver: AbortHandle) -> Self {
        Self { sender, driver }
    }

    /// Sends a request. A refusal gives it back if no part of it was sent.
    pub(super) async fn send(
        &mut self,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Body>>> {
        self.sender.try_send_request(request).await
    }

    /// Whether a request can be sent now.
    pub(super) fn is_ready(&self) -> bool {
        self.sender.is_ready()
    }

    /// Whether no request can ever be sent on it again.
    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Lets the driver come to the end of the last exchange, if it gets there soon.
    pub(super) async fn settle(&self) {
        for _ in 0..SETTLE_TURNS {
            if self.is_ready() || self.is_closed() {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The driver owns the socket: left alone, it would wait for an answer that nobody wants.
        self.driver.abort();
    }
}
