//! One run: its attempts on its own scale, the request and the answers; cancel and replay.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect};
use bytes::Bytes;
use model::{Attempt, Job, Outcome, Role, Run, RunId, RunState};

use super::fault::PageError;
use super::format::{Face, Pill, State as Shown, When, span, words};
use super::frame::{Answer, Frame, Toast, face, page};
use super::job::Fact;
use super::jobs::name_of;
use super::login::param;
use super::run_more::{Log, Network, Outside, cost, may_wake, network, outside};
use super::runs::due_first;
use super::viewer::{By, Posted, Viewer};
use crate::api::Api;
use crate::ops::{jobs, runs, versions};
use crate::problem::{Kind, Problem};
use crate::wire;

type Params = Query<Vec<(String, String)>>;

/// One attempt, as a bar on the run's scale and with its moments.
struct AttemptRow {
    no: u32,
    state: Shown,
    node: String,
    /// In percent of the run.
    x: String,
    width: String,
    end: String,
    mid: String,
    end_class: &'static str,
    moments: Vec<Fact>,
    error: Option<String>,
    output: String,
    output_note: &'static str,
    network: Option<Network>,
    cost: Vec<Fact>,
    /// The wait before it, in words.
    waited: Option<String>,
}

#[derive(Template)]
#[template(path = "run.html")]
struct RunPage {
    frame: Frame,
    id: String,
    heading: String,
    job: String,
    job_id: String,
    due: When,
    pill: Pill,
    facts: Vec<Fact>,
    attempts: Vec<AttemptRow>,
    ticks: Vec<(String, String, &'static str)>,
    request: Vec<(String, String)>,
    payload: Option<String>,
    version_note: Option<String>,
    outside: Option<Outside>,
    log: Option<Log>,
    may_cancel: bool,
    may_wake: bool,
    may_replay: bool,
    replay_of: Option<String>,
    note: Option<String>,
}

pub(super) async fn find(api: &Api, viewer: &Viewer, text: &str) -> Result<Run, PageError> {
    let id: RunId = text
        .parse()
        .map_err(|error: model::id::IdError| Problem::new(Kind::RunNotFound, error.to_string()))?;
    Ok(runs::get(api, viewer.id(), id).await?)
}

fn outcome_state(outcome: Outcome, answer: &str) -> Shown {
    let with = |word: &str| {
        if answer.is_empty() {
            word.to_owned()
        } else {
            format!("{word}: {answer}")
        }
    };
    match outcome {
        Outcome::Succeeded => Shown::new("ran", with("Succeeded")),
        Outcome::Failed => Shown::new("dead", with("Failed")),
        Outcome::TimedOut => Shown::new("late", "Timed out"),
        Outcome::Lost => Shown::new("missed", "Lost"),
        Outcome::Cancelled => Shown::new("skipped", "Cancelled"),
    }
}

/// From the run's due time to its end, or to now.
struct Scale {
    from: i64,
    span: i64,
}

impl Scale {
    fn of(run: &Run, due: i64, now: i64) -> Self {
        let ended = run.settled_at.map(model::Timestamp::as_millis);
        let last = run.attempts.last().map(|last| last.settled_at.as_millis());
        let to = ended
            .or(last.filter(|_| !run.state.is_live()))
            .unwrap_or(now);
        Self {
            from: due,
            span: (to - due).max(1),
        }
    }

    fn percent(&self, at: i64) -> f64 {
        ((at - self.from) as f64 / self.span as f64 * 100.0).clamp(0.0, 100.0)
    }

    fn ticks(&self) -> Vec<(String, String, &'static str)> {
        let tick = |part: i64| {
            let anchor = match part {
                0 => "start",
                4 => "end",
                _ => "middle",
            };
            let text = if part == 0 {
                "due".to_owned()
            } else {
                format!("+{}", span(self.span * part / 4))
            };
            (format!("{}%", part * 25), text, anchor)
        };
        (0..=4).map(tick).collect()
    }
}

/// When it was dispatched and settled, counted from when its run was due, and how long that took.
fn moments(face: &Face<'_>, attempt: &Attempt, due: i64, begun: i64) -> Vec<Fact> {
    let moment = |name, at: model::Timestamp| Fact {
        name,
        value: format!("+{}", span(at.as_millis() - due)).replace("+−", "−"),
        more: face.precise(at),
    };
    let dispatched = attempt.dispatched_at.map(|at| moment("Dispatched", at));
    let mut moments: Vec<Fact> = dispatched.into_iter().collect();
    moments.push(moment("Settled", attempt.settled_at));
    moments.push(Fact {
        name: "Took",
        value: span(attempt.settled_at.as_millis() - begun),
        more: String::new(),
    });
    moments
}

fn attempt_rows(viewer: &Viewer, run: &Run, scale: &Scale) -> Vec<AttemptRow> {
    let face = face(viewer);
    let mut ended_before: Option<i64> = None;
    let mut rows = Vec::with_capacity(run.attempts.len());
    let due = scale.from;
    for (attempt, shown) in run.attempts.iter().zip(wire::Run::of(run).attempts) {
        let settled = attempt.settled_at.as_millis();
        let begun = attempt
            .dispatched_at
            .map_or(settled, model::Timestamp::as_millis);
        let (x, end) = (scale.percent(begun), scale.percent(settled));
        let status = attempt
            .status
            .map(|status| status.to_string())
            .unwrap_or_default();
        let state = outcome_state(attempt.outcome, &status);
        let waited = ended_before.map(|before| {
            format!(
                "Waited {} before the next attempt.",
                span((begun - before).max(0))
            )
        });
        ended_before = Some(settled);
        rows.push(AttemptRow {
            no: attempt.no.0,
            network: network(&shown),
            cost: cost(&shown),
            end_class: state.class,
            state,
            node: shown.node.unwrap_or_default(),
            x: format!("{x:.2}%"),
            width: format!("{:.2}%", (end - x).max(0.3)),
            mid: format!("{:.2}%", (x + end) / 2.0),
            end: format!("{:.2}%", (end - 0.3).max(0.0)),
            moments: moments(&face, attempt, due, begun),
            error: shown.error.filter(|error| !error.is_empty()),
            output_note: if shown.output_encoding == "base64" {
                "not text; shown as base64"
            } else {
                ""
            },
            output: shown.output,
            waited,
        });
    }
    rows
}

fn run_facts(run: &Run, scale: &Scale, attempts_max: Option<u32>) -> Vec<Fact> {
    let fact = |name, value: String, more: String| Fact { name, value, more };
    let none = || "—".to_owned();
    let late = run
        .dispatched_at
        .map(|at| span((at.as_millis() - scale.from).max(0)));
    let took = run
        .settled_at
        .zip(run.dispatched_at)
        .map(|(to, from)| span(to.as_millis() - from.as_millis()));
    let of = attempts_max.map_or_else(String::new, |max| format!("of at most {max}"));
    let node = run.attempts.last().and_then(|last| last.node.as_deref());
    vec![
        fact(
            "Late by",
            late.unwrap_or_else(none),
            "from due to dispatched".to_owned(),
        ),
        fact(
            "Took",
            took.unwrap_or_else(none),
            "from dispatched to settled".to_owned(),
        ),
        fact("Attempts", run.attempts.len().to_string(), of),
        fact(
            "Answer",
            run.attempts
                .last()
                .and_then(|it| it.status)
                .map_or_else(none, |it| it.to_string()),
            words(run.attempts.last().map_or("", |it| it.outcome.as_str())),
        ),
        fact(
            "Node",
            node.map_or_else(none, str::to_owned),
            "of the last attempt".to_owned(),
        ),
        fact(
            "Version",
            run.version.to_string(),
            format!("lane {}", run.lane.as_str()),
        ),
    ]
}

/// The request as the run's version of the job has it, with secrets masked as they are everywhere.
async fn request_of(
    api: &Api,
    viewer: &Viewer,
    run: &Run,
) -> Result<
    (
        Vec<(String, String)>,
        Option<String>,
        Option<Job>,
        Option<String>,
    ),
    PageError,
> {
    let stands = jobs::get(api, viewer.id(), run.job).await.ok();
    let of = match &stands {
        Some(job) if job.version == run.version => Some(wire::Job::of(job)),
        Some(job) => match versions::get(api, viewer.id(), job.id, run.version).await {
            Ok(of) => Some(wire::Job::of(&of.job)),
            Err(_) => None,
        },
        None => None,
    };
    let note = of.is_none().then(|| {
        format!(
            "Version {} of the job is not kept any more, so that its request is not known.",
            run.version
        )
    });
    let Some(of) = of else {
        return Ok((Vec::new(), None, stands, note));
    };
    let mut lines = Vec::new();
    if let Some(shell) = &of.target.shell {
        lines.push(("command".to_owned(), wire::command_line(&of.target)));
        lines.extend(shell.env.clone());
    }
    if let Some(python) = &of.target.python {
        lines.push(("interpreter".to_owned(), python.interpreter.clone()));
        lines.push(("arguments".to_owned(), python.args.join(" ")));
        lines.extend(python.env.clone());
        lines.push(("source".to_owned(), format!("\n{}", python.source)));
    }
    if let Some(http) = of.target.http {
        lines.push((http.method, http.url));
        lines.extend(http.headers);
    }
    let own = run
        .payload
        .as_ref()
        .map(|it| String::from_utf8_lossy(it).into_owned());
    let payload = own.or_else(|| of.payload.map(|payload| payload.get().to_owned()));
    Ok((lines, payload, stands, note))
}

pub(super) async fn show(
    State(api): State<Arc<Api>>,
    By(viewer): By,
    Path(id): Path<String>,
    Query(params): Params,
) -> Answer {
    let run = find(&api, &viewer, &id).await?;
    let (request, payload, job, version_note) = request_of(&api, &viewer, &run).await?;
    let (outside, log) = outside(&api, &viewer, &run).await?;
    let due = due_first(&run, job.as_ref());
    let scale = Scale::of(&run, due.as_millis(), viewer.now.as_millis());
    let face = face(&viewer);
    let heading = match run.kind {
        model::RunKind::Slot => format!("Run of {}", face.clock(due)),
        model::RunKind::Manual => format!("Manual run of {}", face.clock(due)),
        model::RunKind::Replay => format!("Replay of {}", face.clock(due)),
    };
    let name = job.as_ref().map_or_else(|| run.job.to_string(), name_of);
    let toast = match param(&params, "done") {
        "started" => Some("Started. This page follows it."),
        "replayed" => Some("Replayed: this is the new run."),
        "cancelled" => Some("Cancelled."),
        "woken" => Some("It waits no more: it goes as soon as there is room."),
        _ => None,
    };
    let toast = toast.map(|text| Toast { text, undo: None });
    let live = run.state.is_live().then(|| format!("/live?run={}", run.id));
    let text = RunPage {
        frame: Frame::new(&viewer, heading.clone(), "/jobs")
            .with_crumb(name.clone(), format!("/jobs/{}", run.job))
            .with_crumb(face.absolute(due), "")
            .with_live(live)
            .with_toast(toast),
        id: run.id.to_string(),
        heading,
        job: name,
        job_id: run.job.to_string(),
        due: face.when(due),
        pill: Shown::of_run(&run).pill(),
        facts: run_facts(
            &run,
            &scale,
            job.as_ref().map(|job| job.def.retry.attempts_max),
        ),
        attempts: attempt_rows(&viewer, &run, &scale),
        ticks: scale.ticks(),
        request,
        payload,
        version_note,
        outside,
        log,
        may_wake: may_wake(&viewer, &run),
        may_cancel: viewer.may(Role::Operator) && run.state.is_live(),
        may_replay: viewer.may(Role::Operator)
            && !run.state.is_live()
            && run.state != RunState::Skipped
            && job.is_some(),
        replay_of: run.replay_of.map(|id| id.to_string()),
        note: run.note.clone(),
    };
    Ok(page(StatusCode::OK, text.render()?))
}

pub(super) async fn cancel(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Answer {
    posted.by.needs(Role::Operator)?;
    let run = find(&api, &posted.by, &id).await?;
    runs::cancel(&api, posted.by.id(), run.id).await?;
    Ok(Redirect::to(&format!("/runs/{id}?done=cancelled")).into_response())
}

/// A replay, with the payload that is in the form, if one is.
pub(super) async fn replay(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Answer {
    posted.by.needs(Role::Operator)?;
    let run = find(&api, &posted.by, &id).await?;
    let text = posted.fields.get("payload").trim();
    let payload = if text.is_empty() {
        None
    } else {
        Some(json(text)?)
    };
    let request = runs::StartRequest {
        payload,
        ..runs::StartRequest::default()
    };
    let new = runs::replay(&api, posted.by.id(), run.id, request).await?;
    Ok(Redirect::to(&format!("/runs/{}?done=replayed", new.id)).into_response())
}

/// As the API reads it: what is not JSON is refused.
fn json(text: &str) -> Result<Bytes, PageError> {
    let body = format!("{{\"payload\":{text}}}");
    let request = wire::start(body.as_bytes()).map_err(Problem::from)?;
    Ok(request.payload.unwrap_or_default())
}
