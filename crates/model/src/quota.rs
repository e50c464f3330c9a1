//! Quotas: how much a tenant may have. What it has is counted where it is written; whether more fits is decided here.
//!
//! What counts: every job that is kept, whatever its state, with the payload that it has; deleted ones do not. Whoever is
//! over a quota, as after it was lowered, keeps what it has and may have less, but not more. Runs of a day are counted apart
//! (`runs_day`).

use std::time::Duration;

use crate::job::{Job, JobState};
use crate::time::Timestamp;

const DAY: Duration = Duration::from_secs(86_400);

/// What a tenant has only so much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quota {
    Jobs,
    PayloadBytes,
    /// What has ended is seen for so many days. Nothing is counted: it is compared with the clock.
    HistoryDays,
    /// Runs that are inserted on one day of UTC. They are counted by nodes, not with each write.
    RunsDay,
}

impl Quota {
    pub const ALL: [Self; 4] = [
        Self::Jobs,
        Self::PayloadBytes,
        Self::HistoryDays,
        Self::RunsDay,
    ];
    /// Those of which something is counted with each write.
    pub const COUNTED: [Self; 2] = [Self::Jobs, Self::PayloadBytes];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Jobs => "jobs_max",
            Self::PayloadBytes => "payload_bytes_max",
            Self::HistoryDays => "history_days_max",
            Self::RunsDay => "runs_day_max",
        }
    }

    /// What a tenant may have that nothing is said of; none is as much as there is.
    pub fn default_max(self) -> Option<u64> {
        match self {
            Self::Jobs => Some(10_000_000),
            Self::PayloadBytes => Some(64 << 30),
            Self::HistoryDays | Self::RunsDay => None,
        }
    }

    /// The least that can be said.
    pub fn lowest(self) -> u64 {
        match self {
            Self::Jobs | Self::PayloadBytes | Self::RunsDay => 0,
            Self::HistoryDays => 1,
        }
    }

    /// The most that can be said: all stores count so far.
    pub const fn highest(self) -> u64 {
        match self {
            Self::Jobs => 1_000_000_000,
            Self::PayloadBytes => 1 << 50,
            Self::HistoryDays => 3_650,
            Self::RunsDay => 1_000_000_000_000,
        }
    }
}

/// How much one tenant may have; none is the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quotas {
    pub jobs_max: Option<u64>,
    pub payload_bytes_max: Option<u64>,
    pub history_days_max: Option<u64>,
    pub runs_day_max: Option<u64>,
}

/// How much it has, or how much a job takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    pub jobs: u64,
    pub payload_bytes: u64,
}

/// More than there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaExceeded {
    pub quota: Quota,
    pub limit: u64,
    /// Before what was asked for.
    pub used: u64,
}

impl Quotas {
    pub fn limit(&self, quota: Quota) -> Option<u64> {
        self.said(quota).or(quota.default_max())
    }

    /// From when on what has ended is seen; all that is kept if nothing is said.
    pub fn history_from(&self, now: Timestamp) -> Option<Timestamp> {
        let days = self.limit(Quota::HistoryDays)?;
        Some(now.minus(DAY.saturating_mul(u32::try_from(days).unwrap_or(u32::MAX))))
    }

    /// What was said of it.
    pub fn said(&self, quota: Quota) -> Option<u64> {
        match quota {
            Quota::Jobs => self.jobs_max,
            Quota::PayloadBytes => self.payload_bytes_max,
            Quota::HistoryDays => self.history_days_max,
            Quota::RunsDay => self.runs_day_max,
        }
    }

    pub fn set(&mut self, quota: Quota, max: Option<u64>) {
        match quota {
            Quota::Jobs => self.jobs_max = max,
            Quota::PayloadBytes => self.payload_bytes_max = max,
            Quota::HistoryDays => self.history_days_max = max,
            Quota::RunsDay => self.runs_day_max = max,
        }
    }

    /// What a tenant uses once something of it takes `after` instead of `before`, if it may.
    pub fn admit(&self, used: Usage, before: Usage, after: Usage) -> Result<Usage, QuotaExceeded> {
        for quota in Quota::COUNTED {
            let limit = self.limit(quota).unwrap_or(u64::MAX);
            let used = used.of(quota);
            let (less, more) = (before.of(quota), after.of(quota));
            if more > less && used.saturating_add(more - less) > limit {
                return Err(QuotaExceeded { quota, limit, used });
            }
        }
        Ok(used.less(before).more(after))
    }
}

impl Usage {
    /// What a job takes; one that is deleted takes nothing.
    pub fn by(job: &Job) -> Self {
        if job.state == JobState::Deleted {
            return Self::default();
        }
        let payload = job.def.payload.as_ref().map(|payload| payload.len() as u64);
        Self {
            jobs: 1,
            payload_bytes: job.payload_left.map(u64::from).or(payload).unwrap_or(0),
        }
    }

    pub fn of(&self, quota: Quota) -> u64 {
        match quota {
            Quota::Jobs => self.jobs,
            Quota::PayloadBytes => self.payload_bytes,
            Quota::HistoryDays | Quota::RunsDay => 0,
        }
    }

    pub fn more(self, by: Self) -> Self {
        Self {
            jobs: self.jobs.saturating_add(by.jobs),
            payload_bytes: self.payload_bytes.saturating_add(by.payload_bytes),
        }
    }

    pub fn less(self, by: Self) -> Self {
        Self {
            jobs: self.jobs.saturating_sub(by.jobs),
            payload_bytes: self.payload_bytes.saturating_sub(by.payload_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(jobs: u64, payload_bytes: u64) -> Usage {
        Usage {
            jobs,
            payload_bytes,
        }
    }

    fn check(
        used: (u64, u64),
        before: (u64, u64),
        after: (u64, u64),
        expected: Result<(u64, u64), (Quota, u64, u64)>,
    ) {
        let quotas = Quotas {
            jobs_max: Some(10),
            payload_bytes_max: Some(100),
            ..Quotas::default()
        };
        let admitted = quotas.admit(
            usage(used.0, used.1),
            usage(before.0, before.1),
            usage(after.0, after.1),
        );
        let expected = expected.map(|(jobs, bytes)| usage(jobs, bytes));
        let exceeded = |it: QuotaExceeded| (it.quota, it.limit, it.used);
        assert_eq!(admitted.map_err(exceeded), expected);
    }

    #[test]
    fn a_tenant_gets_as_much_as_it_may_have_and_no_more() {
        check((9, 0), (0, 0), (1, 0), Ok((10, 0)));
        check((10, 0), (0, 0), (1, 0), Err((Quota::Jobs, 10, 10)));
        check((0, 90), (0, 0), (1, 10), Ok((1, 100)));
        check(
            (0, 90),
            (0, 0),
            (1, 11),
            Err((Quota::PayloadBytes, 100, 90)),
        );
        check(
            (0, u64::MAX),
            (0, 0),
            (1, 1),
            Err((Quota::PayloadBytes, 100, u64::MAX)),
        );
        check((5, 100), (1, 20), (1, 20), Ok((5, 100)));
        check(
            (5, 100),
            (1, 20),
            (1, 21),
            Err((Quota::PayloadBytes, 100, 100)),
        );
    }

    #[test]
    fn whoever_has_too_much_may_have_less() {
        check((20, 500), (1, 20), (1, 20), Ok((20, 500)));
        check((20, 500), (1, 20), (1, 10), Ok((20, 490)));
        check((20, 500), (1, 20), (0, 0), Ok((19, 480)));
        check((20, 0), (0, 0), (1, 0), Err((Quota::Jobs, 10, 20)));
    }

    #[test]
    fn a_quota_that_nothing_is_said_of_has_its_default() {
        let mut quotas = Quotas::default();
        for quota in Quota::ALL {
            assert_eq!(quotas.limit(quota), quota.default_max());
            assert!(quota.default_max() < Some(quota.highest()));
            quotas.set(quota, Some(0));
            assert_eq!(
                (quotas.limit(quota), quotas.said(quota)),
                (Some(0), Some(0))
            );
        }
    }

    #[test]
    fn history_is_seen_for_so_many_days() {
        let now = Timestamp::from_millis(10 * 86_400_000);
        let mut quotas = Quotas::default();
        assert_eq!(quotas.history_from(now), None);
        quotas.set(Quota::HistoryDays, Some(3));
        let from = Timestamp::from_millis(7 * 86_400_000);
        assert_eq!(quotas.history_from(now), Some(from));
        quotas.set(Quota::HistoryDays, Some(u64::MAX));
        assert_eq!(quotas.history_from(now), Some(Timestamp::MIN));
    }
}
