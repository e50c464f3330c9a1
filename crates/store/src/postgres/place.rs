//! Where a job stands in the order of plan: by its step, then by its shard, then by the moment within the step.
//!
//! One number, so that its index is as narrow as one of moments alone:
//!
//! ```text
//!   due_at / 64 ms     shard      due_at within 64 ms
//! ├──────────────────┼──────────┼─────────────────────┤
//!                     8 bits     6 bits
//! ```
//!
//! Whoever holds all shards reads steps whole, as if the shard were not there. Whoever holds few looks up each of them in each
//! step, and reads nothing of the others.

use model::shard::ShardSet;
use model::{JobId, Shard, Timestamp, limits};
use uuid::Uuid;

use super::presence::{shards, some_shards};
use crate::DueCursor;

/// Bits of a moment within its step, and of a shard beside them.
const WITHIN: u32 = 6;
const IN_STEP: u32 = WITHIN + 8;
const _: () = assert!(limits::PLAN_STEP.as_millis() == 1 << WITHIN);

/// Who has more shards than this reads steps whole, and leaves out what others hold.
const FEW: usize = 64;
/// Steps that are looked up whether or not they have anything: the window has about three hundred.
const NEAR: i64 = 1_024;

/// What some shards have between two moments.
pub(super) struct Stretch {
    /// Behind this place and this id.
    pub behind: (i64, Uuid),
    pub last: i64,
    /// Nothing for all.
    pub shards: Option<Vec<i16>>,
    pub reach: Reach,
}

/// How it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Whole steps, one after another.
    Whole,
    /// Each shard of each step.
    Near,
    /// Each shard of each step that has something.
    Far,
}

impl Stretch {
    pub(super) fn after(after: Option<DueCursor>, up_to: Timestamp, of: &ShardSet) -> Self {
        let last = after.and_then(|after| after.last);
        let later_than = after.and_then(|after| after.later_than);
        let behind = match (last, later_than) {
            (Some((due_at, job)), _) => (place(due_at, job), job.0),
            (None, Some(moment)) => (first(moment).saturating_sub(1), Uuid::max()),
            (None, None) => (-1, Uuid::max()),
        };
        Self::new(behind, up_to, of)
    }

    pub(super) fn from(from: Timestamp, up_to: Timestamp, of: &ShardSet) -> Self {
        Self {
            // Each of them is looked up in the first step that has something.
            shards: Some(shards(of)),
            ..Self::new((first(from), Uuid::nil()), up_to, of)
        }
    }

    fn new(behind: (i64, Uuid), up_to: Timestamp, of: &ShardSet) -> Self {
        let last = first(up_to) | ((1 << IN_STEP) - 1);
        let steps = (last >> IN_STEP).saturating_sub(behind.0 >> IN_STEP);
        let reach = if of.len() > FEW {
            Reach::Whole
        } else if steps <= NEAR {
            Reach::Near
        } else {
            Reach::Far
        };
        Self {
            behind,
            last,
            shards: some_shards(of),
            reach,
        }
    }
}

/// The place before all others of a moment's step.
fn first(moment: Timestamp) -> i64 {
    (moment.as_millis() >> WITHIN) << IN_STEP
}

fn place(due_at: Timestamp, job: JobId) -> i64 {
    let within = due_at.as_millis() & ((1 << WITHIN) - 1);
    first(due_at) | i64::from(Shard::of(job).0) << WITHIN | within
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_in_the_order_of_steps_then_shards_then_moments() {
        let at = |millis| Timestamp::from_millis(millis);
        let mut jobs: Vec<JobId> = (0..40).map(|n| JobId(Uuid::from_u128(n))).collect();
        jobs.sort_by_key(|job| Shard::of(*job));
        jobs.dedup_by_key(|job| Shard::of(*job));
        let mut places = Vec::new();
        for step in [0, 1, 26_000_000_000] {
            for job in &jobs {
                places.extend(
                    [0, 1, 63].map(|ms| (Shard::of(*job), place(at(step * 64 + ms), *job))),
                );
            }
        }
        assert!(places.is_sorted_by_key(|(_, place)| *place));
        assert_eq!(
            first(Timestamp::MAX) >> IN_STEP,
            Timestamp::MAX.as_millis() / 64
        );
    }

    #[test]
    fn few_shards_are_read_alone_and_far_ones_only_where_something_is() {
        let few: ShardSet = Shard::all().take(FEW).collect();
        let many: ShardSet = Shard::all().take(FEW + 1).collect();
        let at = Timestamp::from_millis;
        for (of, later_than, up_to, reach) in [
            (&many, 0, 1_000, Reach::Whole),
            (&few, 1_000, 20_000, Reach::Near),
            (&few, 1_000, 200_000, Reach::Far),
        ] {
            let after = Some(DueCursor::later_than(at(later_than)));
            assert_eq!(Stretch::after(after, at(up_to), of).reach, reach);
        }
        assert_eq!(Stretch::after(None, at(1_000), &ShardSet::ALL).shards, None);
    }
}
