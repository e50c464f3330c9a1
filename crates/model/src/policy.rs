//! Policies: what a job wants done when slots collide, pass unseen, or end in doubt.

use std::time::Duration;

use crate::limits;
use crate::run::Reason;

/// A slot is due while the job's last run lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlap {
    Skip,
    QueueOne,
    QueueAll { max: u32 },
    CancelRunning,
    Allow,
}

/// The job's runs that have not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Living {
    /// Those that may start, have started, or wait for a retry.
    pub moving: u32,
    /// Those that wait for the others to end.
    pub waiting: u32,
}

/// What becomes of a slot that meets [`Living`] runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    Start,
    /// Inserted as waiting; the end of the run before it wakes it.
    Wait,
    Skip(Reason),
    /// Marks the moving runs to be cancelled, drops the waiting ones, and waits.
    Replace,
}

impl Overlap {
    pub const QUEUE_MAX: u32 = 100;

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::QueueOne => "queue_one",
            Self::QueueAll { .. } => "queue_all",
            Self::CancelRunning => "cancel_running",
            Self::Allow => "allow",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        let queue_all = Self::QueueAll {
            max: Self::QUEUE_MAX,
        };
        [
            Self::Skip,
            Self::QueueOne,
            queue_all,
            Self::CancelRunning,
            Self::Allow,
        ]
        .into_iter()
        .find(|overlap| overlap.as_str() == text)
    }

    pub fn admit(self, living: Living) -> Admission {
        if living == Living::default() {
            return Admission::Start;
        }
        match self {
            Self::Allow => Admission::Start,
            Self::Skip => Admission::Skip(Reason::Overlap),
            Self::QueueOne if living.waiting == 0 => Admission::Wait,
            Self::QueueOne => Admission::Skip(Reason::Overlap),
            Self::QueueAll { max } if living.waiting < max => Admission::Wait,
            Self::QueueAll { .. } => Admission::Skip(Reason::QueueFull),
            Self::CancelRunning => Admission::Replace,
        }
    }
}

/// What becomes of slots that passed while no node could fire them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatchUp {
    pub policy: CatchUpPolicy,
    /// How old a missed slot may be and still run.
    pub window: Duration,
    /// How many missed slots `all` runs at most; the newest are kept.
    pub max: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CatchUpPolicy {
    None,
    #[default]
    Latest,
    All,
}

impl CatchUpPolicy {
    pub const ALL: [Self; 3] = [Self::None, Self::Latest, Self::All];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Latest => "latest",
            Self::All => "all",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == text)
    }
}

impl CatchUp {
    pub const MAX_DEFAULT: u32 = 100;
    pub const MAX_MAX: u32 = 10_000;

    /// The default for a schedule: an hour for periods under a day, else a day. A one-off has no
    /// period and gets the day.
    pub fn default_for(period: Option<Duration>) -> Self {
        let day = Duration::from_secs(24 * 3600);
        let window = match period {
            Some(period) if period < day => Duration::from_secs(3600),
            Some(_) | None => limits::PAST_TOLERANCE,
        };
        Self {
            policy: CatchUpPolicy::Latest,
            window,
            max: Self::MAX_DEFAULT,
        }
    }
}

/// What a run in doubt becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delivery {
    #[default]
    AtLeastOnce,
    AtMostOnce,
}

impl Delivery {
    pub const ALL: [Self; 2] = [Self::AtLeastOnce, Self::AtMostOnce];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::AtLeastOnce => "at_least_once",
            Self::AtMostOnce => "at_most_once",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|delivery| delivery.as_str() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_overlap_meets_living_runs_its_own_way() {
        let living = |moving, waiting| Living { moving, waiting };
        let check =
            |overlap: Overlap, living, expected| assert_eq!(overlap.admit(living), expected);
        let queue_two = Overlap::QueueAll { max: 2 };
        check(Overlap::Skip, living(0, 0), Admission::Start);
        check(
            Overlap::Skip,
            living(1, 0),
            Admission::Skip(Reason::Overlap),
        );
        check(Overlap::QueueOne, living(1, 0), Admission::Wait);
        check(
            Overlap::QueueOne,
            living(1, 1),
            Admission::Skip(Reason::Overlap),
        );
        check(queue_two, living(1, 1), Admission::Wait);
        check(queue_two, living(1, 2), Admission::Skip(Reason::QueueFull));
        check(Overlap::CancelRunning, living(1, 1), Admission::Replace);
        check(Overlap::Allow, living(9, 0), Admission::Start);
    }
}
