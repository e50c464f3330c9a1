//! The JSON we promise. Reading and writing are apart: `read` walks an object's fields without
//! building a tree, `job_in`, `schedule_in`, `target_in`, `calendar_in`, `keys` and `requests` say what each may
//! hold; `job_out`, `http_out`, `run_out`, `groups`, `slots_out`, `explain_out`, `calendar_out`, `node_out`, `forecast_out` and `overview_out` are the answers, `schema`
//! describes requests for the contract.
//!
//! What always holds: a request with a field nobody knows, twice the same field, or a value out of
//! its type is refused with the path of the field; what was accepted is answered in full.

mod alerts;
mod audit_out;
mod calendar_in;
mod calendar_out;
mod depth;
mod event_out;
mod explain_out;
mod forecast_out;
mod groups;
mod http_out;
mod job_in;
mod job_out;
mod keys;
mod node_out;
mod outside;
mod overview_out;
mod python_in;
mod read;
mod replays;
mod requests;
mod run_out;
mod schedule_in;
pub mod schema;
mod schema_access;
mod schema_target;
mod secrets;
mod shell_in;
mod signing;
mod slots_out;
mod sound;
mod success_in;
mod suggest;
mod target_in;
mod target_out;
mod tenants;
mod users;
mod versions;

pub use alerts::{ALERT_FIELDS, Alert, AlertList, AlertOfJob, MUTE_FIELDS, alert_draft, mute};
pub use audit_out::{AuditCheck, AuditEntry, AuditList, AuditWrong};
pub use calendar_in::{CALENDAR_FIELDS, RANGE_FIELDS, calendar_draft, name_of};
pub use calendar_out::{Calendar, CalendarList};
pub use event_out::Event;
pub use explain_out::{Explained, ExplainedStep};
pub use forecast_out::{
    Forecast, ForecastJob, ForecastLane, ForecastPoint, ForecastSecond, HotSecond,
};
pub use groups::{RunGroup, RunGroups};
pub(crate) use http_out::command_line;
pub use job_in::{CATCH_UP_FIELDS, JOB_FIELDS, OVERLAP_FIELDS, RETRY_FIELDS, job_draft};
pub use job_out::{Expressions, Job, JobAnswer, JobList, Overlap, Runs, Schedule, Slots};
pub use keys::{AccessKey, AccessKeyList, KEY_FIELDS, NewAccessKey, key_draft};
pub use node_out::{Node, NodeList};
pub use outside::{
    HEARTBEAT_FIELDS, HandedOver, HeartbeatAnswer, OUTCOMES, REPORT_FIELDS, ReportAnswer, RunLog,
    heartbeat, report,
};
pub use overview_out::{Overview, OverviewAttention, OverviewCounts, OverviewLane, OverviewPoint};
pub use python_in::PYTHON_FIELDS;
pub use read::FIELDS_MAX;
pub use replays::{
    BACKFILL_FIELDS, Backfill, FILTER_FIELDS, REPLAY_FIELDS, Replay, ReplayFilter, ReplayList,
    backfill_draft, replay_draft,
};
pub use requests::{
    PAUSE_FIELDS, PREVIEW_FIELDS, PauseRequest, RESUME_FIELDS, START_FIELDS, nothing, pause,
    preview, resume, start,
};
pub use run_out::{Attempt, ExcludedSlot, Preview, Run, RunAnswer, RunList};
pub use schedule_in::SCHEDULE_FIELDS;
pub use secrets::{RewrapAnswer, SECRET_FIELDS, Secret, SecretList, secret_draft, secret_name_of};
pub use shell_in::SHELL_FIELDS;
pub use signing::{
    SIGNING_FIELDS, SigningSecret, SigningSecretList, SigningSecretMade, signing_draft,
};
pub use slots_out::{SlotEntry, SlotList};
pub use target_in::HTTP_FIELDS;
pub use target_out::{Origin, TargetList};
pub use tenants::{
    QUOTA_FIELDS, TENANT_FIELDS, TENANT_PATCH_FIELDS, Tenant, TenantList, tenant_draft,
    tenant_patch,
};

pub use users::{ConsoleLink, USER_FIELDS, User, UserList, user_draft};
pub use versions::{JobVersion, JobVersionAnswer, JobVersionList, REVERT_FIELDS, revert};

#[cfg(test)]
#[path = "texts_tests.rs"]
mod tests;
