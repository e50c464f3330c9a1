//! Tests that start the real binary.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test, that is how one fails"
)]

mod support;

mod access;
mod blackbox;
mod chaos;
mod cli;
mod config;
mod database;
mod guides;
mod nodes;
mod serve;
