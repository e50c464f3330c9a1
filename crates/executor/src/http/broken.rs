//! Deliveries that got no answer, as one line for history. The line says what a job's owner can act
//! on and no more: addresses, system errors and what a stranger's socket sent stay in the log.

use std::error::Error;
use std::io;

use hyper::http::uri::Authority;
use model::RetryHint;
use rustls::AlertDescription;

use super::tunnel::ProxyFault;
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
    /// The tenant's proxy opened no way to the target.
    #[error("the proxy {proxy} {fault}")]
    Proxy { proxy: String, fault: ProxyFault },
    #[error("the certificate of {authority} is not accepted: {detail}")]
    Certificate {
        authority: Authority,
        detail: String,
        /// Nobody whom the caller trusts has signed it. Others may trust more.
        is_unknown: bool,
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

    /// Whether this is between a caller and the target, and says nothing of how the target is for others: what was refused is
    /// the certificates that the one shows, or trusts.
    pub(super) fn is_personal(&self, has_identity: bool) -> bool {
        match self {
            Self::Identity(_) => true,
            Self::Certificate { is_unknown, .. } => has_identity || *is_unknown,
            Self::Tls { cause, .. } => has_identity || is_refusal(cause),
            // A target may refuse a certificate when the connection stands and the request is on its way.
            Self::NotHttp(error)
            | Self::HeadTooLarge(error)
            | Self::Closed(error)
            | Self::Cut(error) => is_refusal(error),
            Self::NoHost | Self::Dial(_) | Self::Unreachable { .. } | Self::Proxy { .. } => false,
        }
    }

    /// Networks recover; a URL that cannot be called does not.
    pub(super) fn retry(&self) -> RetryHint {
        match self {
            Self::NoHost => RetryHint::Never,
            Self::Dial(error) => error.retry(),
            Self::Unreachable { .. }
            | Self::Proxy { .. }
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

/// Whether the other side has said within TLS that it will not talk to this caller.
fn is_refusal(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let io = error.downcast_ref::<io::Error>();
        // What an I/O error holds is not its source.
        let inner = io.and_then(io::Error::get_ref);
        let inner = inner.map(|inner| inner as &(dyn Error + 'static));
        if let Some(rustls::Error::AlertReceived(alert)) =
            inner.unwrap_or(error).downcast_ref::<rustls::Error>()
        {
            return *alert != AlertDescription::InternalError;
        }
        next = inner.or_else(|| error.source());
    }
    false
}
