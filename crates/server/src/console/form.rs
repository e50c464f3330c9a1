//! The form of a job, new or as it stands, with a preview of its schedule. What it says is read as the API reads a body, so that the
//! same is refused with the same words.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect};
use model::{CatchUpPolicy, Job, Lane, Role, Version};

use super::diff::{self, Line};
use super::fault::PageError;
use super::form_fields::{blank, draft, field_of, of_job};
use super::form_plan::{self, Plan, Preview, previewed};
use super::format::words;
use super::frame::{Answer, Frame, page};
use super::job::find;
use super::jobs::name_of;
use super::login::param;
use super::viewer::{By, Fields, Posted, Viewer};
use super::{form_json, job_copy};
use crate::api::Api;
use crate::ops::{Expect, JobDraft, Mode, jobs, versions};
use crate::problem::{Kind, Problem};
use crate::wire;

const METHODS: [&str; 6] = ["POST", "GET", "HEAD", "PUT", "PATCH", "DELETE"];
const OVERLAPS: [&str; 5] = ["skip", "queue_one", "queue_all", "cancel_running", "allow"];
type Params = Query<Vec<(String, String)>>;

#[derive(Template)]
#[template(path = "job-form.html")]
struct FormPage {
    frame: Frame,
    head: Heading,
    fields: Fields,
    lanes: Vec<&'static str>,
    overlaps: Vec<(&'static str, String)>,
    catch_ups: Vec<(&'static str, String)>,
    methods: Vec<&'static str>,
    preview: Option<Preview>,
    /// What saving would change; none of a new job, and where it cannot be saved.
    plan: Option<Plan>,
    /// Whether it is shown as JSON.
    is_json: bool,
    /// What is wrong: the field of the form, and why.
    error: Option<(String, String)>,
    /// Whether it was sent, and not saved for that.
    is_refused: bool,
    newer: Option<Newer>,
}

/// What somebody else saved meanwhile.
struct Newer {
    version: u32,
    by: String,
    /// None if the version that the form began with is not kept.
    lines: Option<Vec<Line>>,
}

impl FormPage {
    fn is(&self, name: &str, value: &str) -> bool {
        self.fields.get(name) == value
    }

    /// Why a field cannot be used.
    fn wrong(&self, name: &str) -> Option<&str> {
        let error = self.error.as_ref().filter(|(field, _)| field == name);
        error.map(|(_, why)| why.as_str())
    }
}

/// What differs between the form of a new job and that of one that is there.
struct Heading {
    heading: String,
    about: String,
    action: String,
    cancel: String,
    save: String,
    crumbs: Vec<(String, String)>,
}

impl Heading {
    fn new() -> Self {
        Self {
            heading: "New job".to_owned(),
            about: "What is due, when, and where it goes".to_owned(),
            action: "/jobs/new".to_owned(),
            cancel: "/jobs".to_owned(),
            save: "Create job".to_owned(),
            crumbs: vec![("New".to_owned(), String::new())],
        }
    }

    fn of(job: &Job) -> Self {
        let (name, path) = (name_of(job), format!("/jobs/{}", job.id));
        Self {
            heading: format!("Edit {name}"),
            about: format!("Version {} is in force", job.version),
            action: format!("{path}/edit"),
            save: format!("Save as version {}", job.version.0 + 1),
            crumbs: vec![(name, path.clone()), ("Edit".to_owned(), String::new())],
            cancel: path,
        }
    }
}

async fn form(
    api: &Api,
    viewer: &Arc<Viewer>,
    job: Option<&Job>,
    fields: Fields,
    (refused, newer): (Option<Problem>, Option<Newer>),
) -> Answer {
    let (preview, unread) = match previewed(api, viewer, job, &fields).await {
        Ok(preview) => (Some(preview), None),
        Err(problem) => (None, Some(problem)),
    };
    let plan = match job {
        Some(job) => form_plan::plan(api, viewer, job, said(&fields, Some(job))).await,
        None => None,
    };
    let status = refused
        .as_ref()
        .map_or(StatusCode::OK, |problem| problem.kind.status());
    let is_refused = refused.is_some();
    let error = refused.or(unread).map(|problem| {
        let field = problem.field.unwrap_or_default();
        (field_of(&field).to_owned(), problem.detail)
    });
    let all = |words_of: &[&'static str]| -> Vec<(&'static str, String)> {
        words_of.iter().map(|word| (*word, words(word))).collect()
    };
    let mut head = job.map_or_else(Heading::new, Heading::of);
    if let Some(newer) = &newer {
        head.save = format!("Save over version {}", newer.version);
    }
    let mut frame = Frame::new(viewer, head.heading.clone(), "/jobs");
    for (name, path) in std::mem::take(&mut head.crumbs) {
        frame = frame.with_crumb(name, path);
    }
    let text = FormPage {
        frame,
        head,
        is_json: !fields.get("json").is_empty(),
        plan,
        fields,
        lanes: Lane::ALL.map(Lane::as_str).to_vec(),
        overlaps: all(&OVERLAPS),
        catch_ups: all(&CatchUpPolicy::ALL.map(CatchUpPolicy::as_str)),
        methods: METHODS.to_vec(),
        preview,
        error,
        is_refused,
        newer,
    };
    Ok(page(status, text.render()?))
}

/// What was saved since the form was made: its author, and every field that is another now.
async fn newer(api: &Api, viewer: &Viewer, job: &Job, seen: Version) -> Newer {
    let of = async |version| versions::get(api, viewer.id(), job.id, version).await.ok();
    let (seen, stands) = (of(seen).await, of(job.version).await);
    let by = stands.and_then(|of| wire::JobVersion::of(&of).made_by);
    Newer {
        version: job.version.0,
        by: by.unwrap_or_else(|| "somebody".to_owned()),
        lines: seen.map(|seen| diff::jobs(&seen.job, job)),
    }
}

/// What a form says, in fields or as JSON.
fn said(fields: &Fields, job: Option<&Job>) -> Result<JobDraft, Problem> {
    if fields.get("json").is_empty() {
        return draft(fields, job.map(wire::Job::of).as_ref());
    }
    let before = job.map(job_copy::settable);
    Ok(wire::job_draft(
        &form_json::body(fields.get("json"), before.as_ref()).map_err(Problem::from)?,
    )?)
}

/// A job's form; `as=json` is another view of the same.
fn fields_of(job: &Job, params: &[(String, String)]) -> Fields {
    let mut fields = of_job(&wire::Job::of(job));
    if param(params, "as") == "json" {
        fields.set("json", job_copy::pretty(&job_copy::settable(job)));
    }
    fields
}

/// A form for a new job: an empty one, or as another job is.
pub(super) async fn new(
    State(api): State<Arc<Api>>,
    By(viewer): By,
    Query(params): Params,
) -> Answer {
    viewer.needs(Role::Admin)?;
    let from = param(&params, "from");
    if from.is_empty() {
        return form(&api, &viewer, None, blank(&viewer.zone), (None, None)).await;
    }
    let mut job = find(&api, &viewer, from).await?;
    // Two jobs have no key in common.
    job.key = None;
    let mut fields = fields_of(&job, &params);
    fields.set("id", String::new());
    fields.set("version", String::new());
    form(&api, &viewer, None, fields, (None, None)).await
}

pub(super) async fn create(State(api): State<Arc<Api>>, posted: Posted) -> Answer {
    posted.by.needs(Role::Admin)?;
    let made = match said(&posted.fields, None) {
        Ok(draft) => jobs::create(&api, posted.by.caller, draft, None, Mode::Write)
            .await
            .map_err(Problem::from),
        Err(problem) => Err(problem),
    };
    match made {
        Ok(made) => {
            Ok(Redirect::to(&format!("/jobs/{}?done=created", made.job.id)).into_response())
        }
        Err(problem) => {
            let refused = (Some(problem), None);
            form(&api, &posted.by, None, posted.fields, refused).await
        }
    }
}

pub(super) async fn edit(
    State(api): State<Arc<Api>>,
    By(viewer): By,
    Path(id): Path<String>,
    Query(params): Params,
) -> Answer {
    viewer.needs(Role::Admin)?;
    let job = find(&api, &viewer, &id).await?;
    let fields = fields_of(&job, &params);
    form(&api, &viewer, Some(&job), fields, (None, None)).await
}

pub(super) async fn save(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Answer {
    posted.by.needs(Role::Admin)?;
    let job = find(&api, &posted.by, &id).await?;
    // Whoever changed it since the form was drawn is not overwritten.
    let seen = posted.fields.get("version").parse().map(Version).ok();
    let expect = seen.map_or(Expect::Existing, |seen| Expect::OneOf(vec![seen]));
    let changed = match said(&posted.fields, Some(&job)) {
        Ok(draft) => jobs::patch(&api, posted.by.caller, job.id, draft, &expect, Mode::Write)
            .await
            .map_err(Problem::from),
        Err(problem) => Err(problem),
    };
    let Err(problem) = changed else {
        return Ok(Redirect::to(&format!("/jobs/{id}?done=saved")).into_response());
    };
    let Posted { by, mut fields } = posted;
    let overtaken = seen.filter(|_| problem.kind == Kind::VersionConflict);
    let Some(seen) = overtaken else {
        return form(&api, &by, Some(&job), fields, (Some(problem), None)).await;
    };
    // Who saves after this has seen what is there now.
    let job = find(&api, &by, &id).await?;
    let newer = newer(&api, &by, &job, seen).await;
    fields.set("version", job.version.to_string());
    form(&api, &by, Some(&job), fields, (Some(problem), Some(newer))).await
}

/// The job that a form is of; none of a new one.
async fn edited(api: &Api, posted: &Posted) -> Result<Option<Job>, PageError> {
    let id = posted.fields.get("id");
    if id.is_empty() {
        return Ok(None);
    }
    find(api, &posted.by, id).await.map(Some)
}

/// The same form again, with what its schedule means and what saving would change.
pub(super) async fn preview(State(api): State<Arc<Api>>, posted: Posted) -> Answer {
    posted.by.needs(Role::Admin)?;
    let job = edited(&api, &posted).await?;
    form(&api, &posted.by, job.as_ref(), posted.fields, (None, None)).await
}

/// The same again in the other view: as JSON if it was in fields, in fields if it was JSON. What cannot be read stays as it is.
pub(super) async fn turn(State(api): State<Arc<Api>>, posted: Posted) -> Answer {
    posted.by.needs(Role::Admin)?;
    let job = edited(&api, &posted).await?;
    let tried = match said(&posted.fields, job.as_ref()) {
        Ok(draft) => form_plan::tried(&api, &posted.by, job.as_ref(), draft).await,
        Err(problem) => Err(problem),
    };
    let (fields, refused) = match tried {
        Ok((made, _)) => (turned(&posted.fields, &made), None),
        Err(problem) => (posted.fields, Some(problem)),
    };
    form(&api, &posted.by, job.as_ref(), fields, (refused, None)).await
}

fn turned(from: &Fields, made: &Job) -> Fields {
    let mut fields = of_job(&wire::Job::of(made));
    for name in ["id", "version"] {
        fields.set(name, from.get(name).to_owned());
    }
    if from.get("json").is_empty() {
        fields.set("json", job_copy::pretty(&job_copy::settable(made)));
    }
    fields
}
