//! Who changed what.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use model::Role;
use store::{Action, AuditEntry, Page};

use super::format::When;
use super::frame::{Answer, Frame, face, page};
use super::jobs::{cursor, shown};
use super::login::param;
use super::viewer::{By, Viewer};
use crate::api::Api;
use crate::ops::audit;

const PAGE: usize = 50;

type Params = Query<Vec<(String, String)>>;

pub(super) struct AuditRow {
    pub seq: u64,
    pub when: When,
    pub actor: String,
    pub action: String,
    pub subject: String,
    /// Where the subject is shown.
    pub link: Option<String>,
    pub before: Option<String>,
    pub after: Option<String>,
    pub address: String,
    pub key: String,
    pub request: String,
}

pub(super) fn audit_row(viewer: &Viewer, entry: AuditEntry) -> AuditRow {
    let pretty = |text: Option<String>| {
        let json: Option<serde_json::Value> = text.and_then(|it| serde_json::from_str(&it).ok());
        json.and_then(|json| serde_json::to_string_pretty(&json).ok())
    };
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "—".to_owned());
    let is_job = entry.subject.starts_with("job_") && entry.action != "job.delete";
    AuditRow {
        seq: entry.seq,
        when: face(viewer).when(entry.at),
        actor: entry.actor,
        action: entry.action,
        link: is_job.then(|| format!("/jobs/{}", entry.subject)),
        subject: entry.subject,
        before: pretty(entry.before),
        after: pretty(entry.after),
        address: or_none(entry.address),
        key: or_none(entry.key.map(|key| key.to_string())),
        request: or_none(entry.request),
    }
}

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    frame: Frame,
    /// Why the filter means nothing.
    error: Option<String>,
    trail: Vec<AuditRow>,
    actions: Vec<&'static str>,
    action: String,
    actor: String,
    subject: String,
    next: Option<String>,
    first: bool,
}

pub(super) async fn list(
    State(api): State<Arc<Api>>,
    By(viewer): By,
    Query(params): Params,
) -> Answer {
    viewer.needs(Role::Admin)?;
    let text = |name: &str| param(&params, name).trim().to_owned();
    let (action, actor, subject) = (text("action"), text("actor"), text("subject"));
    let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let filter = audit::AuditFilter {
        action: Action::parse(&action),
        actor: some(&actor),
        subject: some(&subject),
        ..audit::AuditFilter::default()
    };
    let before = if filter.action.is_none() && !action.is_empty() {
        let all = Action::ALL.map(Action::as_str).join(", ");
        let action = shown(&action);
        Err(format!(
            "There is no action {action:?}: choose one of {all}."
        ))
    } else {
        cursor(param(&params, "before"))
    };
    let (before, entries, next, error) = match before {
        Ok(before) => {
            let of = Page {
                before,
                limit: PAGE,
            };
            // What the page shows is of the tenant that it is about, also to root.
            let found = audit::list(&api, Some(viewer.id()), &filter, of).await?;
            (before, found.items, found.next, None)
        }
        Err(why) => (None, Vec::new(), None, Some(why)),
    };
    let status = error
        .as_ref()
        .map_or(StatusCode::OK, |_| StatusCode::BAD_REQUEST);
    let query = [
        ("action", &action),
        ("actor", &actor),
        ("subject", &subject),
    ]
    .map(|(name, value)| format!("{name}={}", super::format::encode(value)))
    .join("&");
    let rows = entries.into_iter().map(|entry| audit_row(&viewer, entry));
    let text = AuditPage {
        trail: rows.collect(),
        actions: Action::ALL.map(Action::as_str).to_vec(),
        next: next.map(|next| format!("/audit?{query}&before={next}")),
        error,
        first: before.is_some(),
        frame: Frame::new(&viewer, "Audit", "/audit"),
        action,
        actor,
        subject,
    };
    Ok(page(status, text.render()?))
}
