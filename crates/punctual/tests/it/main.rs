//! Tests that start the real binary.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test, that is how one fails"
)]

mod support;

mod access;
mod audit;
mod blackbox;
mod chaos;
mod cli;
mod config;
mod console;
mod database;
mod deploy;
mod door;
mod egress;
mod exchange;
mod guides;
mod logs;
mod nodes;
mod overview;
mod planted;
mod planted_doors;
mod planted_more;
mod proxy;
mod python;
mod revoked;
mod run_log;
mod runs_day;
mod secrets;
mod serve;
mod shell;
mod shell_lost;
mod signing;
mod unit;
mod upgrade;
