//! What the log says of sealed segments that were dropped. A code under the master key vouches for it, as for a segment:
//! whoever can only write the database cannot delete segments and say that they were kept long enough.

use model::hex::to_hex;
use serde::{Deserialize, Serialize};

use super::seal::{Bytes, Seal};

/// How much is kept of the code of each segment: enough to compare one that was written down elsewhere.
const SHORT_CODE: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstLast {
    pub first: u64,
    pub last: u64,
}

/// Segments that went together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DroppedSeals {
    pub segments: FirstLast,
    pub entries: FirstLast,
    /// The beginning of each one's code, one after another.
    pub codes: String,
    /// The code of the last, which the next segment is chained to.
    pub mac: String,
    /// The key that vouches for this.
    pub key: String,
    /// In hex; empty until it is made.
    pub code: String,
}

impl DroppedSeals {
    /// What is to be said of these, but for the code. None if there are none.
    pub fn of(seals: &[Seal], key: &str) -> Option<Self> {
        let (first, last) = (seals.first()?, seals.last()?);
        let short = |seal: &Seal| to_hex(seal.mac.get(..SHORT_CODE / 2).unwrap_or_default());
        Some(Self {
            segments: FirstLast {
                first: first.number,
                last: last.number,
            },
            entries: FirstLast {
                first: first.from,
                last: last.to,
            },
            codes: seals.iter().map(short).collect(),
            mac: to_hex(&last.mac),
            key: key.to_owned(),
            code: String::new(),
        })
    }

    /// None if it is none of ours.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// What the code covers.
    pub fn header(&self) -> Vec<u8> {
        let mut bytes = Bytes(b"punctual audit drop 1".to_vec());
        for FirstLast { first, last } in [&self.segments, &self.entries] {
            bytes.number(*first);
            bytes.number(*last);
        }
        for text in [&self.codes, &self.mac, &self.key] {
            bytes.text(Some(text));
        }
        bytes.0
    }

    /// Whether a segment of this number was among them.
    pub fn holds(&self, number: u64) -> bool {
        (self.segments.first..=self.segments.last).contains(&number)
    }

    /// Whether the segment of this number had this code, in hex.
    pub fn had(&self, number: u64, mac: &str) -> bool {
        let nth = number.checked_sub(self.segments.first);
        let at = nth.and_then(|nth| usize::try_from(nth).ok()?.checked_mul(SHORT_CODE));
        let kept = at.and_then(|at| self.codes.get(at..at.checked_add(SHORT_CODE)?));
        let is_last = number == self.segments.last;
        kept.is_some() && kept == mac.get(..SHORT_CODE) && (!is_last || self.mac == mac)
    }
}
