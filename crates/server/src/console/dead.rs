//! Dead runs, all of them, by what went wrong; and the way to replay them together.
//!
//! What always holds: whoever replays has seen how many there are, and of which errors.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect};
use model::{Reason, Role, RunMatch, RunState, limits};
use store::{Page, RunFilter, RunFind};

use super::format::{When, count, encode, words};
use super::frame::{Answer, Frame, face, page};
use super::jobs::{cursor, shown};
use super::login::param;
use super::replays::ReplayRow;
use super::runs::{self, RunRow};
use super::viewer::{By, Posted, Viewer};
use crate::api::Api;
use crate::ops::replays::{self, ReplayDraft};
use crate::ops::{FieldError, find};

const PAGE: usize = 50;
/// Replays that are named.
const REPLAYS: usize = 5;

/// Runs whose errors are alike.
struct GroupRow {
    says: String,
    status: Option<i32>,
    count: String,
    jobs: String,
    first: When,
    last: When,
    example: String,
    /// The page of these runs.
    href: String,
}

#[derive(Template)]
#[template(path = "dead.html")]
struct DeadPage {
    frame: Frame,
    groups: Vec<GroupRow>,
    /// How many there are, and whether there may be more.
    total: u64,
    count: String,
    is_complete: bool,
    may_replay: bool,
    error: String,
    reason: String,
    wrong: Option<String>,
    is_filtered: bool,
    rows: Vec<RunRow>,
    next: Option<String>,
    replays: Vec<ReplayRow>,
}

/// Which dead runs are meant.
fn found_by(error: &str, reason: &str) -> Result<RunFind, String> {
    if error.len() > limits::ERROR_MAX {
        return Err(format!(
            "A part of an error has at most {} bytes.",
            limits::ERROR_MAX
        ));
    }
    let known = Reason::parse(reason);
    if known.is_none() && !reason.is_empty() {
        return Err(format!("No run is dead for {:?}.", shown(reason)));
    }
    Ok(RunFind {
        filter: RunFilter {
            states: vec![RunState::Dead],
            ..RunFilter::default()
        },
        matches: RunMatch {
            reasons: known.into_iter().collect(),
            error: Some(error.to_owned()).filter(|error| !error.is_empty()),
            ..RunMatch::default()
        },
    })
}

fn group_row(viewer: &Viewer, group: &find::Group) -> GroupRow {
    let kind = &group.kind;
    let (says, href) = match (&kind.error, kind.reason) {
        (Some(error), _) => (error.clone(), format!("/dead?error={}", encode(error))),
        (None, Some(reason)) => (words(reason), format!("/dead?reason={reason}")),
        (None, None) => (
            "no attempt said what went wrong".to_owned(),
            "/dead".to_owned(),
        ),
    };
    let face = face(viewer);
    let jobs = group.jobs.len() as u64;
    GroupRow {
        says,
        status: kind.status,
        count: count(group.count),
        jobs: if jobs == 1 {
            "1 job".to_owned()
        } else {
            format!("{} jobs", count(jobs))
        },
        first: face.when(group.first_at),
        last: face.when(group.last_at),
        example: group.example.to_string(),
        href,
    }
}

pub(super) async fn show(
    State(api): State<Arc<Api>>,
    By(viewer): By,
    Query(params): Query<Vec<(String, String)>>,
) -> Answer {
    let text = |name: &str| param(&params, name).trim().to_owned();
    let (error, reason) = (text("error"), text("reason"));
    let is_filtered = !error.is_empty() || !reason.is_empty();
    let wanted =
        found_by(&error, &reason).and_then(|find| Ok((find, cursor(param(&params, "before"))?)));
    let (groups, listed, wrong) = match wanted {
        Ok((find, before)) => {
            let groups = find::groups(&api, viewer.id(), &find).await?;
            let of = Page {
                before,
                limit: PAGE,
            };
            let listed = find::list(&api, viewer.id(), &find, of).await?;
            (groups, Some(listed), None)
        }
        Err(why) => (find::Groups::default(), None, Some(why)),
    };
    let status = wrong
        .as_ref()
        .map_or(StatusCode::OK, |_| StatusCode::BAD_REQUEST);
    let items = listed.as_ref().map_or(&[][..], |listed| &listed.items);
    let rows = runs::named(&api, &viewer, items).await?;
    let next = listed.as_ref().and_then(|listed| listed.next);
    let latest = Page {
        before: None,
        limit: REPLAYS,
    };
    let replays = replays::list(&api, viewer.id(), latest).await?.items;
    let total = groups.items.iter().map(|group| group.count).sum::<u64>();
    let query = format!("error={}&reason={}", encode(&error), encode(&reason));
    let text = DeadPage {
        frame: Frame::new(&viewer, "Dead", "/dead"),
        count: count(total),
        total,
        is_complete: groups.complete,
        groups: groups
            .items
            .iter()
            .map(|group| group_row(&viewer, group))
            .collect(),
        may_replay: viewer.may(Role::Operator) && total > 0,
        wrong,
        is_filtered,
        rows,
        next: next.map(|next| format!("/dead?{query}&before={next}")),
        replays: replays
            .iter()
            .map(|it| ReplayRow::of(&viewer, it))
            .collect(),
        error,
        reason,
    };
    Ok(page(status, text.render()?))
}

/// Replays every dead run that the page counted, as the API does: a node works through them.
pub(super) async fn replay(State(api): State<Arc<Api>>, posted: Posted) -> Answer {
    posted.by.needs(Role::Operator)?;
    let text = |name: &str| posted.fields.get(name).trim();
    let refuse = |why: String| crate::ops::OpError::from(FieldError::invalid("error", why));
    let find = found_by(text("error"), text("reason")).map_err(refuse)?;
    let draft = ReplayDraft {
        find,
        ..ReplayDraft::default()
    };
    let made = replays::create(&api, posted.by.id(), &posted.by.name, draft).await?;
    Ok(Redirect::to(&format!("/replays/{}", made.id)).into_response())
}
