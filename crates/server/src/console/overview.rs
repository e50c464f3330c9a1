//! The overview: whether all is well, in five seconds.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use model::{JobState, Role, RunState};
use store::{JobFilter, Page};

use super::format::{State as Shown, count};
use super::frame::{Answer, Frame, page};
use super::jobs::{Row, row};
use super::lists::{Cell, Table, node_rows};
use super::runs::{self, RunRow};
use super::viewer::{By, Viewer};
use crate::api::Api;
use crate::ops::{jobs, tenants};

/// What is counted one by one; more is "so many or more".
const COUNTED: usize = 100;
const SHOWN: usize = 10;

/// Something that needs a look.
struct Attention {
    state: Shown,
    text: String,
    href: &'static str,
    verb: &'static str,
}

struct Figure {
    name: &'static str,
    value: String,
    more: String,
    href: &'static str,
}

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    frame: Frame,
    attention: Vec<Attention>,
    figures: Vec<Figure>,
    live: Vec<RunRow>,
    ended: Vec<RunRow>,
    invalid: Vec<Row>,
    nodes: Option<Table>,
}

fn at_least(number: usize) -> String {
    if number >= COUNTED {
        format!("{COUNTED}+")
    } else {
        count(number as u64)
    }
}

async fn counted(
    api: &Api,
    viewer: &Viewer,
    state: JobState,
) -> Result<Vec<model::Job>, super::fault::PageError> {
    let filter = JobFilter {
        states: vec![state],
        ..JobFilter::default()
    };
    let of = Page {
        before: None,
        limit: COUNTED,
    };
    Ok(jobs::list(api, viewer.id(), &filter, of).await?.items)
}

/// What needs a look now.
fn attention(dead: usize, invalid: usize) -> Vec<Attention> {
    let mut attention = Vec::new();
    if dead > 0 {
        let what = if dead == 1 { "run is" } else { "runs are" };
        attention.push(Attention {
            state: Shown::new("dead", ""),
            text: format!("{} {what} dead and will not be tried again", at_least(dead)),
            href: "/dead",
            verb: "Open",
        });
    }
    if invalid > 0 {
        let what = if invalid == 1 {
            "job cannot"
        } else {
            "jobs cannot"
        };
        attention.push(Attention {
            state: Shown::new("missed", ""),
            text: format!("{} {what} be planned any more", at_least(invalid)),
            href: "/jobs?state=invalid",
            verb: "Open",
        });
    }
    attention
}

fn figures(jobs: u64, [paused, live, retrying, dead]: [usize; 4]) -> Vec<Figure> {
    let figure = |name, value, more: &str, href| Figure {
        name,
        value,
        more: more.to_owned(),
        href,
    };
    let of = at_least;
    vec![
        figure("Jobs", count(jobs), "of this tenant", "/jobs"),
        figure(
            "Paused",
            of(paused),
            "none of their slots run",
            "/jobs?state=paused",
        ),
        figure(
            "Under way",
            of(live),
            "running or ready",
            "/runs?state=running",
        ),
        figure(
            "Retrying",
            of(retrying),
            "wait for another attempt",
            "/runs?state=retrying",
        ),
        figure("Dead", of(dead), "within the history that is kept", "/dead"),
    ]
}

pub(super) async fn show(State(api): State<Arc<Api>>, By(viewer): By) -> Answer {
    let of = async |states: &[RunState]| runs::rows(&api, &viewer, states, None, COUNTED).await;
    let (live, _) = of(&[RunState::Running, RunState::Ready]).await?;
    let (retrying, _) = of(&[RunState::Retrying]).await?;
    let (dead, _) = of(&[RunState::Dead]).await?;
    let (ended, _) = of(&[RunState::Succeeded, RunState::Dead, RunState::Cancelled]).await?;
    let invalid = counted(&api, &viewer, JobState::Invalid).await?;
    let paused = counted(&api, &viewer, JobState::Paused).await?;
    let (used, _) = tenants::usage(&api, &viewer.tenant).await?;
    let counts = [paused.len(), live.len(), retrying.len(), dead.len()];
    let shown = invalid.iter().take(SHOWN);
    let text = OverviewPage {
        frame: Frame::new(&viewer, "Overview", "/"),
        attention: attention(dead.len(), invalid.len()),
        figures: figures(used.jobs, counts),
        live: live.into_iter().chain(retrying).take(SHOWN).collect(),
        ended: ended.into_iter().take(SHOWN).collect(),
        invalid: shown.map(|job| row(&viewer, job)).collect(),
        nodes: viewer.may(Role::Root).then(|| node_rows(&viewer, &api)),
    };
    Ok(page(StatusCode::OK, text.render()?))
}
