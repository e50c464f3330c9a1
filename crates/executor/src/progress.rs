//! What is known of an attempt while it is under way. Whoever drops a delivery, because its time is up or it was cancelled,
//! still learns how far it came.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{Exchange, Times};

/// Time that only grows. An executor reads no clock: it is given one to measure by.
pub trait Stopwatch: Send + Sync + 'static {
    fn uptime(&self) -> Duration;
}

/// One attempt, from when it began.
pub struct Progress {
    clock: Arc<dyn Stopwatch>,
    began: Duration,
    known: Mutex<Known>,
}

/// What becomes known before an answer is there. It holds nothing that came from the target.
#[derive(Debug, Clone, Default)]
struct Known {
    peer: Option<SocketAddr>,
    /// The proxy that has not opened the way yet.
    proxy: Option<String>,
    times: Times,
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.known().fmt(f)
    }
}

impl Progress {
    /// Begins now.
    pub fn new(clock: Arc<dyn Stopwatch>) -> Arc<Self> {
        Arc::new(Self {
            began: clock.uptime(),
            clock,
            known: Mutex::default(),
        })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing that runs under the lock can leave it half done.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn now(&self) -> Duration {
        self.clock.uptime()
    }

    fn since(&self, moment: Duration) -> Option<Duration> {
        Some(Times::whole(self.now().saturating_sub(moment)))
    }

    pub fn reached(&self, peer: Option<SocketAddr>) {
        self.known().peer = peer;
    }

    /// Nothing goes on before this proxy has opened the way; none when it has.
    pub fn waits_for_proxy(&self, proxy: Option<String>) {
        self.known().proxy = proxy;
    }

    /// The proxy that an attempt waits for.
    pub fn proxy(&self) -> Option<String> {
        self.known().proxy.clone()
    }

    /// A connection that was begun at this moment is there.
    pub fn connected(&self, begun: Duration) {
        let took = self.since(begun);
        self.known().times.connect = took;
    }

    pub fn secured(&self, begun: Duration) {
        let took = self.since(begun);
        self.known().times.tls = took;
    }

    /// The head of the answer is there.
    pub fn answered(&self) {
        let took = self.since(self.began);
        self.known().times.first_byte = took;
    }

    /// The exchange has ended.
    pub fn ended(&self) {
        let took = self.since(self.began);
        self.known().times.total = took;
    }

    /// As far as it came.
    pub fn exchange(&self) -> Exchange {
        let Known { peer, times, .. } = *self.known();
        Exchange {
            peer,
            times,
            ..Exchange::default()
        }
    }
}
