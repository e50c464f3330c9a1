//! What happens when things go wrong: connections that are lost, servers that fall, rows that are refused.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model::shard::ShardSet;
use model::{Overlap, Verdict};

use super::{client, leader, on_time, put, read, store};
use crate::conformance::{DONE, at, job, job_with, settlement};
use crate::postgres::server::{Mode, PgServer, Stop};
use crate::postgres::*;

const ALL: Page<RunId> = Page {
    before: None,
    limit: 100_000,
};

/// Calls of every kind, over and over, until stopped. What goes wrong is transient, or it is a failure.
async fn keep_busy(
    store: Arc<PgStore>,
    leases: Leases,
    ids: Vec<JobId>,
    stop: Arc<AtomicBool>,
) -> (u32, u32) {
    let (mut done, mut failed) = (0, 0);
    let mut count = |result: Result<(), StoreError>| match result {
        Ok(()) => done += 1,
        Err(error) if error.is_transient() => failed += 1,
        Err(error) => panic!("{error:?}"),
    };
    while !stop.load(Ordering::Relaxed) {
        for id in &ids {
            let found = store.get_job(TenantId::DEFAULT, *id).await;
            let firing = match found {
                Ok(job) => job.and_then(|job| on_time(&Arc::new(job))),
                Err(error) => {
                    count(Err(error));
                    continue;
                }
            };
            let Some(firing) = firing else { continue };
            count(store.fire(&leases, &[firing]).await.map(|_| ()));
        }
        count(
            store
                .beat(leases.presence, &NodeStatus::default())
                .await
                .map(|_| ()),
        );
        let held = store.claims(leases.presence, None, 1_000).await;
        let Ok(held) = held else {
            count(held.map(|_| ()));
            continue;
        };
        let mut settlements = Vec::new();
        for claim in held {
            if let Ok(Some(run)) = store.get_run(TenantId::DEFAULT, claim.run).await {
                settlements.push(settlement(&run, Verdict::Succeed));
            }
        }
        let settled = store.settle(leases.presence, &settlements).await;
        count(settled.map(|_| ()));
    }
    (done, failed)
}

/// One entry for each slot that a job has passed, and none twice.
async fn check_slots(store: &PgStore, ids: &[JobId]) {
    for id in ids {
        let job = read(store, *id).await;
        let filter = RunFilter {
            job: Some(*id),
            states: Vec::new(),
            ..RunFilter::default()
        };
        let runs = store
            .list_runs(TenantId::DEFAULT, &filter, ALL)
            .await
            .unwrap();
        let slots: BTreeSet<_> = runs.iter().map(|run| run.slot).collect();
        assert_eq!(slots.len(), runs.len());
        let last = job.slot_last.unwrap_or(at(0));
        let passed = last.since(at(0)).as_secs() / 60;
        assert_eq!(runs.len() as u64, passed, "every slot up to {last:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_killed_costs_a_call_and_nothing_else() {
    let server = PgServer::private(Mode::Fast).unwrap();
    let store = Arc::new(store(&server.fresh_schema()).await);
    let leases = leader(&store).await;
    let mut ids = Vec::new();
    for number in 1..=4 {
        ids.push(
            put(
                &store,
                job_with(number, |def| {
                    if number % 2 == 0 {
                        def.overlap = Overlap::QueueOne;
                    }
                })
                .unwrap(),
            )
            .await
            .id,
        );
    }
    let stop = Arc::new(AtomicBool::new(false));
    let busy = tokio::spawn(keep_busy(store.clone(), leases, ids.clone(), stop.clone()));
    let killer = client(&server).await;
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                WHERE application_name = 'punctual'";
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        killer.batch_execute(kill).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    stop.store(true, Ordering::Relaxed);
    let (done, failed) = busy.await.unwrap();
    assert!(done > 20 && failed > 0, "{done} done, {failed} failed");
    check_slots(&store, &ids).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_falls_and_comes_back_has_lost_nothing() {
    let server = PgServer::private(Mode::Durable).unwrap();
    let store = Arc::new(store(&server.fresh_schema()).await);
    let leases = leader(&store).await;
    let mut ids = Vec::new();
    for number in 1..=3 {
        ids.push(put(&store, job(number).unwrap()).await.id);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let busy = tokio::spawn(keep_busy(store.clone(), leases, ids.clone(), stop.clone()));
    for how in [Stop::Immediate, Stop::Fast] {
        tokio::time::sleep(Duration::from_millis(300)).await;
        server.stop(how).unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        server.start().unwrap();
    }
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    stop.store(true, Ordering::Relaxed);
    let (done, failed) = busy.await.unwrap();
    assert!(done > 20 && failed > 0, "{done} done, {failed} failed");
    check_slots(&store, &ids).await;
}

/// A row that PostgreSQL refuses stands alone in the end.
#[tokio::test]
async fn one_bad_row_spoils_no_batch() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let store = store(&address).await;
    let leases = leader(&store).await;
    let mut jobs = Vec::new();
    for number in 1..=7 {
        jobs.push(put(&store, job(number).unwrap()).await);
    }
    let schema = PgConfig::parse(&address).unwrap().schema().to_owned();
    let client = client(&server).await;
    let trap = format!(
        "SET search_path TO {schema};
         CREATE FUNCTION trap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF NEW.job = '{}' THEN RAISE numeric_value_out_of_range; END IF; RETURN NEW; END $$;
         CREATE TRIGGER trap BEFORE INSERT ON live FOR EACH ROW EXECUTE FUNCTION trap();",
        jobs[4].id.0
    );
    client.batch_execute(&trap).await.unwrap();
    let firings: Vec<_> = jobs.iter().filter_map(on_time).collect();
    let fired = store.fire(&leases, &firings).await.unwrap();
    for (number, fired) in fired.iter().enumerate() {
        assert_eq!(matches!(fired, Fired::Refused(_)), number == 4, "{fired:?}");
        assert_eq!(matches!(fired, Fired::Claimed(_)), number != 4, "{fired:?}");
    }
    let stands = read(&store, jobs[4].id).await;
    assert_eq!(stands, jobs[4], "nothing of it was written");
}

#[tokio::test]
async fn a_row_that_cannot_be_read_hides_no_other() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let store = store(&address).await;
    let leases = leader(&store).await;
    let mut firings = Vec::new();
    for number in 1..=3 {
        let job = put(&store, job(number).unwrap()).await;
        firings.extend(on_time(&job));
    }
    store.fire(&leases, &firings).await.unwrap();
    let jobs: Vec<_> = firings
        .iter()
        .map(|it| (it.job.tenant, it.job.id))
        .collect();
    let runs: Vec<_> = firings
        .iter()
        .map(|it| (it.job.tenant, it.name().unwrap()))
        .collect();
    let schema = PgConfig::parse(&address).unwrap().schema().to_owned();
    let spoil = format!(
        "UPDATE {schema}.defs SET doc = '' WHERE id = '{}';
         UPDATE {schema}.live SET attempts = '' WHERE id = '{}'",
        jobs[1].1.0, runs[1].1.0
    );
    client(&server).await.batch_execute(&spoil).await.unwrap();
    let read = store.get_jobs(&jobs).await.unwrap();
    assert!(
        matches!(&read[..], [Ok(Some(_)), Err(_), Ok(Some(_))]),
        "{read:?}"
    );
    let read = store.get_runs(&runs).await.unwrap();
    assert!(
        matches!(&read[..], [Ok(Some(_)), Err(_), Ok(Some(_))]),
        "{read:?}"
    );
}

#[tokio::test]
async fn a_partition_that_another_node_has_dropped_is_made_again() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let (first, second) = (store(&address).await, store(&address).await);
    let leases = leader(&first).await;
    let job = put(&first, job(1).unwrap()).await;
    for _ in 0..3 {
        let firing = on_time(&read(&first, job.id).await).unwrap();
        let fired = first.fire(&leases, &[firing]).await.unwrap();
        let [Fired::Claimed(id)] = fired.as_slice() else {
            panic!("{fired:?}")
        };
        let run = first
            .get_run(TenantId::DEFAULT, *id)
            .await
            .unwrap()
            .unwrap();
        let end = [settlement(&run, Verdict::Succeed)];
        assert_eq!(first.settle(leases.presence, &end).await.unwrap(), [DONE]);
        let keep = Keep {
            now: at(400 * 86_400),
            history: Duration::from_secs(86_400),
            finished: Duration::from_secs(1_000 * 86_400),
        };
        assert_eq!(second.retain(&keep).await.unwrap().partitions, 1);
        assert_eq!(first.get_run(TenantId::DEFAULT, *id).await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_run_whose_job_is_gone_spoils_no_claims() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let store = store(&address).await;
    let leases = leader(&store).await;
    let mut firings = Vec::new();
    for number in 1..=3 {
        let job = put(&store, job(number).unwrap()).await;
        firings.push(Firing {
            claim: false,
            ..on_time(&job).unwrap()
        });
    }
    store.fire(&leases, &firings).await.unwrap();
    let schema = PgConfig::parse(&address).unwrap().schema().to_owned();
    let client = client(&server).await;
    let gone = format!("DELETE FROM {schema}.jobs WHERE id = $1");
    let lost = firings[1].job.id;
    client.execute(&gone, &[&lost.0]).await.unwrap();
    let due = store
        .due_runs(&ShardSet::ALL, Timestamp::MAX, None, 9)
        .await;
    let names: Vec<RunId> = due.unwrap().iter().map(|due| due.run).collect();
    assert_eq!(names.len(), 3);
    let claimed = store.claim(&leases, &names).await.unwrap();
    let ours = claimed.iter().filter(|it| matches!(it, Claimed::Ours(..)));
    assert_eq!(ours.count(), 2, "{claimed:?}");
    assert_eq!(store.count_live().await.unwrap(), 2, "it is buried");
}
