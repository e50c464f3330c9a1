//! Idle links by origin, most recently used first.
//!
//! Beside them connections that are shared, in use or not.
//!
//! In: links between two exchanges. Out: the same, while they are open. Always: at most
//! [`IDLE_MAX`] links in all and [`IDLE_PER_ORIGIN_MAX`] of one origin; a link that nobody took for
//! [`SWEEP_EVERY`] to twice as many takes is closed. There is no clock: a quiet node keeps its links
//! until their targets close them, which their drivers notice by themselves.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::connect::Origin;
use super::link::Link;
use super::shared::Shared;

/// Idle links that are kept in all: as many as a node runs attempts at once, unless configured.
const IDLE_MAX: usize = 1_024;
/// Idle links that are kept of one origin.
const IDLE_PER_ORIGIN_MAX: usize = 1_024;
/// Takes between two sweeps: rare enough to cost nothing, and it bounds how many origins are known.
const SWEEP_EVERY: u32 = 4_096;
/// Unsettled links that one take looks past, rather than search them all.
const UNSETTLED_MAX: usize = 8;

const _: () = assert!(IDLE_MAX >= model::limits::RUNNING_MAX);
const _: () = assert!(IDLE_PER_ORIGIN_MAX <= IDLE_MAX);

#[derive(Default)]
pub(super) struct Pool {
    shelves: Mutex<Shelves>,
}

#[derive(Default)]
struct Shelves {
    by_origin: HashMap<Origin, Shelf>,
    idle: usize,
    takes: u32,
    sweeps: u64,
}

#[derive(Default)]
struct Shelf {
    links: Vec<Idle>,
    /// Connections that many use at once; nearly always one or none.
    shared: Vec<Kept>,
    /// The sweep before which it was last used.
    used: u64,
}

struct Idle {
    link: Link,
    since: u64,
}

/// A shared connection, whether anybody uses it or not.
struct Kept {
    shared: Shared,
    peer: Option<SocketAddr>,
    since: u64,
}

impl Pool {
    /// An idle link to `origin`, if there is one that is still open.
    pub(super) fn take(&self, origin: &Origin) -> Option<Link> {
        self.shelves().take(origin)
    }

    /// What a new link leads over: a connection that others can use too is kept for them, unless there is one already that has
    /// room, as when several were opened at once.
    pub(super) fn share(&self, origin: &Origin, link: Link) -> Link {
        match link.shared().cloned() {
            Some(shared) => self.shelves().share(origin, shared, link),
            None => link,
        }
    }

    /// Keeps a link for the next request, or closes it when there are enough.
    pub(super) fn put(&self, origin: Origin, link: Link) {
        self.shelves().put(origin, link);
    }

    fn shelves(&self) -> MutexGuard<'_, Shelves> {
        // Nothing that runs under the lock can leave it half done.
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelves {
    fn take(&mut self, origin: &Origin) -> Option<Link> {
        self.takes += 1;
        if self.takes >= SWEEP_EVERY {
            self.takes = 0;
            self.sweep();
        }
        let shelf = self.by_origin.get_mut(origin)?;
        shelf.used = self.sweeps;
        let before = shelf.kept();
        let taken = shelf.take_stream(self.sweeps).or_else(|| shelf.take());
        self.idle = self.idle.saturating_sub(before - shelf.kept());
        taken
    }

    fn share(&mut self, origin: &Origin, shared: Shared, link: Link) -> Link {
        let sweeps = self.sweeps;
        let shelf = self.by_origin.entry(origin.clone()).or_default();
        shelf.used = sweeps;
        let before = shelf.kept();
        let there = shelf.take_stream(sweeps);
        self.idle = self.idle.saturating_sub(before - shelf.kept());
        if let Some(there) = there {
            return there;
        }
        if self.idle < IDLE_MAX && shelf.kept() < IDLE_PER_ORIGIN_MAX {
            shelf.shared.push(Kept {
                shared,
                peer: link.peer(),
                since: sweeps,
            });
            self.idle += 1;
        }
        link
    }

    fn put(&mut self, origin: Origin, link: Link) {
        // What is shared is kept already.
        if link.shared().is_some() || self.idle >= IDLE_MAX || link.is_closed() {
            return;
        }
        let shelf = self.by_origin.entry(origin).or_default();
        shelf.used = self.sweeps;
        if shelf.links.len() < IDLE_PER_ORIGIN_MAX {
            shelf.links.push(Idle {
                link,
                since: self.sweeps,
            });
            self.idle += 1;
        }
    }

    /// Closes what was idle since before the last sweep, forgets what was closed, and forgets
    /// origins that were not called. Each is checked by itself, so the order does not matter.
    fn sweep(&mut self) {
        let last = self.sweeps;
        self.sweeps += 1;
        self.by_origin.retain(|_, shelf| {
            shelf
                .links
                .retain(|idle| idle.since >= last && idle.link.is_ready());
            // One that somebody is on is not idle, however long that takes.
            shelf.shared.retain(|kept| {
                (kept.since >= last || !kept.shared.is_idle()) && !kept.shared.is_closed()
            });
            shelf.kept() > 0 || shelf.used >= last
        });
        self.idle = self.by_origin.values().map(Shelf::kept).sum();
    }
}

impl Shelf {
    fn kept(&self) -> usize {
        self.links.len() + self.shared.len()
    }

    /// A stream of a shared connection that has room. Closed ones are let go.
    fn take_stream(&mut self, sweeps: u64) -> Option<Link> {
        self.shared.retain(|kept| !kept.shared.is_closed());
        let (kept, stream) = (self.shared.iter_mut())
            .find_map(|kept| kept.shared.stream().map(|stream| (kept, stream)))?;
        kept.since = sweeps;
        Some(Link::on(stream, kept.peer))
    }

    /// The last link that is ready. Closed ones on the way to it are dropped; those whose drivers
    /// have not yet come to the end of their last exchange stay.
    fn take(&mut self) -> Option<Link> {
        let mut unsettled = Vec::new();
        let mut taken = None;
        while unsettled.len() < UNSETTLED_MAX
            && let Some(idle) = self.links.pop()
        {
            if idle.link.is_ready() {
                taken = Some(idle.link);
                break;
            }
            if !idle.link.is_closed() {
                unsettled.push(idle);
            }
        }
        self.links.append(&mut unsettled);
        taken
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
