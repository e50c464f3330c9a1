//! What is known of an attempt while it is under way. Whoever drops a delivery, because its time is up or it was cancelled,
//! still learns how far it came.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use model::{Exchange, Report, Times};

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

/// What an attempt has said so far, for whoever ends it early.
pub trait PartialOutput: Send + Sync + 'static {
    /// What is kept of it, and whether there was more.
    fn output(&self) -> (Bytes, bool);

    /// What has come since this was read last.
    fn unread(&self) -> Unread;
}

/// What nobody has read yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unread {
    pub head: Bytes,
    /// How many bytes between head and tail nobody kept.
    pub missed: u64,
    pub tail: Bytes,
}

/// What becomes known before an answer is there.
#[derive(Clone, Default)]
struct Known {
    /// What the target has written, where that is worth keeping without its end.
    said: Option<Arc<dyn PartialOutput>>,
    peer: Option<SocketAddr>,
    /// The proxy that has not opened the way yet.
    proxy: Option<String>,
    times: Times,
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.exchange().fmt(f)
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

    /// Where what the target writes can be read.
    pub fn writes_to(&self, said: Arc<dyn PartialOutput>) {
        self.known().said = Some(said);
    }

    /// What the target has written since this was read last.
    pub fn unread(&self) -> Unread {
        let said = self.known().said.clone();
        said.map_or_else(Unread::default, |said| said.unread())
    }

    /// The report of an attempt that was ended early, with what is known of it.
    pub fn lay_into(&self, report: Report) -> Report {
        let mut report = report.with_exchange(self.exchange());
        let said = self.known().said.clone();
        if let Some(said) = said {
            (report.output, report.truncated) = said.output();
        }
        report
    }
}
