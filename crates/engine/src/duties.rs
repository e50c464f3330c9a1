//! Which duties a node has, and what becomes of each one's work when it panics: it is built again from the rooms, and what it
//! had taken and not passed on is found in the store.

use std::sync::Arc;

use store::Hint;

use crate::duty::{Builder, Duty};
use crate::rooms::Rooms;

impl Rooms {
    /// Those that end first when a node stops.
    pub(crate) fn planning(self: &Arc<Self>) -> Vec<Builder> {
        let mut duties = vec![
            // The offers that it had taken are in the store.
            self.builder(Self::plan, |it| it.common.offers.replan()),
            // Orphans are read again until they are settled; claims have to be compared after all.
            self.builder(Self::watchdog, |it| it.compare.make()),
            // Keeps nothing.
            self.builder(Self::retention, |_| {}),
            // What it was about to wake is woken in its time.
            self.builder(Self::wake, |_| {}),
            // Its watch begins again: what is silent ends later.
            self.builder(Self::handed, |_| {}),
            // Reads the end of the chain again.
            self.builder(Self::seal, |_| {}),
            // Begins the rule again: rescheduling twice changes nothing.
            self.builder(Self::rules, |_| {}),
            // What was counted is kept.
            self.builder(Self::count_runs, |_| {}),
            // Does its last bit again, in which everything has the same name.
            self.builder(Self::replays, |_| {}),
            // Keeps nothing: what was not written is done again.
            self.builder(Self::alerts, |_| {}),
            // What it had heard is lost, so it may have been anything.
            self.builder(Self::hints, |it| it.hints().pass_on(Hint::Lost)),
        ];
        if self.common.vault.has_keys() {
            // What was opened stays open until it has looked.
            duties.push(self.builder(Self::secrets, |_| {}));
        }
        duties
    }

    /// Those that go on until everything is handed over; beats apart.
    pub(crate) fn ending(self: &Arc<Self>) -> Vec<Builder> {
        vec![
            // Its call may have been written: what the store has is read.
            self.builder(Self::hold, |it| it.shards.doubt.make()),
            // The next beat brings all marks again. A run that it was about to mark is shown as waiting for longer.
            self.builder(Self::marks, |_| {}),
            // What it had taken out of the wheel and what it waits for is forgotten: plan reads slots and runs again, and
            // claiming them twice is harmless. Claims that its writes make all the same are found by comparing.
            self.builder(Self::fire, |it| {
                it.board.forget_taken();
                it.common.offers.replan();
                it.compare.make();
            }),
            // The runs it took are ours, or are taken again.
            self.builder(Self::claim_due, |it| {
                it.board
                    .claimed_due(Vec::new(), Vec::new(), it.common.clock.now());
                it.compare.make();
            }),
            // Keeps nothing: claims are on the board.
            self.builder(Self::dispatch, |_| {}),
            // Whoever waits for what it was reading requests it again.
            self.builder(Self::payloads, |_| {}),
            // What was counted is not in it, and is written again.
            self.builder(Self::flush, |_| {}),
            // What it was writing is written again.
            self.builder(Self::hand_over, |_| {}),
            // Its desk stays: what was being written is written again. Of runs that follow from what was written before,
            // plan learns.
            self.builder(Self::settle, |it| it.common.offers.replan()),
        ]
    }

    /// Keeps only when it beat last.
    pub(crate) fn beating(self: &Arc<Self>) -> Builder {
        self.builder(Self::beats, |_| {})
    }

    fn builder<D: Duty + 'static>(
        self: &Arc<Self>,
        build: impl Fn(&Self) -> D + Send + 'static,
        recover: impl Fn(&Self) + Send + 'static,
    ) -> Builder {
        let (built, recovered) = (Arc::clone(self), Arc::clone(self));
        Builder::new(move || build(&built)).recover(move || recover(&recovered))
    }
}
