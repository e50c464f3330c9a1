//! What a claim answers while others change what it is about.

use std::sync::Arc;
use std::time::Duration;

use super::super::server::{Mode, PgServer};
use super::super::*;
use super::{client, leader, put, read};
use crate::conformance::{firing, job, node};
use crate::{Claimed, Fired, Firing, StoreError};

/// A store of its own, and someone else who has its tables open.
struct Shared {
    server: PgServer,
    store: Arc<PgStore>,
    leases: Leases,
    other: tokio_postgres::Client,
}

impl Shared {
    async fn new() -> Self {
        let server = PgServer::private(Mode::Fast).unwrap();
        let address = server.fresh_schema();
        let store = Arc::new(super::store(&address).await);
        let other = client(&server).await;
        let schema = PgConfig::parse(&address).unwrap();
        let path = format!("SET search_path TO {}", schema.schema());
        other.batch_execute(&path).await.unwrap();
        Self {
            leases: leader(&store).await,
            server,
            store,
            other,
        }
    }

    /// A run that nobody holds.
    async fn ready(&self, job: &Arc<Job>) -> RunId {
        let firing = Firing {
            claim: false,
            ..firing(job, job.next_due_at().unwrap())
        };
        let fired = self.store.fire(&self.leases, &[firing]).await.unwrap();
        let [Fired::Ready(run)] = fired[..] else {
            panic!("{fired:?}")
        };
        run
    }

    fn claim(&self, runs: Vec<RunId>) -> tokio::task::JoinHandle<Result<Vec<Claimed>, StoreError>> {
        let (store, leases) = (self.store.clone(), self.leases.clone());
        tokio::spawn(async move { store.claim(&leases, &runs).await })
    }

    /// Until someone waits for a lock.
    async fn until_one_waits(&self) {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
        while self.server.query(waiting).unwrap() == "0" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_waited_for_a_change_answers_all_of_it() {
    let shared = Shared::new().await;
    let job = put(&shared.store, job(1).unwrap()).await;
    let run = shared.ready(&job).await;

    // A change, up to its commit.
    let change = "BEGIN; UPDATE jobs SET version = 2; UPDATE defs SET payload = 'other'";
    shared.other.batch_execute(change).await.unwrap();
    let claim = shared.claim(vec![run]);
    shared.until_one_waits().await;
    shared.other.batch_execute("COMMIT").await.unwrap();

    let claimed = claim.await.unwrap().unwrap();
    let [Claimed::Ours(_, answered)] = &claimed[..] else {
        panic!("{claimed:?}")
    };
    assert_eq!(answered.version, Version(2));
    assert_eq!(*answered, read(&shared.store, job.id).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_inserted_during_a_claim_loses_no_lease() {
    let shared = Shared::new().await;
    let first = put(&shared.store, job(1).unwrap()).await;
    let second = put(&shared.store, job(2).unwrap()).await;
    assert_ne!(first.shard(), second.shard());
    let run = shared.ready(&first).await;
    let later = RunId::for_slot(second.id, second.next_slot.unwrap());

    let change = format!(
        "BEGIN; UPDATE jobs SET state_at = 0 WHERE id = '{}'",
        first.id.0
    );
    shared.other.batch_execute(&change).await.unwrap();
    let claim = shared.claim(vec![run, later]);
    shared.until_one_waits().await;
    assert_eq!(shared.ready(&second).await, later);
    shared.other.batch_execute("ROLLBACK").await.unwrap();

    let claimed = claim.await.unwrap().unwrap();
    assert!(matches!(claimed[0], Claimed::Ours(..)), "{claimed:?}");
    assert_ne!(claimed[1], Claimed::LeaseLost);
}

/// Each node of a fleet has some of the shards, and searches these alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_presence_that_left_nothing_in_some_shards_is_not_searched_for_there_again() {
    let shared = Shared::new().await;
    let job = put(&shared.store, job(1).unwrap()).await;
    let theirs: ShardSet = [job.shard()].into_iter().collect();
    let ours: ShardSet = model::Shard::all()
        .filter(|it| *it != job.shard())
        .collect();
    let firing = firing(&job, job.next_due_at().unwrap());
    let fired = shared.store.fire(&shared.leases, &[firing]).await.unwrap();
    assert!(matches!(fired[..], [Fired::Claimed(..)]), "{fired:?}");
    shared.store.join(&node("second")).await.unwrap();
    shared.store.leave(shared.leases.presence).await.unwrap();

    assert_eq!(shared.store.orphans(&ours, 9).await.unwrap(), []);
    let clear = PgStore::known(&shared.store.clear).clone();
    let [(no, shards)] = clear.into_iter().collect::<Vec<_>>()[..] else {
        panic!("nothing is known")
    };
    assert_eq!(shards, ours);
    // A claim that nobody can make any more would show that it was searched for.
    let forged = format!(
        "UPDATE live SET claim = {no}, shard = {}",
        ours.iter().next().unwrap().0
    );
    shared.other.batch_execute(&forged).await.unwrap();
    assert_eq!(shared.store.orphans(&ours, 9).await.unwrap(), []);
    let back = format!("UPDATE live SET shard = {}", job.shard().0);
    shared.other.batch_execute(&back).await.unwrap();
    // Whoever gets the other shards finds what it left in these.
    assert_eq!(shared.store.orphans(&theirs, 9).await.unwrap().len(), 1);
    assert_eq!(
        shared.store.orphans(&ShardSet::ALL, 9).await.unwrap().len(),
        1
    );
}
