//! A job: what it is, what became of its slots and why, its latest runs and changes.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use model::schedule::Point;
use model::{Job, JobId, JobState, Role};
use store::{Page, RunFilter};

use super::audit::{AuditRow, audit_row};
use super::charts::Chart;
use super::fault::PageError;
use super::format::{Pill, State as Shown, When, words};
use super::frame::{Answer, Frame, Toast, face, page};
use super::heat::{self, Heat};
use super::heat_marks::{self, Day};
use super::job_chart;
use super::login::param;
use super::runs::{self, RunRow};
use super::viewer::{By, Viewer};
use crate::api::Api;
use crate::ops::slots::{self, Range};
use crate::ops::{audit, explain, jobs};
use crate::problem::{Kind, Problem};
use crate::wire;

/// Days on the heat map.
const DAYS: i64 = 14;
/// Entries that it is made of; a job with more shows its latest days. One that is due every minute has less, also with a day of
/// 25 hours.
const ENTRIES_MAX: usize = 25_000;
const _: () = assert!(ENTRIES_MAX > DAYS as usize * 25 * 60);
const RUNS: usize = 20;
/// Runs on the chart.
const CHARTED: usize = 60;

type Params = Query<Vec<(String, String)>>;

/// What the pages of one job have in common.
pub(super) struct Head {
    pub id: String,
    pub name: String,
    pub words: String,
    pub target: String,
    pub pill: Pill,
    pub labels: Vec<String>,
    pub note: Option<String>,
    pub tab: &'static str,
    pub version: u32,
    pub may_operate: bool,
    pub may_change: bool,
    pub is_paused: bool,
    pub can_pause: bool,
}

impl Head {
    pub(super) fn new(viewer: &Viewer, job: &Job, tab: &'static str) -> Self {
        let row = super::jobs::row(viewer, job);
        let is_deleted = job.state == JobState::Deleted;
        Self {
            id: row.id,
            name: row.name,
            words: row.words,
            target: format!("{} {}", row.method, row.target),
            pill: row.state.pill(),
            labels: row.labels,
            note: job.note.clone(),
            tab,
            version: job.version.0,
            may_operate: viewer.may(Role::Operator) && !is_deleted,
            may_change: viewer.may(Role::Admin) && !is_deleted,
            is_paused: job.state == JobState::Paused,
            can_pause: job.state == JobState::Active,
        }
    }

    pub(super) fn frame(&self, viewer: &Arc<Viewer>) -> Frame {
        let path = format!("/jobs/{}", self.id);
        Frame::new(viewer, self.name.clone(), "/jobs").with_crumb(self.name.clone(), path)
    }
}

/// The job that a path names.
pub(super) async fn find(api: &Api, viewer: &Viewer, text: &str) -> Result<Job, PageError> {
    let id: JobId = text
        .parse()
        .map_err(|error: model::id::IdError| Problem::new(Kind::JobNotFound, error.to_string()))?;
    Ok(jobs::get(api, viewer.id(), id).await?)
}

pub(super) struct Fact {
    pub name: &'static str,
    pub value: String,
    pub more: String,
}

struct StepRow {
    name: String,
    says: String,
    /// It decided.
    stops: bool,
    /// It was not reached.
    is_off: bool,
}

struct Explain {
    pill: Pill,
    heading: String,
    local: String,
    zone: String,
    steps: Vec<StepRow>,
    run: Option<String>,
    why: Option<String>,
}

#[derive(Template)]
#[template(path = "job.html")]
struct JobPage {
    frame: Frame,
    head: Head,
    next: Option<When>,
    facts: Vec<Fact>,
    heat: Heat,
    is_short: bool,
    explain: Option<Explain>,
    explain_error: Option<String>,
    at: String,
    /// Of its latest runs.
    chart: Option<Chart>,
    runs: Vec<RunRow>,
    trail: Vec<AuditRow>,
}

/// The latest days of a job's slots: all that are wanted, or as many as fit.
async fn marked(
    api: &Api,
    viewer: &Viewer,
    job: &Job,
    days: &[Day],
) -> Result<heat::Days, PageError> {
    let schedule = &job.def.schedule;
    let mut marked = heat::Days::new();
    let mut entries = 0;
    // Day by day from the latest on, so that what does not fit is the oldest.
    for day in days.iter().rev() {
        let mut range = Range {
            from: day.from,
            to: day.to,
            cursor: None,
            limit: 1_000,
        };
        let mut of_day = Vec::new();
        while entries < ENTRIES_MAX {
            let found = slots::list(api, viewer.id(), job.id, range).await?;
            entries += found.entries.len();
            let shown = found.entries.iter();
            of_day.extend(shown.flat_map(|it| heat_marks::marks(it, schedule, *day, viewer.now)));
            let Some(next) = found.next else { break };
            range.cursor = Some(next);
        }
        if entries >= ENTRIES_MAX && !marked.is_empty() {
            break;
        }
        marked.insert(day.from, of_day);
    }
    Ok(marked)
}

async fn heat(api: &Api, viewer: &Viewer, job: &Job) -> Result<(Heat, bool), PageError> {
    let start = |day| viewer.zone.day_start(viewer.now, day);
    let days = (1 - DAYS..=0).map(|day| Day {
        from: start(day),
        to: start(day + 1),
    });
    let made = viewer.zone.day_start(job.created_at, 0);
    let days: Vec<Day> = days.filter(|day| day.from >= made).collect();
    let marked = marked(api, viewer, job, &days).await?;
    let is_short = marked.len() < days.len();
    Ok((Heat::new(&face(viewer), &marked), is_short))
}

fn facts(viewer: &Viewer, job: &Job, heat: &Heat) -> Vec<Fact> {
    let shown = wire::Job::of(job);
    let fact = |name, value: String, more: String| Fact { name, value, more };
    let within = shown.start_within.as_ref();
    let within = within.map_or_else(String::new, |span| format!("start within {span}"));
    let overlap = words(job.def.overlap.as_str());
    let not = heat.total - heat.ran;
    let changed = super::format::relative(viewer.now, job.updated_at);
    vec![
        fact(
            "Ran, on this map",
            heat::percent(heat.ran, heat.total),
            format!(
                "{} of {} slots did not",
                super::format::count(not),
                super::format::count(heat.total)
            ),
        ),
        fact("Lane", shown.lane.to_owned(), within),
        fact("Overlap", overlap, format!("timeout {}", shown.timeout)),
        fact(
            "Catch up",
            shown.catch_up.policy.to_owned(),
            format!("within {}", shown.catch_up.window),
        ),
        fact(
            "Attempts",
            shown.retry.attempts_max.to_string(),
            format!(
                "{}, from {}",
                words(shown.retry.backoff),
                shown.retry.delay_first
            ),
        ),
        fact(
            "Version",
            shown.version.to_string(),
            format!("changed {changed}"),
        ),
    ]
}

async fn explained(
    api: &Api,
    viewer: &Viewer,
    id: JobId,
    text: &str,
) -> Result<Explain, PageError> {
    let point = Point::parse(text).or_else(|_| Point::parse(&text.replace(' ', "+")));
    let point = point.map_err(|error| Problem::new(Kind::ParameterInvalid, error.to_string()))?;
    let found = explain::explain(api, viewer.id(), id, &point).await?;
    let shown = wire::Explained::of(&found);
    let entry = found.found.entry();
    let run = entry.and_then(|entry| match &entry.fate {
        slots::Fate::Ran(run) => Some(run.id.to_string()),
        slots::Fate::Skipped(_) | slots::Fate::Planned { .. } | slots::Fate::Unknown => None,
    });
    let why = entry.and_then(|entry| match &entry.fate {
        slots::Fate::Skipped(why) => why.note.clone(),
        slots::Fate::Ran(_) | slots::Fate::Planned { .. } | slots::Fate::Unknown => None,
    });
    let none = || Shown::new("planned", "No slot");
    let state = entry.map_or_else(none, |entry| heat::state_of(&entry.fate));
    let stop = shown.steps.iter().position(|step| !step.holds);
    let steps = shown.steps.iter().enumerate().map(|(at, step)| StepRow {
        name: words(step.step),
        says: step.says.clone(),
        stops: Some(at) == stop,
        is_off: stop.is_some_and(|stop| at > stop),
    });
    let face = face(viewer);
    let heading = found.at.map_or_else(
        || shown.local.clone(),
        |at| format!("{}, {}", face.day(at), face.clock(at)),
    );
    Ok(Explain {
        pill: state.pill(),
        heading,
        local: shown.local.clone(),
        zone: shown.zone.clone(),
        steps: steps.collect(),
        run,
        why,
    })
}

fn toast(id: &str, done: &str) -> Option<Toast> {
    let undo = |verb: &str, word| Some((format!("/jobs/{id}/{verb}"), word));
    let (text, undo) = match done {
        "paused" => (
            "Paused. Its slots are skipped until it is resumed.",
            undo("resume", "Undo"),
        ),
        "resumed" => (
            "Resumed. It runs from its next slot on.",
            undo("pause", "Undo"),
        ),
        "started" => ("A run was started.", None),
        "saved" => ("Saved. A new version is in force.", None),
        "created" => ("Created.", None),
        "reverted" => ("The earlier version is in force again, as a new one.", None),
        _ => return None,
    };
    Some(Toast { text, undo })
}

pub(super) async fn show(
    State(api): State<Arc<Api>>,
    By(viewer): By,
    Path(id): Path<String>,
    Query(params): Params,
) -> Answer {
    let job = find(&api, &viewer, &id).await?;
    let (heat, is_short) = heat(&api, &viewer, &job).await?;
    let filter = RunFilter {
        job: Some(job.id),
        states: Vec::new(),
        ..RunFilter::default()
    };
    let latest = Page {
        before: None,
        limit: CHARTED,
    };
    let listed = crate::ops::runs::list(&api, viewer.id(), &filter, latest).await?;
    let at = param(&params, "at").trim().to_owned();
    let explain = if at.is_empty() {
        None
    } else {
        Some(explained(&api, &viewer, job.id, &at).await)
    };
    let (explain, explain_error) = match explain {
        Some(Ok(explain)) => (Some(explain), None),
        Some(Err(error)) => (None, Some(error.problem.detail)),
        None => (None, None),
    };
    let head = Head::new(&viewer, &job, "summary");
    let trail = if viewer.may(Role::Admin) {
        trail(&api, &viewer, &job, 5).await?
    } else {
        Vec::new()
    };
    let rows = listed
        .items
        .iter()
        .take(RUNS)
        .map(|run| runs::row(&viewer, run, Some(&job)));
    let text = JobPage {
        frame: head
            .frame(&viewer)
            .with_toast(toast(&id, param(&params, "done"))),
        next: job
            .next_slot
            .map(|slot| face(&viewer).when(job.due_at(slot))),
        facts: facts(&viewer, &job, &heat),
        chart: job_chart::chart(&face(&viewer), &job, &listed.items),
        runs: rows.collect(),
        heat,
        is_short,
        explain,
        explain_error,
        at,
        trail,
        head,
    };
    Ok(page(StatusCode::OK, text.render()?))
}

pub(super) async fn trail(
    api: &Api,
    viewer: &Viewer,
    job: &Job,
    limit: usize,
) -> Result<Vec<AuditRow>, PageError> {
    let filter = audit::AuditFilter {
        subject: Some(job.id.to_string()),
        ..audit::AuditFilter::default()
    };
    let latest = Page {
        before: None,
        limit,
    };
    let listed = audit::list(api, Some(viewer.id()), &filter, latest).await?;
    let rows = listed.items.into_iter();
    Ok(rows.map(|entry| audit_row(viewer, entry)).collect())
}
