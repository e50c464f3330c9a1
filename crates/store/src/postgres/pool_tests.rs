//! Callers that give up, and readers that take their time: what everyone else notices of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use model::{Overlap, RunKind};
use tokio::time::timeout;

use super::{client, leader, on_time, put, read};
use crate::conformance::{TestClock, at, job, job_with, slot};
use crate::postgres::server::{Mode, PgServer};
use crate::postgres::*;

const SOON: Duration = Duration::from_secs(2);
const PAGE: Page<JobId> = Page {
    before: None,
    limit: 10,
};

/// A store with so many connections, which the server knows by its schema's name.
async fn named(address: &str, connections: usize) -> (PgStore, String) {
    let name = PgConfig::parse(address).unwrap().schema().to_owned();
    let config = PgConfig::parse(&format!("{address}&application_name={name}")).unwrap();
    let config = config.with_connections(connections);
    let clock = Arc::new(TestClock::default());
    (PgStore::with_clock(config, clock).await.unwrap(), name)
}

/// How many connections of that name the server has, and how many of them do something.
async fn counted(client: &tokio_postgres::Client, name: &str) -> (i64, i64) {
    let sql = "SELECT count(*), count(*) FILTER (WHERE state = 'active') FROM pg_stat_activity \
               WHERE application_name = $1";
    let row = client.query_one(sql, &[&name]).await.unwrap();
    (row.get(0), row.get(1))
}

async fn comes_to_rest(client: &tokio_postgres::Client, name: &str) {
    let begun = Instant::now();
    while counted(client, name).await.1 > 0 {
        assert!(begun.elapsed() < SOON, "the server goes on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A listing that finds its table locked.
async fn list_labelled(store: &PgStore) -> Result<Vec<Job>, StoreError> {
    let filter = JobFilter {
        labels: vec![("team".to_owned(), "a".to_owned())],
        ..JobFilter::default()
    };
    store.list_jobs(TenantId::DEFAULT, &filter, PAGE).await
}

async fn lock_labels(server: &PgServer, schema: &str) -> tokio_postgres::Client {
    let holder = client(server).await;
    let lock = format!("BEGIN; LOCK TABLE {schema}.labels IN ACCESS EXCLUSIVE MODE");
    holder.batch_execute(&lock).await.unwrap();
    holder
}

/// Fires a job's next slot; how long that took.
async fn fires(store: &PgStore, leases: &Leases, id: JobId) -> Duration {
    let begun = Instant::now();
    let firing = on_time(&read(store, id).await).unwrap();
    let fired = store.fire(leases, &[firing]).await.unwrap();
    assert!(matches!(fired[0], Fired::Claimed(_)), "{fired:?}");
    begun.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_was_given_up_is_in_nobodys_way() {
    let server = PgServer::shared().unwrap();
    let (store, name) = named(&server.fresh_schema(), 1).await;
    let leases = leader(&store).await;
    let slow = put(&store, job(1).unwrap()).await;
    let quick = put(&store, job(2).unwrap()).await;
    let (holder, witness) = (client(&server).await, client(&server).await);
    let lock = format!(
        "BEGIN; SELECT FROM {name}.jobs WHERE id = '{}' FOR UPDATE",
        slow.id.0
    );
    holder.batch_execute(&lock).await.unwrap();
    let by_hand = StartRun {
        run: Run {
            id: RunId::of_request(slow.id, at(5), 5),
            kind: RunKind::Manual,
            slot: None,
            ..Run::of_slot(&slow, slot(5))
        },
        force: false,
    };
    for _ in 0..3 {
        let given_up = timeout(Duration::from_millis(200), store.start_run(&by_hand)).await;
        assert!(given_up.is_err(), "it was to wait");
        // There is one connection, and it is to be had although the row is still locked.
        let took = fires(&store, &leases, quick.id).await;
        assert!(took < SOON, "{took:?}");
        comes_to_rest(&witness, &name).await;
    }
    holder.batch_execute("ROLLBACK").await.unwrap();
    let started = store.start_run(&by_hand).await.unwrap();
    assert_eq!(started, Started::Ready, "nothing was written before");
}

/// Cancelled while it waits for the standby, a commit would be seen by everyone, and be lost with the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_was_given_up_is_left_alone() {
    let server = PgServer::private(Mode::Durable).unwrap();
    let (store, name) = named(&server.fresh_schema(), 2).await;
    let leases = leader(&store).await;
    let plain = put(&store, job(1).unwrap()).await;
    let skips = job_with(2, |def| def.overlap = Overlap::Skip);
    let skips = put(&store, skips.unwrap()).await;
    let witness = client(&server).await;
    let waits = server.folder().join("waits-for.conf");
    let reload = "SELECT pg_reload_conf(); SELECT pg_sleep(0.3)";
    std::fs::write(&waits, "synchronous_standby_names = '*'\n").unwrap();
    witness.batch_execute(reload).await.unwrap();
    for job in [&plain, &skips] {
        let batch = [on_time(job).unwrap()];
        let given_up = timeout(Duration::from_millis(300), store.fire(&leases, &batch)).await;
        assert!(given_up.is_err(), "there is no standby");
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let seen = format!("SELECT count(*) FROM {name}.live");
    let count = witness
        .query_one(&seen, &[])
        .await
        .unwrap()
        .get::<_, i64>(0);
    assert_eq!(count, 0, "seen before it was safe");
    std::fs::write(&waits, "").unwrap();
    witness.batch_execute(reload).await.unwrap();
    comes_to_rest(&witness, &name).await;
    let count = witness
        .query_one(&seen, &[])
        .await
        .unwrap()
        .get::<_, i64>(0);
    assert_eq!(count, 2);
    store.count_live().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_give_up_leave_nothing_behind() {
    let server = PgServer::shared().unwrap();
    let (store, name) = named(&server.fresh_schema(), 4).await;
    let leases = leader(&store).await;
    let job = put(&store, job(1).unwrap()).await;
    let holder = lock_labels(&server, &name).await;
    let witness = client(&server).await;
    for _ in 0..40 {
        let given_up = timeout(Duration::from_millis(20), list_labelled(&store)).await;
        assert!(given_up.is_err(), "it was to wait");
        let took = fires(&store, &leases, job.id).await;
        assert!(took < Duration::from_millis(500), "{took:?}");
        let (open, _) = counted(&witness, &name).await;
        assert!(open <= 4 + 2 + 3, "{open} connections");
    }
    comes_to_rest(&witness, &name).await;
    holder.batch_execute("ROLLBACK").await.unwrap();
    assert!(list_labelled(&store).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_wait_hold_up_nobody_else() {
    let server = PgServer::shared().unwrap();
    let (store, name) = named(&server.fresh_schema(), 2).await;
    let leases = leader(&store).await;
    let job = put(&store, job(1).unwrap()).await;
    let holder = lock_labels(&server, &name).await;
    let reads = join_all((0..12).map(|_| list_labelled(&store)));
    let fire = async {
        let mut longest = Duration::ZERO;
        for _ in 0..20 {
            longest = longest.max(fires(&store, &leases, job.id).await);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        longest
    };
    let (reads, longest) = tokio::join!(reads, fire);
    assert!(longest < Duration::from_millis(500), "{longest:?}");
    for read in reads {
        assert!(matches!(read, Err(StoreError::Slow(_))), "{read:?}");
    }
    holder.batch_execute("ROLLBACK").await.unwrap();
    assert!(list_labelled(&store).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_read_that_takes_too_long_is_given_up_and_answered() {
    let server = PgServer::shared().unwrap();
    let (store, name) = named(&server.fresh_schema(), 1).await;
    let conn = store.readers.get().await.unwrap();
    let shown = conn.row("SHOW statement_timeout", &[]).await.unwrap();
    assert_eq!(shown.unwrap().get::<_, String>(0), "10s");
    let patience = "SET statement_timeout = '200ms'; SET lock_timeout = 0";
    conn.run(patience).await.unwrap();
    drop(conn);
    let _holder = lock_labels(&server, &name).await;
    let error = list_labelled(&store).await.unwrap_err();
    let StoreError::Slow(why) = error else {
        panic!("{error:?}")
    };
    assert!(
        why.contains("10 s") && why.contains("ask for less"),
        "{why}"
    );
}

/// What failed half way is answered at once: its connection is used again.
#[tokio::test]
async fn a_batch_that_failed_keeps_its_connection() {
    let server = PgServer::shared().unwrap();
    let (store, _) = named(&server.fresh_schema(), 1).await;
    let pid = async || {
        let conn = store.pool.get().await.unwrap();
        let row = conn.row("SELECT pg_backend_pid()", &[]).await.unwrap();
        row.unwrap().get::<_, i32>(0)
    };
    let before = pid().await;
    let conn = store.pool.begin().await.unwrap();
    let bad = conn.prepare("SELECT 1 / $1::int4").await.unwrap();
    let failed = tokio::try_join!(
        conn.query_prepared(&bad, &[&0]),
        conn.query_prepared(&bad, &[&1])
    );
    assert!(failed.is_err());
    drop(conn);
    assert_eq!(pid().await, before);
}
