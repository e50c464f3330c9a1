//! A target that behaves as badly as the seed says: slow, failing, hanging, failing for good, panicking, or
//! doing the work and never saying so.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use engine::Clock;
use executor::{Executor, WorkOrder};
use model::{Report, RetryHint};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::clock::{Pause, SimClock};
use crate::ledger::Ledger;
use crate::story::{Delivery, Story};

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
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.target
            .story
            .end(self.index, self.target.clock.uptime(), self.done);
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
            at: Clock::now(&self.clock),
            from,
            to: None,
            done: false,
            node: self.node,
        })
    }

    async fn work(&self, order: WorkOrder) -> Report {
        let (choice, wait) = {
            let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
            (rng.random_range(0..100), rng.random_range(0..1_500_u64))
        };
        let index = self.begin(&order);
        let mut ends = Ends {
            target: self,
            index,
            done: false,
        };
        if self.quiet.load(std::sync::atomic::Ordering::SeqCst) {
            ends.done = true;
            return Report::succeeded();
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
