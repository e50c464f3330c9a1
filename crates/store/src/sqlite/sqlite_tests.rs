use std::path::{Path, PathBuf};

use model::shard::ShardSet;
use model::{JobState, Parts, Reason, RunState};
use rusqlite::Connection;
use rusqlite::types::Value;
use tempfile::TempDir;

use super::archive::Partitions;
use super::writer::By;
use super::*;
use crate::conformance::{
    Arena, Reopen, Subject, TestClock, answers_alike, answers_in_some_order, at, job, once,
    rows_alike,
};
use crate::fast_path::{FastPaths, Taken};
use crate::{BoxError, Peer};

/// In memory where there is such a folder: these tests are about rows, not about disks.
pub(super) fn folder() -> TempDir {
    let fast = Path::new("/dev/shm");
    if fast.is_dir() {
        tempfile::tempdir_in(fast).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

pub(super) fn open(path: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(path, Arc::new(TestClock::default()))
}

async fn subject() -> Result<Subject, BoxError> {
    subject_with(FastPaths::on()).await
}

async fn open_with(
    path: &Path,
    clock: TestClock,
    fast_paths: FastPaths,
) -> Result<SqliteStore, StoreError> {
    let store = SqliteStore::open(path, Arc::new(clock))?;
    let switch = move |db: &mut db::Db| {
        db.fast_paths.clone_from(&fast_paths);
        Ok(())
    };
    store.write(By::Client, 1, switch).await?;
    Ok(store)
}

/// With its fast paths or without.
async fn subject_with(fast_paths: FastPaths) -> Result<Subject, BoxError> {
    let folder = folder();
    let clock = TestClock::default();
    let path = folder.path().to_owned();
    let store = open_with(&path, clock.clone(), fast_paths.clone()).await?;
    let subject = Subject::over(Arc::new(store), clock.clone()).await?;
    let reopen: Reopen = Arc::new(move |store| {
        let (path, clock): (PathBuf, _) = (path.clone(), clock.clone());
        let fast_paths = fast_paths.clone();
        Box::pin(async move {
            drop(store);
            let again: Arc<dyn crate::Store> = Arc::new(open_with(&path, clock, fast_paths).await?);
            Ok(again)
        })
    });
    Ok(subject.with_reopen(reopen).with_guard(folder))
}

mod conforms {
    use super::subject;

    crate::conformance_suite!(async || subject().await);
}

#[test]
fn it_answers_as_the_reference_does() {
    answers_alike(Subject::mem, subject);
}

async fn with_rows(fast_paths: FastPaths) -> Result<Subject, BoxError> {
    let subject = subject_with(fast_paths).await?;
    let folder = subject.guard.downcast_ref::<TempDir>();
    let path = folder.ok_or("no folder")?.path().join(FILE);
    Ok(subject.with_rows(Arc::new(move || {
        let rows = rows(&Connection::open(&path).unwrap());
        Box::pin(async { rows })
    })))
}

/// Every row that decisions write.
fn rows(conn: &Connection) -> Vec<String> {
    let all = |sql: &str| -> Vec<String> {
        let mut select = conn.prepare(sql).unwrap();
        let columns = select.column_count();
        let shown = |row: &rusqlite::Row<'_>| {
            let values = (0..columns).map(|it| row.get::<_, Value>(it));
            Ok(format!("{:?}", values.collect::<Result<Vec<_>, _>>()?))
        };
        let rows = select.query_map([], shown).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    };
    let mut tables = vec!["jobs".to_owned(), "live".to_owned()];
    let kept = ["handed", "checkpoints", "run_logs"];
    let days = Partitions::read(conn).unwrap().days;
    tables.extend(
        days.iter()
            .map(|day| Partitions::sql("history_{day}", *day)),
    );
    let of = |table: &str, key| all(&format!("SELECT '{table}', * FROM {table} ORDER BY {key}"));
    let decided = tables.iter().flat_map(|table| of(table, "id"));
    decided
        .chain(kept.iter().flat_map(|table| of(table, "run")))
        .collect()
}

#[test]
fn its_fast_paths_write_what_the_core_decides() {
    let taken = Taken::default();
    rows_alike(64, async |are_on| {
        let taken = taken.clone();
        with_rows(FastPaths { are_on, taken }).await
    });
    let settle = ["settle", "settle_retry", "settle_release"];
    taken.were_all_taken(&[&["fire", "claim", "heartbeat"], &settle[..]].concat());
}

async fn arena() -> Result<Arena, BoxError> {
    let folder = folder();
    let clock = TestClock::default();
    let store = SqliteStore::open(folder.path(), Arc::new(clock.clone()))?;
    Ok(Arena::new(vec![Arc::new(store)], clock, folder))
}

#[test]
fn some_order_explains_what_many_threads_are_answered() {
    answers_in_some_order(arena);
}

pub(super) fn new(job: Job) -> NewJob {
    NewJob {
        job: Arc::new(job),
        idempotency: None,
    }
}

fn node(name: &str) -> NodeInfo {
    NodeInfo {
        name: name.to_owned(),
        version: "1.2.3".to_owned(),
        tables: "2026e".to_owned(),
        parts: Parts::from_code(5),
        ..NodeInfo::default()
    }
}

#[tokio::test]
async fn a_second_store_on_the_same_folder_is_refused() {
    let folder = folder();
    let first = open(folder.path()).unwrap();
    let Err(StoreError::InUse(line)) = open(folder.path()) else {
        panic!("opened twice")
    };
    assert!(
        line.contains(&format!("(process {})", std::process::id())),
        "{line}"
    );
    assert_eq!(line.lines().count(), 1);
    drop(first);
    open(folder.path()).unwrap();
}

/// Every statement that stands in a file, with a day that has history.
pub(super) fn statements() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sqlite/sql");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with("-- "),
            "{name} says for which method it is"
        );
        let text = text.replace("{table}", "history_{day}");
        let text = crate::statement::filled(&text, crate::statement::columns);
        found.push((name, text.replace("{day}", "19675")));
    }
    found.sort();
    found
}

pub(super) fn fresh_schema() -> Connection {
    let conn = Connection::open_in_memory().unwrap();
    super::open::migrate(&conn).unwrap();
    conn.execute_batch(&range_schema(19_675)).unwrap();
    conn
}

/// What makes and drops the tables of days.
pub(super) const OF_DAYS: [&str; 4] = [
    "create_partition",
    "index_default",
    "detach_partition",
    "drop_partition",
];

/// `state = 0 /* JobState::Active */`: the number of a word stands with its name.
#[test]
fn numbers_in_statements_are_those_of_their_words() {
    for (name, text) in statements() {
        for (before, after) in text.match_indices(" /* ").map(|(at, _)| text.split_at(at)) {
            let (word, _) = after[4..].split_once(" */").unwrap();
            let number = crate::code::number(word).map(|it| it.to_string());
            let stands = before.rsplit([' ', '(']).next().map(str::to_owned);
            assert_eq!(number, stands, "{name}: {word}");
        }
        if OF_DAYS.contains(&name.as_str()) {
            continue;
        }
        let columns = ["state = ", "state <> ", "kind = ", "kind <> "];
        for compared in columns.iter().flat_map(|it| text.split(it).skip(1)) {
            let is_number = compared.starts_with(|it: char| it.is_ascii_digit());
            let is_named = compared.get(1..).is_some_and(|it| it.starts_with(" /* "));
            assert!(!is_number || is_named, "{name}: {compared}");
        }
    }
}

#[test]
fn every_statement_fits_the_schema_and_is_used() {
    let conn = fresh_schema();
    let sources: String =
        std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sqlite"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|ext| ext == "rs"))
            .map(|path| std::fs::read_to_string(path).unwrap())
            .collect();
    for (name, text) in statements() {
        assert!(
            sources.contains(&format!("sql/{name}.sql")),
            "{name} is not used"
        );
        if !OF_DAYS.contains(&name.as_str()) {
            conn.prepare(&text)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
    for sql in [
        include_str!("sql/detach_partition.sql"),
        include_str!("sql/drop_partition.sql"),
    ] {
        conn.execute_batch(&sql.replace("{day}", "19675")).unwrap();
    }
}

#[test]
fn no_statement_reads_a_table_that_may_be_large_from_end_to_end() {
    let conn = fresh_schema();
    // Run at the start only, or of tables with a row for each presence, shard or day; `orphans` only while
    // a presence that has ended may hold something; `is_crowded` ends at the first entry of an index. `resting` and
    // `rules_changed` read indexes of what is nearly never there, `zones` has a row for each zone. `gone_partition` reads
    // the names of tables, and `is_large` and `shrink_partition` end after so many rows. `count_tenants` is run when a
    // tenant is made, `count_waiting` reads an index of what is nearly never there now and then, `root_keys` at a start and
    // when a key is revoked, `count_secrets` at a start and after a rewrap, `count_users` when a user is made. There are few `report_keys`, and retention
    // looks through what is handed over now and then.
    let small = [
        "is_crowded",
        "count_live",
        "end_all_presences",
        "presences",
        "ended_presences",
        "leases",
        "partitions",
        "orphans",
        "resting",
        "rules_changed",
        "zones",
        "join_zones",
        "gone_partition",
        "is_large",
        "shrink_partition",
        "count_tenants",
        "root_keys",
        "count_secrets",
        "count_waiting",
        // Tenants that have the quota, replays that are under way: by indexes of these alone.
        "run_quotas",
        "running_replays",
        // Jobs that count their failures, once when the file is opened: by an index of these alone.
        "counting",
        // Rules, when one is written; and ends that nobody has considered yet, when a tenant goes.
        "watched",
        "drop_tenant_alert_causes",
        // So many at most.
        "count_standing_jobs",
        "count_standing_live",
        "count_users",
        "report_keys",
        "put_report_key",
        "prune_report_keys",
        "retain_handed",
        "retain_checkpoints",
        "retain_logs",
        // Once, when there is a second tenant.
        "index_default_jobs",
        "index_default_rare",
        "index_default_open",
        "index_default_audit",
    ];
    for (name, text) in statements() {
        if small.contains(&name.as_str()) || OF_DAYS.contains(&name.as_str()) {
            continue;
        }
        let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {text}")).unwrap();
        let plan: Vec<String> = explain
            .raw_query()
            .mapped(|row| row.get(3))
            .map(Result::unwrap)
            .collect();
        // A walk by key from the newest on ends with the page.
        let scans = plan
            .iter()
            // What a limit has left is no table.
            .filter(|line| !line.contains("subquery"))
            .filter(|line| line.starts_with("SCAN") && !line.contains("CONSTANT"));
        assert_eq!(scans.count(), 0, "{name}: {plan:?}");
        // These two sort what they found in an index, after the newest jobs did not fill the page.
        let sorted = ["list_jobs_key", "list_jobs_active"].contains(&name.as_str());
        let sorts = plan.iter().any(|line| line.contains("TEMP B-TREE"));
        assert_eq!(sorts, sorted, "{name}: {plan:?}");
    }
}

#[tokio::test]
async fn a_job_that_cannot_be_read_is_named_and_parked_and_hurts_no_other() {
    let folder = folder();
    let store = open(folder.path()).unwrap();
    let (bad, good) = (job(1).unwrap(), job(2).unwrap());
    store
        .create_jobs(&[new(bad.clone()), new(good.clone())])
        .await
        .unwrap();
    spoil(&store, bad.id).await;
    let due = store
        .due_jobs(&ShardSet::ALL, at(60), None, 10)
        .await
        .unwrap();
    assert_eq!(
        due.jobs.iter().map(|job| job.id).collect::<Vec<_>>(),
        [good.id]
    );
    let [(id, why)] = &due.unreadable[..] else {
        panic!("{due:?}")
    };
    assert_eq!(*id, bad.id);
    store.park(&[(*id, why.clone())], at(1)).await.unwrap();
    let due = store
        .due_jobs(&ShardSet::ALL, at(60), None, 10)
        .await
        .unwrap();
    assert_eq!((due.jobs.len(), due.unreadable.len()), (1, 0));
    let page = Page {
        before: None,
        limit: 10,
    };
    let listed = store
        .list_jobs(TenantId::DEFAULT, &JobFilter::default(), page)
        .await
        .unwrap();
    assert_eq!(listed.len(), 1);
    let read = store.get_job(TenantId::DEFAULT, bad.id).await;
    assert!(matches!(read, Err(StoreError::BadRow(_))), "{read:?}");
    let both = [bad.id, good.id].map(|id| (TenantId::DEFAULT, id));
    let read = store.get_jobs(&both).await.unwrap();
    assert!(matches!(&read[..], [Err(_), Ok(Some(_))]), "{read:?}");
}

pub(super) async fn spoil(store: &SqliteStore, id: JobId) {
    let spoiled = store.writer.call(By::Client, 1, move |db| {
        let sql = "UPDATE defs SET doc = x'00' WHERE id = ?1";
        Ok(db.conn.execute(sql, [id.as_bytes()])?)
    });
    assert_eq!(spoiled.await.unwrap(), 1);
}

#[tokio::test]
async fn a_run_whose_job_cannot_be_read_is_buried() {
    let folder = folder();
    let store = Arc::new(open(folder.path()).unwrap());
    let subject = Subject::over(store.clone(), TestClock::default())
        .await
        .unwrap();
    let one = subject.put(once(1, 60).unwrap()).await.unwrap();
    let two = subject.put(once(2, 60).unwrap()).await.unwrap();
    let run = subject.ready(one.id).await.unwrap();
    let held = subject.claimed(two.id).await.unwrap();
    spoil(&store, one.id).await;
    spoil(&store, two.id).await;
    let claimed = store.claim(&subject.leases, &[run.id]).await.unwrap();
    assert_eq!(claimed, [Claimed::Stale]);
    store.leave(subject.leases.presence).await.unwrap();
    assert_eq!(store.orphans(&ShardSet::ALL, 10).await.unwrap(), []);
    for id in [run.id, held.id] {
        let run = subject.run(id).await.unwrap();
        assert_eq!(
            (run.state, run.reason),
            (RunState::Dead, Some(Reason::Unreadable))
        );
    }
    assert_eq!(store.count_live().await.unwrap(), 0);
}

#[tokio::test]
async fn a_crash_ends_presences_at_the_moment_of_the_next_start() {
    let folder = folder();
    let clock = TestClock::default();
    let store = Arc::new(SqliteStore::open(folder.path(), Arc::new(clock.clone())).unwrap());
    let subject = Subject::over(store.clone(), clock.clone()).await.unwrap();
    let one = subject.put(once(1, 1).unwrap()).await.unwrap();
    let run = subject.claimed(one.id).await.unwrap();
    drop((store, subject));
    clock.advance(std::time::Duration::from_secs(100));
    let store = SqliteStore::open(folder.path(), Arc::new(clock.clone())).unwrap();
    assert_eq!(store.count_live().await.unwrap(), 1);
    let orphans = store.orphans(&ShardSet::ALL, 10).await.unwrap();
    assert_eq!(
        orphans
            .iter()
            .map(|orphan| (orphan.run.id, orphan.ended_at))
            .collect::<Vec<_>>(),
        [(run.id, at(100))]
    );
    let me = store.join(&node("next")).await.unwrap();
    let beat = store.beat(me, &NodeStatus::default()).await.unwrap();
    let peer = Peer {
        presence: me,
        node: node("next"),
        node_status: NodeStatus::default(),
        joined_at: at(100),
        mark: beat.living[0].mark,
        beaten: std::time::Duration::ZERO,
        shards: 0,
    };
    assert_eq!(beat.living, [peer]);
}

#[tokio::test]
async fn presences_that_hold_nothing_are_forgotten() {
    let folder = folder();
    let store = open(folder.path()).unwrap();
    let gone = store.join(&node("gone")).await.unwrap();
    store.leave(gone).await.unwrap();
    assert_eq!(store.orphans(&ShardSet::ALL, 10).await.unwrap(), []);
    let day = std::time::Duration::from_secs(86_400);
    store
        .retain(&Keep {
            now: at(0),
            history: day,
            finished: day,
        })
        .await
        .unwrap();
    let left = store.clients.call(|conn| {
        Ok(conn.query_row("SELECT count(*) FROM presences", [], |row| {
            row.get::<_, i64>(0)
        })?)
    });
    assert_eq!(left.await.unwrap(), 0);
    assert!(matches!(
        store.beat(gone, &NodeStatus::default()).await,
        Err(StoreError::Fenced)
    ));
}

/// Sixty jobs of every state, with and without labels and keys, oldest first.
fn motley() -> Vec<Job> {
    let made = (0..60_u8).map(|number| {
        let mut job = crate::conformance::job_with(number, |def| {
            let team = if number % 2 == 0 { "ops" } else { "web" };
            def.labels.insert("team".to_owned(), team.to_owned());
            if number % 3 == 0 {
                def.labels.insert("tier".to_owned(), "1".to_owned());
            }
        })
        .unwrap();
        job.id = JobId::new(at(i64::from(number)), [number; 10]);
        job.key = (number % 4 == 0).then(|| JobKey::new(&format!("Night-_{number}")).unwrap());
        job.state = JobState::ALL[usize::from(number % 5)];
        job.owner = (number % 3 > 0).then(|| Arc::from(["Ann", "Ben"][usize::from(number % 2)]));
        // Some of the active ones rest.
        job.next_slot = job.next_slot.filter(|_| number % 10 == 0);
        job
    });
    made.collect()
}

fn filters() -> Vec<JobFilter> {
    let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let (ops, tier) = (label("team", "ops"), label("tier", "1"));
    let mut filters = Vec::new();
    for states in [
        vec![],
        vec![JobState::Paused, JobState::Deleted],
        vec![JobState::Active],
    ] {
        for labels in [vec![], vec![ops.clone()], vec![ops.clone(), tier.clone()]] {
            for q in [
                None,
                Some("-_"),
                Some("NIGHT"),
                Some("t-_2"),
                Some("zzz"),
                Some(""),
            ] {
                for owner in [None, Some("Ann"), Some("nobody")] {
                    filters.push(JobFilter {
                        states: states.clone(),
                        labels: labels.clone(),
                        q: q.map(str::to_owned),
                        owner: owner.map(str::to_owned),
                    });
                }
            }
        }
    }
    filters
}

#[tokio::test]
async fn listing_by_every_filter_agrees_with_reading_all() {
    let folder = folder();
    let store = open(folder.path()).unwrap();
    let jobs = motley();
    let rows: Vec<_> = jobs.iter().cloned().map(new).collect();
    store.create_jobs(&rows).await.unwrap();
    for filter in filters() {
        let fitting = jobs.iter().rev().filter(|job| fits(job, &filter));
        let expected: Vec<JobId> = fitting.map(|job| job.id).collect();
        let mut found = Vec::new();
        loop {
            let page = Page {
                before: found.last().copied(),
                limit: 4,
            };
            let listed = store
                .list_jobs(TenantId::DEFAULT, &filter, page)
                .await
                .unwrap();
            if listed.is_empty() {
                break;
            }
            found.extend(listed.into_iter().map(|job| job.id));
        }
        assert_eq!(found, expected, "{filter:?}");
    }
}

fn fits(job: &Job, filter: &JobFilter) -> bool {
    let state = if filter.states.is_empty() {
        job.state != JobState::Deleted
    } else {
        filter.states.contains(&job.state)
    };
    let labels = filter
        .labels
        .iter()
        .all(|(name, value)| job.def.labels.get(name) == Some(value));
    let part = filter.q.as_ref().map(|part| part.to_ascii_lowercase());
    let key = job
        .key
        .as_ref()
        .map(|key| key.as_str().to_ascii_lowercase());
    let owner = filter.owner.as_deref();
    let owner = owner.is_none_or(|owner| job.owner.as_deref() == Some(owner));
    state && labels && owner && part.is_none_or(|part| key.is_some_and(|key| key.contains(&part)))
}
