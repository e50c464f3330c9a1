//! Which days of a month an expression names: plain days and weekdays, and those that depend on the month
//! (`L`, `LW`, `15W`, `FRI#2`, `5L`). The answer is one bit per day, computed for each month.

use super::civil::{Date, days_in_month, weekday};

/// One bit for each of six weeks, seven apart: a set of weekdays times this repeats the set.
const WEEKS: u64 = 1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28 | 1 << 35;

/// The day fields of one expression.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Days {
    /// Bit n: day n.
    pub(super) dates: u32,
    /// Bit n: n days before the last day (`L`, `L-n`).
    pub(super) before_last: u32,
    /// Bit n: the working day nearest to day n (`nW`).
    pub(super) nearest: u32,
    /// Bit n: the working day nearest to n days before the last (`LW`, `L-nW`).
    pub(super) nearest_last: u32,
    /// Bit n: weekday n, Sunday being 0.
    pub(super) weekdays: u8,
    /// Bit n of entry k - 1: the k-th weekday n of the month.
    pub(super) nth: [u8; 5],
    /// Bit n: the last weekday n of the month.
    pub(super) last: u8,
    /// Whether the field says anything but `*` or `?`.
    pub(super) by_date: bool,
    pub(super) by_weekday: bool,
    /// Both fields must match, rather than either (`+`).
    pub(super) both: bool,
}

impl Days {
    pub(super) fn is_every_day(&self) -> bool {
        !self.by_date && !self.by_weekday
    }

    /// The days that match in a month, bit n for day n.
    pub(super) fn in_month(&self, year: i32, month: u32) -> u32 {
        let month = Month::of(year, month);
        match (self.by_date, self.by_weekday) {
            (false, false) => month.all(),
            (true, false) => self.dates_in(month),
            (false, true) => self.weekdays_in(month),
            (true, true) if self.both => self.dates_in(month) & self.weekdays_in(month),
            (true, true) => self.dates_in(month) | self.weekdays_in(month),
        }
    }

    fn dates_in(&self, month: Month) -> u32 {
        let mut days = self.dates & month.all();
        if self.before_last | self.nearest | self.nearest_last == 0 {
            return days;
        }
        for back in bits(self.before_last).filter(|back| *back < month.length) {
            days |= 1 << (month.length - back);
        }
        for day in bits(self.nearest).filter(|day| *day <= month.length) {
            days |= 1 << month.nearest_working(day);
        }
        for back in bits(self.nearest_last).filter(|back| *back < month.length) {
            days |= 1 << month.nearest_working(month.length - back);
        }
        days
    }

    fn weekdays_in(&self, month: Month) -> u32 {
        let mut days = month.weekdays(self.weekdays);
        if self.last != 0 {
            days |= month.weekdays(self.last) & month.all() & !below(month.length - 6);
        }
        for (weeks, set) in self.nth.iter().enumerate().filter(|(_, set)| **set != 0) {
            let first = weeks as u32 * 7 + 1;
            days |= month.weekdays(*set) & !below(first) & below(first + 7);
        }
        days & month.all()
    }
}

/// What the day fields need to know of a month.
#[derive(Clone, Copy)]
struct Month {
    length: u32,
    /// The weekday of day 1.
    first: u32,
}

impl Month {
    fn of(year: i32, month: u32) -> Self {
        let first = weekday(Date::new(year, month, 1).to_days());
        Self {
            length: days_in_month(year, month),
            first,
        }
    }

    fn all(self) -> u32 {
        below(self.length + 1) & !1
    }

    fn weekdays(self, set: u8) -> u32 {
        // The shifts by 1 are for day 1, which is bit 1; 37 bits are in use before the first of them.
        (((u64::from(set) * WEEKS) >> self.first) << 1) as u32 & self.all()
    }

    /// The day from Monday to Friday that is nearest to a day, within the month.
    fn nearest_working(self, day: u32) -> u32 {
        match (self.first + day - 1) % 7 {
            6 if day > 1 => day - 1,
            6 => day + 2,
            0 if day < self.length => day + 1,
            0 => day - 2,
            _ => day,
        }
    }
}

/// The bits below a number, which is at most 32.
fn below(bit: u32) -> u32 {
    u32::MAX.checked_shr(32 - bit.min(32)).unwrap_or(0)
}

/// The numbers of a set, in order.
pub(super) fn bits(set: impl Into<u64>) -> impl Iterator<Item = u32> {
    let mut rest = set.into();
    std::iter::from_fn(move || {
        let bit = (rest != 0).then(|| rest.trailing_zeros())?;
        rest &= rest - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(days: Days, year: i32, month: u32, expected: &[u32]) {
        let found: Vec<u32> = bits(days.in_month(year, month)).collect();
        assert_eq!(found, expected, "{year}-{month}");
    }

    #[test]
    fn the_last_days_of_a_month_follow_its_length() {
        let days = |before_last| Days {
            before_last,
            by_date: true,
            ..Days::default()
        };
        check(days(1), 2024, 2, &[29]);
        check(days(1), 2025, 2, &[28]);
        check(days(1 | 1 << 3), 2025, 4, &[27, 30]);
        check(days(1 << 30), 2025, 4, &[]);
        check(days(1 << 30), 2025, 5, &[1]);
    }

    #[test]
    fn the_nearest_working_day_stays_in_its_month() {
        let days = |nearest| Days {
            nearest,
            by_date: true,
            ..Days::default()
        };
        // 1 November 2025 is a Saturday, 30 November 2025 a Sunday, 1 March 2026 a Sunday.
        check(days(1 << 1), 2025, 11, &[3]);
        check(days(1 << 30), 2025, 11, &[28]);
        check(days(1 << 1), 2026, 3, &[2]);
        check(days(1 << 15), 2025, 11, &[14]);
        check(days(1 << 31), 2025, 11, &[]);
        let last = Days {
            nearest_last: 1,
            by_date: true,
            ..Days::default()
        };
        check(last.clone(), 2025, 11, &[28]);
        check(last, 2025, 5, &[30]);
    }

    #[test]
    fn weekdays_are_counted_from_either_end() {
        let mut days = Days {
            by_weekday: true,
            ..Days::default()
        };
        days.nth[1] = 1 << 2;
        check(days.clone(), 2026, 9, &[8]);
        days.nth[4] = 1 << 2;
        check(days.clone(), 2026, 9, &[8, 29]);
        check(days.clone(), 2026, 10, &[13]);
        days.last = 1 << 5;
        check(days, 2026, 10, &[13, 30]);
    }

    #[test]
    fn either_field_or_both_may_be_required() {
        let mut days = Days {
            dates: 1 << 13,
            weekdays: 1 << 5,
            ..Days::default()
        };
        (days.by_date, days.by_weekday) = (true, true);
        check(days.clone(), 2026, 11, &[6, 13, 20, 27]);
        check(days.clone(), 2026, 10, &[2, 9, 13, 16, 23, 30]);
        days.both = true;
        check(days.clone(), 2026, 11, &[13]);
        check(days, 2026, 10, &[]);
    }
}
