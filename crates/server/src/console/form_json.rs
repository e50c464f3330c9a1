//! A job's form as JSON: the text that somebody typed becomes a body of the API.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::ops::FieldError;

type Fields = BTreeMap<String, Box<RawValue>>;

/// What merges by name where it is an object, and where such is to be found.
const BY_NAME: [&str; 3] = ["labels", "headers", "env"];
const ABOVE: [&str; 3] = ["target", "http", "shell"];

fn refused(error: &serde_json::Error) -> FieldError {
    FieldError::invalid("json", format!("it is no JSON object: {error}"))
}

/// The body of a new job, or of an edit: what is not named any more is taken away. A payload is as it was typed.
pub(super) fn body(text: &str, before: Option<&Fields>) -> Result<Vec<u8>, FieldError> {
    let mut fields: Fields = serde_json::from_str(text).map_err(|error| refused(&error))?;
    for (name, stood) in before.into_iter().flatten() {
        match fields.get(name) {
            None => {
                let none = to_raw_value(&Value::Null).map_err(|error| refused(&error))?;
                fields.insert(name.clone(), none);
            }
            Some(said) if BY_NAME.contains(&name.as_str()) || ABOVE.contains(&name.as_str()) => {
                let merged = merged(name, said, stood).map_err(|error| refused(&error))?;
                fields.insert(name.clone(), merged);
            }
            Some(_) => {}
        }
    }
    serde_json::to_vec(&fields).map_err(|error| refused(&error))
}

/// What is named now, and null for what was named before.
fn merged(name: &str, said: &RawValue, stood: &RawValue) -> serde_json::Result<Box<RawValue>> {
    let mut said: Value = serde_json::from_str(said.get())?;
    let stood: Value = serde_json::from_str(stood.get())?;
    add_nulls(name, &mut said, &stood);
    to_raw_value(&said)
}

/// What is no object is refused by whoever reads it.
fn add_nulls(name: &str, said: &mut Value, stood: &Value) {
    let (Some(said), Some(stood)) = (said.as_object_mut(), stood.as_object()) else {
        return;
    };
    for (below, stood) in stood {
        if BY_NAME.contains(&name) {
            said.entry(below.clone()).or_insert(Value::Null);
        } else if let Some(said) = said.get_mut(below) {
            add_nulls(below, said, stood);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, before: &str, expected: &str) {
        let before: Fields = serde_json::from_str(before).unwrap();
        let body = body(text, Some(&before)).unwrap();
        assert_eq!(String::from_utf8(body).unwrap(), expected);
    }

    #[test]
    fn what_is_not_named_any_more_is_taken_away() {
        check(
            r#"{"labels": {"b": "2"}}"#,
            r#"{"labels": {"a": "1", "b": "1"}, "owner": "ann"}"#,
            r#"{"labels":{"a":null,"b":"2"},"owner":null}"#,
        );
        check(
            r#"{"target": {"http": {"url": "http://b/", "headers": {"x": "1"}}}}"#,
            r#"{"target": {"http": {"url": "http://a/", "method": "POST", "headers": {"y": "2"}}}}"#,
            r#"{"target":{"http":{"headers":{"x":"1","y":null},"url":"http://b/"}}}"#,
        );
    }

    #[test]
    fn a_payload_is_sent_as_it_was_typed() {
        let typed = r#"{"payload": {"n": 1.00000000000000000001}}"#;
        check(typed, "{}", r#"{"payload":{"n": 1.00000000000000000001}}"#);
        assert!(body("[1]", None).is_err() && body("hello", None).is_err());
    }
}
