//! A target that behaves as badly as the seed says: slow, failing, hanging, failing for good, panicking, or
//! doing the work and never saying so.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use engine::Clock;
use executor::{Executor, WorkOrder};
use model::handed::ACCEPTED;
use model::{Completion, Report, RetryHint};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::clock::{Pause, SimClock};
use crate::faults::FaultStore;
use crate::ledger::Ledger;
use crate::origins::Origins;
use crate::outside::{Doors, TakenOver};
use crate::story::{Delivery, Story};

/// Of a hundred attempts that may report later, so many do; the others end with their answer.
const TAKEN_OVER: u32 = 80;

pub struct SimTarget {
    pub clock: SimClock,
    pub story: Story,
    pub ledger: Ledger,
    pub rng: Arc<Mutex<StdRng>>,
    pub node: u32,
    /// The node that waits for the answer may stand still.
    pub pause: Pause,
    /// Once quiet, everything succeeds at once, so that what waits can end.
    pub quiet: Arc<std::sync::atomic::AtomicBool>,
    /// How those reach the nodes who report later, and how they see what stands.
    pub doors: Doors,
    /// Which origins refuse every call.
    pub origins: Origins,
    pub sight: FaultStore,
}

impl SimTarget {
    pub fn rng(seed: u64) -> Arc<Mutex<StdRng>> {
        Arc::new(Mutex::new(StdRng::seed_from_u64(seed ^ 0x7a76)))
    }
}

/// Writes the end of a delivery into the story, also when the attempt is cut off.
struct Ends<'a> {
    target: &'a SimTarget,
    index: usize,
    done: bool,
    origin: String,
    answered: bool,
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.target
            .story
            .end(self.index, self.target.clock.uptime(), self.done);
        if !self.answered {
            let now = self.target.clock.uptime();
            self.target.origins.unanswered(&self.origin, now);
        }
    }
}

#[async_trait]
impl Executor for SimTarget {
    async fn execute(&self, order: WorkOrder) -> Report {
        let report = self.work(order).await;
        self.pause.over(&self.clock).await;
        report
    }
}

impl SimTarget {
    /// Writes down that the attempt has reached its target.
    fn begin(&self, order: &WorkOrder) -> usize {
        let from = self.clock.uptime();
        let mut book = self.ledger.book();
        book.dispatched(self.node, order.run, order.attempt, from);
        book.note_of(order.job.id, from, || {
            let (start, attempt) = (self.node, order.attempt);
            format!(
                "start {start} dispatches attempt {attempt} of {}",
                order.run
            )
        });
        self.story.begin(Delivery {
            run: order.run,
            job: order.job.id,
            attempt: order.attempt,
            slot: order.slot,
            // A copy: whoever keeps a payload keeps its room.
            payload: order.payload().map(|sent| Bytes::copy_from_slice(sent)),
            origin: origin(order),
            promised: order.job.def.delivery,
            at: Clock::now(&self.clock),
            from,
            to: None,
            done: false,
            node: self.node,
        })
    }

    /// The attempt as the outside has it, if its job lets it report later.
    fn taken_over(&self, order: &WorkOrder, index: usize) -> Option<TakenOver> {
        let callback = order.callback.as_ref()?;
        let def = &order.job.def;
        let Completion::Callback { heartbeat_within } = def.completion else {
            return None;
        };
        Some(TakenOver {
            clock: self.clock.clone(),
            story: self.story.clone(),
            rng: Arc::clone(&self.rng),
            doors: self.doors.clone(),
            sight: self.sight.clone(),
            run: order.run,
            job: order.job.id,
            attempt: order.attempt,
            within: heartbeat_within,
            timeout: def.timeout,
            token: callback.token.clone(),
            index,
        })
    }

    async fn work(&self, order: WorkOrder) -> Report {
        let index = self.begin(&order);
        let mut ends = Ends {
            target: self,
            index,
            done: false,
            origin: origin(&order),
            answered: false,
        };
        let is_dead = |ends: &Ends| self.origins.is_dead(&ends.origin, self.clock.uptime());
        let report = if is_dead(&ends) {
            Report::failed("it refuses to be called").unreached()
        } else {
            self.behave(order, &mut ends).await
        };
        ends.answered = true;
        if is_dead(&ends) {
            return Report::failed("it broke off").unreached();
        }
        report
    }

    /// As the seed says.
    async fn behave(&self, order: WorkOrder, ends: &mut Ends<'_>) -> Report {
        let (choice, wait) = {
            let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
            (rng.random_range(0..100), rng.random_range(0..1_500_u64))
        };
        if self.quiet.load(std::sync::atomic::Ordering::SeqCst) {
            ends.done = true;
            return Report::succeeded();
        }
        if let Some(taken_over) = self.taken_over(&order, ends.index)
            && choice < TAKEN_OVER
        {
            self.clock.sleep(taken_over.begin()).await;
            return Report::succeeded().with_status(ACCEPTED);
        }
        match choice {
            0..40 => {
                ends.done = true;
                Report::succeeded()
            }
            40..65 => {
                self.clock.sleep(Duration::from_millis(wait)).await;
                ends.done = true;
                Report::succeeded()
            }
            65..80 => {
                self.clock.sleep(Duration::from_millis(wait / 3)).await;
                Report::failed("the target says no")
            }
            80..85 => Report::failed("never").with_retry(RetryHint::Never),
            85..90 => Report::failed("later").with_retry(RetryHint::After(Duration::from_secs(3))),
            90..94 => {
                ends.done = true;
                std::future::pending().await
            }
            94..96 => {
                // As a bug in an executor would, and without a line on the screen.
                self.clock.sleep(Duration::from_millis(wait / 3)).await;
                std::panic::resume_unwind(Box::new("the executor has a bug"))
            }
            _ => {
                // Answers, but after the attempt's time is up.
                ends.done = true;
                self.clock
                    .sleep(order.job.def.timeout + Duration::from_millis(wait))
                    .await;
                Report::succeeded()
            }
        }
    }
}

fn origin(order: &WorkOrder) -> String {
    order.job.def.target.origin().unwrap_or_default()
}

/// Answers at once, as the function in it says.
pub struct Answers<F>(pub F);

#[async_trait]
impl<F> Executor for Answers<F>
where
    F: Fn(&WorkOrder) -> Report + Send + Sync + 'static,
{
    async fn execute(&self, order: WorkOrder) -> Report {
        (self.0)(&order)
    }
}
