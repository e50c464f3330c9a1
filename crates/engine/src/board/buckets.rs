//! Buckets: entries of the wheel by lane and due time, one bucket a millisecond.

use std::collections::BTreeMap;

use model::{Lane, Timestamp};

use super::wheel::Entry;

type Lined = BTreeMap<Timestamp, Vec<Entry>>;

#[derive(Debug, Default)]
pub(super) struct Buckets {
    lanes: [Lined; Lane::COUNT],
    len: usize,
    bytes: usize,
}

/// Takes entries of one lane, earliest first.
fn take_from(lane: &mut Lined, until: Timestamp, max: usize, taken: &mut Vec<(Timestamp, Entry)>) {
    let mut room = max;
    while room > 0
        && let Some(mut bucket) = lane.first_entry()
    {
        let due_at = *bucket.key();
        if due_at > until {
            return;
        }
        let entries = bucket.get_mut();
        if entries.len() <= room {
            room -= entries.len();
            taken.extend(bucket.remove().into_iter().map(|entry| (due_at, entry)));
        } else {
            taken.extend(entries.drain(..room).map(|entry| (due_at, entry)));
            return;
        }
    }
}

impl Buckets {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of payload.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.lanes.iter().flat_map(BTreeMap::values).flatten()
    }

    pub(super) fn push(&mut self, due_at: Timestamp, entry: Entry) {
        self.len += 1;
        self.bytes += entry.bytes();
        if let Some(lane) = self.lanes.get_mut(entry.lane().index()) {
            lane.entry(due_at).or_default().push(entry);
        }
    }

    /// Takes out up to `max` entries due at or before `until`, each lane's earliest first. Lanes share by weight; what
    /// one leaves goes to the others.
    pub(super) fn take(&mut self, until: Timestamp, max: usize) -> Vec<(Timestamp, Entry)> {
        let mut taken = Vec::new();
        let is_due = |lane: &Lined| lane.keys().next().is_some_and(|due_at| *due_at <= until);
        let due = self.lanes.each_ref().map(is_due);
        let weights = Lane::ALL.into_iter().zip(due);
        let all: u32 = weights
            .filter(|(_, due)| *due)
            .map(|(it, _)| it.weight())
            .sum();
        for ((queue, lane), due) in self.lanes.iter_mut().zip(Lane::ALL).zip(due) {
            if due {
                let share = max * lane.weight() as usize / all.max(1) as usize;
                let room = max - taken.len();
                take_from(queue, until, share.max(1).min(room), &mut taken);
            }
        }
        for queue in &mut self.lanes {
            let room = max - taken.len();
            take_from(queue, until, room, &mut taken);
        }
        self.forget(taken.iter().map(|(_, entry)| entry));
        taken
    }

    fn forget<'a>(&mut self, gone: impl Iterator<Item = &'a Entry>) {
        for entry in gone {
            self.len -= 1;
            self.bytes -= entry.bytes();
        }
    }

    /// Moves buckets due before `until` to the others.
    pub(super) fn move_before(&mut self, until: Timestamp, others: &mut Self) {
        while let Some((due_at, bucket)) = self.pop_if(|lane| {
            let first = lane.first_entry()?;
            (*first.key() < until).then(|| first.remove_entry())
        }) {
            bucket.into_iter().for_each(|it| others.push(due_at, it));
        }
    }

    /// Moves buckets due at `from` or later to the others.
    pub(super) fn move_from(&mut self, from: Timestamp, others: &mut Self) {
        while let Some((due_at, bucket)) = self.pop_if(|lane| {
            let last = lane.last_entry()?;
            (*last.key() >= from).then(|| last.remove_entry())
        }) {
            bucket.into_iter().for_each(|it| others.push(due_at, it));
        }
    }

    /// Drops the bucket that matters least: the latest of the lowest lane.
    pub(super) fn pop_least(&mut self) -> Vec<Entry> {
        let mut lanes = self.lanes.iter_mut().rev();
        let least = lanes.find_map(BTreeMap::pop_last);
        let (_, bucket) = least.unwrap_or_default();
        self.forget(bucket.iter());
        bucket
    }

    fn pop_if(
        &mut self,
        pop: impl Fn(&mut Lined) -> Option<(Timestamp, Vec<Entry>)>,
    ) -> Option<(Timestamp, Vec<Entry>)> {
        let popped = self.lanes.iter_mut().find_map(pop);
        self.forget(popped.iter().flat_map(|(_, bucket)| bucket));
        popped
    }

    /// The earliest due time.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        let firsts = self.lanes.iter().filter_map(|lane| lane.keys().next());
        firsts.min().copied()
    }

    /// How many are due at or before `until`.
    pub(super) fn count_until(&self, until: Timestamp) -> usize {
        let due = |lane: &Lined| lane.range(..=until).map(|(_, bucket)| bucket.len()).sum();
        let counts: [usize; Lane::COUNT] = self.lanes.each_ref().map(due);
        counts.iter().sum()
    }

    /// Takes out what is not to be kept.
    pub(super) fn drop_unless(&mut self, keep: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        let mut dropped = Vec::new();
        for lane in &mut self.lanes {
            lane.retain(|_, bucket| {
                dropped.extend(bucket.extract_if(.., |entry| !keep(entry)));
                !bucket.is_empty()
            });
        }
        self.forget(dropped.iter());
        dropped
    }
}
