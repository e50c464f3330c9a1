//! A job in a file: what `job show --json` prints may be one. What only the server can say of a job is left out, with
//! a note; all else goes out byte for byte.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use serde_json::value::{RawValue, to_raw_value};

use super::fields::{Fields, text_of};
use super::output;
use crate::failure::Failure;

/// Fields of an answer that nobody can set.
const READ_ONLY: [&str; 15] = [
    "id",
    "state",
    "version",
    "next_slot",
    "due_at",
    "resting",
    "runs_left",
    "warning",
    "note",
    "paused_by",
    "created_at",
    "updated_at",
    "runs",
    "slots",
    "dry_run",
];

pub(super) struct JobFile {
    text: String,
    fields: BTreeMap<String, Box<RawValue>>,
    left_out: Vec<String>,
}

impl JobFile {
    /// The file that is named, if one is; then no flag says the same.
    pub(super) fn beside(fields: &Fields, path: Option<&Path>) -> Result<Option<Self>, Failure> {
        let Some(path) = path else { return Ok(None) };
        fields.none_beside("--file")?;
        let refused = |why: String| Failure::usage(format!("{}: {why}", path.display()));
        Self::parse(text_of(path)?).map(Some).map_err(refused)
    }

    fn parse(text: String) -> Result<Self, String> {
        if text.trim_start().starts_with('[') {
            return Err("it holds a list: --batch takes many jobs, one to a line".to_owned());
        }
        let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(&text)
            .map_err(|error| format!("it holds no JSON object: {error}"))?;
        let is_ours = |name: &str| READ_ONLY.contains(&name);
        let left_out: Vec<String> = fields
            .keys()
            .filter(|name| is_ours(name))
            .cloned()
            .collect();
        fields.retain(|name, _| !is_ours(name));
        Ok(Self {
            text,
            fields,
            left_out,
        })
    }

    /// The key that it names.
    pub(super) fn key(&self) -> Option<String> {
        serde_json::from_str(self.fields.get("key")?.get()).ok()
    }

    /// The body to send; the key of the command line goes before that of the file.
    pub(super) fn body(&self, key: Option<&str>) -> Result<Bytes, Failure> {
        if key.is_none() && self.left_out.is_empty() {
            return Ok(Bytes::from(self.text.clone()));
        }
        let unsendable =
            |error: serde_json::Error| Failure::usage(format!("cannot be sent: {error}"));
        let mut fields = self.fields.clone();
        if let Some(key) = key {
            fields.insert("key".to_owned(), to_raw_value(key).map_err(unsendable)?);
        }
        serde_json::to_vec(&fields)
            .map(Bytes::from)
            .map_err(unsendable)
    }

    /// Says what was left out, once the rest was taken.
    pub(super) fn note(&self) {
        if !self.left_out.is_empty() {
            output::note(&format!(
                "note: left out of the file, because only the server sets them: {}",
                self.left_out.join(", ")
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<JobFile, String> {
        JobFile::parse(text.to_owned())
    }

    #[test]
    fn what_only_the_server_sets_is_left_out_and_the_rest_stays_as_it_is_written() {
        let file =
            parse(r#"{"id": "job_1", "version": 3, "payload": {"n": 1.0}, "key": "a"}"#).unwrap();
        assert_eq!(file.left_out, ["id", "version"]);
        assert_eq!(file.key().as_deref(), Some("a"));
        assert_eq!(
            file.body(None).unwrap(),
            r#"{"key":"a","payload":{"n": 1.0}}"#
        );
        assert_eq!(
            file.body(Some("b")).unwrap(),
            r#"{"key":"b","payload":{"n": 1.0}}"#
        );
    }

    #[test]
    fn a_file_with_nothing_to_leave_out_is_sent_as_it_is() {
        let text = r#"{ "key": "a", "key": "b" }"#;
        assert_eq!(parse(text).unwrap().body(None).unwrap(), text);
        assert!(parse("[{}]").is_err_and(|why| why.contains("--batch")));
        assert!(parse("hello").is_err());
    }
}
