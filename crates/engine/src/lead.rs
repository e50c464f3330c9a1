//! Lead: how far ahead of its due time a slot is fired, so that the write is over by then. More when much is due soon,
//! and more when every write takes a while, as it does when the store is far away.

use std::time::Duration;

use model::limits;

/// What one firing is taken to cost before any was measured.
const COST_FIRST: Duration = Duration::from_micros(15);
/// Batches smaller than this say more about the way to the store and its disk than about a firing.
const COST_BATCH_MIN: usize = 100;
/// How long half of a slow write is remembered.
const HALF_LIFE: Duration = Duration::from_secs(10);
/// One write makes forget what so much time would: a node with little to do is not late for each of its slots.
const FORGET_MAX: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Lead {
    /// What a firing adds to a write.
    cost: Duration,
    /// What a write takes, however little it writes: the longest of late, less what was forgotten since.
    latency: Duration,
    /// When that was looked at, by uptime.
    learned: Duration,
}

impl Default for Lead {
    fn default() -> Self {
        Self {
            cost: COST_FIRST,
            latency: Duration::ZERO,
            learned: Duration::ZERO,
        }
    }
}

impl Lead {
    /// A write of so many was answered.
    pub(crate) fn learn(&mut self, count: usize, took: Duration, uptime: Duration) {
        if count >= COST_BATCH_MIN {
            let cost = took.saturating_sub(self.latency) / count as u32;
            self.cost = (self.cost * 7 + cost) / 8;
            return;
        }
        let since = uptime.saturating_sub(self.learned).min(FORGET_MAX);
        let kept = (-since.as_secs_f64() / HALF_LIFE.as_secs_f64()).exp2();
        self.latency = self.latency.mul_f64(kept).max(took);
        self.learned = uptime;
    }

    /// What slow writes add: one may be under way already when a slot comes up, and then its own follows. What a
    /// quick store takes is part of the least anyway.
    pub(crate) fn far(&self) -> Duration {
        let two = self.latency.saturating_mul(2);
        let beyond = two.saturating_sub(limits::LEAD_MIN / 2);
        beyond.min(limits::LEAD_FAR_MAX)
    }

    /// How far ahead slots are fired when so many are due soon.
    pub(crate) fn of(&self, least: Duration, due: usize) -> Duration {
        let writing = self.cost.saturating_mul(2).saturating_mul(due as u32);
        (least + self.far() + writing).min(limits::LEAD_MAX)
    }

    /// How long slots may wait for more to be written with them.
    pub(crate) fn gather(&self, lead: Duration) -> Duration {
        lead.saturating_sub(self.far()).mul_f64(0.3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const LEAST: Duration = limits::LEAD_MIN;

    #[test]
    fn a_quick_store_needs_no_more_than_the_least() {
        let mut lead = Lead::default();
        for second in 1..100 {
            lead.learn(5, MS * 12, Duration::from_secs(second));
        }
        assert_eq!(lead.of(LEAST, 0), LEAST);
        assert_eq!(lead.gather(LEAST), LEAST.mul_f64(0.3));
    }

    #[test]
    fn a_far_store_is_given_time_for_the_write_before_and_the_write_itself() {
        let mut lead = Lead::default();
        lead.learn(1, MS * 120, Duration::from_secs(1));
        assert!(lead.of(LEAST, 0) >= MS * 240 + LEAST / 2);
        assert!(lead.of(LEAST, 0) - lead.gather(lead.of(LEAST, 0)) >= MS * 240);
        lead.learn(1, Duration::from_secs(30), Duration::from_secs(2));
        assert_eq!(lead.of(LEAST, 0), LEAST + limits::LEAD_FAR_MAX);
    }

    #[test]
    fn a_slow_write_is_forgotten_in_time_but_not_for_want_of_writes() {
        let mut busy = Lead::default();
        busy.learn(1, MS * 200, Duration::ZERO);
        for tick in 1..3_000 {
            busy.learn(1, MS, MS * 10 * tick);
        }
        assert!((MS * 20..MS * 30).contains(&busy.latency), "{busy:?}");
        let mut idle = Lead::default();
        idle.learn(1, MS * 200, Duration::ZERO);
        idle.learn(1, MS, Duration::from_secs(3_600));
        assert!(idle.latency > MS * 180, "{idle:?}");
    }

    #[test]
    fn much_that_is_due_has_more_time_and_distance_is_not_counted_for_each() {
        let mut lead = Lead::default();
        assert!(lead.of(LEAST, 10_000) > MS * 300);
        lead.learn(1, MS * 120, Duration::ZERO);
        let before = lead.cost;
        lead.learn(200, MS * 122, Duration::ZERO);
        assert!(lead.cost <= before, "{lead:?}");
        assert_eq!(lead.of(LEAST, 1_000_000), limits::LEAD_MAX);
    }
}
