//! Runs whose errors are alike, as they are answered.

use model::limits;
use serde::Serialize;
use utoipa::ToSchema;

use super::job_out::moment;
use crate::ops::find;

/// Runs by their errors, and how much was looked at for it.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunGroups {
    /// The largest first.
    pub items: Vec<RunGroup>,
    /// How many runs were looked at.
    pub scanned: u64,
    /// Whether these were all that are kept. If not, send the request again with `to` at `scanned_to`.
    pub complete: bool,
    /// The slot of the oldest run that was looked at, or when it was asked for.
    #[schema(format = DateTime)]
    pub scanned_to: Option<String>,
}

/// Runs whose errors differ in numbers, ids and addresses only.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunGroup {
    /// What went wrong in the last attempt, with `<n>`, `<id>` and `<address>` for what differs; none if no attempt said.
    #[schema(example = "api.example.com:<n> cannot be reached")]
    pub error: Option<String>,
    /// The target's own number for it: an HTTP status.
    pub status: Option<i32>,
    /// Why they ended, where no attempt said what went wrong.
    pub reason: Option<&'static str>,
    /// How many runs there are.
    pub count: u64,
    /// When the first of them ended.
    #[schema(format = DateTime)]
    pub first_at: String,
    /// When the last of them ended.
    #[schema(format = DateTime)]
    pub last_at: String,
    /// How many jobs they are of.
    pub jobs_count: u64,
    /// The first of these jobs, at most 10.
    pub jobs: Vec<String>,
    /// The newest run.
    pub example: String,
}

impl RunGroups {
    pub fn of(groups: &find::Groups) -> Self {
        Self {
            items: groups.items.iter().map(RunGroup::of).collect(),
            scanned: groups.scanned,
            complete: groups.complete,
            scanned_to: groups.scanned_to.as_ref().map(moment),
        }
    }
}

impl RunGroup {
    fn of(group: &find::Group) -> Self {
        let find::GroupKind {
            error,
            status,
            reason,
        } = &group.kind;
        let jobs = group.jobs.iter().take(limits::GROUP_JOBS_MAX);
        Self {
            error: error.clone(),
            status: *status,
            reason: *reason,
            count: group.count,
            first_at: moment(&group.first_at),
            last_at: moment(&group.last_at),
            jobs_count: group.jobs.len() as u64,
            jobs: jobs.map(ToString::to_string).collect(),
            example: group.example.to_string(),
        }
    }
}
