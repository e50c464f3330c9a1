//! What a template may read of the attempt that it is rendered for.

use std::sync::Arc;

use minijinja::Value;
use model::{AttemptNo, Job, JobId, Run, RunId, RunKind, Slot, Timestamp};
use serde_json::json;

use super::meter::Meter;

/// An attempt as templates see it.
pub struct Facts<'a> {
    pub(super) job: Option<&'a Job>,
    pub(super) run: RunId,
    pub(super) attempt: AttemptNo,
    pub(super) slot: Option<Slot>,
    pub(super) due_at: Timestamp,
    pub(super) kind: RunKind,
    pub(super) payload: Option<&'a [u8]>,
}

impl<'a> Facts<'a> {
    /// Of an attempt, and the payload that it has.
    pub fn of(job: &'a Job, run: &Run, payload: Option<&'a [u8]>) -> Self {
        Self {
            job: Some(job),
            run: run.id,
            attempt: run.attempt,
            slot: run.slot,
            due_at: run.due_at,
            kind: run.kind,
            payload,
        }
    }

    /// Something that looks like one, to see whether a template works.
    pub(super) fn sample() -> Self {
        let at = Timestamp::from_millis(1_767_225_600_000);
        let job = JobId::new(at, [0; 10]);
        Self {
            job: None,
            run: RunId::for_slot(job, Slot(at)),
            attempt: AttemptNo::FIRST,
            slot: Some(Slot(at)),
            due_at: at,
            kind: RunKind::Slot,
            payload: None,
        }
    }

    pub(super) fn payload_bytes(&self) -> usize {
        self.payload.map_or(0, <[u8]>::len)
    }

    /// As templates see it, and how long its longest text is.
    pub(super) fn to_value(&self, meter: &Arc<Meter>) -> (Value, usize) {
        let slot = self.slot.map(|slot| slot.to_string());
        let job = self.job.map(|job| {
            json!({
                "id": job.id.to_string(), "key": job.key.as_ref().map(ToString::to_string),
                "labels": job.def.labels, "version": job.version.0,
            })
        });
        let mut facts = json!({
            "job": job.unwrap_or_default(),
            "run": {
                "id": self.run.to_string(), "attempt": self.attempt.0, "slot": slot,
                "due_at": self.due_at.to_string(), "kind": self.kind.as_str(),
            },
            "slot": slot,
            "attempt": self.attempt.0,
        });
        // Without one it is not there: a template that uses it says so.
        let payload = self
            .payload
            .and_then(|payload| serde_json::from_slice(payload).ok());
        if let (Some(payload), Some(facts)) = (payload, facts.as_object_mut()) {
            facts.insert("payload".to_owned(), payload);
        }
        let longest = longest(&facts);
        (meter.value(facts), longest)
    }
}

fn longest(json: &serde_json::Value) -> usize {
    match json {
        serde_json::Value::String(text) => text.len(),
        serde_json::Value::Array(items) => items.iter().map(longest).max().unwrap_or(0),
        serde_json::Value::Object(fields) => {
            let lengths = fields
                .iter()
                .map(|(name, field)| name.len().max(longest(field)));
            lengths.max().unwrap_or(0)
        }
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => 0,
    }
}
