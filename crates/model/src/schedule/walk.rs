//! From local time to moments, through daylight saving. Time is walked in stretches of one offset each:
//!
//! ```text
//!            gap: clocks jump ahead          overlap: clocks go back
//!   ────────────┤├──────────────────────────────────┤├──────────────
//!    offset a    │  offset b                         │  offset a
//!                └ fixed times left out run here     └ fixed times of the repeated hour have run
//! ```
//!
//! Rules that follow elapsed time take every stretch as it comes. Fixed ones run once at the end of a gap
//! that swallowed at least one of their times, and leave the second pass of an overlap out.

use super::civil::DAY;
use super::cron::{DstGap, DstOverlap};
use super::rule::Rule;
use super::zone::{Shift, Zone};

/// The offset of a zone changes at most once in this time; a test of `zone` says so for all of them.
const APART: i64 = 4 * DAY;
/// More than the clocks ever move.
const MOVE_MAX: i64 = DAY;

/// What fixed times do when the clocks change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) gap: DstGap,
    pub(super) overlap: DstOverlap,
}

/// The first moment strictly after one at which a rule is due; all in seconds since the epoch.
pub(super) fn next(rule: &Rule, zone: &Zone, policy: Policy, after: i64) -> Option<i64> {
    match quick(rule, zone, after) {
        Quick::Found(moment) => Some(moment),
        Quick::Never => None,
        Quick::Unknown => thorough(rule, zone, policy, after + 1),
    }
}

enum Quick {
    Found(i64),
    Never,
    Unknown,
}

/// The usual case: no change of offset anywhere near. It is shown by comparing offsets at moments that are
/// too close for two changes to lie between them, which costs less than finding the changes.
fn quick(rule: &Rule, zone: &Zone, after: i64) -> Quick {
    // A day before, because the second pass of an overlap reaches that far at most.
    let offset = zone.offset_at(after - MOVE_MAX);
    let Some(local) = rule.next_local(after + 1 + offset) else {
        return if zone.offset_at(after + MOVE_MAX) == offset {
            Quick::Never
        } else {
            Quick::Unknown
        };
    };
    let moment = local - offset;
    if moment - after <= APART - MOVE_MAX {
        return if zone.offset_at(moment) == offset {
            Quick::Found(moment)
        } else {
            Quick::Unknown
        };
    }
    // Far ahead. Nothing can match in between but what a change near `after` repeats.
    if zone.offset_at(after + MOVE_MAX) != offset {
        return Quick::Unknown;
    }
    let there = zone.offset_at(moment - MOVE_MAX);
    let moment = local - there;
    if zone.offset_at(moment) == there && zone.offset_at(moment - MOVE_MAX) == there {
        Quick::Found(moment)
    } else {
        Quick::Unknown
    }
}

/// The exact walk, for the days around a change: the first moment at or after `start`.
fn thorough(rule: &Rule, zone: &Zone, policy: Policy, mut start: i64) -> Option<i64> {
    let mut entered = zone.shift_until(start);
    loop {
        let offset = match entered {
            Some(shift) => shift.after,
            None => zone.offset_at(start),
        };
        let mut from = start + offset;
        if let Some(shift) = entered {
            if shift.at == start && runs_at_end(rule, policy, shift) {
                return Some(start);
            }
            if !rule.elapsed && policy.overlap == DstOverlap::First && shift.is_overlap() {
                from = from.max(shift.local_before());
            }
        }
        let moment = rule.next_local(from).map(|local| local - offset);
        let Some(left) = zone.shift_after(start) else {
            return moment;
        };
        match moment {
            Some(moment) if moment < left.at => return Some(moment),
            // Only a change close by can repeat what lies behind; past that the walk may skip ahead.
            Some(moment) if left.at > start + MOVE_MAX && moment > left.at + APART => {
                start = moment - 2 * MOVE_MAX;
                entered = zone.shift_until(start);
            }
            None if left.at > start + MOVE_MAX => return None,
            Some(_) | None => {
                start = left.at;
                entered = Some(left);
            }
        }
    }
}

/// Whether a gap ends with a slot for the times that fell into it.
fn runs_at_end(rule: &Rule, policy: Policy, shift: Shift) -> bool {
    !rule.elapsed
        && policy.gap == DstGap::RunAfter
        && shift.is_gap()
        && rule.matches_within(shift.local_before(), shift.local_after())
}
