//! Deliveries that got no answer, as one line for history. The line says what a job's owner can act
//! on and no more: addresses, system errors and what a stranger's socket sent stay in the log.

use std::io;

use hyper::http::uri::Authority;
use model::RetryHint;

use crate::egress::DialError;

#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error("the URL cannot be called: it has no host")]
    NoHost,
    /// The host cannot be resolved, or may not be called.
    #[error(transparent)]
    Dial(DialError),
    // One text for refused, unroutable and forbidden: an error is no port scanner.
    #[error("{authority} cannot be reached")]
    Unreachable {
        authority: Authority,
        cause: Option<io::Error>,
    },
    #[error("the certificate of {authority} is not accepted: {detail}")]
    Certificate {
        authority: Authority,
        detail: String,
    },
    #[error("the target's own certificates cannot be used: {0}")]
    Identity(&'static str),
    #[error("{authority} does not speak TLS as it should")]
    Tls {
        authority: Authority,
        cause: io::Error,
    },
    #[error("the answer is not HTTP/1.1")]
    NotHttp(#[source] hyper::Error),
    #[error("the head of the answer is too large")]
    HeadTooLarge(#[source] hyper::Error),
    #[error("the target closed the connection without an answer")]
    Closed(#[source] hyper::Error),
    #[error("the connection broke before the answer came")]
    Cut(#[source] hyper::Error),
}

impl Broken {
    /// From why there is no connection to an authority.
    pub(super) fn undialled(authority: &Authority, error: DialError) -> Self {
        match error {
            DialError::Unreachable { cause, .. } => Self::Unreachable {
                authority: authority.clone(),
                cause,
            },
            error @ (DialError::Unresolved { .. } | DialError::Refused { .. }) => Self::Dial(error),
        }
    }

    /// From what hyper says while no answer has come.
    pub(super) fn before_the_answer(error: hyper::Error) -> Self {
        if error.is_parse_too_large() {
            Self::HeadTooLarge(error)
        } else if error.is_parse() {
            Self::NotHttp(error)
        } else if error.is_incomplete_message() {
            Self::Closed(error)
        } else {
            Self::Cut(error)
        }
    }

    /// Networks recover; a URL that cannot be called does not.
    pub(super) fn retry(&self) -> RetryHint {
        match self {
            Self::NoHost => RetryHint::Never,
            Self::Dial(error) => error.retry(),
            Self::Unreachable { .. }
            | Self::Certificate { .. }
            | Self::Identity(_)
            | Self::Tls { .. }
            | Self::NotHttp(_)
            | Self::HeadTooLarge(_)
            | Self::Closed(_)
            | Self::Cut(_) => RetryHint::Usual,
        }
    }
}
