//! Seals: a segment of the log, what it holds, and the code that chains it to the segment before.
//!
//! A segment has every number from `from` to `to`. Those that could not be seen when it was sealed are its gaps: whoever
//! took them had not committed yet, or never will. One that appears later is taken up by the segment that is sealed then,
//! as late. So each entry belongs to one segment, and each number is accounted for.

use model::Timestamp;

use super::AuditEntry;

/// Numbers from the first to the last, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gap {
    pub first: u64,
    pub last: u64,
}

impl Gap {
    pub fn contains(self, seq: u64) -> bool {
        (self.first..=self.last).contains(&seq)
    }
}

/// Segments that are dropped together, and how many entries they may have: the store serves others meanwhile.
pub const DROP_SEALS_MAX: usize = 100;
pub(crate) const DROP_ENTRIES_MAX: u64 = 2_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    /// From 1, without a hole.
    pub number: u64,
    pub from: u64,
    pub to: u64,
    pub sealed_at: Timestamp,
    /// Numbers of this segment that were not there yet.
    pub gaps: Vec<Gap>,
    /// Numbers of earlier segments that are there now.
    pub late: Vec<u64>,
    /// Entries, late ones among them.
    pub count: u64,
    /// The key that the code was made with.
    pub key: String,
    pub previous: [u8; 32],
    pub mac: [u8; 32],
}

impl Seal {
    /// What the code covers, but for the entries: the code before, and all that the seal says.
    pub fn header(&self) -> Vec<u8> {
        let mut bytes = Bytes(b"punctual audit seal 1".to_vec());
        bytes.0.extend(self.previous);
        for number in [self.number, self.from, self.to, self.count] {
            bytes.number(number);
        }
        bytes.number(self.sealed_at.as_millis().cast_unsigned());
        bytes.number(self.gaps.len() as u64);
        for gap in &self.gaps {
            bytes.number(gap.first);
            bytes.number(gap.last);
        }
        bytes.number(self.late.len() as u64);
        for seq in &self.late {
            bytes.number(*seq);
        }
        bytes.text(Some(&self.key));
        bytes.0
    }

    /// Whether an entry of this number belongs to the segment.
    pub fn holds(&self, seq: u64) -> bool {
        let is_gap = || self.gaps.iter().any(|gap| gap.contains(seq));
        self.late.contains(&seq) || ((self.from..=self.to).contains(&seq) && !is_gap())
    }

    /// Which of the oldest segments go together, given one more than may: those that were kept long enough, and not the
    /// last there is.
    pub fn to_drop(oldest: Vec<Self>, until: Timestamp) -> Vec<Self> {
        let count = oldest.len().saturating_sub(1);
        let mut entries = 0;
        let fits = |seal: &Self| {
            let is_first = entries == 0;
            entries += seal.count;
            seal.sealed_at <= until && (is_first || entries <= DROP_ENTRIES_MAX)
        };
        oldest.into_iter().take(count).take_while(fits).collect()
    }
}

/// As both stores on disk have it.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl Seal {
    /// The numbers that belong to it: what lies between its gaps, and what was late.
    pub(crate) fn spans(&self) -> Vec<Gap> {
        let mut spans = Vec::with_capacity(self.gaps.len() + self.late.len() + 1);
        let mut first = self.from;
        for gap in &self.gaps {
            if first < gap.first {
                let last = gap.first - 1;
                spans.push(Gap { first, last });
            }
            first = gap.last.saturating_add(1);
        }
        if first <= self.to {
            let last = self.to;
            spans.push(Gap { first, last });
        }
        let late = self.late.iter();
        spans.extend(late.map(|seq| Gap {
            first: *seq,
            last: *seq,
        }));
        spans
    }

    /// Gaps as they are kept: `3-5,9`.
    pub(crate) fn gaps_text(&self) -> String {
        let one = |gap: &Gap| {
            if gap.first == gap.last {
                gap.first.to_string()
            } else {
                format!("{}-{}", gap.first, gap.last)
            }
        };
        let all: Vec<String> = self.gaps.iter().map(one).collect();
        all.join(",")
    }

    pub(crate) fn late_text(&self) -> String {
        let all: Vec<String> = self.late.iter().map(ToString::to_string).collect();
        all.join(",")
    }

    pub(crate) fn read_gaps(text: &str) -> Option<Vec<Gap>> {
        let one = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            Some(Gap { first, last })
        };
        parts(text).map(one).collect()
    }

    pub(crate) fn read_late(text: &str) -> Option<Vec<u64>> {
        parts(text).map(|part| part.parse().ok()).collect()
    }
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(|part| !part.is_empty())
}

impl AuditEntry {
    /// Every field, each with its length before it: no two entries have the same bytes.
    pub fn canonical(&self) -> Vec<u8> {
        let mut bytes = Bytes(Vec::with_capacity(256));
        bytes.number(self.seq);
        bytes.number(self.at.as_millis().cast_unsigned());
        bytes.0.extend(self.tenant.as_bytes());
        bytes.text(Some(&self.actor));
        bytes.text(self.key.map(|key| key.to_string()).as_deref());
        bytes.text(self.address.as_deref());
        bytes.text(self.request.as_deref());
        bytes.text(Some(&self.action));
        bytes.text(Some(&self.subject));
        bytes.text(self.before.as_deref());
        bytes.text(self.after.as_deref());
        bytes.0
    }
}

pub(super) struct Bytes(pub(super) Vec<u8>);

impl Bytes {
    pub(super) fn number(&mut self, number: u64) {
        self.0.extend(number.to_be_bytes());
    }

    /// Nothing is not the same as no text.
    pub(super) fn text(&mut self, text: Option<&str>) {
        match text {
            None => self.number(u64::MAX),
            Some(text) => {
                self.number(text.len() as u64);
                self.0.extend(text.as_bytes());
            }
        }
    }
}
