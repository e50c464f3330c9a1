//! The page of each problem: Markdown as it was written, or HTML for a browser.

use std::fmt::Write as _;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;

use super::answer::Answer;
use super::docs;
use super::extract::shown;
use crate::docs::{document, plain};
use crate::problem::{Kind, Problem};

pub(super) async fn index(headers: HeaderMap) -> Answer {
    let mut text = String::from(
        "# Problems\n\nEvery answer that is not what was asked for names one of these.\n\n",
    );
    for kind in Kind::ALL {
        let (name, status) = (kind.name(), kind.status().as_u16());
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "- [{name}](/problems/{name}): {} ({status})",
            kind.title()
        );
    }
    Ok(page(&headers, "Problems", &text))
}

pub(super) async fn show(name: Result<Path<String>, PathRejection>, headers: HeaderMap) -> Answer {
    let name = name.map(|Path(name)| name).unwrap_or_default();
    let kind = Kind::find(&name).ok_or_else(|| {
        let detail = format!(
            "{:?} is not a problem of ours: /problems names them all",
            shown(&name)
        );
        Problem::new(Kind::RouteUnknown, detail)
    })?;
    Ok(page(&headers, kind.title(), kind.page()))
}

fn page(headers: &HeaderMap, title: &str, markdown: &str) -> Response {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    let mut response = if accept.contains("text/html") {
        docs::html(document(title, "/problems", &plain(markdown)))
    } else {
        docs::with_policy("text/markdown; charset=utf-8", markdown.to_owned())
    };
    let vary = HeaderValue::from_static("accept");
    response.headers_mut().insert(header::VARY, vary);
    response
}
