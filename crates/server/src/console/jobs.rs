//! Jobs: search, filters that are the address, pages by cursor.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use model::{Job, JobId, JobState, Role, limits};
use store::{JobFilter, Page};

use super::format::{State as Shown, When, encode};
use super::frame::{Answer, Frame, face, page};
use super::login::param;
use super::viewer::{By, Viewer};
use crate::api::Api;
use crate::ops::jobs;
use crate::wire;

const PAGE: usize = 50;

pub(super) struct Row {
    pub id: String,
    pub name: String,
    pub words: String,
    pub state: Shown,
    pub next: Option<When>,
    pub target: String,
    pub method: String,
    pub lane: &'static str,
    pub owner: Option<String>,
    pub labels: Vec<String>,
}

/// What a job is called: by its key, or by its id.
pub(super) fn name_of(job: &Job) -> String {
    job.key
        .as_ref()
        .map_or_else(|| job.id.to_string(), ToString::to_string)
}

pub(super) fn schedule_words(job: &Job) -> String {
    job.def.schedule.words()
}

pub(super) fn row(viewer: &Viewer, job: &Job) -> Row {
    let shown = wire::Job::of(job);
    let command = wire::command_line(&shown.target);
    let http = shown.target.http;
    let label = |(name, value): (&String, &String)| format!("{name}={value}");
    Row {
        id: job.id.to_string(),
        name: name_of(job),
        words: schedule_words(job),
        state: Shown::of_job(job.state),
        next: job
            .next_slot
            .map(|slot| face(viewer).when(job.due_at(slot))),
        target: http.as_ref().map_or(command, |http| http.url.clone()),
        method: http.map_or_else(|| job.def.target.kind().to_owned(), |http| http.method),
        lane: job.def.lane.as_str(),
        owner: shown.owner,
        labels: job.def.labels.iter().map(label).collect(),
    }
}

/// A filter that is set, and the address without it.
pub(super) struct Chip {
    pub name: &'static str,
    pub value: String,
    pub without: String,
}

#[derive(Template)]
#[template(path = "jobs.html")]
struct JobsPage {
    frame: Frame,
    may_create: bool,
    q: String,
    state: String,
    states: Vec<(&'static str, String)>,
    label: String,
    owner: String,
    chips: Vec<Chip>,
    /// Why the filter means nothing.
    error: Option<String>,
    rows: Vec<Row>,
    is_filtered: bool,
    /// The address of the next page.
    next: Option<String>,
    first: Option<String>,
}

const FILTERS: [&str; 4] = ["q", "state", "label", "owner"];

fn query(set: &[(&'static str, String)], without: Option<&str>) -> String {
    let parts = set
        .iter()
        .filter(|(name, value)| Some(*name) != without && !value.is_empty());
    let parts: Vec<String> = parts
        .map(|(name, value)| format!("{name}={}", encode(value)))
        .collect();
    if parts.is_empty() {
        "/jobs".to_owned()
    } else {
        format!("/jobs?{}", parts.join("&"))
    }
}

/// What a filter means; why it cannot mean anything.
fn filter(set: &[(&'static str, String); 4]) -> Result<JobFilter, String> {
    let [(_, q), (_, state), (_, label), (_, owner)] = set;
    for (name, text) in [("search", q), ("owner", owner)] {
        if text.len() > limits::NAME_MAX {
            let max = limits::NAME_MAX;
            return Err(format!("The {name} is too long: at most {max} bytes."));
        }
    }
    let known = JobState::parse(state);
    if known.is_none() && !state.is_empty() {
        let all = JobState::ALL.map(JobState::as_str).join(", ");
        let state = shown(state);
        return Err(format!("No job is {state:?}: choose one of {all}."));
    }
    let labels = match label.split_once('=') {
        None if label.is_empty() => Vec::new(),
        Some((name, value)) if !name.is_empty() && label.len() <= 2 * limits::NAME_MAX + 1 => {
            vec![(name.to_owned(), value.to_owned())]
        }
        Some(_) | None => {
            let label = shown(label);
            return Err(format!(
                "{label:?} is no label: write name=value, such as team=billing."
            ));
        }
    };
    Ok(JobFilter {
        states: known.into_iter().collect(),
        labels,
        q: Some(q.clone()).filter(|q| !q.is_empty()),
        owner: Some(owner.clone()).filter(|owner| !owner.is_empty()),
    })
}

/// As much of what was typed as is worth saying again.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Where a page begins; why not.
pub(super) fn cursor<T: std::str::FromStr>(text: &str) -> Result<Option<T>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let read = text.parse().map(Some);
    read.map_err(|_| format!("No page begins at {:?}: begin with the first.", shown(text)))
}

pub(super) async fn list(
    State(api): State<Arc<Api>>,
    By(viewer): By,
    Query(params): Query<Vec<(String, String)>>,
) -> Answer {
    let set = FILTERS.map(|name| (name, param(&params, name).trim().to_owned()));
    let [q, state, label, owner] = set.clone().map(|(_, value)| value);
    let before = cursor::<JobId>(param(&params, "before"));
    let wanted = filter(&set).and_then(|filter| Ok((filter, before?)));
    let (listed, first, error) = match wanted {
        Ok((filter, before)) => {
            let of = Page {
                before,
                limit: PAGE,
            };
            let listed = jobs::list(&api, viewer.id(), &filter, of).await?;
            (Some(listed), before.is_some(), None)
        }
        Err(why) => (None, false, Some(why)),
    };
    let base = query(&set, None);
    let sign = if base.contains('?') { '&' } else { '?' };
    let chips = set
        .iter()
        .filter(|(name, value)| *name != "q" && !value.is_empty());
    let chips: Vec<Chip> = chips
        .map(|(name, value)| Chip {
            name,
            value: shown(value),
            without: query(&set, Some(name)),
        })
        .collect();
    let states = JobState::ALL.map(|state| (state.as_str(), Shown::of_job(state).word));
    let items = listed.as_ref().map_or(&[][..], |listed| &listed.items);
    let next = listed.as_ref().and_then(|listed| listed.next);
    let status = error
        .as_ref()
        .map_or(StatusCode::OK, |_| StatusCode::BAD_REQUEST);
    let text = JobsPage {
        may_create: viewer.may(Role::Admin),
        is_filtered: base.contains('?'),
        rows: items.iter().map(|job| row(&viewer, job)).collect(),
        next: next.map(|next| format!("{base}{sign}before={next}")),
        first: first.then(|| base.clone()),
        states: states.to_vec(),
        frame: Frame::new(&viewer, "Jobs", "/jobs"),
        error,
        q,
        state,
        label,
        owner,
        chips,
    };
    Ok(page(status, text.render()?))
}
