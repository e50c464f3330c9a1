//! Data that a server must not start on, and must not touch either.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::unistd::Uid;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tempfile::TempDir;

use super::disk::Disk;
use super::world::{Planned, create, now};
use crate::cli::fails;
use crate::support::{Server, punctual};

/// A folder that has been served, with enough in it to be worth keeping.
fn served() -> TempDir {
    let folder = TempDir::new().unwrap();
    let server = Server::start_in(folder.path(), &[]);
    let mut jobs: Vec<Planned> = (0..500)
        .map(|n| Planned::one_off(now() + 3_600_000 + n, "http://127.0.0.1:9/"))
        .collect();
    create(&server.http(), &mut jobs);
    assert_eq!(server.stop().code(), Some(0));
    folder
}

/// The database and its log, byte for byte. The lock and the shared memory are not data.
fn data(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.ends_with("lock") && !path.ends_with("punctual.db-shm"))
        .map(|path| (path.display().to_string(), fs::read(&path).unwrap()))
        .filter(|(_, bytes)| !bytes.is_empty())
        .collect();
    files.sort();
    files
}

/// One line, code 2, and not a byte changed; run twice, because a first try may leave something behind.
#[track_caller]
fn is_refused_untouched(folder: &Path, says: &str) {
    let before = data(folder);
    for _ in 0..2 {
        let line = format!("serve --listen 127.0.0.1:0 --data {}", folder.display());
        let output = punctual(&line);
        fails(&output, 2, &[folder.to_str().unwrap(), says]);
        assert!(data(folder) == before, "the data was changed");
    }
}

#[test]
fn a_database_overwritten_with_noise_is_refused_untouched() {
    let folder = served();
    let database = folder.path().join("punctual.db");
    let mut bytes = fs::read(&database).unwrap();
    let mut random = StdRng::seed_from_u64(7);
    // From its first byte, or behind a header that looks well.
    for begin in [0, 100] {
        random.fill_bytes(&mut bytes[begin..]);
        if begin > 0 {
            bytes[..begin]
                .copy_from_slice(&fs::read(served().path().join("punctual.db")).unwrap()[..begin]);
        }
        fs::write(&database, &bytes).unwrap();
        is_refused_untouched(folder.path(), "punctual.db");
    }
}

#[test]
fn a_database_that_was_cut_short_is_refused_untouched() {
    let folder = served();
    let database = folder.path().join("punctual.db");
    let length = fs::metadata(&database).unwrap().len();
    for left in [length - 1, length / 2, 4_096, 100, 50, 1] {
        File::options()
            .write(true)
            .open(&database)
            .unwrap()
            .set_len(left)
            .unwrap();
        is_refused_untouched(folder.path(), "punctual.db");
    }
}

#[test]
fn a_newer_database_is_refused_untouched() {
    let folder = served();
    let database = rusqlite::Connection::open(folder.path().join("punctual.db")).unwrap();
    database.pragma_update(None, "user_version", 99).unwrap();
    // First while the number is in the log only, then when it is in the file.
    is_refused_untouched(folder.path(), "newer");
    database
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    is_refused_untouched(folder.path(), "newer");
    drop(database);
    is_refused_untouched(folder.path(), "newer");
}

#[test]
fn a_database_of_somebody_else_is_refused_untouched() {
    let folder = TempDir::new().unwrap();
    let database = rusqlite::Connection::open(folder.path().join("punctual.db")).unwrap();
    database
        .execute_batch("CREATE TABLE jobs (id INTEGER); INSERT INTO jobs VALUES (1)")
        .unwrap();
    drop(database);
    is_refused_untouched(folder.path(), "punctual.db");
}

#[test]
fn a_folder_that_cannot_be_written_is_refused() {
    // Nothing stops root but a disk that is read-only.
    if Uid::effective().is_root() {
        let Some(disk) = Disk::mount("ro") else {
            return;
        };
        is_refused_untouched(disk.path(), "cannot be written");
    } else {
        let folder = TempDir::new().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o500)).unwrap();
        is_refused_untouched(folder.path(), "cannot be written");
    }
}
