//! Where the master key comes from: a file, the environment, or what a command prints. A data folder's own store makes one
//! of its own when nothing is set; nodes that share a database have to share the key, so none is made there.
//!
//! A key that is not there stops no node: whatever needs no secret goes on. One that cannot be read as a key does, because
//! nobody meant that. What can be read again is, on SIGHUP (`follow.rs`).

mod command;
mod follow;

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use engine::Handle;
use engine::vault::{KeyText, MasterKey, MasterKeys};
use tracing::{info, warn};

use crate::config::Config;
use crate::failure::Failure;
use crate::private_file;

pub(super) use follow::{Following, follow};

const FILE: &str = "master.key";
/// What does not work without one.
const WITHOUT: &str = "secrets cannot be made, changed or sent, and attempts that need one fail";

/// The keys of this node. Waits for files and for a command, so it belongs on a thread that may.
pub(super) fn open(config: &Config) -> Result<Option<Arc<MasterKeys>>, Failure> {
    let Some(keys) = current(config)? else {
        return Ok(None);
    };
    let keys = match &config.master_key_old_file {
        Some(path) => match read(path) {
            Ok(text) => keys.with_old(&text).map_err(|why| unreadable(path, why))?,
            Err(error) => {
                let path = path.display();
                warn!(
                    "the older master keys in {path} cannot be read ({error}): what only they open stays closed"
                );
                keys
            }
        },
        None => keys,
    };
    Ok(Some(Arc::new(keys)))
}

/// Whether the folder is about to get a key of its own.
pub(super) fn is_to_be_made(config: &Config) -> bool {
    let ways = [
        config.master_key.is_some(),
        config.master_key_file.is_some(),
        config.master_key_command.is_some(),
        config.store.is_some(),
    ];
    !ways.contains(&true) && !config.data.join(FILE).exists()
}

/// Says once that there is a new key, and which secrets stay closed on this node. A store that does not answer now is heard of
/// elsewhere.
async fn announce(config: &Config, is_new: bool, handle: &Handle) {
    if is_new && handle.master_keys().is_some() {
        let path = config.data.join(FILE);
        info!(
            "a new master key is in {}: secrets are lost without it, and no backup of the data holds it",
            path.display()
        );
    }
    announce_closed(handle).await;
}

async fn announce_closed(handle: &Handle) {
    let counts = handle.store().access().count_secrets().await;
    for (id, count) in counts.unwrap_or_default() {
        let keys = handle.master_keys();
        if keys.is_none_or(|keys| keys.get(&id).is_none()) {
            warn!(
                "{count} secrets are sealed under the master key {id}, which this node does not have: attempts that need one fail here"
            );
        }
    }
}

fn current(config: &Config) -> Result<Option<MasterKeys>, Failure> {
    if let Some(text) = &config.master_key {
        let refused = |why| Failure::usage(format!("the master key: {why}"));
        return MasterKeys::parse(text.reveal()).map(Some).map_err(refused);
    }
    if let Some(path) = &config.master_key_file {
        return match read(path) {
            Ok(text) => {
                let keys = MasterKeys::parse(&text);
                keys.map(Some).map_err(|why| unreadable(path, why))
            }
            Err(error) => {
                let path = path.display();
                warn!("the master key {path} cannot be read ({error}): {WITHOUT}");
                Ok(None)
            }
        };
    }
    if let Some(line) = &config.master_key_command {
        return match command::output(line) {
            Ok(text) => {
                let refused =
                    |why| Failure::usage(format!("what {line:?} printed as master key: {why}"));
                MasterKeys::parse(&text).map(Some).map_err(refused)
            }
            Err(why) => {
                warn!("the command for the master key, {line:?}, {why}: {WITHOUT}");
                Ok(None)
            }
        };
    }
    if config.store.is_some() {
        warn!(
            "there is no master key: {WITHOUT}; give every node the same one with --master-key-file"
        );
        return Ok(None);
    }
    of_folder(&config.data)
}

/// The key that the folder has. A new one is made where there is none.
fn of_folder(folder: &Path) -> Result<Option<MasterKeys>, Failure> {
    let path = folder.join(FILE);
    let text = match read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(&path),
        read => read,
    };
    match text {
        Ok(text) => {
            let keys = MasterKeys::parse(&text);
            keys.map(Some).map_err(|why| unreadable(&path, why))
        }
        Err(error) => {
            let path = path.display();
            warn!("the master key cannot be kept in {path} ({error}): {WITHOUT}");
            Ok(None)
        }
    }
}

fn make(path: &Path) -> io::Result<String> {
    let key = MasterKey::new(rand::random());
    match private_file::write_new(path, &key.to_text()) {
        Ok(()) => Ok(key.to_text().to_string()),
        // Another node was faster, and the key is that node's.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read(path),
        Err(error) => Err(error),
    }
}

fn read(path: &Path) -> io::Result<String> {
    let text = fs::read_to_string(path)?;
    if private_file::is_open_to_others(path) {
        let path = path.display();
        warn!("others on this machine can read the master key in {path}: chmod 600 {path}");
    }
    Ok(text)
}

fn unreadable(path: &Path, why: KeyText) -> Failure {
    Failure::usage(format!("the master key {}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use tempfile::TempDir;

    use super::*;
    use crate::config::{Flags, Sources};

    const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    const OLD: &str = "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    fn config(folder: &Path, settings: &[(&'static str, &str)]) -> Config {
        let data = ("data", folder.to_str().unwrap());
        let values = settings.iter().chain([&data]);
        let values = values.map(|(name, text)| (*name, (*text).to_owned()));
        let flags = Flags {
            config: None,
            values: values.collect(),
        };
        let sources = Sources {
            flags,
            ..Sources::default()
        };
        Config::load(&sources).unwrap()
    }

    fn id(keys: Option<Arc<MasterKeys>>) -> Option<String> {
        keys.map(|keys| keys.current().id().to_owned())
    }

    #[test]
    fn a_data_folder_gets_a_key_of_its_own_and_keeps_it() {
        let own = TempDir::new().unwrap();
        let folder = own.path().join("data");
        let opening = || {
            std::thread::spawn({
                let config = config(&folder, &[]);
                move || id(open(&config).unwrap()).unwrap()
            })
        };
        let all: Vec<_> = (0..4).map(|_| opening()).collect();
        let ids: Vec<_> = all.into_iter().map(|one| one.join().unwrap()).collect();
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        let mode = fs::metadata(folder.join(FILE))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing is left");
    }

    #[test]
    fn a_database_that_nodes_share_gets_none() {
        let own = TempDir::new().unwrap();
        let shared = ("store", "postgres://a@b/c");
        assert_eq!(open(&config(own.path(), &[shared])), Ok(None));
        assert_eq!(fs::read_dir(own.path()).unwrap().count(), 0);
        let keys = open(&config(own.path(), &[shared, ("master_key", KEY)])).unwrap();
        assert_eq!(keys.unwrap().current().to_text().as_str(), KEY);
    }

    #[test]
    fn a_file_and_a_command_are_read_and_older_keys_beside_them() {
        let own = TempDir::new().unwrap();
        let (file, old) = (own.path().join("key"), own.path().join("old"));
        fs::write(&file, format!("{KEY}\n")).unwrap();
        fs::write(&old, OLD).unwrap();
        let (path, older) = (file.to_str().unwrap(), old.to_str().unwrap());
        let line = format!("cat {path}");
        for way in [("master_key_file", path), ("master_key_command", &line)] {
            let settings = [way, ("master_key_old_file", older)];
            let keys = open(&config(own.path(), &settings)).unwrap().unwrap();
            assert_eq!(keys.current().to_text().as_str(), KEY);
            assert_eq!(keys.iter().count(), 2);
        }
        assert!(!own.path().join(FILE).exists(), "none is made beside it");
    }

    #[test]
    fn a_key_that_is_not_there_stops_nobody_and_one_that_is_none_does() {
        let own = TempDir::new().unwrap();
        let check = |name, text: &str| open(&config(own.path(), &[(name, text)]));
        assert_eq!(check("master_key_file", "/nowhere/at/all"), Ok(None));
        assert_eq!(check("master_key_command", "/nowhere/at/all"), Ok(None));
        assert_eq!(check("master_key_command", "false"), Ok(None));
        let text = check("master_key_command", "echo planted")
            .unwrap_err()
            .text;
        assert!(text.contains("openssl rand -hex 32"), "{text}");
        let file = own.path().join("key");
        fs::write(&file, "planted").unwrap();
        let text = check("master_key_file", file.to_str().unwrap());
        let text = text.unwrap_err().text;
        assert!(text.contains(file.to_str().unwrap()), "{text}");
        assert!(!text.contains("planted"), "{text}");
    }
}
