//! What every request passes on its way in, and every answer on its way out, whatever it asks for.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Version, header};
use axum::response::{IntoResponse, Response};
use engine::{Clock, SystemClock};
use hyper::Request;
use hyper::body::Incoming;
use tower::Service;
use tracing::Instrument;

use super::bounds::Bounds;
use super::cors::{Cors, Origin};
use super::headers;
use super::hosts::Hosts;
use super::proxies::Proxies;
use super::tls::Tls;
use crate::peer::Peer;

/// How a node is reached.
#[derive(Clone, Default)]
pub struct Door {
    names: Vec<String>,
    tls: Option<Arc<Tls>>,
    proxies: Proxies,
    cors: Cors,
    bounds: Bounds,
}

impl Door {
    /// Names that it answers to on a loopback address, besides those of this machine.
    pub fn with_names(mut self, names: Vec<String>) -> Self {
        self.names = names;
        self
    }

    /// Speaks TLS and nothing else.
    pub fn with_tls(mut self, tls: Option<Arc<Tls>>) -> Self {
        self.tls = tls;
        self
    }

    /// Whose word counts about whose request it is.
    pub fn with_proxies(mut self, proxies: Proxies) -> Self {
        self.proxies = proxies;
        self
    }

    /// Pages of these origins may read answers.
    pub fn with_origins(mut self, origins: Vec<Origin>) -> Self {
        self.cors = Cors::new(origins);
        self
    }

    pub fn with_bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    pub(super) fn opened(self, listens_on: Option<SocketAddr>, router: Router) -> Opened {
        Opened {
            hosts: Hosts::new(listens_on, &self.names),
            router,
            tls: self.tls,
            proxies: self.proxies,
            cors: self.cors,
            bounds: self.bounds,
        }
    }
}

/// A door with something behind it.
pub(super) struct Opened {
    hosts: Hosts,
    router: Router,
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) proxies: Proxies,
    cors: Cors,
    pub(super) bounds: Bounds,
}

impl Opened {
    /// The answer to a request that came over a connection from `address`.
    pub(super) async fn answer(
        self: Arc<Self>,
        address: IpAddr,
        mut request: Request<Incoming>,
    ) -> Result<Response, Infallible> {
        let client = self.proxies.client(address, request.headers());
        let mut peer = Peer::new(Some(client), request.headers(), SystemClock.now());
        peer.is_tls = self.tls.is_some();
        peer.is_tls_before = self.proxies.is_https(address, request.headers());
        let allowed = self.cors.allowed(&request);
        peer.is_listed = allowed.is_some();
        // Of the highest level, so that a line that is logged always has it.
        let span = tracing::error_span!("request", id = %peer.request_id, from = %client);
        request.extensions_mut().insert(peer.clone());
        let mut response = if allowed.is_some() && Cors::is_preflight(&request) {
            Cors::preflight()
        } else {
            self.pass(request).instrument(span).await?
        };
        peer.sign(&mut response);
        headers::add(response.headers_mut(), self.tls.is_some());
        self.cors.mark(response.headers_mut(), allowed);
        Ok(response)
    }

    async fn pass(&self, request: Request<Incoming>) -> Result<Response, Infallible> {
        let Err(problem) = self.hosts.check(&request) else {
            return self.router.clone().call(request.map(Body::new)).await;
        };
        tracing::debug!(detail = problem.detail, "a request was refused at the door");
        let mut response = problem.into_response();
        if request.version() <= Version::HTTP_11 {
            // What else such a client has sent is not looked at.
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        Ok(response)
    }
}
