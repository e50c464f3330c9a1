//! Creates of many clients that share writes: each is answered as if it had come alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{Job, JobId, JobKey, TenantId, limits};

use super::{client, store};
use crate::conformance::{at, job_with, someone};
use crate::postgres::PgConfig;
use crate::postgres::gather::Gather;
use crate::postgres::server::{Mode, PgServer};
use crate::{ClientStore, Created, JobChange, JobChanged, NewJob, RunsOfChange, StoreError};

fn new(number: u64, key: Option<&str>) -> NewJob {
    let mut chance = [9; 10];
    chance[..8].copy_from_slice(&number.to_be_bytes());
    let job = Job {
        id: JobId::new(at(1), chance),
        key: key.map(|key| JobKey::new(key).unwrap()),
        ..job_with(1, |_| {}).unwrap()
    };
    NewJob {
        job: Arc::new(job),
        idempotency: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn creates_that_share_a_write_are_answered_each_by_itself() {
    let server = PgServer::shared().unwrap();
    let store = Arc::new(store(&server.fresh_schema()).await);
    let mut calls = Vec::new();
    for number in 0..200 {
        // Every fourth wants the same key, and every job is created twice.
        let new = new(number / 2, (number % 8 < 2).then_some("wanted"));
        let store = Arc::clone(&store);
        calls.push(tokio::spawn(async move {
            let id = new.job.id;
            (id, store.create_jobs(&[new]).await.unwrap().remove(0))
        }));
    }
    let (mut done, mut holders) = (BTreeSet::new(), BTreeSet::new());
    for call in calls {
        let (id, created) = call.await.unwrap();
        match created {
            Created::Done => assert!(done.insert(id), "{id} was made twice"),
            Created::Repeated(made) => assert_eq!(made, id),
            Created::KeyTaken(holder) => {
                assert_ne!(holder, id);
                holders.insert(holder);
            }
            other @ (Created::Mismatch
            | Created::CalendarMissing(_)
            | Created::QuotaExceeded(_)
            | Created::Refused(_)) => {
                panic!("{other:?}")
            }
        }
    }
    // 75 jobs without a key, and the one that was first to have it.
    assert_eq!((done.len(), holders.len()), (76, 1));
    for id in done {
        assert!(
            store
                .get_job(TenantId::DEFAULT, id)
                .await
                .unwrap()
                .is_some()
        );
    }
}

/// Someone has put rules of their own into our schema: no payload that fits into no index, and not this job.
async fn rules_of_others(server: &PgServer, address: &str, never: &NewJob) {
    let rules = format!(
        "SET search_path TO {};
         CREATE INDEX of_others ON defs (payload);
         ALTER TABLE jobs ADD CONSTRAINT never CHECK (id <> '{}')",
        PgConfig::parse(address).unwrap().schema(),
        never.job.id.0
    );
    client(server).await.batch_execute(&rules).await.unwrap();
}

/// With a payload that cannot be packed, of so many bytes.
fn heavy(new: &NewJob, bytes: u64) -> NewJob {
    let byte = |n: u64| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) % 251) as u8;
    let mut job = Job::clone(&new.job);
    let mut def = model::Definition::clone(&job.def);
    def.payload = Some((0..bytes).map(|n| byte(n * n + n)).collect());
    job.def = Arc::new(def);
    NewJob {
        job: Arc::new(job),
        idempotency: None,
    }
}

fn refused(created: &Created, what: &str) -> bool {
    matches!(created, Created::Refused(why) if why.contains(what))
}

#[tokio::test]
async fn one_bad_job_spoils_no_batch() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let store = store(&address).await;
    // Those that one statement writes, and those that are looked at.
    for (from, keyed) in [(0, false), (100, true)] {
        let name = |n| keyed.then(|| format!("k{n}"));
        let mut batch: Vec<NewJob> = (from..from + 11)
            .map(|n| new(n, name(n).as_deref()))
            .collect();
        batch[3] = heavy(&batch[3], 9_000);
        if from == 0 {
            rules_of_others(&server, &address, &batch[8]).await;
        } else {
            // Its key is free for the next, and its answer does not depend on the others'.
            batch[4] = new(from + 50, name(from + 3).as_deref());
        }
        let created = store.create_jobs(&batch).await.unwrap();
        assert!(refused(&created[3], "index row"), "{:?}", created[3]);
        for (index, (new, created)) in batch.iter().zip(&created).enumerate() {
            let bad = index == 3 || (index == 8 && from == 0);
            let there = store.get_job(TenantId::DEFAULT, new.job.id).await.unwrap();
            assert_eq!(there.is_some(), !bad, "{index}: {created:?}");
            if bad {
                assert!(refused(created, ""), "{index}: {created:?}")
            } else {
                assert_eq!(*created, Created::Done, "{index}")
            }
        }
        let again = store.create_jobs(&batch).await.unwrap();
        if keyed {
            assert_eq!(again[3], Created::KeyTaken(batch[4].job.id))
        } else {
            assert!(refused(&again[3], "index row"), "{:?}", again[3])
        }
        assert_eq!(again[10], Created::Repeated(batch[10].job.id));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_shares_a_write_with_a_bad_job_is_served() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let store = Arc::new(store(&address).await);
    rules_of_others(&server, &address, &new(7, None)).await;
    let mut calls = Vec::new();
    for number in 0..100 {
        let key = format!("k{number}");
        let job = new(number, (number % 3 == 0).then_some(&key));
        let bad = number % 10 == 7;
        let job = if bad { heavy(&job, 9_000) } else { job };
        let store = Arc::clone(&store);
        let call = async move { (bad, store.create_jobs(&[job]).await.unwrap().remove(0)) };
        calls.push(tokio::spawn(call));
    }
    for call in calls {
        match call.await.unwrap() {
            (true, created) => assert!(refused(&created, ""), "{created:?}"),
            (false, created) => assert_eq!(created, Created::Done),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_for_a_writer_that_is_cut_off_is_served_all_the_same() {
    let server = PgServer::shared().unwrap();
    let store = Arc::new(store(&server.fresh_schema()).await);
    for turn in 0..20 {
        let mut calls = Vec::new();
        for number in 0..32 {
            let (store, new) = (Arc::clone(&store), new(turn * 100 + number, None));
            calls.push(tokio::spawn(async move {
                let id = new.job.id;
                store.create_jobs(&[new]).await.unwrap();
                id
            }));
        }
        tokio::task::yield_now().await;
        let cut = calls.iter().step_by(2);
        cut.for_each(|call| call.abort());
        for call in calls.into_iter().skip(1).step_by(2) {
            let id = call.await.unwrap();
            assert!(
                store
                    .get_job(TenantId::DEFAULT, id)
                    .await
                    .unwrap()
                    .is_some()
            );
        }
    }
}

#[tokio::test]
async fn a_change_that_the_database_refuses_is_refused_and_not_tried_for_ever() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let store = store(&address).await;
    let before = new(1, None);
    rules_of_others(&server, &address, &new(7, None)).await;
    let made = store.create_jobs(std::slice::from_ref(&before)).await;
    assert_eq!(made.unwrap(), [Created::Done]);
    let after = heavy(&before, 9_000).job;
    let def = model::Definition::clone(&after.def);
    let (after, skipped) = before.job.edited(None, def, at(2), &someone());
    let change = JobChange {
        before: Arc::clone(&before.job),
        after: Arc::new(after),
        skipped,
        runs: RunsOfChange::TakeBack,
    };
    let changed = store.change_job(&change).await.unwrap();
    let JobChanged::Refused(why) = changed else {
        panic!("{changed:?}")
    };
    assert!(why.contains("index row"), "{why}");
    assert_eq!(super::read(&store, before.job.id).await, before.job);
}

#[test]
fn what_shares_a_write_is_bounded_in_bytes_too() {
    let gather = Gather::default();
    let large = |number: u64, bytes: usize| {
        let new = new(number, None);
        let mut job = Job::clone(&new.job);
        Arc::make_mut(&mut job.def).payload = Some(vec![b'x'; bytes].into());
        NewJob {
            job: Arc::new(job),
            idempotency: None,
        }
    };
    let _answers: Vec<_> = [(1, 3 << 20), (2, 5 << 20), (3, 1), (4, 9 << 20), (5, 1)]
        .map(|(number, bytes)| {
            let jobs = [large(number, bytes)];
            let held = gather.budget.hold_jobs(&jobs).unwrap();
            gather.request(&jobs, held)
        })
        .into_iter()
        .collect();
    let mut taken = Vec::new();
    loop {
        match gather.take().len() {
            0 => break,
            count => taken.push(count),
        }
    }
    assert_eq!(taken, [2, 1, 1, 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn creates_that_would_hold_too_many_bytes_are_refused_while_the_database_is_slow() {
    let server = PgServer::private(Mode::Fast).unwrap();
    let address = server.fresh_schema();
    let store = Arc::new(store(&address).await);
    let other = client(&server).await;
    let schema = PgConfig::parse(&address).unwrap().schema().to_owned();
    let lock = format!("SET search_path TO {schema}; BEGIN; LOCK TABLE defs IN EXCLUSIVE MODE");
    other.batch_execute(&lock).await.unwrap();
    let payload = bytes::Bytes::from(vec![b'x'; limits::PAYLOAD_MAX]);
    let (many, fit) = (
        400_usize,
        limits::WRITES_BYTES_MAX / (limits::PAYLOAD_MAX + limits::WRITE_BYTES_MIN),
    );
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..many {
        let mut job = Job::clone(&new(number as u64, None).job);
        let mut def = model::Definition::clone(&job.def);
        def.payload = Some(payload.clone());
        job.def = Arc::new(def);
        let new = NewJob {
            job: Arc::new(job),
            idempotency: None,
        };
        let store = Arc::clone(&store);
        calls.spawn(async move { store.create_jobs(&[new]).await });
    }
    for _ in 0..many - fit {
        let refused = calls.join_next().await.unwrap().unwrap();
        assert!(
            matches!(refused, Err(StoreError::Overloaded)),
            "{refused:?}"
        );
    }
    other.batch_execute("COMMIT").await.unwrap();
    while let Some(created) = calls.join_next().await {
        assert_eq!(created.unwrap().unwrap(), [Created::Done]);
    }
    // What was written holds nothing any more.
    let again = store.create_jobs(&[new(many as u64, None)]).await;
    assert_eq!(again.unwrap(), [Created::Done]);
}
