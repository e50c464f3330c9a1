//! A target as clients write it: an address, or `{"http": {…}}` in full.

use model::Target;
use model::limits;
use model::target::{HttpTarget, TargetError};

use super::read::{Fields, Path, Read, Shape, Value, join};
use crate::ops::{Fault, FieldError};

const TARGET_FIELDS: [&str; 1] = ["http"];
pub const HTTP_FIELDS: [&str; 4] = ["url", "method", "headers", "output_max"];
const TARGET: Path<'static> = Path {
    parent: "",
    name: "target",
};
const HTTP: Path<'static> = Path {
    parent: "target",
    name: "http",
};
const HEADERS: Path<'static> = Path {
    parent: "target.http",
    name: "headers",
};

pub fn target(value: Value<'_>, path: Path<'_>) -> Read<Target> {
    if value.shape() != Shape::Object {
        let url = value.text_or(
            path,
            "an address such as \"https://example.com/hook\", or {\"http\": {…}}",
        )?;
        let target = HttpTarget::new(&url, None).map_err(|error| path.invalid(error.detail))?;
        return Ok(Target::Http(target));
    }
    let fields = Fields::of(value, TARGET, "target", &TARGET_FIELDS)?;
    let http = fields.get("http", |value, _| http(value))?;
    http.map(Target::Http).ok_or_else(|| {
        let detail =
            "a target needs a kind: write {\"http\": {\"url\": \"https://example.com/hook\"}}";
        path.refuse(Fault::Missing, detail)
    })
}

fn http(value: Value<'_>) -> Read<HttpTarget> {
    let fields = Fields::of(value, HTTP, "target.http", &HTTP_FIELDS)?;
    let url = fields.get("url", Value::text)?.ok_or_else(|| {
        let detail = "url is missing: write https://example.com/hook";
        FieldError::new(Fault::Missing, "target.http.url", detail)
    })?;
    let method = fields.get("method", Value::text)?;
    let mut target = HttpTarget::new(&url, method.as_deref()).map_err(below_target)?;
    let most = limits::OUTPUT_MAX as i64;
    let output_max = fields.get("output_max", |value, path| value.integer(path, 0, most))?;
    if let Some(bytes) = output_max {
        target = target.output_max(bytes as usize).map_err(below_target)?;
    }
    let headers = fields.get("headers", |value, _| {
        Fields::any(value.0, "target.http.headers", HEADERS)
    })?;
    for (name, value) in headers.iter().flat_map(Fields::iter) {
        let path = Path {
            parent: "target.http.headers",
            name,
        };
        let text = value.text(path)?;
        target = target.header(name, &text).map_err(below_target)?;
    }
    Ok(target)
}

fn below_target(error: TargetError) -> FieldError {
    // The name of a header comes from the client, and may be of any length.
    FieldError::invalid(join("target", &error.field), error.detail)
}
