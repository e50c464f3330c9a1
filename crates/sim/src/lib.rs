//! The real engine under a seed: the reference store behind faults, scripted executors, paused
//! time. The same seed tells the same story; the checks say what must hold whatever happens.

pub mod checks;
pub mod clock;
pub mod faults;
pub mod jobs;
pub mod story;
pub mod target;
pub mod world;

pub use checks::Broken;
pub use world::{Plan, Told, run};
