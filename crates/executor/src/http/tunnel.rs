//! The way to a target through its tenant's proxy: `CONNECT`, for http targets as well as for https ones.
//!
//! The name is resolved and checked here, and the proxy is given an address: it is called by nobody whom this node may not
//! call, and cannot find another address for the name. The proxy's own address is checked when it is dialled, as any.

use std::io;
use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::Proxy;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use zeroize::Zeroizing;

use super::broken::Broken;
use crate::egress::{DialError, Dialer};

/// Bytes of the head of an answer to `CONNECT`.
const HEAD_MAX: usize = 16 * 1024;
const READ: usize = 1024;

/// Why a proxy opened no way.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProxyFault {
    // One text for refused and unroutable, as for targets.
    #[error("cannot be reached")]
    Unreachable,
    /// It cannot be resolved, or may not be called.
    #[error("cannot be used: {0}")]
    Undialled(DialError),
    #[error("broke the connection off")]
    Cut(#[source] io::Error),
    #[error("closed the connection without an answer")]
    Closed,
    #[error("does not answer as a proxy does")]
    NotProxy,
    #[error("wants another user or password: it answered 407")]
    Unauthorized,
    #[error("opens no connection to the target: it answered {0}")]
    Refused(u16),
}

impl ProxyFault {
    /// Whether the target may be reached at another of its addresses.
    fn is_of_address(&self) -> bool {
        matches!(self, Self::Refused(502..=504))
    }
}

/// A connection to the first of these addresses that the proxy opens one to.
pub(super) async fn open(
    dialer: &Dialer,
    proxy: &Proxy,
    addresses: &[SocketAddr],
) -> Result<(TcpStream, SocketAddr), Broken> {
    let mut last = ProxyFault::Unreachable;
    for address in addresses {
        match connect(dialer, proxy, *address).await {
            Ok(socket) => return Ok((socket, *address)),
            Err(fault) => last = fault,
        }
        if !last.is_of_address() {
            break;
        }
    }
    Err(Broken::Proxy {
        proxy: proxy.address(),
        fault: last,
    })
}

async fn connect(
    dialer: &Dialer,
    proxy: &Proxy,
    address: SocketAddr,
) -> Result<TcpStream, ProxyFault> {
    let dialled = dialer.dial(proxy.host(), proxy.port()).await;
    let mut socket = dialled.map_err(|error| match error {
        DialError::Unreachable { .. } => ProxyFault::Unreachable,
        error @ (DialError::Unresolved { .. } | DialError::Refused { .. }) => {
            ProxyFault::Undialled(error)
        }
    })?;
    let request = request(proxy, address);
    let sent = socket.write_all(request.as_bytes()).await;
    sent.map_err(ProxyFault::Cut)?;
    match status(&mut socket).await? {
        200..=299 => Ok(socket),
        407 => Err(ProxyFault::Unauthorized),
        other => Err(ProxyFault::Refused(other)),
    }
}

fn request(proxy: &Proxy, address: SocketAddr) -> Zeroizing<String> {
    let mut request = Zeroizing::new(format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n"));
    if let Some(credentials) = proxy.credentials().map(Zeroizing::new) {
        let encoded = Zeroizing::new(STANDARD.encode(credentials.as_bytes()));
        request.push_str("Proxy-Authorization: Basic ");
        request.push_str(&encoded);
        request.push_str("\r\n");
    }
    request.push_str("\r\n");
    request
}

/// Reads the head of the answer, and nothing beyond it: what follows a good one is the target's.
async fn status(socket: &mut TcpStream) -> Result<u16, ProxyFault> {
    let mut head = Vec::with_capacity(READ);
    let end = loop {
        let read = socket.read_buf(&mut head).await.map_err(ProxyFault::Cut)?;
        if let Some(end) = end_of(&head) {
            break end;
        }
        if read == 0 {
            let nothing = head.is_empty();
            return Err(if nothing {
                ProxyFault::Closed
            } else {
                ProxyFault::NotProxy
            });
        }
        if head.len() > HEAD_MAX || !may_be_http(&head) {
            return Err(ProxyFault::NotProxy);
        }
    };
    let status = status_of(&head).ok_or(ProxyFault::NotProxy)?;
    // A target says nothing before it was sent something.
    if (200..300).contains(&status) && end < head.len() {
        return Err(ProxyFault::NotProxy);
    }
    Ok(status)
}

/// Where the head ends, if all of it is there.
fn end_of(head: &[u8]) -> Option<usize> {
    let at = head.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some(at + 4)
}

fn may_be_http(head: &[u8]) -> bool {
    const BEGINS: &[u8] = b"HTTP/1.";
    head.iter()
        .zip(BEGINS)
        .all(|(given, wanted)| given == wanted)
}

/// That of a line such as `HTTP/1.1 200 Connection established`.
fn status_of(head: &[u8]) -> Option<u16> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let rest = line.strip_prefix("HTTP/1.")?;
    let mut words = rest.splitn(3, ' ');
    let minor = words.next()?;
    let status = words.next()?;
    let is_number =
        |text: &str, digits| text.len() == digits && text.bytes().all(|it| it.is_ascii_digit());
    if !is_number(minor, 1) || !is_number(status, 3) {
        return None;
    }
    status.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_from_its_line_alone() {
        for (head, status) in [
            (
                &b"HTTP/1.1 200 Connection established\r\n\r\n"[..],
                Some(200),
            ),
            (
                b"HTTP/1.0 407 Proxy Authentication Required\r\nx: y\r\n\r\n",
                Some(407),
            ),
            (b"HTTP/1.1 200\r\n\r\n", Some(200)),
            (b"HTTP/1.1 20\r\n\r\n", None),
            (b"HTTP/1.1 2000\r\n\r\n", None),
            (b"HTTP/1.1 abc\r\n\r\n", None),
            (b"HTTP/1. 200 OK\r\n\r\n", None),
            (b"HTTP/2 200\r\n\r\n", None),
            (b"\xff\xff\r\n\r\n", None),
        ] {
            assert_eq!(status_of(head), status, "{head:?}");
        }
    }

    #[test]
    fn the_password_is_sent_and_the_address_is_named() {
        let proxy = Proxy::parse("http://Aladdin:open%20sesame@p:1").unwrap();
        let address = "[2001:db8::1]:443".parse().unwrap();
        assert_eq!(
            *request(&proxy, address),
            "CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n\
             Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n"
        );
        let open = Proxy::parse("http://p:1").unwrap();
        assert!(!request(&open, address).contains("Authorization"));
    }
}
