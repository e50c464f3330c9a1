//! Small words that `words` and `notes` share: dates, times of day, lists, counts.

use super::civil::{DAY, Date};

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// In the order in which people list them; [`weekday_order`] gives the place.
const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

pub(super) fn month(number: u32) -> &'static str {
    MONTHS
        .get(number.wrapping_sub(1) as usize)
        .copied()
        .unwrap_or("")
}

/// The name of a weekday, Sunday being 0 or 7.
pub(super) fn weekday(number: u32) -> &'static str {
    WEEKDAYS
        .get((number as usize + 6) % 7)
        .copied()
        .unwrap_or("")
}

/// "MON", Sunday being 0.
pub(super) fn weekday_short(number: u32) -> &'static str {
    let short = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
    short.get(number as usize % 7).copied().unwrap_or("")
}

/// The number of a weekday from its short or its full name, in any case.
pub(super) fn weekday_number(text: &str) -> Option<u32> {
    let named = |number: &u32| {
        [weekday(*number), weekday_short(*number)]
            .iter()
            .any(|name| name.eq_ignore_ascii_case(text))
    };
    (0..7).find(named)
}

/// The number of a month from the first three letters or the whole of its name, in any case.
pub(super) fn month_number(text: &str) -> Option<u32> {
    let named = |name: &&str| {
        let short = name.get(..3);
        name.eq_ignore_ascii_case(text) || short.is_some_and(|it| it.eq_ignore_ascii_case(text))
    };
    let place = MONTHS.iter().position(named)?;
    u32::try_from(place + 1).ok()
}

/// A set of weekdays as numbers from 1 (Monday) to 7 (Sunday), so that a week ends with its weekend.
pub(super) fn weekday_order(set: u8) -> Vec<u32> {
    (1..=7).filter(|day| set >> (day % 7) & 1 == 1).collect()
}

/// "29 March 2026", from local seconds.
pub(super) fn date(local: i64) -> String {
    let Date {
        year,
        month: number,
        day,
    } = Date::from_days(local.div_euclid(DAY));
    format!("{day} {} {year}", month(number))
}

/// "09:00", with seconds if there are any.
pub(super) fn clock(local: i64) -> String {
    let second = local.rem_euclid(DAY);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    match second {
        0 => format!("{hour:02}:{minute:02}"),
        second => format!("{hour:02}:{minute:02}:{second:02}"),
    }
}

/// "1st", "2nd", "3rd", "4th".
pub(super) fn ordinal(number: u32) -> String {
    let ending = match (number % 10, number / 10 % 10) {
        (1, tens) if tens != 1 => "st",
        (2, tens) if tens != 1 => "nd",
        (3, tens) if tens != 1 => "rd",
        (_, _) => "th",
    };
    format!("{number}{ending}")
}

/// "hour" is one hour; anything longer has its number already.
pub(super) fn counted(span: &str) -> String {
    if span.starts_with(|c: char| c.is_ascii_digit()) {
        span.to_owned()
    } else {
        format!("1 {span}")
    }
}

/// "1 hour", "2 hours".
pub(super) fn count(number: u64, unit: &str) -> String {
    if number == 1 {
        format!("1 {unit}")
    } else {
        format!("{number} {unit}s")
    }
}

/// "a", "a and b", "a, b and c".
pub(super) fn list(items: &[String]) -> String {
    join(items, "and")
}

pub(super) fn join(items: &[String], word: &str) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} {word} {last}", most.join(", ")),
    }
}

/// Ascending numbers in words, three or more in a row as "a to b".
pub(super) fn numbers(numbers: &[u32], name: impl Fn(u32) -> String) -> String {
    let mut items = Vec::new();
    for run in numbers.chunk_by(|one, next| *next == one + 1) {
        match run {
            [first, _, .., last] if run.len() > 2 => {
                items.push(format!("{} to {}", name(*first), name(*last)));
            }
            _ => items.extend(run.iter().map(|number| name(*number))),
        }
    }
    list(&items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_read_as_people_write_them() {
        let plain = |set: &[u32]| numbers(set, |number| number.to_string());
        assert_eq!(plain(&[1]), "1");
        assert_eq!(plain(&[1, 2]), "1 and 2");
        assert_eq!(plain(&[1, 2, 3]), "1 to 3");
        assert_eq!(plain(&[1, 3, 4, 5, 9]), "1, 3 to 5 and 9");
    }

    #[test]
    fn numbers_get_their_endings() {
        let all: Vec<String> = [1, 2, 3, 4, 11, 12, 13, 21, 22, 23, 111]
            .map(ordinal)
            .into();
        assert_eq!(
            all.join(" "),
            "1st 2nd 3rd 4th 11th 12th 13th 21st 22nd 23rd 111th"
        );
        assert_eq!(
            (count(1, "hour"), count(2, "hour")),
            ("1 hour".into(), "2 hours".into())
        );
    }

    #[test]
    fn weeks_begin_on_monday() {
        assert_eq!(weekday_order(0b100_0001), [6, 7]);
        assert_eq!(
            (weekday(0), weekday(7), weekday(1)),
            ("Sunday", "Sunday", "Monday")
        );
    }
}
