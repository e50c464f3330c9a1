//! The promises, kept through what happens to a process: it is killed, frozen, starved of disk, lied to about
//! the time, stopped, and sent nonsense.
//!
//! `world` makes jobs and reads what became of them; `ledger` holds slots, history and deliveries against each
//! other. The rest is one fault per file.

mod ledger;
mod process;
mod world;

mod alerts;
mod breaker;
mod changes;
mod clock;
mod crash;
mod disk;
mod door;
mod failures;
mod frozen;
mod handed;
mod late;
mod memory;
mod nonsense;
mod replays;
mod starts;
mod stop;
mod visible;
