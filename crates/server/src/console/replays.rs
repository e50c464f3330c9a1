//! A replay in bulk: how far it is, and the way to stop it.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect};
use model::{ReplayId, Role};
use store::{Replay, ReplayState};

use super::fault::PageError;
use super::format::{State as Shown, When, count, words};
use super::frame::{Answer, Frame, face, page};
use super::job::Fact;
use super::viewer::{By, Posted, Viewer};
use crate::api::Api;
use crate::ops::replays;
use crate::problem::{Kind, Problem};
use crate::wire;

/// A replay in a list.
pub(super) struct ReplayRow {
    pub id: String,
    pub state: Shown,
    pub started: String,
    pub by: String,
    pub at: When,
    pub of: String,
}

fn state_of(state: ReplayState) -> Shown {
    match state {
        ReplayState::Running => Shown::new("running", "Running"),
        ReplayState::Done => Shown::new("ran", "Done"),
        ReplayState::Cancelled => Shown::new("skipped", "Stopped"),
        ReplayState::Failed => Shown::new("dead", "Failed"),
    }
}

/// Which runs it is of, in words.
fn words_of(shown: &wire::Replay) -> String {
    let Some(filter) = &shown.filter else {
        return "slots of one job".to_owned();
    };
    let states = filter.state.join(", ");
    let mut text = format!("{states} runs");
    if let Some(error) = &filter.error {
        text = format!("{text} with “{error}”");
    }
    if !filter.reason.is_empty() {
        let reasons: Vec<String> = filter.reason.iter().map(|it| words(it)).collect();
        text = format!("{text} for {}", reasons.join(", "));
    }
    text
}

impl ReplayRow {
    pub(super) fn of(viewer: &Viewer, replay: &Replay) -> Self {
        let shown = wire::Replay::of(replay);
        Self {
            state: state_of(replay.progress.state),
            started: count(replay.progress.started),
            at: face(viewer).when(replay.created_at),
            of: words_of(&shown),
            by: shown.actor,
            id: shown.id,
        }
    }
}

#[derive(Template)]
#[template(path = "replay.html")]
struct ReplayPage {
    frame: Frame,
    row: ReplayRow,
    facts: Vec<Fact>,
    note: Option<String>,
    is_running: bool,
    may_stop: bool,
}

fn id_of(text: &str) -> Result<ReplayId, PageError> {
    text.parse().map_err(|error: model::id::IdError| {
        Problem::new(Kind::ReplayNotFound, error.to_string()).into()
    })
}

pub(super) async fn show(
    State(api): State<Arc<Api>>,
    By(viewer): By,
    Path(id): Path<String>,
) -> Answer {
    let replay = replays::get(&api, viewer.id(), id_of(&id)?).await?;
    let progress = &replay.progress;
    let is_running = progress.state == ReplayState::Running;
    let fact = |name, value: u64, more: &str| Fact {
        name,
        value: count(value),
        more: more.to_owned(),
    };
    let text = ReplayPage {
        frame: Frame::new(&viewer, "Replay", "/dead").with_crumb("Replay", ""),
        facts: vec![
            fact("Started", progress.started, "new runs"),
            fact("Scanned", progress.scanned, "runs or slots"),
            fact(
                "Left out",
                progress.skipped,
                "the job is gone, or has a run",
            ),
            fact("At most", replay.limit, "runs"),
            fact("Rate", replay.rate.into(), "runs a second"),
        ],
        row: ReplayRow::of(&viewer, &replay),
        note: progress.note.clone(),
        may_stop: is_running && viewer.may(Role::Operator),
        is_running,
    };
    Ok(page(StatusCode::OK, text.render()?))
}

/// Starts nothing more of it.
pub(super) async fn stop(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Answer {
    posted.by.needs(Role::Operator)?;
    replays::cancel(&api, posted.by.id(), id_of(&id)?).await?;
    Ok(Redirect::to(&format!("/replays/{id}")).into_response())
}
