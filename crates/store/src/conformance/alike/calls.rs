//! Calls on a store, whole, so that one can be made again.

use model::presence::LastBeat;
use model::shard::ShardSet;
use model::{Calendar, CalendarName, JobId, PresenceId, RunId, TenantId, Timestamp, Version};

use crate::{
    DueRoom, Firing, HandOver, Heartbeat, JobChange, Keep, Lapse, Leases, LogAppend, NewJob,
    NodeStatus, QueueRun, Reported, Rule, Settlement, StartRun, Withdrawal,
};

#[derive(Debug, Clone)]
pub(super) enum Call {
    /// What was to be called about is not there.
    Nothing,
    Join,
    Presence(PresenceId, PresenceCall),
    Job(JobCall),
    Rule(RuleCall),
    Outside(OutsideCall),
    Fire(Leases, Vec<Firing>),
    Claim(Leases, Vec<RunId>),
    Start(Box<StartRun>),
    Cancel(TenantId, RunId, Timestamp),
    WakeDue(ShardSet, Timestamp, usize),
    Wake(Vec<RunId>, Timestamp),
    WakeRun(TenantId, RunId, Timestamp),
    Slots(TenantId, JobId, Timestamp, Timestamp, usize),
}

#[derive(Debug, Clone)]
pub(super) enum RuleCall {
    Put(TenantId, Box<Calendar>, Option<Version>),
    Drop(TenantId, CalendarName, Option<Version>),
    List(TenantId, CalendarName, usize),
    Changed,
    Under(Rule, Option<JobId>, usize),
    Applied(Rule),
}

/// What is said of attempts that the outside has, and which runs replays want.
#[derive(Debug, Clone)]
pub(super) enum OutsideCall {
    Heartbeat(Vec<Heartbeat>, Timestamp),
    Report(Vec<Reported>, Timestamp),
    Lapse(Leases, Vec<Lapse>, Timestamp),
    Append(Vec<LogAppend>),
    Queue(Vec<QueueRun>),
}

/// What is done as a presence, and refused when it has ended.
#[derive(Debug, Clone)]
pub(super) enum PresenceCall {
    Beat(NodeStatus),
    Lease(ShardSet),
    Leave,
    Fence(Vec<LastBeat>),
    ClaimDue(ShardSet, DueRoom),
    Mark(Vec<(RunId, Timestamp)>),
    Withdraw(Vec<Withdrawal>, Timestamp),
    Settle(Vec<Settlement>),
    HandOver(Vec<HandOver>, Timestamp),
}

#[derive(Debug, Clone)]
pub(super) enum JobCall {
    Create(Vec<NewJob>),
    Change(Box<JobChange>),
    Park(JobId, Timestamp),
    Retain(Keep),
}
