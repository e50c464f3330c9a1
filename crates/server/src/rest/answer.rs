//! How answers leave: JSON, the version as ETag, cursors.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::{Job, JobId, RunId, limits};
use serde::Serialize;
use store::Page;

use super::extract::{Params, refuse};
use crate::ops::Changed;
use crate::problem::{Kind, Problem};
use crate::wire;

/// Entries of a page when the client does not say.
const LIMIT_DEFAULT: usize = 50;

pub const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

pub type Answer = Result<Response, Problem>;

pub fn json(status: StatusCode, value: &impl Serialize) -> Answer {
    let body = serde_json::to_vec(value).map_err(|error| {
        tracing::error!(%error, "an answer could not be written");
        Problem::new(
            Kind::Internal,
            "the answer could not be written; the log says why",
        )
    })?;
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    Ok(response)
}

/// A job with its version as ETag.
pub fn job(status: StatusCode, job: &Job) -> Answer {
    tagged(status, job, &wire::Job::of(job))
}

/// A job after a change, with what became of its runs.
pub fn changed(changed: &Changed) -> Answer {
    let answer = wire::JobAnswer {
        job: wire::Job::of(&changed.job),
        runs: wire::Runs::of(&changed.runs),
        slots: changed.slots.as_ref().map(wire::Slots::of),
    };
    tagged(StatusCode::OK, &changed.job, &answer)
}

fn tagged(status: StatusCode, job: &Job, value: &impl Serialize) -> Answer {
    let mut response = json(status, value)?;
    set(&mut response, header::ETAG, &format!("\"{}\"", job.version));
    if status == StatusCode::CREATED {
        set(
            &mut response,
            header::LOCATION,
            &format!("/v1/jobs/{}", job.id),
        );
    }
    Ok(response)
}

/// Our own texts are all fit for headers; one that is not is left out.
pub fn set(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// An id that can stand in a cursor.
pub trait CursorId: Sized {
    const MARK: u8;
    fn bytes(&self) -> &[u8; 16];
    fn of(bytes: [u8; 16]) -> Self;
}

impl CursorId for JobId {
    const MARK: u8 = b'j';

    fn bytes(&self) -> &[u8; 16] {
        self.as_bytes()
    }

    fn of(bytes: [u8; 16]) -> Self {
        Self::from_bytes(bytes)
    }
}

impl CursorId for RunId {
    const MARK: u8 = b'r';

    fn bytes(&self) -> &[u8; 16] {
        self.as_bytes()
    }

    fn of(bytes: [u8; 16]) -> Self {
        Self::from_bytes(bytes)
    }
}

/// Opaque to clients; the mark keeps a cursor of one listing out of another.
pub fn cursor<Id: CursorId>(id: &Id) -> String {
    let mut bytes = vec![Id::MARK];
    bytes.extend_from_slice(id.bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

pub fn page<Id: CursorId>(params: &Params) -> Result<Page<Id>, Problem> {
    let before = params.one("cursor")?.map(read_cursor).transpose()?;
    let limit = match params.one("limit")? {
        None => LIMIT_DEFAULT,
        Some(text) => {
            let number = text
                .parse()
                .ok()
                .filter(|limit| (1..=limits::PAGE_MAX).contains(limit));
            number.ok_or_else(|| {
                refuse(
                    "limit",
                    format!("limit is a whole number from 1 to {}", limits::PAGE_MAX),
                )
            })?
        }
    };
    Ok(Page { before, limit })
}

fn read_cursor<Id: CursorId>(text: &str) -> Result<Id, Problem> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok();
    let id = bytes
        .as_deref()
        .and_then(|bytes| match bytes.split_first() {
            Some((mark, id)) if *mark == Id::MARK => id.try_into().ok().map(Id::of),
            Some(_) | None => None,
        });
    id.ok_or_else(|| {
        refuse(
            "cursor",
            "the cursor is not one of ours: use next_cursor as it was answered",
        )
    })
}
