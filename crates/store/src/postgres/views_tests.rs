//! What decisions see of the database, and what their effects leave in it.

use std::time::Duration;

use model::view::{PAST_MAX, Past};
use model::{Attempt, Definition, Overlap, Reason, RunKind, Verdict};
use tokio_postgres::Client;

use super::{client, leader, on_time, put, read, store};
use crate::RunsOfChange;
use crate::conformance::{DONE, at, freed, job, job_with, settlement, someone};
use crate::postgres::fire::is_plain;
use crate::postgres::server::PgServer;
use crate::postgres::views::{Lock, Views};
use crate::postgres::*;
use crate::row::Payloads;

/// A connection that finds our tables.
async fn inside(server: &PgServer, address: &str) -> Client {
    let client = client(server).await;
    let schema = PgConfig::parse(address).unwrap().schema().to_owned();
    let path = format!("SET search_path TO {schema}");
    client.batch_execute(&path).await.unwrap();
    client
}

async fn fire(store: &PgStore, leases: &Leases, job: JobId) -> Fired {
    let firing = on_time(&read(store, job).await).unwrap();
    let mut fired = store.fire(leases, &[firing]).await.unwrap();
    fired.remove(0)
}

async fn claimed(store: &PgStore, leases: &Leases, job: JobId) -> Run {
    let fired = fire(store, leases, job).await;
    let Fired::Claimed(id) = fired else {
        panic!("{fired:?}")
    };
    let run = store.get_run(TenantId::DEFAULT, id).await.unwrap();
    run.unwrap()
}

/// Fires the job's next slot, and ends its run; moments in seconds.
async fn ran(store: &PgStore, leases: &Leases, job: JobId, from: i64, to: i64) -> RunId {
    let run = claimed(store, leases, job).await;
    let mut end = settlement(&run, Verdict::Succeed);
    end.attempt = end.attempt.map(|attempt| Attempt {
        dispatched_at: Some(at(from)),
        settled_at: at(to),
        ..attempt
    });
    assert_eq!(store.settle(leases.presence, &[end]).await.unwrap(), [DONE]);
    run.id
}

async fn edit(store: &PgStore, id: JobId, secs: i64, overlap: Overlap) {
    let before = read(store, id).await;
    let mut def = Definition::clone(&before.def);
    def.overlap = overlap;
    let (after, skipped) = before.edited(None, def, at(secs), &someone());
    let change = JobChange {
        before,
        after: Arc::new(after),
        skipped,
        runs: RunsOfChange::TakeBack,
    };
    let changed = store.change_job(&change).await.unwrap();
    assert!(matches!(changed, JobChanged::Done { .. }), "{changed:?}");
}

async fn exclusive(client: &Client) -> Vec<bool> {
    let sql = "SELECT exclusive FROM live ORDER BY id";
    let rows = client.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn runs_that_were_under_way_at_a_moment_are_found_newest_first() {
    let server = PgServer::shared().unwrap();
    let store = store(&server.fresh_schema()).await;
    let leases = leader(&store).await;
    let allow = |number| job_with(number, |def| def.overlap = Overlap::Allow).unwrap();
    let (first, second) = (allow(1), allow(2));
    let (first, second) = (put(&store, first).await.id, put(&store, second).await.id);
    let mut long = Vec::new();
    for minute in 1..=6 {
        long.push(ran(&store, &leases, first, minute * 60, 1_000).await);
    }
    // Ended by then, ended at that very moment, dispatched at it, due later.
    ran(&store, &leases, first, 420, 430).await;
    ran(&store, &leases, first, 480, 600).await;
    ran(&store, &leases, first, 600, 700).await;
    ran(&store, &leases, first, 599, 700).await;
    ran(&store, &leases, first, 599, 700).await;
    let other = ran(&store, &leases, second, 61, 601).await;
    let conn = store.pool.begin().await.unwrap();
    let mut views = Views::default();
    let moments = [(first, at(600)), (second, at(600))];
    views.read_past(&conn, &moments).await.unwrap();
    let past = |id, from, to| Past {
        id,
        kind: RunKind::Slot,
        dispatched_at: at(from),
        settled_at: at(to),
    };
    let expected: Vec<Past> = (2..=6)
        .rev()
        .map(|minute: i64| {
            past(
                long[usize::try_from(minute - 1).unwrap()],
                minute * 60,
                1_000,
            )
        })
        .collect();
    assert!(
        expected.len() < PAST_MAX,
        "the newest, less those that were over"
    );
    assert_eq!(views.view(first).history.past, expected);
    assert_eq!(views.view(second).history.past, [past(other, 61, 601)]);
}

#[tokio::test]
async fn a_skip_record_was_never_under_way() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let store = store(&address).await;
    let leases = leader(&store).await;
    let skip = job_with(1, |def| def.overlap = Overlap::Skip).unwrap();
    let job = put(&store, skip).await.id;
    let run = claimed(&store, &leases, job).await;
    let marks = [(run.id, at(60))];
    store.mark_running(leases.presence, &marks).await.unwrap();
    let fired = fire(&store, &leases, job).await;
    assert_eq!(fired, Fired::Skipped(Reason::Overlap));
    // As if it had been dispatched: that it was skipped is what counts.
    let sql = "UPDATE history SET dispatched_at = $1, settled_at = $2";
    let client = inside(&server, &address).await;
    let moments = (at(120).as_millis(), at(900).as_millis());
    let updated = client.execute(sql, &[&moments.0, &moments.1]).await;
    assert_eq!(updated.unwrap(), 1);
    let conn = store.pool.begin().await.unwrap();
    let mut views = Views::default();
    views.read_past(&conn, &[(job, at(300))]).await.unwrap();
    assert_eq!(views.view(job).history.past, []);
}

#[tokio::test]
async fn the_ends_of_living_runs_mean_what_the_job_as_edited_makes_of_them() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let store = store(&address).await;
    let leases = leader(&store).await;
    let client = inside(&server, &address).await;
    let allow = job_with(1, |def| def.overlap = Overlap::Allow).unwrap();
    let job = put(&store, allow).await.id;
    let first = claimed(&store, &leases, job).await;
    assert_eq!(exclusive(&client).await, [false]);
    edit(&store, job, 61, Overlap::QueueOne).await;
    assert_eq!(exclusive(&client).await, [true]);
    edit(&store, job, 62, Overlap::Allow).await;
    assert_eq!(exclusive(&client).await, [false], "nothing waits");
    edit(&store, job, 63, Overlap::QueueOne).await;
    let fired = fire(&store, &leases, job).await;
    let Fired::Waiting(second) = fired else {
        panic!("{fired:?}")
    };
    edit(&store, job, 121, Overlap::Skip).await;
    assert_eq!(exclusive(&client).await, [true, true], "one waits");
    let ends = [settlement(&first, Verdict::Succeed)];
    let settled = store.settle(leases.presence, &ends).await.unwrap();
    assert_eq!(settled, [freed(second)]);
}

#[tokio::test]
async fn an_edited_job_is_fired_by_one_statement_again_a_lead_later() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let store = store(&address).await;
    let leases = leader(&store).await;
    let client = inside(&server, &address).await;
    let job = put(&store, job(1).unwrap()).await.id;
    edit(&store, job, 58, Overlap::Skip).await;
    let near = on_time(&read(&store, job).await).unwrap();
    assert!(!is_plain(&near), "its slot may have had a run before");
    let run = claimed(&store, &leases, job).await;
    let end = settlement(&run, Verdict::Succeed);
    assert_eq!(store.settle(leases.presence, &[end]).await.unwrap(), [DONE]);
    let far = on_time(&read(&store, job).await).unwrap();
    assert!(is_plain(&far));
    let run = claimed(&store, &leases, job).await;
    assert_eq!(run.version, Version(2));
    assert_eq!(exclusive(&client).await, [false]);
    let again = store.fire(&leases, &[far]).await.unwrap();
    assert_eq!(again, [Fired::Claimed(run.id)]);
}

/// Its row is the new one when the lock is there, but was joined with nobody's name.
#[tokio::test]
async fn a_run_that_is_claimed_while_its_lock_is_waited_for_is_marked_and_not_ended() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let store = store(&address).await;
    let leases = leader(&store).await;
    // A day of history that is not there yet would have the call done again.
    let other = put(&store, job(2).unwrap()).await.id;
    ran(&store, &leases, other, 60, 61).await;
    let mut firing = on_time(&put(&store, job(1).unwrap()).await).unwrap();
    firing.claim = false;
    let fired = store.fire(&leases, &[firing]).await.unwrap();
    let [Fired::Ready(id)] = fired.as_slice() else {
        panic!("{fired:?}")
    };
    let claimer = inside(&server, &address).await;
    let claim = "BEGIN; UPDATE live SET claim = (SELECT no FROM presences)";
    claimer.batch_execute(claim).await.unwrap();
    let commit = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        claimer.batch_execute("COMMIT").await.unwrap();
    };
    let cancel = store.cancel_run(TenantId::DEFAULT, *id, at(30));
    let (cancelled, ()) = tokio::join!(cancel, commit);
    assert_eq!(cancelled.unwrap(), Cancelled::Marked);
}

#[tokio::test]
async fn a_job_that_was_created_since_the_locks_were_taken_is_not_there() {
    let server = PgServer::shared().unwrap();
    let store = store(&server.fresh_schema()).await;
    let new = job(1).unwrap();
    let (id, ids) = (new.id, [new.id.0]);
    let conn = store.clients.begin().await.unwrap();
    let views = Views::load(&conn, &ids, Lock::JobsAndRuns).await;
    let mut views = views.unwrap();
    put(&store, new).await;
    views.read_jobs(&conn, &ids, Payloads::All).await.unwrap();
    assert!(views.job(id).unwrap().is_none());
    let views = Views::load(&conn, &ids, Lock::JobsAndRuns).await;
    let mut views = views.unwrap();
    views.read_jobs(&conn, &ids, Payloads::All).await.unwrap();
    assert!(views.job(id).unwrap().is_some());
}
