//! Migrations, while nodes of the version before go on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio_postgres::Client;

use super::client;
use crate::postgres::migrate::{bring_up, newest};
use crate::postgres::server::PgServer;
use crate::postgres::*;
use crate::{ClientStore, EngineStore, Rule};

/// A schema as version 2 left it, with one presence; its address, and a connection that finds its tables.
async fn version_two(server: &PgServer) -> (String, Client) {
    let address = server.fresh_schema();
    let schema = PgConfig::parse(&address).unwrap().schema().to_owned();
    let client = client(server).await;
    let all = [
        &format!("CREATE SCHEMA {schema}; SET search_path TO {schema}"),
        "CREATE TABLE schema_migrations (number integer PRIMARY KEY, applied_at timestamptz DEFAULT now())",
        include_str!("migrations/0001_init.sql"),
        include_str!("migrations/0002_time.sql"),
        "INSERT INTO schema_migrations (number) VALUES (1), (2)",
        "INSERT INTO presences (id, node, joined_at, seen_at, beaten_at, unbroken_at, expires_at)
         SELECT gen_random_uuid(), 'old', now_ms(), now_ms(), now_ms(), now_ms(), now_ms() + 60000",
    ];
    for sql in all {
        client.batch_execute(sql).await.unwrap();
    }
    (address, client)
}

/// The numbers of all migrations, after these.
fn all(before: &[i32]) -> Vec<i32> {
    before.iter().copied().chain(1..=newest()).collect()
}

async fn inside(server: &PgServer, address: &str) -> Client {
    let client = client(server).await;
    let schema = PgConfig::parse(address).unwrap().schema().to_owned();
    let path = format!("SET search_path TO {schema}");
    client.batch_execute(&path).await.unwrap();
    client
}

async fn connect(address: &str) -> Result<PgStore, StoreError> {
    PgStore::connect(PgConfig::parse(address).unwrap()).await
}

/// Whether the index is whole; and the rows that say what was done.
async fn stands(client: &Client) -> (Option<bool>, Vec<i32>) {
    let index = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('live_lane')";
    let index = client.query_opt(index, &[]).await.unwrap();
    let numbers = "SELECT number FROM schema_migrations ORDER BY number";
    let numbers = client.query(numbers, &[]).await.unwrap();
    let numbers = numbers.iter().map(|row| row.get(0)).collect();
    (index.map(|row| row.get(0)), numbers)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_nodes_beat_on_while_a_migration_waits_for_a_reader() {
    let server = PgServer::shared().unwrap();
    let (address, old) = version_two(&server).await;
    let reader = inside(&server, &address).await;
    let reading = "BEGIN; SELECT count(*) FROM presences";
    reader.batch_execute(reading).await.unwrap();
    let over = AtomicBool::new(false);
    let opens = async {
        let opened = connect(&address).await;
        over.store(true, Ordering::Relaxed);
        opened.unwrap()
    };
    let beats = async {
        let (mut beats, mut longest) = (0, Duration::ZERO);
        while !over.load(Ordering::Relaxed) {
            let begun = Instant::now();
            let beat = "UPDATE presences SET beaten_at = now_ms()";
            old.batch_execute(beat).await.unwrap();
            longest = longest.max(begun.elapsed());
            beats += 1;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        (beats, longest)
    };
    let reads = async {
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(!over.load(Ordering::Relaxed), "nobody was in the way");
        reader.batch_execute("COMMIT").await.unwrap();
    };
    let (store, (beats, longest), ()) = tokio::join!(opens, beats, reads);
    store.count_live().await.unwrap();
    assert!(beats > 50, "{beats}");
    assert!(longest < Duration::from_millis(1_000), "{longest:?}");
    assert_eq!(stands(&old).await, (Some(true), all(&[])));
}

#[tokio::test]
async fn calendars_that_were_there_are_found_by_their_zone() {
    let server = PgServer::shared().unwrap();
    let (address, old) = version_two(&server).await;
    // The second cannot be read, and is nobody's hindrance.
    old.batch_execute(
        r#"INSERT INTO calendars (tenant, name, version, applied, updated_at, doc)
           VALUES (gen_random_uuid(), 'a', 1, 1, 0, '{"note":"ö","zone":"Europe/Berlin","dates":["2026-12-25"]}'),
                  (gen_random_uuid(), 'b', 1, 1, 0, '\xff7b')"#,
    )
    .await
    .unwrap();
    let named = "INSERT INTO calendar_jobs (tenant, name, job) SELECT tenant, name, gen_random_uuid() FROM calendars";
    old.batch_execute(named).await.unwrap();
    let store = connect(&address).await.unwrap();
    let changed = store.rules_changed().await.unwrap();
    let [Rule::Zone { name, .. }] = &changed[..] else {
        panic!("{changed:?}")
    };
    assert_eq!(name, "Europe/Berlin");
    let under = store.jobs_under(&changed[0], None, 9).await.unwrap();
    assert_eq!(under.len(), 1);
    store.rule_applied(&changed[0]).await.unwrap();
    let still = store.rules_changed().await.unwrap();
    assert_eq!(still, changed, "the old node lives");
    let gone = "UPDATE presences SET ended_at = now_ms()";
    old.batch_execute(gone).await.unwrap();
    store.rule_applied(&changed[0]).await.unwrap();
    assert_eq!(store.rules_changed().await.unwrap(), []);
}

#[tokio::test]
async fn a_migration_gives_up_some_time_and_says_for_whom() {
    let server = PgServer::shared().unwrap();
    let (address, old) = version_two(&server).await;
    let reader = inside(&server, &address).await;
    let reading = "SET application_name = 'a long look'; BEGIN; SELECT count(*) FROM presences";
    reader.batch_execute(reading).await.unwrap();
    // A connection that is set up as ours are.
    let other = connect(&server.fresh_schema()).await.unwrap();
    let conn = other.makers.get().await.unwrap();
    let schema = PgConfig::parse(&address).unwrap().schema().to_owned();
    let path = format!("SET search_path TO {schema}, pg_catalog");
    conn.run(&path).await.unwrap();
    let error = bring_up(&conn, &schema, 2).await.unwrap_err();
    assert!(matches!(error, StoreError::Unusable(_)), "{error:?}");
    assert!(error.to_string().contains("a long look"), "{error}");
    conn.forget();
    assert_eq!(stands(&old).await, (None, vec![1, 2]));
    reader.batch_execute("COMMIT").await.unwrap();
    connect(&address).await.unwrap();
    assert_eq!(stands(&old).await, (Some(true), all(&[])));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_is_made_while_everyone_goes_on() {
    let server = PgServer::shared().unwrap();
    let (address, old) = version_two(&server).await;
    // Later migrations lock the table for a moment: they are over, and the index alone is left to be made.
    drop(connect(&address).await.unwrap());
    let left = "INSERT INTO schema_migrations (number) VALUES (-3); DROP INDEX live_lane";
    old.batch_execute(left).await.unwrap();
    let run = "INSERT INTO live (id, job, tenant, due_at, version, attempt, lost, shard, kind, lane, state, waiting, exclusive)
               SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 1, 1, 1, 0, 1, 0, 1, 0, false, false";
    let writer = inside(&server, &address).await;
    writer
        .batch_execute(&format!("BEGIN; {run}"))
        .await
        .unwrap();
    let open = tokio::spawn({
        let address = address.clone();
        async move { connect(&address).await }
    });
    let begun = Instant::now();
    while stands(&old).await != (Some(false), all(&[-3])) {
        assert!(begun.elapsed() < Duration::from_secs(20));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let begun = Instant::now();
    old.batch_execute(run).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(1));
    // Another node does not wait for it.
    drop(connect(&address).await.unwrap());
    assert!(!open.is_finished());
    assert_eq!(stands(&old).await.0, Some(false));
    writer.batch_execute("COMMIT").await.unwrap();
    open.await.unwrap().unwrap();
    assert_eq!(stands(&old).await, (Some(true), all(&[])));
}

#[tokio::test]
async fn an_index_that_was_left_half_made_is_made_again() {
    let server = PgServer::shared().unwrap();
    let (address, old) = version_two(&server).await;
    drop(connect(&address).await.unwrap());
    let writer = inside(&server, &address).await;
    let hold = "BEGIN; LOCK TABLE live IN ROW EXCLUSIVE MODE";
    writer.batch_execute(hold).await.unwrap();
    for sql in [
        "INSERT INTO schema_migrations (number) VALUES (-3)",
        "DROP INDEX live_lane",
    ] {
        // The first is what a node wrote that ended here.
        writer.batch_execute(sql).await.unwrap();
    }
    writer.batch_execute("COMMIT").await.unwrap();
    writer.batch_execute(hold).await.unwrap();
    old.batch_execute("SET lock_timeout = '100ms'")
        .await
        .unwrap();
    let half = "CREATE INDEX CONCURRENTLY live_lane ON live (lane)";
    old.batch_execute(half).await.unwrap_err();
    writer.batch_execute("COMMIT").await.unwrap();
    assert_eq!(stands(&old).await, (Some(false), all(&[-3])));
    drop(connect(&address).await.unwrap());
    assert_eq!(stands(&old).await, (Some(true), all(&[])));
    let columns = "SELECT pg_get_indexdef('live_lane'::regclass)";
    let row = old.query_one(columns, &[]).await.unwrap();
    assert!(row.get::<_, String>(0).contains("(lane, due_at, id)"));
}

/// The indexes of history that are parts of that one, and whether it is whole.
async fn parts_of(client: &Client, index: &str) -> (Option<bool>, i64) {
    let sql = "SELECT (SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)),
                      (SELECT count(*) FROM pg_inherits i JOIN pg_index x ON x.indexrelid = i.inhrelid
                       WHERE i.inhparent = to_regclass($1) AND x.indisvalid)";
    let row = client.query_one(sql, &[&index]).await.unwrap();
    (row.get(0), row.get(1))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_that_were_there_get_the_indexes_of_new_ones() {
    let server = PgServer::shared().unwrap();
    let (address, old) = version_two(&server).await;
    for day in [1, 2] {
        let [from, to] = [day, day + 1].map(|day| {
            let at = model::Timestamp::from_millis(day * 86_400_000);
            model::RunId::least_at(at).0
        });
        let made = format!(
            "CREATE TABLE history_{day} PARTITION OF history FOR VALUES FROM ('{from}') TO ('{to}')"
        );
        old.batch_execute(&made).await.unwrap();
    }
    drop(connect(&address).await.unwrap());
    for index in ["history_ends", "history_tenant"] {
        assert_eq!(parts_of(&old, index).await, (Some(true), 2), "{index}");
    }
    assert_eq!(parts_of(&old, "history_rare").await, (None, 0));
    // A node that ended in the middle of it: the next one goes on.
    let left = "INSERT INTO schema_migrations (number) VALUES (-25); DROP INDEX history_tenant;
                CREATE INDEX history_tenant ON ONLY history (tenant, id)
                WHERE tenant <> '00000000-0000-0000-0000-000000000000'";
    old.batch_execute(left).await.unwrap();
    assert_eq!(parts_of(&old, "history_tenant").await, (Some(false), 0));
    // A day that comes meanwhile has it from the first. A start that meets a busy table leaves an index to the next.
    let mut store = connect(&address).await.unwrap();
    for _ in 0..5 {
        if parts_of(&old, "history_tenant").await == (Some(true), 2) {
            break;
        }
        store = connect(&address).await.unwrap();
    }
    assert_eq!(parts_of(&old, "history_tenant").await, (Some(true), 2));
    let day = model::Partition(3);
    store
        .open_partitions([(day, day.ends_at())].into_iter())
        .await
        .unwrap();
    for index in ["history_ends", "history_tenant"] {
        assert_eq!(parts_of(&old, index).await, (Some(true), 3), "{index}");
    }
    assert_eq!(stands(&old).await, (Some(true), all(&[])));
}
