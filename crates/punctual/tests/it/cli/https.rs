//! A server behind TLS: something in front of it ends the encryption, as in most places.

use std::sync::Arc;
use std::thread;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::fails;
use crate::support::Server;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../executor/src/http/fixtures");

fn acceptor() -> TlsAcceptor {
    let read = |name: &str| std::fs::read(format!("{FIXTURES}/{name}")).unwrap();
    let chain = CertificateDer::pem_slice_iter(&read("server.pem"))
        .collect::<Result<Vec<_>, _>>()
        .unwrap();
    let key = PrivateKeyDer::from_pem_slice(&read("server-key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// Listens for TLS and passes on what comes; its port. It ends with the test's process.
fn in_front_of(address: String) -> u16 {
    let (sender, port) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            sender.send(listener.local_addr().unwrap().port()).unwrap();
            let acceptor = acceptor();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, address) = (acceptor.clone(), address.clone());
                tokio::spawn(async move {
                    let Ok(mut outside) = acceptor.accept(stream).await else {
                        return;
                    };
                    let mut inside = TcpStream::connect(address).await.unwrap();
                    let _ended = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
                });
            }
        });
    });
    port.recv().unwrap()
}

#[test]
fn a_server_is_spoken_to_over_tls_if_its_certificate_is_trusted() {
    let server = Server::start();
    let port = in_front_of(server.address.clone());
    let ca = format!("--server-ca {FIXTURES}/authority.pem");
    let create = "job create --key far --cron @daily --url http://127.0.0.1:9/";
    let made = server.printed(&format!("{create} --server https://localhost:{port} {ca}"));
    assert!(made.starts_with("created"), "{made}");
    assert!(
        server
            .printed(&format!("job list --server https://localhost:{port}/ {ca}"))
            .contains("far")
    );

    let stranger = server.cli(&format!("job list --server https://localhost:{port}"));
    fails(&stranger, 3, &["TLS", "--server-ca"]);
    let misnamed = server.cli(&format!("job list --server https://127.0.0.1:{port} {ca}"));
    fails(&misnamed, 3, &["TLS", "127.0.0.1"]);
    let clear = server.cli(&format!(
        "job list --server https://{} {ca}",
        server.address
    ));
    fails(&clear, 3, &["TLS", "write http://"]);
    let nothing = server.cli(&format!(
        "job list --server https://localhost:{port} --server-ca /dev/null"
    ));
    fails(&nothing, 2, &["/dev/null", "no certificate"]);
}
