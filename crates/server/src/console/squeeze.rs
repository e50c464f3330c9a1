//! Pages are sent compressed to whoever takes that.

use std::io::Write;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// What is smaller gains nothing.
const LEAST: usize = 1_000;

/// Whether a browser takes gzip; `gzip;q=0` says no.
pub(super) fn takes_gzip(headers: &HeaderMap) -> bool {
    let all = headers.get_all(header::ACCEPT_ENCODING).iter();
    let all = all.filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(',')).any(|choice| {
        let mut parts = choice.split(';').map(str::trim);
        let is_gzip = parts
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let is_no = parts.any(|part| {
            let part = part.replace(' ', "");
            let weight = part
                .strip_prefix("q=")
                .and_then(|it| it.parse::<f32>().ok());
            weight.is_some_and(|weight| weight <= 0.0)
        });
        is_gzip && !is_no
    })
}

pub(super) fn gzip(plain: &[u8]) -> Option<Bytes> {
    let mut gzip = GzEncoder::new(Vec::with_capacity(plain.len() / 4), Compression::fast());
    let written = gzip.write_all(plain).and_then(|()| gzip.finish());
    written.ok().map(Bytes::from)
}

pub(super) async fn pages(request: Request, next: Next) -> Response {
    let takes = takes_gzip(request.headers());
    let response = next.run(request).await;
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_page = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    if !is_page {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let vary = HeaderValue::from_static("accept-encoding");
    parts.headers.insert(header::VARY, vary);
    // What many read was compressed for all of them.
    if !takes || parts.headers.contains_key(header::CONTENT_ENCODING) {
        return Response::from_parts(parts, body);
    }
    // A page is written whole before it is sent.
    let Ok(plain) = to_bytes(body, usize::MAX).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    if plain.len() < LEAST {
        return Response::from_parts(parts, Body::from(plain));
    }
    let Some(small) = gzip(&plain) else {
        return Response::from_parts(parts, Body::from(plain));
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    let gzip = HeaderValue::from_static("gzip");
    parts.headers.insert(header::CONTENT_ENCODING, gzip);
    Response::from_parts(parts, Body::from(small))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_taken_where_it_is_named_and_not_refused() {
        for (value, takes) in [
            ("gzip, deflate, br", true),
            ("br, GZIP;q=0.5", true),
            ("br", false),
            ("", false),
            ("gzip;q=0", false),
            ("gzip; q=0.0, br", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, value.parse().unwrap());
            assert_eq!(takes_gzip(&headers), takes, "{value}");
        }
    }
}
