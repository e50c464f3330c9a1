//! Hints: who hears what, and what is left of them when connections are lost.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use model::Shard;
use tokio::time::timeout;
use tokio_postgres::AsyncMessage;

use super::{client, store};
use crate::conformance::{at, node};
use crate::postgres::server::{Mode, PgServer, Stop};
use crate::postgres::*;

const SOON: Duration = Duration::from_secs(10);
/// Long enough for what would come to have come.
const WHILE: Duration = Duration::from_millis(300);

fn job(number: u8) -> Hint {
    Hint::Job(TenantId::DEFAULT, JobId::new(at(0), [number; 10]))
}

async fn hear(store: &PgStore) -> Vec<Hint> {
    let nobody = PresenceId::new(at(0), [0; 10]);
    timeout(SOON, store.hints(nobody)).await.unwrap().unwrap()
}

async fn hears_nothing(store: &PgStore) {
    let nobody = PresenceId::new(at(0), [0; 10]);
    let heard = timeout(WHILE, store.hints(nobody)).await;
    assert!(heard.is_err(), "{heard:?}");
}

/// Two nodes that hear each other.
async fn pair(address: &str) -> [PgStore; 2] {
    let both = [store(address).await, store(address).await];
    for (from, to) in [(&both[0], &both[1]), (&both[1], &both[0])] {
        // Whoever listens from now on has heard nothing before.
        for _ in 0..100 {
            from.hint(&[Hint::Rules]);
            let nobody = PresenceId::new(at(0), [0; 10]);
            let heard = timeout(Duration::from_millis(50), to.hints(nobody)).await;
            if heard.is_ok() {
                break;
            }
        }
    }
    tokio::time::sleep(WHILE).await;
    for store in &both {
        let nobody = PresenceId::new(at(0), [0; 10]);
        let _left = timeout(Duration::from_millis(50), store.hints(nobody)).await;
    }
    both
}

#[tokio::test]
async fn nodes_hear_each_other_and_not_themselves() {
    let server = PgServer::shared().unwrap();
    let [first, second] = pair(&server.fresh_schema()).await;
    first.hint(&[job(1), Hint::Marks]);
    let mut heard = hear(&second).await;
    heard.sort();
    assert_eq!(heard, [job(1), Hint::Marks]);
    second.hint(&[Hint::Shard(Shard(200))]);
    assert_eq!(hear(&first).await, [Hint::Shard(Shard(200))]);
    hears_nothing(&first).await;
    hears_nothing(&second).await;
}

#[tokio::test]
async fn another_schema_hears_nothing() {
    let server = PgServer::shared().unwrap();
    let [first, second] = pair(&server.fresh_schema()).await;
    let [other, _] = pair(&server.fresh_schema()).await;
    other.hint(&[Hint::Ready]);
    hears_nothing(&first).await;
    first.hint(&[Hint::Leases]);
    assert_eq!(hear(&second).await, [Hint::Leases]);
}

/// Counts what arrives on a channel.
async fn count(server: &PgServer, channel: &str) -> Arc<AtomicUsize> {
    let address = server.address();
    let connect = tokio_postgres::connect(&address, tokio_postgres::NoTls);
    let (client, mut connection) = connect.await.unwrap();
    let arrived = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&arrived);
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(_) = message {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let listen = format!("LISTEN {channel}");
    client.batch_execute(&listen).await.unwrap();
    // It listens as long as it is not dropped.
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(60)).await;
        drop(client);
    });
    arrived
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_is_a_handful_of_texts() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let schema = PgConfig::parse(&address).unwrap().schema().to_owned();
    let [first, second] = pair(&address).await;
    let arrived = count(&server, &schema).await;
    let many: Vec<_> = (0..20_000_u128)
        .map(|number| JobId(uuid::Uuid::from_u128(number << 64 | number)))
        .collect();
    for id in &many {
        first.hint(&[Hint::Job(TenantId::DEFAULT, *id), Hint::Ready]);
    }
    let mut heard = std::collections::BTreeSet::new();
    while heard.len() < Shard::COUNT + 1 {
        heard.extend(hear(&second).await);
        heard.retain(|hint| !matches!(hint, Hint::Job(..)));
    }
    tokio::time::sleep(WHILE).await;
    let texts = arrived.load(Ordering::Relaxed);
    assert!((1..=60).contains(&texts), "{texts} texts");
}

#[tokio::test]
async fn after_a_connection_is_lost_so_may_hints_be() {
    let server = PgServer::private(Mode::Fast).unwrap();
    let [first, second] = pair(&server.fresh_schema()).await;
    let killer = client(&server).await;
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                WHERE application_name = 'punctual'";
    killer.batch_execute(kill).await.unwrap();
    assert_eq!(hear(&first).await, [Hint::Lost]);
    assert_eq!(hear(&second).await, [Hint::Lost]);
    first.hint(&[Hint::Ready]);
    assert_eq!(hear(&second).await, [Hint::Ready]);
    server.stop(Stop::Immediate).unwrap();
    second.hint(&[Hint::Marks]);
    tokio::time::sleep(WHILE).await;
    server.start().unwrap();
    while !hear(&first).await.contains(&Hint::Lost) {}
}

#[tokio::test]
async fn what_nobody_understands_is_ignored() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let schema = PgConfig::parse(&address).unwrap().schema().to_owned();
    let [first, _second] = pair(&address).await;
    let client = client(&server).await;
    for text in ["", "from a newer node", "j:1 s:é", "READY"] {
        let notify = format!("NOTIFY {schema}, '{text}'");
        client.batch_execute(&notify).await.unwrap();
    }
    hears_nothing(&first).await;
    let notify = format!("NOTIFY {schema}, 'newer:7 marks'");
    client.batch_execute(&notify).await.unwrap();
    assert_eq!(hear(&first).await, [Hint::Marks]);
}

/// Hints are never waited for, wherever they are given.
#[test]
fn a_hint_needs_no_runtime_and_no_server() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let server = PgServer::private(Mode::Fast).unwrap();
    let store = runtime.block_on(store(&server.fresh_schema()));
    let me = runtime.block_on(store.join(&node("a"))).unwrap();
    server.stop(Stop::Immediate).unwrap();
    for number in 0..u8::MAX {
        store.hint(&[job(number), Hint::Ready, Hint::Lost]);
    }
    let heard = runtime.block_on(async { timeout(WHILE, store.hints(me)).await });
    assert!(heard.is_err(), "{heard:?}");
    drop(store);
}
