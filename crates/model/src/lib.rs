//! The words and the rules: no I/O, no async, no clock.
//!
//! In reading order: names and moments first, then what a job is, then what becomes of its slots.

#![deny(unreachable_pub)]

pub mod hash;
pub mod hex;
pub mod id;
pub mod time;

pub mod schedule;

pub mod access;
mod cidr;
pub mod exit;
pub mod host;
mod lane;
pub mod level;
pub mod limits;
pub mod lockout;
pub mod mask;
pub mod mask_env;
mod parts;
pub mod presence;
mod proxy;
pub mod python;
mod queue;
pub mod redirect;
mod secret;
pub mod shard;
pub mod shell;
pub mod signing;
pub mod success;
pub mod target;
mod tenant;
mod tls;
pub mod user;

pub mod policy;

mod change;
mod decide;
mod failures;
pub mod job;
pub mod quota;
pub mod runs_day;
mod skip;

pub mod alert;
pub mod attempt;
pub mod breaker;
pub mod error_group;
mod exchange;
pub mod handed;
mod partition;
pub mod retry;
pub mod rollup;
pub mod run;
mod run_match;
mod trace;
mod wait;
mod within;

pub mod view;

pub use access::{AccessKey, KeySecret, Role};
pub use alert::{
    Alert, AlertMove, AlertName, AlertNameError, AlertState, Cause, Channel, Condition, Scope,
};
pub use attempt::{Attempt, AttemptNo, Cost, Io, Outcome, Report, RetryHint};
pub use cidr::Cidr;
pub use error_group::error_group;
pub use exchange::{Exchange, Times};
pub use exit::{ExitCodes, ExitMap, ExitMeaning};
pub use failures::FailuresMax;
pub use handed::{Completion, Handed, LogPart, Progress, RunLog};
pub use id::{JobId, KeyId, PresenceId, ReplayId, RunId, TenantId, UserId};
pub use job::{Definition, Job, JobKey, JobState, Standing, Version};
pub use lane::Lane;
pub use level::Level;
pub use partition::Partition;
pub use parts::Parts;
pub use policy::{CatchUp, CatchUpPolicy, Delivery, Overlap};
pub use presence::{BeatMark, Observer};
pub use proxy::Proxy;
pub use python::PythonTarget;
pub use queue::QueueName;
pub use quota::{Quota, QuotaExceeded, Quotas, Usage};
pub use redirect::Redirects;
pub use retry::{Backoff, RetryPolicy, Verdict};
pub use rollup::{Rollup, RollupRow};
pub use run::{Claim, Mark, Reason, Run, RunKind, RunState, Skip, Stretch};
pub use run_match::RunMatch;
pub use schedule::{Calendar, CalendarName, Schedule};
pub use secret::{HostPattern, Sealed, Secret, SecretName};
pub use shard::Shard;
pub use shell::ShellTarget;
pub use signing::SigningId;
pub use success::Success;
pub use target::Target;
pub use tenant::{Tenant, TenantEdit, TenantName};
pub use time::{Slot, Timestamp};
pub use tls::TlsSecrets;
pub use trace::Trace;
pub use user::{ConsoleLink, Holder, Membership, Session, User, UserEdit, UserName};
pub use wait::{Wait, WaitReason};
pub use within::Marks;
