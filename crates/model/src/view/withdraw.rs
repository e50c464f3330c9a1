//! Withdrawal: the holder of a claim answers a mark to take its run back.

use super::View;
use crate::id::{PresenceId, RunId};
use crate::run::Mark;
use crate::time::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Withdrawal {
    pub run: RunId,
    /// False: it had been dispatched.
    pub taken_back: bool,
}

impl View {
    /// Taken back as if never fired, or too late. Anything but an answer to a mark that stands changes nothing.
    pub fn withdraw(&mut self, answer: Withdrawal, by: PresenceId, now: Timestamp) {
        let run = self.live.get(&answer.run);
        let marked = |mark: Option<Mark>| mark == Some(Mark::TakeBack);
        if !run.is_some_and(|run| run.claim == Some(by) && marked(run.mark)) {
            return;
        }
        if answer.taken_back {
            self.take_back(answer.run, now);
            self.rest();
            self.free(now);
        } else {
            self.mark(answer.run, Mark::TooLate);
        }
    }
}
