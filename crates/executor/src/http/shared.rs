//! A connection of HTTP/2, which carries many requests at once.
//!
//! It is closed when nobody uses it and the pool has let go of it. A request that was given up before its answer was there takes
//! it out of use for others: it may lead nowhere any more, which HTTP/1.1 finds out by closing it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper::header::{HOST, HeaderValue};
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::{Request, Response, Uri, Version};
use model::limits;
use tokio::task::AbortHandle;

use super::link::{Body, Refused};

/// Says how many requests the peer allows at once, as it last said.
pub(super) type Allowed = Box<dyn Fn() -> usize + Send + Sync>;

/// One connection, as all who share it see it.
#[derive(Clone)]
pub(super) struct Shared {
    sender: SendRequest<Body>,
    state: Arc<State>,
}

struct State {
    driver: AbortHandle,
    /// Requests that the peer allows at once.
    allowed: Allowed,
    streams: AtomicUsize,
    /// No further request is sent on it.
    retired: AtomicBool,
}

impl Drop for State {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// The right to one request. Dropping it ends the request, and leaves the others alone.
pub(super) struct Stream {
    shared: Shared,
    /// The peer has answered, so the connection leads somewhere.
    proved: bool,
}

impl Shared {
    pub(super) fn new(
        sender: SendRequest<Body>,
        (driver, allowed): (AbortHandle, Allowed),
    ) -> Self {
        let state = State {
            driver,
            allowed,
            streams: AtomicUsize::new(0),
            retired: AtomicBool::new(false),
        };
        Self {
            sender,
            state: Arc::new(state),
        }
    }

    /// Whether it serves nobody any more but those who are on it.
    pub(super) fn is_closed(&self) -> bool {
        self.state.retired.load(Ordering::Relaxed) || self.sender.is_closed()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.state.streams.load(Ordering::Relaxed) == 0
    }

    /// A stream of it, for whoever knows that there is room.
    pub(super) fn open(&self) -> Stream {
        self.state.streams.fetch_add(1, Ordering::Relaxed);
        Stream {
            shared: self.clone(),
            proved: false,
        }
    }

    /// Another stream of it, while it is open and has room. Callers hold the pool's lock.
    pub(super) fn stream(&self) -> Option<Stream> {
        // The peer's own bound may be lower, and zero while it wants no more.
        let most = limits::STREAMS_MAX.min((self.state.allowed)());
        if self.is_closed() || self.state.streams.load(Ordering::Relaxed) >= most {
            return None;
        }
        Some(self.open())
    }
}

impl Stream {
    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(super) fn prove(&mut self) {
        self.proved = true;
    }

    /// Sends a request. A refusal gives it back, as it was, if no part of it was sent.
    pub(super) async fn send(
        &mut self,
        mut request: Request<Body>,
    ) -> Result<Response<Incoming>, Refused> {
        let host = request.headers_mut().remove(HOST);
        name_host(&mut request, host.as_ref());
        let sent = self.shared.sender.try_send_request(request).await;
        sent.map_err(|refused| {
            let mut refused = Refused::from(refused);
            if let Some(unsent) = &mut refused.unsent {
                unname_host(unsent, host);
            }
            refused
        })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let state = &self.shared.state;
        state.streams.fetch_sub(1, Ordering::Relaxed);
        if !self.proved {
            state.retired.store(true, Ordering::Relaxed);
        }
    }
}

/// HTTP/2 names the host in the address.
fn name_host(request: &mut Request<Body>, host: Option<&HeaderValue>) {
    let authority = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
    let path = request.uri().path_and_query().cloned();
    let uri = Uri::builder()
        .scheme(Scheme::HTTPS)
        .path_and_query(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    if let Some(authority) = authority
        && let Ok(uri) = uri.authority(authority).build()
    {
        *request.uri_mut() = uri;
    }
    *request.version_mut() = Version::HTTP_2;
}

/// HTTP/1.1 names it in a header.
fn unname_host(request: &mut Request<Body>, host: Option<HeaderValue>) {
    if let Some(path) = request.uri().path_and_query().cloned() {
        *request.uri_mut() = Uri::from(path);
    }
    if let Some(host) = host {
        request.headers_mut().insert(HOST, host);
    }
    *request.version_mut() = Version::HTTP_11;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_was_not_sent_is_given_back_as_it_was() {
        let host = HeaderValue::from_static("a.example:8443");
        let mut request = Request::new(Body::default());
        *request.uri_mut() = Uri::from_static("/b?c=d");
        name_host(&mut request, Some(&host));
        assert_eq!(request.uri(), "https://a.example:8443/b?c=d");
        unname_host(&mut request, Some(host.clone()));
        assert_eq!(
            (request.uri(), request.version()),
            (&Uri::from_static("/b?c=d"), Version::HTTP_11)
        );
        assert_eq!(request.headers().get(HOST), Some(&host));
    }
}
