//! A job as somebody may create it again: its JSON without what only the server says, and the commands that send it.

use std::collections::BTreeMap;

use model::Job;
use serde_json::Value;
use serde_json::value::RawValue;

use super::diff::STANDING;
use crate::wire;

/// What else nobody can set.
const OURS: [&str; 2] = ["id", "warning"];

type Fields = BTreeMap<String, Box<RawValue>>;

pub(super) struct Copies {
    pub curl: String,
    pub command: String,
}

/// What a body may say of a job, as it stands, by the names of the API. A payload is as it was sent.
pub(super) fn settable(job: &Job) -> Fields {
    let text = serde_json::to_string(&wire::Job::of(job)).unwrap_or_default();
    let mut fields: Fields = serde_json::from_str(&text).unwrap_or_default();
    let is_ours = |name: &str| STANDING.contains(&name) || OURS.contains(&name);
    let is_empty = |value: &RawValue| ["null", "[]", "{}"].contains(&value.get());
    fields.retain(|name, value| !is_ours(name) && !is_empty(value));
    fields
}

/// Fields one below the other, for people.
pub(super) fn pretty(fields: &Fields) -> String {
    let lines = fields.iter().map(|(name, value)| {
        let text = if name == "payload" {
            value.get().to_owned()
        } else {
            let parsed = serde_json::from_str::<Value>(value.get());
            let text = parsed.and_then(|value| serde_json::to_string_pretty(&value));
            text.unwrap_or_else(|_| value.get().to_owned())
        };
        format!("  \"{name}\": {}", text.replace('\n', "\n  "))
    });
    let lines: Vec<String> = lines.collect();
    format!("{{\n{}\n}}", lines.join(",\n"))
}

/// As one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

impl Copies {
    pub(super) fn of(job: &Job) -> Self {
        let body = serde_json::to_string(&settable(job)).unwrap_or_default();
        let body = quoted(&body);
        Self {
            curl: format!(
                "curl -sS -X POST \"$PUNCTUAL_SERVER/v1/jobs\" \\\n  -H \"Authorization: Bearer $PUNCTUAL_KEY\" \\\n  -H 'Content-Type: application/json' \\\n  --data-raw {body}"
            ),
            command: format!("printf %s {body} | punctual job create --file -"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_a_quoted_text_as_it_is() {
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
    }
}
