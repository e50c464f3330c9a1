//! The console: pages for people, served by the same binary. They call what REST calls (`ops`), with the tenant and the role of
//! whoever is logged in, and know nothing that a client could not.
//!
//! In reading order: `viewer` (who looks, and whose forms count), `frame` (what all pages have), `format` (moments and states in
//! words), `charts`, `fault`, `assets`, `squeeze`, `live` (pages that follow), `shared` (what many of them read); then the pages:
//! `login`, `overview`, `jobs`, `job` (with `heat`, `job_chart`, `job_actions`, `job_more`, `job_copy` and `diff`), `form` (with
//! `form_fields`, `form_json` and `form_plan`), `forecast`, `runs`, `run` (with `run_more`), `dead`, `replays`, `lists`, `audit`
//! and `settings`.

mod assets;
mod audit;
mod charts;
mod dead;
mod diff;
mod fault;
mod forecast;
mod form;
mod form_fields;
mod form_json;
mod form_plan;
mod format;
mod frame;
mod heat;
mod heat_marks;
mod job;
mod job_actions;
mod job_chart;
mod job_copy;
mod job_more;
mod jobs;
mod lists;
mod live;
mod login;
mod overview;
mod replays;
mod run;
mod run_more;
mod runs;
mod settings;
mod shared;
mod squeeze;
mod viewer;

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};

use crate::api::Api;

pub(crate) use shared::SharedPages;

/// Every page, for whoever is logged in; and the way in, for everyone.
pub(crate) fn router(api: &Arc<Api>) -> Router<Arc<Api>> {
    let pages = work()
        .merge(access())
        .layer(from_fn_with_state(Arc::clone(api), viewer::admit));
    Router::new()
        .route("/assets/{name}", get(assets::serve))
        .route("/login", get(login::show).post(login::login))
        .route("/login/link", get(login::link).post(login::open_link))
        .merge(pages)
        .layer(from_fn(squeeze::pages))
}

fn work() -> Router<Arc<Api>> {
    Router::new()
        .route("/", get(overview::show))
        .route("/jobs", get(jobs::list))
        .route("/jobs/new", get(form::new).post(form::create))
        .route("/jobs/preview", post(form::preview))
        .route("/jobs/view", post(form::turn))
        .route("/jobs/{id}", get(job::show))
        .route("/jobs/{id}/edit", get(form::edit).post(form::save))
        .route("/jobs/{id}/versions", get(job_more::versions))
        .route("/jobs/{id}/audit", get(job_more::audit))
        .route("/jobs/{id}/json", get(job_more::json))
        .route("/jobs/{id}/slots", get(job_more::slots))
        .route("/jobs/{id}/pause", post(job_actions::pause))
        .route("/jobs/{id}/resume", post(job_actions::resume))
        .route("/jobs/{id}/run", post(job_actions::run))
        .route("/jobs/{id}/delete", post(job_actions::delete))
        .route("/jobs/{id}/revert", post(job_actions::revert))
        .route("/runs", get(runs::list))
        .route("/runs/{id}", get(run::show))
        .route("/runs/{id}/cancel", post(run::cancel))
        .route("/runs/{id}/replay", post(run::replay))
        .route("/runs/{id}/wake", post(run_more::wake))
        .route("/dead", get(dead::show))
        .route("/dead/replay", post(dead::replay))
        .route("/replays/{id}", get(replays::show))
        .route("/replays/{id}/stop", post(replays::stop))
        .route("/calendars", get(lists::calendars))
        .route("/live", get(live::watch))
        .route("/spread", get(forecast::second).post(forecast::apply))
}

fn access() -> Router<Arc<Api>> {
    Router::new()
        .route("/lanes", get(lists::lanes))
        .route("/nodes", get(lists::nodes))
        .route("/targets", get(lists::targets))
        .route("/tenants", get(lists::tenants))
        .route("/users", get(lists::users))
        .route("/keys", get(lists::keys))
        .route("/keys/revoke", post(lists::revoke_key))
        .route("/secrets", get(lists::secrets))
        .route("/audit", get(audit::list))
        .route("/logout", post(login::logout))
        .route("/tenant", post(login::switch))
        .route("/zone", post(login::zone))
        .route("/settings", get(settings::show))
        .route("/settings/keys", post(settings::keys))
}
