//! Marks: marks that others set on claims that this node holds, answered after every beat; and records for readers of
//! runs that have been under way for a while.

use std::sync::Arc;

use async_trait::async_trait;
use model::{Mark, RunId, Timestamp};
use store::{ClientStore, EngineStore, StoreError};

use crate::board::Board;
use crate::clock::Clock;
use crate::desk::Endings;
use crate::duty::{Duty, Wake};
use crate::fleet::Marked;
use crate::lock;
use crate::nudge::Nudge;
use crate::offers::Offers;
use crate::presence::Presence;

pub(crate) struct Ports {
    pub board: Arc<Board>,
    pub store: Arc<dyn EngineStore>,
    /// Runs are read by their ids as clients read them.
    pub runs: Arc<dyn ClientStore>,
    pub clock: Arc<dyn Clock>,
    pub presence: Arc<Presence>,
    pub marked: Marked,
    pub endings: Endings,
    pub offers: Offers,
    pub nudge: Nudge,
    pub dispatch: Nudge,
}

/// Runs read at once.
const READ_MAX: usize = 256;

pub(crate) struct Marks {
    ports: Ports,
}

impl Marks {
    pub(crate) fn new(ports: Ports) -> Self {
        Self { ports }
    }

    /// Answers marks. What is to be settled is handed over by a task of its own: settle may be behind, and others
    /// wait for their answers.
    async fn answer(&self, marks: &[(RunId, Mark)], now: Timestamp) -> Result<(), StoreError> {
        let Ports {
            presence, store, ..
        } = &self.ports;
        let answers = self.ports.board.answer(marks, now);
        if answers.frees {
            self.ports.dispatch.now();
        }
        if !answers.settlements.is_empty() {
            let (endings, kill) = (self.ports.endings.clone(), presence.kill.clone());
            tokio::spawn(kill.run_until_cancelled_owned(async move {
                endings.send_all(answers.settlements).await
            }));
        }
        if !answers.withdrawals.is_empty() {
            store
                .withdraw(presence.id, &answers.withdrawals, now)
                .await?;
        }
        self.forget_taken_back().await
    }

    /// What was taken back is forgotten when the store has let go of it: a cancel may have come first, or an answer
    /// been lost.
    async fn forget_taken_back(&self) -> Result<(), StoreError> {
        let Ports {
            board,
            runs,
            presence,
            ..
        } = &self.ports;
        let taken = board.taken_back();
        let ids: Vec<_> = taken
            .iter()
            .map(|(offer, run, _)| (offer.0, *run))
            .collect();
        let mut found = Vec::with_capacity(ids.len());
        for some in ids.chunks(READ_MAX) {
            found.extend(runs.get_runs(some).await?);
        }
        let mut gone = Vec::new();
        for ((offer, run, attempt), stands) in taken.into_iter().zip(found) {
            match stands?.filter(|run| run.claim == Some(presence.id)) {
                None => gone.push((offer, run, attempt)),
                // It is not marked: it was decided again, and is ours.
                Some(stands) if stands.mark.is_none() => board.keep(run),
                Some(_) => {}
            }
        }
        let claims = gone.iter().map(|(_, run, attempt)| (*run, *attempt));
        board.forget(claims);
        for (offer, _, _) in gone {
            // What was taken back is decided again.
            self.ports.offers.offer(offer);
        }
        Ok(())
    }
}

#[async_trait]
impl Duty for Marks {
    fn name(&self) -> &'static str {
        "marks"
    }

    fn nudge(&self) -> &Nudge {
        &self.ports.nudge
    }

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError> {
        let marks = std::mem::take(&mut *lock(&self.ports.marked));
        self.answer(&marks, now).await?;
        let Ports {
            board,
            store,
            presence,
            ..
        } = &self.ports;
        let marks = board.to_mark(self.ports.clock.uptime());
        if !marks.is_empty()
            && let Err(error) = store.mark_running(presence.id, &marks).await
        {
            board.mark_again(&marks);
            return Err(error);
        }
        Ok(Wake::Nudged)
    }
}
