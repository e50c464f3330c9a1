//! What every request meets on its way in, and every answer on its way out.

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use model::{Role, TenantId};
use server::{Bounds, Door, Peer, Proxies, ProxyHeader};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::sockets::{Served, read, served_by};
use crate::world::{World, pause};

/// Much longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

async fn served() -> Served {
    served_with(Door::default()).await
}

async fn served_with(door: Door) -> Served {
    served_by(World::new().await, door).await
}

/// Sends a request whose answer ends the connection; the answer.
pub async fn exchange(
    served: &Served,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> String {
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let bytes = request(method, path, headers);
    stream.write_all(&bytes).await.unwrap();
    all_of(&mut stream).await
}

/// Whatever comes until the other side closes.
async fn all_of(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut all)).await;
    assert!(matches!(read, Ok(Ok(_))), "{read:?}");
    String::from_utf8(all).unwrap()
}

/// How the next answer begins.
async fn first_of(stream: &mut TcpStream) -> String {
    let mut buffer = [0; 12];
    let read = tokio::time::timeout(PATIENCE, stream.read_exact(&mut buffer)).await;
    assert!(matches!(read, Ok(Ok(_))), "{read:?}");
    String::from_utf8_lossy(&buffer).into_owned()
}

/// A header of an answer.
pub fn header<'a>(reply: &'a str, name: &str) -> Option<&'a str> {
    let (head, _) = reply.split_once("\r\n\r\n")?;
    head.lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(given, _)| given.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}

/// A request whose answer ends the connection.
pub fn request(method: &str, path: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
    let host = [("host", "localhost")];
    let has_host = headers.iter().any(|(name, _)| *name == "host");
    let host = host.iter().filter(|_| !has_host);
    for (name, value) in host.chain(headers) {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.into_bytes()
}

/// One of each kind of answer: a host, a path, a status.
const ANSWERS: [(&str, &str, &str); 6] = [
    ("localhost", "/healthz", "200"),
    ("localhost", "/v1/jobs", "200"),
    ("localhost", "/v1/jobs/none", "404"),
    ("localhost", "/nowhere", "404"),
    ("localhost", "/docs", "200"),
    ("evil.example", "/healthz", "421"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_names_its_request() {
    let served = served().await;
    for (host, path, status) in ANSWERS {
        let given = [("host", host), ("x-request-id", "order-7")];
        let named = exchange(&served, "GET", path, &given).await;
        assert!(named.starts_with(&format!("HTTP/1.1 {status}")), "{named}");
        assert_eq!(header(&named, "x-request-id"), Some("order-7"), "{named}");
        let unnamed = exchange(&served, "GET", path, &[("host", host)]).await;
        let made = header(&unnamed, "x-request-id").unwrap();
        assert_eq!((made.len(), made.as_bytes()[14]), (36, b'7'), "{unnamed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_forbids_browsers_to_run_anything_of_it() {
    let served = served().await;
    for (host, path, _) in ANSWERS {
        let reply = exchange(&served, "GET", path, &[("host", host)]).await;
        let said = |name: &str| header(&reply, name).unwrap_or_default();
        assert_eq!(said("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(said("x-frame-options"), "DENY", "{path}");
        assert_eq!(said("referrer-policy"), "no-referrer", "{path}");
        assert_eq!(said("cache-control"), "no-store", "{path}");
        let policy = said("content-security-policy");
        assert!(policy.contains("default-src 'none'"), "{path}: {policy}");
        assert!(
            policy.contains("frame-ancestors 'none'"),
            "{path}: {policy}"
        );
        assert_eq!(policy.contains("style-src 'self'"), path == "/docs");
        assert_eq!(said("strict-transport-security"), "", "there is no TLS");
        assert_eq!(said("access-control-allow-origin"), "", "nobody is listed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_listed_origins_may_read_answers_and_no_others() {
    let app = "https://app.example";
    let door = Door::default().with_origins(vec![app.parse().unwrap()]);
    let served = served_with(door).await;
    let preflight = ("access-control-request-method", "DELETE");
    let before = [("origin", app), preflight];
    let reply = exchange(&served, "OPTIONS", "/v1/jobs/x", &before).await;
    assert!(reply.starts_with("HTTP/1.1 204"), "{reply}");
    assert_eq!(header(&reply, "access-control-allow-origin"), Some(app));
    let methods = header(&reply, "access-control-allow-methods").unwrap();
    assert!(methods.contains("DELETE"), "{methods}");
    let headers = header(&reply, "access-control-allow-headers").unwrap();
    assert!(headers.contains("authorization"), "{headers}");
    for (path, status) in [("/v1/jobs", "200"), ("/v1/jobs/none", "404")] {
        let reply = exchange(&served, "GET", path, &[("origin", app)]).await;
        assert!(reply.starts_with(&format!("HTTP/1.1 {status}")), "{reply}");
        assert_eq!(header(&reply, "access-control-allow-origin"), Some(app));
        assert_eq!(header(&reply, "vary"), Some("origin"));
        assert!(!reply.contains("access-control-allow-credentials"));
    }
    for origin in [
        "https://app.example.evil",
        "http://app.example",
        "null",
        "*",
    ] {
        let get = exchange(&served, "GET", "/v1/jobs", &[("origin", origin)]).await;
        let before = [("origin", origin), preflight];
        let before = exchange(&served, "OPTIONS", "/v1/jobs", &before).await;
        assert!(before.starts_with("HTTP/1.1 405"), "{before}");
        for reply in [get, before] {
            assert_eq!(header(&reply, "access-control-allow-origin"), None);
            assert_eq!(header(&reply, "vary"), Some("origin"), "{reply}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_trusted_proxy_says_whose_request_it_is() {
    let show = async |peer: Peer| peer.address.unwrap().to_string();
    let client = async |trusted: &str, headers: &[(&str, &str)]| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let trusted = vec![trusted.parse().unwrap()];
        let proxies = Proxies::new(trusted, ProxyHeader::Forwarded);
        let door = Door::default().with_proxies(proxies);
        let router = Router::new().route("/", get(show));
        let stop = CancellationToken::new();
        tokio::spawn(server::serve(listener, router, door, stop.clone()));
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(&request("GET", "/", headers))
            .await
            .unwrap();
        let reply = all_of(&mut stream).await;
        stop.cancel();
        let (_, body) = reply.split_once("\r\n\r\n").unwrap();
        body.to_owned()
    };
    let forwarded = [("forwarded", "for=203.0.113.9, for=198.51.100.7")];
    assert_eq!(client("127.0.0.0/8", &forwarded).await, "198.51.100.7");
    assert_eq!(client("10.0.0.0/8", &forwarded).await, "127.0.0.1");
    let other = [("x-forwarded-for", "203.0.113.9")];
    assert_eq!(client("127.0.0.0/8", &other).await, "127.0.0.1");
    let broken = [("forwarded", "for=\"203.0.113.9")];
    assert_eq!(client("127.0.0.0/8", &broken).await, "127.0.0.1");
}

/// Whether the other side closes: after a second, if nothing else is slow, and before any bound that is not meant here.
async fn is_closed(stream: &mut TcpStream) -> bool {
    let mut buffer = [0; 4_096];
    let closing = async { while let Ok(1..) = stream.read(&mut buffer).await {} };
    tokio::time::timeout(Duration::from_secs(10), closing)
        .await
        .is_ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heads_and_silence_have_an_end() {
    let head_wait = Duration::from_secs(1);
    let bounds = Bounds {
        head_wait,
        ..Bounds::default()
    };
    let served = served_with(Door::default().with_bounds(bounds)).await;
    let mut slow = TcpStream::connect(served.address).await.unwrap();
    slow.write_all(b"GET /healthz HTTP/1.1\r\nhost: ")
        .await
        .unwrap();
    assert!(is_closed(&mut slow).await, "a head that does not end");
    let mut idle = TcpStream::connect(served.address).await.unwrap();
    let get = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    idle.write_all(get).await.unwrap();
    assert!(is_closed(&mut idle).await, "a client that requests no more");

    let bounds = Bounds {
        idle_max: Duration::from_secs(1),
        ..Bounds::default()
    };
    let served = served_with(Door::default().with_bounds(bounds)).await;
    let mut silent = TcpStream::connect(served.address).await.unwrap();
    let length = [
        ("content-length", "100"),
        ("content-type", "application/json"),
    ];
    let post = request("POST", "/v1/jobs", &length);
    silent.write_all(&post).await.unwrap();
    assert!(is_closed(&mut silent).await, "a body that does not come");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_connections_than_allowed_wait_for_their_turn() {
    let bounds = Bounds {
        connections_max: 2,
        connections_share: 100,
        ..Bounds::default()
    };
    let served = served_with(Door::default().with_bounds(bounds)).await;
    let get = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut all = Vec::new();
    for _ in 0..3 {
        all.push(TcpStream::connect(served.address).await.unwrap());
    }
    for stream in &mut all {
        stream.write_all(get).await.unwrap();
    }
    let mut third = all.pop().unwrap();
    for stream in &mut all {
        assert_eq!(first_of(stream).await, "HTTP/1.1 200");
    }
    assert_eq!(read(&mut third).await, "", "there is no room");
    drop(all);
    assert_eq!(first_of(&mut third).await, "HTTP/1.1 200");
}

/// A connection from another address of this machine.
async fn from(address: &str, to: std::net::SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket
        .bind(format!("{address}:0").parse().unwrap())
        .unwrap();
    socket.connect(to).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_address_has_a_share_of_the_connections_and_others_have_theirs() {
    let bounds = Bounds {
        connections_max: 8,
        connections_share: 25,
        ..Bounds::default()
    };
    let served = served_with(Door::default().with_bounds(bounds)).await;
    let get = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut held = Vec::new();
    for address in ["127.0.0.1", "127.0.0.2"] {
        for _ in 0..2 {
            let mut stream = from(address, served.address).await;
            stream.write_all(get).await.unwrap();
            assert_eq!(first_of(&mut stream).await, "HTTP/1.1 200", "{address}");
            held.push(stream);
        }
        let mut more = from(address, served.address).await;
        assert!(is_closed(&mut more).await, "{address} has its share");
    }
    held.clear();
    for _ in 0..500 {
        let mut again = from("127.0.0.1", served.address).await;
        let mut buffer = [0; 12];
        let sent = again.write_all(get).await;
        if sent.is_ok() && again.read_exact(&mut buffer).await.is_ok() {
            return;
        }
        pause(20).await;
    }
    panic!("what was let go is free for others");
}

/// A proxy that is trusted speaks for many clients.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trusted_proxy_may_have_all_connections() {
    let bounds = Bounds {
        connections_max: 4,
        connections_share: 25,
        ..Bounds::default()
    };
    let trusted = vec!["127.0.0.0/8".parse().unwrap()];
    let proxies = Proxies::new(trusted, ProxyHeader::Forwarded);
    let door = Door::default().with_bounds(bounds).with_proxies(proxies);
    let served = served_with(door).await;
    let get = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut held = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(get).await.unwrap();
        assert_eq!(first_of(&mut stream).await, "HTTP/1.1 200");
        held.push(stream);
    }
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0punctual";
/// GET http://localhost/ on the first stream.
const GET: &[u8] = b"\0\0\x0e\x01\x05\0\0\0\x01\x82\x86\x84\x41\x09localhost";

/// Speaks HTTP/2 and sends pings until the other side closes, or for so long; all that came back.
async fn ping_on(address: std::net::SocketAddr, first: &[u8], secs: u64) -> (bool, Vec<u8>) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&[PREFACE, first].concat()).await.unwrap();
    let (mut all, mut buffer) = (Vec::new(), [0; 4_096]);
    let closing = async {
        loop {
            let read = tokio::time::timeout(Duration::from_millis(100), stream.read(&mut buffer));
            match read.await {
                Ok(Ok(0) | Err(_)) => return,
                Ok(Ok(count)) => all.extend_from_slice(&buffer[..count]),
                Err(_) if stream.write_all(PING).await.is_err() => return,
                Err(_) => {}
            }
        }
    };
    let closed = tokio::time::timeout(Duration::from_secs(secs), closing).await;
    (closed.is_ok(), all)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pings_alone_keep_no_connection_open_and_a_request_does() {
    let bounds = Bounds {
        idle_max: Duration::from_secs(1),
        ..Bounds::default()
    };
    let slow = async || {
        pause(4_000).await;
        "done"
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/", get(slow));
    let door = Door::default().with_bounds(bounds);
    let stop = CancellationToken::new();
    tokio::spawn(server::serve(listener, router, door, stop.clone()));
    let (closed, _) = ping_on(address, b"", 15).await;
    assert!(closed, "nothing is asked for");
    let (closed, came) = ping_on(address, GET, 30).await;
    assert!(closed, "nothing more is asked for");
    let done = came.windows(4).any(|part| part == b"done");
    assert!(done, "what takes longer than that is answered");
    stop.cancel();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_keys_a_page_of_another_origin_changes_nothing() {
    let app = "https://app.example";
    let door = Door::default().with_origins(vec![app.parse().unwrap()]);
    let served = served_with(door).await;
    let post = async |header: (&str, &str)| {
        exchange(&served, "POST", "/v1/jobs/key:hello/run", &[header]).await
    };
    for foreign in [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        let reply = post(foreign).await;
        assert!(reply.starts_with("HTTP/1.1 403"), "{foreign:?}: {reply}");
        assert!(reply.contains("\"field\":\"Origin\""), "{reply}");
        let read = exchange(&served, "GET", "/v1/jobs", &[foreign]).await;
        assert!(read.starts_with("HTTP/1.1 200"), "{read}");
    }
    for ours in [
        ("accept", "*/*"),
        ("origin", "http://localhost"),
        ("sec-fetch-site", "same-origin"),
        ("origin", app),
    ] {
        let reply = post(ours).await;
        assert!(reply.starts_with("HTTP/1.1 404"), "{ours:?}: {reply}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_key_the_origin_of_a_page_does_not_matter() {
    let served = served_by(World::with_keys().await, Door::default()).await;
    let key = served.world.key(TenantId::DEFAULT, Role::Operator).await;
    let headers = [
        ("authorization", format!("Bearer {key}")),
        ("origin", "https://app.example".to_owned()),
    ];
    let headers = headers
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let reply = exchange(&served, "POST", "/v1/jobs/key:hello/run", &headers).await;
    assert!(reply.starts_with("HTTP/1.1 404"), "{reply}");
}
