use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use model::{JobId, TenantId};

use super::super::SqliteStore;
use super::super::tests::{folder, new, open};
use super::*;
use crate::conformance::{TestClock, job, job_with};
use crate::{ClientStore, Created, EngineStore as _, NodeInfo, NodeStatus};

/// Holds the writer in a call until released, so that what follows becomes one group.
async fn hold(store: &Arc<SqliteStore>) -> mpsc::Sender<()> {
    let (go, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let (begun, began) = oneshot::channel();
    let mut begun = Some(begun);
    let held = store.clone();
    tokio::spawn(async move {
        let work = move |_: &mut Db| {
            begun.take().map(|begun| begun.send(()));
            let _released = wait.lock().unwrap().recv();
            Ok(())
        };
        held.writer.call(By::Client, 1, work).await.unwrap();
    });
    began.await.unwrap();
    go
}

fn create(
    store: &Arc<SqliteStore>,
    number: u8,
) -> tokio::task::JoinHandle<Result<Vec<Created>, StoreError>> {
    let store = store.clone();
    tokio::spawn(async move { store.create_jobs(&[new(job(number).unwrap())]).await })
}

async fn exists(store: &SqliteStore, number: u8) -> bool {
    store
        .get_job(TenantId::DEFAULT, job(number).unwrap().id)
        .await
        .unwrap()
        .is_some()
}

async fn settle_down() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Ends are known by heart before they are written, and a commit can fail.
#[tokio::test]
async fn a_beat_is_refused_only_once_the_end_is_written() {
    let folder = folder();
    let store = Arc::new(open(folder.path()).unwrap());
    let me = store.join(&NodeInfo::default()).await.unwrap();
    let (ended, has_ended) = oneshot::channel();
    let (go, wait) = mpsc::channel::<()>();
    let (mut ended, wait) = (Some(ended), std::sync::Mutex::new(wait));
    let writer = store.clone();
    let failing = tokio::spawn(async move {
        let work = move |db: &mut Db| -> Done<()> {
            db.leave(me)?;
            ended.take().map(|ended| ended.send(()));
            let _released = wait.lock().unwrap().recv();
            Err(StoreError::unavailable("no room").into())
        };
        writer.writer.call(By::Engine, 1, work).await
    });
    has_ended.await.unwrap();
    let beating = store.clone();
    let beat = tokio::spawn(async move { beating.beat(me, &NodeStatus::default()).await });
    settle_down().await;
    go.send(()).unwrap();
    assert!(failing.await.unwrap().is_err());
    assert_eq!(beat.await.unwrap().unwrap().living.len(), 1);
    store.leave(me).await.unwrap();
    let refused = store.beat(me, &NodeStatus::default()).await;
    assert!(matches!(refused, Err(StoreError::Fenced)));
}

#[tokio::test]
async fn calls_that_wait_share_one_commit_and_are_answered_after_it() {
    let folder = folder();
    let store = Arc::new(open(folder.path()).unwrap());
    let commits = Arc::new(AtomicUsize::new(0));
    let counted = commits.clone();
    let count = move |db: &mut Db| {
        let counted = counted.clone();
        db.conn.commit_hook(Some(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            false
        }))?;
        Ok(())
    };
    store.writer.call(By::Client, 1, count).await.unwrap();
    let go = hold(&store).await;
    let calls: Vec<_> = (0..20).map(|number| create(&store, number)).collect();
    settle_down().await;
    let before = commits.load(Ordering::SeqCst);
    go.send(()).unwrap();
    for (number, call) in (0..20).zip(calls) {
        assert_eq!(call.await.unwrap().unwrap(), [Created::Done]);
        assert!(
            exists(&store, number).await,
            "a read after the answer sees it"
        );
    }
    // One of the call that was held, one of all that waited behind it.
    assert_eq!(commits.load(Ordering::SeqCst) - before, 2);
}

#[tokio::test]
async fn a_call_that_fails_takes_back_its_own_writes_and_no_others() {
    let folder = folder();
    let store = Arc::new(open(folder.path()).unwrap());
    let go = hold(&store).await;
    let first = create(&store, 1);
    settle_down().await;
    let bad = store.clone();
    let bad = tokio::spawn(async move {
        let fail = |db: &mut Db| -> Done<()> {
            db.live += 7;
            db.conn.execute("INSERT INTO ranges (day) VALUES (1)", [])?;
            db.conn.execute("INSERT INTO ranges (day) VALUES (1)", [])?;
            Ok(())
        };
        bad.writer.call(By::Client, 1, fail).await
    });
    settle_down().await;
    let last = create(&store, 2);
    settle_down().await;
    go.send(()).unwrap();
    assert!(matches!(
        bad.await.unwrap(),
        Err(StoreError::Unavailable(_))
    ));
    assert_eq!(first.await.unwrap().unwrap(), [Created::Done]);
    assert_eq!(last.await.unwrap().unwrap(), [Created::Done]);
    assert!(exists(&store, 1).await && exists(&store, 2).await);
    assert_eq!(store.count_live().await.unwrap(), 0);
    let days = |db: &mut Db| Ok(db.partitions.days.len());
    assert_eq!(store.writer.call(By::Client, 1, days).await.unwrap(), 0);
}

#[tokio::test]
async fn a_panic_in_one_call_is_that_calls_failure() {
    let folder = folder();
    let store = Arc::new(open(folder.path()).unwrap());
    let boom = |_: &mut Db| -> Done<()> { panic!("on purpose") };
    assert!(matches!(
        store.writer.call(By::Client, 1, boom).await,
        Err(StoreError::Unavailable(_))
    ));
    let go = hold(&store).await;
    let first = create(&store, 1);
    settle_down().await;
    let bad = store.clone();
    let bad = tokio::spawn(async move { bad.writer.call(By::Client, 1, boom).await });
    settle_down().await;
    go.send(()).unwrap();
    assert!(bad.await.unwrap().is_err());
    assert_eq!(first.await.unwrap().unwrap(), [Created::Done]);
    assert!(exists(&store, 1).await);
}

#[tokio::test]
async fn calls_of_a_group_that_was_lost_are_tried_one_by_one() {
    let folder = folder();
    let store = Arc::new(open(folder.path()).unwrap());
    let go = hold(&store).await;
    let first = create(&store, 1);
    settle_down().await;
    let bad = store.clone();
    let bad = tokio::spawn(async move {
        // What SQLite does by itself on some errors.
        let lose = |db: &mut Db| -> Done<()> {
            db.conn.execute_batch("ROLLBACK")?;
            Err(StoreError::Full.into())
        };
        bad.writer.call(By::Client, 1, lose).await
    });
    settle_down().await;
    let last = create(&store, 2);
    settle_down().await;
    go.send(()).unwrap();
    assert!(matches!(bad.await.unwrap(), Err(StoreError::Full)));
    assert_eq!(first.await.unwrap().unwrap(), [Created::Done]);
    assert_eq!(last.await.unwrap().unwrap(), [Created::Done]);
    assert!(exists(&store, 1).await && exists(&store, 2).await);
}

#[tokio::test]
async fn a_full_disk_refuses_what_does_not_fit_and_all_goes_on_when_there_is_room() {
    let folder = folder();
    let store = Arc::new(open(folder.path()).unwrap());
    assert_eq!(create(&store, 1).await.unwrap().unwrap(), [Created::Done]);
    let room = |pages: i64| {
        move |db: &mut Db| {
            let used: i64 = db
                .conn
                .query_row("PRAGMA page_count", [], |row| row.get(0))?;
            db.conn
                .pragma_update_and_check(None, "max_page_count", used + pages, |_| Ok(()))?;
            Ok(())
        }
    };
    store.writer.call(By::Client, 1, room(2)).await.unwrap();
    let large = |number| {
        let payload = bytes::Bytes::from(vec![b'x'; 100_000]);
        new(job_with(number, |def| def.payload = Some(payload)).unwrap())
    };
    // Alone, and in the middle of a group whose other calls fit.
    let alone = store.create_jobs(&[large(2)]).await;
    assert!(matches!(alone, Err(StoreError::Full)), "{alone:?}");
    let go = hold(&store).await;
    let first = create(&store, 3);
    settle_down().await;
    let grouped = store.clone();
    let grouped = tokio::spawn(async move { grouped.create_jobs(&[large(4)]).await });
    settle_down().await;
    let last = create(&store, 5);
    settle_down().await;
    go.send(()).unwrap();
    let grouped = grouped.await.unwrap();
    assert!(matches!(grouped, Err(StoreError::Full)), "{grouped:?}");
    assert_eq!(first.await.unwrap().unwrap(), [Created::Done]);
    assert_eq!(last.await.unwrap().unwrap(), [Created::Done]);
    for (number, there) in [(1, true), (2, false), (3, true), (4, false), (5, true)] {
        assert_eq!(exists(&store, number).await, there, "{number}");
    }
    store.writer.call(By::Client, 1, room(1_000)).await.unwrap();
    assert_eq!(
        store.create_jobs(&[large(2)]).await.unwrap(),
        [Created::Done]
    );
    drop(store);
    let store = open(folder.path()).unwrap();
    let id: JobId = job(2).unwrap().id;
    let read = store.get_job(TenantId::DEFAULT, id).await.unwrap().unwrap();
    assert_eq!(
        read.def.payload.as_ref().map(bytes::Bytes::len),
        Some(100_000)
    );
}

#[tokio::test]
async fn what_was_accepted_is_written_before_the_store_closes() {
    let folder = folder();
    let store = Arc::new(open(folder.path()).unwrap());
    let go = hold(&store).await;
    let call = create(&store, 1);
    settle_down().await;
    go.send(()).unwrap();
    call.await.unwrap().unwrap();
    drop(store);
    let store = open(folder.path()).unwrap();
    assert!(exists(&store, 1).await);
}

#[tokio::test]
async fn the_engine_goes_before_clients_that_came_first_and_waits_for_few_of_them() {
    let folder = folder();
    let clock = TestClock::default();
    let store = SqliteStore::open(folder.path(), Arc::new(clock.clone()));
    let store = Arc::new(store.unwrap());
    let go = hold(&store).await;
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut calls = Vec::new();
    for by in std::iter::repeat_n(By::Client, 100).chain([By::Engine]) {
        let (store, order, clock) = (store.clone(), order.clone(), clock.clone());
        calls.push(tokio::spawn(async move {
            let work = move |_: &mut Db| {
                if by == By::Client {
                    let time = Duration::from_millis(5);
                    #[expect(clippy::disallowed_methods, reason = "work that takes its time")]
                    std::thread::sleep(time);
                    clock.advance(time);
                }
                order.lock().unwrap().push(by);
                Ok(())
            };
            store.writer.call(by, 1, work).await.unwrap();
            by
        }));
    }
    settle_down().await;
    go.send(()).unwrap();
    let engine = calls.pop().unwrap();
    assert_eq!(engine.await.unwrap(), By::Engine);
    let before = order.lock().unwrap().clone();
    assert_eq!(before.first(), Some(&By::Engine), "{before:?}");
    assert!(before.len() < 50, "it waited for {before:?}");
    for call in calls {
        assert_eq!(call.await.unwrap(), By::Client);
    }
}

#[tokio::test]
async fn a_file_that_someone_else_keeps_locked_costs_a_group_one_wait() {
    let folder = folder();
    let store = Arc::new(open(folder.path()).unwrap());
    let path = folder.path().join(super::super::open::FILE);
    let other = Connection::open(path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // The first waits alone, and the others are a group behind it.
    let calls: Vec<_> = (0..20).map(|number| create(&store, number)).collect();
    let answers = async {
        for call in calls {
            let answer = call.await.unwrap();
            assert!(matches!(answer, Err(StoreError::Unavailable(_))));
        }
    };
    let bound = Duration::from_secs(15);
    assert!(tokio::time::timeout(bound, answers).await.is_ok());
    other.execute_batch("ROLLBACK").unwrap();
    // The writer may still be at the last of them.
    let mut created = create(&store, 50).await.unwrap();
    if created.is_err() {
        created = create(&store, 51).await.unwrap();
    }
    assert_eq!(created.unwrap(), [Created::Done]);
}

/// Jobs of a quarter of a mebibyte each, from as many clients.
fn large(number: u16) -> crate::NewJob {
    let mut chance = [0; 10];
    chance[..2].copy_from_slice(&number.to_be_bytes());
    let mut large = job_with(1, |def| {
        def.payload = Some(bytes::Bytes::from(vec![b'x'; limits::PAYLOAD_MAX]));
    })
    .unwrap();
    large.id = JobId::new(crate::conformance::at(1), chance);
    new(large)
}

#[tokio::test]
async fn creates_that_would_hold_too_many_bytes_are_refused_while_the_writer_is_held() {
    let folder = folder();
    let store = Arc::new(open(folder.path()).unwrap());
    let go = hold(&store).await;
    let many = 600;
    let calls: Vec<_> = (0..many)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move { store.create_jobs(&[large(number)]).await })
        })
        .collect();
    settle_down().await;
    let fit = limits::WRITES_BYTES_MAX / (limits::PAYLOAD_MAX + limits::WRITE_BYTES_MIN);
    let ended = calls.iter().filter(|it| it.is_finished()).count();
    assert_eq!(ended, usize::from(many) - fit, "refused at once");
    drop(go);
    let (mut written, mut refused) = (0, 0);
    for call in calls {
        match call.await.unwrap() {
            Ok(created) => {
                assert_eq!(created, [Created::Done]);
                written += 1;
            }
            Err(error) => {
                assert!(matches!(error, StoreError::Overloaded), "{error:?}");
                assert!(error.is_transient());
                refused += 1;
            }
        }
    }
    assert_eq!((written, refused), (fit, usize::from(many) - fit));
    // What was written holds nothing any more.
    let again = store.create_jobs(&[large(many)]).await.unwrap();
    assert_eq!(again, [Created::Done]);
}
