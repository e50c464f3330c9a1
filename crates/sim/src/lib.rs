//! The real engine under a seed: the reference store behind faults, scripted executors, paused
//! time. The same seed tells the same story; the checks say what must hold whatever happens.
//!
//! In reading order: `world` (what there is, and a seed's life), `trouble`, `people` and `asked` (what happens to it),
//! `jobs`;
//! `clock`, `faults` and `target` (what a node is made to believe); `watch`, `ledger`, `record`, `spells` and
//! `story` (what really happened); `checks`.

#![deny(unreachable_pub)]

mod asked;
pub mod checks;
pub mod clock;
pub mod faults;
pub mod jobs;
pub mod ledger;
mod people;
pub mod record;
pub mod spells;
pub mod story;
pub mod target;
mod trouble;
mod watch;
pub mod world;

pub use checks::Broken;
pub use world::{Findings, Plan, run};
