//! The server through its router, on the reference store and a running node.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "in a test, that is how one fails"
)]

mod access;
mod batch;
mod bounds;
mod calendars;
mod contract;
mod dry_run;
mod edits;
mod explain;
mod explain_past;
mod faults;
mod idempotency;
mod isolation;
mod jobs;
mod keys;
mod lists;
mod merges;
mod nodes;
mod preview;
mod promised;
mod refusals;
mod requests;
mod runs;
mod slot_pages;
mod slots;
mod sockets;
mod system;
mod tenants;
mod waits;
mod world;
