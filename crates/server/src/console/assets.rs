//! Style and script of the pages: in the binary, named by what they hold, so that a browser keeps them for ever and never has
//! an old one.

use std::io::Write;
use std::sync::LazyLock;

use axum::body::Body;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use model::hex::to_hex;
use sha2::{Digest, Sha256};

use super::squeeze::takes_gzip;

pub(super) struct Asset {
    /// `console.1f2e3d4c.css`.
    name: String,
    media_type: &'static str,
    plain: Bytes,
    /// None if it could not be made, which costs only time.
    gzip: Option<Bytes>,
}

pub(super) struct Assets {
    style: Asset,
    script: Asset,
    htmx: Asset,
    live: Asset,
    palette: Asset,
    icon: Asset,
}

pub(super) static ASSETS: LazyLock<Assets> = LazyLock::new(|| Assets {
    style: Asset::new(
        ("console", "css", "text/css; charset=utf-8"),
        include_bytes!("assets/console.css"),
    ),
    script: Asset::new(
        ("console", "js", "text/javascript; charset=utf-8"),
        include_bytes!("assets/console.js"),
    ),
    htmx: Asset::new(
        ("htmx", "js", "text/javascript; charset=utf-8"),
        include_bytes!("assets/htmx-4.0.1.min.js"),
    ),
    live: Asset::new(
        ("live", "js", "text/javascript; charset=utf-8"),
        include_bytes!("assets/live.js"),
    ),
    palette: Asset::new(
        ("palette", "js", "text/javascript; charset=utf-8"),
        include_bytes!("assets/palette.js"),
    ),
    icon: Asset::new(
        ("icon", "svg", "image/svg+xml"),
        include_bytes!("assets/icon.svg"),
    ),
});

impl Assets {
    fn all(&self) -> [&Asset; 6] {
        [
            &self.style,
            &self.script,
            &self.htmx,
            &self.live,
            &self.palette,
            &self.icon,
        ]
    }

    pub(super) fn style(&self) -> &str {
        &self.style.name
    }

    pub(super) fn script(&self) -> &str {
        &self.script.name
    }

    pub(super) fn htmx(&self) -> &str {
        &self.htmx.name
    }

    pub(super) fn live(&self) -> &str {
        &self.live.name
    }

    pub(super) fn palette(&self) -> &str {
        &self.palette.name
    }

    pub(super) fn icon(&self) -> &str {
        &self.icon.name
    }
}

impl Asset {
    fn new((stem, ending, media_type): (&str, &str, &'static str), bytes: &'static [u8]) -> Self {
        let digest = to_hex(&Sha256::digest(bytes));
        let short: String = digest.chars().take(12).collect();
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        let written = gzip.write_all(bytes).and_then(|()| gzip.finish());
        Self {
            name: format!("{stem}.{short}.{ending}"),
            media_type,
            plain: Bytes::from_static(bytes),
            gzip: written.ok().map(Bytes::from),
        }
    }
}

pub(super) async fn serve(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some(asset) = ASSETS.all().into_iter().find(|asset| asset.name == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let gzip = asset.gzip.as_ref().filter(|_| takes_gzip(&headers));
    let mut response = Response::new(Body::from(gzip.unwrap_or(&asset.plain).clone()));
    let of = response.headers_mut();
    of.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(asset.media_type),
    );
    of.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=31536000, immutable"),
    );
    of.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if gzip.is_some() {
        of.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a browser loads before its first page.
    #[test]
    fn the_first_load_is_small() {
        let sizes = ASSETS.all().map(|asset| asset.gzip.as_ref().unwrap().len());
        let sum: usize = sizes.iter().sum();
        assert!(sum < 60_000, "{sizes:?}");
    }

    #[test]
    fn nothing_is_fetched_from_elsewhere() {
        for asset in ASSETS.all() {
            let text = String::from_utf8_lossy(&asset.plain);
            for far in [
                "@import",
                "url(http",
                "url(//",
                "sourceMappingURL",
                "importScripts",
            ] {
                assert!(!text.contains(far), "{}: {far}", asset.name);
            }
        }
    }
}

#[cfg(test)]
#[path = "colours_tests.rs"]
mod colours_tests;
