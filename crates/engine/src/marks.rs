//! Marks: what others ask of claims that this node holds, answered after every beat; and what readers are told of
//! runs that have been under way for a while.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use model::{Mark, RunId, Timestamp, limits};
use store::StoreError;

use crate::desk::Ending;
use crate::dispatch::{Dispatch, Stage};
use crate::duty::{Duty, Wake};
use crate::handle::{Nudge, Shared};
use crate::lock;
use crate::node::Context;

pub struct Marks {
    context: Arc<Context>,
}

impl Marks {
    pub fn new(context: Arc<Context>) -> Self {
        Self { context }
    }

    /// Answers marks. What is to be settled is handed over by a task of its own: settle may be behind, and others
    /// wait for their answers.
    async fn answer(&self, marks: &[(RunId, Mark)], now: Timestamp) -> Result<(), StoreError> {
        let context = &self.context;
        let answers = context.dispatch.answer(marks, now);
        if !answers.settlements.is_empty() {
            let (endings, kill) = (context.endings.clone(), context.kill.clone());
            tokio::spawn(kill.run_until_cancelled_owned(async move {
                for settlement in answers.settlements {
                    let ending = Ending::settled(settlement);
                    if endings.send(ending).await.is_err() {
                        return;
                    }
                }
            }));
        }
        if !answers.withdrawals.is_empty() {
            let (me, store) = (context.presence.id, &context.store);
            store.withdraw(me, &answers.withdrawals, now).await?;
        }
        self.forget_taken_back().await
    }

    /// What was taken back is forgotten when the store has let go of it: a cancel may have come first, or an answer
    /// been lost.
    async fn forget_taken_back(&self) -> Result<(), StoreError> {
        let context = &self.context;
        let mut gone = Vec::new();
        for (offer, run, attempt) in context.dispatch.taken_back() {
            let stands = context.store.get_run(offer.0, run).await?;
            match stands.filter(|run| run.claim == Some(context.presence.id)) {
                None => gone.push((offer, run, attempt)),
                // Nobody asks for it: it was decided anew, and is ours again.
                Some(stands) if stands.mark.is_none() => context.dispatch.keep(run),
                Some(_) => {}
            }
        }
        let claims = gone.iter().map(|(_, run, attempt)| (*run, *attempt));
        context.dispatch.forget(claims);
        for (offer, _, _) in gone {
            // What was taken back is decided again.
            context.shared.offer(offer);
        }
        Ok(())
    }
}

impl Dispatch {
    /// Runs under way that were asked for, or have been for a while, and that are not shown as `Running` yet.
    pub fn to_mark(&self, uptime: Duration) -> Vec<(RunId, Timestamp)> {
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        let mut runs = std::mem::take(&mut state.asked);
        while let Some((since, run)) = state.started.front().copied() {
            if uptime.saturating_sub(since) < limits::RUNNING_MARK_AFTER {
                break;
            }
            state.started.pop_front();
            runs.push(run);
        }
        runs.retain(|run| {
            let holding = state.claims.get(run);
            holding.is_some_and(|holding| matches!(holding.stage, Stage::Running(_)))
        });
        let mut marks = Vec::with_capacity(runs.len());
        for run in runs {
            match state.claims.get(&run).and_then(|it| it.dispatched_at) {
                Some(dispatched_at) => marks.push((run, dispatched_at)),
                // It waits for its presence or its payload.
                None => state.asked.push(run),
            }
        }
        marks
    }

    /// Nobody was told of these after all.
    pub fn mark_again(&self, marks: &[(RunId, Timestamp)]) {
        let mut state = lock(&self.state);
        for (run, _) in marks {
            state.started.push_front((Duration::ZERO, *run));
        }
    }
}

#[async_trait]
impl Duty for Marks {
    fn name(&self) -> &'static str {
        "marks"
    }

    fn nudge<'a>(&self, shared: &'a Shared) -> &'a Nudge {
        &shared.nudges.marks
    }

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError> {
        let context = &self.context;
        let marks = std::mem::take(&mut lock(&context.heard).marks);
        self.answer(&marks, now).await?;
        let marks = context.dispatch.to_mark(context.shared.clock.uptime());
        if !marks.is_empty() {
            let (me, store) = (context.presence.id, &context.store);
            if let Err(error) = store.mark_running(me, &marks).await {
                context.dispatch.mark_again(&marks);
                return Err(error);
            }
        }
        Ok(Wake::Nudged)
    }
}
