//! The words and the rules: no I/O, no async, no clock.
//!
//! In reading order: names and moments first, then what a job is, then what becomes of its slots.

#![deny(unreachable_pub)]

pub mod hash;
pub mod id;
pub mod time;

pub mod schedule;

pub mod access;
pub mod lane;
pub mod level;
pub mod limits;
pub mod parts;
pub mod presence;
pub mod shard;
pub mod target;
pub mod tenant;

pub mod policy;

pub mod change;
pub mod decide;
pub mod job;
pub mod skip;

pub mod attempt;
pub mod partition;
pub mod retry;
pub mod run;
pub mod within;

pub mod view;

pub use access::{AccessKey, KeySecret, Role};
pub use attempt::{Attempt, AttemptNo, Outcome, Report, RetryHint};
pub use id::{JobId, KeyId, PresenceId, RunId, TenantId};
pub use job::{Definition, Job, JobKey, JobState, Standing, Version};
pub use lane::Lane;
pub use level::Level;
pub use partition::Partition;
pub use parts::Parts;
pub use policy::{CatchUp, CatchUpPolicy, Delivery, Overlap};
pub use presence::{BeatMark, Observer};
pub use retry::{Backoff, RetryPolicy, Verdict};
pub use run::{Claim, Mark, Reason, Run, RunKind, RunState, Skip, Stretch};
pub use schedule::{Calendar, CalendarName, Schedule};
pub use shard::Shard;
pub use target::Target;
pub use tenant::{Tenant, TenantName};
pub use time::{Slot, Timestamp};
pub use within::Marks;
