//! What clients talk to. In reading order: what a client can do, the JSON we promise, how requests
//! reach the one and leave as the other, and how connections are kept in bounds.

#![deny(unreachable_pub)]

pub mod ops;

pub mod wire;

mod faults;
mod problem;
pub mod rest;

mod access;
mod api;
mod console;
mod docs;
mod lockouts;
mod metrics;
mod passwords;
mod peer;
mod permit;
mod process;
mod rates;
mod same;
mod serve;

pub use access::{Access, Minted};
pub use api::Api;
pub use peer::Peer;
pub use problem::{Kind as ProblemKind, Problem};
pub use rates::{Rates, RatesMax};
pub use rest::{openapi_json, router};
pub use serve::{Bounds, Door, Origin, Proxies, ProxyHeader, Tls, TlsError, TlsFiles, serve};
