//! The real engine under a seed: the reference store behind faults, scripted executors, paused
//! time. The same seed gives the same story; the checks say what must hold whatever happens.
//!
//! In reading order: `world` (what there is, and a seed's life), `trouble`, `people` and `requests` (what happens to it),
//! `jobs`;
//! `clock`, `faults`, `target`, `origins` and `outside` (what a node is made to believe); `watch`, `watch_handed`, `ledger`, `handed`,
//! `record`, `spells` and `story` (what really happened); `checks`.

#![deny(unreachable_pub)]

pub mod checks;
pub mod clock;
pub mod faults;
pub mod handed;
pub mod jobs;
pub mod ledger;
pub mod origins;
mod outside;
mod people;
pub mod record;
mod requests;
pub mod spells;
pub mod story;
pub mod target;
mod trouble;
mod watch;
mod watch_handed;
pub mod world;

pub use checks::Broken;
pub use world::{Findings, Plan, run};
