//! For tests: other tables of time zones, as another release would bring them. What has been read before keeps those of
//! then, as a node does that was started before.

use std::cell::Cell;

use jiff::tz::TimeZone;

/// What they are called.
pub(super) const VERSION: &str = "other";

/// Every zone is so many seconds ahead of UTC, all the year.
const AHEAD: i32 = 5 * 3_600;

thread_local! {
    static ARE_USED: Cell<bool> = const { Cell::new(false) };
}

/// Whether zones are read from them from now on, by this thread.
pub fn set_used(used: bool) {
    ARE_USED.set(used);
}

pub fn are_used() -> bool {
    ARE_USED.get()
}

/// A zone as they have it, if they are used.
pub(super) fn zone(name: &str) -> Option<TimeZone> {
    let zone = are_used().then(|| TimeZone::tzif(name, &table()))?;
    zone.ok()
}

/// In the form of RFC 9636: an old part, a new one that says the same, and what holds after all changes.
fn table() -> Vec<u8> {
    let mut part = b"TZif2".to_vec();
    part.extend([0; 15]);
    // No changes, no leap seconds; one kind of time, whose name takes four bytes.
    for count in [0_u32, 0, 0, 0, 1, 4] {
        part.extend(count.to_be_bytes());
    }
    part.extend(AHEAD.to_be_bytes());
    part.extend([0, 0]);
    part.extend(b"+05\0");
    let mut table = part.repeat(2);
    table.extend(b"\n<+05>-5\n");
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::samples::{at, zone};
    use crate::schedule::tzdb_version;

    #[test]
    fn what_was_read_before_keeps_its_tables() {
        let (before, version) = (zone("Europe/Berlin"), tzdb_version());
        set_used(true);
        let since = zone("Europe/Berlin");
        assert_ne!(tzdb_version(), version);
        set_used(false);
        assert_eq!(since, before, "by name");
        assert_ne!(since.digest(), before.digest());
        assert_eq!(zone("Europe/Berlin").digest(), before.digest());
        let summer = at("2026-07-01T12:00:00Z");
        assert_eq!(since.local(summer).offset_minutes, 300);
        assert_eq!(before.local(summer).offset_minutes, 120);
    }
}
