//! What connections are held to.

use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;

/// Headers of one request.
pub(super) const HEADERS_MAX: usize = 64;
/// Bytes of a request's head; beyond that the answer is 431.
pub(super) const HEAD_BYTES_MAX: usize = 32 * 1024;
/// Requests at once on one HTTP/2 connection.
const STREAMS_MAX: u32 = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Connections at once; more wait in the kernel's queue.
    pub connections_max: usize,
    /// How many percent of these one address may have, or one network of IPv6; one at least. More are closed at once. Trusted
    /// proxies may have all: they speak for many.
    pub connections_share: u8,
    /// How long the handshake of TLS may take.
    pub handshake_wait: Duration,
    /// The head of a request must be complete within this; an idle connection is closed after it too.
    pub head_wait: Duration,
    /// A connection on which no byte has moved for this long, either way, is closed, and so is one without a request. Longer
    /// than any request may take.
    pub idle_max: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections_max: 4_096,
            connections_share: 25,
            handshake_wait: Duration::from_secs(10),
            head_wait: Duration::from_secs(30),
            idle_max: Duration::from_secs(45),
        }
    }
}

impl Bounds {
    pub(super) fn builder(&self) -> Builder<TokioExecutor> {
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.head_wait)
            .max_headers(HEADERS_MAX)
            .max_buf_size(HEAD_BYTES_MAX);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS_MAX)
            .max_header_list_size(HEAD_BYTES_MAX as u32)
            .keep_alive_interval(self.head_wait);
        builder
    }

    /// How many connections one address may have.
    pub(super) fn of_address(&self) -> usize {
        let share = self
            .connections_max
            .saturating_mul(self.connections_share.into())
            / 100;
        share.clamp(1, self.connections_max.max(1))
    }

    /// How often to look whether anything has moved.
    pub(super) fn idle_check_every(&self) -> Duration {
        self.idle_max / 9
    }
}
