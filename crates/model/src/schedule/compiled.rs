//! The entries of a calendar as they are searched: made once, and searched by bisection however many there are.
//!
//! ```text
//!   dates, ranges ──▶ spans of local time, sorted and merged
//!   weekly        ──▶ windows of each weekday, sorted and merged; what goes over midnight is in both days
//!   yearly        ──▶ a bit for each day of each month
//! ```

use std::fmt;
use std::sync::OnceLock;

use super::Calendar;
use super::civil::{DAY, Date, weekday};

/// The first local time after all dates that entries can name.
const DATES_END: i64 = Date::new(9_999, 1, 1).to_days() * DAY;

/// From the first second to before the second, sorted, with something between one and the next.
type Spans = Vec<(i64, i64)>;

/// Whether a local time is held, and since and until when that is so, at least; all in local seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Around {
    pub(super) inside: bool,
    pub(super) since: i64,
    pub(super) until: i64,
}

/// What a calendar's entries come to, made when it is first queried. It is no part of what the calendar says:
/// copies, which may be changed, begin without, and all are equal.
#[derive(Default)]
pub struct Compiled(OnceLock<Box<Times>>);

impl Compiled {
    pub(super) fn of(calendar: &Calendar) -> &Times {
        let times = calendar.compiled.0.get_or_init(|| {
            #[cfg(test)]
            steps::compiled();
            Box::new(Times::new(calendar))
        });
        debug_assert_eq!(
            times.entries,
            calendar.len(),
            "changed after it was queried"
        );
        times
    }
}

impl Clone for Compiled {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Compiled {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Compiled {}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Compiled")
    }
}

/// The times that a calendar holds.
pub(super) struct Times {
    spans: Spans,
    /// Sunday first, in seconds of the day.
    weekly: [Spans; 7],
    /// January first; bit n for day n.
    yearly: [u32; 12],
    /// Whether a day may be held that no span names.
    repeats: bool,
    entries: usize,
}

impl Times {
    fn new(calendar: &Calendar) -> Self {
        let days = calendar.dates.iter().map(|date| date.days());
        let days = days.map(|day| (day * DAY, (day + 1) * DAY));
        let ranges = calendar.ranges.iter().map(|range| {
            // Nobody can write a later date: what goes on to the last one is meant to have no end.
            let endless = range.end() >= DATES_END;
            let end = if endless { i64::MAX } else { range.end() };
            (range.start(), end)
        });
        let weekly = [0, 1, 2, 3, 4, 5, 6].map(|day| {
            let windows = calendar
                .weekly
                .iter()
                .flat_map(|weekly| weekly.windows(day));
            merged(windows.collect())
        });
        let mut yearly = [0; 12];
        for (month, day) in calendar.yearly.iter().map(|one| one.month_and_day()) {
            if let Some(days) = yearly.get_mut(month as usize - 1) {
                *days |= 1 << day;
            }
        }
        Self {
            spans: merged(days.chain(ranges).collect()),
            weekly,
            yearly,
            repeats: !(calendar.weekly.is_empty() && calendar.yearly.is_empty()),
            entries: calendar.len(),
        }
    }

    pub(super) fn at(&self, local: i64) -> Around {
        let around = find(&self.spans, local, (i64::MIN, i64::MAX));
        if around.inside || !self.repeats {
            return around;
        }
        let day = local.div_euclid(DAY);
        let (morning, midnight) = (day * DAY, (day + 1) * DAY);
        let Date { month, day: of, .. } = Date::from_days(day);
        let yearly = self.yearly.get(month as usize - 1);
        if yearly.is_some_and(|days| days & 1 << of != 0) {
            return Around {
                inside: true,
                since: morning,
                until: midnight,
            };
        }
        let windows = self.weekly.get(weekday(day) as usize);
        let windows = windows.map_or(&[][..], Vec::as_slice);
        let window = find(windows, local - morning, (0, DAY));
        let (since, until) = (morning + window.since, morning + window.until);
        if window.inside {
            Around {
                inside: true,
                since,
                until,
            }
        } else {
            Around {
                inside: false,
                since: since.max(around.since),
                until: until.min(around.until),
            }
        }
    }
}

/// The span around a time, or the gap between two, which the whole ends on either side.
fn find(spans: &[(i64, i64)], time: i64, whole: (i64, i64)) -> Around {
    let next = spans.partition_point(|(from, _)| {
        #[cfg(test)]
        steps::compared();
        *from <= time
    });
    let before = next.checked_sub(1).and_then(|place| spans.get(place));
    match before {
        Some((from, to)) if time < *to => Around {
            inside: true,
            since: *from,
            until: *to,
        },
        Some(_) | None => Around {
            inside: false,
            since: before.map_or(whole.0, |(_, to)| *to),
            until: spans.get(next).map_or(whole.1, |(from, _)| *from),
        },
    }
}

/// Sorted, and those that overlap or touch made one.
fn merged(mut spans: Spans) -> Spans {
    spans.sort_unstable();
    spans.dedup_by(|next, before| {
        let goes_on = next.0 <= before.1;
        if goes_on {
            before.1 = before.1.max(next.1);
        }
        goes_on
    });
    spans
}

/// For tests: how much work was done, by this thread.
#[cfg(test)]
pub(crate) mod steps {
    use std::cell::Cell;

    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub(crate) struct Steps {
        /// Calendars made searchable.
        pub(crate) compiled: u64,
        /// Spans compared with a time.
        pub(crate) compared: u64,
        /// Slots that were looked up in all calendars of a schedule.
        pub(crate) lookups: u64,
        /// Slots that were found from the one before.
        pub(crate) walked: u64,
        /// Months and parts of days that a count came by.
        pub(crate) counted: u64,
    }

    thread_local! {
        static STEPS: Cell<Steps> = const {
            Cell::new(Steps { compiled: 0, compared: 0, lookups: 0, walked: 0, counted: 0 })
        };
    }

    fn add(change: impl FnOnce(&mut Steps)) {
        let mut steps = STEPS.get();
        change(&mut steps);
        STEPS.set(steps);
    }

    pub(super) fn compiled() {
        add(|steps| steps.compiled += 1);
    }

    pub(super) fn compared() {
        add(|steps| steps.compared += 1);
    }

    pub(in crate::schedule) fn count_lookup() {
        add(|steps| steps.lookups += 1);
    }

    pub(in crate::schedule) fn count_walked() {
        add(|steps| steps.walked += 1);
    }

    pub(in crate::schedule) fn count_counted() {
        add(|steps| steps.counted += 1);
    }

    /// What something takes.
    pub(crate) fn of<T>(work: impl FnOnce() -> T) -> (T, Steps) {
        STEPS.set(Steps::default());
        let done = work();
        (done, STEPS.get())
    }
}

#[cfg(test)]
#[path = "compiled_tests.rs"]
mod tests;
