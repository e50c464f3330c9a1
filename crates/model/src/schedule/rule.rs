//! One cron expression as bit sets, and the search through local time: which local second at or after
//! this one matches. Zones and daylight saving are `walk`'s part.

use super::civil::{DAY, Date};
use super::days::{Days, bits};

/// After this many years without a match there is none: the calendar repeats.
const CYCLE_YEARS: i32 = 400;
const ALL_MONTHS: u32 = 0x1ffe;
/// The last year in which a local time can be the moment of a slot.
const YEAR_MAX: i32 = 9_999;

/// One expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) seconds: u64,
    pub(super) minutes: u64,
    pub(super) hours: u32,
    pub(super) days: Days,
    /// Bit n: month n.
    pub(super) months: u32,
    /// Empty for every year.
    pub(super) years: Vec<Years>,
    /// The minute or hour field begins with `*`: the schedule follows elapsed time.
    pub(super) elapsed: bool,
}

/// Some years: from the first to the last by a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Years {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) step: u32,
}

impl Years {
    /// The first of them at or after a year.
    fn next(self, from: i32) -> Option<i32> {
        let from = from.max(self.first as i32);
        let past = (from - self.first as i32) % self.step.max(1) as i32;
        let next = if past == 0 {
            from
        } else {
            from - past + self.step as i32
        };
        (next <= self.last as i32).then_some(next)
    }
}

impl Rule {
    /// The first local second at or after `from` that matches, both in seconds since the local epoch.
    pub(super) fn next_local(&self, from: i64) -> Option<i64> {
        let today = from.div_euclid(DAY);
        let mut day = self.next_day(today)?;
        if day == today {
            if let Some(second) = self.next_time(from.rem_euclid(DAY) as u32) {
                return Some(day * DAY + i64::from(second));
            }
            day = self.next_day(today + 1)?;
        }
        Some(day * DAY + i64::from(self.first_time()))
    }

    /// Whether some local second from `from` to before `to` matches.
    pub(super) fn matches_within(&self, from: i64, to: i64) -> bool {
        self.next_local(from).is_some_and(|local| local < to)
    }

    fn first_time(&self) -> u32 {
        let hour = self.hours.trailing_zeros();
        hour * 3_600 + self.minutes.trailing_zeros() * 60 + self.seconds.trailing_zeros()
    }

    /// The first second of the day at or after one that matches.
    fn next_time(&self, from: u32) -> Option<u32> {
        let (hour, minute, second) = (from / 3_600, from / 60 % 60, from % 60);
        if has(self.hours, hour) {
            if has(self.minutes, minute)
                && let Some(second) = at_or_after(self.seconds, second)
            {
                return Some(hour * 3_600 + minute * 60 + second);
            }
            if let Some(minute) = at_or_after(self.minutes, minute + 1) {
                return Some(hour * 3_600 + minute * 60 + self.seconds.trailing_zeros());
            }
        }
        let hour = at_or_after(self.hours, hour + 1)?;
        Some(hour * 3_600 + self.minutes.trailing_zeros() * 60 + self.seconds.trailing_zeros())
    }

    /// The first day at or after one that matches.
    fn next_day(&self, from: i64) -> Option<i64> {
        if self.is_every_day() {
            return Some(from);
        }
        let Date {
            mut year,
            mut month,
            day,
        } = Date::from_days(from);
        let year_last = if self.years.is_empty() {
            year + CYCLE_YEARS
        } else {
            YEAR_MAX
        };
        let mut day = day;
        while let Some(next) = self.next_year(year).filter(|next| *next <= year_last) {
            if next > year {
                (year, month, day) = (next, 1, 1);
            }
            while let Some(next) = at_or_after(self.months, month) {
                if next > month {
                    day = 1;
                }
                month = next;
                if let Some(day) = at_or_after(self.days.in_month(year, month), day) {
                    return Some(Date::new(year, month, day).to_days());
                }
                (month, day) = (month + 1, 1);
            }
            (year, month, day) = (year + 1, 1, 1);
        }
        None
    }

    fn next_year(&self, from: i32) -> Option<i32> {
        if self.years.is_empty() {
            return (from <= YEAR_MAX).then_some(from);
        }
        self.years.iter().filter_map(|years| years.next(from)).min()
    }

    /// The shortest time in seconds between two matches by the clock on the wall; none if there is but one.
    pub(super) fn shortest(&self) -> Option<i64> {
        // A day's times are all combinations of the three sets, so two neighbours differ in the lowest
        // set alone, or jump from its last number to its first while the next set moves on.
        let back_to_first = |set: u64| i64::from(set.trailing_zeros()) - i64::from(last_of(set));
        let over_minute = back_to_first(self.seconds);
        let over_hour = over_minute + 60 * back_to_first(self.minutes);
        let over_day = over_hour + 3_600 * back_to_first(u64::from(self.hours));
        let candidates = [
            closest(self.seconds),
            closest(self.minutes).map(|step| step * 60 + over_minute),
            closest(self.hours).map(|step| step * 3_600 + over_hour),
        ];
        // Looking at days is the long part; no two of them are closer than times of one hour.
        let within = candidates.into_iter().flatten().min();
        if within.is_some_and(|within| within <= DAY + over_day) {
            return within;
        }
        let overnight = self.shortest_days().map(|days| days * DAY + over_day);
        within.into_iter().chain(overnight).min()
    }

    /// The fewest days between two days that match.
    fn shortest_days(&self) -> Option<i64> {
        if self.is_every_day() {
            return Some(1);
        }
        let mut last = self.next_day(0)?;
        // Within the lifetime of these dates the calendar repeats after 28 years; what is rarer than that
        // is looked for until it has come twice.
        let enough = last + 28 * 366;
        let mut shortest = None::<i64>;
        while shortest != Some(1) && (last < enough || shortest.is_none()) {
            let Some(next) = self.next_day(last + 1) else {
                break;
            };
            shortest = Some(shortest.map_or(next - last, |known| known.min(next - last)));
            last = next;
        }
        shortest
    }

    fn is_every_day(&self) -> bool {
        self.months == ALL_MONTHS && self.days.is_every_day() && self.years.is_empty()
    }
}

/// The smallest distance between two numbers of a set.
fn closest(set: impl Into<u64>) -> Option<i64> {
    let set = set.into();
    bits(set)
        .zip(bits(set).skip(1))
        .map(|(one, next)| i64::from(next - one))
        .min()
}

fn last_of(set: u64) -> u32 {
    63_u32.saturating_sub(set.leading_zeros())
}

fn has(set: impl Into<u64>, bit: u32) -> bool {
    at_or_after(set, bit) == Some(bit)
}

/// The first number of a set at or after one.
pub(super) fn at_or_after(set: impl Into<u64>, from: u32) -> Option<u32> {
    let rest = set.into().checked_shr(from)?;
    (rest != 0).then(|| from + rest.trailing_zeros())
}
