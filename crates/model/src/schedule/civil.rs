//! The proleptic Gregorian calendar on plain integers: days since 1970-01-01 on one side, year, month
//! and day on the other. Our own, because the search for a slot turns days into dates in its inner loop.

/// Seconds of a calendar day.
pub(super) const DAY: i64 = 86_400;

/// Days from 0000-03-01 to 1970-01-01.
const TO_EPOCH: i64 = 719_468;

/// Days of the 400 years after which the calendar, weekdays included, repeats.
const CYCLE: i64 = 146_097;

/// A date; months and days count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Date {
    pub(super) year: i32,
    pub(super) month: u32,
    pub(super) day: u32,
}

impl Date {
    pub(super) const fn new(year: i32, month: u32, day: u32) -> Self {
        Self { year, month, day }
    }

    /// Days since 1970-01-01. Years are counted from March, so that the leap day comes last.
    pub(super) const fn to_days(self) -> i64 {
        let year = self.year as i64 - if self.month <= 2 { 1 } else { 0 };
        let month = (self.month as i64 + 9) % 12;
        let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        year * 365 + leaps + (month * 153 + 2) / 5 + self.day as i64 - 1 - TO_EPOCH
    }

    pub(super) const fn from_days(days: i64) -> Self {
        let days = days + TO_EPOCH;
        let of_cycle = days.rem_euclid(CYCLE) as u32;
        // Taking the leap days out leaves years of equal length.
        let leaps = of_cycle / 1_460 - of_cycle / 36_524 + of_cycle / 146_096;
        let year = (of_cycle - leaps) / 365;
        let of_year = of_cycle - (365 * year + year / 4 - year / 100);
        let from_march = (5 * of_year + 2) / 153;
        let day = of_year - (153 * from_march + 2) / 5 + 1;
        let month = if from_march < 10 {
            from_march + 3
        } else {
            from_march - 9
        };
        let year = days.div_euclid(CYCLE) as i32 * 400 + year as i32;
        Self {
            year: if month <= 2 { year + 1 } else { year },
            month,
            day,
        }
    }
}

pub(super) const fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub(super) const fn days_in_month(year: i32, month: u32) -> u32 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The day of the week, Sunday being 0. 1970-01-01 was a Thursday.
pub(super) const fn weekday(days: i64) -> u32 {
    (days + 4).rem_euclid(7) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_days_agree_with_jiff_over_a_whole_cycle() {
        let mut date = jiff::civil::date(1899, 12, 31);
        let start = Date::new(1899, 12, 31).to_days();
        for days in start..start + CYCLE + 1_000 {
            let ours = Date::from_days(days);
            assert_eq!(ours.to_days(), days);
            let theirs = (
                i32::from(date.year()),
                date.month() as u32,
                date.day() as u32,
            );
            assert_eq!((ours.year, ours.month, ours.day), theirs);
            assert_eq!(
                days_in_month(ours.year, ours.month),
                date.days_in_month() as u32
            );
            assert_eq!(weekday(days), date.weekday().to_sunday_zero_offset() as u32);
            date = date.tomorrow().unwrap();
        }
    }

    #[test]
    fn the_epoch_is_day_zero() {
        assert_eq!(Date::new(1970, 1, 1).to_days(), 0);
        assert_eq!(Date::from_days(-1), Date::new(1969, 12, 31));
    }
}
