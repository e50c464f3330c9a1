//! https with certificates of a job's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use model::{Outcome, Report};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::HttpExecutor;
use super::receiver::{answer_ok, executor, order, post, soon};
use crate::{Executor, Identity, WorkOrder};

const AUTHORITY: &str = include_str!("fixtures/authority.pem");
const CLIENT: &str = include_str!("fixtures/client.pem");
const CLIENT_KEY: &str = include_str!("fixtures/client-key.pem");

/// What a receiver saw: connections, and how many of them showed a certificate.
#[derive(Default)]
struct Counted {
    connections: AtomicUsize,
    known: AtomicUsize,
}

impl Counted {
    fn both(&self) -> (usize, usize) {
        let read = |count: &AtomicUsize| count.load(Ordering::SeqCst);
        (read(&self.connections), read(&self.known))
    }
}

/// An https receiver on localhost that wants to know who calls, and whether it must.
async fn https(must: bool) -> (u16, Arc<Counted>) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    let authority = include_bytes!("fixtures/client-authority.pem");
    roots
        .add(CertificateDer::from_pem_slice(authority).unwrap())
        .unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let verifier = if must {
        verifier
    } else {
        verifier.allow_unauthenticated()
    };
    let chain = CertificateDer::from_pem_slice(include_bytes!("fixtures/server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("fixtures/server-key.pem")).unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(vec![chain], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let counted = Arc::new(Counted::default());
    let shared = counted.clone();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (acceptor, counted) = (acceptor.clone(), shared.clone());
            counted.connections.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(socket).await else {
                    return;
                };
                if stream.get_ref().1.peer_certificates().is_some() {
                    counted.known.fetch_add(1, Ordering::SeqCst);
                }
                while answer_ok(&mut stream).await.is_some() {}
            });
        }
    });
    (port, counted)
}

fn identity(id: u8, ca: Option<&str>, cert: Option<(&str, &str)>) -> Identity {
    let owned = |(cert, key): (&str, &str)| (cert.to_owned(), key.to_owned());
    Identity {
        id: [id; 32],
        ca: ca.map(str::to_owned),
        cert: cert.map(owned),
    }
}

async fn reported(executor: &HttpExecutor, port: u16, identity: Option<Identity>) -> Report {
    let order = WorkOrder {
        identity: identity.map(Arc::new),
        ..order(post(&format!("https://localhost:{port}/")), None)
    };
    soon(executor.execute(order)).await
}

async fn call(
    executor: &HttpExecutor,
    port: u16,
    identity: Option<Identity>,
) -> Result<(), String> {
    let report = reported(executor, port, identity).await;
    match report.outcome {
        Outcome::Succeeded => Ok(()),
        Outcome::Failed | Outcome::TimedOut | Outcome::Lost | Outcome::Cancelled => {
            Err(report.error.unwrap())
        }
    }
}

#[tokio::test]
async fn a_target_that_wants_to_know_who_calls_is_shown_the_certificate() {
    let (port, counted) = https(true).await;
    let executor = executor();
    let known = || identity(1, Some(AUTHORITY), Some((CLIENT, CLIENT_KEY)));
    assert_eq!(call(&executor, port, Some(known())).await, Ok(()));
    assert_eq!(counted.both(), (1, 1));
    let stranger = identity(2, Some(AUTHORITY), None);
    assert!(call(&executor, port, Some(stranger)).await.is_err());
    let error = call(&executor, port, None).await.unwrap_err();
    assert!(
        error.contains("certificate of localhost"),
        "not trusted: {error}"
    );
}

#[tokio::test]
async fn connections_of_different_certificates_are_never_mixed_up() {
    let (port, counted) = https(false).await;
    let executor = executor();
    let known = || identity(1, Some(AUTHORITY), Some((CLIENT, CLIENT_KEY)));
    let unknown = || identity(2, Some(AUTHORITY), None);
    for _ in 0..3 {
        assert_eq!(call(&executor, port, Some(known())).await, Ok(()));
        assert_eq!(call(&executor, port, Some(unknown())).await, Ok(()));
    }
    assert_eq!(counted.both(), (2, 1), "one connection for each");
    assert!(
        call(&executor, port, None).await.is_err(),
        "nor lent to others"
    );
}

#[tokio::test]
async fn certificates_that_cannot_be_used_are_named_and_nobody_is_called() {
    let (port, counted) = https(false).await;
    let executor = executor();
    let server_key = include_str!("fixtures/server-key.pem");
    for (no, ca, cert, part) in [
        (1, Some("no PEM"), None, "ca is no certificate"),
        (
            2,
            None,
            Some(("no PEM", CLIENT_KEY)),
            "cert is no certificate",
        ),
        (3, None, Some((CLIENT, "no PEM")), "key is no private key"),
        (
            4,
            None,
            Some((CLIENT, server_key)),
            "key is not that of cert",
        ),
    ] {
        let error = call(&executor, port, Some(identity(no, ca, cert))).await;
        let error = error.unwrap_err();
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(counted.both(), (0, 0));
}

#[tokio::test]
async fn certificates_that_are_refused_say_nothing_of_the_target() {
    let (port, _) = https(true).await;
    let executor = executor();
    let other = include_str!("fixtures/server.pem");
    let other_key = include_str!("fixtures/server-key.pem");
    for (case, identity) in [
        ("cannot be used", Some(identity(1, Some("no PEM"), None))),
        ("none shown", Some(identity(2, Some(AUTHORITY), None))),
        (
            "not the one wanted",
            Some(identity(3, Some(AUTHORITY), Some((other, other_key)))),
        ),
        (
            "not trusted",
            Some(identity(4, None, Some((CLIENT, CLIENT_KEY)))),
        ),
        ("nothing known", None),
    ] {
        let report = reported(&executor, port, identity).await;
        assert_eq!(report.outcome, Outcome::Failed, "{case}");
        assert!(!report.unreached, "{case}: {:?}", report.error);
    }
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = gone.local_addr().unwrap().port();
    drop(gone);
    let known = identity(5, Some(AUTHORITY), Some((CLIENT, CLIENT_KEY)));
    assert!(reported(&executor, closed, Some(known)).await.unreached);
}
