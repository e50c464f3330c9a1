//! Memory is bounded by bytes, however large the payloads of what is due are.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;

use super::process::memory_most;
use super::world::{HEAD_START, Planned, create, now, pause};
use crate::support::{Answer, Receiver, Server, wait_within};

const PAYLOAD: usize = 200 * 1024;

/// How many jobs are due: 2,000, or as many as `MEMORY_JOBS` says (200 KiB of disk each), and the most KiB that a
/// server may take for them.
fn scale() -> (usize, u64) {
    match std::env::var("MEMORY_JOBS") {
        Ok(count) => (count.parse().expect("MEMORY_JOBS is a number"), 400 * 1024),
        Err(_) => (2_000, 250 * 1024),
    }
}

/// Makes so many jobs out of the one in a folder that nobody serves.
fn multiply(folder: &Path, count: usize) {
    let database = Connection::open(folder.join("punctual.db")).unwrap();
    database
        .execute_batch(&format!(
            "CREATE TEMP TABLE ids AS
             WITH n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) SELECT randomblob(16) AS id FROM n"
        ))
        .unwrap();
    for table in ["jobs", "defs"] {
        let names = "SELECT group_concat(name) FROM pragma_table_info(?1) WHERE name <> 'id'";
        let names: String = database
            .query_row(names, [table], |row| row.get(0))
            .unwrap();
        let copy = format!(
            "INSERT INTO {table} (id, {names}) SELECT ids.id, {names} FROM temp.ids, {table} ORDER BY ids.id"
        );
        database.execute_batch(&copy).unwrap();
    }
}

/// Before, a page of plan alone had all of them in memory.
#[test]
fn many_large_payloads_due_at_once_take_little_memory() {
    let (count, most) = scale();
    let folder = TempDir::new().unwrap();
    let arrived = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&arrived);
    let receiver = Receiver::forgetting(move |delivery| {
        assert_eq!(delivery.body.len(), PAYLOAD);
        seen.fetch_add(1, Ordering::SeqCst);
        Answer::ok()
    });
    let due_at = now() + HEAD_START.as_millis() as i64;
    let payload = json!("x".repeat(PAYLOAD - 2));
    let job = Planned::one_off(due_at, &receiver.url("/")).with("payload", payload);
    let server = Server::start_in(folder.path(), &["--hold"]);
    create(&server.http(), &mut [job]);
    assert_eq!(server.stop().code(), Some(0));
    multiply(folder.path(), count);
    pause(Duration::from_millis(
        due_at.abs_diff(now()).min(HEAD_START.as_millis() as u64),
    ));

    let server = Server::start_in(folder.path(), &[]);
    wait_within(300, "every delivery", || {
        (arrived.load(Ordering::SeqCst) >= count).then_some(())
    });
    let used = memory_most(&server);
    assert!(used < most, "{used} KiB for {count} jobs");
    eprintln!("{used} KiB for {count} jobs");
    assert_eq!(server.stop().code(), Some(0));
}
