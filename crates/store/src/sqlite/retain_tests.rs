//! A day of history goes step by step, and what is left says which step is next.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use model::{Partition, RunId, TenantId, Verdict};

use super::super::SqliteStore;
use super::super::tests::folder;
use super::super::writer::By;
use super::*;
use crate::conformance::{DONE, Subject, TestClock, at, once, settlement};
use crate::{ClientStore, EngineStore, StoreClock};

const DAY: i64 = 24 * 3_600;

/// Whatever is done takes its time.
#[derive(Default)]
struct Ticking {
    wall: TestClock,
    ticks: AtomicU64,
}

impl StoreClock for Ticking {
    fn now(&self) -> Timestamp {
        self.wall.now()
    }

    fn uptime(&self) -> Duration {
        STEP * u32::try_from(self.ticks.fetch_add(1, Ordering::SeqCst)).unwrap()
    }
}

fn open(folder: &Path) -> Arc<SqliteStore> {
    let clock = Arc::new(Ticking::default());
    Arc::new(SqliteStore::open(folder, clock).unwrap())
}

fn keep(now: Timestamp) -> Keep {
    Keep {
        now,
        history: Duration::from_secs(7 * 86_400),
        finished: Duration::from_secs(1_000 * 86_400),
    }
}

/// A day with so many runs, one a millisecond from midnight on.
async fn fill(store: &SqliteStore, day: Partition, rows: i64) {
    let put = move |db: &mut Db| {
        let midnight = day.ends_at().as_millis() - DAY * 1_000;
        db.conn.execute_batch(&super::super::range_schema(day.0))?;
        db.partitions.days.insert(day.0);
        let sql = "WITH RECURSIVE n(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n + 1 < ?2)
                   INSERT INTO history_{day} (id, job, tenant, kind, lane, state, attempt, lost, version, settled_at)
                   SELECT CAST(unhex(printf('%012x', ?1 + n)) || randomblob(10) AS BLOB), randomblob(16), 0, 0, 1, 3 + n % 2, 1, 0, 1, ?1 + n
                   FROM n";
        Ok(db
            .conn
            .execute(&Partitions::sql(sql, day.0), params![midnight, rows])?)
    };
    assert_eq!(
        store.write(By::Client, 1, put).await.unwrap(),
        rows as usize
    );
}

/// How many rows a table has; none if there is no such table.
async fn rows(store: &SqliteStore, table: String) -> Option<i64> {
    let count = move |conn: &Connection| {
        // Read from the file: a connection's own idea of its tables may be of before.
        let there = "SELECT 1 FROM sqlite_schema WHERE name = ?1";
        let there = conn.prepare(there)?.exists([&table])?;
        let sql = format!("SELECT count(*) FROM {table}");
        let rows = there.then(|| conn.query_row(&sql, [], |row| row.get(0)));
        Ok(rows.transpose()?)
    };
    store.read(By::Client, count).await.unwrap()
}

fn history(day: Partition) -> String {
    format!("history_{}", day.0)
}

fn gone(day: Partition) -> String {
    format!("gone_{}", day.0)
}

#[tokio::test]
async fn a_partition_goes_in_steps_whatever_happens_between_them() {
    let folder = folder();
    let store = open(folder.path());
    let day = Partition::at(at(DAY));
    fill(&store, day, 1_100).await;
    let keep = keep(day.ends_at().plus(Duration::from_secs(7 * 86_400)));
    let step = store.retain(&keep).await.unwrap();
    assert_eq!((step.partitions, step.more), (1, true));
    assert_eq!(rows(&store, history(day)).await, None, "out of history");
    assert_eq!(rows(&store, gone(day)).await, Some(1_100));
    let step = store.retain(&keep).await.unwrap();
    assert_eq!((step.partitions, step.more), (0, true));
    assert_eq!(rows(&store, gone(day)).await, Some(900));
    drop(store);
    let store = open(folder.path());
    let mut steps = 0;
    while store.retain(&keep).await.unwrap().more {
        steps += 1;
        assert!(rows(&store, gone(day)).await < Some(900));
    }
    assert_eq!(steps, 5);
    assert_eq!(rows(&store, gone(day)).await, None);
}

#[tokio::test]
async fn a_straggler_makes_a_partition_again_that_is_still_going() {
    let folder = folder();
    let store = open(folder.path());
    let day = Partition::at(at(DAY));
    let subject = Subject::over(store.clone(), TestClock::default())
        .await
        .unwrap();
    let job = subject.put(once(1, DAY).unwrap()).await.unwrap();
    let run = subject.claimed(job.id).await.unwrap();
    assert_eq!(Partition::of(run.id), day);
    fill(&store, day, 1_000).await;
    let now = day.ends_at().plus(Duration::from_secs(8 * 86_400));
    assert_eq!(store.retain(&keep(now)).await.unwrap().partitions, 1);
    let mut end = settlement(&run, Verdict::Succeed);
    if let Some(attempt) = &mut end.attempt {
        attempt.settled_at = now;
    }
    assert_eq!(subject.settle(end).await.unwrap(), DONE);
    assert_eq!(rows(&store, history(day)).await, Some(1));
    while store.retain(&keep(now)).await.unwrap().more {}
    assert_eq!(rows(&store, gone(day)).await, None);
    let kept = store.get_run(TenantId::DEFAULT, run.id).await.unwrap();
    assert!(kept.is_some());
}

/// Its indexes cannot go at once.
#[tokio::test]
async fn a_partition_of_too_many_rows_loses_some_first() {
    let folder = folder();
    let store = open(folder.path());
    let day = Partition::at(at(DAY));
    let many = ROWS_MAX + 3 * i64::from(ROWS_INDEXED);
    fill(&store, day, many).await;
    let keep = keep(day.ends_at().plus(Duration::from_secs(7 * 86_400)));
    let step = i64::from(ROWS_INDEXED);
    for left in [many - step, many - 2 * step, many - 3 * step] {
        assert_eq!(rows(&store, gone(day)).await, None);
        let step = store.retain(&keep).await.unwrap();
        assert_eq!((step.partitions, step.more), (0, true));
        assert_eq!(rows(&store, history(day)).await, Some(left));
    }
    assert_eq!(store.retain(&keep).await.unwrap().partitions, 1);
    assert_eq!(rows(&store, gone(day)).await, Some(ROWS_MAX));
    let oldest = RunId::least_at(day.ends_at().minus(Duration::from_secs(86_400)));
    let found = store.get_run(TenantId::DEFAULT, oldest).await.unwrap();
    assert_eq!(found, None);
}

/// Whoever writes meanwhile waits for one step.
#[tokio::test]
async fn a_step_removes_a_bounded_number_of_rows() {
    const EACH: i64 = 2 * RETENTION_BATCH_MAX as i64 + 500;
    let folder = folder();
    let store = open(folder.path());
    let day = Partition::at(at(DAY));
    let now = day.ends_at().plus(Duration::from_secs(7 * 86_400));
    fill(&store, day, ROWS_MAX + i64::from(ROWS_INDEXED)).await;
    let put = |db: &mut Db| {
        let numbers =
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)";
        for insert in [
            "INSERT INTO jobs (id, tenant, state, version, state_at)
             SELECT CAST(printf('%016d', n) AS BLOB), 0, 2, 1, 0 FROM n",
            "INSERT INTO defs (id, tenant, gone, created_at, updated_at, doc)
             SELECT CAST(printf('%016d', n) AS BLOB), 0, 0, 0, 0, x'' FROM n",
            "INSERT INTO labels (tenant, name, value, job)
             SELECT 0, 'name', 'value', CAST(printf('%016d', n) AS BLOB) FROM n",
            "INSERT INTO idempotency (tenant, key, digest, job, created_at) SELECT 0, n, x'', x'', 0 FROM n",
            "INSERT INTO rollups (tenant, step, at, counter, expires_at, doc) SELECT 0, 0, n, x'', 0, x'' FROM n",
        ] {
            db.conn.execute(&format!("{numbers} {insert}"), [EACH])?;
        }
        Ok(())
    };
    store.write(By::Client, 1, put).await.unwrap();
    let written = async || {
        let count = |db: &mut Db| {
            let sql = "SELECT total_changes()";
            Ok(db.conn.query_row(sql, [], |row| row.get(0))?)
        };
        store.write(By::Client, 1, count).await.unwrap()
    };
    let keep = Keep {
        finished: Duration::from_secs(86_400),
        ..keep(now)
    };
    let (mut steps, mut more) = (Vec::new(), true);
    while more {
        let before: i64 = written().await;
        more = store.retain(&keep).await.unwrap().more;
        steps.push(written().await - before);
    }
    // Of history as many as go together; then of jobs, requests and rollups a batch each.
    let is_history = |rows: &i64| *rows <= i64::from(ROWS_INDEXED) + 8;
    let (of_history, others): (Vec<i64>, Vec<i64>) = steps.into_iter().partition(is_history);
    assert_eq!(of_history.len() as i64, ROWS_MAX / i64::from(ROWS) + 3);
    let batch = RETENTION_BATCH_MAX as i64;
    let most = others.iter().max().copied();
    assert!(most.is_some_and(|most| most <= 5 * batch + 8), "{others:?}");
    assert_eq!(others.len(), 3, "{others:?}");
    for table in ["jobs", "defs", "labels", "idempotency", "rollups"] {
        assert_eq!(rows(&store, table.to_owned()).await, Some(0), "{table}");
    }
}
