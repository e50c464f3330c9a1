//! The ways to a database: hosts that do not answer, sockets, and certificates.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::opening::set_up_tls;
use crate::conformance::{at, node};
use crate::postgres::server::{Mode, PgServer, Stop};
use crate::postgres::*;

/// What a node's beats wait for their answer.
const ANSWER_MAX: Duration = Duration::from_millis(1_500);
/// What a fleet may do without its beats.
const SOON: Duration = Duration::from_secs(4);

/// Somebody who is in nobody's favour; dropped, it is gone.
struct Bad {
    port: u16,
    _tasks: JoinSet<()>,
}

impl Bad {
    /// Packets to it are dropped: its queue is full, and it takes nobody out of it.
    async fn dropping() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        for _ in 0..3 {
            tasks.spawn(async move {
                let _held = TcpStream::connect(address).await;
                std::future::pending::<()>().await;
            });
        }
        tasks.spawn(async move {
            let _held = listener;
            std::future::pending::<()>().await;
        });
        for _ in 0..100 {
            let tried = timeout(Duration::from_millis(100), TcpStream::connect(address)).await;
            if tried.is_err() {
                break;
            }
        }
        Self {
            port: address.port(),
            _tasks: tasks,
        }
    }

    /// Takes everyone in and says nothing.
    async fn silent() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut held = Vec::new();
            while let Ok(taken) = listener.accept().await {
                held.push(taken);
            }
        });
        Self {
            port,
            _tasks: tasks,
        }
    }

    /// Leads to a server until it hangs: then everything stays as it is, and nothing is said any more.
    async fn hanging(server: &PgServer) -> (Self, watch::Sender<bool>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, to) = (listener.local_addr().unwrap().port(), server.port());
        let (hang, hangs) = watch::channel(false);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut held = JoinSet::new();
            while let Ok((mut near, _)) = listener.accept().await {
                let mut hangs = hangs.clone();
                held.spawn(async move {
                    let Ok(mut far) = TcpStream::connect(("127.0.0.1", to)).await else {
                        return std::future::pending().await;
                    };
                    let hangs = async { hangs.wait_for(|hangs| *hangs).await.is_ok() };
                    tokio::select! {
                        biased;
                        _ = hangs => std::future::pending().await,
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                    }
                });
            }
        });
        let hanging = Self {
            port,
            _tasks: tasks,
        };
        (hanging, hang)
    }

    /// Leads to a server, after so long.
    async fn late(server: &PgServer, late: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, to) = (listener.local_addr().unwrap().port(), server.port());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut held = JoinSet::new();
            while let Ok((mut near, _)) = listener.accept().await {
                held.spawn(async move {
                    tokio::time::sleep(late).await;
                    let mut far = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
                    let _over = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                });
            }
        });
        Self {
            port,
            _tasks: tasks,
        }
    }
}

/// Several hosts, of which one is the primary.
fn among(ports: &[u16], schema: &str) -> String {
    let hosts: Vec<String> = ports
        .iter()
        .map(|port| format!("127.0.0.1:{port}"))
        .collect();
    format!(
        "postgres://postgres@{}/postgres?sslmode=disable&target_session_attrs=read-write&schema={schema}",
        hosts.join(",")
    )
}

fn schema(server: &PgServer) -> String {
    let config = PgConfig::parse(&server.fresh_schema()).unwrap();
    config.schema().to_owned()
}

async fn open(address: &str) -> Result<PgStore, StoreError> {
    PgStore::connect(PgConfig::parse(address)?).await
}

/// Beats as a node does, until one is answered: how long that took.
async fn beaten(store: &PgStore, me: PresenceId) -> Duration {
    let begun = Instant::now();
    for _ in 0..40 {
        let node_status = NodeStatus::default();
        match timeout(ANSWER_MAX, store.beat(me, &node_status)).await {
            Ok(Ok(_)) => return begun.elapsed(),
            Ok(Err(error)) => assert!(error.is_transient(), "{error:?}"),
            Err(_) => {}
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("no beat was answered");
}

/// Whether two stores hear each other soon.
async fn hear_each_other(one: &PgStore, other: &PgStore) {
    let nobody = PresenceId::new(at(0), [0; 10]);
    let hinting = async {
        loop {
            one.hint(&[Hint::Ready]);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        () = hinting => {}
        heard = timeout(SOON, other.hints(nobody)) => {
            heard.expect("it heard nothing").unwrap();
        }
    }
}

async fn everything_works_beside(bad: &Bad, server: &PgServer) {
    let address = among(&[bad.port, server.port()], &schema(server));
    let begun = Instant::now();
    let store = open(&address).await.unwrap();
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    let me = store.join(&node("a")).await.unwrap();
    let first = beaten(&store, me).await;
    assert!(first < SOON, "{first:?}");
    let again = open(&address).await.unwrap();
    hear_each_other(&store, &again).await;
    // Who took us is dialled first from then on.
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                WHERE application_name = 'punctual'";
    server.query(kill).unwrap();
    let next = beaten(&store, me).await;
    assert!(next < Duration::from_millis(1_000), "{next:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_drops_every_packet_holds_nobody_up() {
    let server = PgServer::private(Mode::Fast).unwrap();
    everything_works_beside(&Bad::dropping().await, &server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_says_nothing_holds_nobody_up() {
    let server = PgServer::private(Mode::Fast).unwrap();
    everything_works_beside(&Bad::silent().await, &server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_the_primary_is_found_wherever_it_stands() {
    let primary = PgServer::private(Mode::Durable).unwrap();
    let standby = primary.standby().unwrap();
    let silent = Bad::silent().await;
    let ports = [silent.port, standby.port(), primary.port()];
    let address = among(&ports, &schema(&primary));
    let store = open(&address).await.unwrap();
    let me = store.join(&node("a")).await.unwrap();
    let first = beaten(&store, me).await;
    assert!(first < SOON, "{first:?}");
    primary.stop(Stop::Immediate).unwrap();
    let away = store.beat(me, &NodeStatus::default()).await.unwrap_err();
    assert!(away.is_transient(), "{away:?}");
    standby.promote().unwrap();
    let next = beaten(&store, me).await;
    assert!(next < SOON, "{next:?}");
    // The others find it as well, although their connections led elsewhere.
    let found = timeout(SOON, async {
        while store.count_live().await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    found.await.unwrap();
}

/// Its machine hangs: connections stay open, and no answer comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_for_a_primary_that_hangs_is_freed_by_the_next() {
    let primary = PgServer::private(Mode::Durable).unwrap();
    let standby = primary.standby().unwrap();
    let (hanging, hang) = Bad::hanging(&primary).await;
    let address = among(&[hanging.port, standby.port()], &schema(&primary));
    let store = open(&address).await.unwrap();
    let me = store.join(&node("a")).await.unwrap();
    beaten(&store, me).await;
    let conn = store.pool.get().await.unwrap();
    hang.send(true).unwrap();
    let waits = tokio::spawn(async move { conn.run("SELECT 1").await.is_err() });
    primary.stop(Stop::Immediate).unwrap();
    standby.promote().unwrap();
    let next = beaten(&store, me).await;
    assert!(next < SOON, "{next:?}");
    assert!(timeout(SOON, waits).await.unwrap().unwrap());
    store.count_live().await.unwrap();
}

#[tokio::test]
async fn when_no_host_takes_us_it_is_said_why() {
    let server = PgServer::private(Mode::Fast).unwrap();
    let standby = server.standby().unwrap();
    let address = among(&[1, standby.port()], "punctual");
    let error = open(&address).await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    let why = std::error::Error::source(&error).unwrap().to_string();
    for part in ["127.0.0.1:1: ", "refused", "does not allow writes"] {
        assert!(why.contains(part), "{part}: {why}");
    }
    assert!(!why.contains('\n'), "{why}");
}

/// Beats that are given up do not take what they waited for with them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connecting_may_take_longer_than_a_beat() {
    let server = PgServer::shared().unwrap();
    let late = Bad::late(&server, Duration::from_millis(2_500)).await;
    let address = among(&[late.port], &schema(&server));
    let store = open(&address).await.unwrap();
    let me = store.join(&node("a")).await.unwrap();
    let took = beaten(&store, me).await;
    assert!(
        took > Duration::from_secs(2) && took < Duration::from_secs(6),
        "{took:?}"
    );
    let next = beaten(&store, me).await;
    assert!(next < ANSWER_MAX, "{next:?}");
}

#[tokio::test]
async fn a_socket_of_this_machine_is_as_good() {
    let server = PgServer::private(Mode::Fast).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let all = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(folder.path(), all).unwrap();
    let shown = folder.path().display();
    server.stop(Stop::Fast).unwrap();
    let settings = format!("unix_socket_directories = '{shown}'\n");
    std::fs::write(server.folder().join("postgresql.auto.conf"), settings).unwrap();
    server.start().unwrap();
    let port = server.port();
    for mode in ["", "&sslmode=disable", "&sslmode=require"] {
        let address = format!("postgres://postgres@/postgres?host={shown}&port={port}{mode}");
        let store = open(&address).await;
        let store = store.unwrap_or_else(|error| panic!("{mode}: {error:?}"));
        let me = store.join(&node("a")).await.unwrap();
        store.beat(me, &NodeStatus::default()).await.unwrap();
    }
    let bare = PgConfig::parse("postgres:///postgres").unwrap_err();
    assert!(bare.to_string().contains("?host=/"), "{bare}");
}

/// Another authority, which signed nothing.
fn other_root(server: &PgServer) -> std::path::PathBuf {
    let new = "req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=other -keyout other.key -out other.crt";
    let made = std::process::Command::new("openssl")
        .args(new.split_whitespace())
        .current_dir(server.folder())
        .output();
    assert!(made.unwrap().status.success());
    server.folder().join("other.crt")
}

#[tokio::test]
async fn certificates_to_trust_are_never_ignored() {
    let server = PgServer::private(Mode::Fast).unwrap();
    server.stop(Stop::Fast).unwrap();
    set_up_tls(&server);
    server.start().unwrap();
    let (root, other) = (server.folder().join("ca.crt"), other_root(&server));
    let empty = server.folder().join("PG_VERSION");
    let [root, other, empty] = [root, other, empty].map(|path| path.display().to_string());
    let port = server.port();
    let at = async |host: &str, mode: &str, root: &str| {
        let address = format!("postgres://postgres@{host}:{port}/postgres?{mode}");
        open(&format!("{address}&sslrootcert={root}")).await
    };
    for mode in ["", "sslmode=prefer", "sslmode=require", "sslmode=verify-ca"] {
        for host in ["127.0.0.1", "localhost"] {
            let opened = at(host, mode, &root).await;
            opened.unwrap_or_else(|error| panic!("{mode} {host}: {error:?}"));
        }
        let why = match at("127.0.0.1", mode, &other).await {
            Err(StoreError::Unusable(why)) => why,
            opened => panic!("{mode}: {opened:?}"),
        };
        assert!(why.contains("certificate"), "{why}");
        for missing in ["/nonexistent.pem", &empty] {
            let error = at("127.0.0.1", mode, missing).await.unwrap_err();
            let said = error.to_string();
            assert!(said.contains(missing) && !said.contains('\n'), "{said}");
        }
    }
    let full = "sslmode=verify-full";
    at("127.0.0.1", full, &root).await.unwrap();
    let misnamed = at("localhost", full, &root).await.unwrap_err();
    assert!(matches!(misnamed, StoreError::Unusable(_)), "{misnamed:?}");
    let by_number = format!("postgres://postgres@/postgres?hostaddr=127.0.0.1&port={port}");
    for mode in ["sslmode=require", &format!("{full}&sslrootcert={root}")] {
        open(&format!("{by_number}&{mode}")).await.unwrap();
    }
}
