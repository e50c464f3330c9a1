//! TLS on a real socket: who is let in, how certificates change, and what stalled handshakes cost.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use server::{Bounds, Door, Tls, TlsFiles};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::sockets::{Served, served_by};
use crate::world::{World, pause};

const GET: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// A folder with an authority, and what it signed.
struct Authority(TempDir);

impl Authority {
    fn new() -> Self {
        let own = Self(TempDir::new().unwrap());
        own.openssl("-subj /CN=authority -keyout ca.key -out ca.pem");
        own
    }

    fn openssl(&self, more: &str) {
        let made = Command::new("openssl")
            .args(
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30".split(' '),
            )
            .args(more.split_whitespace())
            .current_dir(self.0.path())
            .output()
            .unwrap_or_else(|error| panic!("openssl, of the Debian package openssl: {error}"));
        assert!(made.status.success(), "{made:?}");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn sign(&self, name: &str) {
        self.openssl(&format!(
            "-subj /CN={name} -CA ca.pem -CAkey ca.key -addext subjectAltName=DNS:localhost \
             -addext basicConstraints=critical,CA:FALSE -keyout {name}.key -out {name}.pem"
        ));
    }

    fn files(&self, name: &str) -> TlsFiles {
        TlsFiles {
            cert: self.path(&format!("{name}.pem")),
            key: self.path(&format!("{name}.key")),
            client_ca: None,
        }
    }

    fn certificate(&self, name: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_file(self.path(&format!("{name}.pem"))).unwrap()
    }
}

fn copy(from: &Path, to: &Path) {
    let beside = to.with_extension("new");
    fs::copy(from, &beside).unwrap();
    fs::rename(&beside, to).unwrap();
}

/// A server that follows its files.
async fn secured(files: TlsFiles, bounds: Bounds) -> (Served, Arc<Tls>) {
    let tls = Arc::new(Tls::load(files).await.unwrap());
    let door = Door::default()
        .with_tls(Some(Arc::clone(&tls)))
        .with_bounds(bounds);
    let followed = Arc::clone(&tls);
    tokio::spawn(async move { followed.keep().await });
    (served_by(World::new().await, door).await, tls)
}

/// A client that trusts the authority, and may have a certificate of its own.
async fn connect(
    served: &Served,
    authority: &Authority,
    protocol: &str,
    own: Option<&str>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.certificate("ca")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match own {
        Some(name) => {
            let key = PrivateKeyDer::from_pem_file(authority.path(&format!("{name}.key"))).unwrap();
            builder
                .with_client_auth_cert(vec![authority.certificate(name)], key)
                .unwrap()
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![protocol.into()];
    let stream = TcpStream::connect(served.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
}

/// Sends, and reads what comes first.
async fn exchange(stream: &mut TlsStream<TcpStream>, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    stream.write_all(bytes).await?;
    let mut buffer = vec![0; 8_192];
    let patience = Duration::from_secs(20);
    let count = tokio::time::timeout(patience, stream.read(&mut buffer)).await??;
    buffer.truncate(count);
    Ok(buffer)
}

async fn is_answered(stream: &mut TlsStream<TcpStream>) -> bool {
    let reply = exchange(stream, GET).await;
    reply.is_ok_and(|reply| reply.starts_with(b"HTTP/1.1 200"))
}

fn shown(stream: &TlsStream<TcpStream>) -> CertificateDer<'static> {
    let (_, session) = stream.get_ref();
    session.peer_certificates().unwrap()[0].clone().into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_protocols_are_spoken_and_nothing_without_tls() {
    let authority = Authority::new();
    authority.sign("one");
    let (served, _) = secured(authority.files("one"), Bounds::default()).await;
    let mut old = connect(&served, &authority, "http/1.1", None)
        .await
        .unwrap();
    let reply = String::from_utf8(exchange(&mut old, GET).await.unwrap()).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    assert!(
        reply.contains("strict-transport-security: max-age="),
        "{reply}"
    );
    let mut new = connect(&served, &authority, "h2", None).await.unwrap();
    assert_eq!(new.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let frame = exchange(&mut new, preface).await.unwrap();
    assert_eq!(frame[3], 4, "settings come first: {frame:?}");
    let plain = served.raw(GET).await;
    assert!(!plain.contains("HTTP/1.1 200"), "{plain}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_certificate_is_for_new_connections_and_open_ones_go_on() {
    let authority = Authority::new();
    for name in ["one", "two"] {
        authority.sign(name);
    }
    let (served, tls) = secured(authority.files("one"), Bounds::default()).await;
    let first = authority.certificate("one");
    let mut open = connect(&served, &authority, "http/1.1", None)
        .await
        .unwrap();
    assert!(is_answered(&mut open).await);
    assert_eq!(shown(&open), first);

    // Half a pair is none.
    copy(&authority.path("two.pem"), &authority.path("one.pem"));
    for _ in 0..3 {
        tls.check_files();
        pause(100).await;
        let mut other = connect(&served, &authority, "http/1.1", None)
            .await
            .unwrap();
        assert_eq!(shown(&other), first);
        assert!(is_answered(&mut other).await);
    }
    copy(&authority.path("two.key"), &authority.path("one.key"));
    let mut is_new = false;
    for _ in 0..200 {
        let other = connect(&served, &authority, "http/1.1", None)
            .await
            .unwrap();
        is_new = shown(&other) == authority.certificate("two");
        if is_new {
            break;
        }
        pause(50).await;
    }
    assert!(is_new, "within ten seconds, though nobody said anything");
    assert!(is_answered(&mut open).await, "the old connection goes on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_certificates_are_required_nobody_gets_in_without() {
    let (authority, other) = (Authority::new(), Authority::new());
    for name in ["one", "client"] {
        authority.sign(name);
    }
    let files = TlsFiles {
        client_ca: Some(authority.path("ca.pem")),
        ..authority.files("one")
    };
    let (served, _) = secured(files, Bounds::default()).await;
    let known = connect(&served, &authority, "http/1.1", Some("client")).await;
    assert!(is_answered(&mut known.unwrap()).await);
    // The client learns of it with the first answer that does not come.
    let unknown = connect(&served, &authority, "http/1.1", None).await;
    if let Ok(mut stream) = unknown {
        assert!(!is_answered(&mut stream).await);
    }
    other.sign("foreign");
    for end in ["pem", "key"] {
        let name = format!("foreign.{end}");
        fs::copy(other.path(&name), authority.path(&name)).unwrap();
    }
    let foreign = connect(&served, &authority, "http/1.1", Some("foreign")).await;
    if let Ok(mut stream) = foreign {
        assert!(!is_answered(&mut stream).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handshake_that_stalls_holds_up_nobody_and_is_ended() {
    let authority = Authority::new();
    authority.sign("one");
    let bounds = Bounds {
        handshake_wait: Duration::from_secs(2),
        ..Bounds::default()
    };
    let (served, _) = secured(authority.files("one"), bounds).await;
    let mut stalled = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(b"\x16\x03\x01").await.unwrap();
        stalled.push(stream);
    }
    let mut quick = connect(&served, &authority, "http/1.1", None)
        .await
        .unwrap();
    assert!(is_answered(&mut quick).await);
    for mut stream in stalled {
        let ended = tokio::time::timeout(Duration::from_secs(20), stream.read(&mut [0; 64])).await;
        assert!(matches!(ended, Ok(Ok(0) | Err(_))), "{ended:?}");
    }
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named() {
    let authority = Authority::new();
    for name in ["one", "two"] {
        authority.sign(name);
    }
    let load = async |files: TlsFiles| Tls::load(files).await.map(drop).unwrap_err().to_string();
    let absent = load(authority.files("none")).await;
    assert!(absent.contains("none.pem cannot be read"), "{absent}");
    let mixed = TlsFiles {
        key: authority.path("two.key"),
        ..authority.files("one")
    };
    let mixed = load(mixed).await;
    assert!(mixed.contains("do not go together"), "{mixed}");
    let swapped = TlsFiles {
        cert: authority.path("one.key"),
        ..authority.files("one")
    };
    let swapped = load(swapped).await;
    assert!(swapped.contains("no file of certificates"), "{swapped}");
    let empty = TlsFiles {
        client_ca: Some(authority.path("one.key")),
        ..authority.files("one")
    };
    assert!(load(empty).await.contains("one.key"));
}
