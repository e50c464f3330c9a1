//! What the outside has or had, as the store knew it, and what it was answered. Moments are uptimes.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use model::{AttemptNo, JobId, Outcome, RunId};

/// How an attempt ended that the outside had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldEnd {
    pub at: Duration,
    pub outcome: Outcome,
    /// A node ended it, because it was silent or its time was up. None: the outside said how it ended.
    pub by_node: Option<usize>,
}

/// An attempt that is or was with the outside.
#[derive(Debug, Clone)]
pub struct Held {
    pub job: JobId,
    pub within: Duration,
    /// When its time is up.
    pub timeout: Duration,
    /// When the store first knew that the outside has it, and when it last heard of it.
    pub since: Duration,
    pub heard: Duration,
    /// It was to end, when it was last seen.
    pub cancelled: bool,
    pub end: Option<HeldEnd>,
}

/// Since when a target has sent heartbeats without a break, and when it sent the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beating {
    pub since: Duration,
    pub last: Duration,
}

/// A report that was acknowledged is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    pub run: RunId,
    pub attempt: AttemptNo,
    pub outcome: Outcome,
    pub at: Duration,
}

#[derive(Debug, Default)]
pub struct HandedBook {
    pub held: BTreeMap<(RunId, AttemptNo), Held>,
    beating: BTreeMap<(RunId, AttemptNo), Beating>,
    /// Those who were beating when their attempt was ended.
    pub beating_at_end: BTreeMap<(RunId, AttemptNo), Beating>,
    pub kept: Vec<Kept>,
    /// The last checkpoint of each run that was written.
    pub checkpoints: BTreeMap<RunId, Bytes>,
    /// The last token of each run.
    pub tokens: BTreeMap<RunId, (AttemptNo, String)>,
}

impl HandedBook {
    /// A heartbeat is sent, whether or not anybody hears it.
    pub fn beats(&mut self, of: (RunId, AttemptNo), at: Duration) {
        let first = Beating {
            since: at,
            last: at,
        };
        self.beating.entry(of).or_insert(first).last = at;
    }

    /// No more heartbeats are sent.
    pub fn stops(&mut self, of: (RunId, AttemptNo)) {
        self.beating.remove(&of);
    }

    pub fn ends(&mut self, of: (RunId, AttemptNo), end: HeldEnd) {
        if let Some(held) = self.held.get_mut(&of) {
            held.end = Some(end);
        }
        let beating = self.beating.get(&of).copied();
        self.beating_at_end.extend(beating.map(|it| (of, it)));
    }
}
