//! Connections that serve nobody: nothing has moved on them for a while, or nothing was asked for. Pings move bytes, and are no
//! request.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use engine::{Clock, SystemClock};
use hyper::body::{Frame, SizeHint};

use super::bounds::Bounds;
use super::watched::Activity;

/// The requests of one connection.
#[derive(Default)]
pub(super) struct Requests {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Requests {
    pub(super) fn begin(self: &Arc<Self>) -> UnderWay {
        self.begun.fetch_add(1, Ordering::Relaxed);
        UnderWay(Arc::clone(self))
    }
}

/// A request, until its answer is written or given up.
pub(super) struct UnderWay(Arc<Requests>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// The body of an answer; its request is under way until it is dropped.
pub(super) struct Answered {
    pub body: Body,
    pub _request: UnderWay,
}

impl hyper::body::Body for Answered {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Why a connection is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Idle {
    /// Not a byte has moved.
    Still,
    /// No request was under way.
    Unused,
}

/// Watches a connection.
pub(super) struct Watch {
    activity: Activity,
    requests: Arc<Requests>,
    bounds: Bounds,
    /// How many reads and writes there were, and since when.
    moved: (u64, Duration),
    /// How many requests there were, and since when none is under way.
    used: (u64, Duration),
}

impl Watch {
    pub(super) fn new(activity: Activity, requests: Arc<Requests>, bounds: Bounds) -> Self {
        let now = SystemClock.uptime();
        Self {
            moved: (activity.count(), now),
            used: (0, now),
            activity,
            requests,
            bounds,
        }
    }

    /// Waits until one or the other has lasted too long; then it begins again.
    pub(super) async fn idle(&mut self) -> Idle {
        let clock = SystemClock;
        let over = |since: Duration| clock.uptime().saturating_sub(since) >= self.bounds.idle_max;
        loop {
            clock.sleep(self.bounds.idle_check_every()).await;
            let now = clock.uptime();
            let moved = self.activity.count();
            if moved != self.moved.0 {
                self.moved = (moved, now);
            } else if over(self.moved.1) {
                return Idle::Still;
            }
            // In this order: one that ends in between is under way still.
            let ended = self.requests.ended.load(Ordering::Relaxed);
            let begun = self.requests.begun.load(Ordering::Relaxed);
            if begun != ended || begun != self.used.0 {
                self.used = (begun, now);
            } else if over(self.used.1) {
                self.used.1 = now;
                return Idle::Unused;
            }
        }
    }
}
