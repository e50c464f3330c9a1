//! Deliveries through a proxy: whom it is given to call, and what becomes of them when it fails.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use model::{Outcome, Proxy, Report, RetryHint};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use super::HttpExecutor;
use super::receiver::{OK, Receiver, Seen, Step, bare, executor, order, post, read, say, soon};
use super::receiver_tls::{TlsReceiver, trusting};
use crate::egress::{Dialer, Egress, Resolve};
use crate::{Executor, WorkOrder};

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
const PASSWORD: &str = "open%20sesame";
const BASIC: &str = "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==";

/// A proxy that opens connections for whoever has the password.
struct Tunnels {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Tunnels {
    async fn at(address: &str) -> Self {
        Self::leading(address, |to| to).await
    }

    /// The same, which calls another than it is given.
    async fn leading(address: &str, to: fn(String) -> String) -> Self {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::default());
        let shared = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(tunnel(socket, Arc::clone(&shared), to));
            }
        });
        Self { address, seen }
    }

    fn proxy(&self) -> Arc<Proxy> {
        proxy(&format!("http://Aladdin:{PASSWORD}@{}", self.address))
    }

    /// What it was to call.
    fn called(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        seen.iter().map(|it| it.line.clone()).collect()
    }
}

async fn tunnel(mut socket: TcpStream, log: Arc<Mutex<Vec<Seen>>>, to: fn(String) -> String) {
    let Some(seen) = read(&mut socket).await else {
        return;
    };
    let given = seen.line.split(' ').nth(1).unwrap().to_owned();
    let is_known = seen.header("Proxy-Authorization") == Some(BASIC);
    log.lock().unwrap().push(seen);
    if !is_known {
        let refused =
            b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 4\r\n\r\nnope";
        return socket.write_all(refused).await.unwrap();
    }
    let Ok(mut target) = TcpStream::connect(to(given)).await else {
        let failed = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n";
        return socket.write_all(failed).await.unwrap();
    };
    socket.write_all(ESTABLISHED).await.unwrap();
    let _ = copy_bidirectional(&mut socket, &mut target).await;
}

fn proxy(text: &str) -> Arc<Proxy> {
    Arc::new(Proxy::parse(text).unwrap())
}

fn through(proxy: Arc<Proxy>, url: &str) -> WorkOrder {
    WorkOrder {
        proxy: Some(proxy),
        ..order(post(url), Some("{}"))
    }
}

/// Answers every look-up with these.
struct Leads(Vec<IpAddr>);

#[async_trait]
impl Resolve for Leads {
    async fn lookup(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        Ok(self.0.clone())
    }
}

fn guarded(allow: &str, leads: &[&str]) -> HttpExecutor {
    let egress = Egress::new(allow.parse().unwrap(), "any".parse().unwrap());
    let leads = leads.iter().map(|it| it.parse().unwrap()).collect();
    let dialer = Dialer::resolving(Arc::new(egress), Arc::new(Leads(leads)));
    HttpExecutor::new(Arc::new(dialer)).unwrap()
}

fn check_failed(report: &Report, error: &str) {
    assert_eq!(bare(report.clone()), Report::failed(error));
    assert_eq!(report.retry, RetryHint::Usual);
    assert!(report.unreached, "the way to the target is down");
}

#[tokio::test]
async fn an_http_target_is_called_through_the_proxy_by_its_address_and_the_link_is_kept() {
    let (tunnels, receiver) = (
        Tunnels::at("127.0.0.2").await,
        Receiver::playing(say(OK)).await,
    );
    let executor = guarded("loopback", &["127.0.0.1"]);
    let port = receiver.address.port();
    let url = format!("http://hook.example:{port}/a?b=c");
    for _ in 0..3 {
        let report = soon(executor.execute(through(tunnels.proxy(), &url))).await;
        assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
        assert_eq!(report.exchange.unwrap().peer, Some(receiver.address));
    }
    // The proxy gets an address, and the target its name; neither gets what is the other's.
    assert_eq!(
        tunnels.called(),
        [format!("CONNECT {} HTTP/1.1", receiver.address)]
    );
    let connect = tunnels.seen.lock().unwrap()[0].clone();
    assert_eq!(
        connect.header("Host"),
        Some(receiver.address.to_string().as_str())
    );
    assert_eq!(connect.headers.len(), 2, "{connect:?}");
    let seen = receiver.seen();
    assert_eq!(seen.len(), 3);
    for seen in seen {
        assert_eq!(seen.line, "POST /a?b=c HTTP/1.1");
        assert_eq!(
            seen.header("host"),
            Some(format!("hook.example:{port}").as_str())
        );
        assert!(
            seen.headers
                .iter()
                .all(|(name, _)| !name.to_lowercase().starts_with("proxy"))
        );
    }
}

#[tokio::test]
async fn an_https_target_is_called_through_the_proxy_and_shows_its_own_certificate() {
    for protocol in ["h2", "http/1.1"] {
        let tunnels = Tunnels::at("127.0.0.1").await;
        let receiver = TlsReceiver::speaking(protocol, 100).await;
        let executor = trusting();
        for _ in 0..3 {
            let order = through(tunnels.proxy(), &receiver.url("/ok"));
            let report = soon(executor.execute(order)).await;
            assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
        }
        assert_eq!(receiver.counts.seen().len(), 3);
        let called = tunnels.called();
        let last = called.last().unwrap();
        assert!(
            last.ends_with(&format!(":{} HTTP/1.1", receiver.port)),
            "{called:?}"
        );
        assert!(
            !called.iter().any(|it| it.contains("localhost")),
            "{called:?}"
        );
        assert_eq!(receiver.counts.accepted(), 1, "the link is kept");
    }
    let stranger = Tunnels::at("127.0.0.1").await;
    let receiver = TlsReceiver::speaking("h2", 100).await;
    let report = soon(executor().execute(through(stranger.proxy(), &receiver.url("/ok")))).await;
    let error = report.error.unwrap();
    assert!(error.starts_with("the certificate of localhost"), "{error}");
}

#[tokio::test]
async fn links_of_one_way_are_of_no_use_to_another() {
    let (one, other) = (
        Tunnels::at("127.0.0.1").await,
        Tunnels::at("127.0.0.1").await,
    );
    let receiver = Receiver::playing(say(OK)).await;
    let executor = executor();
    let url = receiver.url("/");
    for _ in 0..2 {
        for order in [
            through(one.proxy(), &url),
            through(other.proxy(), &url),
            order(post(&url), None),
        ] {
            let report = soon(executor.execute(order)).await;
            assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
        }
    }
    assert_eq!(receiver.accepted(), 3);
    assert_eq!((one.called().len(), other.called().len()), (1, 1));
    // Whoever has another password may be another.
    let wrong = proxy(&format!("http://Aladdin:s3cret@{}", one.address));
    let report = soon(executor.execute(through(wrong, &url))).await;
    let error = format!(
        "the proxy {} wants another user or password: it answered 407",
        one.address
    );
    check_failed(&report, &error);
    assert_eq!(receiver.accepted(), 3);
}

#[tokio::test]
async fn what_the_guard_refuses_is_not_reached_through_a_proxy() {
    let (tunnels, receiver) = (
        Tunnels::at("127.0.0.2").await,
        Receiver::playing(say(OK)).await,
    );
    let port = receiver.address.port();
    // The proxy may be called, and the target may not, by whatever name.
    let executor = guarded("public,127.0.0.2", &["127.0.0.1"]);
    for host in ["127.0.0.1", "[::ffff:127.0.0.1]", "rebind.example"] {
        let url = format!("http://{host}:{port}/");
        let report = soon(executor.execute(through(tunnels.proxy(), &url))).await;
        let error = report.error.unwrap();
        assert!(
            error.contains("a loopback address, which this node may not call"),
            "{error}"
        );
    }
    assert_eq!((tunnels.called().len(), receiver.accepted()), (0, 0));
    // The target may be called, and the proxy may not. Its operator can allow it, so it is tried again.
    let executor = guarded("127.0.0.1", &["127.0.0.1"]);
    let url = format!("http://hook.example:{port}/");
    let report = soon(executor.execute(through(tunnels.proxy(), &url))).await;
    let error = format!(
        "the proxy {} cannot be used: 127.0.0.2 is a loopback address, which this node may not call: its operator can \
         allow it with --egress-allow 127.0.0.1/32,loopback",
        tunnels.address
    );
    check_failed(&report, &error);
    assert_eq!((tunnels.called().len(), receiver.accepted()), (0, 0));
}

#[tokio::test]
async fn a_target_is_tried_at_each_of_its_addresses() {
    // A proxy that has no way to the first.
    let tunnels = Tunnels::leading("127.0.0.1", |to| to.replace("127.0.0.9", "256.0.0.1")).await;
    let receiver = Receiver::playing(say(OK)).await;
    let executor = guarded("loopback", &["127.0.0.9", "127.0.0.1"]);
    let url = format!("http://two.example:{}/", receiver.address.port());
    let report = soon(executor.execute(through(tunnels.proxy(), &url))).await;
    assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
    assert_eq!(report.exchange.unwrap().peer, Some(receiver.address));
    assert_eq!(tunnels.called().len(), 2);
    let executor = guarded("loopback", &["127.0.0.9"]);
    let report = soon(executor.execute(through(tunnels.proxy(), &url))).await;
    let error = format!(
        "the proxy {} opens no connection to the target: it answered 502",
        tunnels.address
    );
    check_failed(&report, &error);
}

/// What comes of a proxy that does this with a request.
async fn played(steps: Vec<Step>, why: &str) {
    let broken = Receiver::playing(steps).await;
    let target = Receiver::playing(say(OK)).await;
    let text = format!("http://ann:s3cret@{}", broken.address);
    let report = soon(executor().execute(through(proxy(&text), &target.url("/")))).await;
    check_failed(&report, &format!("the proxy {} {why}", broken.address));
    assert!(!format!("{report:?}").contains("s3cret"));
    broken.ended(1).await;
    assert_eq!((broken.accepted(), target.accepted()), (1, 0));
}

#[tokio::test]
async fn a_proxy_that_fails_is_named_and_never_called_past() {
    let not_proxy = "does not answer as a proxy does";
    for (answer, why) in [
        (
            &b"HTTP/1.1 403 Forbidden\r\ncontent-length: 3\r\n\r\nno!"[..],
            "opens no connection to the target: it answered 403",
        ),
        (
            b"HTTP/1.0 504 Gateway Timeout\r\n\r\n",
            "opens no connection to the target: it answered 504",
        ),
        (
            b"HTTP/1.1 100 Continue\r\n\r\n",
            "opens no connection to the target: it answered 100",
        ),
        (b"SSH-2.0-OpenSSH_9.2\r\n", not_proxy),
        (b"HTTP/1.1 20x OK\r\n\r\n", not_proxy),
        (b"HTTP/1.1 200 OK\r\n", not_proxy),
        (b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", not_proxy),
    ] {
        played(vec![Step::Say(answer.to_vec()), Step::Close], why).await;
    }
    played(vec![Step::Close], "closed the connection without an answer").await;
    let endless = vec![
        Step::Say(b"HTTP/1.1 200 OK\r\n".to_vec()),
        Step::Flood(b"a: b\r\n".repeat(1_000)),
    ];
    played(endless, not_proxy).await;
}

#[tokio::test]
async fn a_proxy_that_is_down_or_has_no_address_is_named() {
    let target = Receiver::playing(say(OK)).await;
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = gone.local_addr().unwrap();
    drop(gone);
    let down = proxy(&format!("http://ann:s3cret@{address}"));
    let report = soon(executor().execute(through(down, &target.url("/")))).await;
    check_failed(&report, &format!("the proxy {address} cannot be reached"));
    let nameless = proxy("http://ann:s3cret@proxy.invalid:3128");
    let report = soon(executor().execute(through(nameless, &target.url("/")))).await;
    check_failed(
        &report,
        "the proxy proxy.invalid:3128 cannot be used: the host name proxy.invalid cannot be resolved",
    );
    assert_eq!(target.accepted(), 0);
}

#[tokio::test]
async fn a_delivery_that_is_given_up_says_that_it_waited_for_the_proxy_and_leaves_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let order = through(proxy(&format!("http://{address}")), "http://127.0.0.1:9/");
    let progress = Arc::clone(&order.progress);
    let executor = executor();
    let delivery = executor.execute(order);
    assert!(
        tokio::time::timeout(Duration::from_millis(100), delivery)
            .await
            .is_err()
    );
    assert_eq!(progress.proxy(), Some(address.to_string()));
    let (mut socket, _) = listener.accept().await.unwrap();
    assert!(soon(socket.read_to_end(&mut Vec::new())).await.unwrap() > 0);
}
