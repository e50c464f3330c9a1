//! Runs in lists.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use model::{Job, JobId, Run, RunId, RunState, Timestamp};
use store::{Page, RunFilter};

use super::fault::PageError;
use super::format::{State as Shown, When, span, words};
use super::frame::{Answer, Frame, face, page};
use super::jobs::{cursor, name_of, shown};
use super::login::param;
use super::viewer::{By, Viewer};
use crate::api::Api;
use crate::ops::runs;

const PAGE: usize = 50;

type Params = Query<Vec<(String, String)>>;

pub(super) struct RunRow {
    pub id: String,
    pub due: When,
    pub state: Shown,
    pub attempts: String,
    pub took: String,
    pub late: String,
    pub answer: String,
    pub job: String,
    pub job_id: String,
}

/// What the last attempt said, in a few words.
fn answer_of(run: &Run) -> String {
    let Some(last) = run.attempts.last() else {
        return "—".to_owned();
    };
    let error = last.error.clone().filter(|error| !error.is_empty());
    let status = last.status.map(|status| status.to_string());
    error
        .or(status)
        .unwrap_or_else(|| words(last.outcome.as_str()))
}

/// When a run was due first: a retry moves the moment that the run itself names.
pub(super) fn due_first(run: &Run, job: Option<&Job>) -> Timestamp {
    let by_slot = run
        .slot
        .map(|slot| job.map_or(slot.0, |job| job.due_at(slot)));
    by_slot.unwrap_or(run.due_at).min(run.due_at)
}

pub(super) fn row(viewer: &Viewer, run: &Run, job: Option<&Job>) -> RunRow {
    let due = due_first(run, job);
    let dispatched = run.dispatched_at.map(Timestamp::as_millis);
    let took = dispatched
        .zip(run.settled_at)
        .map(|(from, to)| span(to.as_millis() - from));
    let late = dispatched.map(|at| span((at - due.as_millis()).max(0)));
    RunRow {
        id: run.id.to_string(),
        due: face(viewer).when(due),
        state: Shown::of_run(run),
        attempts: run.attempts.len().to_string(),
        took: took.unwrap_or_else(|| "—".to_owned()),
        late: late.unwrap_or_else(|| "—".to_owned()),
        answer: answer_of(run),
        job: job.map_or_else(|| run.job.to_string(), name_of),
        job_id: run.job.to_string(),
    }
}

/// The jobs of some runs, as far as they are still there.
async fn jobs_of(
    api: &Api,
    viewer: &Viewer,
    runs: &[Run],
) -> Result<BTreeMap<JobId, Job>, PageError> {
    let mut ids: Vec<_> = runs.iter().map(|run| (viewer.id(), run.job)).collect();
    ids.sort_unstable();
    ids.dedup();
    let found = api
        .store
        .get_jobs(&ids)
        .await
        .map_err(crate::ops::OpError::from)?;
    let jobs = found.into_iter().filter_map(|job| job.ok().flatten());
    Ok(jobs.map(|job| (job.id, job)).collect())
}

/// Rows of runs, each with the name of its job.
pub(super) async fn rows(
    api: &Api,
    viewer: &Viewer,
    states: &[RunState],
    before: Option<RunId>,
    limit: usize,
) -> Result<(Vec<RunRow>, Option<RunId>), PageError> {
    let filter = RunFilter {
        job: None,
        states: states.to_vec(),
        ..RunFilter::default()
    };
    let listed = runs::list(api, viewer.id(), &filter, Page { before, limit }).await?;
    Ok((named(api, viewer, &listed.items).await?, listed.next))
}

/// Rows of some runs, each with the name of its job.
pub(super) async fn named(
    api: &Api,
    viewer: &Viewer,
    runs: &[Run],
) -> Result<Vec<RunRow>, PageError> {
    let jobs = jobs_of(api, viewer, runs).await?;
    let row = |run: &Run| row(viewer, run, jobs.get(&run.job));
    Ok(runs.iter().map(row).collect())
}

#[derive(Template)]
#[template(path = "runs.html")]
struct RunsPage {
    frame: Frame,
    /// Why the filter means nothing.
    error: Option<String>,
    rows: Vec<RunRow>,
    states: Vec<(&'static str, String)>,
    state: String,
    next: Option<String>,
    first: Option<String>,
}

pub(super) async fn list(
    State(api): State<Arc<Api>>,
    By(viewer): By,
    Query(params): Params,
) -> Answer {
    let given = param(&params, "state");
    let state = RunState::parse(given);
    let word = state.map_or("", RunState::as_str);
    let states: Vec<RunState> = state.into_iter().collect();
    let before = if states.is_empty() && !given.is_empty() {
        let all = RunState::ALL.map(RunState::as_str).join(", ");
        let given = shown(given);
        Err(format!("No run is {given:?}: choose one of {all}."))
    } else {
        cursor::<RunId>(param(&params, "before"))
    };
    let (before, (rows, next), error) = match before {
        Ok(before) => {
            let found = rows(&api, &viewer, &states, before, PAGE).await?;
            (before, found, None)
        }
        Err(why) => (None, (Vec::new(), None), Some(why)),
    };
    let status = error
        .as_ref()
        .map_or(StatusCode::OK, |_| StatusCode::BAD_REQUEST);
    let all = RunState::ALL.map(|state| (state.as_str(), capital(state.as_str())));
    let text = RunsPage {
        frame: Frame::new(&viewer, "Runs", "/runs"),
        error,
        rows,
        states: all.to_vec(),
        state: word.to_owned(),
        next: next.map(|next| format!("/runs?state={word}&before={next}")),
        first: before.map(|_| format!("/runs?state={word}")),
    };
    Ok(page(status, text.render()?))
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}
