//! Files that hold keys: readable by their owner alone, whole or not there.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// Threads of one process do not write to one file.
static WRITTEN: AtomicU32 = AtomicU32::new(0);

/// Writes a line to a file that is not there yet, and makes its folder. Whole or not at all, never over another, and never
/// readable by others. Of several that do this at once, one is first, and the others get `AlreadyExists`.
pub(crate) fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let beside = folder.join(format!("{name}.{}.{number}", std::process::id()));
    let _left_behind = fs::remove_file(&beside);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)?;
    file.write_all(format!("{text}\n").as_bytes())?;
    file.sync_all()?;
    let linked = fs::hard_link(&beside, path);
    fs::remove_file(&beside)?;
    linked?;
    File::open(folder)?.sync_all()
}

/// Whether others than its owner may read or write it.
pub(crate) fn is_open_to_others(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.mode() & 0o077 != 0)
}
