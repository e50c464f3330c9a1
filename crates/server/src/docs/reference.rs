//! The API as Markdown, made from the contract: every operation with its parameters, bodies and answers, then every
//! schema with its fields.

use std::fmt::Write as _;

use serde_json::Value;

use super::render::anchor;

/// How a description of a schema refers to another.
const SCHEMAS: &str = "#/components/schemas/";

pub(super) fn markdown(contract: &Value) -> String {
    let mut text = String::from("# API\n\n");
    line(&mut text, text_of(contract, "/info/description"));
    text.push_str(
        "Bodies are JSON unless it says otherwise, moments are RFC 3339 in UTC, and every refusal is a \
         [problem](/problems). [openapi.json](/openapi.json) says the same for programs.\n\n",
    );
    for tag in items(&contract["tags"]) {
        let name = text_of(tag, "/name");
        let _ = writeln!(text, "**{name}**: {}\n", text_of(tag, "/description"));
        for (method, path, operation) in operations(contract, name) {
            let title = title(method, path);
            let summary = text_of(operation, "/summary");
            let _ = writeln!(text, "- [`{title}`](#{}): {summary}", anchor(&title));
        }
        text.push('\n');
    }
    for tag in items(&contract["tags"]) {
        let name = text_of(tag, "/name");
        let _ = writeln!(text, "## {}\n", capital(name));
        for (method, path, operation) in operations(contract, name) {
            write_operation(&mut text, &title(method, path), operation);
        }
    }
    text.push_str("## Schemas\n\nA field with a `?` may be left out.\n\n");
    for (name, schema) in members(&contract["components"]["schemas"]) {
        write_schema(&mut text, name, schema);
    }
    text
}

/// The operations of a tag, in the order of their paths.
fn operations<'a>(
    contract: &'a Value,
    tag: &'a str,
) -> impl Iterator<Item = (&'a str, &'a str, &'a Value)> {
    members(&contract["paths"]).flat_map(move |(path, methods)| {
        let of_path = members(methods).map(move |(method, operation)| (method, path, operation));
        of_path.filter(move |(_, _, operation)| operation["tags"][0] == *tag)
    })
}

fn title(method: &str, path: &str) -> String {
    format!("{} {path}", method.to_uppercase())
}

fn write_operation(text: &mut String, title: &str, operation: &Value) {
    let _ = writeln!(text, "### `{title}`\n");
    line(text, text_of(operation, "/summary"));
    line(text, text_of(operation, "/description"));
    let parameters: Vec<&Value> = items(&operation["parameters"]).collect();
    if !parameters.is_empty() {
        text.push_str("| parameter | in | type | |\n| --- | --- | --- | --- |\n");
    }
    for parameter in parameters {
        let required = if parameter["required"] == true {
            "; required"
        } else {
            ""
        };
        let (name, place) = (text_of(parameter, "/name"), text_of(parameter, "/in"));
        let (kind, says) = (
            kind(&parameter["schema"]),
            text_of(parameter, "/description"),
        );
        row(
            text,
            &[
                &format!("`{name}`"),
                place,
                &kind,
                &format!("{says}{required}"),
            ],
        );
    }
    text.push('\n');
    for (media_type, body) in members(&operation["requestBody"]["content"]) {
        let _ = writeln!(text, "Body, `{media_type}`: {}\n", kind(&body["schema"]));
        example(text, body);
    }
    text.push_str("| answer | body | |\n| --- | --- | --- |\n");
    for (status, answer) in members(&operation["responses"]) {
        let bodies: Vec<String> = members(&answer["content"])
            .map(|(_, body)| kind(&body["schema"]))
            .collect();
        row(
            text,
            &[status, &bodies.join(", "), text_of(answer, "/description")],
        );
    }
    text.push('\n');
    let answers = members(&operation["responses"]).filter(|(status, _)| status.starts_with('2'));
    for (status, answer) in answers {
        for (_, body) in members(&answer["content"]).filter(|(_, body)| !body["example"].is_null())
        {
            let _ = writeln!(text, "An answer with {status}:\n");
            example(text, body);
        }
    }
}

/// What a body may look like.
fn example(text: &mut String, body: &Value) {
    let shown = &body["example"];
    if shown.is_null() {
        return;
    }
    let shown = match shown.as_str() {
        Some(lines) => lines.to_owned(),
        None => serde_json::to_string_pretty(shown).unwrap_or_default(),
    };
    let _ = writeln!(text, "```json\n{}\n```\n", shown.trim_end());
}

fn write_schema(text: &mut String, name: &str, schema: &Value) {
    let _ = writeln!(text, "### {name}\n");
    line(text, text_of(schema, "/description"));
    let parts: Vec<&Value> = match items(&schema["allOf"]).collect::<Vec<_>>() {
        parts if parts.is_empty() => vec![schema],
        parts => parts,
    };
    for part in parts {
        if part["properties"].is_null() {
            line(text, &format!("It is {}.", kind(part)));
            continue;
        }
        text.push_str("| field | type | |\n| --- | --- | --- |\n");
        for (field, schema) in members(&part["properties"]) {
            let required = items(&part["required"]).any(|name| name == field);
            let mark = if required { "" } else { "?" };
            row(
                text,
                &[&format!("`{field}`{mark}"), &kind(schema), says(schema)],
            );
        }
        text.push('\n');
    }
}

/// A field's description stands beside it, or beside the form that is not null.
fn says(schema: &Value) -> &str {
    let own = text_of(schema, "/description");
    let forms = items(&schema["oneOf"]).map(|form| text_of(form, "/description"));
    [own]
        .into_iter()
        .chain(forms)
        .find(|text| !text.is_empty())
        .unwrap_or("")
}

/// The type of a value in words: `string or null`, `array of [Run](#run)`, with its limits.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"]
        .as_str()
        .and_then(|name| name.strip_prefix(SCHEMAS))
    {
        return format!("[{name}](#{})", anchor(name));
    }
    let forms = items(&schema["oneOf"]).chain(items(&schema["anyOf"]));
    let mut words: Vec<String> = forms.map(kind).collect();
    words.extend(items(&schema["enum"]).map(|value| format!("`{}`", plain(value))));
    if words.is_empty() {
        let types = items(&schema["type"]).chain(Some(&schema["type"]));
        let types = types.filter_map(Value::as_str);
        words.extend(types.map(|name| named_type(name, schema)));
    }
    let words = if words.is_empty() {
        "any JSON".to_owned()
    } else {
        words.join(" or ")
    };
    words + &limits(schema)
}

fn named_type(name: &str, schema: &Value) -> String {
    match name {
        "array" => format!("array of {}", kind(&schema["items"])),
        "object" if schema["additionalProperties"].is_object() => {
            format!("object of {}", kind(&schema["additionalProperties"]))
        }
        "string" if schema["format"] == "date-time" => "moment".to_owned(),
        other => other.to_owned(),
    }
}

fn limits(schema: &Value) -> String {
    let ranges = [
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " of them"),
        ("minProperties", "maxProperties", " of them"),
    ];
    let mut words = String::new();
    for (least, most, of_what) in ranges {
        let _ = match (&schema[least], &schema[most]) {
            (Value::Null, Value::Null) => Ok(()),
            (Value::Null, most) => write!(words, ", at most {most}{of_what}"),
            (least, Value::Null) => write!(words, ", at least {least}{of_what}"),
            (least, most) => write!(words, ", {least} to {most}{of_what}"),
        };
    }
    words
}

// Small things.

fn text_of<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let members = value.as_object().into_iter().flatten();
    members.map(|(name, value)| (name.as_str(), value))
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn line(text: &mut String, says: &str) {
    if !says.is_empty() {
        let _ = writeln!(text, "{says}\n");
    }
}

/// A row of a table; nothing in a cell ends it early.
fn row(text: &mut String, cells: &[&str]) {
    for cell in cells {
        let cell = cell.replace('|', "\\|").replace('\n', " ");
        let _ = write!(text, "| {cell} ");
    }
    text.push_str("|\n");
}

fn capital(name: &str) -> String {
    let mut rest = name.chars();
    rest.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(rest).collect()
    })
}
