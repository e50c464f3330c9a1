//! The node's certificate: read before anything else is touched, and followed for as long as the node lives.

use std::sync::Arc;

use server::Tls;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use crate::config::Config;
use crate::failure::{Failure, chain};

/// A certificate that is followed until this is dropped.
pub(super) struct Secure {
    tls: Arc<Tls>,
    following: JoinHandle<()>,
}

impl Secure {
    pub(super) fn tls(&self) -> Arc<Tls> {
        Arc::clone(&self.tls)
    }
}

impl Drop for Secure {
    fn drop(&mut self) {
        self.following.abort();
    }
}

pub(super) async fn open(config: &Config) -> Result<Option<Secure>, Failure> {
    let Some(files) = config.front.tls_files() else {
        return Ok(None);
    };
    let tls = Tls::load(files).await;
    let tls = Arc::new(tls.map_err(|error| Failure::usage(chain(&error)))?);
    let mut hangup = signal(SignalKind::hangup())
        .map_err(|error| Failure::usage(format!("cannot listen for signals: {error}")))?;
    let following = tokio::spawn({
        let tls = Arc::clone(&tls);
        async move {
            let hurried = async {
                while hangup.recv().await.is_some() {
                    tls.check_files();
                }
            };
            tokio::join!(tls.keep(), hurried);
        }
    });
    Ok(Some(Secure { tls, following }))
}
