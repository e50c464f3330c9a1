//! The two day fields: besides numbers they take what depends on the month (`L`, `L-3`, `LW`, `15W`, `FRI#2`,
//! `5L`), and `?` or `*` for no restriction.

use super::ScheduleError;
use super::cron::Dialect;
use super::days::Days;
use super::field::{Reader, digits};

impl Reader {
    /// Reads the day-of-month field.
    pub(super) fn dates(&self, text: &str, days: &mut Days) -> Result<(), ScheduleError> {
        if matches!(text, "*" | "?") {
            return Ok(());
        }
        days.by_date = true;
        for item in text.split(',') {
            if let Some(rest) = item.strip_prefix(['L', 'l']) {
                let (back, working) = strip_letter(rest, 'W');
                let back = match back.strip_prefix('-') {
                    _ if back.is_empty() => 0,
                    Some(back) => digits(back).ok_or_else(|| self.refuse(item, self.fix()))?,
                    None => return Err(self.refuse(item, self.fix())),
                };
                if back > 30 {
                    return Err(self.refuse(item, "L-30 is the furthest from the last day"));
                }
                let set = if working {
                    &mut days.nearest_last
                } else {
                    &mut days.before_last
                };
                *set |= 1 << back;
            } else if let (number, true) = strip_letter(item, 'W') {
                days.nearest |= 1 << self.number(item, number)?;
            } else {
                days.dates |= self.range(item)?.set(self.field.bounds()) as u32;
            }
        }
        Ok(())
    }

    /// Reads the day-of-week field.
    pub(super) fn weekdays(&self, text: &str, days: &mut Days) -> Result<(), ScheduleError> {
        let (list, both) = match text.strip_prefix('+') {
            Some(list) if self.dialect == Dialect::Unix => (list, true),
            Some(_) | None => (text, false),
        };
        if matches!(list, "*" | "?") {
            return Ok(());
        }
        (days.by_weekday, days.both) = (true, both);
        for item in list.split(',') {
            if let Some((weekday, which)) = item.split_once('#') {
                let bit = 1 << (self.number(item, weekday)? % 7);
                match (
                    which,
                    digits(which).and_then(|k| days.nth.get_mut(k.checked_sub(1)? as usize)),
                ) {
                    ("L" | "l", _) => days.last |= bit,
                    (_, Some(nth)) => *nth |= bit,
                    (_, None) => {
                        return Err(self.refuse(item, "after # comes 1 to 5, or L for the last"));
                    }
                }
            } else if let (weekday, true) = strip_letter(item, 'L') {
                match (weekday, self.dialect) {
                    ("", Dialect::Quartz) => days.weekdays |= 1 << 6,
                    ("", Dialect::Unix) => {
                        return Err(self
                            .refuse(item, "L needs a day: FRIL is the last Friday of the month"));
                    }
                    (weekday, _) => days.last |= 1 << (self.number(item, weekday)? % 7),
                }
            } else {
                let set = self.range(item)?.set(self.field.bounds());
                days.weekdays |= (set | set >> 7) as u8 & 0x7f;
            }
        }
        Ok(())
    }
}

/// Takes a letter off the end, in either case.
fn strip_letter(text: &str, letter: char) -> (&str, bool) {
    match text.strip_suffix([letter, letter.to_ascii_lowercase()]) {
        Some(rest) => (rest, true),
        None => (text, false),
    }
}
