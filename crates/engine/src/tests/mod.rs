//! Each duty alone, over the reference store, with a clock that the test moves: a test builds it, takes a step, and looks
//! at what was written and when it wants the next step.

mod bench;
mod rows;
mod world;

mod beats;
mod dispatch;
mod fire;
mod fire_overlap;
mod hints;
mod keep;
mod leases;
mod marks;
mod payloads;
mod plan;
mod plan_again;
mod retention;
mod rules;
mod settle;
mod settle_again;
mod stop;
mod take;
mod watchdog;
