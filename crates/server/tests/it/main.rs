//! The server through its router, on the reference store and a running node.

mod batch;
mod contract;
mod edits;
mod idempotency;
mod jobs;
mod lists;
mod preview;
mod refusals;
mod requests;
mod runs;
mod sockets;
mod system;
mod world;
