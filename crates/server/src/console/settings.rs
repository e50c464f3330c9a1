//! What somebody chose for the pages of this browser: the zone of moments, and keys. It is kept in cookies that say nothing else.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};

use super::frame::{Answer, Frame, page};
use super::viewer::{self, By, OfAnyTenant};

#[derive(Template)]
#[template(path = "settings.html")]
struct SettingsPage {
    frame: Frame,
    keys: [(&'static str, &'static str); 12],
}

/// What keys do where nobody types into a field.
const KEYS: [(&str, &str); 12] = [
    ("Ctrl K", "find a page, a job or a run"),
    ("/", "search on this page"),
    ("j  k", "the next row, the one before"),
    ("Enter", "open the row"),
    ("x", "tick the row"),
    ("e", "edit the job"),
    ("p", "pause or resume the job"),
    ("r", "run the job now"),
    (
        "g then o j r d c t l n a",
        "go to overview, jobs, runs, dead, calendars, targets, lanes, nodes, audit",
    ),
    ("Ctrl Enter", "send the form"),
    ("?", "these keys"),
    ("Esc", "close what is open"),
];

pub(super) async fn show(By(viewer): By) -> Answer {
    let text = SettingsPage {
        frame: Frame::new(&viewer, "Settings", "/settings"),
        keys: KEYS,
    };
    Ok(page(StatusCode::OK, text.render()?))
}

/// Turns single letters on or off.
pub(super) async fn keys(OfAnyTenant(posted): OfAnyTenant) -> Answer {
    let mut response: Response = Redirect::to("/settings").into_response();
    viewer::set_keys(&mut response, posted.fields.get("keys") == "on");
    Ok(response)
}
