//! The other pages of a job: its versions, who changed it, its JSON, and every slot of a day.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use model::{Role, Timestamp, Version};
use store::Page;

use super::audit::AuditRow;
use super::diff::{self, Line};
use super::format::{State as Shown, When};
use super::frame::{Answer, Frame, face, page};
use super::heat::state_of;
use super::job::{Head, find, trail};
use super::job_copy::Copies;
use super::login::param;
use super::viewer::By;
use crate::api::Api;
use crate::ops::slots::{self, Entry, Fate, Range};
use crate::ops::versions;
use crate::wire;

const PAGE: usize = 20;

type Params = Query<Vec<(String, String)>>;

struct VersionRow {
    version: u32,
    made: Option<When>,
    by: String,
    lines: Vec<Line>,
    is_current: bool,
}

#[derive(Template)]
#[template(path = "job-versions.html")]
struct VersionsPage {
    frame: Frame,
    head: Head,
    rows: Vec<VersionRow>,
    next: Option<String>,
}

pub(super) async fn versions(
    State(api): State<Arc<Api>>,
    By(viewer): By,
    Path(id): Path<String>,
    Query(params): Params,
) -> Answer {
    let job = find(&api, &viewer, &id).await?;
    let of = Page {
        before: param(&params, "before").parse().ok().map(Version),
        limit: PAGE,
    };
    let listed = versions::list(&api, viewer.id(), job.id, of).await?;
    let row = |of: &versions::VersionOf| {
        let shown = wire::JobVersion::of(of);
        VersionRow {
            version: shown.version,
            made: of.made.as_ref().map(|(at, _)| face(&viewer).when(*at)),
            by: shown.made_by.unwrap_or_else(|| "—".to_owned()),
            lines: of
                .before
                .as_ref()
                .map(|before| diff::jobs(before, &of.job))
                .unwrap_or_default(),
            is_current: of.job.version == job.version,
        }
    };
    let head = Head::new(&viewer, &job, "versions");
    let text = VersionsPage {
        frame: head.frame(&viewer).with_crumb("Versions", ""),
        rows: listed.items.iter().map(row).collect(),
        next: listed
            .next
            .map(|next| format!("/jobs/{id}/versions?before={next}")),
        head,
    };
    Ok(page(StatusCode::OK, text.render()?))
}

#[derive(Template)]
#[template(path = "job-audit.html")]
struct AuditPage {
    frame: Frame,
    head: Head,
    trail: Vec<AuditRow>,
}

pub(super) async fn audit(
    State(api): State<Arc<Api>>,
    By(viewer): By,
    Path(id): Path<String>,
) -> Answer {
    viewer.needs(Role::Admin)?;
    let job = find(&api, &viewer, &id).await?;
    let head = Head::new(&viewer, &job, "audit");
    let text = AuditPage {
        frame: head.frame(&viewer).with_crumb("Audit", ""),
        trail: trail(&api, &viewer, &job, 100).await?,
        head,
    };
    Ok(page(StatusCode::OK, text.render()?))
}

#[derive(Template)]
#[template(path = "job-json.html")]
struct JsonPage {
    frame: Frame,
    head: Head,
    json: String,
    copies: Copies,
}

pub(super) async fn json(
    State(api): State<Arc<Api>>,
    By(viewer): By,
    Path(id): Path<String>,
) -> Answer {
    let job = find(&api, &viewer, &id).await?;
    let head = Head::new(&viewer, &job, "json");
    let text = JsonPage {
        frame: head.frame(&viewer).with_crumb("JSON", ""),
        json: serde_json::to_string_pretty(&wire::Job::of(&job)).unwrap_or_default(),
        copies: Copies::of(&job),
        head,
    };
    Ok(page(StatusCode::OK, text.render()?))
}

#[derive(Template)]
#[template(path = "job-slots.html")]
struct SlotsPage {
    frame: Frame,
    head: Head,
    day: String,
    rows: Vec<SlotRow>,
    next: Option<String>,
    before: String,
    after: String,
}

struct SlotRow {
    at: String,
    when: When,
    state: Shown,
    run: Option<String>,
    says: String,
    count: Option<String>,
}

/// Every slot of one day, for readers of tables.
pub(super) async fn slots(
    State(api): State<Arc<Api>>,
    By(viewer): By,
    Path(id): Path<String>,
    Query(params): Params,
) -> Answer {
    let job = find(&api, &viewer, &id).await?;
    let moment = Timestamp::parse(param(&params, "day")).unwrap_or(viewer.now);
    let start = |days| viewer.zone.day_start(moment, days);
    let range = Range {
        from: start(0),
        to: start(1),
        cursor: Timestamp::parse(param(&params, "from"))
            .ok()
            .map(model::Slot),
        limit: 500,
    };
    let found = slots::list(&api, viewer.id(), job.id, range).await?;
    let face = face(&viewer);
    let row = |entry: &Entry| {
        let shown = wire::SlotEntry::of(entry);
        let run = match &entry.fate {
            Fate::Ran(run) => Some(run.id.to_string()),
            Fate::Skipped(_) | Fate::Planned { .. } | Fate::Unknown => None,
        };
        let count = entry.slots.count;
        SlotRow {
            at: shown.slot.clone(),
            when: face.when(entry.due_at),
            state: state_of(&entry.fate),
            run,
            says: shown.note.flatten().unwrap_or_default(),
            count: (count > 1).then(|| format!("{} slots", super::format::count(count))),
        }
    };
    let head = Head::new(&viewer, &job, "summary");
    let path = |day: Timestamp| format!("/jobs/{id}/slots?day={day}");
    let text = SlotsPage {
        frame: head.frame(&viewer).with_crumb(face.day(moment), ""),
        day: face.day(moment),
        rows: found.entries.iter().map(row).collect(),
        next: found
            .next
            .map(|next| format!("{}&from={next}", path(start(0)))),
        before: path(start(-1)),
        after: path(start(1)),
        head,
    };
    Ok(page(StatusCode::OK, text.render()?))
}
