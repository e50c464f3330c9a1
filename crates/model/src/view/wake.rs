//! Wake: a run that waits for something outside of its job may start after all.

use super::View;
use crate::id::{RunId, TenantId};
use crate::run::{Run, RunState};
use crate::time::Timestamp;
use crate::wait::Wait;

/// What became of a run that somebody wants to wake.
#[derive(Debug, Clone, PartialEq)]
pub enum Woken {
    /// It may start. This is how it stands.
    Done(Box<Run>),
    /// It waits for no more than its time, a holder, or the job's run before it.
    Not(RunState, Option<Wait>),
    Missing,
}

/// Wakes a run at `now`, if it waits for something outside of its job. One that waits for its turn goes on waiting: overlap
/// is not for anybody to lift.
pub fn wake(run: &mut Run, now: Timestamp) -> bool {
    let wakes = run.waits_outside();
    if wakes {
        (run.wait, run.woken_at) = (None, Some(now));
    }
    wakes
}

impl View {
    /// Wakes a run of a tenant's by hand.
    pub fn wake_run(&mut self, tenant: TenantId, id: RunId, now: Timestamp) -> Woken {
        let run = self.live.get(&id).filter(|run| run.tenant == tenant);
        let Some(mut run) = run.cloned() else {
            let ended = self.history.named;
            return ended.map_or(Woken::Missing, |(state, _)| Woken::Not(state, None));
        };
        if !wake(&mut run, now) {
            return Woken::Not(run.state, run.wait);
        }
        self.change_run(run.clone());
        Woken::Done(Box::new(run))
    }

    /// What its runs wait for may not concern the job any more.
    pub(super) fn wake_all(&mut self, now: Timestamp) {
        let waiting = self.live.values().filter(|run| run.waits_outside());
        let waiting: Vec<Run> = waiting.cloned().collect();
        for mut run in waiting {
            wake(&mut run, now);
            self.change_run(run);
        }
    }
}
