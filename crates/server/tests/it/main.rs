//! The server through its router, on the reference store and a running node.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "in a test, that is how one fails"
)]

mod access;
mod alerts;
mod audit;
mod batch;
mod bounds;
mod calendars;
mod console;
mod contract;
mod door;
mod dry_run;
mod edits;
mod egress;
mod events;
mod explain;
mod explain_past;
mod faults;
mod find;
mod forecast;
mod idempotency;
mod isolation;
mod jobs;
mod keys;
mod lists;
mod masks;
mod merges;
mod nodes;
mod outside;
mod owner;
mod preview;
mod promised;
mod proxies;
mod quotas;
mod rates;
mod refusals;
mod replays;
mod requests;
mod runs;
mod runs_day;
mod secrets;
mod signing;
mod slot_pages;
mod slots;
mod sockets;
mod system;
mod templates;
mod tenant_delete;
mod tenants;
mod tls;
mod versions;
mod waits;
mod workers;
mod world;
