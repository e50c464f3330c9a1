//! The one place where an address is dialled: a host is resolved, each of its addresses is checked, and what was checked is
//! what is connected to.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use model::RetryHint;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::names::{Names, Resolve, System};
use super::{Egress, Refused};

/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 8;
/// How long one of them is called before the next is as well (RFC 8305).
const STAGGER: Duration = Duration::from_millis(250);

#[derive(Debug, thiserror::Error)]
pub enum DialError {
    #[error("the host name {host} cannot be resolved")]
    Unresolved {
        host: String,
        cause: Option<Arc<io::Error>>,
    },
    #[error("{}", refused.of_host(host))]
    Refused { host: String, refused: Refused },
    #[error("{host} cannot be reached")]
    Unreachable {
        host: String,
        cause: Option<io::Error>,
    },
}

impl DialError {
    /// Networks recover and names change; an address that may not be called stays what it is.
    pub fn retry(&self) -> RetryHint {
        match self {
            Self::Refused {
                refused: Refused::Port { .. },
                ..
            } => RetryHint::Never,
            Self::Refused { host, .. } if model::host::address(host).is_some() => RetryHint::Never,
            Self::Refused { .. } | Self::Unresolved { .. } | Self::Unreachable { .. } => {
                RetryHint::Usual
            }
        }
    }
}

/// Connects to whom it may.
pub struct Dialer {
    egress: Arc<Egress>,
    names: Names,
}

impl Dialer {
    pub fn new(egress: Arc<Egress>) -> Self {
        Self::resolving(egress, Arc::new(System))
    }

    /// The same, which finds the addresses of names by another way than the system's.
    pub fn resolving(egress: Arc<Egress>, resolve: Arc<dyn Resolve>) -> Self {
        let names = Names::new(resolve);
        Self { egress, names }
    }

    pub fn egress(&self) -> &Arc<Egress> {
        &self.egress
    }

    /// Connects to the first address of a host that may be called and answers, each with a head start before the next. `host` is a
    /// name or an address, IPv6 without its brackets.
    pub async fn dial(&self, host: &str, port: u16) -> Result<TcpStream, DialError> {
        let unreachable = |cause| DialError::Unreachable {
            host: host.to_owned(),
            cause,
        };
        let addresses = self.addresses(host, port).await?;
        let socket = connect(addresses).await.map_err(unreachable)?;
        socket
            .set_nodelay(true)
            .map_err(|cause| unreachable(Some(cause)))?;
        Ok(socket)
    }

    /// Those addresses of a host that may be called, in the order in which they are to be tried: at least one.
    pub async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, DialError> {
        let refuse = |refused| DialError::Refused {
            host: host.to_owned(),
            refused,
        };
        self.egress.check_port(port).map_err(refuse)?;
        let found = self.names.resolve(host).await?;
        let mut allowed = Vec::with_capacity(found.len().min(ADDRESSES_MAX));
        let mut refused = None;
        for address in found.iter() {
            match self.egress.check(*address, port) {
                Ok(()) => allowed.push(SocketAddr::new(address.to_canonical(), port)),
                Err(why) => refused = refused.or(Some(why)),
            }
        }
        allowed.truncate(ADDRESSES_MAX);
        if !allowed.is_empty() {
            return Ok(allowed);
        }
        let nowhere = DialError::Unreachable {
            host: host.to_owned(),
            cause: None,
        };
        Err(refused.map_or(nowhere, refuse))
    }
}

/// The first of these that answers. One that says nothing for a while is not waited for alone: the next is called beside it, so
/// that a dead address costs that while and not the whole time that an attempt has.
async fn connect(addresses: Vec<SocketAddr>) -> Result<TcpStream, Option<io::Error>> {
    let mut left = addresses.into_iter();
    if let (Some(only), 1) = (left.as_slice().first(), left.len()) {
        return TcpStream::connect(only).await.map_err(Some);
    }
    // Whatever is still under way ends with it.
    let mut tries = JoinSet::new();
    let mut last = None;
    loop {
        if let Some(address) = left.next() {
            tries.spawn(TcpStream::connect(address));
        }
        let next = if left.len() == 0 {
            Ok(tries.join_next().await)
        } else {
            timeout(STAGGER, tries.join_next()).await
        };
        match next {
            Ok(Some(Ok(Ok(socket)))) => return Ok(socket),
            Ok(Some(Ok(Err(cause)))) => last = Some(cause),
            Ok(None) => return Err(last),
            // It said nothing for so long, or did not run to its end.
            Ok(Some(Err(_))) | Err(_) => {}
        }
    }
}

#[cfg(test)]
#[path = "dial_tests.rs"]
mod tests;
