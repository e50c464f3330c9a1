//! What was answered holds: jobs and runs that were accepted are there, what was ended stays so, and a job that wants
//! no second delivery gets none.

use std::collections::{BTreeMap, BTreeSet};

use model::{Delivery as Promise, Job, JobId, JobState, Outcome, Run, RunId, limits};

use super::End;
use crate::record::Era;
use crate::story::Delivery;

impl End<'_> {
    /// Nothing takes a job away but those who delete it, and time, once it has finished.
    pub(super) fn accepted_jobs_are_kept(&mut self) {
        let world = self.world;
        let mut gone = Vec::new();
        for (job, _) in &world.accepted {
            let stands = self.jobs.get(&job.id);
            let is_gone = stands.is_none_or(|job| job.state == JobState::Deleted);
            let deleted = world.requests.deleted.contains(&job.id);
            let age = world.latest.since(job.created_at);
            let ends = !job.def.schedule.is_recurring() || stands.is_none();
            let forgotten = ends && age > limits::FINISHED_KEEP;
            if is_gone && !deleted && !forgotten {
                gone.push(format!("{} is gone", job.id));
            }
        }
        for seen in gone {
            self.broken("accepted_jobs_are_kept", seen);
        }
    }

    /// A change that was accepted was made, once; versions follow each other.
    pub(super) fn accepted_changes_are_made(&mut self) {
        let check = "accepted_changes_are_made";
        let book = self.world.ledger.book();
        let mut seen = Vec::new();
        for (job, eras) in &book.record.eras {
            for pair in eras.windows(2) {
                let [before, after] = pair else { continue };
                if after.job.version != before.job.version.next() {
                    let (from, to) = (before.job.version, after.job.version);
                    seen.push(format!("{job} went from {from:?} to {to:?}"));
                }
            }
        }
        for (job, version, state) in &self.world.requests.changed {
            let eras = book.record.eras.get(job);
            let is_it = |era: &Era| (era.job.version, era.job.state) == (*version, *state);
            if !eras.is_some_and(|eras| eras.iter().any(is_it)) {
                seen.push(format!("{job} was never {state:?} at {version:?}"));
            }
        }
        drop(book);
        for seen in seen {
            self.broken(check, seen);
        }
    }

    /// A run by hand that was accepted is there; one that had ended as cancelled is not delivered any more.
    pub(super) fn accepted_runs_are_kept(&mut self) {
        let known: BTreeSet<RunId> = self.runs.iter().map(|run| run.id).collect();
        let requests = &self.world.requests;
        let lost = requests.started.keys().filter(|run| !known.contains(run));
        let mut seen: Vec<String> = lost.map(|run| format!("{run} is gone")).collect();
        for delivery in &self.deliveries {
            let cancelled = requests.cancelled.get(&delivery.run).copied();
            if cancelled.is_some_and(|cancelled| cancelled < delivery.from) {
                let (run, from) = (delivery.run, delivery.from);
                seen.push(format!("{run} was cancelled, and delivered at {from:?}"));
            }
        }
        for seen in seen {
            self.broken("accepted_runs_are_kept", seen);
        }
    }

    /// Every delivery carries what was asked for, to the last byte.
    pub(super) fn payloads_arrive_whole(&mut self) {
        let unedited = self.world.accepted.iter().filter(|(_, edited)| !edited);
        let jobs: BTreeMap<JobId, &Job> = unedited.map(|(job, _)| (job.id, &**job)).collect();
        let mut other = Vec::new();
        for delivery in &self.deliveries {
            let own = self.world.requests.started.get(&delivery.run).cloned();
            let Some(job) = jobs.get(&delivery.job) else {
                continue;
            };
            let wanted = own.flatten().or(job.def.payload.clone());
            if delivery.payload != wanted {
                other.push(format!("{} brought another payload", delivery.run));
            }
        }
        for seen in other {
            self.broken("payloads_arrive_whole", seen);
        }
    }

    /// What was delivered once for a job that wanted it so is not delivered again, unless the target has said that it
    /// failed; whatever the job has become since.
    pub(super) fn at_most_once(&mut self) {
        let runs: BTreeMap<RunId, &Run> = self.runs.iter().map(|run| (run.id, run)).collect();
        let mut last: BTreeMap<RunId, &Delivery> = BTreeMap::new();
        let mut again = Vec::new();
        for delivery in &self.deliveries {
            let before = last.insert(delivery.run, delivery);
            let Some(before) = before.filter(|it| it.promised == Promise::AtMostOnce) else {
                continue;
            };
            let before = before.attempt;
            let attempts = runs.get(&delivery.run).map(|run| run.attempts.as_slice());
            let attempts = attempts.unwrap_or_default();
            let outcome = attempts.iter().find(|it| it.no == before);
            let outcome = outcome.map(|attempt| attempt.outcome);
            let answered = match outcome {
                Some(Outcome::Failed | Outcome::TimedOut) => true,
                Some(Outcome::Succeeded | Outcome::Cancelled | Outcome::Lost) | None => false,
            };
            if !answered {
                let (run, attempt) = (delivery.run, delivery.attempt);
                again.push(format!("{run}: {attempt} after {before}: {outcome:?}"));
            }
        }
        for seen in again {
            self.broken("at_most_once", seen);
        }
    }
}
