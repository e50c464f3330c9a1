//! What is shown instead of a page: what happened, what still holds, what to do.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::frame::{Bare, page};
use crate::ops::OpError;
use crate::problem::{Kind, Problem};

#[derive(Debug)]
pub(super) struct PageError(pub Problem);

impl From<Problem> for PageError {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<OpError> for PageError {
    fn from(error: OpError) -> Self {
        Self(error.into())
    }
}

impl From<askama::Error> for PageError {
    fn from(error: askama::Error) -> Self {
        tracing::error!(%error, "a page could not be written");
        let detail = "the page could not be written; the log says why";
        Self(Problem::new(Kind::Internal, detail))
    }
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage {
    bare: Bare,
    heading: &'static str,
    detail: String,
    code: &'static str,
    /// Whether trying again can help.
    again: bool,
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let Self(problem) = self;
        let status = problem.kind.status();
        let text = ErrorPage {
            bare: Bare::new(problem.kind.title()),
            heading: problem.kind.title(),
            detail: problem.detail,
            code: problem.kind.name(),
            again: status.is_server_error(),
        }
        .render();
        match text {
            Ok(text) => page(status, text),
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }
}
