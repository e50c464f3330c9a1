//! Waiting: why a live run may not start yet. It has no claim, is in no due index, and does not count against health.
//!
//! A run that waits for its turn is freed by the end of the run before it. All other reasons lie outside of the job: such a
//! run keeps its turn, and is woken when its moment comes, when what it waits for is over, or by hand.

use crate::run::Run;
use crate::time::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitReason {
    /// For the job's run before it to end.
    Turn,
    /// The breaker of its target's origin is open.
    Breaker,
    /// As many runs as a node keeps in memory wait for calls to its target's origin already.
    Concurrency,
}

impl WaitReason {
    pub const ALL: [Self; 3] = [Self::Turn, Self::Breaker, Self::Concurrency];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Breaker => "breaker",
            Self::Concurrency => "concurrency",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text)
    }
}

/// Why a run waits, and how long at the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Wait {
    pub reason: WaitReason,
    /// It is woken then at the latest. None: it waits for its turn, however long that takes.
    pub until: Option<Timestamp>,
}

impl Wait {
    /// For the run before it.
    pub const TURN: Self = Self {
        reason: WaitReason::Turn,
        until: None,
    };

    pub fn until(reason: WaitReason, until: Timestamp) -> Self {
        Self {
            reason,
            until: Some(until),
        }
    }
}

impl Run {
    /// Whether it waits for the job's run before it to end.
    pub fn waits_for_turn(&self) -> bool {
        self.wait
            .is_some_and(|wait| wait.reason == WaitReason::Turn)
    }

    /// Whether it has its turn, and waits for something outside of its job.
    pub fn waits_outside(&self) -> bool {
        self.wait.is_some() && !self.waits_for_turn()
    }

    /// From when on it could have been dispatched, as far as anything but this node is concerned.
    pub fn could_start_at(&self) -> Timestamp {
        self.woken_at.map_or(self.due_at, |at| at.max(self.due_at))
    }
}
