//! Another master key without a restart: on SIGHUP the keys are read again from where they came. What cannot be read then
//! changes nothing: the node goes on with the keys that it has.

use std::sync::Arc;
use std::time::Duration;

use engine::vault::MasterKeys;
use engine::{Clock, Handle, SystemClock};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::{JoinHandle, spawn_blocking};
use tracing::{info, warn};

use super::{FILE, announce, announce_closed, open};
use crate::config::Config;
use crate::failure::Failure;

/// How soon it is tried again to write keys of tokens under another master key.
const AGAIN: Duration = Duration::from_secs(1);

/// Keys are followed until this is dropped.
pub(in crate::serve) struct Following(JoinHandle<()>);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Says what is known of the keys, and follows them from now on.
pub(in crate::serve) async fn follow(
    config: &Config,
    is_new: bool,
    handle: &Handle,
) -> Result<Following, Failure> {
    announce(config, is_new, handle).await;
    let hangup = signal(SignalKind::hangup())
        .map_err(|error| Failure::usage(format!("cannot listen for signals: {error}")))?;
    let following = follow_all(config.clone(), handle.clone(), hangup);
    Ok(Following(tokio::spawn(following)))
}

async fn follow_all(config: Config, handle: Handle, mut hangup: Signal) {
    while hangup.recv().await.is_some() {
        let reading = spawn_blocking({
            let config = config.clone();
            move || read_again(&config)
        });
        let read = reading.await.unwrap_or_else(|error| Err(error.to_string()));
        match read {
            Ok(keys) => replace(&handle, keys).await,
            Err(why) => warn!("SIGHUP: {why}: the master keys stay as they were"),
        }
    }
}

/// No key is made in the place of one that is gone.
fn read_again(config: &Config) -> Result<Arc<MasterKeys>, String> {
    if super::is_to_be_made(config) {
        let path = config.data.join(FILE);
        return Err(format!("there is no master key in {}", path.display()));
    }
    match open(config) {
        Ok(Some(keys)) => Ok(keys),
        Ok(None) => Err("there is no master key".to_owned()),
        Err(failure) => Err(failure.text),
    }
}

async fn replace(handle: &Handle, keys: Arc<MasterKeys>) {
    let ids: Vec<&str> = keys.iter().map(|key| key.id()).collect();
    let (current, opening) = (keys.current().id().to_owned(), ids.join(", "));
    if handle.master_keys().is_some_and(|before| before == keys) {
        info!("SIGHUP: the master keys are the same: {opening}");
        return;
    }
    // Keys of tokens have to be under it before an older one goes, so this does not end with a store that is away.
    while let Err(error) = handle.replace_master_keys(Arc::clone(&keys)).await {
        warn!("the keys of tokens are not under the new master key yet: {error}");
        SystemClock.sleep(AGAIN).await;
    }
    info!("SIGHUP: the master key {current} seals from now on, and these open: {opening}");
    announce_closed(handle).await;
}
