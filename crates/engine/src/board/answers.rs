//! What became of writes: runs that are ours become claims, jobs wait for their next slots. One transition each, so that
//! settle cannot end a run between the answer that it is ours and its claim.

use std::sync::Arc;

use model::{Job, RunId, Timestamp};
use store::{DueRun, Settlement};

use super::claims::Work;
use super::wheel::{Entry, LastEnd};
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
            Then::Claimed(work) => match self.wheel.end_of(work.run.id, work.run.attempt) {
                Some(end) => self.is_in_doubt |= end.released,
                None => self.hold(work, now),
            },
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
        works: Vec<Arc<Work>>,
        beyond: Vec<Arc<Work>>,
        now: Timestamp,
    ) -> Vec<Settlement> {
        works.into_iter().for_each(|work| self.hold(work, now));
        let beyond = beyond.into_iter();
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
            self.compare_if_in_doubt(&mut state);
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
        let back = state.claimed(works, beyond, now);
        let ids = runs.iter().map(|(_, run)| run.run);
        state.wheel.end_write(ids);
        self.compare_if_in_doubt(state);
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
        let mut guard = self.state();
        let state = &mut *guard;
        let ended = state.wheel.end_claiming_due();
        let end_of = |work: &Work| {
            let end = ended.get(&work.run.id).copied();
            end.filter(|end| end.attempt >= work.run.attempt)
        };
        let works = without_ended(works, &mut state.is_in_doubt, end_of);
        let beyond = without_ended(beyond, &mut state.is_in_doubt, end_of);
        self.compare_if_in_doubt(state);
        state.claimed(works, beyond, now)
    }

    /// A claim that was left out may have been made after the one that ended: then the store has it under our name.
    fn compare_if_in_doubt(&self, state: &mut State) {
        if std::mem::take(&mut state.is_in_doubt) {
            self.compare.make();
        }
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
    fn standing(&mut self, works: Vec<Arc<Work>>) -> Vec<Arc<Work>> {
        let (wheel, is_in_doubt) = (&self.wheel, &mut self.is_in_doubt);
        let end_of = |work: &Work| wheel.end_of(work.run.id, work.run.attempt);
        without_ended(works, is_in_doubt, end_of)
    }
}

/// What was handed back may have been claimed again since, under the same number.
fn without_ended(
    mut works: Vec<Arc<Work>>,
    is_in_doubt: &mut bool,
    end_of: impl Fn(&Work) -> Option<LastEnd>,
) -> Vec<Arc<Work>> {
    works.retain(|work| {
        let end = end_of(work);
        *is_in_doubt |= end.is_some_and(|end| end.released);
        end.is_none()
    });
    works
}

impl InFlight<'_> {
    /// Takes up what was answered; says how many that were, and what is to be handed back. None when the board has lost count of the write: then nobody
    /// knows what of it has ended meanwhile.
    pub(crate) fn take_up(
        mut self,
        works: Vec<Arc<Work>>,
        beyond: Vec<Arc<Work>>,
        now: Timestamp,
    ) -> Option<(usize, Vec<Settlement>)> {
        let runs = std::mem::take(&mut self.runs);
        let mut guard = self.board.state();
        let state = &mut *guard;
        if state.wheel.restarts() != self.restarts {
            return None;
        }
        let works = state.standing(works);
        let beyond = state.standing(beyond);
        let count = works.len();
        let back = state.claimed(works, beyond, now);
        state.wheel.end_write(runs.iter().copied());
        self.board.compare_if_in_doubt(state);
        Some((count, back))
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
