//! How answers leave: JSON, the version as ETag, cursors.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::{
    AlertName, CalendarName, Job, JobId, KeyId, ReplayId, RunId, SecretName, Slot, TenantId,
    TenantName, Timestamp, UserName, Version, limits,
};
use serde::Serialize;
use store::Page;

use super::extract::{Params, refuse};
use crate::api::Api;
use crate::ops::{Changed, Mode, preview};
use crate::problem::{Kind, Problem};
use crate::wire;

/// Entries of a page when the client does not say.
pub(super) const LIMIT_DEFAULT: usize = 50;

pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

pub(super) type Answer = Result<Response, Problem>;

pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Answer {
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
pub(super) fn job(status: StatusCode, job: &Job) -> Answer {
    tagged(status, job, &wire::Job::of(job))
}

/// A job after a change, with what became of its runs. A rehearsal's has no ETag: there is no such version.
pub(super) fn changed(changed: &Changed, mode: Mode) -> Answer {
    let mut answer = wire::JobAnswer {
        job: wire::Job::of(&changed.job),
        runs: wire::Runs::of(&changed.runs),
        slots: changed.slots.as_ref().map(wire::Slots::of),
        dry_run: None,
    };
    match mode {
        Mode::Write => tagged(StatusCode::OK, &changed.job, &answer),
        Mode::Dry => {
            answer.dry_run = Some(true);
            json(StatusCode::OK, &answer)
        }
    }
}

/// A job that would be created.
pub(super) async fn rehearsed(api: &Api, job: &Arc<Job>) -> Answer {
    let slots = preview::of_new(api, job).await?;
    changed(&Changed::unwritten(Arc::clone(job), Some(slots)), Mode::Dry)
}

fn tagged(status: StatusCode, job: &Job, value: &impl Serialize) -> Answer {
    let path = format!("/v1/jobs/{}", job.id);
    versioned(status, job.version, &path, value)
}

/// What has versions: ETag, and where it is if it is new.
pub(super) fn versioned(
    status: StatusCode,
    version: Version,
    path: &str,
    value: &impl Serialize,
) -> Answer {
    let mut response = json(status, value)?;
    set(&mut response, header::ETAG, &format!("\"{version}\""));
    if status == StatusCode::CREATED {
        set(&mut response, header::LOCATION, path);
    }
    Ok(response)
}

/// Our own texts are all fit for headers; one that is not is left out.
pub(super) fn set(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// What can stand in a cursor.
pub(super) trait Cursor: Sized {
    const MARK: u8;
    fn bytes(&self) -> Vec<u8>;
    fn of(bytes: &[u8]) -> Option<Self>;
}

impl Cursor for JobId {
    const MARK: u8 = b'j';

    fn bytes(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::from_bytes)
    }
}

impl Cursor for RunId {
    const MARK: u8 = b'r';

    fn bytes(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::from_bytes)
    }
}

impl Cursor for ReplayId {
    const MARK: u8 = b'p';

    fn bytes(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::from_bytes)
    }
}

impl Cursor for AlertName {
    const MARK: u8 = b'l';

    fn bytes(&self) -> Vec<u8> {
        self.as_str().as_bytes().to_vec()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        Self::new(str::from_utf8(bytes).ok()?).ok()
    }
}

impl Cursor for TenantName {
    const MARK: u8 = b't';

    fn bytes(&self) -> Vec<u8> {
        self.as_str().as_bytes().to_vec()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        Self::new(str::from_utf8(bytes).ok()?).ok()
    }
}

impl Cursor for SecretName {
    const MARK: u8 = b'x';

    fn bytes(&self) -> Vec<u8> {
        self.as_str().as_bytes().to_vec()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        Self::stored(str::from_utf8(bytes).ok()?).ok()
    }
}

impl Cursor for UserName {
    const MARK: u8 = b'u';

    fn bytes(&self) -> Vec<u8> {
        self.as_str().as_bytes().to_vec()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        Self::new(str::from_utf8(bytes).ok()?).ok()
    }
}

/// Of all tenants' secrets.
impl Cursor for (TenantId, SecretName) {
    const MARK: u8 = b'y';

    fn bytes(&self) -> Vec<u8> {
        [self.0.as_bytes(), self.1.as_str().as_bytes()].concat()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        let (tenant, name) = bytes.split_first_chunk::<16>()?;
        Some((TenantId::from_bytes(*tenant), SecretName::of(name)?))
    }
}

impl Cursor for KeyId {
    const MARK: u8 = b'k';

    fn bytes(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::from_bytes)
    }
}

/// The number of an audit entry.
impl Cursor for u64 {
    const MARK: u8 = b'a';

    fn bytes(&self) -> Vec<u8> {
        self.to_be_bytes().to_vec()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::from_be_bytes)
    }
}

impl Cursor for Version {
    const MARK: u8 = b'v';

    fn bytes(&self) -> Vec<u8> {
        self.0.to_be_bytes().to_vec()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        Some(Self(u32::from_be_bytes(bytes.try_into().ok()?)))
    }
}

impl Cursor for Slot {
    const MARK: u8 = b's';

    fn bytes(&self) -> Vec<u8> {
        self.0.as_millis().to_be_bytes().to_vec()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        let millis = i64::from_be_bytes(bytes.try_into().ok()?);
        Timestamp::checked(millis).map(Self)
    }
}

impl Cursor for CalendarName {
    const MARK: u8 = b'c';

    fn bytes(&self) -> Vec<u8> {
        self.as_str().as_bytes().to_vec()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        Self::new(str::from_utf8(bytes).ok()?).ok()
    }
}

/// Opaque to clients; the mark keeps a cursor of one listing out of another.
pub(super) fn cursor<T: Cursor>(at: &T) -> String {
    let mut bytes = vec![T::MARK];
    bytes.extend_from_slice(&at.bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(super) fn page<Id: Cursor>(params: &Params) -> Result<Page<Id>, Problem> {
    Ok(Page {
        before: cursor_of(params)?,
        limit: limit_of(params, LIMIT_DEFAULT)?,
    })
}

/// How many entries a page may have.
pub(super) fn limit_of(params: &Params, default: usize) -> Result<usize, Problem> {
    let Some(text) = params.one("limit")? else {
        return Ok(default);
    };
    let number = text.parse().ok();
    let fits = number.filter(|limit| (1..=limits::PAGE_MAX).contains(limit));
    fits.ok_or_else(|| {
        let detail = format!("limit is a whole number from 1 to {}", limits::PAGE_MAX);
        refuse("limit", detail)
    })
}

/// Where the page begins.
pub(super) fn cursor_of<T: Cursor>(params: &Params) -> Result<Option<T>, Problem> {
    params.one("cursor")?.map(read_cursor).transpose()
}

fn read_cursor<T: Cursor>(text: &str) -> Result<T, Problem> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok();
    let at = bytes
        .as_deref()
        .and_then(|bytes| match bytes.split_first() {
            Some((mark, at)) if *mark == T::MARK => T::of(at),
            Some(_) | None => None,
        });
    at.ok_or_else(|| {
        refuse(
            "cursor",
            "the cursor is not one of ours: use next_cursor as it was answered",
        )
    })
}
