//! Whether some order explains all answers: one that keeps to real time (a call that was answered before another began
//! comes before it) and in which the reference store, called the same way, answers the same.
//!
//! A search by Wing and Gong: of the calls that may come next each is tried, and whoever answers as recorded is
//! followed; states that were seen with the same calls behind them are not visited twice.

use std::collections::BTreeSet;

use model::JobId;

use super::calls::{About, Answer, Call};
use super::history::{Entry, Opening, known_at};
use super::replay::Replay;
use crate::{Claimed, Fired, StoreError};

/// Calls tried for one job before the search gives up.
const TRIES_MAX: usize = 20_000;
/// Calls tried before states are remembered: most searches end long before that would pay.
const TRIES_PLAIN: usize = 200;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Explained {
    /// By calls in this order.
    By(Vec<usize>),
    /// Where the longest order ended: what the reference would have answered to the entries that could come next.
    Not(Vec<(usize, Answer)>),
    /// There were too many orders to try.
    Unknown,
}

/// Looks for an order of the entries of one job.
pub(super) async fn explain(
    opening: &Opening,
    job: JobId,
    entries: &[Entry],
) -> Result<Explained, StoreError> {
    let mut search = Search {
        opening,
        job,
        entries,
        order: Vec::new(),
        next: vec![0],
        seen: BTreeSet::new(),
        longest: 0,
        nearest: Vec::new(),
    };
    let mut replay = None;
    for tried in 0..TRIES_MAX {
        if search.is_complete() {
            return Ok(Explained::By(search.order));
        }
        let Some(index) = search.candidate() else {
            if !search.step_back() {
                return Ok(Explained::Not(search.nearest));
            }
            replay = None;
            continue;
        };
        let at = match replay.take() {
            Some(replay) => replay,
            None => search.replayed().await?,
        };
        if search.try_next(&at, index, tried > TRIES_PLAIN).await {
            replay = Some(at);
        }
    }
    Ok(Explained::Unknown)
}

struct Search<'a> {
    opening: &'a Opening,
    job: JobId,
    entries: &'a [Entry],
    order: Vec<usize>,
    /// For every place in the order, the entry to try next; one more than places.
    next: Vec<usize>,
    seen: BTreeSet<(Vec<bool>, Vec<usize>, u64)>,
    /// The longest order so far, and what was wrong after it.
    longest: usize,
    nearest: Vec<(usize, Answer)>,
}

impl Search<'_> {
    /// Calls without an answer may not have happened.
    fn is_complete(&self) -> bool {
        let placed = |index: usize| self.order.contains(&index);
        let mut entries = self.entries.iter().enumerate();
        entries.all(|(index, entry)| placed(index) || self.may_be_left_out(entry))
    }

    /// What a store may answer while others are at the same job, and what is not known to have happened. A claim does not
    /// wait for someone who is changing the run: it says `Stale`. Overlap is decided by the runs that live when fire
    /// reads them, and an end of one that comes before fire commits is not waited for: a reader in between sees
    /// the end, and not yet the slot that was skipped because of the run.
    fn may_be_left_out(&self, entry: &Entry) -> bool {
        let is_beside = |other: &Entry| other.start < entry.end && entry.start < other.end;
        let mut beside = self.entries.iter().filter(|other| {
            let same = (other.start, other.end) == (entry.start, entry.end);
            !same && is_beside(other)
        });
        match (&entry.call, &entry.answer) {
            (_, None) => true,
            (Call::Claim(..), Some(Answer::Claimed(Claimed::Stale))) => {
                beside.any(|other| matches!(other.about, About::Job(_)))
            }
            (Call::ReadJob(_), Some(_)) => beside.any(|other| {
                let answer = &other.answer;
                matches!(answer, Some(Answer::Fired(Fired::Skipped(_))))
            }),
            (_, Some(_)) => false,
        }
    }

    /// The next entry that may come now: nobody who was answered before it began is still to come.
    fn candidate(&mut self) -> Option<usize> {
        let first_end = self.entries.iter().enumerate();
        let first_end = first_end
            .filter(|(index, entry)| !self.order.contains(index) && !self.may_be_left_out(entry))
            .map(|(_, entry)| entry.end)
            .min()
            .unwrap_or(u64::MAX);
        let from = *self.next.last()?;
        let mut open = (from..self.entries.len()).filter(|index| !self.order.contains(index));
        let fits = |index: &usize| {
            let entry = self.entries.get(*index);
            entry.is_some_and(|entry| entry.start < first_end)
        };
        let found = open.find(fits)?;
        if let Some(next) = self.next.last_mut() {
            *next = found + 1;
        }
        Some(found)
    }

    fn step_back(&mut self) -> bool {
        self.next.pop();
        self.order.pop().is_some()
    }

    /// The reference after the calls of the order so far.
    async fn replayed(&self) -> Result<Replay, StoreError> {
        let replay = Replay::new(self.opening, self.job).await?;
        for entry in self
            .order
            .iter()
            .filter_map(|index| self.entries.get(*index))
        {
            replay.make(&entry.call, entry.answer.as_ref()).await;
        }
        Ok(replay)
    }

    fn refused(&mut self, index: usize, answer: Answer) {
        if self.order.len() > self.longest {
            self.longest = self.order.len();
            self.nearest.clear();
        }
        let one = (index, answer);
        if self.order.len() == self.longest && !self.nearest.contains(&one) {
            self.nearest.push(one);
        }
    }

    /// Puts an entry next, if it is answered as recorded and leads to somewhere new.
    async fn try_next(&mut self, replay: &Replay, index: usize, remember: bool) -> bool {
        let Some(entry) = self.entries.get(index) else {
            return false;
        };
        let answer = replay.make(&entry.call, entry.answer.as_ref()).await;
        let recorded = entry.answer.as_ref().map(|it| replay.narrowed(it));
        if recorded.is_some_and(|recorded| recorded != answer) {
            self.refused(index, answer);
            return false;
        }
        self.order.push(index);
        if remember {
            let placed = (0..self.entries.len()).map(|index| self.order.contains(&index));
            let placed: Vec<bool> = placed.collect();
            let is_nodes = |index: &&usize| {
                let entry = self.entries.get(**index);
                entry.is_some_and(|entry| entry.about == About::All)
            };
            // Presences and leases stand as these calls left them, in this order.
            let nodes: Vec<usize> = self.order.iter().filter(is_nodes).copied().collect();
            if !self
                .seen
                .insert((placed, nodes, replay.fingerprint().await))
            {
                self.order.pop();
                return false;
            }
        }
        self.next.push(0);
        true
    }
}

/// The shortest beginning of a history that no order explains, and where the longest order ended.
pub(super) async fn shortest(
    opening: &Opening,
    job: JobId,
    entries: &[Entry],
) -> Result<(Vec<Entry>, Vec<(usize, Answer)>), StoreError> {
    let mut moments: Vec<u64> = entries.iter().map(|entry| entry.end).collect();
    moments.sort_unstable();
    for moment in moments {
        let known = known_at(entries, moment);
        if let Explained::Not(nearest) = explain(opening, job, &known).await? {
            return Ok((known, nearest));
        }
    }
    Ok((entries.to_vec(), Vec::new()))
}
