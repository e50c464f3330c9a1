//! Durations as people write them: `90s`, `15m`, `1h30m`, `500ms`, `2d`, `1w`, and ISO-8601 `PT15M`.
//! They are elapsed time in whole milliseconds; calendar units (`P1M`) are read by `every` alone.

use std::time::Duration;

/// The longest duration that is read, a hundred years.
const MILLIS_MAX: u64 = 36_525 * DAY;

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;

/// The plain units, longest first, which is also the order in which they are written.
const PLAIN: [(&str, u64); 6] = [
    ("w", WEEK),
    ("d", DAY),
    ("h", HOUR),
    ("m", MINUTE),
    ("s", SECOND),
    ("ms", 1),
];

/// Why a duration was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpanError {
    #[error("the duration is empty: write 90s, 15m, 1h30m, 500ms, 2d or PT15M")]
    Empty,
    #[error("{text:?} is not a duration: write 90s, 15m, 1h30m, 500ms, 2d or PT15M")]
    Unreadable { text: String },
    #[error("{text:?} has no unit: write {text}s, {text}m or {text}ms")]
    NoUnit { text: String },
    #[error("{text:?} is negative: a duration cannot be")]
    Negative { text: String },
    #[error("{text:?} is finer than a millisecond")]
    TooFine { text: String },
    #[error("{text:?} is longer than 100 years")]
    TooLong { text: String },
    #[error("{text:?} has months or years, whose length differs: write days, hours or minutes")]
    Calendar { text: String },
}

/// An ISO-8601 duration, its calendar part kept apart from its time part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct IsoSpan {
    pub(super) months: u32,
    pub(super) days: u32,
    pub(super) millis: u64,
}

/// Reads a duration of elapsed time; a day is 24 hours.
pub fn parse_span(text: &str) -> Result<Duration, SpanError> {
    let text = text.trim();
    let millis = if is_iso(text) {
        let iso = parse_iso(text)?;
        if iso.months > 0 {
            return Err(SpanError::Calendar { text: shown(text) });
        }
        u64::from(iso.days) * DAY + iso.millis
    } else {
        parse_plain(text)?
    };
    if millis > MILLIS_MAX {
        return Err(SpanError::TooLong { text: shown(text) });
    }
    Ok(Duration::from_millis(millis))
}

/// The short plain form, which `parse_span` reads back; what is finer than a millisecond is dropped.
pub fn format_span(span: Duration) -> String {
    let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    // Small numbers stay in one unit: 90s and 1500ms are easier to read than 1m30s and 1s500ms.
    if millis.is_multiple_of(SECOND) && millis < 2 * MINUTE {
        return format!("{}s", millis / SECOND);
    }
    if millis < 2 * MINUTE {
        return format!("{millis}ms");
    }
    let mut text = String::new();
    let mut rest = millis;
    for (unit, length) in PLAIN {
        // Weeks only when they say it all: 10d, not 1w3d.
        if length == WEEK && !rest.is_multiple_of(WEEK) {
            continue;
        }
        if rest >= length {
            text.push_str(&format!("{}{unit}", rest / length));
            rest %= length;
        }
    }
    text
}

pub(super) fn is_iso(text: &str) -> bool {
    text.starts_with(['P', 'p'])
}

fn parse_plain(text: &str) -> Result<u64, SpanError> {
    if text.is_empty() {
        return Err(SpanError::Empty);
    }
    let mut units = PLAIN.as_slice();
    let mut rest = text;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (number, after) = Number::read(rest, text)?;
        let letters = after
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let (unit, tail) = after.split_at(letters);
        if unit.is_empty() && tail.is_empty() && total == 0 && units.len() == PLAIN.len() {
            return Err(SpanError::NoUnit { text: shown(text) });
        }
        // Each unit at most once and longest first, so that a slip of the keyboard is not a duration.
        let place = units.iter().position(|(name, _)| *name == unit);
        let (length, later) = place
            .and_then(|place| units.get(place..)?.split_first())
            .map(|((_, length), later)| (*length, later))
            .ok_or_else(|| SpanError::Unreadable { text: shown(text) })?;
        total = add(total, number.times(length, text)?, text)?;
        if number.has_fraction() && !tail.is_empty() {
            return Err(SpanError::Unreadable { text: shown(text) });
        }
        (units, rest) = (later, tail);
    }
    Ok(total)
}

/// Reads `P1Y2M3W4DT5H6M7.5S`; each part at most once, in this order, a fraction only at the end.
pub(super) fn parse_iso(text: &str) -> Result<IsoSpan, SpanError> {
    let refused = || SpanError::Unreadable { text: shown(text) };
    let mut iso = IsoSpan::default();
    let mut order = "YMWD";
    let mut in_time = false;
    let mut parts = 0;
    let mut rest = text.get(1..).ok_or_else(refused)?;
    if rest.is_empty() {
        return Err(refused());
    }
    while !rest.is_empty() {
        if !in_time && rest.starts_with(['T', 't']) {
            (in_time, order) = (true, "HMS");
            rest = rest
                .get(1..)
                .filter(|rest| !rest.is_empty())
                .ok_or_else(refused)?;
        }
        let (number, after) = Number::read(rest, text)?;
        let unit = after
            .chars()
            .next()
            .ok_or_else(refused)?
            .to_ascii_uppercase();
        let place = order.find(unit).ok_or_else(refused)?;
        order = order.get(place + 1..).unwrap_or("");
        rest = after.get(unit.len_utf8()..).unwrap_or("");
        if number.has_fraction() && (!in_time || !rest.is_empty()) {
            return Err(refused());
        }
        iso.add(unit, in_time, number, text)?;
        parts += 1;
    }
    if parts == 0 { Err(refused()) } else { Ok(iso) }
}

impl IsoSpan {
    fn add(
        &mut self,
        unit: char,
        in_time: bool,
        number: Number,
        text: &str,
    ) -> Result<(), SpanError> {
        let too_long = || SpanError::TooLong { text: shown(text) };
        let whole = u32::try_from(number.whole).map_err(|_| too_long())?;
        let (to, factor) = match (in_time, unit) {
            (false, 'Y') => (&mut self.months, 12),
            (false, 'M') => (&mut self.months, 1),
            (false, 'W') => (&mut self.days, 7),
            (false, _) => (&mut self.days, 1),
            (true, _) => {
                let length = match unit {
                    'H' => HOUR,
                    'M' => MINUTE,
                    _ => SECOND,
                };
                self.millis = add(self.millis, number.times(length, text)?, text)?;
                return Ok(());
            }
        };
        let more = whole.checked_mul(factor).ok_or_else(too_long)?;
        *to = to
            .checked_add(more)
            .filter(|sum| *sum <= 36_525)
            .ok_or_else(too_long)?;
        Ok(())
    }
}

/// A decimal number: digits, and perhaps a point and more digits.
#[derive(Clone, Copy)]
struct Number {
    whole: u64,
    fraction: u64,
    /// Ten to the power of the digits after the point.
    scale: u64,
}

impl Number {
    fn read<'a>(rest: &'a str, text: &str) -> Result<(Self, &'a str), SpanError> {
        if rest.starts_with('-') {
            return Err(SpanError::Negative { text: shown(text) });
        }
        let (whole, rest) = split_digits(rest);
        let (fraction, after) = match rest.strip_prefix(['.', ',']) {
            Some(rest) => split_digits(rest),
            None => ("0", rest),
        };
        if whole.is_empty() || fraction.is_empty() {
            return Err(SpanError::Unreadable { text: shown(text) });
        }
        let fraction = if rest == after {
            ""
        } else {
            fraction.trim_end_matches('0')
        };
        if fraction.len() > 9 {
            return Err(SpanError::TooFine { text: shown(text) });
        }
        let whole = whole
            .parse()
            .map_err(|_| SpanError::TooLong { text: shown(text) })?;
        let scale = 10_u64.pow(fraction.len() as u32);
        Ok((
            Self {
                whole,
                fraction: fraction.parse().unwrap_or(0),
                scale,
            },
            after,
        ))
    }

    fn has_fraction(self) -> bool {
        self.scale > 1
    }

    /// This many units of a length in milliseconds.
    fn times(self, length: u64, text: &str) -> Result<u64, SpanError> {
        let part = u128::from(self.fraction) * u128::from(length);
        if !part.is_multiple_of(u128::from(self.scale)) {
            return Err(SpanError::TooFine { text: shown(text) });
        }
        let total = u128::from(self.whole) * u128::from(length) + part / u128::from(self.scale);
        u64::try_from(total)
            .ok()
            .filter(|total| *total <= MILLIS_MAX)
            .ok_or_else(|| SpanError::TooLong { text: shown(text) })
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len()),
    )
}

fn add(total: u64, more: u64, text: &str) -> Result<u64, SpanError> {
    let sum = total.checked_add(more).filter(|sum| *sum <= MILLIS_MAX);
    sum.ok_or_else(|| SpanError::TooLong { text: shown(text) })
}

fn shown(text: &str) -> String {
    text.chars().take(64).collect()
}

#[cfg(test)]
#[path = "span_tests.rs"]
mod tests;
