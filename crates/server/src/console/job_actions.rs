//! What may be done to a job.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect};
use model::{Role, Version};

use super::frame::Answer;
use super::job::find;
use super::jobs::name_of;
use super::viewer::Posted;
use crate::api::Api;
use crate::ops::{Expect, Mode, jobs, versions};
use crate::problem::{Kind, Problem};

pub(super) async fn pause(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Answer {
    posted.by.needs(Role::Operator)?;
    let job = find(&api, &posted.by, &id).await?;
    let note = posted.fields.get("note").trim().to_owned();
    let note = Some(note).filter(|note| !note.is_empty());
    jobs::pause(&api, posted.by.caller, job.id, note, &Expect::Anything).await?;
    Ok(Redirect::to(&format!("/jobs/{id}?done=paused")).into_response())
}

pub(super) async fn resume(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Answer {
    posted.by.needs(Role::Operator)?;
    let job = find(&api, &posted.by, &id).await?;
    let catch_up = posted.fields.get("catch_up") == "yes";
    jobs::resume(&api, posted.by.caller, job.id, catch_up, &Expect::Anything).await?;
    Ok(Redirect::to(&format!("/jobs/{id}?done=resumed")).into_response())
}

pub(super) async fn run(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Answer {
    posted.by.needs(Role::Operator)?;
    let job = find(&api, &posted.by, &id).await?;
    let request = crate::ops::runs::StartRequest::default();
    let run = crate::ops::runs::start(&api, posted.by.id(), job.id, request).await?;
    Ok(Redirect::to(&format!("/runs/{}?done=started", run.id)).into_response())
}

pub(super) async fn delete(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Answer {
    posted.by.needs(Role::Admin)?;
    let job = find(&api, &posted.by, &id).await?;
    let name = name_of(&job);
    if posted.fields.get("sure") != name {
        let detail = format!("to delete it, write its name, {name}, into the field");
        return Err(Problem::new(Kind::ParameterInvalid, detail)
            .at("sure")
            .into());
    }
    jobs::delete(&api, posted.by.caller, job, &Expect::Anything).await?;
    Ok(Redirect::to("/jobs").into_response())
}

pub(super) async fn revert(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Answer {
    posted.by.needs(Role::Admin)?;
    let job = find(&api, &posted.by, &id).await?;
    let to =
        posted.fields.get("to").parse().map(Version).map_err(|_| {
            Problem::new(Kind::ParameterInvalid, "to is a version's number").at("to")
        })?;
    // Whoever changed it since the page was drawn is not overwritten.
    let seen = posted.fields.get("version").parse().map(Version);
    let expect = seen.map_or(Expect::Anything, |seen| Expect::OneOf(vec![seen]));
    versions::revert(&api, posted.by.caller, job.id, to, (&expect, Mode::Write)).await?;
    Ok(Redirect::to(&format!("/jobs/{id}?done=reverted")).into_response())
}
