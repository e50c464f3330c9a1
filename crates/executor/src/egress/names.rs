//! Host names to addresses. Nothing is remembered: each new link resolves again. But links that
//! open at the same time share one look-up, because each takes a thread of the system's resolver:
//! without that, a burst to one name whose servers are slow would leave no thread for the others.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::watch;

use super::DialError;

/// How the addresses of a name are found.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// In the order in which they are to be tried.
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// As the system does it: its hosts file, its name servers.
pub struct System;

#[async_trait]
impl Resolve for System {
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((host, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

type Found = Result<Arc<[IpAddr]>, Arc<io::Error>>;
type UnderWay = HashMap<String, watch::Receiver<Option<Found>>>;

pub(super) struct Names {
    resolve: Arc<dyn Resolve>,
    under_way: Arc<Mutex<UnderWay>>,
}

impl Names {
    pub(super) fn new(resolve: Arc<dyn Resolve>) -> Self {
        Self {
            resolve,
            under_way: Arc::default(),
        }
    }

    /// The addresses of `host`, in the order in which they are to be tried.
    pub(super) async fn resolve(&self, host: &str) -> Result<Arc<[IpAddr]>, DialError> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(Arc::new([address]));
        }
        let unresolved = |cause| DialError::Unresolved {
            host: host.to_owned(),
            cause,
        };
        let mut answer = self.join_or_start(host);
        let found = match answer.wait_for(Option::is_some).await {
            Ok(found) => found.clone(),
            // The runtime is stopping.
            Err(_) => None,
        };
        found
            .ok_or_else(|| unresolved(None))?
            .map_err(|cause| unresolved(Some(cause)))
    }

    /// Joins the look-up of `host` that is under way, or starts one.
    fn join_or_start(&self, host: &str) -> watch::Receiver<Option<Found>> {
        let mut under_way = lock(&self.under_way);
        if let Some(answer) = under_way.get(host) {
            return answer.clone();
        }
        let (answered, answer) = watch::channel(None);
        under_way.insert(host.to_owned(), answer.clone());
        let entry = Entry {
            under_way: self.under_way.clone(),
            host: host.to_owned(),
        };
        let resolve = Arc::clone(&self.resolve);
        // A task of its own: the first caller may be dropped while others still wait.
        tokio::spawn(async move {
            let found = resolve.lookup(&entry.host).await;
            let found = found.map(Arc::from).map_err(Arc::new);
            // Who comes from here on resolves it again.
            drop(entry);
            answered.send_replace(Some(found));
        });
        answer
    }
}

/// A look-up that is under way; dropped when it ends, however it ends.
struct Entry {
    under_way: Arc<Mutex<UnderWay>>,
    host: String,
}

impl Drop for Entry {
    fn drop(&mut self) {
        lock(&self.under_way).remove(&self.host);
    }
}

fn lock(under_way: &Mutex<UnderWay>) -> MutexGuard<'_, UnderWay> {
    under_way.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_is_its_own_name() {
        let names = Names::new(Arc::new(System));
        for host in ["127.0.0.1", "::1"] {
            let found = names.resolve(host).await.unwrap();
            assert_eq!(*found, [host.parse::<IpAddr>().unwrap()]);
        }
    }

    #[tokio::test]
    async fn callers_at_once_share_one_lookup_and_the_next_has_its_own() {
        let names = Names::new(Arc::new(System));
        let first = names.join_or_start("localhost");
        let second = names.join_or_start("localhost");
        assert!(first.same_channel(&second));
        assert!(
            names
                .resolve("localhost")
                .await
                .unwrap()
                .iter()
                .all(IpAddr::is_loopback)
        );
        assert!(lock(&names.under_way).is_empty());
    }

    #[tokio::test]
    async fn a_name_that_cannot_be_resolved_is_named() {
        let names = Names::new(Arc::new(System));
        let error = names.resolve("a name.invalid").await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the host name a name.invalid cannot be resolved"
        );
        assert!(lock(&names.under_way).is_empty());
    }
}
