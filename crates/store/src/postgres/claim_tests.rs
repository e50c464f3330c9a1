//! What a claim says of a job that is being changed.

use std::sync::Arc;
use std::time::Duration;

use super::super::server::{Mode, PgServer};
use super::super::*;
use super::{client, leader, put, read};
use crate::conformance::{firing, job};
use crate::{Claimed, Fired, Firing};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "claim answers the version after a change with the definition before it"]
async fn a_claim_that_waited_for_a_change_answers_all_of_it() {
    let server = PgServer::private(Mode::Fast).unwrap();
    let store = Arc::new(super::store(&server.fresh_schema()).await);
    let leases = leader(&store).await;
    let job = put(&store, job(1).unwrap()).await;
    let firing = Firing {
        claim: false,
        ..firing(&job, job.next_due_at().unwrap())
    };
    let fired = store.fire(&leases, &[firing]).await.unwrap();
    let [Fired::Ready(run)] = fired[..] else {
        panic!("{fired:?}")
    };

    // A change, up to its commit.
    let schema = server.ask("SELECT nspname FROM pg_namespace WHERE nspname LIKE 't%\\_0'");
    let schema = schema.unwrap();
    let other = client(&server).await;
    let change = format!(
        "BEGIN; UPDATE {schema}.jobs SET version = 2; UPDATE {schema}.defs SET payload = 'other'"
    );
    other.batch_execute(&change).await.unwrap();
    let claim = tokio::spawn({
        let store = store.clone();
        async move { store.claim(&leases, &[run]).await }
    });
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    while server.ask(waiting).unwrap() == "0" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    other.batch_execute("COMMIT").await.unwrap();

    let claimed = claim.await.unwrap().unwrap();
    let [Claimed::Ours(_, answered)] = &claimed[..] else {
        panic!("{claimed:?}")
    };
    assert_eq!(answered.version, Version(2));
    assert_eq!(*answered, read(&store, job.id).await);
}
