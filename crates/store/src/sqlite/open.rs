//! Opening the file: it must be ours, whole, not newer than we are, and nobody else's at the moment.
//! A file that is refused is left as it was, byte for byte.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::archive::Partitions;
use super::fault::{Done, Fault};
use super::tenants::index_default;
use crate::StoreError;

/// `PRAGMA application_id`: "Pnct".
const APPLICATION_ID: i32 = 0x506e_6374;
/// Migrations in order; the file's `user_version` says how many it has had.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_init.sql"),
    include_str!("migrations/0002_time.sql"),
    include_str!("migrations/0003_fleet.sql"),
    include_str!("migrations/0004_late.sql"),
    include_str!("migrations/0005_calendar_zones.sql"),
    include_str!("migrations/0006_retention.sql"),
    include_str!("migrations/0007_levels.sql"),
    include_str!("migrations/0008_manual_runs.sql"),
    include_str!("migrations/0009_keys.sql"),
    include_str!("migrations/0010_tenants.sql"),
    include_str!("migrations/0011_audit.sql"),
    include_str!("migrations/0012_secrets.sql"),
    include_str!("migrations/0013_owner.sql"),
    include_str!("migrations/0014_quotas.sql"),
    include_str!("migrations/0015_tenant_delete.sql"),
    include_str!("migrations/0016_job_versions.sql"),
    include_str!("migrations/0017_worker_keys.sql"),
    include_str!("migrations/0018_waiting.sql"),
    include_str!("migrations/0019_runs_day.sql"),
    include_str!("migrations/0020_replays.sql"),
    include_str!("migrations/0021_users.sql"),
    include_str!("migrations/0022_rollups.sql"),
    include_str!("migrations/0023_handed.sql"),
    include_str!("migrations/0024_failures.sql"),
    include_str!("migrations/0025_tenant_runs.sql"),
    include_str!("migrations/0026_default_tenant.sql"),
    include_str!("migrations/0027_steps.sql"),
    include_str!("migrations/0028_open_jobs.sql"),
    include_str!("migrations/0029_alerts.sql"),
    include_str!("migrations/0030_once.sql"),
    include_str!("migrations/0031_owners.sql"),
    include_str!("migrations/0032_low_water.sql"),
];
/// What follows this line in a migration is done to the table of every day.
const RANGE_PART: &str = "-- For every day of history:\n";
pub const FILE: &str = "punctual.db";

/// Statements kept prepared: more than there are files of SQL, with some days of history.
const STATEMENTS_MAX: usize = 256;
/// Page caches, in KiB. The writer's holds the hot part of a million jobs.
const WRITER_CACHE_KIB: i64 = 64 * 1024;
const READER_CACHE_KIB: i64 = 8 * 1024;
/// Pages in the log before the writer moves them into the file.
const CHECKPOINT_PAGES: i64 = 4_000;

/// What the log keeps of its room when it starts again.
const LOG_BYTES_MAX: i64 = 64 * 1024 * 1024;

fn unusable(text: String) -> StoreError {
    StoreError::Unusable(text)
}

/// The folder, made if need be, and the proof that nobody else serves it.
pub(super) fn lock_folder(folder: &Path) -> Result<Flock<File>, StoreError> {
    let shown = folder.display();
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| unusable(format!("the folder {shown} cannot be made: {error}")))?;
    let path = folder.join("lock");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(|error| unusable(format!("{} cannot be written: {error}", path.display())))?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(mut lock) => {
            write_pid(&mut lock).map_err(|error| {
                unusable(format!("{} cannot be written: {error}", path.display()))
            })?;
            Ok(lock)
        }
        Err((mut file, _)) => {
            let mut pid = String::new();
            // The number only helps whoever reads the message; without it there is still the fact.
            let _unread = file.read_to_string(&mut pid);
            let pid: String = pid
                .trim()
                .chars()
                .filter(char::is_ascii_digit)
                .take(10)
                .collect();
            let holder = if pid.is_empty() {
                String::new()
            } else {
                format!(" (process {pid})")
            };
            Err(StoreError::InUse(format!(
                "{shown} is in use by another punctual serve{holder}"
            )))
        }
    }
}

fn write_pid(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    write!(file, "{}", std::process::id())
}

/// Looks at a file without changing it. An empty one, or none, is fine: it is to be made.
pub(super) fn check_file(path: &Path) -> Result<(), StoreError> {
    let shown = path.display();
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unusable(format!("{shown} cannot be read: {error}"))),
    };
    let length = file.metadata().map_or(0, |data| data.len());
    if length == 0 {
        return Ok(());
    }
    if is_there(path, "-journal") {
        // A crash while the file was being made: only a connection that writes can clear it up.
        return Ok(());
    }
    let mut header = [0; 100];
    let ours = file.read_exact(&mut header).is_ok()
        && header.starts_with(b"SQLite format 3\0")
        && number(&header, 68) == APPLICATION_ID.cast_unsigned();
    if !ours {
        return Err(unusable(format!("{shown} is not a punctual database")));
    }
    refuse_newer(path, i64::from(number(&header, 60)))?;
    let page = match u64::from(number(&header, 16) >> 16) {
        1 => 65_536,
        bytes => bytes,
    };
    // After a crash in the middle of moving the log into the file, the rest is still in the log.
    if page * u64::from(number(&header, 28)) > length && !is_there(path, "-wal") {
        return Err(unusable(format!("{shown} is damaged: its end is missing")));
    }
    drop(file);
    check_readable(path)
}

/// Whether a file of SQLite's lies beside the database, with something in it.
fn is_there(path: &Path, end: &str) -> bool {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    std::fs::metadata(PathBuf::from(name)).is_ok_and(|data| data.len() > 0)
}

fn number(header: &[u8; 100], at: usize) -> u32 {
    let bytes = header
        .get(at..at + 4)
        .and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u32::from_be_bytes)
}

fn refuse_newer(path: &Path, version: i64) -> Result<(), StoreError> {
    let known = MIGRATIONS.len();
    if version > known as i64 {
        let shown = path.display();
        return Err(unusable(format!(
            "{shown} was written by a newer punctual (schema {version}, this one knows {known}): use that version"
        )));
    }
    Ok(())
}

/// What only SQLite can see: a newer schema that is still in the log, and tables that cannot be read.
/// The connection cannot write.
fn check_readable(path: &Path) -> Result<(), StoreError> {
    let damaged = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => {
            Err(unusable(format!("{} is damaged: {error}", path.display())))
        }
        // Such as the leftovers of a crash that only a connection that writes can clear up.
        Some(_) | None => Ok(()),
    };
    let conn = match Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY) {
        Ok(conn) => conn,
        Err(error) => return damaged(error),
    };
    match conn.query_row("PRAGMA user_version", [], |row| row.get(0)) {
        Ok(version) => refuse_newer(path, version)?,
        Err(error) => return damaged(error),
    }
    match peek(&conn) {
        Ok(()) => Ok(()),
        Err(error) => damaged(error),
    }
}

/// Reads an end of every table and index: enough to notice a file that was overwritten, cheap for any size.
fn peek(conn: &Connection) -> rusqlite::Result<()> {
    let mut select = conn.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
    let tables = select
        .query_map([], |row| row.get(0))?
        .collect::<Result<Vec<String>, _>>()?;
    for table in tables {
        let quoted = table.replace('"', "\"\"");
        let mut first = conn.prepare(&format!("SELECT * FROM \"{quoted}\" LIMIT 1"))?;
        first.exists([])?;
    }
    Ok(())
}

/// The connection that writes, with the schema as we know it.
pub(super) fn open_writer(path: &Path) -> Result<Connection, StoreError> {
    let shown = path.display();
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|error| unusable(format!("{shown} cannot be written: {error}")))?;
    let refused = |fault: Fault| {
        let error = StoreError::from(fault);
        if matches!(error, StoreError::Full) {
            return error;
        }
        let cause =
            std::error::Error::source(&error).map_or(error.to_string(), ToString::to_string);
        unusable(format!("{shown} cannot be opened: {cause}"))
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)
        .map_err(Fault::from)
        .map_err(refused)?;
    prepare_writer(&conn).map_err(refused)?;
    Ok(conn)
}

fn prepare_writer(conn: &Connection) -> Done<()> {
    settle_in(conn, WRITER_CACHE_KIB)?;
    migrate(conn)?;
    index_default(conn)?;
    // Only now: until the first schema is committed, a crash leaves an empty file.
    conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    conn.pragma_update(None, "synchronous", "full")?;
    conn.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    // A log that grew while a backup was read gives its room back.
    conn.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES_MAX, |_| Ok(()))?;
    Ok(())
}

pub(super) fn migrate(conn: &Connection) -> Done<()> {
    let had: u32 = conn.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let id: i32 = conn.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables > 0 && id != APPLICATION_ID {
        return Err(unusable("it is not a punctual database".to_owned()).into());
    }
    if had == 0 {
        conn.pragma_update(None, "page_size", 4096)?;
    }
    for (index, migration) in MIGRATIONS.iter().enumerate().skip(had as usize) {
        conn.execute_batch("BEGIN EXCLUSIVE")?;
        let made = migrate_to(conn, index as i64 + 1, migration);
        if let Err(fault) = made {
            if !conn.is_autocommit() {
                conn.execute_batch("ROLLBACK")?;
            }
            return Err(fault);
        }
    }
    Ok(())
}

/// One migration, in the transaction that has begun: all of it, or nothing.
fn migrate_to(conn: &Connection, version: i64, migration: &'static str) -> Done<()> {
    let (once, range) = match migration.split_once(RANGE_PART) {
        Some((once, range)) => (once, Some(range)),
        None => (migration, None),
    };
    conn.execute_batch(once)?;
    if let Some(range) = range {
        // As every version has it.
        let mut select = conn.prepare("SELECT day FROM ranges")?;
        let days: Vec<i64> = select
            .query_map([], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        for day in days {
            conn.execute_batch(&Partitions::sql(range, day))?;
        }
    }
    conn.pragma_update(None, "application_id", APPLICATION_ID)?;
    conn.pragma_update(None, "user_version", version)?;
    conn.execute_batch("COMMIT")?;
    Ok(())
}

/// A connection that cannot write. It sees whatever was committed before a read begins.
pub(super) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || -> Done<Connection> {
        let conn = Connection::open_with_flags(path, flags)?;
        settle_in(&conn, READER_CACHE_KIB)?;
        Ok(conn)
    };
    open().map_err(|fault| {
        let error = StoreError::from(fault);
        unusable(format!("{} cannot be read: {error}", path.display()))
    })
}

fn settle_in(conn: &Connection, cache_kib: i64) -> Done<()> {
    conn.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    conn.busy_timeout(Duration::from_secs(5))?;
    // Plans depend on the statement alone. Without this, SQLite looks at bound values to choose among partial
    // indexes, and prepares the statement again after every bind: half of all time.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.pragma_update(None, "cache_size", -cache_kib)?;
    conn.pragma_update(None, "foreign_keys", false)?;
    conn.pragma_update(None, "temp_store", "memory")?;
    conn.pragma_update_and_check(None, "mmap_size", 0, |_| Ok(()))?;
    conn.pragma_update_and_check(None, "secure_delete", "off", |_| Ok(()))?;
    Ok(())
}

/// The database behind a path that people give: a folder of ours, or the file itself.
pub(super) fn file_of(path: &Path) -> PathBuf {
    if path.is_dir() {
        path.join(FILE)
    } else {
        path.to_owned()
    }
}

#[cfg(test)]
#[path = "open_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "migrate_tests.rs"]
mod migrate_tests;
