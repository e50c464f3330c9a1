//! From an order to the request that delivers it.

use std::fmt::{self, Write};

use bytes::BytesMut;
use hyper::header::{
    ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue,
    USER_AGENT,
};
use hyper::http::uri::{PathAndQuery, Scheme};
use hyper::{Method, Request, Uri};
use model::Lane;
use model::target::HttpTarget;

use super::link::Body;
use super::signed;
use super::trace::TraceParent;
use crate::WorkOrder;

const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const JOB: HeaderName = HeaderName::from_static("punctual-job");
const RUN: HeaderName = HeaderName::from_static("punctual-run");
const SLOT: HeaderName = HeaderName::from_static("punctual-slot");
const ATTEMPT: HeaderName = HeaderName::from_static("punctual-attempt");
const LANE: HeaderName = HeaderName::from_static("punctual-lane");
const TOKEN: HeaderName = HeaderName::from_static("punctual-token");
const REPORT_URL: HeaderName = HeaderName::from_static("punctual-report-url");
const NODE: HeaderName = HeaderName::from_static("punctual-node");

const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("punctual/", env!("CARGO_PKG_VERSION")));
const NOTHING: HeaderValue = HeaderValue::from_static("0");
const GZIP: HeaderValue = HeaderValue::from_static("gzip");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Headers that we add to the job's own.
const OWN_HEADERS: usize = 12 + signed::HEADERS;
/// Bytes that the values of an order take, with a host and a node name of usual length.
const SCRATCH: usize = 320;

pub(super) fn build(order: &WorkOrder, target: &HttpTarget) -> Request<Body> {
    let body = match target.method {
        Method::GET | Method::HEAD => None,
        _ => order.payload().cloned(),
    };
    let given = order.headers.as_ref().unwrap_or(&target.headers);
    let mut headers = HeaderMap::with_capacity(given.len() + OWN_HEADERS);
    headers.extend(given.iter().cloned());
    if body.is_some() {
        headers.entry(CONTENT_TYPE).or_insert(JSON);
    } else if has_body(&target.method) {
        // Said aloud, because some servers refuse such a request if its length is not announced.
        headers.insert(CONTENT_LENGTH, NOTHING);
    }
    headers.entry(ACCEPT_ENCODING).or_insert(GZIP);
    add_own(&mut headers, order, target);
    signed::add(&mut headers, order, body.as_deref().unwrap_or_default());

    let path = order.path.clone();
    let path = path.or_else(|| target.url.path_and_query().cloned());
    let mut request = Request::new(body.map(Body::new).unwrap_or_default());
    *request.method_mut() = target.method.clone();
    *request.uri_mut() = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    *request.headers_mut() = headers;
    request
}

/// Whether a method is expected to bring a body.
fn has_body(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

/// Ours come last: whatever a job has set, these say what they always say.
fn add_own(headers: &mut HeaderMap, order: &WorkOrder, target: &HttpTarget) {
    let mut scratch = Scratch(BytesMut::with_capacity(SCRATCH));
    let given_trace = headers.remove(TRACE_PARENT);
    let mut add = |name, value: Option<HeaderValue>| {
        if let Some(value) = value {
            headers.insert(name, value);
        }
    };
    let run = scratch.value(order.run);
    // A job may say itself whose trace it is, and so may whoever started the run.
    let trace = given_trace.or_else(|| match order.trace {
        Some(trace) => scratch.value(trace),
        None => scratch.value(TraceParent {
            run: order.run,
            attempt: order.attempt,
        }),
    });
    add(TRACE_PARENT, trace);
    add(HOST, scratch.value(Host(&target.url)));
    add(USER_AGENT, Some(AGENT));
    add(IDEMPOTENCY_KEY, run.clone());
    add(JOB, scratch.value(order.job.id));
    add(RUN, run);
    add(SLOT, order.slot.and_then(|slot| scratch.value(slot)));
    add(ATTEMPT, scratch.value(order.attempt));
    add(LANE, Some(lane(order.job.def.lane)));
    add(NODE, scratch.value(Visible(&order.node)));
    if let Some(callback) = &order.callback {
        let token = scratch.value(&callback.token).map(|mut token| {
            token.set_sensitive(true);
            token
        });
        add(TOKEN, token);
        add(REPORT_URL, scratch.value(&callback.report_url));
    }
}

fn lane(lane: Lane) -> HeaderValue {
    HeaderValue::from_static(lane.as_str())
}

/// One allocation that all values of a request are cut from.
struct Scratch(BytesMut);

impl Scratch {
    /// None if it cannot stand in a header; what is written here always can.
    fn value(&mut self, value: impl fmt::Display) -> Option<HeaderValue> {
        write!(self.0, "{value}").ok()?;
        HeaderValue::from_maybe_shared(self.0.split().freeze()).ok()
    }
}

/// The host as `Host` wants it: with its port unless that is the scheme's own.
struct Host<'a>(&'a Uri);

impl fmt::Display for Host<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.host().unwrap_or_default())?;
        let usual = if self.0.scheme() == Some(&Scheme::HTTPS) {
            443
        } else {
            80
        };
        match self.0.port_u16() {
            Some(port) if port != usual => write!(f, ":{port}"),
            Some(_) | None => Ok(()),
        }
    }
}

/// A text of which everything but visible ASCII is shown as `?`.
struct Visible<'a>(&'a str);

impl fmt::Display for Visible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .chars()
            .try_for_each(|c| f.write_char(if c.is_ascii_graphic() { c } else { '?' }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_host(url: &str, expected: &str) {
        assert_eq!(Host(&url.parse().unwrap()).to_string(), expected, "{url}");
    }

    #[test]
    fn the_host_has_its_port_unless_it_is_the_usual_one() {
        check_host("http://example.com/a", "example.com");
        check_host("http://example.com:80/", "example.com");
        check_host("https://example.com:443/", "example.com");
        check_host("https://example.com:80/", "example.com:80");
        check_host("http://[::1]:8080/", "[::1]:8080");
    }

    #[test]
    fn a_node_name_can_always_stand_in_a_header() {
        assert_eq!(Visible("größe\r\n1").to_string(), "gr??e??1");
        let mut scratch = Scratch(BytesMut::new());
        assert_eq!(scratch.value(Visible("n1")).unwrap(), "n1");
        assert_eq!(scratch.value(7).unwrap(), "7");
    }
}
