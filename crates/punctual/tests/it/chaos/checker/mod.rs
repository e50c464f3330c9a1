//! What must hold after everything: the jobs' schedules, the history, what the API says of slots, and what the
//! target saw are held against each other. Nothing is taken for granted: which slots there are is computed here.
//!
//! `slots`: every slot is decided exactly once. `skips`: what did not run has a reason that its job's policy
//! gives. `arrivals`: what ran arrived, never early, never twice as the same attempt. `times`: how long faults
//! were felt.

use std::collections::BTreeMap;
use std::fmt;

use super::load::LoadJob;
use super::recording::{Arrival, Entry, Recording};

mod arrivals;
mod skips;
mod slots;
mod times;

#[cfg(test)]
mod tests;

/// Violations of a kind that are shown of all that were found.
const SHOWN: usize = 8;

/// What can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A slot without a run and without a skip.
    Lost,
    /// A slot with more than one decision.
    DecidedTwice,
    /// A decision about a slot that its job does not have, or about no job that was made.
    Stranger,
    /// What the API says of a slot is not what history says.
    AnsweredOtherwise,
    /// A skip or an end that its job's policy does not explain.
    Unexplained,
    /// A run that never ended.
    Unended,
    /// A run that ended well and never arrived.
    Silent,
    /// The same attempt arrived twice, or a run that may run once only.
    Redelivered,
    /// Arrived before it was due.
    Early,
    /// After a kill, a slot came later than the bound.
    LateTakeover,
    /// After a stop in good order, a slot came later than the bound.
    LateHandOver,
}

#[derive(Debug, Clone)]
pub struct Violation {
    pub kind: Kind,
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.what)
    }
}

/// What was found, and figures in lines.
#[derive(Debug, Default)]
pub struct Findings {
    pub violations: Vec<Violation>,
    pub figures: Vec<String>,
}

impl Findings {
    fn add(&mut self, kind: Kind, what: String) {
        self.violations.push(Violation { kind, what });
    }

    pub fn kinds(&self) -> BTreeMap<Kind, usize> {
        let mut kinds = BTreeMap::new();
        for violation in &self.violations {
            *kinds.entry(violation.kind).or_default() += 1;
        }
        kinds
    }

    /// The first of each kind.
    pub fn shown(&self) -> Vec<String> {
        let mut left: BTreeMap<Kind, usize> = BTreeMap::new();
        let mut shown = Vec::new();
        for violation in &self.violations {
            let count = left.entry(violation.kind).or_default();
            *count += 1;
            if *count <= SHOWN {
                shown.push(violation.to_string());
            }
        }
        shown
    }
}

/// A recording, found by what one looks for.
struct Books<'a> {
    recording: &'a Recording,
    jobs: BTreeMap<&'a str, &'a LoadJob>,
    /// By job, in the order of their slots.
    entries: BTreeMap<&'a str, Vec<&'a Entry>>,
    runs: BTreeMap<&'a str, &'a Entry>,
    /// By run, in the order of arrival.
    arrivals: BTreeMap<&'a str, Vec<&'a Arrival>>,
}

impl<'a> Books<'a> {
    fn of(recording: &'a Recording) -> Self {
        let mut entries: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
        for entry in &recording.entries {
            entries.entry(&entry.job).or_default().push(entry);
        }
        for of_job in entries.values_mut() {
            of_job.sort_by_key(|entry| entry.slot);
        }
        let mut arrivals: BTreeMap<&str, Vec<&Arrival>> = BTreeMap::new();
        for arrival in &recording.arrivals {
            arrivals.entry(&arrival.run).or_default().push(arrival);
        }
        let jobs = recording.jobs.iter();
        let runs = recording.entries.iter();
        Self {
            recording,
            jobs: jobs.map(|job| (job.id.as_str(), job)).collect(),
            entries,
            runs: runs.map(|entry| (entry.id.as_str(), entry)).collect(),
            arrivals,
        }
    }

    fn arrivals(&self, run: &str) -> &[&'a Arrival] {
        self.arrivals.get(run).map_or(&[], Vec::as_slice)
    }

    /// When the slot of an entry is due: later attempts have due times of their own.
    fn due(&self, entry: &Entry) -> i64 {
        let job = self.jobs.get(entry.job.as_str());
        entry.slot + job.map_or(0, |job| job.offset)
    }

    /// Whether times are checked: no fault, nor most of what it leaves behind, touches this moment.
    fn is_calm(&self, millis: i64) -> bool {
        !self.is_struck(millis, 1)
    }

    /// Whether a fault, or anything that it leaves behind, may touch a moment.
    fn is_disturbed(&self, millis: i64) -> bool {
        self.is_struck(millis, 2)
    }

    fn is_struck(&self, millis: i64, aftermaths: i64) -> bool {
        let mut strikes = self.recording.strikes.iter();
        strikes.any(|strike| {
            let end = strike.ended + aftermaths * strike.aftermath();
            (strike.begun - 500..end).contains(&millis)
        })
    }
}

pub fn check(recording: &Recording) -> Findings {
    let books = Books::of(recording);
    let mut findings = Findings::default();
    slots::check(&books, &mut findings);
    skips::check(&books, &mut findings);
    arrivals::check(&books, &mut findings);
    times::check(&books, &mut findings);
    findings
}
