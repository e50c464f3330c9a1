//! Versions of jobs over REST.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use model::{JobId, Version};

use super::answer::{self, Answer};
use super::extract::{DryRun, JobPath, JsonBody, NoParams, Params, expect, job_id};
use super::who::{self, Admin, Reader};
use crate::api::Api;
use crate::ops::versions;
use crate::problem::{Kind, Problem};
use crate::wire::{self, schema};

/// A job and one of its versions in the path.
pub(super) struct VersionPath(JobId, Version);

impl FromRequestParts<Arc<Api>> for VersionPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let path = Path::<(String, String)>::from_request_parts(parts, api).await;
        let unread = |_| Problem::new(Kind::JobNotFound, "the path is not UTF-8");
        let Path((job, version)) = path.map_err(unread)?;
        let job = match job_id(api, who::tenant(parts)?, &job).await? {
            Ok(id) => id,
            Err(why) => return Err(Problem::new(Kind::JobNotFound, why).at("id")),
        };
        let no_number = |_| {
            let detail = "a version is a number, from 1";
            Problem::new(Kind::VersionNotFound, detail).at("version")
        };
        let version = version.parse().map(Version).map_err(no_number)?;
        Ok(Self(job, version))
    }
}

/// List what a job was, who changed it and what, newest first.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/versions", tag = "jobs", operation_id = "list_versions_of_job",
    params(
        ("id" = String, Path, description = "The job's id, or `key:` and its key"),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
        ("limit" = Option<u32>, Query, description = "1 to 1000; a page has at most 20"),
    ),
    responses(
        (status = 200, body = wire::JobVersionList, description = "A page of versions"),
    ),
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    Reader(tenant): Reader,
    JobPath(id): JobPath,
    params: Params,
) -> Answer {
    params.known(&["cursor", "limit"])?;
    let listed = versions::list(&api, tenant, id, answer::page(&params)?).await?;
    answer::json(
        StatusCode::OK,
        &wire::JobVersionList {
            items: listed.items.iter().map(wire::JobVersion::of).collect(),
            next_cursor: listed.next.as_ref().map(answer::cursor),
        },
    )
}

/// Show a job as it was at a version.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/versions/{version}", tag = "jobs", operation_id = "get_version_of_job",
    params(
        ("id" = String, Path, description = "The job's id, or `key:` and its key"),
        ("version" = u32, Path, description = "The version's number"),
    ),
    responses(
        (status = 200, body = wire::JobVersionAnswer, description = "The version"),
    ),
)]
pub(super) async fn show(
    State(api): State<Arc<Api>>,
    Reader(tenant): Reader,
    VersionPath(id, version): VersionPath,
    _: NoParams,
) -> Answer {
    let found = versions::get(&api, tenant, id, version).await?;
    answer::json(StatusCode::OK, &wire::JobVersionAnswer::of(&found))
}

/// Make a job what it was at a version: an edit, with a version of its own.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/revert", tag = "jobs", operation_id = "revert_job",
    params(
        ("id" = String, Path, description = "The job's id, or `key:` and its key"),
        ("dry_run" = Option<bool>, Query, description = "Check everything, show what would be, and write nothing"),
        ("If-Match" = Option<String>, Header, description = "The version that is to be changed"),
    ),
    request_body = schema::RevertBody,
    responses(
        (status = 200, body = wire::JobAnswer, description = "The job, with what changed"),
    ),
)]
pub(super) async fn revert(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    JobPath(id): JobPath,
    DryRun(mode): DryRun,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Answer {
    let expect = expect(&headers)?;
    let to = wire::revert(&body)?;
    let changed = versions::revert(&api, caller, id, to, (&expect, mode)).await?;
    answer::changed(&changed, mode)
}
