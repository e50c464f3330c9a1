//! Backup: a whole copy of the database in one file, while it is being served. One snapshot is read
//! throughout, so the copy is of one moment and nobody's writes can make it start over.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::fault::Done;
use super::open::{check_file, file_of};
use crate::StoreError;

/// Pages copied between two reports of progress.
const STEP_PAGES: i32 = 1_024;
/// How long another writer may hold the file before we give up; in the log's mode it never does.
const BUSY_MAX: Duration = Duration::from_secs(10);

/// Copies the database of a data folder, or a database file, to a new file; `progress` is passed pages
/// done and in all. Answers the bytes written. An existing file is never overwritten, and a copy that
/// fails is removed.
pub fn backup(
    from: &Path,
    to: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<u64, StoreError> {
    let from = file_of(from);
    if !from.is_file() {
        let text = format!("there is no database at {}", from.display());
        return Err(StoreError::Unusable(text));
    }
    check_file(&from)?;
    let refused = |error: std::io::Error| {
        StoreError::Unusable(format!("{} cannot be written: {error}", to.display()))
    };
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to)
        .map_err(refused)?;
    let copied = copy(&from, to, progress)
        .map_err(StoreError::from)
        .and_then(|()| keep(&file, to).map_err(refused));
    if copied.is_err() {
        // The failure is what the caller has to know; a leftover that cannot be removed adds nothing.
        let _left = std::fs::remove_file(to);
    }
    copied
}

fn copy(from: &Path, to: &Path, progress: &mut dyn FnMut(u64, u64)) -> Done<()> {
    let source = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    source.busy_timeout(BUSY_MAX)?;
    let mut target = Connection::open(to)?;
    // The file is synced once, at the end; if we crash before, it is no backup anyway.
    target.pragma_update_and_check(None, "journal_mode", "off", |_| Ok(()))?;
    target.pragma_update(None, "synchronous", "off")?;
    let snapshot = source.unchecked_transaction()?;
    snapshot.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    let backup = Backup::new(&source, &mut target)?;
    loop {
        let step = backup.step(STEP_PAGES)?;
        let (left, all) = (backup.progress().remaining, backup.progress().pagecount);
        progress(
            (all - left).max(0).unsigned_abs().into(),
            all.max(0).unsigned_abs().into(),
        );
        match step {
            StepResult::Done => break,
            StepResult::More => {}
            StepResult::Busy | StepResult::Locked | _ => {
                return Err(StoreError::unavailable("the database is busy").into());
            }
        }
    }
    drop(backup);
    drop(snapshot);
    Ok(())
}

/// The copy, and the folder's word for it, reach the disk.
fn keep(file: &File, path: &Path) -> std::io::Result<u64> {
    file.sync_all()?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(file.metadata()?.len())
}
