//! https: who is trusted, and what is spoken.

use std::time::Duration;

use model::{Outcome, RetryHint};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use super::HttpExecutor;
use super::receiver::{OK, answer_ok, dialer, executor, order, post, soon};
use super::receiver_tls::acceptor;
use crate::Executor;

fn authority() -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(include_bytes!("fixtures/authority.pem")).unwrap()
}

/// An https receiver on localhost that answers one connection's requests; gives its port, and in
/// the end the protocol that was agreed on and how many requests came.
async fn https() -> (u16, tokio::task::JoinHandle<(Option<Vec<u8>>, usize)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let Ok(mut stream) = acceptor(&["http/1.1"]).accept(socket).await else {
            return (None, 0);
        };
        let agreed = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
        let mut requests = 0;
        while answer_ok(&mut stream).await.is_some() {
            requests += 1;
        }
        (agreed, requests)
    });
    (port, serving)
}

#[tokio::test]
async fn a_trusted_target_is_called_over_one_secure_connection() {
    let (port, serving) = https().await;
    let executor = HttpExecutor::trusting(dialer(), [authority()]).unwrap();
    for n in 0..10 {
        let target = post(&format!("https://localhost:{port}/hook"));
        let report = soon(executor.execute(order(target, Some("{}")))).await;
        assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
        let took = report.exchange.unwrap().times.tls;
        assert_eq!(took.is_some(), n == 0, "the first one alone shakes hands");
    }
    drop(executor);
    assert_eq!(
        soon(serving).await.unwrap(),
        (Some(b"http/1.1".to_vec()), 10)
    );
}

async fn refused(executor: HttpExecutor, host: &str) -> String {
    let (port, serving) = https().await;
    let report =
        soon(executor.execute(order(post(&format!("https://{host}:{port}/")), None))).await;
    assert_eq!(
        (report.outcome, report.retry),
        (Outcome::Failed, RetryHint::Usual)
    );
    assert_eq!(soon(serving).await.unwrap().1, 0, "it saw no request");
    report.error.unwrap().replace(&port.to_string(), "PORT")
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_refused() {
    let error = refused(executor(), "localhost").await;
    assert!(
        error.starts_with("the certificate of localhost:PORT is not accepted: "),
        "{error}"
    );
}

#[tokio::test]
async fn a_certificate_for_another_host_is_refused() {
    let error = refused(
        HttpExecutor::trusting(dialer(), [authority()]).unwrap(),
        "127.0.0.1",
    )
    .await;
    assert!(
        error.starts_with("the certificate of 127.0.0.1:PORT is not accepted: "),
        "{error}"
    );
}

#[tokio::test]
async fn a_plain_peer_is_refused_on_https() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let _ = tokio::io::AsyncWriteExt::write_all(&mut socket, OK.as_bytes()).await;
        let _ = socket.read_to_end(&mut Vec::new()).await;
    });
    let report = soon(executor().execute(order(post(&format!("https://{address}/")), None))).await;
    assert_eq!(
        report.error.unwrap(),
        format!("{address} does not speak TLS as it should")
    );
}

#[tokio::test]
async fn dropping_a_delivery_in_the_handshake_closes_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let executor = executor();
    let delivery = executor.execute(order(post(&url), None));
    assert!(
        tokio::time::timeout(Duration::from_millis(100), delivery)
            .await
            .is_err()
    );
    let (mut socket, _) = listener.accept().await.unwrap();
    // The client's greeting came, then the end.
    assert!(soon(socket.read_to_end(&mut Vec::new())).await.unwrap() > 0);
}

#[test]
fn a_root_that_is_no_certificate_is_refused() {
    let error = HttpExecutor::trusting(dialer(), [CertificateDer::from(vec![1, 2, 3])])
        .err()
        .unwrap();
    assert_eq!(
        error.to_string(),
        "a certificate that was to be trusted cannot be read"
    );
}
