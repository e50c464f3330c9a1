//! What counts as success, as clients write it: `{"status": ["2xx", 404], "json": {"pointer": "/ok", "equals": true}}`.

use std::borrow::Cow;

use model::limits;
use model::success::{JsonEquals, Statuses};

use super::read::{Fields, Path, Read, Shape, Value};
use super::target_in::below_target;
use crate::ops::{Fault, SuccessDraft};

const FIELDS: [&str; 2] = ["status", "json"];
const JSON_FIELDS: [&str; 2] = ["pointer", "equals"];
const SUCCESS: Path<'static> = Path {
    parent: "target.http",
    name: "success",
};
const JSON: Path<'static> = Path {
    parent: "target.http.success",
    name: "json",
};

pub(super) fn success(value: Value<'_>) -> Read<SuccessDraft> {
    let fields = Fields::of(value, SUCCESS, "target.http.success", &FIELDS)?;
    Ok(SuccessDraft {
        status: fields.patch("status", statuses)?,
        json: fields.patch("json", |value, _| json(value))?,
    })
}

/// A list of `404`, `"2xx"` or `"300-399"`; one of them needs no list.
fn statuses(value: Value<'_>, path: Path<'_>) -> Read<Statuses> {
    let one = |value: Value<'_>, path: Path<'_>| match value.shape() {
        Shape::Number => Ok(value.0.to_owned()),
        Shape::Null | Shape::Bool | Shape::Text | Shape::List | Shape::Object => {
            let what = "a status such as 404, \"2xx\" or \"300-399\"";
            value.text_or(path, what).map(Cow::into_owned)
        }
    };
    let texts = if value.shape() == Shape::List {
        value.list(path, "a list of statuses", limits::STATUSES_MAX, one)?
    } else {
        vec![one(value, path)?]
    };
    Statuses::new(texts.iter().map(String::as_str)).map_err(below_target)
}

fn json(value: Value<'_>) -> Read<JsonEquals> {
    let fields = Fields::of(value, JSON, "target.http.success.json", &JSON_FIELDS)?;
    let missing = |name, detail| {
        let parent = "target.http.success.json";
        Path { parent, name }.refuse(Fault::Missing, detail)
    };
    let pointer = fields.get("pointer", |value, path| value.text(path))?;
    let pointer = pointer.ok_or_else(|| missing("pointer", "pointer is missing: write /ok"))?;
    // Null is a value too, which an answer may be expected to have.
    let equals = fields.iter().find(|(name, _)| *name == "equals");
    let equals = equals.map(|(_, value)| compact(value.0));
    let equals = equals.ok_or_else(|| missing("equals", "equals is missing: write true"))?;
    JsonEquals::new(&pointer, equals).map_err(below_target)
}

/// The same JSON without blanks, so that what was said twice is the same.
fn compact(text: &str) -> String {
    let value = serde_json::from_str::<serde_json::Value>(text);
    value.map_or_else(|_| text.to_owned(), |value| value.to_string())
}
