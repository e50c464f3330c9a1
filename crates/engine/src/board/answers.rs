//! What became of writes: runs that are ours become claims, jobs wait for their next slots. One transition each, so that
//! settle cannot end a run between the answer that it is ours and its claim.

use std::sync::Arc;

use model::{AttemptNo, Job, RunId, Timestamp};
use store::{DueRun, Settlement};

use super::claims::Work;
use super::wheel::Entry;
use super::{Board, CHUNK, State};

/// What becomes of a slot that was fired.
#[derive(Debug)]
pub(crate) enum Then {
    /// Its run is ours.
    Claimed(Arc<Work>),
    /// Its run is held by nobody, and is claimed as soon as there is room.
    Ready(DueRun),
    /// It is decided, and nothing of it is to be done here.
    Decided,
    /// It would not be decided before this moment.
    Early(Timestamp),
    /// The job is not as it was, or not ours.
    Gone,
}

/// A slot that was fired.
#[derive(Debug)]
pub(crate) struct Decided {
    pub job: Arc<Job>,
    /// The run that the write would make.
    pub run: Option<RunId>,
    pub then: Then,
    /// The job at its next slot, where that is due soon.
    pub next: Option<Arc<Job>>,
}

/// Runs that a write under way claims. It ends also when that write panics.
pub(crate) struct InFlight<'a> {
    board: &'a Board,
    runs: &'a [RunId],
    restarts: u64,
}

impl State {
    fn fired(&mut self, decided: Decided, now: Timestamp) {
        let Decided { job, then, .. } = decided;
        let slot = Entry::Slot(Arc::clone(&job));
        if let Then::Early(at) = then {
            // Unless an edit has replaced it. What is in its way may be another node's, or nobody's.
            if self.wheel.is_current(&slot) {
                let elsewhere = !self.claims.lives(job.id);
                self.postponed.add(at, job, elsewhere);
            }
            return;
        }
        self.wheel.answered(&slot);
        match then {
            Then::Claimed(work) => {
                if !self.wheel.has_ended(work.run.id, AttemptNo::FIRST) {
                    self.hold(work, now);
                }
            }
            Then::Ready(run) => {
                self.wheel.insert_run(run, run.due_at);
            }
            Then::Decided | Then::Early(_) | Then::Gone => {}
        }
        if let Some(next) = decided.next {
            self.wheel.insert_job(next);
        }
    }

    /// A run is ours: a slot that waits for it hears of its end here from now on.
    fn hold(&mut self, work: Arc<Work>, now: Timestamp) {
        self.postponed.is_held(work.run.job);
        self.claims.insert(work, now);
    }

    /// Claims made by other ways than fire: those that can start here, and those that are handed back.
    fn claimed(
        &mut self,
        works: impl Iterator<Item = Arc<Work>>,
        beyond: impl Iterator<Item = Arc<Work>>,
        now: Timestamp,
    ) -> Vec<Settlement> {
        works.for_each(|work| self.hold(work, now));
        beyond.filter_map(|work| self.claims.refuse(work)).collect()
    }
}

impl Board {
    /// A write of slots was answered. Answers whether plan waits for room that there is again.
    pub(crate) fn fired(&self, decided: Vec<Decided>, now: Timestamp) -> bool {
        let mut decided = decided.into_iter();
        loop {
            let mut state = self.state();
            for decided in decided.by_ref().take(CHUNK) {
                let run = decided.run;
                state.fired(decided, now);
                state.wheel.end_write(run.into_iter());
            }
            if decided.len() == 0 {
                return state.wheel.has_room_again();
            }
        }
    }

    /// Claims of these runs were answered: some are ours, and some of those are `beyond` this node. Answers what is to be
    /// handed back.
    pub(crate) fn claimed(
        &self,
        runs: &[(Timestamp, DueRun)],
        works: Vec<Arc<Work>>,
        beyond: Vec<Arc<Work>>,
        now: Timestamp,
    ) -> Vec<Settlement> {
        let mut guard = self.state();
        let state = &mut *guard;
        for (_, run) in runs {
            state.end_claiming(run);
            state.wheel.answered(&Entry::Run(*run));
        }
        let works = state.standing(works);
        let beyond = state.standing(beyond);
        let back = state.claimed(works.into_iter(), beyond.into_iter(), now);
        let ids = runs.iter().map(|(_, run)| run.run);
        state.wheel.end_write(ids);
        back
    }

    /// Runs that others leave are being taken: which ones is not known before the answer.
    pub(crate) fn begin_claiming_due(&self) {
        self.state().wheel.begin_claiming_due();
    }

    /// They have been, or nobody knows.
    pub(crate) fn claimed_due(
        &self,
        works: Vec<Arc<Work>>,
        beyond: Vec<Arc<Work>>,
        now: Timestamp,
    ) -> Vec<Settlement> {
        let mut state = self.state();
        let ended = state.wheel.end_claiming_due();
        let stands = |work: &Arc<Work>| {
            let last = ended.get(&work.run.id);
            last.is_none_or(|last| *last < work.run.attempt)
        };
        let works = works.into_iter().filter(stands);
        let beyond = beyond.into_iter().filter(stands);
        state.claimed(works, beyond, now)
    }

    /// A write begins that claims runs of which the store says that they are ours.
    pub(crate) fn begin_claiming<'a>(&'a self, runs: &'a [RunId]) -> InFlight<'a> {
        let mut state = self.state();
        state.wheel.begin_write(runs.iter().copied());
        let restarts = state.wheel.restarts();
        InFlight {
            board: self,
            runs,
            restarts,
        }
    }
}

impl State {
    /// Those that have not ended while the write that claims them was under way.
    fn standing(&self, mut works: Vec<Arc<Work>>) -> Vec<Arc<Work>> {
        works.retain(|work| !self.wheel.has_ended(work.run.id, work.run.attempt));
        works
    }
}

impl InFlight<'_> {
    /// Takes up what was answered; says how many that were. None when the board has lost count of the write: then nobody
    /// knows what of it has ended meanwhile.
    pub(crate) fn take_up(mut self, works: Vec<Arc<Work>>, now: Timestamp) -> Option<usize> {
        let runs = std::mem::take(&mut self.runs);
        let mut guard = self.board.state();
        let state = &mut *guard;
        if state.wheel.restarts() != self.restarts {
            return None;
        }
        let works = state.standing(works);
        let count = works.len();
        works.into_iter().for_each(|work| state.hold(work, now));
        state.wheel.end_write(runs.iter().copied());
        Some(count)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if !self.runs.is_empty() {
            let mut state = self.board.state();
            if state.wheel.restarts() == self.restarts {
                state.wheel.end_write(self.runs.iter().copied());
            }
        }
    }
}
