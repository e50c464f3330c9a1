//! How fast runs go through fire and settle, beside a floor written by hand for the same server in the same minute:
//! `cargo test --release -p store --features postgres,conformance how_fast -- --ignored --nocapture`.

use std::sync::Arc;
use std::time::Instant;

use model::{Outcome, Overlap, Verdict};
use tokio_postgres::Client;

use super::{client, leader};
use crate::conformance::{at, job_with, settlement};
use crate::postgres::server::{Mode, PgServer};
use crate::postgres::*;

const JOBS: usize = 20_000;
const ROUNDS: usize = 3;
const BATCH: usize = 1_000;
/// Batches under way at once.
const LANES: usize = 2;

/// What the server has written so far.
struct Written {
    wal: i64,
    tuples: i64,
}

async fn written(client: &Client, schema: &str) -> Written {
    // Counts arrive when whoever made them has been idle for ten seconds.
    tokio::time::sleep(std::time::Duration::from_secs(12)).await;
    let row = client
        .query_one("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint", &[])
        .await
        .unwrap();
    let sum = "SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::bigint
               FROM pg_stat_user_tables WHERE schemaname = $1";
    let tuples = client.query_one(sum, &[&schema]).await.unwrap();
    Written {
        wal: row.get(0),
        tuples: tuples.get(0),
    }
}

fn report(what: &str, seconds: f64, before: &Written, after: &Written) -> f64 {
    let runs = (JOBS * ROUNDS) as f64;
    let rate = runs / seconds;
    println!(
        "{what}: {rate:.0} runs/s, {:.0} bytes of log and {:.2} tuples a run",
        (after.wal - before.wal) as f64 / runs,
        (after.tuples - before.tuples) as f64 / runs,
    );
    rate
}

fn jobs(overlap: Overlap) -> Vec<Arc<Job>> {
    let one = |number: usize| {
        let job = job_with(1, |def| {
            def.overlap = overlap;
            def.payload = Some(bytes::Bytes::from(vec![b'x'; 100]));
        });
        let mut chance = [7; 10];
        chance[..8].copy_from_slice(&(number as u64).to_be_bytes());
        chance.rotate_left(number % 7);
        Arc::new(Job {
            id: JobId::new(at(number as i64 / 100), chance),
            ..job.unwrap()
        })
    };
    (0..JOBS).map(one).collect()
}

/// One lane: fires and settles its jobs, batch by batch.
async fn lane(store: Arc<PgStore>, leases: Leases, mut jobs: Vec<Arc<Job>>) {
    for _ in 0..ROUNDS {
        for batch in jobs.chunks_mut(BATCH) {
            let firings: Vec<Firing> = batch.iter().filter_map(super::on_time).collect();
            let fired = store.fire(&leases, &firings).await.unwrap();
            assert!(fired.iter().all(|it| matches!(it, Fired::Claimed(_))));
            let mut ends = Vec::with_capacity(batch.len());
            for firing in &firings {
                let run = Run {
                    claim: Some(leases.presence),
                    ..Run::of_slot(&firing.job, firing.decision.start.unwrap())
                };
                let mut end = settlement(&run, Verdict::Succeed);
                if let Some(attempt) = &mut end.attempt {
                    attempt.outcome = Outcome::Succeeded;
                }
                ends.push(end);
            }
            let settled = store.settle(leases.presence, &ends).await.unwrap();
            assert!(settled.iter().all(|it| matches!(it, Settled::Done { .. })));
            for (job, firing) in batch.iter_mut().zip(&firings) {
                let stands = job.standing_after(&firing.decision, true);
                *job = Arc::new(job.at_standing(stands));
            }
        }
    }
}

async fn ours(server: &PgServer, overlap: Overlap) -> f64 {
    let config = PgConfig::parse(&server.fresh_schema()).unwrap();
    let schema = config.schema().to_owned();
    let store = Arc::new(PgStore::connect(config).await.unwrap());
    let leases = leader(&store).await;
    let jobs = jobs(overlap);
    let begun = Instant::now();
    for batch in jobs.chunks(BATCH) {
        let new = |job: &Arc<Job>| NewJob {
            job: Arc::clone(job),
            idempotency: None,
        };
        let batch: Vec<NewJob> = batch.iter().map(new).collect();
        store.create_jobs(&batch).await.unwrap();
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!("{overlap:?}: {:.0} jobs/s created", JOBS as f64 / seconds);
    let client = client(server).await;
    client.batch_execute("CHECKPOINT").await.unwrap();
    let before = written(&client, &schema).await;
    let begun = Instant::now();
    let lanes = jobs.chunks(JOBS / LANES).map(|jobs| {
        let (store, leases) = (Arc::clone(&store), leases.clone());
        tokio::spawn(lane(store, leases, jobs.to_vec()))
    });
    for lane in lanes.collect::<Vec<_>>() {
        lane.await.unwrap();
    }
    let seconds = begun.elapsed().as_secs_f64();
    let after = written(&client, &schema).await;
    report(&format!("{overlap:?}"), seconds, &before, &after)
}

/// The same three writes by hand: tables with nothing that is not needed for them.
async fn floor(server: &PgServer) -> f64 {
    const SCHEMA: &str = "CREATE SCHEMA floor; SET search_path TO floor;
        CREATE TABLE jobs (id uuid PRIMARY KEY, due_at bigint, payload bytea) WITH (fillfactor = 60);
        CREATE INDEX ON jobs (due_at);
        CREATE TABLE live (id uuid PRIMARY KEY, job uuid NOT NULL, due_at bigint, claim int, attempt int, state smallint);
        CREATE TABLE history (id uuid PRIMARY KEY, job uuid NOT NULL, due_at bigint, attempt int, state smallint,
                              dispatched_at bigint, settled_at bigint, output bytea);
        CREATE INDEX ON history (job, id)";
    let setup = client(server).await;
    setup.batch_execute(SCHEMA).await.unwrap();
    let jobs = jobs(Overlap::Allow);
    let ids: Vec<uuid::Uuid> = jobs.iter().map(|job| job.id.0).collect();
    let fill = "INSERT INTO jobs SELECT id, 60000, decode(repeat('78', 300), 'hex') FROM unnest($1::uuid[]) n(id)";
    setup.execute(fill, &[&ids]).await.unwrap();
    setup.batch_execute("CHECKPOINT").await.unwrap();
    let before = written(&setup, "floor").await;
    let begun = Instant::now();
    let lanes = jobs.chunks(JOBS / LANES).map(|jobs| {
        let jobs = jobs.to_vec();
        let port = server.address();
        tokio::spawn(async move { floor_lane(&port, jobs).await })
    });
    for lane in lanes.collect::<Vec<_>>() {
        lane.await.unwrap();
    }
    let seconds = begun.elapsed().as_secs_f64();
    let after = written(&setup, "floor").await;
    report("floor", seconds, &before, &after)
}

async fn floor_lane(address: &str, jobs: Vec<Arc<Job>>) {
    let (client, connection) = tokio_postgres::connect(address, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    let plans = "SET search_path TO floor; SET enable_seqscan = off; SET enable_hashjoin = off;
                 SET enable_mergejoin = off; SET plan_cache_mode = force_generic_plan; SET jit = off";
    client.batch_execute(plans).await.unwrap();
    let fire = "WITH moved AS (UPDATE jobs j SET due_at = n.next FROM unnest($1::uuid[], $2::bigint[], $3::uuid[]) n(id, next, run)
                               WHERE j.id = n.id RETURNING n.run, j.id, j.due_at)
                INSERT INTO live SELECT run, id, due_at, 1, 1, 0 FROM moved";
    let settle = "WITH gone AS (DELETE FROM live l USING unnest($1::uuid[], $2::bigint[], $3::bytea[]) n(id, at, output)
                                WHERE l.id = n.id AND l.claim = 1 AND l.attempt = 1 RETURNING l.*, n.at, n.output)
                  INSERT INTO history SELECT id, job, due_at, attempt, 3, at, at, output FROM gone";
    let fire = client.prepare(fire).await.unwrap();
    let settle = client.prepare(settle).await.unwrap();
    for round in 1..=ROUNDS as i64 {
        for batch in jobs.chunks(BATCH) {
            let slot = |job: &Arc<Job>| RunId::for_slot(job.id, model::Slot(at(round * 60))).0;
            let ids: Vec<uuid::Uuid> = batch.iter().map(|job| job.id.0).collect();
            let next = vec![at(round * 60).as_millis(); batch.len()];
            let runs: Vec<uuid::Uuid> = batch.iter().map(slot).collect();
            let outputs = vec![b"so it is".as_slice(); batch.len()];
            let moved = client.execute(&fire, &[&ids, &next, &runs]).await.unwrap();
            let gone = client
                .execute(&settle, &[&runs, &next, &outputs])
                .await
                .unwrap();
            assert_eq!((moved, gone), (batch.len() as u64, batch.len() as u64));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "prints figures: ask for it by name"]
async fn how_fast_runs_go_through() {
    let server = PgServer::private(Mode::Durable).unwrap();
    let floor = floor(&server).await;
    for overlap in [Overlap::Allow, Overlap::Skip] {
        let ours = ours(&server, overlap).await;
        println!("{overlap:?}: {:.2} of the floor", ours / floor);
    }
}
