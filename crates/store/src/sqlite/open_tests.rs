use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use model::TenantId;
use rusqlite::Connection;

use super::super::tests::{folder, new, open};
use super::super::{SqliteStore, backup};
use super::*;
use crate::conformance::{at, job};
use crate::{ClientStore, Page};

/// A folder with a database that has been used and closed.
async fn used() -> tempfile::TempDir {
    let folder = folder();
    let store = open(folder.path()).unwrap();
    let rows: Vec<_> = (0..200).map(|number| new(job(number).unwrap())).collect();
    store.create_jobs(&rows).await.unwrap();
    folder
}

/// Refused in one line that says this, and not a byte of the file is changed.
#[track_caller]
fn refused(folder: &Path, says: &str) {
    let path = folder.join(FILE);
    let before = fs::read(&path).unwrap();
    let Err(StoreError::Unusable(line)) = open(folder) else {
        panic!("it was opened")
    };
    assert!(line.contains(says), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(fs::read(&path).unwrap() == before, "the file was changed");
}

#[test]
fn a_file_that_is_not_a_database_is_refused_and_left_alone() {
    let folder = folder();
    fs::write(folder.path().join(FILE), b"dear diary").unwrap();
    refused(folder.path(), "is not a punctual database");
}

#[test]
fn a_database_of_someone_else_is_refused_and_left_alone() {
    let folder = folder();
    let other = Connection::open(folder.path().join(FILE)).unwrap();
    other.execute_batch("CREATE TABLE jobs (id)").unwrap();
    drop(other);
    refused(folder.path(), "is not a punctual database");
}

#[tokio::test]
async fn a_newer_database_is_refused_and_left_alone() {
    let folder = used().await;
    let newer = Connection::open(folder.path().join(FILE)).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    drop(newer);
    refused(folder.path(), "was written by a newer punctual (schema 99");
}

#[tokio::test]
async fn a_newer_schema_that_is_still_in_the_log_is_refused_too() {
    let folder = used().await;
    let path = folder.path().join(FILE);
    let newer = Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    // The log stays while another connection has the file, as it does after a crash.
    let copy = super::super::tests::folder();
    for end in ["", "-wal"] {
        let name = format!("{FILE}{end}");
        fs::copy(folder.path().join(&name), copy.path().join(&name)).unwrap();
    }
    refused(copy.path(), "was written by a newer punctual");
}

#[tokio::test]
async fn a_damaged_database_is_refused_and_left_alone() {
    let folder = used().await;
    let path = folder.path().join(FILE);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    refused(folder.path(), "is damaged: its end is missing");
    let mut garbled = whole.clone();
    garbled[4096..].fill(0x5a);
    fs::write(&path, &garbled).unwrap();
    refused(folder.path(), "is damaged");
    let mut garbled = whole.clone();
    garbled[100..4096].fill(0x5a);
    fs::write(&path, &garbled).unwrap();
    refused(folder.path(), "is damaged");
    fs::write(&path, &whole).unwrap();
    let store = open(folder.path()).unwrap();
    assert!(
        store
            .get_job(TenantId::DEFAULT, job(7).unwrap().id)
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test]
async fn a_crash_while_the_log_was_moved_into_the_file_is_recovered() {
    let folder = folder();
    let store = open(folder.path()).unwrap();
    let rows: Vec<_> = (0..200).map(|number| new(job(number).unwrap())).collect();
    store.create_jobs(&rows).await.unwrap();
    let copy = super::super::tests::folder();
    for end in ["", "-wal"] {
        let name = format!("{FILE}{end}");
        fs::copy(folder.path().join(&name), copy.path().join(&name)).unwrap();
    }
    // The first page had arrived, and says how long the file was going to be.
    let mut bytes = fs::read(copy.path().join(FILE)).unwrap();
    bytes[28..32].copy_from_slice(&10_000_u32.to_be_bytes());
    fs::write(copy.path().join(FILE), bytes).unwrap();
    let store = open(copy.path()).unwrap();
    for number in 0..200 {
        let id = job(number).unwrap().id;
        assert!(
            store
                .get_job(TenantId::DEFAULT, id)
                .await
                .unwrap()
                .is_some(),
            "{number}"
        );
    }
}

#[test]
fn a_crash_while_the_file_was_made_leaves_one_that_can_be_made_again() {
    let folder = folder();
    let path = folder.path().join(FILE);
    fs::write(&path, [0; 4096]).unwrap();
    // What SQLite leaves when the first transaction was cut short: a journal of an empty file.
    let mut journal = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7".to_vec();
    for word in [0_u32, 7, 0, 512, 4096] {
        journal.extend(word.to_be_bytes());
    }
    journal.resize(512, 0);
    fs::write(folder.path().join(format!("{FILE}-journal")), journal).unwrap();
    drop(open(folder.path()).unwrap());
    drop(open(folder.path()).unwrap());
}

#[test]
fn a_folder_that_cannot_be_made_is_refused_in_one_line() {
    let folder = folder();
    fs::write(folder.path().join("file"), b"").unwrap();
    let Err(StoreError::Unusable(line)) = open(&folder.path().join("file/data")) else {
        panic!("it was opened")
    };
    assert!(line.contains("cannot be made"), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
}

#[test]
fn a_new_folder_belongs_to_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let data = folder.path().join("a/b");
    drop(open(&data).unwrap());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (
            mode(&data),
            mode(&data.join(FILE)),
            mode(&data.join("lock"))
        ),
        (0o700, 0o600, 0o600)
    );
}

#[tokio::test]
async fn closing_in_good_order_leaves_one_file() {
    let folder = used().await;
    let names = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, ["lock", FILE]);
}

/// Two jobs in one commit, over and over: a copy has both or neither.
async fn write_pairs(store: Arc<SqliteStore>, stop: Arc<AtomicBool>) {
    for number in 100..=u8::MAX {
        let pair = [1, 2].map(|secs| {
            let mut job = job(number).unwrap();
            job.id = model::JobId::new(at(secs), [number; 10]);
            new(job)
        });
        store.create_jobs(&pair).await.unwrap();
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_of_one_moment_while_others_write() {
    let folder = folder();
    let store = Arc::new(open(folder.path()).unwrap());
    for number in 0..100 {
        store
            .create_jobs(&[new(job(number).unwrap())])
            .await
            .unwrap();
    }
    let stop = Arc::new(AtomicBool::new(false));
    let writing = tokio::spawn(write_pairs(store.clone(), stop.clone()));
    let copy = super::super::tests::folder();
    let target = copy.path().join(FILE);
    let mut reported = Vec::new();
    let bytes = backup(folder.path(), &target, &mut |done, all| {
        reported.push((done, all))
    })
    .unwrap();
    stop.store(true, Ordering::Relaxed);
    writing.await.unwrap();
    assert_eq!(bytes, fs::metadata(&target).unwrap().len());
    assert!(
        reported
            .last()
            .is_some_and(|(done, all)| done == all && *all > 0),
        "{reported:?}"
    );
    let restored = open(copy.path()).unwrap();
    let page = Page {
        before: None,
        limit: 1_000,
    };
    let jobs = restored
        .list_jobs(TenantId::DEFAULT, &Default::default(), page)
        .await
        .unwrap();
    assert!(
        jobs.len() >= 100 && jobs.len().is_multiple_of(2),
        "{}",
        jobs.len()
    );
}

#[test]
fn a_backup_never_overwrites_a_file() {
    let folder = folder();
    drop(open(folder.path()).unwrap());
    let target = folder.path().join("copy.db");
    fs::write(&target, b"dear diary").unwrap();
    let refused = backup(folder.path(), &target, &mut |_, _| {});
    assert!(
        matches!(refused, Err(StoreError::Unusable(_))),
        "{refused:?}"
    );
    assert_eq!(fs::read(&target).unwrap(), b"dear diary");
}

#[test]
fn a_backup_that_fails_leaves_nothing_behind() {
    let folder = folder();
    fs::write(folder.path().join(FILE), b"dear diary").unwrap();
    let target = folder.path().join("copy.db");
    assert!(backup(folder.path(), &target, &mut |_, _| {}).is_err());
    assert!(!target.exists());
    let nowhere = backup(&folder.path().join("nothing"), &target, &mut |_, _| {});
    assert!(matches!(nowhere, Err(StoreError::Unusable(line)) if line.contains("no database")));
}
