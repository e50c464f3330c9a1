//! Whether an answer is the one that its job calls success.

use model::success::{JsonEquals, Success};
use serde_json::Value;

/// Why an answer of a good status is no success; none if it is.
pub(super) fn refusal(rule: &Success, body: &[u8], is_all: bool) -> Option<String> {
    let JsonEquals { pointer, equals } = rule.json.as_ref()?;
    if !is_all {
        return Some(format!(
            "the answer is longer than the {} bytes that are read to look for success",
            rule.reads()
        ));
    }
    let Ok(answer) = serde_json::from_slice::<Value>(body) else {
        return Some("the answer is not JSON, and success is said by JSON".to_owned());
    };
    let Some(found) = answer.pointer(pointer) else {
        return Some(format!("the answer has nothing at {}", place(pointer)));
    };
    let is_it = serde_json::from_str(equals).is_ok_and(|wanted| is_equal(found, &wanted));
    (!is_it).then(|| format!("the answer does not have {equals} at {}", place(pointer)))
}

fn place(pointer: &str) -> &str {
    if pointer.is_empty() {
        "its top"
    } else {
        pointer
    }
}

/// As JSON has it: 1 and 1.0 are one number, and the order of names does not matter.
fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || one.as_f64().is_some_and(|one| Some(one) == other.as_f64())
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| is_equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let same = |(name, value)| other.get(name).is_some_and(|other| is_equal(value, other));
            one.len() == other.len() && one.iter().all(same)
        }
        (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _)
        | (Value::Array(_) | Value::Object(_), _) => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pointer: &str, equals: &str, body: &str, expected: Option<&str>) {
        let json = Some(JsonEquals::new(pointer, equals.to_owned()).unwrap());
        let rule = Success { status: None, json };
        let why = refusal(&rule, body.as_bytes(), true);
        match (why, expected) {
            (None, None) => {}
            (Some(why), Some(part)) if why.contains(part) => {}
            (why, _) => panic!("{pointer} {equals} {body}: {why:?}"),
        }
    }

    #[test]
    fn what_is_at_the_pointer_must_equal_the_value() {
        check("/ok", "true", r#"{"ok": true}"#, None);
        check(
            "",
            "[1, {\"b\": 2, \"a\": 1}]",
            r#"[1.0, {"a": 1, "b": 2}]"#,
            None,
        );
        check("/a~1b/0", "\"é\"", r#"{"a/b": ["\u00e9"]}"#, None);
        check(
            "/ok",
            "true",
            r#"{"ok": "true"}"#,
            Some("does not have true at /ok"),
        );
        check("/ok", "true", r#"{"OK": true}"#, Some("nothing at /ok"));
        check("/n", "1", r#"{"n": 2}"#, Some("does not have 1"));
        check("/ok", "true", "fine", Some("not JSON"));
        check("/ok", "true", "", Some("not JSON"));
    }

    #[test]
    fn an_answer_that_was_not_read_to_its_end_says_nothing() {
        let json = Some(JsonEquals::new("/ok", "true".to_owned()).unwrap());
        let rule = Success { status: None, json };
        let why = refusal(&rule, br#"{"ok": true}"#, false).unwrap();
        assert!(why.contains("65536"), "{why}");
    }
}
