//! Files of earlier versions, made by their own statements: whatever was in them is there afterwards.

use std::fs;

use model::{JobId, JobState, RunId, RunKind, RunState, Slot, TenantId};
use rusqlite::params;

use super::super::tests::{folder, open};
use super::*;
use crate::conformance::{at, slot};
use crate::{ClientStore, EngineStore, JobChange, JobChanged, Page, Rule, RunFilter, RunsOfChange};

/// A day of history as version 1 made it.
const RANGE: &str = "
    CREATE TABLE history_{day} (
        id BLOB PRIMARY KEY, job BLOB NOT NULL, tenant ANY NOT NULL, kind INTEGER NOT NULL, slot INTEGER,
        replay_of BLOB, due_at INTEGER, lane INTEGER NOT NULL, state INTEGER NOT NULL, reason INTEGER,
        attempt INTEGER NOT NULL, lost INTEGER NOT NULL, version INTEGER NOT NULL, dispatched_at INTEGER,
        settled_at INTEGER, outcome INTEGER, status INTEGER, error TEXT, output BLOB, stretch_last INTEGER,
        stretch_count INTEGER, payload BLOB, attempts BLOB
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX history_{day}_job ON history_{day} (job);
    CREATE INDEX history_{day}_rare ON history_{day} (state) WHERE state <> 3;
    INSERT INTO ranges (day) VALUES ({day});";

const CRON: &str = r#"{"schedule":{"cron":["0 9 * * *"],"zone":"Europe/Berlin"},"target":{"http":{"url":"http://localhost/ok"}}}"#;
const MONTHLY: &str = r#"{"schedule":{"every":"P1M","anchor":1700000000000,"zone":"Europe/Berlin"},"target":{"http":{"url":"http://localhost/ok"}}}"#;
/// Counts seconds, whatever the clocks on the wall do.
const ELAPSED: &str = r#"{"schedule":{"every":"1m","anchor":1700000000000,"zone":"Europe/Berlin"},"target":{"http":{"url":"http://localhost/ok"}}}"#;
const ONCE: &str = r#"{"schedule":{"at":1700000060000},"target":{"http":{"url":"http://localhost/ok"}},"labels":{"zone":"Europe/Berlin"}}"#;
const GONE: &str = r#"{"schedule":{"cron":["0 9 * * *"],"zone":"Europe/Madrid"},"target":{"http":{"url":"http://localhost/ok"}}}"#;
const SPOILED: &str = "{\"zone\"\0";

fn id(number: u8) -> JobId {
    JobId::new(at(0), [number; 10])
}

fn put_job(conn: &Connection, number: u8, state: i64, doc: &str) {
    let due_at = (state == 0).then_some(at(60).as_millis());
    let made = at(0).as_millis();
    conn.execute(
        "INSERT INTO jobs (id, tenant, state, version, next_slot, due_at, slot_last, state_at)
         VALUES (?1, 0, ?2, 1, ?3, ?3, NULL, ?4)",
        params![id(number).as_bytes(), state, due_at, made],
    )
    .unwrap();
    conn.execute(
        "INSERT INTO defs (id, tenant, key, gone, created_at, updated_at, note, doc)
         VALUES (?1, 0, ?2, ?3, ?4, ?4, 'so it is', ?5)",
        params![
            id(number).as_bytes(),
            format!("key-{number}"),
            state == 4,
            made,
            doc.as_bytes()
        ],
    )
    .unwrap();
}

fn ended(conn: &Connection, slot: Slot, state: i64, stretch_last: Option<i64>) -> RunId {
    let run = RunId::for_slot(id(3), slot);
    let sql = "INSERT INTO history_{day} (id, job, tenant, kind, lane, state, attempt, lost, version, settled_at,
                                          stretch_last, stretch_count)
               VALUES (?1, ?2, 0, 0, 1, ?3, 1, 0, 1, ?4, ?5, iif(?5, 2, NULL))";
    let settled_at = slot.0.as_millis();
    conn.execute(
        &Partitions::sql(sql, Partitions::partition_of(run)),
        params![
            run.as_bytes(),
            id(3).as_bytes(),
            state,
            settled_at,
            stretch_last
        ],
    )
    .unwrap();
    run
}

/// Where the first day and the second begin to have history, in seconds.
const FIRST: i64 = 0;
const SECOND: i64 = 86_400;

const NEWEST: i64 = MIGRATIONS.len() as i64;

/// A file of version 1, with something of everything.
fn version_1(folder: &Path) -> Connection {
    let conn = Connection::open(folder.join(FILE)).unwrap();
    conn.execute_batch(MIGRATIONS[0]).unwrap();
    conn.pragma_update(None, "application_id", APPLICATION_ID)
        .unwrap();
    conn.pragma_update(None, "user_version", 1).unwrap();
    conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))
        .unwrap();
    for (number, (state, doc)) in [
        (0, CRON),
        (0, MONTHLY),
        (0, ELAPSED),
        (1, ONCE),
        (4, GONE),
        (0, SPOILED),
    ]
    .into_iter()
    .enumerate()
    {
        put_job(&conn, number as u8 + 1, state, doc);
    }
    conn.execute(
        "INSERT INTO presences (id, node, joined_at) VALUES (?1, 'old', 0)",
        [[7_u8; 16]],
    )
    .unwrap();
    conn.execute(
        "INSERT INTO live (id, job, tenant, kind, due_at, lane, state, attempt, lost, version, claim, waiting)
         VALUES (?1, ?2, 0, 0, ?3, 1, 0, 1, 0, 1, 1, 0)",
        params![
            RunId::for_slot(id(3), slot(120)).as_bytes(),
            id(3).as_bytes(),
            at(120).as_millis()
        ],
    )
    .unwrap();
    for secs in [FIRST, SECOND] {
        let day = Partitions::partition_of(RunId::least_at(at(secs)));
        conn.execute_batch(&Partitions::sql(RANGE, day)).unwrap();
    }
    ended(&conn, slot(FIRST), 3, None);
    ended(&conn, slot(60), 6, Some(at(119).as_millis()));
    ended(&conn, slot(SECOND), 4, None);
    conn
}

fn version_of(path: &Path) -> i64 {
    let conn = Connection::open(path).unwrap();
    conn.query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap()
}

const ALL: Page<RunId> = Page {
    before: None,
    limit: 100,
};

#[tokio::test]
async fn a_file_of_the_first_version_has_everything_afterwards() {
    let folder = folder();
    drop(version_1(folder.path()));
    let store = open(folder.path()).unwrap();
    let me = TenantId::DEFAULT;
    for (number, state) in [(1, JobState::Active), (4, JobState::Paused)] {
        let job = store.get_job(me, id(number)).await.unwrap().unwrap();
        assert_eq!(
            (job.state, job.runs_left(), job.paused_by),
            (state, None, None)
        );
        assert_eq!(job.note.as_deref(), Some("so it is"));
        assert_eq!(
            job.key.as_ref().map(ToString::to_string),
            Some(format!("key-{number}"))
        );
    }
    assert_eq!(store.get_job(me, id(5)).await.unwrap(), None, "deleted");
    assert!(store.get_job(me, id(6)).await.is_err(), "unreadable before");
    let runs = store.list_runs(me, &RunFilter::default(), ALL).await;
    let runs = runs.unwrap();
    assert_eq!(
        runs.iter().map(|run| run.id.at()).collect::<Vec<_>>(),
        [at(SECOND), at(120), at(60), at(FIRST)]
    );
    assert!(
        runs.iter()
            .all(|run| run.note.is_none() && run.actor.is_none())
    );
    assert_eq!(runs[1].state, RunState::Ready);
    let dead = RunFilter {
        states: vec![RunState::Dead],
        ..RunFilter::default()
    };
    let dead = store.list_runs(me, &dead, ALL).await.unwrap();
    assert_eq!(dead[..], runs[..1]);
    let other = TenantId::new(at(0), [1; 10]);
    let others = store.list_runs(other, &RunFilter::default(), ALL).await;
    assert_eq!(others.unwrap(), [], "by the index of other tenants");
    let reaches = runs[2].stretch.map(|stretch| stretch.last);
    assert_eq!(reaches, Some(slot(119)));
    assert_eq!(store.count_live().await.unwrap(), 1);
    drop(store);
    assert_eq!(version_of(&folder.path().join(FILE)), NEWEST);
}

#[tokio::test]
async fn zones_of_an_earlier_version_are_to_be_followed_again() {
    let folder = folder();
    drop(version_1(folder.path()));
    let store = open(folder.path()).unwrap();
    let changed = store.rules_changed().await.unwrap();
    let [Rule::Zone { name, .. }] = &changed[..] else {
        panic!("{changed:?}")
    };
    assert_eq!(name, "Europe/Berlin");
    let under = store.jobs_under(&changed[0], None, 10).await.unwrap();
    let under: Vec<_> = under.into_iter().map(|(_, job)| job).collect();
    assert_eq!(under, [id(1), id(2)]);
    store.rule_applied(&changed[0]).await.unwrap();
    assert_eq!(store.rules_changed().await.unwrap(), []);
}

#[tokio::test]
async fn calendars_that_were_there_are_found_by_their_zone() {
    let folder = folder();
    let conn = version_1(folder.path());
    for migration in &MIGRATIONS[1..4] {
        conn.execute_batch(migration.split(RANGE_PART).next().unwrap())
            .unwrap();
    }
    conn.execute_batch("DELETE FROM ranges; UPDATE zones SET digest = -1")
        .unwrap();
    conn.pragma_update(None, "user_version", 4).unwrap();
    // The second cannot be read, and is nobody's hindrance.
    let docs = [r#"{"note":"ö","zone":"Asia/Kolkata","dates":[]}"#, SPOILED];
    for (number, doc) in (1..).zip(docs) {
        let name = format!("calendar-{number}");
        conn.execute(
            "INSERT INTO calendars (tenant, name, version, applied, updated_at, doc) VALUES (0, ?1, 1, 1, 0, ?2)",
            params![name, doc.as_bytes()],
        )
        .unwrap();
        conn.execute(
            "INSERT INTO calendar_jobs (tenant, name, job) VALUES (0, ?1, ?2)",
            params![name, id(number).as_bytes()],
        )
        .unwrap();
    }
    drop(conn);
    let store = open(folder.path()).unwrap();
    let changed = store.rules_changed().await.unwrap();
    let names = changed.iter().filter_map(|rule| match rule {
        Rule::Zone { name, .. } => Some(name.as_str()),
        Rule::Calendar { .. } => None,
    });
    assert_eq!(names.collect::<Vec<_>>(), ["Asia/Kolkata", "Europe/Berlin"]);
    let under = store.jobs_under(&changed[0], None, 9).await.unwrap();
    assert_eq!(under, [(TenantId::DEFAULT, id(1))]);
    store.rule_applied(&changed[0]).await.unwrap();
    assert_eq!(store.rules_changed().await.unwrap(), changed[1..]);
}

#[tokio::test]
async fn a_partition_that_was_there_before_takes_what_is_new() {
    let folder = folder();
    drop(version_1(folder.path()));
    let store = open(folder.path()).unwrap();
    let me = TenantId::DEFAULT;
    let before = store.get_job(me, id(3)).await.unwrap().unwrap();
    let by = crate::conformance::someone();
    let (after, skipped) = before.paused(at(200), Some("lunch".to_owned()), &by);
    let (after, passed) = after.resumed(at(300), false, &by);
    assert_eq!((skipped.len(), passed.len()), (0, 1));
    let change = JobChange {
        before: before.into(),
        after: after.into(),
        skipped: passed.clone(),
        runs: RunsOfChange::Keep,
    };
    let changed = store.change_job(&change).await.unwrap();
    assert!(matches!(changed, JobChanged::Done { .. }), "{changed:?}");
    let slots = store.list_slots(me, id(3), at(0), at(SECOND + 1), 10).await;
    let slots = slots.unwrap();
    let entry = slots.iter().find(|run| run.note.is_some()).unwrap();
    assert_eq!(entry.slot, Some(passed[0].slots.first));
    assert_eq!(
        (entry.note.as_deref(), entry.actor.as_deref()),
        (Some("lunch"), Some("someone"))
    );
    assert!(slots.iter().all(|run| run.kind == RunKind::Slot));
    let ahead = RunId::for_slot(id(3), slot(120));
    assert!(slots.iter().any(|run| run.id == ahead), "it is alive");
    assert_eq!(slots.len(), 5, "the entry goes around it");
}

/// Whatever was read of a file of version 1 before can be read as it was.
#[track_caller]
fn is_version_1(path: &Path) {
    assert_eq!(version_of(path), 1);
    let conn = Connection::open(path).unwrap();
    let jobs: i64 = conn
        .query_row("SELECT count(*) FROM jobs", [], |row| row.get(0))
        .unwrap();
    assert_eq!(jobs, 6);
    for new in [
        "SELECT runs_made FROM jobs",
        "SELECT zone FROM defs",
        "SELECT * FROM calendars",
        &Partitions::sql(
            "SELECT note FROM history_{day}",
            Partitions::partition_of(RunId::least_at(at(FIRST))),
        ),
    ] {
        assert!(conn.prepare(new).is_err(), "{new}");
    }
}

#[test]
fn a_migration_that_fails_leaves_the_version_before() {
    let folder = folder();
    let path = folder.path().join(FILE);
    let conn = version_1(folder.path());
    // The last day cannot be changed: all that came before it is taken back.
    conn.execute("INSERT INTO ranges (day) VALUES (99999)", [])
        .unwrap();
    drop(conn);
    let Err(StoreError::Unusable(line)) = open(folder.path()) else {
        panic!("it was opened")
    };
    assert!(line.contains("history_99999"), "{line}");
    is_version_1(&path);
    let conn = Connection::open(&path).unwrap();
    conn.execute("DELETE FROM ranges WHERE day = 99999", [])
        .unwrap();
    drop(conn);
    drop(open(folder.path()).unwrap());
    assert_eq!(version_of(&path), NEWEST);
}

#[test]
fn a_crash_in_the_middle_of_a_migration_leaves_the_version_before() {
    let folder = folder();
    let conn = version_1(folder.path());
    // With next to no memory, what is not committed yet is in the log already.
    conn.pragma_update(None, "cache_size", 1).unwrap();
    conn.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let (once, range) = MIGRATIONS[1].split_once(RANGE_PART).unwrap();
    conn.execute_batch(once).unwrap();
    let day = Partitions::partition_of(RunId::least_at(at(FIRST)));
    conn.execute_batch(&range.replace("{day}", &day.to_string()))
        .unwrap();
    let crashed = super::super::tests::folder();
    for end in ["", "-wal"] {
        let name = format!("{FILE}{end}");
        fs::copy(folder.path().join(&name), crashed.path().join(&name)).unwrap();
    }
    drop(conn);
    is_version_1(&crashed.path().join(FILE));
    drop(open(crashed.path()).unwrap());
    assert_eq!(version_of(&crashed.path().join(FILE)), NEWEST);
}
