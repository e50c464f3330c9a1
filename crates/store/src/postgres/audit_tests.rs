//! The audit log beside writers: whoever has entered a change and not committed it holds up nobody else.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{client, store};
use crate::conformance::job;
use crate::postgres::server::PgServer;
use crate::postgres::*;

/// An entry about one subject waits, in its transaction, for whoever has the lock.
fn holding(schema: &str, subject: JobId) -> String {
    format!(
        "SET search_path TO {schema};
         CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             PERFORM pg_advisory_xact_lock_shared(hashtext('{schema}')); RETURN NULL;
         END $$;
         CREATE TRIGGER wait AFTER INSERT ON audit FOR EACH ROW WHEN (NEW.subject = '{subject}')
         EXECUTE FUNCTION {schema}.wait();
         SELECT pg_advisory_lock(hashtext('{schema}'))"
    )
}

fn named(number: u8) -> NewJob {
    NewJob {
        job: Arc::new(job(number).unwrap()),
        idempotency: None,
    }
}

#[tokio::test]
async fn a_change_that_is_entered_and_not_committed_holds_up_no_other_of_its_tenant() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let schema = PgConfig::parse(&address).unwrap().schema().to_owned();
    let first = store(&address).await;
    let new = named(1);
    let holder = client(&server).await;
    let sql = holding(&schema, new.job.id);
    holder.batch_execute(&sql).await.unwrap();
    let waits = tokio::spawn(async move { first.create_jobs(&[new]).await });
    let waiting = format!(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
         AND objid = hashtext('{schema}')::bigint & 4294967295"
    );
    let entered = async {
        while holder
            .query_one(&waiting, &[])
            .await
            .unwrap()
            .get::<_, i64>(0)
            == 0
        {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(4), entered).await.unwrap();
    // What a tenant has is counted by backends: one of several others counts in another row than the first.
    let mut others = JoinSet::new();
    for number in 2..5 {
        let other = store(&address).await;
        others.spawn(async move { other.create_jobs(&[named(number)]).await });
    }
    let committed = timeout(Duration::from_secs(3), others.join_next()).await;
    let committed = committed.expect("none waits for the first").unwrap();
    assert_eq!(committed.unwrap().unwrap(), [Created::Done]);
    assert!(
        !waits.is_finished(),
        "its transaction is open all the while"
    );
    let entries = "SELECT count(*) FROM audit WHERE action = 'job.create'";
    let seen: i64 = holder.query_one(entries, &[]).await.unwrap().get(0);
    assert!(
        (1..=3).contains(&seen),
        "what others entered is committed: {seen}"
    );
    let free = format!("SELECT pg_advisory_unlock(hashtext('{schema}'))");
    holder.batch_execute(&free).await.unwrap();
    assert_eq!(waits.await.unwrap().unwrap(), [Created::Done]);
}
