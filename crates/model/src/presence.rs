//! Presences: when the silence of one proves that it has lapsed.
//!
//! Only a node that watches knows. It reads every presence's last beat with each beat of its own, and measures by its own
//! steady clock how long that has been the same:
//!
//! ```text
//!   the other   beat n ──▶ store        sent before the observer read it, so the other stops by itself at most
//!                            │          PRESENCE_TTL - PRESENCE_MARGIN after that
//!   observer      ◀── reads n ── n ── n ── n      each within BREAK_MIN of the one before
//!                      └── PRESENCE_TTL ──┘ fences n: the store ends the presence if its last beat is still n
//! ```
//!
//! What always holds: no clock but the observer's own is read, so no step of the store's clock ends a presence. A store that
//! is away, for long or short, breaks the observer's own beats, and the watch begins again. A fence that arrives late ends
//! nobody who has beaten meanwhile.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::PresenceId;
use crate::limits::{BEAT_EVERY, PRESENCE_MARGIN, PRESENCE_TTL};

/// A gap between two answered beats that is longer than this is a break: one and a half beats.
pub const BREAK_MIN: Duration = Duration::from_millis(1_500);

const _: () = assert!(BREAK_MIN.as_millis() * 2 == BEAT_EVERY.as_millis() * 3);
const _: () =
    assert!(BREAK_MIN.as_millis() + PRESENCE_MARGIN.as_millis() < PRESENCE_TTL.as_millis());

/// Names one beat of a presence. Later beats have greater ones; nothing else can be read from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BeatMark(pub i64);

impl BeatMark {
    /// Of the first beat: a store takes its own clock, in milliseconds.
    pub fn at(uptime: Duration) -> Self {
        Self(crate::time::millis(uptime))
    }

    /// The mark of the beat after this one, also if the clock stands still or went back.
    pub fn next(self, uptime: Duration) -> Self {
        Self::at(uptime).max(Self(self.0.saturating_add(1)))
    }
}

/// A presence, and its last beat as somebody saw it.
pub type LastBeat = (PresenceId, BeatMark);

/// What one node has seen of the others' beats. All durations are uptime of that node.
#[derive(Debug)]
pub struct Observer {
    /// The longest gap that does not break its own beats.
    gap_max: Duration,
    /// When its last answered beat was sent.
    sent: Option<Duration>,
    /// When the first of the beats was sent that follow each other without a break.
    unbroken_since: Option<Duration>,
    /// The last beat of each presence, and since when that is known to be the last.
    seen: BTreeMap<PresenceId, (BeatMark, Duration)>,
}

impl Default for Observer {
    fn default() -> Self {
        Self::new(BREAK_MIN)
    }
}

impl Observer {
    pub fn new(gap_max: Duration) -> Self {
        Self {
            gap_max,
            sent: None,
            unbroken_since: None,
            seen: BTreeMap::new(),
        }
    }

    fn is_unbroken(&self, now: Duration) -> bool {
        self.sent
            .is_some_and(|sent| now.saturating_sub(sent) <= self.gap_max)
    }

    /// A beat was sent and answered, with the last beat of everyone who lives.
    pub fn observe(
        &mut self,
        sent: Duration,
        received: Duration,
        living: impl IntoIterator<Item = LastBeat>,
    ) {
        // Gaps count from sending to sending: a store that is slow to answer must not protect the dead.
        if !self.is_unbroken(sent) {
            self.seen.clear();
            self.unbroken_since = Some(sent);
        }
        self.sent = Some(sent);
        let before = std::mem::take(&mut self.seen);
        let since = |presence, mark| {
            let same = before.get(&presence).filter(|(last, _)| *last == mark);
            same.map_or(received, |(_, since)| *since)
        };
        let seen = living.into_iter();
        self.seen = seen
            .map(|(presence, mark)| (presence, (mark, since(presence, mark))))
            .collect();
    }

    /// Since when this node has been heard without a break, if it is.
    pub fn unbroken_since(&self, now: Duration) -> Option<Duration> {
        self.unbroken_since.filter(|_| self.is_unbroken(now))
    }

    /// Who has lapsed, with the last beat of each.
    pub fn lapsed(&self, now: Duration) -> Vec<LastBeat> {
        if !self.is_unbroken(now) {
            return Vec::new();
        }
        let silent = |since: Duration| now.saturating_sub(since) >= PRESENCE_TTL;
        let lapsed = self.seen.iter().filter(|(_, (_, since))| silent(*since));
        lapsed
            .map(|(presence, (mark, _))| (*presence, *mark))
            .collect()
    }

    /// When the next of them lapses, unless it is heard before.
    pub fn next_lapse(&self, now: Duration) -> Option<Duration> {
        let lapses = self.seen.values().map(|(_, since)| *since + PRESENCE_TTL);
        lapses.filter(|lapse| *lapse > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;

    const MOMENT: Duration = Duration::from_millis(1);

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn other() -> PresenceId {
        PresenceId::new(Timestamp::from_millis(0), [7; 10])
    }

    /// Beats at these moments, each answered 5 ms later, while the other's last beat is `mark`.
    fn hear(observer: &mut Observer, at: impl IntoIterator<Item = u64>, mark: i64) {
        for at in at {
            observer.observe(ms(at), ms(at + 5), [(other(), BeatMark(mark))]);
        }
    }

    fn lapsed(observer: &Observer, at: u64) -> bool {
        observer.lapsed(ms(at)) == [(other(), observer.seen[&other()].0)]
    }

    #[test]
    fn one_that_is_silent_for_a_lifetime_has_lapsed() {
        let mut observer = Observer::default();
        hear(&mut observer, [0, 1_000, 2_000, 3_000], 1);
        assert!(!lapsed(&observer, 3_004), "it was first seen at 5");
        assert!(lapsed(&observer, 3_005));
        assert_eq!(observer.next_lapse(ms(3_004)), Some(ms(3_005)));
        assert_eq!(observer.next_lapse(ms(3_005)), None);
        hear(&mut observer, [4_000], 2);
        assert!(!lapsed(&observer, 4_005));
        assert_eq!(observer.next_lapse(ms(4_005)), Some(ms(7_005)));
    }

    /// A beats at 0 s, B at 0.9 s, the store is away from 0.95 to 3.45 s, B beats at 3.5 s.
    #[test]
    fn an_outage_breaks_the_watch() {
        let mut observer = Observer::default();
        hear(&mut observer, [0, 900, 3_500], 1);
        assert!(!lapsed(&observer, 3_905));
        assert_eq!(observer.unbroken_since(ms(3_905)), Some(ms(3_500)));
        hear(&mut observer, [4_500, 5_500], 1);
        assert_eq!(observer.unbroken_since(ms(6_000)), Some(ms(3_500)));
        assert_eq!(observer.unbroken_since(ms(7_001)), None);
        assert!(!lapsed(&observer, 6_504));
        assert!(lapsed(&observer, 6_505), "a lifetime after the outage");
    }

    #[test]
    fn one_and_a_half_beats_are_no_break() {
        let mut observer = Observer::default();
        hear(&mut observer, [0, 1_500, 3_000], 1);
        assert!(lapsed(&observer, 3_005));
        assert!(!observer.lapsed(ms(4_500)).is_empty());
        assert!(
            observer.lapsed(ms(4_500) + MOMENT).is_empty(),
            "away itself"
        );
        hear(&mut observer, [4_501], 1);
        assert!(observer.lapsed(ms(4_506)).is_empty());
    }

    /// Answers take from nothing to most of a second.
    #[test]
    fn a_slow_store_does_not_protect_the_dead() {
        let mut observer = Observer::default();
        for (sent, received) in [(0, 0), (1_000, 1_900), (2_000, 2_001), (3_000, 3_900)] {
            observer.observe(ms(sent), ms(received), [(other(), BeatMark(1))]);
        }
        assert!(lapsed(&observer, 3_900));
    }

    #[test]
    fn whoever_is_gone_is_not_watched() {
        let mut observer = Observer::default();
        hear(&mut observer, [0, 1_000, 2_000], 1);
        observer.observe(ms(3_000), ms(3_005), []);
        assert!(observer.lapsed(ms(3_005)).is_empty());
        assert!(Observer::default().lapsed(ms(9_000)).is_empty());
    }

    #[test]
    fn no_two_beats_have_one_mark() {
        let first = BeatMark::at(ms(7));
        assert_eq!(first.next(ms(9)), BeatMark(9));
        let again = [7, 7, 8, 3, 9].iter().scan(first, |mark, at| {
            *mark = mark.next(ms(*at));
            Some(mark.0)
        });
        assert_eq!(again.collect::<Vec<_>>(), [8, 9, 10, 11, 12]);
    }
}
