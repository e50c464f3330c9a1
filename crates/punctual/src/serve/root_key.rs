//! The first key of a store. It is made when no root key is valid, by one node however many start at once, and kept in
//! `root.key` of the data folder, from where commands on this machine take it.
//!
//! The file is written before the store: whatever comes in between, the next start finds the key in the file and uses
//! that one.

use std::fs;
use std::path::{Path, PathBuf};

use model::{AccessKey, Role, TenantId, Timestamp};
use server::{Access, Minted};
use store::{Store, StoreError};
use tracing::{info, warn};

use crate::cli::output;
use crate::config::LogFormat;
use crate::private_file;

const FILE: &str = "root.key";

/// Where a folder keeps its key.
pub(crate) fn path(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// What the file holds, if it can be read.
pub(crate) fn read(folder: &Path) -> Option<String> {
    let text = fs::read_to_string(path(folder)).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Sees to it that somebody can open the store.
pub(crate) async fn ensure(
    folder: &Path,
    format: LogFormat,
    store: &dyn Store,
    access: &Access,
    now: Timestamp,
) -> Result<(), StoreError> {
    if access.has_root(now) {
        return Ok(());
    }
    let (minted, is_new) = match found(folder, store, now).await? {
        Some(minted) => (minted, false),
        None => make(folder, now),
    };
    let is_first = store.access().create_first_key(&minted.key).await?;
    access.refresh().await?;
    if is_first {
        announce(folder, format, &minted.text);
    } else if is_new && !is_valid(store, &minted, now).await? {
        forget(folder, &minted.text);
    }
    Ok(())
}

/// The key in the file, if the store has never seen it: a start before this one left it, or one at the same time. One that
/// can never open the store goes.
async fn found(
    folder: &Path,
    store: &dyn Store,
    now: Timestamp,
) -> Result<Option<Minted>, StoreError> {
    let Some(text) = read(folder) else {
        return Ok(None);
    };
    let minted = Minted::read(&text, Role::Root, now);
    let stands = match &minted {
        Some(minted) => stands(store, minted).await?,
        None => None,
    };
    match (minted, stands) {
        (Some(minted), None) => Ok(Some(minted)),
        // A node that shares the folder has just been first.
        (_, Some(stands)) if stands.is_valid(now) => Ok(None),
        (None, _) | (_, Some(_)) => {
            forget(folder, &text);
            Ok(None)
        }
    }
}

async fn stands(store: &dyn Store, minted: &Minted) -> Result<Option<AccessKey>, StoreError> {
    let key = &minted.key;
    store.access().get_key(key.tenant, key.id).await
}

/// Whether the store has it: a node that shares the folder may have taken it from the file and been first with it.
async fn is_valid(store: &dyn Store, minted: &Minted, now: Timestamp) -> Result<bool, StoreError> {
    let stands = stands(store, minted).await?;
    Ok(stands.is_some_and(|stands| stands.is_valid(now)))
}

/// A new key, and whether it is in the file: another node that shares the folder may be faster, and then it is that
/// node's. Without a file there is still what is printed.
fn make(folder: &Path, now: Timestamp) -> (Minted, bool) {
    let minted = Minted::new(TenantId::DEFAULT, Role::Root, now);
    let Err(error) = private_file::write_new(&path(folder), &minted.text) else {
        return (minted, true);
    };
    let other = read(folder).and_then(|text| Minted::read(&text, Role::Root, now));
    if let Some(other) = other {
        return (other, false);
    }
    let path = path(folder);
    warn!(%error, "the root key cannot be kept in {}", path.display());
    (minted, false)
}

/// A key that opens nothing.
fn forget(folder: &Path, text: &str) {
    if read(folder).as_deref() == Some(text) {
        let _gone = fs::remove_file(path(folder));
    }
}

fn announce(folder: &Path, format: LogFormat, text: &str) {
    let is_kept = read(folder).as_deref() == Some(text);
    let place = path(folder);
    match (format, is_kept) {
        (LogFormat::Text, _) => {
            output::note(&format!("The root key, shown this once: {text}"));
        }
        // A log in JSON is collected somewhere: the key is shown there only if it is nowhere else.
        (LogFormat::Json, true) => {
            return info!("a root key was made: it is in {}", place.display());
        }
        (LogFormat::Json, false) => {
            return warn!("the root key, shown this once and kept nowhere: {text}");
        }
    }
    if is_kept {
        output::note(&format!(
            "  It is kept in {}, where commands on this machine find it.",
            place.display()
        ));
    } else {
        output::note("  It is kept nowhere: put it where commands find it with `punctual login`.");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use engine::{Clock, SystemClock};
    use store::AccessStore;
    use store::mem::MemStore;
    use tempfile::TempDir;

    use super::*;

    fn now() -> Timestamp {
        Clock::now(&SystemClock)
    }

    #[tokio::test]
    async fn a_file_whose_key_another_node_has_just_written_stays() {
        let folder = TempDir::new().unwrap();
        let store = MemStore::new(Arc::new(SystemClock));
        // Read before the other node was first.
        let access = Access::by_keys(Arc::new(store.clone())).await.unwrap();
        let (other, is_new) = make(folder.path(), now());
        assert!(is_new);
        assert!(store.create_first_key(&other.key).await.unwrap());
        ensure(folder.path(), LogFormat::Text, &store, &access, now())
            .await
            .unwrap();
        assert_eq!(read(folder.path()), Some(other.text));
        assert!(access.has_root(now()));
    }

    #[tokio::test]
    async fn a_file_whose_key_was_revoked_is_replaced() {
        let folder = TempDir::new().unwrap();
        let store = MemStore::new(Arc::new(SystemClock));
        let (mut old, _) = make(folder.path(), now());
        old.key.revoked_at = Some(now());
        store.create_key(&old.key).await.unwrap();
        let access = Access::by_keys(Arc::new(store.clone())).await.unwrap();
        ensure(folder.path(), LogFormat::Text, &store, &access, now())
            .await
            .unwrap();
        let kept = read(folder.path()).unwrap();
        assert_ne!(kept, old.text);
        let minted = Minted::read(&kept, Role::Root, now()).unwrap();
        assert!(is_valid(&store, &minted, now()).await.unwrap());
    }

    #[tokio::test]
    async fn a_node_that_was_not_first_leaves_no_file() {
        let folder = TempDir::new().unwrap();
        let store = MemStore::new(Arc::new(SystemClock));
        let access = Access::by_keys(Arc::new(store.clone())).await.unwrap();
        let first = Minted::new(TenantId::DEFAULT, Role::Root, now());
        assert!(store.create_first_key(&first.key).await.unwrap());
        ensure(folder.path(), LogFormat::Text, &store, &access, now())
            .await
            .unwrap();
        assert_eq!(read(folder.path()), None);
    }
}
