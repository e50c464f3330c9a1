//! The duties of a presence, and what becomes of their work when one of them panics.
//!
//! What always holds: a panic costs time and nothing else. Claims, leases and endings live in the context or at settle's
//! desk, not in a duty; what a duty had taken and not passed on is forgotten here, so that plan or the watchdog finds
//! it in the store.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use store::Hint;
use tokio::sync::{Mutex, mpsc};

use crate::beats::Beats;
use crate::desk::Desk;
use crate::dispatch::DispatchDuty;
use crate::duty::Builder;
use crate::fire::Fire;
use crate::handle::Offer;
use crate::hints::Hints;
use crate::leases::Hold;
use crate::lock;
use crate::marks::Marks;
use crate::node::Context;
use crate::payloads::ReadPayloads;
use crate::plan::Plan;
use crate::retention::Retention;
use crate::rules::Rules;
use crate::settle::Settle;
use crate::take::Take;
use crate::watchdog::Watchdog;

impl Context {
    /// Plan reads the whole window again.
    pub fn replan(&self) {
        self.shared.nudges.replan.store(true, Ordering::Release);
        self.shared.nudges.plan.now();
    }

    /// A write may have made claims whose answer nobody will hear.
    fn compare_claims(&self) {
        self.shared.nudges.compare.store(true, Ordering::Release);
        self.shared.nudges.watchdog.now();
    }
}

type Offers = Arc<Mutex<mpsc::Receiver<Offer>>>;

/// Those that end first when a node stops.
pub fn planning(context: &Arc<Context>, offers: &Offers) -> Vec<Builder> {
    let of = || Arc::clone(context);
    let (plan, offers, planned) = (of(), Arc::clone(offers), of());
    let (watchdog, compared) = (of(), of());
    let (retention, rules) = (of(), of());
    let (hints, heard) = (of(), of());
    vec![
        // The offers that it had taken are in the store.
        Builder::new(move || Plan::new(Arc::clone(&plan), Arc::clone(&offers)))
            .recover(move || planned.replan()),
        // Orphans are read again until they are settled; claims have to be compared after all.
        Builder::new(move || Watchdog::new(Arc::clone(&watchdog)))
            .recover(move || compared.compare_claims()),
        // Keeps nothing.
        Builder::new(move || Retention::new(Arc::clone(&retention))),
        // Begins the rule again: rescheduling twice changes nothing.
        Builder::new(move || Rules::new(Arc::clone(&rules))),
        // What it had heard is lost, so it may have been anything.
        Builder::new(move || Hints::new(Arc::clone(&hints)))
            .recover(move || Hints::new(Arc::clone(&heard)).pass_on(Hint::Lost)),
    ]
}

/// Those that go on until everything is handed over; beats apart.
pub fn ending(context: &Arc<Context>, desk: Desk) -> Vec<Builder> {
    let of = || Arc::clone(context);
    let (hold, doubted) = (of(), of());
    let (fire, forgot) = (of(), of());
    let (take, gave_up) = (of(), of());
    let (marks, dispatch, payloads) = (of(), of(), of());
    let (settle, settled) = (of(), of());
    let desk = Arc::new(Mutex::new(desk));
    vec![
        // Its call may have been written: what the store has is asked for.
        Builder::new(move || Hold::new(Arc::clone(&hold)))
            .recover(move || doubted.shared.doubt_leases()),
        // The next beat brings all marks again. A run that it was about to mark is shown as waiting for longer.
        Builder::new(move || Marks::new(Arc::clone(&marks))),
        // What it had taken out of the wheel and what it waits for is forgotten: plan reads slots and runs again, and
        // asking for them twice is harmless. Claims that its writes make all the same are found by comparing.
        Builder::new(move || Fire::new(Arc::clone(&fire))).recover(move || {
            lock(&forgot.wheel).forget_taken();
            forgot.replan();
            forgot.compare_claims();
        }),
        // The runs it took are ours, or are taken again.
        Builder::new(move || Take::new(Arc::clone(&take))).recover(move || {
            lock(&gave_up.wheel).end_taking();
            gave_up.compare_claims();
        }),
        // Keeps nothing: claims are in the context.
        Builder::new(move || DispatchDuty::new(Arc::clone(&dispatch))),
        // Whoever waits for what it was reading asks again.
        Builder::new(move || ReadPayloads::new(Arc::clone(&payloads))),
        // Its desk stays: what was being written is written again. Of runs that follow from what was written before,
        // plan learns.
        Builder::new(move || Settle::new(Arc::clone(&settle), Arc::clone(&desk)))
            .recover(move || settled.replan()),
    ]
}

/// Keeps only when it beat last.
pub fn beats(context: &Arc<Context>) -> Builder {
    let context = Arc::clone(context);
    Builder::new(move || Beats::new(Arc::clone(&context)))
}
