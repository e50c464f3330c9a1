//! Entries of the audit log as we answer them.

use engine::chain::{Checked, KeyMissing, Step, Wrong};
use serde::Serialize;
use serde_json::value::RawValue;
use store::AuditEntry as Stored;
use utoipa::ToSchema;

use super::job_out::moment;

/// One change, and who made it.
#[derive(Debug, Serialize, ToSchema)]
pub struct AuditEntry {
    /// Its number. Numbers grow; some are missing where a change was taken back.
    pub seq: u64,
    /// When it was written.
    #[schema(format = DateTime)]
    pub at: String,
    /// Whose things were changed.
    #[schema(example = "default")]
    pub tenant: String,
    /// Who changed them: the label of a key or its id, `anonymous`, or `system`.
    #[schema(example = "on call")]
    pub actor: String,
    /// The key that the request showed.
    pub key: Option<String>,
    /// Where the request came from.
    pub address: Option<String>,
    /// The request's id.
    pub request_id: Option<String>,
    /// What was done.
    #[schema(example = "job.pause")]
    pub action: String,
    /// What it was done to: an id, or the name of what has none.
    #[schema(example = "job_0192f0c1a2b37def8123456789abcdef")]
    pub subject: String,
    /// What it was like, with secrets masked; a payload is named by its size and its digest.
    #[schema(value_type = Option<Object>)]
    pub before: Option<Box<RawValue>>,
    /// What it is like since.
    #[schema(value_type = Option<Object>)]
    pub after: Option<Box<RawValue>>,
}

impl AuditEntry {
    /// An entry; forms that are no JSON any more are left out.
    pub fn of(entry: Stored, tenant: String) -> Self {
        let form = |text: Option<String>| text.and_then(|it| RawValue::from_string(it).ok());
        Self {
            seq: entry.seq,
            at: moment(&entry.at),
            tenant,
            actor: entry.actor,
            key: entry.key.map(|key| key.to_string()),
            address: entry.address,
            request_id: entry.request,
            action: entry.action,
            subject: entry.subject,
            before: form(entry.before),
            after: form(entry.after),
        }
    }
}

/// A page of the audit log.
#[derive(Debug, Serialize, ToSchema)]
pub struct AuditList {
    /// Newest first. There may be fewer than were asked for, and more to come.
    pub items: Vec<AuditEntry>,
    /// Where the next page begins; none on the last.
    pub next_cursor: Option<String>,
}

/// How far a check of the audit log has come.
#[derive(Debug, Serialize, ToSchema)]
pub struct AuditCheck {
    /// Segments that were checked.
    pub segments: u64,
    /// Their entries.
    pub entries: u64,
    /// The last of them and its code, as the log has it.
    pub head: Option<String>,
    /// Of the last line: whether everything is as it was sealed.
    pub whole: Option<bool>,
    /// Of the last line: entries that are not sealed yet.
    pub unsealed: Option<u64>,
    /// The first thing that is wrong.
    pub wrong: Option<AuditWrong>,
    /// Of the last line, where nothing is wrong: what could not be checked.
    pub unchecked: Option<AuditUnchecked>,
}

/// What of the audit log could not be checked.
#[derive(Debug, Serialize, ToSchema)]
pub struct AuditUnchecked {
    /// The first segment of those.
    pub segment: u64,
    /// How many there are.
    pub segments: u64,
    /// The master key that the first needs, by the name that `punctual secret show` has for it.
    #[schema(example = "164febdf")]
    pub key: String,
    /// Why it could not be checked, and what helps.
    pub why: String,
}

/// What is wrong with the audit log.
#[derive(Debug, Serialize, ToSchema)]
pub struct AuditWrong {
    /// The segment that shows it.
    pub segment: Option<u64>,
    /// The entry, where it is known.
    pub entry: Option<u64>,
    /// What is wrong with it.
    pub why: String,
}

impl AuditUnchecked {
    fn of(missing: &KeyMissing) -> Self {
        let why = format!(
            "sealed under a key that is not given: {}; start the node with it as --master-key-old-file",
            missing.key
        );
        Self {
            segment: missing.segment,
            segments: missing.segments,
            key: missing.key.clone(),
            why,
        }
    }
}

impl AuditCheck {
    pub fn of(checked: &Checked, step: &Step) -> Self {
        let (whole, unsealed, wrong, missing) = match step {
            Step::More => (None, None, None, None),
            Step::Whole { unsealed } => (Some(true), Some(*unsealed), None, None),
            Step::KeyMissing(missing) => (Some(false), None, None, Some(missing)),
            Step::Wrong(wrong) => (Some(false), None, Some(wrong), None),
        };
        let said = |Wrong {
                        segment,
                        entry,
                        why,
                    }: &Wrong| AuditWrong {
            segment: *segment,
            entry: *entry,
            why: why.clone(),
        };
        Self {
            segments: checked.segments,
            entries: checked.entries,
            head: checked.head.as_ref().map(ToString::to_string),
            whole,
            unsealed,
            wrong: wrong.map(said),
            unchecked: missing.map(AuditUnchecked::of),
        }
    }

    /// Of a node that can check nothing.
    pub fn without_key() -> Self {
        let why =
            "this node has no master key: nothing is sealed by it, and nothing can be checked";
        let wrong = Wrong {
            segment: None,
            entry: None,
            why: why.to_owned(),
        };
        Self::of(&Checked::default(), &Step::Wrong(wrong))
    }
}
