//! What an attempt keeps of its exchange with a target over a network, beside the answer itself: whom it reached, how long
//! each step took, and the headers that its job wants to see.

use std::net::SocketAddr;
use std::time::Duration;

use crate::attempt::cut;
use crate::{limits, mask};

/// One request and its answer, as far as they got.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exchange {
    /// The address at the other end of the connection.
    pub peer: Option<SocketAddr>,
    pub times: Times,
    /// Headers of the answer that the target's `keep_headers` names, as they may be shown.
    pub headers: Vec<(String, String)>,
    /// What was odd about the answer and is no failure.
    pub note: Option<String>,
}

/// How long each step took, in whole microseconds. What did not happen has none: a connection that was kept from an earlier
/// exchange needs no connect and no handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// To resolve the name and to connect.
    pub connect: Option<Duration>,
    /// The handshake of TLS.
    pub tls: Option<Duration>,
    /// From the start of the attempt to the head of the answer.
    pub first_byte: Option<Duration>,
    /// From the start of the attempt to the end of the answer.
    pub total: Option<Duration>,
}

impl Exchange {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Everything in it that came from outside.
    pub fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        let values = self.headers.iter_mut().map(|(_, value)| value);
        values.chain(&mut self.note)
    }

    /// Keeps a header of the answer: masked if its name says secret, and no more than the head of its value.
    pub fn keep_header(&mut self, name: &str, value: &[u8]) {
        let value = String::from_utf8_lossy(value);
        let value = mask::shown_answer_header(name, &value);
        let value = cut(value.into_owned(), limits::KEPT_HEADER_MAX);
        self.headers.push((name.to_owned(), value));
    }
}

impl Times {
    /// As it is kept: in whole microseconds.
    pub fn whole(span: Duration) -> Duration {
        Duration::from_micros(Self::micros(span))
    }

    pub fn micros(span: Duration) -> u64 {
        u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_header_shows_no_secret_and_is_bounded() {
        let mut exchange = Exchange::default();
        exchange.keep_header("x-request-id", b"abc");
        exchange.keep_header("set-cookie", b"planted");
        exchange.keep_header("x-long", "é".repeat(limits::KEPT_HEADER_MAX).as_bytes());
        let values: Vec<&str> = exchange.headers.iter().map(|it| it.1.as_str()).collect();
        assert_eq!(values[..2], ["abc", mask::MASK]);
        assert_eq!(values[2].len(), limits::KEPT_HEADER_MAX);
    }

    #[test]
    fn times_are_whole_microseconds() {
        let kept = Times::whole(Duration::from_nanos(1_500));
        assert_eq!(kept, Duration::from_micros(1));
    }
}
