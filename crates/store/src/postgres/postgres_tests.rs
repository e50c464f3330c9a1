use std::sync::Arc;

use model::shard::ShardSet;

use super::fire::is_exclusive;
use super::server::PgServer;
use super::*;
use crate::BoxError;
use crate::conformance::{
    Arena, Rows, Subject, TestClock, answers_alike, answers_in_some_order, firing, node, rows_alike,
};
use crate::fast_path::{FastPaths, Taken};

async fn subject() -> Result<Subject, BoxError> {
    let server = PgServer::shared()?;
    let clock = TestClock::default();
    let config = PgConfig::parse(&server.fresh_schema())?;
    let store = PgStore::with_clock(config, Arc::new(clock.clone())).await?;
    Ok(Subject::over(Arc::new(store), clock)
        .await?
        .with_guard(server))
}

mod conforms {
    use super::subject;

    crate::conformance_suite!(async || subject().await);
}

/// Nodes come and go one by one: nobody opens it alone.
async fn reference() -> Result<Subject, BoxError> {
    Ok(Subject {
        reopen: None,
        ..Subject::mem().await?
    })
}

#[test]
fn it_answers_as_the_reference_does() {
    answers_alike(reference, subject);
}

/// A row says of a run whether its end may mean something to others. A fast path may leave a yes as it is, where the core
/// would find that nothing waits any more: that costs the end its own fast path, and no more. A no has to be right.
async fn ends_that_mean_nothing(client: &tokio_postgres::Client, store: &PgStore) {
    let sql = "SELECT l.job, j.tenant, bool_or(o.waiting AND o.wait_reason IS NULL) FROM live l JOIN jobs j ON j.id = l.job JOIN live o ON o.job = l.job
               WHERE NOT l.exclusive GROUP BY 1, 2";
    for row in client.query(sql, &[]).await.unwrap() {
        let (id, tenant) = (JobId(row.get(0)), TenantId(row.get(1)));
        let waits: bool = row.get(2);
        assert!(!waits, "one waits: {id}");
        // One that cannot be read leaves the row as it was; of one that is deleted nothing more starts.
        if let Ok(Some(job)) = store.get_job(tenant, id).await {
            assert!(!is_exclusive(&job), "{id}");
        }
    }
}

/// A store with its fast paths or without, and its rows.
async fn with_rows(fast_paths: FastPaths) -> Result<Subject, BoxError> {
    let server = PgServer::shared()?;
    let clock = TestClock::default();
    let config = PgConfig::parse(&server.fresh_schema())?;
    let schema = config.schema().to_owned();
    let mut store = PgStore::with_clock(config, Arc::new(clock.clone())).await?;
    store.fast_paths = fast_paths;
    let client = Arc::new(client(&server).await);
    let path = format!("SET search_path TO {schema}");
    client.batch_execute(&path).await?;
    let store = Arc::new(store);
    let of = Arc::clone(&store);
    let rows: Rows = Arc::new(move || {
        let (client, of) = (Arc::clone(&client), Arc::clone(&of));
        Box::pin(async move {
            ends_that_mean_nothing(&client, &of).await;
            let all = "SELECT 'jobs' || j FROM jobs j
                       UNION ALL SELECT 'live' || (to_jsonb(l) - 'exclusive')::text FROM live l
                       UNION ALL SELECT 'history' || h FROM history h UNION ALL SELECT 'handed' || h FROM handed h
                       UNION ALL SELECT 'checkpoints' || c FROM checkpoints c
                       UNION ALL SELECT 'run_logs' || l FROM run_logs l ORDER BY 1";
            let rows = client.query(all, &[]).await.unwrap();
            rows.iter().map(|row| row.get(0)).collect()
        })
    });
    Ok(Subject::over(store, clock)
        .await?
        .with_rows(rows)
        .with_guard(server))
}

#[test]
fn its_fast_paths_write_what_the_core_decides() {
    let taken = Taken::default();
    rows_alike(16, async |are_on| {
        let taken = taken.clone();
        with_rows(FastPaths { are_on, taken }).await
    });
    let of_slots = ["fire_plain", "fire", "claim", "claim_due"];
    // Heartbeats are few, and by chance none is plain.
    let ends = ["settle_plain", "settle", "hand_over"];
    taken.were_all_taken(&[&of_slots[..], &ends].concat());
}

/// Three nodes' worth of connections to one schema.
async fn arena() -> Result<Arena, BoxError> {
    let server = PgServer::shared()?;
    let clock = TestClock::default();
    let config = PgConfig::parse(&server.fresh_schema())?;
    let mut stores: Vec<Arc<dyn crate::Store>> = Vec::new();
    for _ in 0..3 {
        let store = PgStore::with_clock(config.clone(), Arc::new(clock.clone())).await?;
        stores.push(Arc::new(store));
    }
    Ok(Arena::new(stores, clock, server))
}

#[test]
fn some_order_explains_what_many_nodes_are_answered() {
    answers_in_some_order(arena);
}

#[path = "audit_tests.rs"]
#[expect(clippy::disallowed_methods, reason = "real servers take real time")]
mod auditing;
#[path = "beats_tests.rs"]
#[expect(clippy::disallowed_methods, reason = "real servers take real time")]
mod beats;
#[path = "claim_tests.rs"]
#[expect(clippy::disallowed_methods, reason = "real servers take real time")]
mod claiming;
#[path = "cluster_tests.rs"]
#[expect(clippy::disallowed_methods, reason = "real servers take real time")]
mod cluster;
#[path = "partitions_tests.rs"]
#[expect(clippy::disallowed_methods, reason = "real servers take real time")]
mod days;
#[path = "dial_tests.rs"]
#[expect(clippy::disallowed_methods, reason = "real servers take real time")]
mod dialing;
#[path = "fault_tests.rs"]
#[expect(clippy::disallowed_methods, reason = "real servers take real time")]
mod faults;
#[path = "gather_tests.rs"]
mod gathering;
#[path = "listen_tests.rs"]
#[expect(clippy::disallowed_methods, reason = "real servers take real time")]
mod listening;
#[path = "tenants_tests.rs"]
mod many_tenants;
#[path = "migrate_tests.rs"]
#[expect(clippy::disallowed_methods, reason = "real servers take real time")]
mod migrating;
#[path = "open_tests.rs"]
mod opening;
#[path = "plans_tests.rs"]
mod plans;
#[path = "pool_tests.rs"]
#[expect(clippy::disallowed_methods, reason = "real servers take real time")]
mod pooling;
#[path = "speed_tests.rs"]
#[expect(clippy::disallowed_methods, reason = "it measures")]
mod speed;
#[path = "trouble_tests.rs"]
#[expect(clippy::disallowed_methods, reason = "real servers take real time")]
mod trouble;
#[path = "views_tests.rs"]
#[expect(clippy::disallowed_methods, reason = "real servers take real time")]
mod views;

pub(super) async fn store(address: &str) -> PgStore {
    let config = PgConfig::parse(address).unwrap();
    let clock = Arc::new(TestClock::default());
    PgStore::with_clock(config, clock).await.unwrap()
}

pub(super) async fn client(server: &PgServer) -> tokio_postgres::Client {
    let address = server.address();
    let (client, connection) = tokio_postgres::connect(&address, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
}

/// A presence with every shard.
pub(super) async fn leader(store: &PgStore) -> Leases {
    let presence = store.join(&node("first")).await.unwrap();
    store.lease(presence, &ShardSet::ALL).await.unwrap()
}

pub(super) async fn put(store: &PgStore, job: Job) -> Arc<Job> {
    let job = Arc::new(job);
    let new = NewJob {
        job: Arc::clone(&job),
        idempotency: None,
    };
    assert_eq!(store.create_jobs(&[new]).await.unwrap(), [Created::Done]);
    job
}

pub(super) async fn read(store: &PgStore, id: JobId) -> Arc<Job> {
    let job = store.get_job(TenantId::DEFAULT, id).await.unwrap();
    Arc::new(job.unwrap())
}

pub(super) fn on_time(job: &Arc<Job>) -> Option<Firing> {
    Some(firing(job, job.next_due_at()?))
}
