//! Jobs: search, filters that are the address, pages by cursor.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use model::{Job, JobId, JobState, Role, limits};
use store::{JobFilter, Page};

use super::format::{State as Shown, When, encode, words};
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
        target: http
            .as_ref()
            .map(|http| http.url.clone())
            .unwrap_or_default(),
        method: http.map(|http| http.method).unwrap_or_default(),
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

pub(super) async fn list(
    State(api): State<Arc<Api>>,
    By(viewer): By,
    Query(params): Query<Vec<(String, String)>>,
) -> Answer {
    let text = |name: &str| -> String {
        param(&params, name)
            .trim()
            .chars()
            .take(limits::NAME_MAX)
            .collect()
    };
    let set = FILTERS.map(|name| (name, text(name)));
    let [q, state, label, owner] = set.clone().map(|(_, value)| value);
    let filter = JobFilter {
        states: JobState::parse(&state).into_iter().collect(),
        labels: label
            .split_once('=')
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into_iter()
            .collect(),
        q: Some(q.clone()).filter(|q| !q.is_empty()),
    };
    let cursor: Option<JobId> = param(&params, "before").parse().ok();
    let of = Page {
        before: cursor,
        limit: PAGE,
    };
    let listed = if owner.is_empty() {
        jobs::list(&api, viewer.id(), &filter, of).await?
    } else {
        jobs::list_of(&api, viewer.id(), &owner, &filter, of).await?
    };
    let base = query(&set, None);
    let sign = if base.contains('?') { '&' } else { '?' };
    let shown = set
        .iter()
        .filter(|(name, value)| *name != "q" && !value.is_empty());
    let chips: Vec<Chip> = shown
        .map(|(name, value)| Chip {
            name,
            value: words(value),
            without: query(&set, Some(name)),
        })
        .collect();
    let states = JobState::ALL.map(|state| (state.as_str(), Shown::of_job(state).word));
    let text = JobsPage {
        may_create: viewer.may(Role::Admin),
        is_filtered: base.contains('?'),
        rows: listed.items.iter().map(|job| row(&viewer, job)).collect(),
        next: listed.next.map(|next| format!("{base}{sign}before={next}")),
        first: cursor.map(|_| base.clone()),
        states: states.to_vec(),
        frame: Frame::new(&viewer, "Jobs", "/jobs"),
        q,
        state,
        label,
        owner,
        chips,
    };
    Ok(page(StatusCode::OK, text.render()?))
}
