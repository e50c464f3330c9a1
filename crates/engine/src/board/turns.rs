//! What dispatch does to the board: claims that are due take their turns, as lanes and limits have it.

use std::sync::Arc;
use std::time::Duration;

use model::breaker::{Signal, Turned};
use model::{AttemptNo, RunId, RunKind, Timestamp, Verdict, limits};
use store::Settlement;
use tokio::sync::OwnedSemaphorePermit;

use super::Board;
use super::claims::{Claims, Stage, Work};
use crate::age::Age;
use crate::origins::{Leave, Origin, Origins};

/// An attempt that starts.
#[derive(Debug)]
pub(crate) struct Start {
    pub work: Arc<Work>,
    /// What it was when it started.
    pub age: Age,
    /// When its turn came. If nothing keeps it then, it is dispatched at that moment.
    pub at: Timestamp,
    /// From when on this node could have dispatched it: how late it is counts from there.
    pub from: Timestamp,
}

impl Start {
    /// Whether somebody asked for it, who may be looking.
    pub(crate) fn is_requested(&self) -> bool {
        self.work.run.kind != RunKind::Slot
    }
}

/// The end of an attempt's call.
pub(crate) struct Call<'a> {
    /// What it says of whom it went to.
    pub signal: Option<Signal>,
    pub now: Timestamp,
    pub uptime: Duration,
    pub chance: &'a dyn Fn() -> f64,
}

/// What decides about turns besides the claims themselves.
struct By<'a> {
    origins: &'a Origins,
    running_max: usize,
}

/// How many of the backlog may be under way at once: three quarters, so that slow ones do not keep what is on time from
/// starting.
fn backlog_max(running_max: usize) -> usize {
    (running_max.saturating_mul(3) / 4).max(1)
}

impl Claims {
    /// How many more of the backlog could start when those have that wait for their turn.
    pub(super) fn free_for_backlog(&self, running_max: usize) -> usize {
        let backlog = self.tasks.backlog + self.lanes.of(Age::Backlog).len();
        backlog_max(running_max).saturating_sub(backlog)
    }

    /// What origins have kept goes back to its lane, before all others: it has waited.
    fn queue_again(&mut self, freed: Vec<(Age, RunId)>, now: Option<Timestamp>) {
        for (age, id) in freed.into_iter().rev() {
            let stage = self.by_run.get(&id).map(|holding| &holding.stage);
            if let Some(Stage::Queued(work)) = stage {
                let age = now.map_or(age, |now| Age::of(work.run.due_at, now));
                self.lanes.push_front(age, work.run.lane, id);
            }
        }
    }

    /// A run that an origin kept does not start now: the next one of that origin may.
    pub(super) fn give_up(
        &mut self,
        kept_by: Option<Arc<Origin>>,
        run: RunId,
        now: Option<Timestamp>,
    ) {
        if let Some(origin) = kept_by {
            self.queue_again(origin.give_up(run), now);
        }
    }

    /// It was due, and the clock went back: it waits until it is due again.
    fn hold_again(&mut self, work: Arc<Work>, now: Timestamp) {
        let (id, due_at) = (work.run.id, work.run.due_at);
        self.held.entry(due_at).or_default().push(id);
        if let Some(holding) = self.by_run.get_mut(&id) {
            holding.stage = Stage::Held(work);
            let kept_by = holding.kept_by.take();
            self.give_up(kept_by, id, Some(now));
        }
    }

    /// What a call says of its origin, and what becomes of others that wait for it.
    fn called(
        &mut self,
        (run, attempt): (RunId, AttemptNo),
        call: Call<'_>,
        origins: &Origins,
    ) -> Option<Turned> {
        let (origin, is_probe) = self.take_call(run, attempt)?;
        let after = origins.called(&origin, call.signal, is_probe, call.uptime, call.chance);
        self.queue_again(after.freed, Some(call.now));
        after.turned
    }

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

    /// Marks are written of what has started: after a while, or at once if somebody asked for it.
    fn note_start(&mut self, start: &Start, uptime: Duration) {
        let id = start.work.run.id;
        if start.is_requested() {
            self.requested.push(id);
        } else {
            self.started.push_back((uptime, id));
        }
        *self.tasks.get_mut(start.age) += 1;
    }

    /// The next attempt to start, if any may.
    fn pop(&mut self, by: &By<'_>, now: Timestamp, uptime: Duration) -> Option<Start> {
        if self.closed {
            return None;
        }
        let backlog_may = self.tasks.backlog < backlog_max(by.running_max);
        while let Some((age, id)) = self.lanes.pop(backlog_may) {
            let Some(holding) = self.by_run.get_mut(&id) else {
                continue;
            };
            let stage = std::mem::replace(&mut holding.stage, Stage::Ending);
            match stage {
                Stage::Queued(work) if work.run.due_at > now => {
                    self.hold_again(work, now);
                }
                Stage::Queued(work) => {
                    holding.kept_by = None;
                    let origin = by.origins.of(&work);
                    let leave = origin
                        .as_deref()
                        .map(|origin| by.origins.leave(origin, (&work, age), now, uptime));
                    match leave {
                        None => {}
                        Some(Leave::Go { is_probe }) => holding.is_probe = is_probe,
                        Some(Leave::Later) => {
                            holding.is_kept = true;
                            holding.kept_by = origin;
                            holding.stage = Stage::Queued(work);
                            continue;
                        }
                        Some(Leave::Wait(wait)) => {
                            // Its stage says that its end is on the way.
                            holding.origin = origin;
                            let waits = work.undispatched(Verdict::Wait(wait), now);
                            self.refused.push(waits);
                            continue;
                        }
                    }
                    holding.origin = origin;
                    let from = if holding.is_kept {
                        now
                    } else {
                        work.run.could_start_at()
                    };
                    holding.dispatched_at = Some(now);
                    holding.stage = Stage::Running(Arc::clone(&work));
                    let start = Start {
                        work,
                        age,
                        at: now,
                        from,
                    };
                    self.note_start(&start, uptime);
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
    pub(crate) fn start_due(
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
            let Some(start) = claims.pop(&self.by(), now, uptime) else {
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

    /// What a task that just ended an attempt does next; none when it should end. Answers also whether there are attempts
    /// that may not start.
    pub(crate) fn next(
        &self,
        ended: Age,
        now: Timestamp,
        uptime: Duration,
        is_present: bool,
    ) -> (Option<Start>, bool) {
        let mut state = self.state();
        let claims = &mut state.claims;
        *claims.tasks.get_mut(ended) -= 1;
        let next = if is_present && claims.tasks.sum() < claims.width.tasks() {
            claims.pop(&self.by(), now, uptime)
        } else {
            None
        };
        (next, !claims.refused.is_empty())
    }

    /// When an attempt left that had to wait for its presence or its payload, once it has.
    pub(crate) fn set_dispatched(&self, (run, attempt): (RunId, AttemptNo), at: Option<Timestamp>) {
        if let Some(holding) = self.state().claims.get_mut(run, attempt) {
            holding.dispatched_at = at;
        }
    }

    /// The attempt's call is over, if it was made. Answers whether the origin's breaker has turned.
    pub(crate) fn called(&self, key: (RunId, AttemptNo), call: Call<'_>) -> Option<Turned> {
        self.state().claims.called(key, call, &self.origins)
    }

    /// Attempts that may not start, to be settled as such.
    pub(crate) fn take_refused(&self) -> Vec<Settlement> {
        std::mem::take(&mut self.state().claims.refused)
    }

    fn by(&self) -> By<'_> {
        By {
            origins: &self.origins,
            running_max: self.running_max,
        }
    }

    /// The target has taken the attempt over; its claim stays until that is written. False when a stop has cut it off.
    pub(crate) fn handing_over(&self, run: RunId, attempt: AttemptNo) -> bool {
        let mut state = self.state();
        let claims = &mut state.claims;
        let Some(holding) = claims.get_mut(run, attempt) else {
            return false;
        };
        let is_running = matches!(holding.stage, Stage::Running(_));
        if is_running {
            holding.stage = Stage::Ending;
        }
        claims.width.ended();
        is_running
    }

    /// The attempt has ended, and this follows if it was not to be cancelled; its claim stays until that is written.
    /// Answers what follows, nothing at all when a stop has cut the attempt off already; and what `called` answers, of a call
    /// that was not over before.
    pub(crate) fn ended(
        &self,
        key: (RunId, AttemptNo),
        call: Option<Call<'_>>,
        (verdict, at): (impl FnOnce() -> Verdict, Timestamp),
        room: Option<OwnedSemaphorePermit>,
    ) -> (Option<Verdict>, Option<Turned>) {
        let mut state = self.state();
        let claims = &mut state.claims;
        let turned = call.and_then(|call| claims.called(key, call, &self.origins));
        (claims.ended(key, verdict(), at, room), turned)
    }
}

impl Claims {
    fn ended(
        &mut self,
        (run, attempt): (RunId, AttemptNo),
        verdict: Verdict,
        at: Timestamp,
        room: Option<OwnedSemaphorePermit>,
    ) -> Option<Verdict> {
        let holding = self.get_mut(run, attempt)?;
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
        self.width.ended();
        verdict
    }
}
