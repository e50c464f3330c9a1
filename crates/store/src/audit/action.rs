//! What is done.

use std::fmt;

/// What a change did; what clients filter by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    JobCreate,
    JobEdit,
    JobPause,
    JobResume,
    JobDelete,
    /// Its next slot moved with its calendars or its zone.
    JobReschedule,
    /// The last slot of a job that recurs is decided. A one-off says so by its run.
    JobFinish,
    /// It cannot be planned any more.
    JobInvalid,
    RunStart,
    RunReplay,
    RunCancel,
    /// A run that waits for something outside of its job was woken by hand.
    RunWake,
    ReplayCreate,
    /// It is done, or was cancelled.
    ReplayEnd,
    AlertCreate,
    AlertEdit,
    AlertDelete,
    CalendarCreate,
    CalendarEdit,
    CalendarDelete,
    KeyCreate,
    KeyRevoke,
    TenantCreate,
    TenantEdit,
    TenantDelete,
    SecretPut,
    SecretDelete,
    SecretRewrap,
    SigningCreate,
    SigningDelete,
    UserCreate,
    UserEdit,
    UserDelete,
    UserLogin,
    UserLogout,
    /// A link that logs in once.
    UserLink,
    LevelRaise,
    AuditDrop,
}

impl Action {
    pub const ALL: [Self; 38] = [
        Self::JobCreate,
        Self::JobEdit,
        Self::JobPause,
        Self::JobResume,
        Self::JobDelete,
        Self::JobReschedule,
        Self::JobFinish,
        Self::JobInvalid,
        Self::RunStart,
        Self::RunReplay,
        Self::RunCancel,
        Self::RunWake,
        Self::ReplayCreate,
        Self::ReplayEnd,
        Self::AlertCreate,
        Self::AlertEdit,
        Self::AlertDelete,
        Self::CalendarCreate,
        Self::CalendarEdit,
        Self::CalendarDelete,
        Self::KeyCreate,
        Self::KeyRevoke,
        Self::TenantCreate,
        Self::TenantEdit,
        Self::TenantDelete,
        Self::SecretPut,
        Self::SecretDelete,
        Self::SecretRewrap,
        Self::SigningCreate,
        Self::SigningDelete,
        Self::UserCreate,
        Self::UserEdit,
        Self::UserDelete,
        Self::UserLogin,
        Self::UserLogout,
        Self::UserLink,
        Self::LevelRaise,
        Self::AuditDrop,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::JobCreate => "job.create",
            Self::JobEdit => "job.edit",
            Self::JobPause => "job.pause",
            Self::JobResume => "job.resume",
            Self::JobDelete => "job.delete",
            Self::JobReschedule => "job.reschedule",
            Self::JobFinish => "job.finish",
            Self::JobInvalid => "job.invalid",
            Self::RunStart => "run.start",
            Self::RunReplay => "run.replay",
            Self::RunCancel => "run.cancel",
            Self::RunWake => "run.wake",
            Self::ReplayCreate => "replay.create",
            Self::ReplayEnd => "replay.end",
            Self::AlertCreate => "alert.create",
            Self::AlertEdit => "alert.edit",
            Self::AlertDelete => "alert.delete",
            Self::CalendarCreate => "calendar.create",
            Self::CalendarEdit => "calendar.edit",
            Self::CalendarDelete => "calendar.delete",
            Self::KeyCreate => "key.create",
            Self::KeyRevoke => "key.revoke",
            Self::TenantCreate => "tenant.create",
            Self::TenantEdit => "tenant.edit",
            Self::TenantDelete => "tenant.delete",
            Self::SecretPut => "secret.put",
            Self::SecretDelete => "secret.delete",
            Self::SecretRewrap => "secret.rewrap",
            Self::SigningCreate => "signing.create",
            Self::SigningDelete => "signing.delete",
            Self::UserCreate => "user.create",
            Self::UserEdit => "user.edit",
            Self::UserDelete => "user.delete",
            Self::UserLogin => "user.login",
            Self::UserLogout => "user.logout",
            Self::UserLink => "user.link",
            Self::LevelRaise => "level.raise",
            Self::AuditDrop => "audit.drop",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == text)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
