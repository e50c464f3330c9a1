//! What every store promises. A promise is written once, in the file of its group, and listed once, below;
//! a store keeps all of them by `conformance_suite!(async || Subject::mem().await)`: one test for each promise.
//!
//! In the order of a run's life: `presence`, `leases`, `level`, `access`, `audit`, `seals`, `users`, `secrets`, `jobs`, `owners`, `changes`, `quotas`, `runs_day`, `sweep`, `calendars`, `rules`, `zones`, `plan`, `fire`,
//! `skips`, `bounds`, `overlap`, `late`, `claim`, `claim_due`, `payloads`, `replays`, `alerts`, `start`, `withdraw`, `settle`, `waits`, `handed`, `completion`, `rest`, `history`, `slots`,
//! `retention`, `overview`. `alike` then makes the same random calls on two stores, and wants the same answers; and
//! `concurrent` makes many calls on one store at once, and wants an order that explains the answers.

pub mod access;
pub mod alerts;
#[cfg(test)]
mod alike;
pub mod audit;
pub mod bounds;
pub mod calendars;
pub mod changes;
pub mod claim;
pub mod claim_due;
pub mod completion;
#[cfg(test)]
mod concurrent;
pub mod failures;
pub mod fire;
pub mod handed;
pub mod handed_kept;
pub mod history;
pub mod jobs;
pub mod late;
pub mod leases;
pub mod level;
pub mod overlap;
pub mod overview;
pub mod owners;
pub mod payloads;
pub mod plan;
pub mod presence;
mod promises;
pub mod quotas;
pub mod replays;
pub mod rest;
pub mod retention;
pub mod rules;
pub mod runs_day;
pub mod seals;
pub mod secrets;
pub mod settle;
pub mod skips;
pub mod slots;
pub mod start;
mod subject;
mod suite;
pub mod sweep;
pub mod users;
pub mod waits;
pub mod withdraw;
pub mod zones;

#[cfg(all(test, any(feature = "sqlite", feature = "postgres")))]
pub(crate) use subject::target;
pub use subject::{
    DONE, Kept, NODE, Opened, Reopen, Rows, Subject, TestClock, after_completion, at, attempt,
    every, firing, freed, job, job_with, node, once, settlement, skip, slot, someone,
};

#[cfg(all(test, any(feature = "sqlite", feature = "postgres")))]
pub(crate) use alike::{answers_alike, rows_alike};
#[cfg(all(test, any(feature = "sqlite", feature = "postgres")))]
pub(crate) use concurrent::{Arena, answers_in_some_order};

#[cfg(test)]
mod tests;
