//! Moments: milliseconds since the epoch, the same in every store.

use std::fmt;
use std::time::Duration;

/// Milliseconds since 1970-01-01T00:00:00Z. Arithmetic saturates between [`Timestamp::MIN`] and
/// [`Timestamp::MAX`]: a clock that jumps can never make a moment wrap around.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

/// When a job is due: the nominal moment, not when it ran.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub Timestamp);

/// A moment that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MomentError {
    #[error(
        "{0:?} is not a moment: write 2026-12-24T18:00:00Z, with Z or an offset such as +01:00"
    )]
    Unreadable(String),
    #[error("{0} is outside 1970-01-01T00:00:00Z to 9999-12-30T21:59:59.999Z")]
    OutOfRange(String),
}

impl Timestamp {
    /// The epoch.
    pub const MIN: Self = Self(0);
    /// 9999-12-30T21:59:59.999Z: the last moment that still has a date in every zone.
    pub const MAX: Self = Self(253_402_207_199_999);

    pub const fn from_millis(millis: i64) -> Self {
        if millis < Self::MIN.0 {
            Self::MIN
        } else if millis > Self::MAX.0 {
            Self::MAX
        } else {
            Self(millis)
        }
    }

    pub const fn as_millis(self) -> i64 {
        self.0
    }

    pub const fn as_u64(self) -> u64 {
        self.0 as u64
    }

    pub fn plus(self, span: Duration) -> Self {
        Self::from_millis(self.0.saturating_add(millis(span)))
    }

    pub fn minus(self, span: Duration) -> Self {
        Self::from_millis(self.0.saturating_sub(millis(span)))
    }

    /// The last moment of the step that this one is in; steps are counted from the epoch.
    pub fn end_of(self, step: Duration) -> Self {
        let step = millis(step).max(1);
        Self::from_millis((self.0 / step + 1).saturating_mul(step) - 1)
    }

    /// The time from `earlier` to here; nothing if `earlier` is in fact later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0).max(0) as u64)
    }

    /// Reads RFC 3339 with an offset.
    pub fn parse(text: &str) -> Result<Self, MomentError> {
        let shown = || text.chars().take(64).collect::<String>();
        let moment: jiff::Timestamp = text.parse().map_err(|_| MomentError::Unreadable(shown()))?;
        Self::checked(moment.as_millisecond()).ok_or_else(|| MomentError::OutOfRange(shown()))
    }

    /// A number is epoch seconds, or milliseconds when it is too large for seconds before the year 5138.
    pub fn from_number(number: i64) -> Result<Self, MomentError> {
        let millis = if number >= 100_000_000_000 {
            number
        } else {
            number.saturating_mul(1_000)
        };
        Self::checked(millis).ok_or_else(|| MomentError::OutOfRange(number.to_string()))
    }

    /// The moment, if it lies within the range we write.
    pub fn checked(millis: i64) -> Option<Self> {
        (Self::MIN.0..=Self::MAX.0)
            .contains(&millis)
            .then_some(Self(millis))
    }

    pub fn to_jiff(self) -> jiff::Timestamp {
        // Every value between MIN and MAX is one that jiff can hold; the fallback is never taken.
        jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
    }

    pub fn from_jiff(moment: jiff::Timestamp) -> Self {
        Self::from_millis(moment.as_millisecond())
    }
}

/// A duration in whole milliseconds, saturating.
pub fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.to_jiff())
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_read_and_print_with_milliseconds() {
        let moment = Timestamp::parse("2026-12-24T18:00:00+01:00").unwrap();
        assert_eq!(moment.to_string(), "2026-12-24T17:00:00.000Z");
        assert_eq!(Timestamp::parse(&moment.to_string()), Ok(moment));
    }

    #[test]
    fn a_step_ends_right_before_the_next_one() {
        let step = Duration::from_millis(64);
        for (moment, end) in [(0, 63), (63, 63), (64, 127), (1_000, 1_023)] {
            let moment = Timestamp::from_millis(moment);
            assert_eq!(moment.end_of(step), Timestamp::from_millis(end));
        }
        assert_eq!(Timestamp::MAX.end_of(step), Timestamp::MAX);
    }

    #[test]
    fn numbers_are_seconds_or_milliseconds() {
        let moment = Timestamp::from_millis(1_798_138_800_000);
        assert_eq!(Timestamp::from_number(1_798_138_800), Ok(moment));
        assert_eq!(Timestamp::from_number(1_798_138_800_000), Ok(moment));
        assert!(Timestamp::from_number(-1).is_err());
        assert!(Timestamp::from_number(i64::MAX).is_err());
    }

    #[test]
    fn impossible_moments_are_refused() {
        for text in [
            "",
            "tomorrow",
            "2026-02-30T00:00:00Z",
            "2026-01-01T00:00:00",
            "1969-12-31T23:59:59Z",
        ] {
            assert!(Timestamp::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_last_moment_prints() {
        assert_eq!(Timestamp::MAX.to_string(), "9999-12-30T21:59:59.999Z");
        assert_eq!(
            Timestamp::parse("9999-12-30T21:59:59.999Z"),
            Ok(Timestamp::MAX)
        );
        assert!(Timestamp::parse("9999-12-31T00:00:00Z").is_err());
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Timestamp::MAX.plus(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MIN.minus(Duration::from_secs(1)), Timestamp::MIN);
        assert_eq!(Timestamp::MIN.since(Timestamp::MAX), Duration::ZERO);
    }
}
