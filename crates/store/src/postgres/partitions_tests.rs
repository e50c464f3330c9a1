//! Days of history: made when nobody waits, dropped when nobody reads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use model::{Partition, Verdict};
use tokio_postgres::Client;

use super::{client, leader, on_time, put, read, store};
use crate::RunsOfChange;
use crate::conformance::{DONE, at, job, settlement, someone};
use crate::postgres::server::PgServer;
use crate::postgres::*;

const DAY: i64 = 86_400;

/// A connection that finds our tables.
async fn inside(server: &PgServer, address: &str) -> Client {
    let client = client(server).await;
    let schema = PgConfig::parse(address).unwrap().schema().to_owned();
    let path = format!("SET search_path TO {schema}");
    client.batch_execute(&path).await.unwrap();
    client
}

/// Tables of days, and how many of them are a part of history.
async fn days(client: &Client) -> (i64, i64) {
    let sql = "SELECT count(*), count(i.inhparent) FILTER (WHERE NOT i.inhdetachpending)
               FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
               WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.relname ~ '^history_'";
    let row = client.query_one(sql, &[]).await.unwrap();
    (row.get(0), row.get(1))
}

/// A job that was paused for so many days, and how it goes on.
async fn resumed_after(store: &PgStore, number: u8, days: i64) -> JobChange {
    let job = put(store, job(number).unwrap()).await;
    let (paused, skipped) = job.paused(at(1), None, &someone());
    let pause = JobChange {
        before: job,
        after: Arc::new(paused),
        skipped,
        runs: RunsOfChange::TakeBack,
    };
    let changed = store.change_job(&pause).await.unwrap();
    let JobChanged::Done { job, .. } = changed else {
        panic!("{changed:?}")
    };
    let (after, skipped) = job.resumed(at(days * DAY), false, &someone());
    JobChange {
        before: Arc::from(job),
        after: Arc::new(after),
        skipped,
        runs: RunsOfChange::Keep,
    }
}

/// Fires and settles one job again and again; the longest that it took.
async fn go_on(store: &PgStore, leases: &Leases, id: JobId, over: &AtomicBool) -> Duration {
    let mut longest = Duration::ZERO;
    while !over.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let firing = on_time(&read(store, id).await).unwrap();
        let fired = store.fire(leases, &[firing]).await.unwrap();
        let [Fired::Claimed(run)] = fired.as_slice() else {
            panic!("{fired:?}")
        };
        let run = store.get_run(TenantId::DEFAULT, *run).await.unwrap();
        let end = [settlement(&run.unwrap(), Verdict::Succeed)];
        assert_eq!(store.settle(leases.presence, &end).await.unwrap(), [DONE]);
        longest = longest.max(begun.elapsed());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    longest
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_was_paused_for_a_year_goes_on_at_once() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let store = store(&address).await;
    let leases = leader(&store).await;
    let other = put(&store, job(2).unwrap()).await;
    let resume = resumed_after(&store, 1, 390).await;
    let over = AtomicBool::new(false);
    let begun = Instant::now();
    let change = async {
        let changed = store.change_job(&resume).await.unwrap();
        over.store(true, Ordering::Relaxed);
        (changed, begun.elapsed())
    };
    let others = go_on(&store, &leases, other.id, &over);
    let ((changed, took), longest) = tokio::join!(change, others);
    assert!(matches!(changed, JobChanged::Done { .. }), "{changed:?}");
    println!("390 days took {took:?}, others at most {longest:?}");
    assert!(took < Duration::from_secs(15), "{took:?}");
    assert!(longest < Duration::from_secs(5), "{longest:?}");
    let client = inside(&server, &address).await;
    assert_eq!(days(&client).await, (391, 391));
    let entries =
        "SELECT count(*), sum(coalesce(stretch_count, 1))::bigint FROM history WHERE state <> 3";
    let row = client.query_one(entries, &[]).await.unwrap();
    assert_eq!((row.get(0), row.get(1)), (391_i64, 390_i64 * 1_440));
}

/// However long it takes: whoever has to wait for a day has nothing locked meanwhile.
#[tokio::test]
async fn partitions_are_made_while_nothing_is_locked() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let store = store(&address).await;
    let resume = resumed_after(&store, 1, 2).await;
    let (slow, looker) = (
        inside(&server, &address).await,
        inside(&server, &address).await,
    );
    let hold = format!("BEGIN; {}", include_str!("sql/partition_lock.sql"));
    slow.batch_execute(&hold).await.unwrap();
    let change = store.change_job(&resume);
    let reading = async {
        // Longer than a transaction may idle.
        for _ in 0..30 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let free = "SELECT id FROM jobs FOR UPDATE SKIP LOCKED";
            let free = looker.query(free, &[]).await.unwrap();
            assert_eq!(free.len(), 1, "the job is locked");
        }
        slow.batch_execute("COMMIT").await.unwrap();
    };
    // The first look may come before the call has let go.
    let (changed, ()) = tokio::join!(change, reading);
    assert!(matches!(changed.unwrap(), JobChanged::Done { .. }));
    assert_eq!(days(&looker).await, (3, 3));
}

fn keep(now: i64) -> Keep {
    Keep {
        now: at(now * DAY),
        history: Duration::from_secs(10 * 86_400),
        finished: Duration::from_secs(10_000 * 86_400),
    }
}

async fn open(store: &PgStore, from: i64, to: i64) {
    let days = (from..to).map(|day| Partition::at(at(day * DAY)));
    let days = days.map(|day| (day, day.ends_at()));
    store.open_partitions(days).await.unwrap();
}

/// As `pg_dump` does for hours.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_reads_history_for_long_is_in_nobodys_way() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let store = store(&address).await;
    let leases = leader(&store).await;
    let other = put(&store, job(2).unwrap()).await;
    open(&store, 0, 20).await;
    let client = inside(&server, &address).await;
    let reader = inside(&server, &address).await;
    let reading = "BEGIN; SELECT count(*) FROM history";
    reader.batch_execute(reading).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let over = AtomicBool::new(false);
    let retain = async {
        let begun = Instant::now();
        let kept = store.retain(&keep(25)).await.unwrap();
        assert_eq!(days(&client).await, (23, 23), "none is half gone");
        over.store(true, Ordering::Relaxed);
        (kept, begun.elapsed())
    };
    let others = go_on(&store, &leases, other.id, &over);
    let ((kept, took), longest) = tokio::join!(retain, others);
    assert_eq!(kept.partitions, 0, "all are read");
    assert!(took < Duration::from_secs(6), "{took:?}");
    assert!(longest < Duration::from_secs(2), "{longest:?}");
    reader.batch_execute("COMMIT").await.unwrap();
    drop(reader);
    for _ in 0..5 {
        store.retain(&keep(25)).await.unwrap();
    }
    // The live run keeps none; from the tenth day before today on, today, and two more.
    assert_eq!(days(&client).await, (8, 8));
}

#[tokio::test]
async fn a_partition_that_was_detached_and_not_dropped_goes_all_the_same() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let store = store(&address).await;
    open(&store, 0, 4).await;
    let client = inside(&server, &address).await;
    let name = |day: i64| {
        let first = Partition::at(at(0)).0;
        format!("history_{}", first + day)
    };
    let out = format!("ALTER TABLE history DETACH PARTITION {}", name(0));
    client.batch_execute(&out).await.unwrap();
    // Half taken out: somebody reads, and patience ends.
    let reader = inside(&server, &address).await;
    let reading = "BEGIN; SELECT count(*) FROM history";
    reader.batch_execute(reading).await.unwrap();
    client
        .batch_execute("SET lock_timeout = '100ms'")
        .await
        .unwrap();
    let half = format!(
        "ALTER TABLE history DETACH PARTITION {} CONCURRENTLY",
        name(1)
    );
    client.batch_execute(&half).await.unwrap_err();
    assert_eq!(days(&client).await, (4, 2));
    reader.batch_execute("COMMIT").await.unwrap();
    let kept = store.retain(&keep(12)).await.unwrap();
    assert_eq!(kept.partitions, 2);
    assert_eq!(days(&client).await, (5, 5), "two are left, and three ahead");
}

/// It is not dropped as it is: that would keep everyone from history.
#[tokio::test]
async fn a_partition_that_is_half_detached_is_made_again() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let store = store(&address).await;
    open(&store, 0, 1).await;
    let client = inside(&server, &address).await;
    let reader = inside(&server, &address).await;
    let reading = "BEGIN; SELECT count(*) FROM history";
    reader.batch_execute(reading).await.unwrap();
    let day = Partition::at(at(0)).0;
    let half = format!("ALTER TABLE history DETACH PARTITION history_{day} CONCURRENTLY");
    client
        .batch_execute("SET lock_timeout = '100ms'")
        .await
        .unwrap();
    client.batch_execute(&half).await.unwrap_err();
    assert_eq!(days(&client).await, (1, 0));
    reader.batch_execute("COMMIT").await.unwrap();
    store.partitions.forget();
    open(&store, 0, 1).await;
    assert_eq!(days(&client).await, (1, 1));
}

/// Somebody wrote to it after it was found to be over and before it was taken out.
#[tokio::test]
async fn a_partition_that_a_straggler_was_written_to_is_attached_again() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let store = store(&address).await;
    open(&store, 0, 2).await;
    let client = inside(&server, &address).await;
    let first = Partition::at(at(0));
    for day in [first, Partition(first.0 + 1)] {
        let out = format!("ALTER TABLE history DETACH PARTITION history_{}", day.0);
        client.batch_execute(&out).await.unwrap();
    }
    let note = "INSERT INTO stragglers (day, kept_from) VALUES ($1, $2)";
    let noted =
        [&first.0, &at(11 * DAY).as_millis()] as [&(dyn tokio_postgres::types::ToSql + Sync); 2];
    client.execute(note, &noted).await.unwrap();
    assert_eq!(store.retain(&keep(20)).await.unwrap().partitions, 1);
    assert_eq!(days(&client).await, (4, 4), "it, and three ahead");
    assert_eq!(store.retain(&keep(21)).await.unwrap().partitions, 1);
    let left = client.query("SELECT * FROM stragglers", &[]).await.unwrap();
    assert_eq!((days(&client).await, left.len()), ((4, 4), 0));
}

/// The entry of another straggler is in it.
#[tokio::test]
async fn a_partition_that_was_detached_is_made_again_with_what_it_has() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let store = store(&address).await;
    open(&store, 0, 1).await;
    let client = inside(&server, &address).await;
    let day = Partition::at(at(0)).0;
    let put = format!(
        "INSERT INTO history (id, job, tenant, version, attempt, lost, kind, lane, state)
         VALUES ('{id}', '{id}', '{id}', 1, 1, 0, 0, 1, 3);
         ALTER TABLE history DETACH PARTITION history_{day} CONCURRENTLY",
        id = RunId::least_at(at(0)).0
    );
    for statement in put.split(';') {
        client.batch_execute(statement).await.unwrap();
    }
    store.partitions.forget();
    open(&store, 0, 1).await;
    assert_eq!(days(&client).await, (1, 1));
    let entries = client.query("SELECT id FROM history", &[]).await.unwrap();
    assert_eq!(entries.len(), 1);
}
