//! Each duty alone, over the reference store, with a clock that the test moves: a test builds it, takes a step, and looks
//! at what was written and when it wants the next step.

mod bench;
mod rows;
mod world;

mod alerts;
mod beats;
mod claim_due;
mod count_runs;
mod dispatch;
mod fire;
mod fire_overlap;
mod flush;
mod gauges;
mod handed;
mod hints;
mod keep;
mod leases;
mod low_water;
mod marks;
mod origins;
mod payloads;
mod plan;
mod plan_again;
mod replays;
mod retention;
mod rules;
mod seal;
mod secrets;
mod settle;
mod settle_again;
mod stop;
mod tokens;
mod walk;
mod watchdog;
