//! What a client can do: one function each, and no word of any protocol. Tenant first, then what is
//! asked; out comes what stands now, or an [`OpError`] that a client can act on.
//!
//! In reading order: `fault` and `draft` (what a client may say about a job), `build` (from there to
//! a definition that holds), `jobs`, `change` and `withdraw` (how an edit reaches what was already
//! claimed), `runs`, `page` (listings), `preview`.

mod build;
mod change;
mod draft;
mod error;
mod fault;
pub mod jobs;
mod page;
pub mod preview;
pub mod runs;
mod withdraw;

pub use change::{Changed, Expect};
pub use draft::{CatchUpDraft, CronDraft, EveryDraft, JobDraft, Patch, RetryDraft, ScheduleDraft};
pub use error::OpError;
pub use fault::{Fault, FieldError};
pub use withdraw::{Wish, Withdrawn};
