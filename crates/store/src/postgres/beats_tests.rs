//! Beats have a connection of their own, which lives where they are made.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::client;
use crate::conformance::node;
use crate::postgres::server::PgServer;
use crate::postgres::*;

fn small() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn large() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().unwrap()
}

async fn open(server: &PgServer) -> (Arc<PgStore>, String) {
    let config = PgConfig::parse(&server.fresh_schema()).unwrap();
    let schema = config.schema().to_owned();
    (Arc::new(PgStore::connect(config).await.unwrap()), schema)
}

/// A node joins again with another thread: what its beats had before went with the thread.
#[test]
fn beats_go_on_where_they_are_made_next() {
    let server = PgServer::shared().unwrap();
    let main = large();
    let (store, _) = main.block_on(open(&server));
    for _ in 0..3 {
        let me = main.block_on(store.join(&node("a"))).unwrap();
        let store = Arc::clone(&store);
        let thread = std::thread::spawn(move || {
            small().block_on(async {
                for _ in 0..3 {
                    let node_status = NodeStatus::default();
                    let beat =
                        tokio::time::timeout(Duration::from_secs(20), store.beat(me, &node_status));
                    beat.await.unwrap().unwrap();
                }
            });
        });
        thread.join().unwrap();
    }
}

/// The thread ends while its beat is under way.
#[test]
fn a_beat_that_was_cut_off_with_its_runtime_is_in_nobodys_way() {
    let server = PgServer::shared().unwrap();
    let main = large();
    let (store, schema) = main.block_on(open(&server));
    let me = main.block_on(store.join(&node("a"))).unwrap();
    let node_status = NodeStatus::default();
    let holder = main.block_on(client(&server));
    let hold = format!("BEGIN; SELECT FROM {schema}.presences FOR UPDATE");
    main.block_on(holder.batch_execute(&hold)).unwrap();
    let first = small();
    let beat = first.block_on(async {
        tokio::time::timeout(Duration::from_millis(300), store.beat(me, &node_status)).await
    });
    assert!(beat.is_err(), "it was to wait");
    drop(first);
    main.block_on(holder.batch_execute("ROLLBACK")).unwrap();
    let beat = small().block_on(store.beat(me, &node_status)).unwrap();
    assert_eq!(beat.living.len(), 1);
}

/// Nobody drives the connection any more, and nobody closes it either.
#[test]
fn a_beat_waits_no_longer_than_it_is_good_for() {
    let server = PgServer::shared().unwrap();
    let main = large();
    let (store, _) = main.block_on(open(&server));
    let me = main.block_on(store.join(&node("a"))).unwrap();
    let node_status = NodeStatus::default();
    let asleep = small();
    asleep.block_on(store.beat(me, &node_status)).unwrap();
    let awake = small();
    let late = awake.block_on(store.beat(me, &node_status)).unwrap_err();
    assert!(late.is_transient(), "{late:?}");
    awake.block_on(store.beat(me, &node_status)).unwrap();
    drop(asleep);
    awake.block_on(store.beat(me, &node_status)).unwrap();
}

/// One row is written, and no index.
#[tokio::test]
async fn a_beat_is_one_small_write() {
    let server = PgServer::shared().unwrap();
    let (store, schema) = open(&server).await;
    let me = store.join(&node("a")).await.unwrap();
    let mut last = 0;
    for room in 0..40 {
        let node_status = NodeStatus {
            room,
            schedules: room % 2 == 0,
            ..NodeStatus::default()
        };
        let beat = store.beat(me, &node_status).await.unwrap();
        assert!(beat.now_micros > last);
        last = beat.now_micros;
    }
    drop(store);
    let client = client(&server).await;
    let sql = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = 'presences'";
    for _ in 0..100 {
        let row = client.query_one(sql, &[&schema]).await.unwrap();
        let (written, hot): (i64, i64) = (row.get(0), row.get(1));
        if written >= 40 {
            assert!((written, hot) == (40, 40), "{written} {hot}");
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("nobody counted");
}

/// A write that waits, for a lock, a disk or a standby, is the store's own time: it says nothing against its clock.
#[test]
fn a_beat_that_the_store_was_slow_to_write_says_so() {
    let server = PgServer::shared().unwrap();
    let main = large();
    let (store, schema) = main.block_on(open(&server));
    let me = main.block_on(store.join(&node("a"))).unwrap();
    let node_status = NodeStatus::default();
    main.block_on(store.beat(me, &node_status)).unwrap();
    let holder = main.block_on(client(&server));
    let hold = format!("BEGIN; SELECT FROM {schema}.presences FOR UPDATE");
    main.block_on(holder.batch_execute(&hold)).unwrap();
    main.spawn(async move {
        tokio::time::sleep(Duration::from_millis(400)).await;
        holder.batch_execute("ROLLBACK").await.unwrap();
    });
    let sent = std::time::Instant::now();
    let beat = main.block_on(store.beat(me, &node_status)).unwrap();
    let waited = sent.elapsed();
    assert!(beat.took >= Duration::from_millis(300), "{:?}", beat.took);
    assert!(beat.took <= waited, "{:?} of {waited:?}", beat.took);
}
