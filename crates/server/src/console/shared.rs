//! Pages that many follow at once: what their stream makes them read again is rendered once for all of the same tenant, role, zone
//! and span.
//!
//! What always holds: what is shared was rendered after the last change that the subject's streams have said, and carries no token
//! of anybody's session.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use model::TenantId;

use super::fault::PageError;
use super::frame::page;
use super::squeeze::{gzip, takes_gzip};
use super::viewer::Viewer;
use crate::api::Api;
use crate::ops::overview::Span;
use crate::ops::watch::Subject;

/// Renderings that are kept.
const KEPT_MAX: usize = 64;
/// A rendering answers for so long where nothing is said to have changed: what moves with time alone moves on.
const KEEP: Duration = Duration::from_secs(5);

/// What decides how a page looks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Variant {
    tenant: TenantId,
    role: &'static str,
    zone: String,
    span: &'static str,
}

struct Rendered {
    /// The number of its subject before it was rendered.
    number: u64,
    at: Duration,
    plain: Bytes,
    gzip: Option<Bytes>,
}

type Place = Arc<tokio::sync::Mutex<Option<Rendered>>>;

/// What was rendered last. Who comes while a page is being rendered waits for it.
#[derive(Default)]
pub(crate) struct SharedPages(Mutex<BTreeMap<Variant, Place>>);

impl SharedPages {
    fn place(&self, variant: Variant) -> Place {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= KEPT_MAX && !all.contains_key(&variant) {
            all.retain(|_, place| Arc::strong_count(place) > 1);
        }
        Arc::clone(all.entry(variant).or_default())
    }
}

/// Whether a page was read because its stream said so.
pub(super) fn is_live(headers: &HeaderMap) -> bool {
    headers.contains_key("punctual-live")
}

/// What an overview's stream made it read: rendered by whoever comes first, in the same words for the others.
pub(super) async fn overview(
    api: &Api,
    (viewer, span): (&Viewer, Span),
    headers: &HeaderMap,
    render: impl AsyncFnOnce() -> Result<String, PageError>,
) -> Result<Response, PageError> {
    let variant = Variant {
        tenant: viewer.id(),
        role: viewer.caller.role.as_str(),
        zone: viewer.zone.name().to_owned(),
        span: span.as_str(),
    };
    let place = api.shared_pages.place(variant);
    let mut last = place.lock().await;
    let (number, now) = (
        api.watched.number(Subject::Tenant(viewer.id())),
        api.engine.clock().uptime(),
    );
    let fresh = |it: &&Rendered| number == Some(it.number) && now < it.at + KEEP;
    if let Some(it) = last.as_ref().filter(fresh) {
        return Ok(answer(it, headers));
    }
    let plain = Bytes::from(render().await?);
    let rendered = Rendered {
        number: number.unwrap_or_default(),
        at: now,
        gzip: gzip(&plain),
        plain,
    };
    let answer = answer(&rendered, headers);
    *last = Some(rendered).filter(|_| number.is_some());
    Ok(answer)
}

fn answer(it: &Rendered, headers: &HeaderMap) -> Response {
    let small = it.gzip.as_ref().filter(|_| takes_gzip(headers));
    let mut response = page(StatusCode::OK, String::new());
    *response.body_mut() = Body::from(small.unwrap_or(&it.plain).clone());
    if small.is_some() {
        let gzip = HeaderValue::from_static("gzip");
        response
            .headers_mut()
            .insert(header::CONTENT_ENCODING, gzip);
    }
    response
}
