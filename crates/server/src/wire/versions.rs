//! Versions of jobs as we answer them, and the request to go back to one.

use model::Version;
use serde::Serialize;
use serde_json::Value as Json;
use utoipa::ToSchema;

use super::job_out::{Job, moment};
use super::read::{self, Read};
use crate::ops::versions::VersionOf;
use crate::ops::{Fault, FieldError};

pub const REVERT_FIELDS: [&str; 1] = ["to"];

/// Reads to which version a job is to go back.
pub fn revert(body: &[u8]) -> Read<Version> {
    let fields = read::document(body, &REVERT_FIELDS)?;
    let most = i64::from(u32::MAX);
    let to = fields.get("to", |value, path| value.integer(path, 1, most))?;
    let missing = || {
        FieldError::new(
            Fault::Missing,
            "to",
            "to is missing: write a version's number",
        )
    };
    let to = to.ok_or_else(missing)?;
    Ok(Version(u32::try_from(to).unwrap_or(u32::MAX)))
}

/// One version of a job.
#[derive(Debug, Serialize, ToSchema)]
pub struct JobVersion {
    /// Its number. Pauses and the like have numbers too, and no version of their own.
    pub version: u32,
    /// When it was made; none where that is not kept any more.
    #[schema(format = DateTime)]
    pub made_at: Option<String>,
    /// Who made it; none of the first, and where that is not kept any more.
    pub made_by: Option<String>,
    /// When it was changed; none of the one that stands.
    #[schema(format = DateTime)]
    pub ended_at: Option<String>,
    /// Who changed it.
    pub ended_by: Option<String>,
    /// Fields of the job that are other than in the version before; none where that is not kept.
    pub changed: Option<Vec<String>>,
}

/// One version of a job, with the job as it was.
#[derive(Debug, Serialize, ToSchema)]
pub struct JobVersionAnswer {
    #[serde(flatten)]
    pub about: JobVersion,
    /// The job with the key and the definition of this version; where it stands is as it is now.
    pub job: Job,
}

impl JobVersion {
    pub fn of(version: &VersionOf) -> Self {
        let made = version.made.as_ref();
        let ended = version.ended.as_ref();
        Self {
            version: version.job.version.0,
            made_at: made.map(|(at, _)| moment(at)),
            made_by: made.and_then(|(_, by)| by.clone()),
            ended_at: ended.map(|(at, _)| moment(at)),
            ended_by: ended.map(|(_, by)| by.clone()),
            changed: version
                .before
                .as_ref()
                .map(|before| changed(before, &version.job)),
        }
    }
}

impl JobVersionAnswer {
    pub fn of(version: &VersionOf) -> Self {
        Self {
            about: JobVersion::of(version),
            job: Job::of(&version.job),
        }
    }
}

/// Fields that say where a job stands, and not what it is.
const STANDING: [&str; 3] = ["version", "updated_at", "created_at"];

fn changed(before: &model::Job, after: &model::Job) -> Vec<String> {
    let fields = |job: &model::Job| match serde_json::to_value(Job::of(job)) {
        Ok(Json::Object(fields)) => fields,
        Ok(_) | Err(_) => serde_json::Map::new(),
    };
    let (before, after) = (fields(before), fields(after));
    let differs = |name: &&String| {
        !STANDING.contains(&name.as_str()) && before.get(*name) != after.get(*name)
    };
    let names = after.keys().filter(differs);
    names.cloned().collect()
}

/// A page of a job's versions.
#[derive(Debug, Serialize, ToSchema)]
pub struct JobVersionList {
    /// Newest first; the one that stands is the first of all.
    pub items: Vec<JobVersion>,
    /// Where the next page begins; none on the last.
    pub next_cursor: Option<String>,
}
