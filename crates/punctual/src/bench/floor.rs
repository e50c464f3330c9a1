//! Floors: what a program reaches that does the same row writes by hand, or waits, or calls, and
//! nothing else. A workload is read as a ratio to its floor in the same run. Those of SQLite are
//! here, those of PostgreSQL in `floor_pg`.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine::{Clock, SystemClock};
use model::{Job, RunId, Timestamp};
use rusqlite::{Connection, params};
use store::sqlite::SqliteStore;

use super::figures::percentile;
use super::rig;
use crate::failure::Failure;

const BATCH: usize = 1_000;

fn failed(error: rusqlite::Error) -> Failure {
    Failure::refused(format!("the floor program failed: {error}"))
}

fn open(folder: &Path) -> Result<SqliteStore, Failure> {
    SqliteStore::open(folder, Arc::new(SystemClock)).map_err(rig::failed)
}

/// The store's own file, with the same durability, in other hands.
fn connect(folder: &Path) -> Result<Connection, Failure> {
    let conn = Connection::open(folder.join(store::sqlite::FILE)).map_err(failed)?;
    conn.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;
         PRAGMA wal_autocheckpoint = 4000;",
    )
    .map_err(failed)?;
    // As the store does: without it SQLite plans a statement again whenever a value is bound.
    conn.set_db_config(
        rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG,
        true,
    )
    .map_err(failed)?;
    Ok(conn)
}

/// Advance the job and insert the live run; then delete it and insert the history row: four row
/// writes a run, a thousand runs a commit, one writer.
pub(super) async fn drain(folder: &Path, count: usize) -> Result<f64, Failure> {
    let jobs = rig::overdue(count, &rig::no_op());
    let store = open(folder)?;
    rig::load(&store, &jobs).await?;
    drop(store);
    let mut conn = connect(folder)?;
    for day in days(&jobs) {
        make_range(&conn, day).map_err(failed)?;
    }
    let begun = rig::uptime();
    for chunk in jobs.chunks(BATCH) {
        fire(&mut conn, chunk).map_err(failed)?;
        settle(&mut conn, chunk).map_err(failed)?;
    }
    let took = rig::uptime().saturating_sub(begun);
    Ok(count as f64 / took.as_secs_f64())
}

fn fire(conn: &mut Connection, jobs: &[Arc<Job>]) -> rusqlite::Result<()> {
    let writing = conn.transaction()?;
    for job in jobs {
        let Some(slot) = job.next_slot else { continue };
        let at = slot.0.as_millis();
        writing
            .prepare_cached(
                "UPDATE jobs SET next_slot = NULL, due_at = NULL, slot_last = ?1, state = 2, state_at = ?1
                 WHERE id = ?2 AND version = 1 AND next_slot = ?1 AND state = 0",
            )?
            .execute(params![at, job.id.as_bytes()])?;
        writing
            .prepare_cached(
                "INSERT INTO live (id, job, tenant, kind, slot, due_at, lane, state, attempt, lost, version,
                                   claim, waiting)
                 VALUES (?1, ?2, 0, 0, NULL, ?3, 1, 0, 1, 0, 1, 1, 0)",
            )?
            .execute(params![RunId::for_slot(job.id, slot).as_bytes(), job.id.as_bytes(), at])?;
    }
    writing.commit()
}

fn make_range(conn: &Connection, day: i64) -> rusqlite::Result<()> {
    if conn.table_exists(None, format!("history_{day}").as_str())? {
        return Ok(());
    }
    conn.execute_batch(&store::sqlite::range_schema(day))
}

/// The days of history that the jobs' runs belong to.
fn days(jobs: &[Arc<Job>]) -> BTreeSet<i64> {
    jobs.iter()
        .filter_map(|job| job.next_slot)
        .map(|slot| day(slot.0))
        .collect()
}

fn day(moment: Timestamp) -> i64 {
    moment.as_millis().div_euclid(86_400_000)
}

fn insert_history(day: i64) -> String {
    format!(
        "INSERT INTO history_{day} (id, job, tenant, kind, slot, due_at, lane, state, attempt, lost,
                                    version, dispatched_at, settled_at, outcome)
         VALUES (?1, ?2, 0, 0, NULL, ?3, 1, 3, 1, 0, 1, ?3, ?3, 0)"
    )
}

fn settle(conn: &mut Connection, jobs: &[Arc<Job>]) -> rusqlite::Result<()> {
    let writing = conn.transaction()?;
    let mut insert = (i64::MIN, String::new());
    for job in jobs {
        let Some(slot) = job.next_slot else { continue };
        if insert.0 != day(slot.0) {
            insert = (day(slot.0), insert_history(day(slot.0)));
        }
        let run = RunId::for_slot(job.id, slot);
        writing
            .prepare_cached("DELETE FROM live WHERE id = ?1 AND claim = 1 AND attempt = 1")?
            .execute(params![run.as_bytes()])?;
        writing.prepare_cached(&insert.1)?.execute(params![
            run.as_bytes(),
            job.id.as_bytes(),
            slot.0.as_millis()
        ])?;
    }
    writing.commit()
}

/// Job rows, `batch` to a commit.
pub(super) fn insert_jobs(folder: &Path, batch: usize, count: usize) -> Result<f64, Failure> {
    drop(open(folder)?);
    let due_at = rig::now().plus(Duration::from_secs(3_600));
    let mut jobs: Vec<_> = (0..count)
        .map(|_| rig::one_off(due_at, rig::no_op()))
        .collect();
    // In the order of their keys, which is what the table takes best.
    jobs.sort_by_key(|job| job.id);
    let mut conn = connect(folder)?;
    let begun = rig::uptime();
    for chunk in jobs.chunks(batch) {
        insert(&mut conn, chunk).map_err(failed)?;
    }
    let took = rig::uptime().saturating_sub(begun);
    Ok(count as f64 / took.as_secs_f64())
}

fn insert(conn: &mut Connection, jobs: &[Arc<Job>]) -> rusqlite::Result<()> {
    let writing = conn.transaction()?;
    for job in jobs {
        let at = job.next_slot.map(|slot| slot.0.as_millis());
        let made = job.created_at.as_millis();
        writing
            .prepare_cached(
                "INSERT INTO jobs (id, tenant, state, version, next_slot, due_at, state_at)
                 VALUES (?1, 0, 0, 1, ?2, ?2, ?3)",
            )?
            .execute(params![job.id.as_bytes(), at, made])?;
        writing
            .prepare_cached(
                "INSERT INTO defs (id, tenant, gone, created_at, updated_at, doc, payload)
                 VALUES (?1, 0, 0, ?2, ?2, ?3, ?4)",
            )?
            .execute(params![
                job.id.as_bytes(),
                made,
                DOC,
                job.def.payload.as_deref()
            ])?;
    }
    writing.commit()
}

/// About what a stored definition takes.
pub(super) const DOC: &[u8] =
    br#"{"at":1798138800000,"target":{"http":{"url":"http://127.0.0.1:9/hook"}}}"#;

/// How late a bare alarm rings, in milliseconds: the middle and the 99th of a hundred.
pub(super) async fn timer(apart: Duration, count: u32) -> Result<(f64, f64), Failure> {
    let clock = SystemClock;
    let mut alarm = clock
        .alarm()
        .map_err(|error| Failure::refused(format!("cannot make a timer: {error}")))?;
    let first = rig::now().plus(Duration::from_millis(50));
    let mut late = Vec::with_capacity(count as usize);
    for number in 0..count {
        let moment = first.plus(apart.saturating_mul(number));
        while rig::now() < moment {
            alarm.wait(moment).await;
        }
        late.push((clock.now_micros() - moment.as_millis() * 1_000) as f64 / 1e3);
    }
    Ok((percentile(&mut late, 50.0), percentile(&mut late, 99.0)))
}
