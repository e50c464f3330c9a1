//! Calls on a store, whole, so that one can be made again.

use model::shard::ShardSet;
use model::{JobId, PresenceId, RunId, TenantId, Timestamp};

use crate::{Firing, JobChange, Keep, Leases, NewJob, Settlement, StartRun, Withdrawal};

#[derive(Debug, Clone)]
pub(super) enum Call {
    /// What was to be called about is not there.
    Nothing,
    Join,
    Beat(PresenceId),
    Lease(PresenceId, ShardSet),
    Leave(PresenceId),
    Bar(PresenceId),
    Create(Vec<NewJob>),
    Change(Box<JobChange>),
    Park(JobId, Timestamp),
    Fire(Leases, Vec<Firing>),
    Claim(Leases, Vec<RunId>),
    Start(Box<StartRun>),
    Mark(PresenceId, Vec<(RunId, Timestamp)>),
    Cancel(TenantId, RunId, Timestamp),
    Withdraw(PresenceId, Vec<Withdrawal>, Timestamp),
    Settle(PresenceId, Vec<Settlement>),
    Retain(Keep),
}
