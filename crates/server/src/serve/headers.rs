//! What every answer says to a browser: take it for what it is, run nothing of it, show it in no frame, keep it to yourself.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

/// For answers that are no page: there is nothing in them to run or to fetch.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);
/// A year. Not for names below this one: they may be somebody else's.
const STRICT: HeaderValue = HeaderValue::from_static("max-age=31536000");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

pub(super) fn add(headers: &mut HeaderMap, is_tls: bool) {
    let always = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (RESOURCE_POLICY, "same-origin"),
    ];
    for (name, value) in always {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // Pages have policies of their own.
    headers
        .entry(header::REFERRER_POLICY)
        .or_insert(HeaderValue::from_static("no-referrer"));
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(POLICY);
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    if is_tls {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, STRICT);
    }
}
