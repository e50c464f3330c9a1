//! The guides and the API for people with a browser: HTML without a script, and a policy that lets in none.

use axum::body::Body;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderValue, header};
use axum::response::Response;

use super::answer::Answer;
use super::extract::shown;
use crate::docs::{self, Page};
use crate::problem::{Kind, Problem};

const POLICY: &str = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(super) async fn index() -> Answer {
    page("")
}

pub(super) async fn show(name: Result<Path<String>, PathRejection>) -> Answer {
    let name = name.map(|Path(name)| name).unwrap_or_default();
    page(&format!("/{name}"))
}

fn page(path: &str) -> Answer {
    let found = Page::at(&format!("/docs{path}"));
    let page = found.ok_or_else(|| {
        let path = shown(path);
        let detail = format!("{path:?} is not a page of ours: /docs names them all");
        Problem::new(Kind::RouteUnknown, detail)
    })?;
    Ok(html(page.html()))
}

pub(super) async fn api() -> Answer {
    Ok(html(docs::api().to_owned()))
}

pub(super) async fn style() -> Response {
    with_policy("text/css; charset=utf-8", docs::STYLE.to_owned())
}

pub(super) fn html(text: String) -> Response {
    with_policy("text/html; charset=utf-8", text)
}

/// Whatever a page may ever hold by mistake: nothing of it is run, and nothing is fetched from elsewhere.
pub(super) fn with_policy(media_type: &'static str, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(POLICY),
    );
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    );
    response
}
