//! Runs of a day: how many runs a tenant has had since midnight UTC, and whether it may have another.
//!
//! A run counts once, on the day on which it is due or inserted, whichever is later; attempts do not count. Every node counts
//! what it inserts, in memory, and says so once a second. So a node knows its own runs exactly, and those of the others
//! as they were a second ago.

use crate::id::TenantId;
use crate::quota::{Quota, QuotaExceeded};
use crate::tenant::TenantName;
use crate::time::Timestamp;

const DAY: i64 = 24 * 3_600 * 1_000;

/// A day of UTC, counted from the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub i64);

impl Day {
    pub fn of(moment: Timestamp) -> Self {
        Self(moment.as_millis().div_euclid(DAY))
    }

    pub fn before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

/// How many runs one node has inserted for a tenant on a day, all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunCount {
    pub tenant: TenantId,
    pub day: Day,
    pub runs: u64,
}

/// A tenant that may have only so many runs a day, and how many it has had by other nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunQuota {
    pub tenant: TenantId,
    pub name: TenantName,
    pub limit: u64,
    pub others: u64,
}

impl RunQuota {
    /// Whether one more run fits beside those of this node on `day`; what is known of others is of the day `known`.
    pub fn admit(&self, known: Day, day: Day, own: u64) -> Result<(), QuotaExceeded> {
        let others = if known == day { self.others } else { 0 };
        let (used, limit) = (own.saturating_add(others), self.limit);
        let quota = Quota::RunsDay;
        if used < limit {
            Ok(())
        } else {
            Err(QuotaExceeded { quota, limit, used })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_at_midnight_utc() {
        let day = |millis| Day::of(Timestamp::from_millis(millis));
        assert_eq!([day(0), day(DAY - 1), day(DAY)], [Day(0), Day(0), Day(1)]);
        assert_eq!(day(DAY).before(), Day(0));
    }

    #[test]
    fn a_tenant_has_as_many_runs_a_day_as_it_may() {
        let quota = RunQuota {
            tenant: TenantId::DEFAULT,
            name: TenantName::new("default").unwrap(),
            limit: 10,
            others: 4,
        };
        let admit = |day, own| quota.admit(Day(7), Day(day), own).map_err(|it| it.used);
        assert_eq!(admit(7, 5), Ok(()));
        assert_eq!(admit(7, 6), Err(10));
        assert_eq!(admit(7, u64::MAX), Err(u64::MAX));
        // The next day nobody has had any that this node does not know of.
        assert_eq!(admit(8, 9), Ok(()));
        assert_eq!(admit(8, 10), Err(10));
    }
}
