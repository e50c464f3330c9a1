//! What can come of an operation when it does not come off.

use engine::vault::OpenError;
use model::TenantName;
use model::{
    CalendarName, JobId, JobKey, JobState, Outcome, QuotaExceeded, Reason, Role, RunId, RunState,
    SecretName, UserName, Version, Wait, limits,
};
use store::StoreError;

use super::alerts::AlertFault;
use super::fault::FieldError;
use super::replays::ReplayFault;

#[derive(Debug, thiserror::Error)]
pub enum OpError {
    #[error(transparent)]
    Field(#[from] FieldError),
    #[error("version {0} of the job is not kept, or was never there")]
    VersionMissing(model::Version),
    #[error("there is no such job")]
    JobMissing,
    #[error("there is no job by the key {0}")]
    KeyMissing(JobKey),
    #[error("there is no such run")]
    RunMissing,
    /// It may be anything: whoever sends it learns nothing.
    #[error("the token is not good for this run")]
    TokenRefused,
    /// Nothing was written; another node may do it, or this one in a moment.
    #[error("this node has no presence just now: try again, or call another node")]
    Unready,
    #[error("the attempt of this token has ended")]
    AttemptEnded(Option<Outcome>),
    /// The idempotency key's job was deleted and its row is gone.
    #[error("{0} was made by an earlier request with this key, and has been deleted since")]
    JobGone(JobId),
    #[error("the job is at version {found}")]
    VersionConflict { found: Version },
    /// The request wanted no job, or a version of one, and the contrary is so.
    #[error("the key already names {0}")]
    JobExists(JobId),
    #[error("there is no job by this key, so it has no version")]
    NothingToMatch,
    #[error("the key is taken by {0}")]
    KeyTaken(JobId),
    #[error("the idempotency key was used for another body")]
    IdempotencyMismatch,
    /// For what is in it, in the store's words.
    #[error("the store cannot keep this job, and will not when it is sent again")]
    JobRefused { job: JobId, why: String },
    #[error("the tenant has {} of at most {} ({})", .0.used, .0.limit, .0.quota.as_str())]
    QuotaExceeded(QuotaExceeded),
    #[error("a job that is {state} cannot be {verb}")]
    JobState { state: JobState, verb: &'static str },
    #[error("another run of the job is alive")]
    Overlap(Reason),
    #[error("the run is {0}: it has not ended yet")]
    RunAlive(RunState),
    #[error("the run had ended before: it is {0}")]
    RunEnded(RunState),
    #[error("the run is {0}, and {why}", why = why_not_woken(*.1))]
    RunNotWaiting(RunState, Option<Wait>),
    #[error("the job of {0} was deleted")]
    JobOfRunGone(RunId),
    #[error("the job has no dead run")]
    NoDeadRun,
    #[error(transparent)]
    Calendar(#[from] CalendarFault),
    #[error(transparent)]
    Key(#[from] KeyFault),
    #[error(transparent)]
    Tenant(#[from] TenantFault),
    #[error(transparent)]
    User(#[from] UserFault),
    #[error(transparent)]
    Secret(#[from] SecretFault),
    #[error(transparent)]
    Replay(#[from] ReplayFault),
    #[error(transparent)]
    Alert(#[from] AlertFault),
    /// Others changed it as often as we tried.
    #[error("it keeps changing")]
    Contended,
    /// Others compute, and do not come to an end.
    #[error("too many schedules are being worked out")]
    Overloaded,
    /// While something was read: nothing was changed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// While the change itself was written: it may have come about.
    #[error(transparent)]
    Write(StoreError),
}

/// What can be wrong with a calendar, or with a request about it.
#[derive(Debug, thiserror::Error)]
pub enum CalendarFault {
    #[error("there is no calendar {0}")]
    Missing(CalendarName),
    #[error("there is a calendar {0} already")]
    Exists(CalendarName),
    /// The request wanted no calendar, and there is one.
    #[error("there is such a calendar already, at version {0}")]
    Stands(Version),
    #[error("the calendar is at version {0}")]
    VersionConflict(Version),
    #[error("there is no calendar {0}, so it has no version")]
    NothingToMatch(CalendarName),
    #[error("{count} {} calendar {name}", if *count == 1 { "job names" } else { "jobs name" })]
    InUse {
        name: CalendarName,
        jobs: Vec<JobId>,
        count: u64,
    },
    #[error("there are {} calendars already", limits::CALENDARS_MAX)]
    Full,
}

/// What can be wrong with a request about a key that opens the API.
#[derive(Debug, thiserror::Error)]
pub enum KeyFault {
    #[error("there is no such key")]
    Missing,
    #[error("there are {} keys already", limits::KEYS_MAX)]
    Full,
    #[error("it is the last root key that does not expire")]
    LastRoot,
    /// The caller may do less than the key.
    #[error("a key with the role {own} neither makes nor revokes one with the role {role}")]
    Above { role: Role, own: Role },
}

/// What can be wrong with a request about a tenant.
#[derive(Debug, thiserror::Error)]
pub enum TenantFault {
    #[error("there is no tenant {0}")]
    Missing(TenantName),
    /// It was named beside something else; it may be there, and not be the caller's.
    #[error("there is no tenant {0} that this key may name")]
    Unknown(TenantName),
    #[error("there is a tenant {0} already")]
    Exists(TenantName),
    #[error("there are {} tenants already", limits::TENANTS_MAX)]
    Full,
    #[error("the tenant {} is always there", TenantName::DEFAULT)]
    Fixed,
    #[error("the tenant {name} has {what}")]
    InUse {
        name: TenantName,
        what: &'static str,
    },
}

/// What can be wrong with a request about a secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretFault {
    #[error("there is no secret {0}")]
    Missing(SecretName),
    #[error("there is a secret {0} already")]
    Exists(SecretName),
    #[error("there are {} secrets already", limits::SECRETS_MAX)]
    Full,
    #[error("the tenant of this key is gone")]
    NoTenant,
    #[error("this node has no master key")]
    NoMasterKey,
    #[error("there is no such signing secret")]
    SigningMissing,
    #[error("there are two signing secrets already")]
    SigningFull,
    #[error("the secret {0} stays closed: {1}")]
    Closed(SecretName, OpenError),
}

/// What a run waits for that nobody can wake.
fn why_not_woken(wait: Option<Wait>) -> &'static str {
    match wait {
        Some(_) => "waits for the job's run before it to end",
        None => "does not wait",
    }
}

/// What can be wrong with a user, or with a request about it.
#[derive(Debug, thiserror::Error)]
pub enum UserFault {
    #[error("there is no user {0}")]
    Missing(UserName),
    #[error("there is a user {0} already")]
    Exists(UserName),
    #[error("there are {} users, and no more are made", limits::USERS_MAX)]
    Full,
    #[error("{0} belongs to other tenants too, or may do more than you: only root may change it")]
    Elsewhere(UserName),
}
