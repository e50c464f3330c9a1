//! The JSON we promise. Reading and writing are apart: `read` walks an object's fields without
//! building a tree, `job_in`, `schedule_in`, `target_in`, `calendar_in`, `keys` and `requests` say what each may
//! hold; `job_out`, `run_out`, `slots_out`, `explain_out`, `calendar_out` and `node_out` are the answers, `schema`
//! describes requests for the contract.
//!
//! What always holds: a request with a field nobody knows, twice the same field, or a value out of
//! its type is refused with the path of the field; what was accepted is answered in full.

mod calendar_in;
mod calendar_out;
mod depth;
mod explain_out;
mod job_in;
mod job_out;
mod keys;
mod node_out;
mod read;
mod requests;
mod run_out;
mod schedule_in;
pub mod schema;
mod slots_out;
mod sound;
mod suggest;
mod target_in;
mod tenants;

pub use calendar_in::{CALENDAR_FIELDS, RANGE_FIELDS, calendar_draft, name_of};
pub use calendar_out::{Calendar, CalendarList};
pub use explain_out::{Explained, ExplainedStep};
pub use job_in::{CATCH_UP_FIELDS, JOB_FIELDS, OVERLAP_FIELDS, RETRY_FIELDS, job_draft};
pub use job_out::{Job, JobAnswer, JobList, Runs, Schedule, Slots};
pub use keys::{AccessKey, AccessKeyList, KEY_FIELDS, NewAccessKey, key_draft};
pub use node_out::{Node, NodeList};
pub use requests::{
    PAUSE_FIELDS, PREVIEW_FIELDS, PauseRequest, RESUME_FIELDS, START_FIELDS, nothing, pause,
    preview, resume, start,
};
pub use run_out::{Attempt, ExcludedSlot, Preview, Run, RunAnswer, RunList};
pub use schedule_in::SCHEDULE_FIELDS;
pub use slots_out::{SlotEntry, SlotList};
pub use target_in::HTTP_FIELDS;
pub use tenants::{
    TENANT_FIELDS, TENANT_PATCH_FIELDS, Tenant, TenantList, tenant_draft, tenant_note,
};

#[cfg(test)]
#[path = "texts_tests.rs"]
mod tests;
