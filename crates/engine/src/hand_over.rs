//! Hand over: attempts whose target has taken them over go from this presence to the outside, in batches. Their claims are
//! known here until that is written.

use std::sync::Arc;

use async_trait::async_trait;
use model::{Timestamp, limits};
use store::{EngineStore, HandOver, StoreError};
use tokio::sync::{Mutex, mpsc};

use crate::board::{Board, EndedClaim};
use crate::clock::Clock;
use crate::duty::{Duty, Wake};
use crate::nudge::Nudge;
use crate::presence::Presence;

/// What is to be written. It outlives a duty that panicked, or claims would never be let go.
pub(crate) struct HandOvers {
    taken_over: mpsc::Receiver<HandOver>,
    waiting: Vec<HandOver>,
}

impl HandOvers {
    /// An empty one, and the way to it.
    pub(crate) fn new() -> (mpsc::Sender<HandOver>, Self) {
        let (way, taken_over) = mpsc::channel(limits::HANDED_QUEUE_MAX);
        let waiting = Vec::new();
        (
            way,
            Self {
                taken_over,
                waiting,
            },
        )
    }

    /// Waits for the next, and takes along what has come.
    async fn gather(&mut self) {
        let most = limits::HANDED_BATCH_MAX.saturating_sub(self.waiting.len());
        if self.waiting.is_empty() {
            self.taken_over.recv_many(&mut self.waiting, most).await;
            return;
        }
        while self.waiting.len() < limits::HANDED_BATCH_MAX
            && let Ok(next) = self.taken_over.try_recv()
        {
            self.waiting.push(next);
        }
    }
}

pub(crate) struct Ports {
    pub board: Arc<Board>,
    pub store: Arc<dyn EngineStore>,
    pub clock: Arc<dyn Clock>,
    pub presence: Arc<Presence>,
    pub hand_overs: Arc<Mutex<HandOvers>>,
    pub nudge: Nudge,
    pub fire: Nudge,
}

pub(crate) struct WriteHandOvers {
    ports: Ports,
}

impl WriteHandOvers {
    pub(crate) fn new(ports: Ports) -> Self {
        Self { ports }
    }
}

#[async_trait]
impl Duty for WriteHandOvers {
    fn name(&self) -> &'static str {
        "hand_over"
    }

    fn nudge(&self) -> &Nudge {
        &self.ports.nudge
    }

    async fn step(&mut self, _now: Timestamp) -> Result<Wake, StoreError> {
        let Ports {
            board,
            store,
            clock,
            presence,
            ..
        } = &self.ports;
        let mut hand_overs = self.ports.hand_overs.lock().await;
        hand_overs.gather().await;
        let batch = &hand_overs.waiting;
        if batch.is_empty() {
            return Ok(Wake::Nudged);
        }
        // Written or stale: who has it is known to the store from now on. If the answer is lost, it is stale the next time.
        let now = clock.now();
        store.handed().hand_over(presence.id, batch, now).await?;
        let gone = batch.iter().map(|it| EndedClaim {
            run: it.run,
            attempt: it.attempt,
            released: false,
            waits: false,
        });
        let gone: Vec<EndedClaim> = gone.collect();
        if board.settled(&gone, &[]) {
            self.ports.fire.now();
        }
        hand_overs.waiting.clear();
        Ok(Wake::Now)
    }
}
