//! The form of a job, new or as it stands, with a preview of its schedule. What it says is read as the API reads a body, so that the
//! same is refused with the same words.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect};
use model::schedule::Zone;
use model::{CatchUpPolicy, Job, Lane, Role, Version};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::format::words;
use super::frame::{Answer, Frame, face, page};
use super::job::find;
use super::jobs::name_of;
use super::viewer::{By, Fields, Posted, Viewer};
use crate::api::Api;
use crate::ops::{Expect, FieldError, Mode, jobs, preview};
use crate::problem::Problem;
use crate::wire;

const METHODS: [&str; 5] = ["POST", "GET", "PUT", "PATCH", "DELETE"];
const OVERLAPS: [&str; 5] = ["skip", "queue_one", "queue_all", "cancel_running", "allow"];
/// Slots of the preview.
const SLOTS: usize = 7;

struct SlotRow {
    day: String,
    theirs: String,
    ours: String,
    relative: String,
}

/// What a schedule means.
struct Preview {
    words: String,
    notes: Vec<String>,
    slots: Vec<SlotRow>,
    zone: String,
    own_zone: String,
    same_zone: bool,
}

#[derive(Template)]
#[template(path = "job-form.html")]
struct FormPage {
    frame: Frame,
    heading: String,
    about: String,
    action: String,
    cancel: String,
    save: String,
    fields: Fields,
    lanes: Vec<&'static str>,
    overlaps: Vec<(&'static str, String)>,
    catch_ups: Vec<(&'static str, String)>,
    methods: Vec<&'static str>,
    preview: Option<Preview>,
    /// What is wrong: the field of the form, and why.
    error: Option<(String, String)>,
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

/// The form's field for a path of the API.
fn field_of(path: &str) -> &'static str {
    let known = [
        ("schedule.timezone", "timezone"),
        ("timezone", "timezone"),
        ("schedule.every", "every"),
        ("schedule.at", "at"),
        ("schedule", "cron"),
        ("target.http.headers", "headers"),
        ("target.http.method", "method"),
        ("target", "url"),
        ("payload", "payload"),
        ("retry", "attempts"),
        ("timeout", "timeout"),
        ("overlap", "overlap"),
        ("catch_up", "catch_up"),
        ("start_within", "start_within"),
        ("finish_within", "finish_within"),
        ("spread", "spread"),
        ("labels", "labels"),
        ("exclude", "exclude"),
        ("only", "only"),
        ("owner", "owner"),
        ("key", "key"),
        ("lane", "lane"),
    ];
    let found = known.iter().find(|(start, _)| path.starts_with(start));
    found.map_or("", |(_, field)| field)
}

/// One `name=value` or `Name: value` on each line.
fn pairs(text: &str, sign: char) -> Result<BTreeMap<String, String>, String> {
    let parts = text
        .split(['\n', '\r'])
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let pair = |line: &str| {
        let (name, value) = line.split_once(sign).ok_or_else(|| {
            format!(
                "{:?} has no {sign}: write one on each line",
                line.chars().take(40).collect::<String>()
            )
        })?;
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    };
    parts.map(pair).collect()
}

/// What is named now, and null for what was named before.
fn merged(now: BTreeMap<String, String>, before: &BTreeMap<String, String>) -> Value {
    let gone = before.keys().filter(|name| !now.contains_key(*name));
    let gone: Vec<(String, Value)> = gone.map(|name| (name.clone(), Value::Null)).collect();
    let kept = now
        .into_iter()
        .map(|(name, value)| (name, Value::from(value)));
    kept.chain(gone).collect::<Map<String, Value>>().into()
}

fn names(text: &str) -> Vec<&str> {
    text.split([',', ' ', '\n'])
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect()
}

fn or_null(text: &str) -> Value {
    let text = text.trim();
    if text.is_empty() {
        Value::Null
    } else {
        text.into()
    }
}

fn schedule(fields: &Fields) -> Value {
    let text = |name: &str| fields.get(name).trim().to_owned();
    let zone = text("timezone");
    let mut schedule = match fields.get("kind") {
        "every" => json!({ "every": text("every") }),
        "at" => return json!({ "at": text("at") }),
        _ => {
            // One on each line; most jobs have one.
            let lines: Vec<String> = text("cron")
                .lines()
                .map(|line| line.trim().to_owned())
                .collect();
            match lines.as_slice() {
                [] => json!({ "cron": "" }),
                [one] => json!({ "cron": one }),
                several => json!({ "cron": several }),
            }
        }
    };
    if !zone.is_empty() {
        schedule["timezone"] = zone.into();
    }
    schedule
}

/// The body that the API would get.
fn body(fields: &Fields, before: Option<&wire::Job>) -> Result<String, FieldError> {
    let text = |name: &str| fields.get(name).trim();
    let refuse = |field: &'static str| move |why: String| FieldError::invalid(field, why);
    let none = BTreeMap::new();
    let http = before.and_then(|job| job.target.http.as_ref());
    let headers = pairs(text("headers"), ':').map_err(refuse("target.http.headers"))?;
    let labels = pairs(text("labels"), '=').map_err(refuse("labels"))?;
    let attempts: Option<u32> = text("attempts").parse().ok();
    let attempts = attempts.ok_or_else(|| {
        FieldError::invalid("retry.attempts_max", "write a number, such as 4".to_owned())
    })?;
    let mut body = json!({
        "key": or_null(text("key")),
        "schedule": schedule(fields),
        "exclude": names(text("exclude")),
        "only": names(text("only")),
        "target": {"http": {
            "url": text("url"),
            "method": text("method"),
            "headers": merged(headers, http.map_or(&none, |http| &http.headers)),
        }},
        "retry": {"attempts_max": attempts},
        "timeout": or_null(text("timeout")),
        "lane": text("lane"),
        "catch_up": {"policy": text("catch_up")},
        "spread": or_null(text("spread")),
        "start_within": or_null(text("start_within")),
        "finish_within": or_null(text("finish_within")),
        "labels": merged(labels, before.map_or(&none, |job| &job.labels)),
    });
    // A bound on what waits stays, unless another policy is chosen.
    if before.map(overlap_of) != Some(text("overlap")) {
        body["overlap"] = text("overlap").into();
    }
    let body = body.to_string();
    let payload = match text("payload") {
        "" => "null",
        text => text,
    };
    serde_json::from_str::<&RawValue>(payload)
        .map_err(|error| FieldError::invalid("payload", format!("it is not JSON: {error}")))?;
    // As it was typed: a number of many digits is not rounded.
    let open = body.strip_suffix('}').unwrap_or(&body);
    Ok(format!("{open},\"payload\":{payload}}}"))
}

fn overlap_of(job: &wire::Job) -> &'static str {
    match &job.overlap {
        wire::Overlap::Plain(policy) | wire::Overlap::Bounded { policy, .. } => policy,
    }
}

/// What a new job's form says before anybody has typed.
fn blank(zone: &Zone) -> Fields {
    let pairs = [
        ("kind", "cron"),
        ("cron", "0 9 * * MON-FRI"),
        ("every", "15m"),
        ("timezone", zone.name()),
        ("method", "POST"),
        ("lane", "standard"),
        ("overlap", "skip"),
        ("catch_up", "latest"),
        ("attempts", "4"),
        ("timeout", "30s"),
    ];
    Fields(
        pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
    )
}

fn lines(of: &BTreeMap<String, String>, sign: &str) -> String {
    let lines: Vec<String> = of
        .iter()
        .map(|(name, value)| format!("{name}{sign}{value}"))
        .collect();
    lines.join("\n")
}

/// A job as its form says it.
fn of_job(job: &wire::Job) -> Fields {
    let schedule = &job.schedule;
    let cron = match &schedule.cron {
        Some(wire::Expressions::One(text)) => text.clone(),
        Some(wire::Expressions::Several(texts)) => texts.join("\n"),
        None => String::new(),
    };
    let kind = match (&schedule.every, &schedule.at) {
        (Some(_), _) => "every",
        (None, Some(_)) => "at",
        (None, None) => "cron",
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let http = job.target.http.as_ref();
    let headers = http
        .map(|http| lines(&http.headers, ": "))
        .unwrap_or_default();
    let payload = job.payload.as_ref().map(|payload| payload.get().to_owned());
    let pairs = [
        ("key", text(&job.key)),
        ("kind", kind.to_owned()),
        ("cron", cron),
        ("every", text(&schedule.every)),
        ("at", text(&schedule.at)),
        ("timezone", text(&schedule.timezone)),
        ("exclude", job.exclude.join(", ")),
        ("only", job.only.join(", ")),
        ("url", http.map(|http| http.url.clone()).unwrap_or_default()),
        (
            "method",
            http.map(|http| http.method.clone()).unwrap_or_default(),
        ),
        ("headers", headers),
        ("payload", payload.unwrap_or_default()),
        ("attempts", job.retry.attempts_max.to_string()),
        ("timeout", job.timeout.clone()),
        ("lane", job.lane.to_owned()),
        ("overlap", overlap_of(job).to_owned()),
        ("catch_up", job.catch_up.policy.to_owned()),
        ("spread", job.spread.clone()),
        ("start_within", text(&job.start_within)),
        ("finish_within", text(&job.finish_within)),
        ("labels", lines(&job.labels, "=")),
        ("version", job.version.to_string()),
    ];
    Fields(pairs.map(|(name, value)| (name.to_owned(), value)).to_vec())
}

async fn previewed(api: &Api, viewer: &Viewer, fields: &Fields) -> Result<Preview, Problem> {
    let body = json!({
        "schedule": schedule(fields),
        "exclude": names(fields.get("exclude")),
        "only": names(fields.get("only")),
        "count": SLOTS,
    });
    let asked = wire::preview(body.to_string().as_bytes())?;
    let found = preview::preview(api, viewer.id(), asked).await?;
    let theirs = Zone::get(fields.get("timezone")).unwrap_or_else(|_| Zone::utc());
    let face = face(viewer);
    let there = super::format::Face {
        zone: &theirs,
        now: viewer.now,
    };
    let row = |slot: &model::Slot| SlotRow {
        day: there.day(slot.0),
        theirs: there.clock(slot.0),
        ours: face.clock(slot.0),
        relative: super::format::relative(viewer.now, slot.0),
    };
    let city = |name: &str| name.rsplit('/').next().unwrap_or(name).replace('_', " ");
    Ok(Preview {
        slots: found.slots.iter().map(row).collect(),
        words: found.words,
        notes: found.notes,
        zone: city(theirs.name()),
        own_zone: city(viewer.zone.name()),
        same_zone: theirs.name() == viewer.zone.name(),
    })
}

/// Whether a form is of a new job or of one that is there.
struct Of<'a>(Option<&'a Job>);

async fn form(
    api: &Api,
    viewer: &Arc<Viewer>,
    Of(job): Of<'_>,
    fields: Fields,
    error: Option<Problem>,
) -> Answer {
    let (preview, unread) = match previewed(api, viewer, &fields).await {
        Ok(preview) => (Some(preview), None),
        Err(problem) => (None, Some(problem)),
    };
    let status = error
        .as_ref()
        .map_or(StatusCode::OK, |problem| problem.kind.status());
    let error = error.or(unread).map(|problem| {
        let field = problem.field.unwrap_or_default();
        (field_of(&field).to_owned(), problem.detail)
    });
    let frame = Frame::new(viewer, "Job", "/jobs");
    let all = |words_of: &[&'static str]| -> Vec<(&'static str, String)> {
        words_of.iter().map(|word| (*word, words(word))).collect()
    };
    let (heading, about, action, cancel, save, frame) = match job {
        Some(job) => {
            let (name, path) = (name_of(job), format!("/jobs/{}", job.id));
            let frame = frame
                .with_crumb(name.clone(), path.clone())
                .with_crumb("Edit", "");
            (
                format!("Edit {name}"),
                format!("Version {} is in force", job.version),
                format!("{path}/edit"),
                path,
                format!("Save as version {}", job.version.0 + 1),
                frame,
            )
        }
        None => (
            "New job".to_owned(),
            "What is due, when, and where it goes".to_owned(),
            "/jobs/new".to_owned(),
            "/jobs".to_owned(),
            "Create job".to_owned(),
            frame.with_crumb("New", ""),
        ),
    };
    let mut text = FormPage {
        frame,
        heading,
        about,
        action,
        cancel,
        save,
        fields,
        lanes: Lane::ALL.map(Lane::as_str).to_vec(),
        overlaps: all(&OVERLAPS),
        catch_ups: all(&CatchUpPolicy::ALL.map(CatchUpPolicy::as_str)),
        methods: METHODS.to_vec(),
        preview,
        error,
    };
    text.frame.bare.title.clone_from(&text.heading);
    Ok(page(status, text.render()?))
}

pub(super) async fn new(State(api): State<Arc<Api>>, By(viewer): By) -> Answer {
    viewer.needs(Role::Admin)?;
    form(&api, &viewer, Of(None), blank(&viewer.zone), None).await
}

pub(super) async fn create(State(api): State<Arc<Api>>, posted: Posted) -> Answer {
    posted.by.needs(Role::Admin)?;
    let made = match draft(&posted.fields, None) {
        Ok(draft) => jobs::create(&api, posted.by.caller, draft, None, Mode::Write)
            .await
            .map_err(Problem::from),
        Err(problem) => Err(problem),
    };
    match made {
        Ok(made) => {
            Ok(Redirect::to(&format!("/jobs/{}?done=created", made.job.id)).into_response())
        }
        Err(problem) => form(&api, &posted.by, Of(None), posted.fields, Some(problem)).await,
    }
}

fn draft(fields: &Fields, before: Option<&wire::Job>) -> Result<crate::ops::JobDraft, Problem> {
    let body = body(fields, before).map_err(Problem::from)?;
    Ok(wire::job_draft(body.as_bytes())?)
}

pub(super) async fn edit(
    State(api): State<Arc<Api>>,
    By(viewer): By,
    Path(id): Path<String>,
) -> Answer {
    viewer.needs(Role::Admin)?;
    let job = find(&api, &viewer, &id).await?;
    let fields = of_job(&wire::Job::of(&job));
    form(&api, &viewer, Of(Some(&job)), fields, None).await
}

pub(super) async fn save(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Answer {
    posted.by.needs(Role::Admin)?;
    let job = find(&api, &posted.by, &id).await?;
    let before = wire::Job::of(&job);
    // Whoever changed it since the form was drawn is not overwritten.
    let seen = posted.fields.get("version").parse().map(Version);
    let expect = seen.map_or(Expect::Existing, |seen| Expect::OneOf(vec![seen]));
    let changed = match draft(&posted.fields, Some(&before)) {
        Ok(draft) => jobs::patch(&api, posted.by.caller, job.id, draft, &expect, Mode::Write)
            .await
            .map_err(Problem::from),
        Err(problem) => Err(problem),
    };
    match changed {
        Ok(_) => Ok(Redirect::to(&format!("/jobs/{id}?done=saved")).into_response()),
        Err(problem) => {
            form(
                &api,
                &posted.by,
                Of(Some(&job)),
                posted.fields,
                Some(problem),
            )
            .await
        }
    }
}

/// The same form again, with what its schedule means.
pub(super) async fn preview(State(api): State<Arc<Api>>, posted: Posted) -> Answer {
    posted.by.needs(Role::Admin)?;
    let id = posted.fields.get("id");
    let job = if id.is_empty() {
        None
    } else {
        Some(find(&api, &posted.by, id).await?)
    };
    form(&api, &posted.by, Of(job.as_ref()), posted.fields, None).await
}
