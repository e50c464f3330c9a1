//! Partitions of history: one for each day of UTC, by the moment in a run's id; each is dropped whole.
//!
//! A partition goes when its keep time has passed since its end and since its last entry. A run that ends long after the day
//! it belongs to (a straggler) is written there all the same: the partition is made again if it is gone, and then stays for
//! its keep time. Runs that live keep nothing.

use std::time::Duration;

use crate::id::RunId;
use crate::run::Run;
use crate::time::Timestamp;

const DAY: i64 = 24 * 3_600 * 1_000;
/// Entries of stragglers count as written at the end of their hour, so that a store has to note them once an hour.
const NOTED_EVERY: i64 = 3_600 * 1_000;

/// A day of UTC, counted from the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(pub i64);

impl Partition {
    pub fn of(run: RunId) -> Self {
        Self::at(run.at())
    }

    pub fn at(moment: Timestamp) -> Self {
        Self(moment.as_millis().div_euclid(DAY))
    }

    /// The first moment after it.
    pub fn ends_at(self) -> Timestamp {
        Timestamp::from_millis(self.0.saturating_add(1).saturating_mul(DAY))
    }

    /// From when its keep time counts, if its last entry was settled at this moment.
    pub fn kept_from(self, settled_at: Timestamp) -> Timestamp {
        let hour = settled_at
            .plus(Duration::from_millis(NOTED_EVERY.unsigned_abs() - 1))
            .as_millis();
        let noted = Timestamp::from_millis(hour - hour.rem_euclid(NOTED_EVERY));
        noted.max(self.ends_at())
    }
}

impl Run {
    /// Where an ended run is kept, and from when that is kept on its account.
    pub fn partition(&self) -> (Partition, Timestamp) {
        let partition = Partition::of(self.id);
        let settled_at = self.settled_at.unwrap_or(Timestamp::MIN);
        (partition, partition.kept_from(settled_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn a_partition_is_kept_from_its_end_or_from_the_hour_after_a_straggler() {
        let partition = Partition(19_675);
        let end = partition.ends_at();
        assert_eq!(Partition::at(end), Partition(19_676));
        let millisecond = Duration::from_millis(1);
        assert_eq!(Partition::at(end.minus(millisecond)), partition);
        for (settled_at, expected) in [
            (Timestamp::MIN, end),
            (end.minus(HOUR), end),
            (end, end),
            (end.plus(millisecond), end.plus(HOUR)),
            (end.plus(HOUR), end.plus(HOUR)),
            (end.plus(HOUR + millisecond), end.plus(HOUR * 2)),
        ] {
            assert_eq!(partition.kept_from(settled_at), expected, "{settled_at:?}");
        }
        let last = Partition::at(Timestamp::MAX);
        assert!(last.kept_from(Timestamp::MAX) <= last.ends_at());
    }
}
