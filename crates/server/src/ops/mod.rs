//! What a client can do: one function each, and no word of any protocol. Tenant first, then what is
//! requested; out comes what stands now, or an [`OpError`] that a client can act on.
//!
//! In reading order: `fault` and `draft` (what a client may say about a job), `schedule` and `build` (from
//! there to a definition that holds), `level` (whether every node can read it), `target` (whether it could
//! be called), `jobs`, `change`, `turns` and `withdraw` (how an edit reaches what was already
//! claimed), `calendars`, `alerts` (who is to hear of what), `runs`, `find` (runs by what they are like, and their errors in groups), `replays` (many runs at a pace), `nodes`, `overview`, `tenants`, `proxies` (what their callbacks go through), `keys`, `users`, `sessions` (who is logged in), `secrets`, `signing`, `page` (listings); then questions about time: `ahead` (a walk over
//! slots), `preview`, `slots` (of `entry`s), `explain`, `forecast` (counted by `forecast_count`) and `rush` (one second of it), `watch` (streams of nudges).

mod ahead;
pub mod alerts;
pub mod audit;
mod build;
mod build_target;
pub mod calendars;
mod change;
mod draft;
mod entry;
mod error;
pub mod explain;
mod fault;
pub mod find;
pub mod forecast;
mod forecast_count;
pub mod jobs;
pub mod keys;
mod level;
pub mod nodes;
pub mod outside;
pub mod overview;
mod page;
pub mod preview;
pub mod proxies;
pub mod replays;
pub mod runs;
pub mod rush;
mod schedule;
pub mod secrets;
pub mod sessions;
pub mod signing;
pub mod slots;
mod target;
pub mod tenants;
mod turns;
pub mod users;
pub mod versions;
pub mod watch;
mod withdraw;

pub use turns::Changing;

pub use change::{Changed, Expect, Mode};
pub use draft::{
    CalendarDraft, CatchUpDraft, ExitDraft, HttpDraft, JobDraft, KindDraft, OverlapDraft, Patch,
    PythonDraft, RetryDraft, ScheduleDraft, ShellDraft, SuccessDraft, TargetDraft, TlsDraft,
};
pub use error::{CalendarFault, KeyFault, OpError, SecretFault, TenantFault, UserFault};
pub use fault::{Fault, FieldError};
pub use schedule::{Known, kind_missing, refuse_misfit};
pub use withdraw::{Wish, Withdrawn};
