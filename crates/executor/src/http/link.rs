//! The way of one request: hyper's sender, and the task that drives the socket.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::SendRequest;
use hyper::{Request, Response};
use tokio::task::AbortHandle;

use super::shared::{Shared, Stream};

/// What is sent: a payload that is all there, or nothing.
pub(super) type Body = Full<Bytes>;

/// Turns that a driver gets, after the last byte of an answer, to be ready for the next request:
/// on one thread it needs none, on several it may still be about it.
const SETTLE_TURNS: usize = 4;

/// Where one request is sent: a connection of its own, or a stream of one that others use too. Dropping it ends the request, and
/// closes the connection if it was its own.
pub(super) struct Link {
    way: Way,
    peer: Option<SocketAddr>,
}

enum Way {
    Own(Own),
    Shared(Stream),
}

/// A connection for one request at a time.
struct Own {
    sender: SendRequest<Body>,
    driver: AbortHandle,
}

/// A request that got no answer, and the request itself if no part of it was sent.
pub(super) struct Refused {
    pub(super) unsent: Option<Request<Body>>,
    pub(super) error: hyper::Error,
}

impl From<TrySendError<Request<Body>>> for Refused {
    fn from(mut refused: TrySendError<Request<Body>>) -> Self {
        Self {
            unsent: refused.take_message(),
            error: refused.into_error(),
        }
    }
}

impl Link {
    pub(super) fn new(sender: SendRequest<Body>, driver: AbortHandle) -> Self {
        Self {
            way: Way::Own(Own { sender, driver }),
            peer: None,
        }
    }

    pub(super) fn on(stream: Stream, peer: Option<SocketAddr>) -> Self {
        Self {
            way: Way::Shared(stream),
            peer,
        }
    }

    /// The same, which leads to this address.
    pub(super) fn to(mut self, peer: Option<SocketAddr>) -> Self {
        self.peer = peer;
        self
    }

    /// The address at its other end.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// The connection that it shares with others.
    pub(super) fn shared(&self) -> Option<&Shared> {
        match &self.way {
            Way::Own(_) => None,
            Way::Shared(stream) => Some(stream.shared()),
        }
    }

    /// Sends a request. A refusal gives it back if no part of it was sent.
    pub(super) async fn send(
        &mut self,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, Refused> {
        match &mut self.way {
            Way::Own(own) => Ok(own.sender.try_send_request(request).await?),
            // Boxed, so that the usual delivery stays a small future.
            Way::Shared(stream) => Box::pin(stream.send(request)).await,
        }
    }

    /// Whether a request can be sent now.
    pub(super) fn is_ready(&self) -> bool {
        match &self.way {
            Way::Own(own) => own.sender.is_ready(),
            Way::Shared(stream) => !stream.shared().is_closed(),
        }
    }

    /// Whether no request can ever be sent on it again.
    pub(super) fn is_closed(&self) -> bool {
        match &self.way {
            Way::Own(own) => own.sender.is_closed(),
            Way::Shared(stream) => stream.shared().is_closed(),
        }
    }

    /// An answer came over it, and nobody waits for more of it.
    pub(super) fn answered(&mut self) {
        match &mut self.way {
            Way::Own(_) => {}
            Way::Shared(stream) => stream.prove(),
        }
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

impl Drop for Own {
    fn drop(&mut self) {
        // The driver owns the socket: left alone, it would wait for an answer that nobody wants.
        self.driver.abort();
    }
}
