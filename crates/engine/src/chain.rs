//! The chain of the audit log: how the code of a segment is made, and how all of it is checked.
//!
//! A code covers the code before it, all that the seal says, and every entry of the segment. Whoever can write the database
//! and not the master key can make none: what is changed, deleted or put in later shows, from the first segment that
//! is wrong on. That the end was cut off shows by a head that was written down elsewhere; each is in the log. Segments that
//! were kept long enough are dropped, and an entry says so under a code of its own.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use model::Timestamp;
use model::hex::to_hex;
use sha2::Sha256;
use store::{AuditEntry, AuditRange, AuditStore, DroppedSeals, Gap, Seal, StoreError};

use crate::drops;
use crate::vault::{MasterKey, MasterKeys};

const LABEL: &str = "audit v1";
/// Entries of one segment, but for late ones.
pub(crate) const SEGMENT_MAX: usize = 2_000;
/// Late ones of one segment.
pub(crate) const LATE_MAX: usize = 1_000;
/// How long after its segment was sealed an entry may still appear: whoever took its number commits by then, or never.
pub(crate) const LATE_WITHIN: Duration = Duration::from_secs(600);
/// Seals read at once.
const READ_MAX: usize = 100;

pub type Code = [u8; 32];

/// The code of a segment; its entries in the order of their numbers.
pub(crate) fn code(key: &MasterKey, seal: &Seal, entries: &[AuditEntry]) -> Code {
    let mut mac = keyed(key, LABEL);
    mac.update(&seal.header());
    for entry in entries {
        let bytes = entry.canonical();
        mac.update(&(bytes.len() as u64).to_be_bytes());
        mac.update(&bytes);
    }
    mac.finalize().into_bytes().into()
}

/// An HMAC under a key of its own purpose.
pub(crate) fn keyed(key: &MasterKey, label: &str) -> Hmac<Sha256> {
    let key = key.derive(label);
    let mut block = [0; 64];
    for (to, from) in block.iter_mut().zip(key.iter()) {
        *to = *from;
    }
    Hmac::<Sha256>::new((&block).into())
}

/// A segment and its code, as the log has it: `12:9a82…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub number: u64,
    pub mac: String,
}

impl Head {
    pub fn parse(text: &str) -> Option<Self> {
        let (number, mac) = text.split_once(':')?;
        let is_code = mac.len() == 64 && mac.bytes().all(|byte| byte.is_ascii_hexdigit());
        Some(Self {
            number: number.parse().ok().filter(|_| is_code)?,
            mac: mac.to_ascii_lowercase(),
        })
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.number, self.mac)
    }
}

/// The first thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    pub segment: Option<u64>,
    pub entry: Option<u64>,
    pub why: String,
}

/// What could not be checked: its key is not given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyMissing {
    /// The first segment of those.
    pub segment: u64,
    pub segments: u64,
    pub key: String,
}

/// How far the check has come.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checked {
    pub segments: u64,
    pub entries: u64,
    /// The last segment that was checked.
    pub head: Option<Head>,
}

/// A check of the whole chain, in steps that are bounded.
pub struct Check<'a> {
    store: &'a dyn AuditStore,
    keys: &'a MasterKeys,
    head: Option<Head>,
    now: Timestamp,
    last: Option<Seal>,
    /// Entries that stand in gaps, by number, until a later segment takes them up; with when their own was sealed.
    in_gaps: BTreeMap<u64, (u64, Timestamp)>,
    key_missing: Option<KeyMissing>,
    pub checked: Checked,
}

/// What a step came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    More,
    /// All of it is as it was sealed. So many entries are not sealed yet.
    Whole {
        unsealed: u64,
    },
    /// Nothing else is wrong.
    KeyMissing(KeyMissing),
    Wrong(Wrong),
}

impl<'a> Check<'a> {
    pub fn new(
        store: &'a dyn AuditStore,
        keys: &'a MasterKeys,
        head: Option<Head>,
        now: Timestamp,
    ) -> Self {
        Self {
            store,
            keys,
            head,
            now,
            last: None,
            in_gaps: BTreeMap::new(),
            key_missing: None,
            checked: Checked::default(),
        }
    }

    /// Checks some segments.
    pub async fn step(&mut self) -> Result<Step, StoreError> {
        let after = self.last.as_ref().map_or(0, |last| last.number);
        let seals = match self.store.list_seals(after, READ_MAX).await {
            Err(StoreError::BadRow(bad)) => return Ok(wrong(None, None, bad.to_string())),
            seals => seals?,
        };
        if seals.is_empty() {
            return self.end().await;
        }
        match self.segments(seals).await? {
            Err(wrong) => Ok(Step::Wrong(wrong)),
            Ok(()) => Ok(Step::More),
        }
    }

    /// Checks the oldest segments before they are dropped: afterwards nobody can. Answers what could not be checked.
    pub(crate) async fn oldest(
        mut self,
        seals: &[Seal],
    ) -> Result<Result<Option<KeyMissing>, Wrong>, StoreError> {
        let checked = self.segments(seals.to_vec()).await?;
        Ok(checked.map(|()| self.key_missing))
    }

    async fn segments(&mut self, seals: Vec<Seal>) -> Result<Result<(), Wrong>, StoreError> {
        for seal in seals {
            if let Err(wrong) = self.segment(&seal).await? {
                return Ok(Err(wrong));
            }
            self.checked.segments += 1;
            self.checked.entries += seal.count;
            self.checked.head = Some(Head {
                number: seal.number,
                mac: to_hex(&seal.mac),
            });
            self.last = Some(seal);
        }
        Ok(Ok(()))
    }

    async fn segment(&mut self, seal: &Seal) -> Result<Result<(), Wrong>, StoreError> {
        if let Some(why) = self.follows(seal).await? {
            return Ok(Err(of(seal, None, why)));
        }
        let mut entries = self.read(seal).await?;
        for entry in entries.extract_if(.., |entry| !seal.holds(entry.seq)) {
            self.in_gaps
                .insert(entry.seq, (seal.number, seal.sealed_at));
        }
        for seq in &seal.late {
            self.in_gaps.remove(seq);
        }
        if let Some(missing) = missing(seal, &entries) {
            return Ok(Err(of(seal, Some(missing), "it was deleted".to_owned())));
        }
        match self.keys.get(&seal.key) {
            // Its code is vouched for by the next segment that can be checked; its entries by nothing.
            None => self.miss(seal.number, &seal.key),
            Some(key) if code(key, seal, &entries) != seal.mac => {
                let why = "an entry of it, or its seal, was changed".to_owned();
                return Ok(Err(of(seal, None, why)));
            }
            Some(_) => {}
        }
        let known = self.head.as_ref().filter(|head| head.number == seal.number);
        if known.is_some_and(|head| head.mac != to_hex(&seal.mac)) {
            let why = "it was sealed again: the head that was written down is another".to_owned();
            return Ok(Err(of(seal, None, why)));
        }
        Ok(Ok(()))
    }

    /// Why a segment does not follow the one before it, if so.
    async fn follows(&mut self, seal: &Seal) -> Result<Option<String>, StoreError> {
        let Some(last) = &self.last else {
            return self.begins(seal).await;
        };
        let next = last.number + 1;
        Ok(if seal.number != next {
            Some(format!("the segment {next} before it is missing"))
        } else if seal.previous != last.mac || seal.from != last.to + 1 {
            Some("it does not follow the segment before it".to_owned())
        } else {
            None
        })
    }

    /// The oldest segment is the first, or the log says under a code that those before it were dropped.
    async fn begins(&mut self, seal: &Seal) -> Result<Option<String>, StoreError> {
        if seal.number == 1 {
            let begins = (seal.from, seal.previous) == (1, [0; 32]);
            return Ok((!begins).then(|| "it does not begin the log".to_owned()));
        }
        let (before, mac) = (seal.number - 1, to_hex(&seal.previous));
        let is_before = |said: &DroppedSeals| said.segments.last == before && said.mac == mac;
        let Some(found) = drops::find(self.store, self.keys, is_before).await? else {
            let why = "are missing, and no entry that is sealed says that they were dropped";
            return Ok(Some(format!("the segments up to {before} {why}")));
        };
        if !found.is_checked {
            self.miss(before, &found.said.key);
        }
        match self.head.clone().filter(|head| head.number < seal.number) {
            Some(head) => self.dropped(&head).await,
            None => Ok(None),
        }
    }

    /// Why a head that was written down is not that of a segment that was dropped, if so.
    async fn dropped(&mut self, head: &Head) -> Result<Option<String>, StoreError> {
        let (number, mac) = (head.number, &head.mac);
        let holds = |said: &DroppedSeals| said.holds(number);
        let Some(found) = drops::find(self.store, self.keys, holds).await? else {
            let why = "and nothing is left to compare it with";
            return Ok(Some(format!("the segment {number} was dropped, {why}")));
        };
        if !found.said.had(number, mac) {
            let why = "the head that was written down is another";
            return Ok(Some(format!("the segment {number} was dropped, and {why}")));
        }
        if !found.is_checked {
            self.miss(number, &found.said.key);
        }
        Ok(None)
    }

    fn miss(&mut self, segment: u64, key: &str) {
        let missing = self.key_missing.get_or_insert_with(|| KeyMissing {
            segment,
            segments: 0,
            key: key.to_owned(),
        });
        missing.segments += 1;
    }

    /// What stands in its numbers, and what it took up late.
    async fn read(&self, seal: &Seal) -> Result<Vec<AuditEntry>, StoreError> {
        let gap = |seq: &u64| Gap {
            first: *seq,
            last: *seq,
        };
        let late: Vec<Gap> = seal.late.iter().map(gap).collect();
        let mut entries = if late.is_empty() {
            Vec::new()
        } else {
            self.store.find_audit(&late, late.len()).await?
        };
        let range = AuditRange {
            after: seal.from.saturating_sub(1),
            before: seal.to.saturating_add(1),
            // More than a segment ever has, if nobody put any in.
            limit: 2 * SEGMENT_MAX,
            ..AuditRange::ALL
        };
        entries.extend(self.store.list_audit(&range).await?);
        Ok(entries)
    }

    /// What is left when every segment was checked.
    async fn end(&mut self) -> Result<Step, StoreError> {
        let last = self.last.as_ref().map_or(0, |last| last.number);
        if let Some(head) = self.head.as_ref().filter(|head| head.number > last) {
            let why = format!("the log ends with segment {last}: the rest was cut off");
            return Ok(wrong(Some(head.number), None, why));
        }
        // One that appeared just now is sealed in a moment.
        let put_in = self.in_gaps.iter();
        let old = self.now.minus(LATE_WITHIN + LATE_WITHIN / 10);
        let mut put_in = put_in.filter(|(_, (_, sealed_at))| *sealed_at < old);
        if let Some((seq, (segment, _))) = put_in.next() {
            let why = "it was put in after its segment was sealed".to_owned();
            return Ok(wrong(Some(*segment), Some(*seq), why));
        }
        self.unsealed().await
    }

    async fn unsealed(&self) -> Result<Step, StoreError> {
        let mut range = AuditRange {
            after: self.last.as_ref().map_or(0, |last| last.to),
            limit: READ_MAX,
            ..AuditRange::ALL
        };
        let sealed_at = self.last.as_ref().map(|last| last.sealed_at);
        let mut unsealed = 0;
        loop {
            let read = self.store.list_audit(&range).await?;
            let old = |entry: &&AuditEntry| {
                sealed_at.is_some_and(|sealed_at| entry.at < sealed_at.minus(LATE_WITHIN))
            };
            if let Some(entry) = read.iter().find(old) {
                let why = "it is older than the last seal, and in no segment".to_owned();
                return Ok(wrong(None, Some(entry.seq), why));
            }
            unsealed += read.len() as u64;
            match read.last() {
                Some(entry) => range.after = entry.seq,
                None => break,
            }
        }
        Ok(match &self.key_missing {
            Some(missing) => Step::KeyMissing(missing.clone()),
            None => Step::Whole { unsealed },
        })
    }
}

/// The first number of a segment that has no entry.
fn missing(seal: &Seal, entries: &[AuditEntry]) -> Option<u64> {
    let found: std::collections::BTreeSet<u64> = entries.iter().map(|entry| entry.seq).collect();
    if found.len() as u64 == seal.count {
        return None;
    }
    let mut wanted = seal.late.iter().copied().chain(seal.from..=seal.to);
    let first = wanted.find(|seq| seal.holds(*seq) && !found.contains(seq));
    // Its count does not fit its numbers: somebody wrote the seal.
    Some(first.unwrap_or(seal.from))
}

fn of(seal: &Seal, entry: Option<u64>, why: String) -> Wrong {
    let segment = Some(seal.number);
    Wrong {
        segment,
        entry,
        why,
    }
}

fn wrong(segment: Option<u64>, entry: Option<u64>, why: String) -> Step {
    Step::Wrong(Wrong {
        segment,
        entry,
        why,
    })
}
