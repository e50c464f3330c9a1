//! What clients talk to. In reading order: what a client can do, the JSON we promise, how requests
//! reach the one and leave as the other, and how connections are kept in bounds.

pub mod ops;

pub mod wire;

mod problem;
pub mod rest;

mod access;
mod api;
mod docs;
mod metrics;
mod permit;
mod serve;

pub use access::{Access, Minted};
pub use api::Api;
pub use problem::{Kind as ProblemKind, Problem};
pub use rest::{openapi_json, router};
pub use serve::serve;
