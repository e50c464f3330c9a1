//! A target as clients write it: an address, or `{"http": {…}}`, `{"shell": {…}}` or `{"python": {…}}` in full.

use http::{HeaderName, HeaderValue};
use model::target::{
    TargetError, check_address, check_body, check_header, check_keep_headers, check_method,
};
use model::{Redirects, SecretName, limits};

use super::python_in::python;
use super::read::{Fields, Path, Read, Shape, Value, join, shown};
use super::shell_in::shell;
use super::success_in::success;
use crate::ops::{Fault, FieldError, HttpDraft, Patch, TargetDraft, TlsDraft};

const TARGET_FIELDS: [&str; 3] = ["http", "shell", "python"];
pub const HTTP_FIELDS: [&str; 9] = [
    "url",
    "method",
    "headers",
    "body",
    "output_max",
    "keep_headers",
    "success",
    "redirects",
    "tls",
];
const TARGET: Path<'static> = Path {
    parent: "",
    name: "target",
};
const HTTP: Path<'static> = Path {
    parent: "target",
    name: "http",
};
const TLS_FIELDS: [&str; 3] = ["ca", "cert", "key"];
const TLS: Path<'static> = Path {
    parent: "target.http",
    name: "tls",
};
const HEADERS: Path<'static> = Path {
    parent: "target.http",
    name: "headers",
};

pub(super) fn target(value: Value<'_>, path: Path<'_>) -> Read<TargetDraft> {
    if value.shape() != Shape::Object {
        let url = value.text_or(
            path,
            "an address such as \"https://example.com/hook\", or {\"http\": {…}}",
        )?;
        let url = check_address(&url).map_err(|error| path.invalid(error.detail))?;
        return Ok(TargetDraft::Http(Box::new(HttpDraft {
            url: Some(url),
            ..HttpDraft::default()
        })));
    }
    let fields = Fields::of(value, TARGET, "target", &TARGET_FIELDS)?;
    let http = fields.get("http", |value, _| http(value))?;
    let shell = fields.get("shell", |value, _| shell(value))?;
    let python = fields.get("python", |value, _| python(value))?;
    match (http, shell, python) {
        (Some(http), None, None) => Ok(TargetDraft::Http(Box::new(http))),
        (None, Some(shell), None) => Ok(TargetDraft::Shell(Box::new(shell))),
        (None, None, Some(python)) => Ok(TargetDraft::Python(Box::new(python))),
        (None, None, None) => {
            let detail = "a target needs a kind: write {\"http\": {\"url\": \"https://example.com/hook\"}}, \
                          {\"shell\": {\"command\": [\"/usr/bin/pg_dump\", \"shop\"]}} or \
                          {\"python\": {\"source\": \"print(1)\"}}";
            Err(path.refuse(Fault::Missing, detail))
        }
        (_, _, _) => {
            Err(path
                .invalid("a target has one kind: leave out all but one of http, shell and python"))
        }
    }
}

fn http(value: Value<'_>) -> Read<HttpDraft> {
    let fields = Fields::of(value, HTTP, "target.http", &HTTP_FIELDS)?;
    let url = fields.patch("url", |value, path| {
        check_address(&value.text(path)?).map_err(below_target)
    })?;
    if url == Patch::Reset {
        let detail = "a target cannot be without url: leave it out to keep it, or give another";
        return Err(FieldError::invalid("target.http.url", detail));
    }
    let most = limits::OUTPUT_MAX as i64;
    Ok(HttpDraft {
        url: url.into_given(),
        method: fields.patch("method", |value, path| {
            check_method(&value.text(path)?).map_err(below_target)
        })?,
        headers: fields.patch("headers", |value, _| headers(value))?,
        body: fields.patch("body", |value, path| {
            check_body(&value.text(path)?).map_err(below_target)
        })?,
        output_max: fields.patch("output_max", |value, path| {
            Ok(value.integer(path, 0, most)? as usize)
        })?,
        keep_headers: fields.patch("keep_headers", keep_headers)?,
        success: fields.patch("success", |value, _| success(value))?,
        redirects: fields.patch("redirects", |value, path| {
            value.choice(
                path,
                &Redirects::ALL.map(Redirects::as_str),
                Redirects::parse,
            )
        })?,
        tls: fields.patch("tls", |value, _| tls(value))?,
    })
}

/// By their names, in any case; null takes one away.
fn headers(value: Value<'_>) -> Read<Vec<(HeaderName, Option<HeaderValue>)>> {
    let fields = Fields::any(value.0, "target.http.headers", HEADERS)?;
    let mut headers: Vec<(HeaderName, Option<HeaderValue>)> = Vec::new();
    for (name, value) in fields.iter() {
        let shown = shown(name);
        let path = Path {
            parent: "target.http.headers",
            name: &shown,
        };
        let null = value.shape() == Shape::Null;
        let text = if null { "".into() } else { value.text(path)? };
        let (known, value) = check_header(name, &text).map_err(below_target)?;
        if headers.iter().any(|(other, _)| *other == known) {
            return Err(path.invalid(format!("the header {known} is given twice")));
        }
        headers.push((known, Some(value).filter(|_| !null)));
    }
    Ok(headers)
}

/// Names of secrets.
fn tls(value: Value<'_>) -> Read<TlsDraft> {
    let fields = Fields::of(value, TLS, "target.http.tls", &TLS_FIELDS)?;
    let name = |field: &str| {
        fields.patch(field, |value, path| {
            let name = SecretName::new(&value.text(path)?);
            name.map_err(|error| path.invalid(error.to_string()))
        })
    };
    Ok(TlsDraft {
        ca: name("ca")?,
        cert: name("cert")?,
        key: name("key")?,
    })
}

fn keep_headers(value: Value<'_>, path: Path<'_>) -> Read<Vec<HeaderName>> {
    let what = "a list of names such as [\"x-request-id\"]";
    let names = value.list(path, what, limits::KEEP_HEADERS_MAX, |value, path| {
        value.text(path)
    })?;
    check_keep_headers(names.iter().map(AsRef::as_ref)).map_err(below_target)
}

pub(super) fn below_target(error: TargetError) -> FieldError {
    // The name of a header comes from the client, and may be of any length.
    FieldError::invalid(join("target", &error.field), error.detail)
}
