//! What the store let through, watched from beside it: who was given which claim, whose presence ended when, and
//! which slots were decided late.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{AttemptNo, Job, JobId, PresenceId, RunId, Slot, Version};

use crate::checks::Broken;
use crate::handed::HandedBook;
use crate::record::Record;

/// A slot that was decided late enough to need an explanation; all by uptime.
#[derive(Debug, Clone, Copy)]
pub struct Late {
    pub job: JobId,
    pub due: Duration,
    pub decided: Duration,
    /// When its job was last written by anyone but fire: before that the slot may not have been there.
    pub changed: Duration,
}

/// A run waited for its origin; all by uptime.
#[derive(Debug, Clone, Copy)]
pub struct Waits {
    pub run: RunId,
    pub from: Duration,
    /// None: it still does.
    pub to: Option<Duration>,
}

/// Slots that are decided sooner than this after they are due need no reason.
pub const LATE_MIN: Duration = Duration::from_millis(250);

#[derive(Debug, Default)]
pub struct Book {
    /// The job that is traced.
    traced: Option<String>,
    pub broken: Vec<Broken>,
    pub late: Vec<Late>,
    pub record: Record,
    /// What is with the outside.
    pub handed: HandedBook,
    ended: BTreeMap<PresenceId, Duration>,
    /// The last start of each node, and the last presence that it joined as.
    joined: BTreeMap<usize, (u32, PresenceId)>,
    /// Nodes whose presence was ended by another, and when.
    pub fenced: Vec<(usize, PresenceId, Duration)>,
    /// When runs left the live set, by uptime: wall clocks may have been stepped since.
    pub gone: BTreeMap<RunId, Duration>,
    /// When runs first waited for their origin: from then on they keep their turn.
    pub waited: BTreeMap<RunId, Duration>,
    /// The same of each time that a run of a job waits, from when it is made to until somebody claims it or it ends.
    pub waits: BTreeMap<JobId, Vec<Waits>>,
    /// The claims that stand.
    held: BTreeMap<RunId, (AttemptNo, PresenceId)>,
    /// Under which presence each start of a node was given an attempt.
    granted: BTreeMap<(u32, RunId, AttemptNo), PresenceId>,
    changed: BTreeMap<JobId, Duration>,
    /// The last slot that was decided of each job, of which version.
    decided: BTreeMap<JobId, (Version, Option<Slot>)>,
}

#[derive(Debug, Clone, Default)]
pub struct Ledger {
    book: Arc<Mutex<Book>>,
}

impl Ledger {
    /// `TRACE=job_…` prints what happens to that job and to the nodes meanwhile, `TRACE=all` to every job.
    pub fn traced() -> Self {
        let ledger = Self::default();
        ledger.book().traced = std::env::var("TRACE").ok();
        ledger
    }

    pub fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    /// Prints what happens to everyone.
    pub fn note(&self, at: Duration, what: impl FnOnce() -> String) {
        if self.traced.is_some() {
            let _ = writeln!(std::io::stderr(), "{at:?} {}", what());
        }
    }

    /// Prints what happens to a job, if it is the one.
    pub fn note_of(&self, job: JobId, at: Duration, what: impl FnOnce() -> String) {
        let is_it = |traced: &String| *traced == "all" || *traced == job.to_string();
        if self.traced.as_ref().is_some_and(is_it) {
            self.note(at, what);
        }
    }

    pub fn broken(&mut self, check: &'static str, seen: String) {
        self.broken.push(Broken::new(check, seen));
    }

    /// A call on its way arrives also when a later start has joined meanwhile.
    pub fn joined(&mut self, node: usize, start: u32, presence: PresenceId) {
        let last = self.joined.get(&node).map_or(0, |(start, _)| *start);
        if start >= last {
            self.joined.insert(node, (start, presence));
        }
    }

    /// Another node has ended a presence. Only one that its node goes by matters to that node.
    pub fn fenced(&mut self, presence: PresenceId, at: Duration) {
        self.ended(presence, at);
        let mut joined = self.joined.iter();
        if let Some((node, _)) = joined.find(|(_, (_, last))| *last == presence) {
            self.fenced.push((*node, presence, at));
        }
    }

    /// The store has ended a presence; the first end counts.
    pub fn ended(&mut self, presence: PresenceId, at: Duration) {
        self.ended.entry(presence).or_insert(at);
    }

    /// Every presence that was ever given a claim has ended: the store was opened again. The outside has what it had.
    pub fn all_ended(&mut self, at: Duration) {
        let holders = self.held.values().map(|(_, presence)| presence);
        for presence in holders.filter(|holder| **holder != PresenceId::OUTSIDE) {
            self.ended.entry(*presence).or_insert(at);
        }
    }

    pub fn changed(&mut self, job: JobId, at: Duration) {
        self.changed.insert(job, at);
    }

    /// The job's next slot, as it was planned, was decided; decided twice, the first time counts.
    pub fn decided(&mut self, job: &Job, due: Duration, at: Duration) {
        let stood = (job.version, job.next_slot);
        let again = self.decided.insert(job.id, stood) == Some(stood);
        if !again && at > due + LATE_MIN {
            self.late.push(Late {
                job: job.id,
                due,
                decided: at,
                changed: self.changed.get(&job.id).copied().unwrap_or_default(),
            });
        }
    }

    /// A run is made to wait for its origin.
    pub fn waits(&mut self, job: JobId, run: RunId, from: Duration) {
        self.waited.entry(run).or_insert(from);
        let to = None;
        let waits = self.waits.entry(job).or_default();
        waits.push(Waits { run, from, to });
    }

    /// Runs of a job may not wait any more: somebody has claimed or ended them.
    pub fn read_who_waits(&mut self, job: JobId, waits: impl Fn(RunId) -> bool, at: Duration) {
        let all = self.waits.get_mut(&job).into_iter().flatten();
        for it in all.filter(|it| it.to.is_none() && !waits(it.run)) {
            it.to = Some(at);
        }
    }

    /// A presence, of this start of a node, got the answer that the attempt is its own.
    pub fn granted(&mut self, start: u32, run: RunId, attempt: AttemptNo, to: PresenceId) {
        let before = self.held.insert(run, (attempt, to));
        if let Some((other, holder)) = before
            && holder != to
            && !self.ended.contains_key(&holder)
        {
            let seen = format!("{run}: {attempt} to {to}, and {other} is with {holder}");
            self.broken("one_claim_per_run", seen);
        }
        self.granted.insert((start, run, attempt), to);
    }

    /// The presence under which a start of a node was given an attempt.
    pub fn granted_to(&self, start: u32, run: RunId, attempt: AttemptNo) -> Option<PresenceId> {
        self.granted.get(&(start, run, attempt)).copied()
    }

    /// The outside has the attempt from now on.
    pub fn handed_over(&mut self, run: RunId, attempt: AttemptNo) {
        self.held.insert(run, (attempt, PresenceId::OUTSIDE));
    }

    /// The claim was given back, or its attempt has ended.
    pub fn released(&mut self, run: RunId, attempt: AttemptNo) {
        if self.held.get(&run).is_some_and(|held| held.0 == attempt) {
            self.held.remove(&run);
        }
    }

    /// An attempt reaches its target: only a presence that nobody has fenced may let it.
    pub fn dispatched(&mut self, start: u32, run: RunId, attempt: AttemptNo, at: Duration) {
        let Some(presence) = self.granted.get(&(start, run, attempt)).copied() else {
            let seen = format!("attempt {attempt} of {run} was dispatched without a claim");
            self.broken("one_claim_per_run", seen);
            return;
        };
        let ended = self.ended.get(&presence).copied();
        if let Some(ended) = ended.filter(|ended| *ended < at) {
            let seen = format!(
                "attempt {attempt} of {run} at {at:?} by {presence}, which ended at {ended:?}"
            );
            self.broken("fenced_dispatches_nothing", seen);
        }
    }
}
