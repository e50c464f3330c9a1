//! What dispatch does to the board: claims that are due take their turns, as lanes and limits have it.

use std::sync::Arc;
use std::time::Duration;

use model::{RunId, RunKind, Timestamp, Verdict, limits};
use tokio::sync::OwnedSemaphorePermit;

use super::Board;
use super::claims::{Claims, Stage, Work};
use crate::age::Age;

/// An attempt that starts.
#[derive(Debug)]
pub struct Start {
    pub work: Arc<Work>,
    /// What it was when it started.
    pub age: Age,
    /// When its turn came. If nothing keeps it then, it is dispatched at that moment.
    pub at: Timestamp,
}

impl Start {
    /// Whether somebody asked for it, who may be looking.
    pub fn is_requested(&self) -> bool {
        self.work.run.kind != RunKind::Slot
    }
}

impl Claims {
    /// Moves what is due from the wait to its lane.
    fn ripen(&mut self, now: Timestamp) {
        while let Some(bucket) = self.held.first_entry() {
            let due_at = *bucket.key();
            if due_at > now {
                return;
            }
            let age = Age::of(due_at, now);
            for id in bucket.remove() {
                let Some(holding) = self.by_run.get_mut(&id) else {
                    continue;
                };
                let stage = std::mem::replace(&mut holding.stage, Stage::Ending);
                holding.stage = match stage {
                    Stage::Held(work) => {
                        self.lanes.push(age, work.run.lane, id);
                        Stage::Queued(work)
                    }
                    other @ (Stage::Queued(_)
                    | Stage::Running(_)
                    | Stage::Ending
                    | Stage::TakenBack(_)) => other,
                };
            }
        }
    }

    /// The next attempt to start, if any may.
    fn pop(&mut self, now: Timestamp, uptime: Duration, running_max: usize) -> Option<Start> {
        if self.closed {
            return None;
        }
        // Three quarters of what may be under way at once, so that slow ones of the backlog do not keep what is on time
        // from starting.
        let backlog_may = self.tasks.backlog < (running_max.saturating_mul(3) / 4).max(1);
        while let Some((age, id)) = self.lanes.pop(backlog_may) {
            let Some(holding) = self.by_run.get_mut(&id) else {
                continue;
            };
            let stage = std::mem::replace(&mut holding.stage, Stage::Ending);
            match stage {
                Stage::Queued(work) if work.run.due_at > now => {
                    // It was due, and the clock went back: it waits until it is due again.
                    self.held.entry(work.run.due_at).or_default().push(id);
                    holding.stage = Stage::Held(work);
                }
                Stage::Queued(work) => {
                    holding.dispatched_at = Some(now);
                    holding.stage = Stage::Running(Arc::clone(&work));
                    let start = Start { work, age, at: now };
                    if start.is_requested() {
                        self.requested.push(id);
                    } else {
                        self.started.push_back((uptime, id));
                    }
                    *self.tasks.get_mut(age) += 1;
                    return Some(start);
                }
                other @ (Stage::Held(_)
                | Stage::Running(_)
                | Stage::Ending
                | Stage::TakenBack(_)) => holding.stage = other,
            }
        }
        None
    }
}

impl Board {
    /// As many attempts as there are to start and room to run them; and when to look again. None start that are not sure of
    /// their presence.
    pub fn start_due(
        &self,
        now: Timestamp,
        uptime: Duration,
        is_present: bool,
    ) -> (Vec<Start>, Option<Timestamp>) {
        let mut starts = Vec::new();
        let mut state = self.state();
        let claims = &mut state.claims;
        claims.ripen(now);
        let crowded = !claims.lanes.is_empty();
        let tasks_max = claims.width.now(uptime, crowded).min(self.running_max);
        while is_present && claims.tasks.sum() < tasks_max {
            let Some(start) = claims.pop(now, uptime, self.running_max) else {
                break;
            };
            starts.push(start);
        }
        let mut next = claims.held.keys().next().copied();
        if !claims.lanes.is_empty() && tasks_max < self.running_max {
            // More may start when few of these have ended by then.
            let soon = now.plus(limits::WIDEN_EVERY);
            next = Some(next.map_or(soon, |next| next.min(soon)));
        }
        let (tasks, known) = (claims.tasks.sum(), claims.len());
        drop(state);
        self.held.set(known.saturating_sub(tasks) as i64);
        self.running.set(tasks as i64);
        (starts, next)
    }

    /// What a task that just ended an attempt does next; none when it should end.
    pub fn next(
        &self,
        ended: Age,
        now: Timestamp,
        uptime: Duration,
        is_present: bool,
    ) -> Option<Start> {
        let mut state = self.state();
        let claims = &mut state.claims;
        *claims.tasks.get_mut(ended) -= 1;
        if is_present && claims.tasks.sum() < claims.width.tasks() {
            claims.pop(now, uptime, self.running_max)
        } else {
            None
        }
    }

    /// When an attempt left that had to wait for its presence or its payload, once it has.
    pub fn set_dispatched(&self, run: RunId, at: Option<Timestamp>) {
        if let Some(holding) = self.state().claims.by_run.get_mut(&run) {
            holding.dispatched_at = at;
        }
    }

    /// The attempt has ended, and this follows if it was not to be cancelled; its claim stays until that is written.
    /// Answers what follows; nothing at all when a stop has cut the attempt off already.
    pub fn ended(
        &self,
        run: RunId,
        verdict: Verdict,
        at: Timestamp,
        room: Option<OwnedSemaphorePermit>,
    ) -> Option<Verdict> {
        let mut state = self.state();
        let claims = &mut state.claims;
        let holding = claims.by_run.get_mut(&run)?;
        holding.room = room;
        let verdict = matches!(holding.stage, Stage::Running(_)).then(|| {
            holding.stage = Stage::Ending;
            match holding.reason {
                // One that succeeded before it could be stopped did.
                Some(reason) if verdict != Verdict::Succeed => Verdict::Cancel(reason),
                Some(_) | None => verdict,
            }
        });
        if verdict.and_then(Verdict::end).is_some() {
            holding.ended_at = Some(at);
        }
        claims.width.ended();
        verdict
    }
}
