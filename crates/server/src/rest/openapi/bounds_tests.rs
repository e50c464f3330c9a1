//! Whoever reads the contract knows how much it may send, and what it gets.

use std::collections::BTreeSet;

use serde_json::Value;

fn contract() -> Value {
    serde_json::from_str(&super::openapi_json()).unwrap()
}

/// Each operation with its name.
fn operations(contract: &Value) -> impl Iterator<Item = (String, &Value)> {
    let paths = contract["paths"].as_object().unwrap().iter();
    paths.flat_map(|(path, operations)| {
        let operations = operations.as_object().unwrap().iter();
        operations.map(move |(method, operation)| (format!("{method} {path}"), operation))
    })
}

/// Walks a schema and all that it refers to; gathers what lacks a bound.
struct Walk<'c> {
    contract: &'c Value,
    seen: BTreeSet<String>,
    lacks: Vec<String>,
}

impl Walk<'_> {
    fn schema(&mut self, name: &str, schema: &Value) {
        if let Some(pointer) = schema["$ref"].as_str() {
            let other = pointer.rsplit('/').next().unwrap();
            if self.seen.insert(other.to_owned()) {
                let found = self.contract.pointer(&pointer[1..]).unwrap();
                self.schema(other, found);
            }
            return;
        }
        let is_bounded = |members: &[&str]| members.iter().any(|it| !schema[*it].is_null());
        let is_named = is_bounded(&["enum", "const"]);
        let mut require = |what: &str, bounded: bool| {
            if has_type(schema, what) && !bounded && !is_named {
                self.lacks.push(format!("{name}: {what}"));
            }
        };
        require("string", is_bounded(&["maxLength", "pattern", "format"]));
        let has_both = is_bounded(&["minimum"]) && is_bounded(&["maximum"]);
        require("integer", has_both);
        require("number", has_both);
        require("array", is_bounded(&["maxItems"]));
        let is_map = schema["additionalProperties"].is_object();
        require("object", !is_map || is_bounded(&["maxProperties"]));
        for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
            self.schema(&format!("{name}.{field}"), schema);
        }
        for part in ["items", "additionalProperties"] {
            if schema[part].is_object() {
                self.schema(&format!("{name}.{part}"), &schema[part]);
            }
        }
        for forms in ["oneOf", "allOf", "anyOf"] {
            let forms = schema[forms].as_array().into_iter().flatten();
            for (at, form) in forms.enumerate() {
                self.schema(&format!("{name}#{at}"), form);
            }
        }
    }
}

/// One type, or one of several.
fn has_type(schema: &Value, named: &str) -> bool {
    let types = &schema["type"];
    let mut several = types.as_array().into_iter().flatten();
    types == named || several.any(|it| it == named)
}

#[test]
fn all_that_is_sent_has_a_bound() {
    let contract = contract();
    let mut walk = Walk {
        contract: &contract,
        seen: BTreeSet::new(),
        lacks: Vec::new(),
    };
    for (name, operation) in operations(&contract) {
        let bodies = operation["requestBody"]["content"].as_object();
        for (media_type, body) in bodies.into_iter().flatten() {
            walk.schema(&format!("{name}, {media_type}"), &body["schema"]);
        }
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let name = format!("{name}, parameter {}", parameter["name"]);
            walk.schema(&name, &parameter["schema"]);
        }
    }
    assert!(walk.seen.len() > 30, "they have moved: {:?}", walk.seen);
    assert!(walk.lacks.is_empty(), "\n{}", walk.lacks.join("\n"));
}

#[test]
fn every_answer_that_is_a_success_has_an_example() {
    let contract = contract();
    let mut bodies = 0;
    let mut lacks = Vec::new();
    for (name, operation) in operations(&contract) {
        for (status, answer) in operation["responses"].as_object().unwrap() {
            let is_success = status.starts_with('2');
            let content = answer["content"].as_object().filter(|_| is_success);
            for (_, body) in content.into_iter().flatten() {
                bodies += 1;
                if body["example"].is_null() {
                    lacks.push(format!("{name}: {status}"));
                }
            }
        }
    }
    assert!(bodies > 80, "they have moved: {bodies}");
    assert!(lacks.is_empty(), "{lacks:?}");
}
