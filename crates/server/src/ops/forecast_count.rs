//! The counting of a forecast: planned jobs come in, slots by second and lane come out. No I/O, no clock.
//!
//! ```text
//!   now            exact_until               until
//!    ├── every job ─────┤── a sample of them ──┤
//! ```
//!
//! What always holds: the work is bounded, whatever schedules say. Slots are counted before they are walked; where they are too
//! many, the exact part ends sooner, and fewer jobs stand for the others behind it.

use std::sync::Arc;
use std::time::Duration;

use model::{Job, Lane, Timestamp};
use store::DueSpan;

use super::ahead::{MILLISECOND, Walk};

/// Slots that either part walks over.
const SLOTS_MAX: u64 = 2_000_000;
/// No shorter spread is worth anything: jobs that come so often are on their way all the time.
pub(super) const SPREAD_MIN: Duration = Duration::from_secs(2);
/// How far the exact part may reach, tried from the longest on.
const REACHES: [Duration; 6] = [
    Duration::from_secs(86_400),
    Duration::from_secs(6 * 3_600),
    Duration::from_secs(3_600),
    Duration::from_secs(900),
    Duration::from_secs(60),
    Duration::from_secs(1),
];

/// Jobs that were read.
#[derive(Debug, Default)]
pub(super) struct Read {
    /// Every one that is due up to `whole_until`, in the order of plan.
    pub whole: Vec<Arc<Job>>,
    pub whole_until: Timestamp,
    /// Those behind it: of every 65,536 jobs so many. Nothing where `whole` has them all.
    pub sample: Option<(Vec<Arc<Job>>, u32)>,
    /// Jobs that are due later were not looked at.
    pub until: Timestamp,
}

/// Slots by second.
pub(super) struct Seconds {
    pub from: Timestamp,
    pub exact_until: Timestamp,
    pub until: Timestamp,
    /// The share of jobs that stand for all behind `exact_until`.
    pub share: f64,
    /// By `Lane::ALL`.
    pub lanes: [Vec<f32>; Lane::COUNT],
    /// Of them, those whose job may be spread.
    pub movable: Vec<f32>,
}

/// A job that may be due a little later, each time by as much: it repeats, and says nothing about it yet.
pub(super) fn may_spread(job: &Job) -> bool {
    let period = job.def.schedule.shortest_period();
    job.def.spread.is_zero()
        && job.def.schedule.is_recurring()
        && period.is_none_or(|period| period > SPREAD_MIN)
}

/// The moments at which a job is due from `from` to before `until`, if nothing changes.
pub(super) fn due_within(
    job: &Job,
    from: Timestamp,
    until: Timestamp,
    mut each: impl FnMut(Timestamp),
) {
    let Some(next) = job.next_slot else { return };
    let offset = job.id.offset_within(job.def.spread);
    if job.def.schedule.after_completion() {
        let due_at = next.0.plus(offset);
        if due_at >= from && due_at < until {
            each(due_at);
        }
        return;
    }
    let left = job.runs_left().map_or(usize::MAX, |left| left as usize);
    let start = next.0.max(from.minus(offset)).minus(MILLISECOND);
    // Those before the stretch are among the runs that are left.
    let passed = if start.plus(MILLISECOND) > next.0 && left != usize::MAX {
        slots_within(job, next.0, start)
    } else {
        0
    };
    let left = left.saturating_sub(usize::try_from(passed).unwrap_or(usize::MAX));
    let mut walk = Walk::new(
        &job.def.schedule,
        start,
        until.minus(offset).minus(MILLISECOND),
    );
    walk.kept()
        .take(left)
        .for_each(|slot| each(slot.0.plus(offset)));
}

/// About how many slots there are from `from` to `last`: those that calendars leave out are counted too.
fn slots_within(job: &Job, from: Timestamp, last: Timestamp) -> u64 {
    let schedule = &job.def.schedule;
    let first = schedule.next_after(from.minus(MILLISECOND));
    let first = first.filter(|slot| slot.0 <= last);
    first.map_or(0, |first| schedule.stretch(first, last).count)
}

/// How many slots are walked for these jobs; it stops counting where they are too many.
fn work(jobs: &[Arc<Job>], from: Timestamp, until: Timestamp) -> u64 {
    let mut sum = 0_u64;
    for job in jobs {
        let Some(next) = job.next_slot else { continue };
        // Each job costs something, whether it has slots there or not.
        sum += 1 + slots_within(job, next.0.max(from), until);
        if sum > SLOTS_MAX {
            break;
        }
    }
    sum
}

impl Seconds {
    /// Counts the slots from `now` on, at most until `to`.
    pub(super) fn count(read: &Read, now: Timestamp, to: Timestamp) -> Self {
        let until = read.until.min(to);
        let from = Timestamp::from_millis(now.as_millis().div_euclid(1_000) * 1_000);
        let len = usize::try_from(until.since(from).as_secs()).unwrap_or(0) + 1;
        let exact_until = exact_until(read, now, until);
        let mut seconds = Self {
            from,
            exact_until,
            until,
            share: 1.0,
            lanes: std::array::from_fn(|_| vec![0.0; len]),
            movable: vec![0.0; len],
        };
        seconds.add(&read.whole, 1.0, (now, exact_until));
        if exact_until < until {
            let (jobs, sample) = match &read.sample {
                Some((jobs, sample)) => (jobs, *sample),
                None => (&read.whole, DueSpan::ALL),
            };
            let (jobs, sample) = thinned(jobs.clone(), sample, (exact_until, until));
            seconds.share = f64::from(sample) / f64::from(DueSpan::ALL);
            let weight = (1.0 / seconds.share) as f32;
            seconds.add(&jobs, weight, (exact_until, until));
            if sample == DueSpan::ALL {
                seconds.exact_until = until;
            }
        }
        seconds
    }

    fn add(&mut self, jobs: &[Arc<Job>], weight: f32, (from, until): (Timestamp, Timestamp)) {
        let start = self.from;
        for job in jobs {
            let may_move = may_spread(job);
            let Some(lane) = self.lanes.get_mut(job.def.lane.index()) else {
                continue;
            };
            let movable = &mut self.movable;
            due_within(job, from, until, |due_at| {
                let place = usize::try_from(due_at.since(start).as_secs()).unwrap_or(usize::MAX);
                if let Some(count) = lane.get_mut(place) {
                    *count += weight;
                }
                if let Some(count) = movable.get_mut(place).filter(|_| may_move) {
                    *count += weight;
                }
            });
        }
    }
}

/// How far every job can be walked.
fn exact_until(read: &Read, now: Timestamp, until: Timestamp) -> Timestamp {
    let known = read.whole_until.min(until);
    let ends = REACHES.map(|reach| now.plus(reach).min(known));
    let fits = |end: &Timestamp| work(&read.whole, now, *end) <= SLOTS_MAX;
    ends.into_iter().find(fits).unwrap_or(now)
}

/// Halves the jobs until their slots can be walked.
fn thinned(
    mut jobs: Vec<Arc<Job>>,
    mut sample: u32,
    (from, until): (Timestamp, Timestamp),
) -> (Vec<Arc<Job>>, u32) {
    while sample > 1 && work(&jobs, from, until) > SLOTS_MAX {
        sample /= 2;
        jobs.retain(|job| u32::from(job.id.place()) < sample);
    }
    (jobs, sample)
}

#[cfg(test)]
#[path = "forecast_tests.rs"]
mod tests;
