//! The wheel: a cache of what is due soon, in buckets of one millisecond. It may be emptied at any
//! time; plan fills it again from the store.
//!
//! What is on time and the backlog lie apart, each with room of its own, so that neither a backlog of any size nor
//! those who catch up with it keep out what is due about now.
//!
//! What always holds: a job or a run is in it once at most, and stays known until the write that
//! takes it out has been answered; so nothing read before that answer can put it back.

use std::sync::Arc;

use model::shard::ShardSet;
use model::{AttemptNo, Job, JobId, Lane, RunId, Shard, Slot, Timestamp, Version, limits};
use store::DueRun;

use super::buckets::Buckets;
use crate::age::{Age, ByAge, on_time_from};
use crate::by_id::{MapById, SetById};

/// Something due.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Entry {
    /// A job's next slot.
    Slot(Arc<Job>),
    /// A run that nobody holds: a retry, a manual run, one left by another node.
    Run(DueRun),
}

impl Entry {
    pub(super) fn job(&self) -> JobId {
        match self {
            Self::Slot(job) => job.id,
            Self::Run(run) => run.job,
        }
    }

    /// The store does not say of which lane a run is until it is claimed.
    pub(super) fn lane(&self) -> Lane {
        match self {
            Self::Slot(job) => job.def.lane,
            Self::Run(_) => Lane::default(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Slot(job) => job.def.payload.as_ref().map_or(0, bytes::Bytes::len),
            Self::Run(_) => 0,
        }
    }
}

/// The end of a claim that was settled while a write was under way that may answer the run as ours.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastEnd {
    pub(super) attempt: AttemptNo,
    /// The run was anyone's again then, under the same number: what is answered may be that claim, or one made since.
    pub(super) released: bool,
}

#[derive(Debug)]
pub(super) struct Wheel {
    entries: ByAge<Buckets>,
    /// What is due before this is backlog.
    on_time_from: Timestamp,
    /// Whether plan waits for room for either.
    wanted: ByAge<bool>,
    /// Which slot of which version each job is in for, until its firing was answered.
    jobs: MapById<JobId, (Version, Slot)>,
    runs: SetById<RunId>,
    /// Runs that writes under way make or claim, and how many such writes there are.
    in_flight: MapById<RunId, u32>,
    /// Of these, runs whose claim has ended since.
    ended: MapById<RunId, LastEnd>,
    /// While runs are taken, which are not known by name: every claim that has ended since.
    claiming_due: Option<MapById<RunId, LastEnd>>,
    /// How often fire started again.
    restarts: u64,
    /// While plan reads: what was answered meanwhile. What it read about these is out of date.
    reading: Option<(SetById<JobId>, SetById<RunId>)>,
}

impl Default for Wheel {
    fn default() -> Self {
        Self {
            entries: ByAge::default(),
            on_time_from: Timestamp::MIN,
            wanted: ByAge::default(),
            jobs: MapById::default(),
            runs: SetById::default(),
            in_flight: MapById::default(),
            ended: MapById::default(),
            claiming_due: None,
            restarts: 0,
            reading: None,
        }
    }
}

/// How many entries of an age, and how many bytes of their payloads, plan puts in.
fn room(age: Age) -> (usize, usize) {
    let (backlog, bytes) = (limits::WHEEL_BACKLOG_MAX, limits::WHEEL_BYTES_MAX / 4);
    match age {
        Age::OnTime => (limits::WHEEL_MAX - backlog, limits::WHEEL_BYTES_MAX - bytes),
        Age::Backlog => (backlog, bytes),
    }
}

impl Wheel {
    pub(super) fn len(&self) -> usize {
        self.entries.on_time.len() + self.entries.backlog.len()
    }

    /// Sets the time: what has become backlog goes over to it, and back if the clock went back.
    pub(super) fn age(&mut self, now: Timestamp) {
        self.on_time_from = on_time_from(now);
        let ByAge { on_time, backlog } = &mut self.entries;
        on_time.move_before(self.on_time_from, backlog);
        backlog.move_from(self.on_time_from, on_time);
    }

    /// Whether another page of plan fits. If not, `has_room_again` says when it does.
    pub(super) fn has_room(&mut self, age: Age) -> bool {
        let (entries, (len_max, bytes_max)) = (self.entries.get(age), room(age));
        let fits = entries.len() + limits::PLAN_PAGE_MAX <= len_max && entries.bytes() < bytes_max;
        *self.wanted.get_mut(age) = !fits;
        fits
    }

    /// Whether plan waits for room and half of it is free. Says so once.
    pub(super) fn has_room_again(&mut self) -> bool {
        let is_free = |age| self.entries.get(age).len() < room(age).0 / 2;
        let heard = Age::ALL.map(|age| *self.wanted.get(age) && is_free(age));
        let again = heard.contains(&true);
        if again {
            self.wanted = ByAge::default();
        }
        again
    }

    /// What was read on time and became backlog in here may be too much: then the latest of it is dropped, for plan to
    /// read again. Answers whether any was.
    pub(super) fn shed(&mut self) -> bool {
        let mut shed = false;
        let bytes = |it: &Self| it.entries.on_time.bytes() + it.entries.backlog.bytes();
        while self.entries.backlog.len() > 0
            && (self.len() > limits::WHEEL_MAX || bytes(self) > limits::WHEEL_BYTES_MAX)
        {
            for entry in &self.entries.backlog.pop_least() {
                self.answered(entry);
            }
            shed = true;
        }
        shed
    }

    /// Plan begins to read the store.
    pub(super) fn begin_reading(&mut self) {
        self.reading = Some(Default::default());
    }

    /// Plan has put in what it read.
    pub(super) fn end_reading(&mut self) {
        self.reading = None;
    }

    /// Puts in a job's next slot, as plan read it. Answers whether it was new.
    pub(super) fn insert_read_job(&mut self, job: Arc<Job>) -> bool {
        let outdated = |(jobs, _): &(SetById<JobId>, SetById<RunId>)| jobs.contains(&job.id);
        if self.reading.as_ref().is_some_and(outdated) {
            return false;
        }
        self.insert_job(job)
    }

    /// Puts in a run, as plan read it.
    pub(super) fn insert_read_run(&mut self, run: DueRun, due_at: Timestamp) -> bool {
        let outdated = |(_, runs): &(SetById<JobId>, SetById<RunId>)| runs.contains(&run.run);
        if self.reading.as_ref().is_some_and(outdated) {
            return false;
        }
        self.insert_run(run, due_at)
    }

    /// Puts in a job's next slot, as it stands after a write that was just answered.
    pub(super) fn insert_job(&mut self, job: Arc<Job>) -> bool {
        let Some(slot) = job.next_slot else {
            return false;
        };
        let due_at = job.due_at(slot);
        match self.jobs.get(&job.id) {
            // Known as it is, or the reader is behind.
            Some(known) if *known == (job.version, slot) || known.0 > job.version => return false,
            // The write about the slot before is to be sent again: whatever it was answered is not known yet.
            Some((version, known)) if *version == job.version && *known < slot => return false,
            // The older entry will turn out stale.
            Some(_) | None => {}
        }
        self.jobs.insert(job.id, (job.version, slot));
        self.push(due_at, Entry::Slot(job));
        true
    }

    pub(super) fn insert_run(&mut self, run: DueRun, due_at: Timestamp) -> bool {
        if !self.runs.insert(run.run) {
            return false;
        }
        self.push(due_at, Entry::Run(run));
        true
    }

    /// Puts back what was taken and could not be written.
    pub(super) fn put_back(&mut self, due_at: Timestamp, entry: Entry) {
        self.push(due_at, entry);
    }

    fn push(&mut self, due_at: Timestamp, entry: Entry) {
        let age = if due_at < self.on_time_from {
            Age::Backlog
        } else {
            Age::OnTime
        };
        self.entries.get_mut(age).push(due_at, entry);
    }

    /// Takes out up to `max` entries due at or before `until`: lanes by weight, each lane's earliest first. They stay
    /// known.
    pub(super) fn take(
        &mut self,
        age: Age,
        until: Timestamp,
        max: usize,
    ) -> Vec<(Timestamp, Entry)> {
        self.entries.get_mut(age).take(until, max)
    }

    /// Whether the entry is still what the wheel wants of its job; an edit may have replaced it.
    pub(super) fn is_current(&self, entry: &Entry) -> bool {
        match entry {
            Entry::Slot(job) => job
                .next_slot
                .is_some_and(|slot| self.jobs.get(&job.id) == Some(&(job.version, slot))),
            Entry::Run(_) => true,
        }
    }

    /// The write about this entry has been answered: it is known no more.
    pub(super) fn answered(&mut self, entry: &Entry) {
        match entry {
            Entry::Slot(job) => {
                if self.is_current(entry) {
                    self.jobs.remove(&job.id);
                }
                if let Some((jobs, _)) = &mut self.reading {
                    jobs.insert(job.id);
                }
            }
            Entry::Run(run) => {
                self.runs.remove(&run.run);
                if let Some((_, runs)) = &mut self.reading {
                    runs.insert(run.run);
                }
            }
        }
    }

    /// A write that makes or claims these runs is under way.
    pub(super) fn begin_write(&mut self, runs: impl Iterator<Item = RunId>) {
        for run in runs {
            *self.in_flight.entry(run).or_default() += 1;
        }
    }

    /// It has been answered, one way or the other.
    pub(super) fn end_write(&mut self, runs: impl Iterator<Item = RunId>) {
        for run in runs {
            let left = self.in_flight.get_mut(&run).map(|count| {
                *count -= 1;
                *count
            });
            if left == Some(0) {
                self.in_flight.remove(&run);
                self.ended.remove(&run);
            }
        }
    }

    /// Runs are being taken.
    pub(super) fn begin_claiming_due(&mut self) {
        self.claiming_due = Some(MapById::default());
    }

    pub(super) fn is_claiming_due(&self) -> bool {
        self.claiming_due.is_some()
    }

    /// They have been; what of them has ended already is not to be started.
    pub(super) fn end_claiming_due(&mut self) -> MapById<RunId, LastEnd> {
        self.claiming_due.take().unwrap_or_default()
    }

    /// A claim of ours was settled. A write that was sent again, or that met a claim made by another way, may answer
    /// the run as ours although it has ended meanwhile.
    pub(super) fn end_claim(&mut self, run: RunId, end: LastEnd) {
        if self.in_flight.contains_key(&run) {
            self.ended.insert(run, end);
        }
        if let Some(claiming_due) = &mut self.claiming_due {
            claiming_due.insert(run, end);
        }
    }

    /// How a claim ended while the write that makes it was under way, if it did.
    pub(super) fn end_of(&self, run: RunId, attempt: AttemptNo) -> Option<LastEnd> {
        let end = self.ended.get(&run).copied();
        end.filter(|end| end.attempt >= attempt)
    }

    /// Whether a write about the run is under way or to come.
    pub(super) fn knows_run(&self, run: RunId) -> bool {
        self.runs.contains(&run) || self.in_flight.contains_key(&run)
    }

    /// Fire starts again: what it had taken out is known no more, so that plan finds it again; and it waits for no answer.
    pub(super) fn forget_taken(&mut self) {
        let ByAge { on_time, backlog } = &self.entries;
        let entries = || on_time.iter().chain(backlog.iter());
        let slots = entries().filter(|entry| self.is_current(entry));
        let (jobs, runs) = slots.fold(
            (MapById::default(), SetById::default()),
            |(mut jobs, mut runs), entry| {
                match entry {
                    Entry::Slot(job) => {
                        jobs.extend(job.next_slot.map(|slot| (job.id, (job.version, slot))));
                    }
                    Entry::Run(run) => {
                        runs.insert(run.run);
                    }
                }
                (jobs, runs)
            },
        );
        (self.jobs, self.runs) = (jobs, runs);
        self.in_flight.clear();
        self.ended.clear();
        self.restarts += 1;
    }

    /// Changes when the count of writes under way is lost: whoever waits for an answer then has to send it again.
    pub(super) fn restarts(&self) -> u64 {
        self.restarts
    }

    /// The earliest due time.
    pub(super) fn next_due(&self, age: Age) -> Option<Timestamp> {
        self.entries.get(age).next_due()
    }

    /// How many are on time and due at or before `until`.
    pub(super) fn count_until(&self, until: Timestamp) -> usize {
        self.entries.on_time.count_until(until)
    }

    /// Drops what belongs to shards that are ours no more.
    pub(super) fn keep_shards(&mut self, shards: &ShardSet) {
        if shards.is_all() {
            return;
        }
        let keep = |entry: &Entry| shards.contains(Shard::of(entry.job()));
        for age in Age::ALL {
            for entry in &self.entries.get_mut(age).drop_unless(keep) {
                self.answered(entry);
            }
        }
    }
}

#[cfg(test)]
#[path = "wheel_tests.rs"]
mod tests;
