//! What is checked is what is dialled.

use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use tokio::net::TcpListener;

use super::*;

/// Answers look-ups one after another, the last one for ever.
struct Scripted(Mutex<Vec<Vec<IpAddr>>>);

impl Scripted {
    fn new(answers: &[&[&str]]) -> Arc<Self> {
        let addresses =
            |answer: &&[&str]| answer.iter().rev().map(|it| it.parse().unwrap()).collect();
        Arc::new(Self(Mutex::new(
            answers.iter().rev().map(addresses).collect(),
        )))
    }
}

#[async_trait]
impl Resolve for Scripted {
    async fn lookup(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        let mut answers = self.0.lock().unwrap();
        let answer = if answers.len() > 1 {
            answers.pop()
        } else {
            answers.last().cloned()
        };
        Ok(answer.unwrap_or_default().into_iter().rev().collect())
    }
}

fn dialer(allow: &str, answers: &[&[&str]]) -> Dialer {
    let egress = Egress::new(allow.parse().unwrap(), "any".parse().unwrap());
    Dialer::resolving(Arc::new(egress), Scripted::new(answers))
}

async fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// Whether anybody connects within a moment.
async fn is_called(listener: &TcpListener) -> bool {
    let accepted = tokio::time::timeout(Duration::from_millis(100), listener.accept()).await;
    accepted.is_ok()
}

#[tokio::test]
async fn a_name_that_leads_elsewhere_at_its_next_lookup_is_refused_then() {
    let (listener, port) = listener().await;
    // Nobody answers at the first address, which a check at another time than the call would have seen.
    let dialer = dialer("public", &[&["1.1.1.1"], &["127.0.0.1"]]);
    let first = dialer.names.resolve("rebind.example").await.unwrap();
    assert_eq!(*first, ["1.1.1.1".parse::<IpAddr>().unwrap()]);
    assert_eq!(dialer.egress.check(first[0], port), Ok(()));
    let error = dialer.dial("rebind.example", port).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "rebind.example leads to a loopback address, which this node may not call: its operator can allow it with \
         --egress-allow public,loopback"
    );
    assert_eq!(error.retry(), RetryHint::Usual, "names change");
    assert!(!is_called(&listener).await);
}

#[tokio::test]
async fn only_those_addresses_of_a_name_that_are_allowed_are_called() {
    let (listener, port) = listener().await;
    let mixed: &[&str] = &["127.0.0.1", "127.0.0.2", "::ffff:127.0.0.1", "127.0.0.3"];
    let dialer = dialer("127.0.0.3", &[mixed]);
    // Nobody listens at the one that is allowed.
    let error = dialer.dial("mixed.example", port).await.unwrap_err();
    assert!(matches!(error, DialError::Unreachable { .. }), "{error}");
    assert!(!is_called(&listener).await);
    let dialer = self::dialer("127.0.0.1", &[&["127.0.0.9", "::ffff:127.0.0.1"]]);
    dialer.dial("mixed.example", port).await.unwrap();
    assert!(is_called(&listener).await);
}

#[tokio::test]
async fn however_an_address_is_spelled_it_is_the_one_that_is_dialled() {
    let (listener, port) = listener().await;
    let dialer = Dialer::new(Arc::new(Egress::default()));
    for host in [
        "127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:7f00:1",
        "0.0.0.0",
        "::",
        // Jobs from before these were refused go to the system's resolver, which reads them as 127.0.0.1.
        "127.1",
        "0x7f000001",
        "0x7f.1",
        "2130706433",
        "017700000001",
        "0177.0.0.1",
        "localhost",
        "localhost.",
    ] {
        let error = dialer.dial(host, port).await.unwrap_err();
        let retry = if model::host::address(host).is_some() {
            assert!(
                matches!(error, DialError::Refused { .. }),
                "{host}: {error}"
            );
            RetryHint::Never
        } else {
            RetryHint::Usual
        };
        assert_eq!(error.retry(), retry, "{host}");
    }
    assert!(!is_called(&listener).await);
    let open = Dialer::new(Arc::new(Egress::unbounded()));
    open.dial("::ffff:127.0.0.1", port).await.unwrap();
    assert!(is_called(&listener).await);
}

#[tokio::test]
async fn a_port_that_is_not_allowed_is_refused_before_anything_is_resolved() {
    let egress = Egress::new("all".parse().unwrap(), "443".parse().unwrap());
    let dialer = Dialer::resolving(Arc::new(egress), Scripted::new(&[]));
    let error = dialer.dial("example.com", 22).await.unwrap_err();
    assert_eq!(error.retry(), RetryHint::Never);
    assert!(
        error.to_string().contains("--egress-ports 443,22"),
        "{error}"
    );
}

#[tokio::test]
async fn a_name_without_addresses_cannot_be_reached() {
    let error = dialer("all", &[&[]]).dial("none.example", 80).await;
    let error = error.unwrap_err();
    assert_eq!(error.to_string(), "none.example cannot be reached");
}

/// Takes the port there, and lets nobody in: whoever calls waits. What is answered keeps it so.
async fn deaf(address: &str, port: u16) -> (TcpListener, Vec<TcpStream>) {
    let at = SocketAddr::new(address.parse().unwrap(), port);
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind(at).unwrap();
    let listener = socket.listen(1).unwrap();
    let mut inside = Vec::new();
    while let Ok(socket) = timeout(Duration::from_millis(300), TcpStream::connect(at)).await {
        inside.push(socket.unwrap());
    }
    (listener, inside)
}

#[tokio::test]
async fn an_address_that_does_not_answer_keeps_nobody_from_the_next() {
    let (listener, port) = listener().await;
    let _dead = (deaf("127.0.0.5", port).await, deaf("127.0.0.6", port).await);
    let dialer = dialer(
        "loopback",
        &[&["127.0.0.5", "127.0.0.9", "127.0.0.6", "127.0.0.1"]],
    );
    let dialled = dialer.dial("half-dead.example", port);
    let socket = timeout(Duration::from_secs(5), dialled).await;
    assert_eq!(
        socket.unwrap().unwrap().peer_addr().unwrap().ip(),
        listener.local_addr().unwrap().ip()
    );
}

#[tokio::test]
async fn what_goes_wrong_last_is_answered_when_no_address_does() {
    let (listener, port) = listener().await;
    drop(listener);
    let dialer = dialer("loopback", &[&["127.0.0.1", "127.0.0.2"]]);
    let error = dialer.dial("dead.example", port).await.unwrap_err();
    assert!(
        matches!(error, DialError::Unreachable { cause: Some(_), .. }),
        "{error}"
    );
}
