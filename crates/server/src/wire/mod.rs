//! The JSON we promise. Reading and writing are apart: `read` walks an object's fields without
//! building a tree, `job_in`, `schedule_in`, `target_in` and `requests` say what each may hold;
//! `job_out` and `run_out` are the answers, `schema` describes requests for the contract.
//!
//! What always holds: a request with a field nobody knows, twice the same field, or a value out of
//! its type is refused with the path of the field; what was accepted is answered in full.

mod depth;
mod job_in;
mod job_out;
mod read;
mod requests;
mod run_out;
mod schedule_in;
pub mod schema;
mod sound;
mod suggest;
mod target_in;

pub use job_in::{CATCH_UP_FIELDS, JOB_FIELDS, OVERLAP_FIELDS, RETRY_FIELDS, job_draft};
pub use job_out::{Job, JobAnswer, JobList, Runs, Schedule, Slots};
pub use requests::{
    PAUSE_FIELDS, PREVIEW_FIELDS, PauseRequest, PreviewRequest, START_FIELDS, nothing, pause,
    preview, start,
};
pub use run_out::{Attempt, Preview, Run, RunAnswer, RunList};
pub use schedule_in::SCHEDULE_FIELDS;
pub use target_in::HTTP_FIELDS;
