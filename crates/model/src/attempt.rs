//! Attempts: the tries at a run, and how each ended.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::exchange::Exchange;
use crate::limits;
use crate::time::Timestamp;
use crate::within::Marks;

/// The number of an attempt, from 1. It only grows, so a target can use it as a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptNo(pub u32);

impl AttemptNo {
    pub const FIRST: Self = Self(1);

    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for AttemptNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    Succeeded,
    Failed,
    TimedOut,
    /// Its holder is gone; it may have run.
    Lost,
    Cancelled,
}

impl Outcome {
    pub const ALL: [Self; 5] = [
        Self::Succeeded,
        Self::Failed,
        Self::TimedOut,
        Self::Lost,
        Self::Cancelled,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Lost => "lost",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|outcome| outcome.as_str() == text)
    }
}

/// What the target said about trying again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RetryHint {
    /// As the job's policy has it.
    #[default]
    Usual,
    /// Trying again cannot help.
    Never,
    /// Not before this time has passed.
    After(Duration),
    /// As the job's policy has it, but however often it was tried, up to what any run may have.
    Always,
}

/// What a command and all that it started took of its machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Of processors, in whole microseconds.
    pub cpu: Duration,
    /// The most memory that one of its processes had at once, in bytes.
    pub memory_max: u64,
    /// None where the kernel does not count it, and of attempts from before it was kept.
    pub io: Option<Io>,
}

/// What a command and all that it started moved from and to storage, in bytes. What is in the kernel's memory already is not
/// read again, and what never was on its way to a disk is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Io {
    pub read: u64,
    pub written: u64,
}

/// What an executor reports of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub outcome: Outcome,
    pub retry: RetryHint,
    /// The target's own number for it: an HTTP status, an exit code.
    pub status: Option<i32>,
    pub error: Option<String>,
    /// The head of what the target answered.
    pub output: Bytes,
    /// There was more of it.
    pub truncated: bool,
    /// How it came, over a network.
    pub exchange: Option<Box<Exchange>>,
    /// What it took of the node's machine.
    pub cost: Option<Box<Cost>>,
    /// No answer came, and that is the origin's doing: it could not be reached, or broke off.
    pub unreached: bool,
}

impl Report {
    pub fn of(outcome: Outcome) -> Self {
        Self {
            outcome,
            retry: RetryHint::Usual,
            status: None,
            error: None,
            output: Bytes::new(),
            truncated: false,
            exchange: None,
            cost: None,
            unreached: false,
        }
    }

    pub fn succeeded() -> Self {
        Self::of(Outcome::Succeeded)
    }

    pub fn failed(error: impl Into<String>) -> Self {
        Self {
            error: Some(cut(error.into(), limits::ERROR_MAX)),
            ..Self::of(Outcome::Failed)
        }
    }

    pub fn with_status(mut self, status: i32) -> Self {
        self.status = Some(status);
        self
    }

    pub fn with_output(mut self, output: Bytes) -> Self {
        self.output = output;
        self
    }

    /// The same, of an exchange about which anything is known.
    pub fn with_exchange(mut self, exchange: Exchange) -> Self {
        self.exchange = Some(Box::new(exchange)).filter(|exchange| !exchange.is_empty());
        self
    }

    pub fn with_cost(mut self, cost: Option<Cost>) -> Self {
        self.cost = cost.map(Box::new);
        self
    }

    /// The same, of an origin that gave no answer.
    pub fn unreached(mut self) -> Self {
        self.unreached = true;
        self
    }

    pub fn with_retry(mut self, retry: RetryHint) -> Self {
        self.retry = retry;
        self
    }
}

/// One try, as history keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub no: AttemptNo,
    /// None when it never left us.
    pub dispatched_at: Option<Timestamp>,
    pub settled_at: Timestamp,
    pub outcome: Outcome,
    pub status: Option<i32>,
    pub error: Option<String>,
    pub output: Bytes,
    /// There was more of it than is kept.
    pub truncated: bool,
    pub exchange: Option<Box<Exchange>>,
    pub cost: Option<Box<Cost>>,
    /// The node that made it, as far as is known.
    pub node: Option<Arc<str>>,
    /// Of the first that was dispatched: by how much that was after the job's `start_within`.
    pub late_by: Option<Duration>,
    /// By how much its run was beyond the job's `finish_within` when it ended.
    pub long_by: Option<Duration>,
}

impl Attempt {
    pub fn new(
        no: AttemptNo,
        dispatched_at: Option<Timestamp>,
        settled_at: Timestamp,
        report: Report,
    ) -> Self {
        let Report {
            outcome,
            status,
            error,
            output,
            truncated,
            exchange,
            cost,
            retry: _,
            unreached: _,
        } = report;
        Self {
            no,
            dispatched_at,
            settled_at,
            outcome,
            status,
            error,
            output,
            truncated,
            exchange,
            cost,
            node: None,
            late_by: None,
            long_by: None,
        }
    }

    /// The same, made by a node.
    pub fn made_by(mut self, node: &Arc<str>) -> Self {
        self.node = Some(Arc::clone(node));
        self
    }

    /// The same, as its job's bounds have it.
    pub fn marked(mut self, marks: Marks) -> Self {
        (self.late_by, self.long_by) = (marks.late_by, marks.long_by);
        self
    }

    /// The same with only the head of its output: an earlier attempt keeps no more.
    pub fn as_earlier(mut self) -> Self {
        self.truncated |= self.output.len() > limits::OUTPUT_EARLIER_MAX;
        self.output.truncate(limits::OUTPUT_EARLIER_MAX);
        self
    }
}

/// How the line begins that stands where a part of an output was left out.
pub const LEFT_OUT: &str = "\n[… ";

/// That line.
pub fn left_out(bytes: u64) -> String {
    format!("{LEFT_OUT}{bytes} bytes left out …]\n")
}

/// At most `bytes` bytes of a text, cut between characters.
pub fn cut(mut text: String, bytes: usize) -> String {
    if text.len() > bytes {
        let end = (0..=bytes)
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(0);
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("größe".to_owned(), 3), "gr");
        assert_eq!(cut("größe".to_owned(), 4), "grö");
        assert_eq!(cut("ab".to_owned(), 9), "ab");
    }
}
