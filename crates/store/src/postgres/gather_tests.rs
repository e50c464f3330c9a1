//! Creates of many clients that share writes: each is answered as if it had come alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{Job, JobId, JobKey, TenantId};

use super::store;
use crate::conformance::{at, job_with};
use crate::postgres::server::PgServer;
use crate::{Created, NewJob, Store};

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
    let mut asked = Vec::new();
    for number in 0..200 {
        // Every fourth wants the same key, and every job is asked for twice.
        let new = new(number / 2, (number % 8 < 2).then_some("wanted"));
        let store = Arc::clone(&store);
        asked.push(tokio::spawn(async move {
            let id = new.job.id;
            (id, store.create_jobs(&[new]).await.unwrap().remove(0))
        }));
    }
    let (mut done, mut holders) = (BTreeSet::new(), BTreeSet::new());
    for asked in asked {
        let (id, created) = asked.await.unwrap();
        match created {
            Created::Done => assert!(done.insert(id), "{id} was made twice"),
            Created::Repeated(made) => assert_eq!(made, id),
            Created::KeyTaken(holder) => {
                assert_ne!(holder, id);
                holders.insert(holder);
            }
            other @ (Created::Mismatch | Created::CalendarMissing(_)) => panic!("{other:?}"),
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_for_a_writer_that_is_cut_off_is_served_all_the_same() {
    let server = PgServer::shared().unwrap();
    let store = Arc::new(store(&server.fresh_schema()).await);
    for turn in 0..20 {
        let mut asked = Vec::new();
        for number in 0..32 {
            let (store, new) = (Arc::clone(&store), new(turn * 100 + number, None));
            asked.push(tokio::spawn(async move {
                let id = new.job.id;
                store.create_jobs(&[new]).await.unwrap();
                id
            }));
        }
        tokio::task::yield_now().await;
        let cut = asked.iter().step_by(2);
        cut.for_each(|asked| asked.abort());
        for asked in asked.into_iter().skip(1).step_by(2) {
            let id = asked.await.unwrap();
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
