//! What a client can do: one function each, and no word of any protocol. Tenant first, then what is
//! asked; out comes what stands now, or an [`OpError`] that a client can act on.
//!
//! In reading order: `fault` and `draft` (what a client may say about a job), `schedule` and `build` (from
//! there to a definition that holds), `level` (whether every node can read it), `jobs`, `change`, `turns` and `withdraw` (how an edit reaches what was already
//! claimed), `calendars`, `runs`, `nodes`, `tenants`, `keys`, `page` (listings); then what people ask about time: `ahead` (a walk over
//! slots), `preview`, `slots` (of `entry`s) and `explain`.

mod ahead;
mod build;
pub mod calendars;
mod change;
mod draft;
mod entry;
mod error;
pub mod explain;
mod fault;
pub mod jobs;
pub mod keys;
mod level;
pub mod nodes;
mod page;
pub mod preview;
pub mod runs;
mod schedule;
pub mod slots;
pub mod tenants;
mod turns;
mod withdraw;

pub use turns::Changing;

pub use change::{Changed, Expect, Mode};
pub use draft::{
    CalendarDraft, CatchUpDraft, JobDraft, KindDraft, OverlapDraft, Patch, RetryDraft,
    ScheduleDraft, TargetDraft,
};
pub use error::{CalendarFault, KeyFault, OpError, TenantFault};
pub use fault::{Fault, FieldError};
pub use schedule::{Known, kind_missing, refuse_misfit};
pub use withdraw::{Wish, Withdrawn};
