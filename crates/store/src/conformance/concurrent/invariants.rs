//! What holds of every history, whatever the order: read off the answers and off what is left at the end.

use std::collections::{BTreeMap, BTreeSet};

use model::{AttemptNo, Job, PresenceId, Run, RunId, RunState, Slot, Verdict};

use super::calls::{Answer, Call};
use super::history::Entry;
use crate::{Claimed, Fired, HandedEnd, Settled};

/// A job as it was created, what happened to it, and what is left.
pub(super) struct Left<'a> {
    pub created: &'a Job,
    pub entries: &'a [Entry],
    /// None if it was never created, or is deleted.
    pub job: Option<&'a Job>,
    pub live: &'a [Run],
    pub ended: &'a [Run],
    pub slots: &'a [Run],
}

impl Left<'_> {
    /// The first promise that is broken, if one is.
    pub(super) fn broken(&self) -> Option<String> {
        None.or_else(|| failed(self.entries))
            .or_else(|| self.slot_decided_twice())
            .or_else(|| self.slot_lost())
            .or_else(|| two_holders(self.entries))
            .or_else(|| settled_twice(self.entries))
            .or_else(|| self.attempts_out_of_order())
            .or_else(|| self.live_and_ended())
            .or_else(|| self.stranded())
    }

    fn slot_decided_twice(&self) -> Option<String> {
        let mut last: Option<Slot> = None;
        for run in self.slots {
            let slots = run.slots()?;
            if last.is_some_and(|last| slots.first <= last) {
                return Some(format!("slot {:?} is decided twice", slots.first));
            }
            last = Some(slots.last);
        }
        None
    }

    /// Every slot from the creation to the last decided one has a run or a skip record.
    fn slot_lost(&self) -> Option<String> {
        let job = self.job?;
        let schedule = &job.def.schedule;
        if self.was_rescheduled() || schedule.after_completion() {
            return None;
        }
        let last = job.slot_last?;
        let mut slot = schedule.next_after(job.created_at)?;
        while slot.0 <= last {
            let covers = |run: &Run| {
                let slots = run.slots();
                slots.is_some_and(|slots| slots.first <= slot && slot <= slots.last)
            };
            if !self.slots.iter().any(covers) {
                return Some(format!("slot {slot:?} has neither a run nor a skip record"));
            }
            slot = schedule.next_after(slot.0)?;
        }
        None
    }

    /// Slots of a schedule that is not the job's any more cannot be counted by the one that it has.
    fn was_rescheduled(&self) -> bool {
        let mut entries = self.entries.iter();
        entries.any(|entry| {
            let Call::Change(change) = &entry.call else {
                return false;
            };
            change.after.def.schedule != self.created.def.schedule
        })
    }

    fn attempts_out_of_order(&self) -> Option<String> {
        let mut runs = self.live.iter().chain(self.ended);
        let run = runs.find(|run| {
            let numbers = run.attempts.iter().map(|attempt| attempt.no.0);
            let rises = numbers.zip(1_u32..).all(|(no, due)| no == due);
            let ended = run.attempts.len() as u32;
            let next = match run.state {
                RunState::Ready | RunState::Running | RunState::Retrying => ended + 1,
                RunState::Succeeded | RunState::Dead => ended,
                // It may have ended between two attempts.
                RunState::Cancelled | RunState::Skipped => run.attempt.0,
            };
            !rises || run.attempt.0 != next
        })?;
        Some(format!("attempts do not rise by one: {run:?}"))
    }

    /// A slot that was skipped, taken back and decided again is the only one that is in both.
    fn live_and_ended(&self) -> Option<String> {
        let ended = self
            .ended
            .iter()
            .filter(|run| run.state != RunState::Skipped);
        let ended: BTreeSet<RunId> = ended.map(|run| run.id).collect();
        let both = self.live.iter().find(|run| ended.contains(&run.id))?;
        Some(format!("{} is both live and in history", both.id))
    }

    fn stranded(&self) -> Option<String> {
        let waits = self.live.iter().find(|run| run.waits_for_turn())?;
        let moves = self.live.iter().any(|run| !run.waits_for_turn());
        (!moves).then(|| format!("{} waits for nobody", waits.id))
    }
}

/// No store that can be reached fails.
fn failed(entries: &[Entry]) -> Option<String> {
    entries.iter().find_map(|entry| match &entry.answer {
        Some(Answer::Failed(why)) => Some(format!("a call failed: {why}")),
        Some(_) | None => None,
    })
}

/// An answer that gave an attempt to someone.
struct Grant {
    holder: PresenceId,
    start: u64,
    end: u64,
}

/// Of one attempt there is one holder at a time: between two of them someone let go.
fn two_holders(entries: &[Entry]) -> Option<String> {
    let mut grants: BTreeMap<(RunId, AttemptNo), Vec<Grant>> = BTreeMap::new();
    for entry in entries {
        for (run, attempt, holder) in granted(entry) {
            let (start, end) = (entry.start, entry.end);
            let grant = Grant { holder, start, end };
            grants.entry((run, attempt)).or_default().push(grant);
        }
    }
    for ((run, attempt), grants) in &grants {
        for (index, one) in grants.iter().enumerate() {
            for other in grants.iter().skip(index + 1) {
                let (start, end) = (one.start.min(other.start), one.end.max(other.end));
                let let_go =
                    |entry: &Entry| lets_go(entry, *run) && entry.start < end && start < entry.end;
                if one.holder != other.holder && !entries.iter().any(let_go) {
                    return Some(format!(
                        "attempt {} of {run} was given to {} and {}",
                        attempt.0, one.holder, other.holder
                    ));
                }
            }
        }
    }
    None
}

/// The attempts that an answer gives to someone.
fn granted(entry: &Entry) -> Vec<(RunId, AttemptNo, PresenceId)> {
    match (&entry.call, &entry.answer) {
        (Call::Fire(leases, _), Some(Answer::Fired(Fired::Claimed(run)))) => {
            vec![(*run, AttemptNo::FIRST, leases.presence)]
        }
        (Call::Claim(leases, _), Some(Answer::Claimed(Claimed::Ours(run, _)))) => {
            vec![(run.id, run.attempt, leases.presence)]
        }
        (Call::ClaimDue(by, ..), Some(Answer::Taken(taken))) => {
            let grant = |run: &Run| (run.id, run.attempt, *by);
            taken.iter().map(|(run, _)| grant(run)).collect()
        }
        (_, Some(_) | None) => Vec::new(),
    }
}

/// Whether a claim of the run may have ended by this call.
fn lets_go(entry: &Entry, run: RunId) -> bool {
    match (&entry.call, &entry.answer) {
        (Call::Settle(_, settlements), Some(Answer::Settled(Settled::Done { .. }))) => {
            settlements.iter().any(|it| it.run.id == run)
        }
        (Call::Withdraw(_, runs, _), Some(Answer::Done)) => {
            runs.iter().any(|(named, back)| named.run == run && *back)
        }
        (_, Some(_)) => false,
        (_, None) => true,
    }
}

/// An attempt ends once; only one that was released goes on under its number.
fn settled_twice(entries: &[Entry]) -> Option<String> {
    let mut ended = BTreeSet::new();
    for entry in entries {
        let settlements = match (&entry.call, &entry.answer) {
            (Call::Settle(_, it), Some(Answer::Settled(Settled::Done { .. }))) => &it[..],
            (_, Some(Answer::HandedEnd(HandedEnd::Done(ended)))) => {
                std::slice::from_ref(&ended.settlement)
            }
            (_, Some(_) | None) => continue,
        };
        for it in settlements
            .iter()
            .filter(|it| it.verdict != Verdict::Release)
        {
            let (run, attempt) = (it.run.id, it.run.attempt);
            if !ended.insert((run, attempt)) {
                return Some(format!("attempt {} of {run} was settled twice", attempt.0));
            }
        }
    }
    None
}
