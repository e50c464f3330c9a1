//! Handed over: an attempt whose work is with the outside. Its target answered 202, and reports later.
//!
//! ```text
//!   dispatched ──202──▶ handed over ──heartbeat──▶ trusted for `within` more
//!                          │ report                          │ silence
//!                          ▼                                 ▼
//!                       settled                            lost
//! ```
//!
//! No node holds it, so the death of nodes does not touch it. Its claim is that of a presence that never ends.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::attempt::AttemptNo;
use crate::id::{JobId, PresenceId, RunId};
use crate::limits;
use crate::time::Timestamp;

impl PresenceId {
    /// Holds what is handed over. It has no row, no beat and no end.
    pub const OUTSIDE: Self = Self(uuid::Uuid::nil());
}

/// What completes an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Completion {
    /// The target's answer.
    #[default]
    Answer,
    /// A 202 hands the attempt over; a report completes it.
    Callback {
        /// How long the target may be silent.
        heartbeat_within: Duration,
    },
}

impl Completion {
    pub const WORDS: [&'static str; 2] = ["answer", "callback"];
    /// Unless the timeout is shorter.
    pub const HEARTBEAT_WITHIN_DEFAULT: Duration = Duration::from_secs(300);
    pub const HEARTBEAT_WITHIN_MIN: Duration = Duration::from_secs(1);

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Callback { .. } => "callback",
        }
    }

    pub fn heartbeat_within(self) -> Option<Duration> {
        match self {
            Self::Answer => None,
            Self::Callback { heartbeat_within } => Some(heartbeat_within),
        }
    }
}

/// The status by which a target takes an attempt over.
pub const ACCEPTED: i32 = 202;

/// How far the work is, in the target's own words or as a share.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// From 0 to 1.
    Share(f64),
    Text(String),
}

impl Progress {
    /// As it is stored.
    pub fn to_column(&self) -> String {
        match self {
            Self::Share(share) => format!("#{share}"),
            Self::Text(text) => format!("={text}"),
        }
    }

    pub fn from_column(column: &str) -> Option<Self> {
        if let Some(text) = column.strip_prefix('=') {
            return Some(Self::Text(text.to_owned()));
        }
        let share: f64 = column.strip_prefix('#')?.parse().ok()?;
        (0.0..=1.0).contains(&share).then_some(Self::Share(share))
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(share) => write!(f, "{:.0} %", share * 100.0),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// What is kept of an attempt that is handed over.
#[derive(Debug, Clone, PartialEq)]
pub struct Handed {
    pub run: RunId,
    pub job: JobId,
    pub attempt: AttemptNo,
    /// The node that delivered it, as far as is known.
    pub node: Option<Arc<str>>,
    /// When this attempt was dispatched.
    pub dispatched_at: Timestamp,
    /// How long it is trusted after each heartbeat.
    pub within: Duration,
    /// When its time is up, whatever is heard of it.
    pub timeout_at: Timestamp,
    /// Up to when it is trusted, never beyond `timeout_at`. None: the attempt has ended, and the run goes on.
    pub until: Option<Timestamp>,
    /// It is to end: heartbeats say so, and move nothing any more.
    pub cancelled: bool,
    pub beaten_at: Option<Timestamp>,
    pub progress: Option<Progress>,
}

impl Handed {
    /// Trusted again from `now` on, unless it is to end. Whoever passes a heartbeat on may not know yet that the clock was
    /// stepped: that takes no trust away.
    pub fn trust(&mut self, now: Timestamp) {
        if !self.cancelled {
            let until = now.plus(self.within).min(self.timeout_at);
            self.until = self.until.max(Some(until));
        }
    }

    /// How long a cancel waits for the target: until it must have been heard of once, and a little at least.
    pub fn grace(&self) -> Duration {
        self.within.max(limits::HANDED_GRACE_MIN)
    }

    /// It is to end. Marked again, the first moment stays.
    pub fn cancel(&mut self, now: Timestamp) {
        if !self.cancelled && self.until.is_some() {
            self.cancelled = true;
            self.until = Some(now.plus(self.grace()).min(self.timeout_at));
        }
    }

    /// How long whoever finds it silent must have watched, without a break, for that to count.
    pub fn watch(&self) -> Duration {
        if self.cancelled {
            self.grace()
        } else {
            self.within
        }
    }

    /// Whether nothing was heard of it for as long as it may be silent. Trust may end before, with its timeout.
    pub fn is_silent(&self, now: Timestamp) -> bool {
        let heard_at = self.beaten_at.unwrap_or(self.dispatched_at);
        self.cancelled || heard_at.plus(self.within) <= now
    }

    /// Whether its time is up, not only its trust.
    pub fn has_timed_out(&self, now: Timestamp) -> bool {
        self.timeout_at <= now
    }
}

/// What a run has said of its work: the head and the tail of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunLog {
    pub head: Vec<u8>,
    pub tail: Vec<u8>,
    /// How many bytes were appended, kept or not.
    pub total: u64,
}

/// A part of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPart {
    /// Where it begins. Later than was asked for, where the middle is not kept.
    pub from: u64,
    pub bytes: Bytes,
    /// Where to read on.
    pub next: u64,
}

impl RunLog {
    pub fn append(&mut self, bytes: &[u8]) {
        let room = limits::LOG_HEAD_MAX.saturating_sub(self.head.len());
        // The head is whole before the tail begins.
        let room = if self.tail.is_empty() { room } else { 0 };
        let (head, tail) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(tail);
        let over = self.tail.len().saturating_sub(limits::LOG_TAIL_MAX);
        self.tail.drain(..over);
        self.total = self.total.saturating_add(bytes.len() as u64);
    }

    /// Where the tail begins.
    fn tail_from(&self) -> u64 {
        self.total.saturating_sub(self.tail.len() as u64)
    }

    /// What comes at `after` or later, up to the first gap.
    pub fn read(&self, after: u64) -> LogPart {
        let (head_end, tail_from) = (self.head.len() as u64, self.tail_from());
        let skip = |bytes: &[u8], from: u64| {
            let skipped = usize::try_from(after.saturating_sub(from)).unwrap_or(usize::MAX);
            bytes.get(skipped..).unwrap_or_default().to_vec()
        };
        if after < head_end {
            let mut bytes = skip(&self.head, 0);
            let mut next = head_end;
            if tail_from <= head_end {
                bytes.extend_from_slice(&self.tail);
                next = self.total;
            }
            return LogPart {
                from: after,
                bytes: Bytes::from(bytes),
                next,
            };
        }
        LogPart {
            from: after.max(tail_from).min(self.total),
            bytes: Bytes::from(skip(&self.tail, tail_from)),
            next: self.total,
        }
    }

    /// The same while more may come: a character of which only a part is there yet is left for the next part.
    pub fn read_chars(&self, after: u64) -> LogPart {
        let mut part = self.read(after);
        if part.next == self.total {
            let last = part.bytes.utf8_chunks().last();
            let cut = last.map_or(0, |chunk| chunk.invalid().len());
            part.bytes.truncate(part.bytes.len() - cut);
            part.next -= cut as u64;
        }
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn handed() -> Handed {
        Handed {
            run: RunId::from_bytes([1; 16]),
            job: JobId::from_bytes([2; 16]),
            attempt: AttemptNo::FIRST,
            node: None,
            dispatched_at: at(0),
            within: Duration::from_secs(60),
            timeout_at: at(600_000),
            until: Some(at(60_000)),
            cancelled: false,
            beaten_at: None,
            progress: None,
        }
    }

    #[test]
    fn a_heartbeat_moves_the_moment_and_never_beyond_the_timeout() {
        let mut handed = handed();
        handed.trust(at(50_000));
        assert_eq!(handed.until, Some(at(110_000)));
        handed.trust(at(20_000));
        assert_eq!(handed.until, Some(at(110_000)), "by a clock that is behind");
        handed.trust(at(590_000));
        assert_eq!(handed.until, Some(at(600_000)));
    }

    #[test]
    fn a_cancel_sets_the_moment_and_heartbeats_move_it_no_more() {
        let mut handed = handed();
        handed.cancel(at(10_000));
        assert_eq!(handed.until, Some(at(70_000)));
        handed.trust(at(65_000));
        handed.cancel(at(66_000));
        assert_eq!(handed.until, Some(at(70_000)));
        let mut brief = Handed {
            within: Duration::from_secs(1),
            ..self::handed()
        };
        brief.cancel(at(10_000));
        assert_eq!(brief.until, Some(at(40_000)), "a little at least");
    }

    #[test]
    fn progress_reads_back() {
        for progress in [Progress::Share(0.25), Progress::Text("#1 of 3".to_owned())] {
            let column = progress.to_column();
            assert_eq!(Progress::from_column(&column), Some(progress));
        }
        assert_eq!(Progress::from_column("#1.5"), None);
        assert_eq!(Progress::from_column("?"), None);
    }

    #[test]
    fn a_log_keeps_its_head_and_its_tail() {
        let mut log = RunLog::default();
        log.append(b"first\n");
        assert_eq!(log.read(0).bytes, Bytes::from_static(b"first\n"));
        assert_eq!(
            log.read(6),
            LogPart {
                from: 6,
                bytes: Bytes::new(),
                next: 6
            }
        );
        let line = vec![b'x'; 1_000];
        for _ in 0..1_000 {
            log.append(&line);
        }
        log.append(b"last\n");
        assert_eq!(log.total, 1_000_011);
        assert!(log.head.starts_with(b"first\n") && log.tail.ends_with(b"last\n"));
        assert_eq!(log.head.len(), limits::LOG_HEAD_MAX);
        assert_eq!(log.tail.len(), limits::LOG_TAIL_MAX);
        let head = log.read(0);
        assert_eq!((head.from, head.next), (0, limits::LOG_HEAD_MAX as u64));
        let tail = log.read(head.next);
        assert_eq!(tail.from, log.total - limits::LOG_TAIL_MAX as u64);
        assert_eq!(
            (tail.bytes.len(), tail.next),
            (limits::LOG_TAIL_MAX, log.total)
        );
        assert_eq!(log.read(log.total - 5).bytes, Bytes::from_static(b"last\n"));
        assert!(log.read(u64::MAX).bytes.is_empty());
    }
}
