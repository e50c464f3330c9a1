//! What is shown instead of a page: what happened, what still holds, what to do.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::frame::{Bare, page};
use crate::ops::OpError;
use crate::problem::{Kind, Problem};

#[derive(Debug)]
pub(super) struct PageError {
    pub problem: Problem,
    /// What to say in place of what the problem's kind says: its status and its title.
    says: Option<(StatusCode, &'static str)>,
}

impl PageError {
    /// A form of another tenant than the one that is shown now.
    pub(super) fn other_tenant(detail: String) -> Self {
        let title = "The page was of another tenant";
        Self {
            problem: Problem::new(Kind::RoleInsufficient, detail),
            says: Some((StatusCode::CONFLICT, title)),
        }
    }
}

impl From<Problem> for PageError {
    fn from(problem: Problem) -> Self {
        Self {
            problem,
            says: None,
        }
    }
}

impl From<OpError> for PageError {
    fn from(error: OpError) -> Self {
        Problem::from(error).into()
    }
}

impl From<askama::Error> for PageError {
    fn from(error: askama::Error) -> Self {
        tracing::error!(%error, "a page could not be written");
        let detail = "the page could not be written; the log says why";
        Problem::new(Kind::Internal, detail).into()
    }
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage {
    bare: Bare,
    heading: &'static str,
    detail: String,
    /// None where there is no page about it.
    code: Option<&'static str>,
    /// Whether trying again can help.
    again: bool,
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let Self { problem, says } = self;
        let kind = problem.kind;
        let (status, heading) = says.unwrap_or((kind.status(), kind.title()));
        let text = ErrorPage {
            bare: Bare::new(heading),
            heading,
            detail: problem.detail,
            code: says.is_none().then(|| kind.name()),
            again: status.is_server_error(),
        }
        .render();
        match text {
            Ok(text) => page(status, text),
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }
}
