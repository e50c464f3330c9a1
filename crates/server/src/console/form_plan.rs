//! What saving a form would do, before it is saved: the schedule in words, its next slots, and what would differ from the version that is
//! in force.

use std::sync::Arc;

use model::schedule::Zone;
use model::{Job, Slot};
use serde_json::{Value, json};

use super::diff::{self, Line};
use super::form_fields::{names, schedule_said};
use super::format::Face;
use super::frame::face;
use super::viewer::{Fields, Viewer};
use crate::api::Api;
use crate::ops::{Expect, JobDraft, Mode, jobs, preview};
use crate::problem::Problem;
use crate::wire;

/// Slots of the preview.
const SLOTS: usize = 7;

pub(super) struct SlotRow {
    pub day: String,
    pub theirs: String,
    pub ours: String,
    pub relative: String,
}

/// What a schedule means.
pub(super) struct Preview {
    pub words: String,
    pub notes: Vec<String>,
    pub slots: Vec<SlotRow>,
    pub zone: String,
    pub own_zone: String,
    pub same_zone: bool,
}

/// What would differ.
pub(super) struct Plan {
    pub lines: Vec<Line>,
    /// Whether the slot is removed, and when it is.
    pub slots: Vec<(bool, String)>,
    pub more: Option<String>,
}

/// What a form says of a schedule, be it in fields or as JSON.
fn said(fields: &Fields, before: Option<&wire::Job>) -> Value {
    let text = fields.get("json");
    if text.is_empty() {
        return json!({
            "schedule": schedule_said(fields, before).unwrap_or_else(|| json!({})),
            "exclude": names(fields.get("exclude")),
            "only": names(fields.get("only")),
        });
    }
    let body: Value = serde_json::from_str(text).unwrap_or_default();
    let part = |name: &str, none: Value| body.get(name).cloned().unwrap_or(none);
    json!({
        "schedule": part("schedule", json!({})),
        "exclude": part("exclude", json!([])),
        "only": part("only", json!([])),
    })
}

pub(super) async fn previewed(
    api: &Api,
    viewer: &Viewer,
    job: Option<&Job>,
    fields: &Fields,
) -> Result<Preview, Problem> {
    let before = job.map(wire::Job::of);
    let mut body = said(fields, before.as_ref());
    let of_json = body.pointer("/schedule/timezone").and_then(Value::as_str);
    let zone = of_json.unwrap_or_else(|| fields.get("timezone"));
    let theirs = Zone::get(zone).unwrap_or_else(|_| Zone::utc());
    body["count"] = SLOTS.into();
    let request = wire::preview(body.to_string().as_bytes())?;
    let found = match job {
        Some(job) => preview::of_edit(api, job, request).await?,
        None => preview::preview(api, viewer.id(), request).await?,
    };
    let face = face(viewer);
    let there = Face {
        zone: &theirs,
        now: viewer.now,
    };
    let row = |slot: &Slot| SlotRow {
        day: there.day(slot.0),
        theirs: there.clock(slot.0),
        ours: face.clock(slot.0),
        relative: super::format::relative(viewer.now, slot.0),
    };
    let city = |name: &str| name.rsplit('/').next().unwrap_or(name).replace('_', " ");
    Ok(Preview {
        slots: found.slots.iter().map(row).collect(),
        words: found.words,
        notes: found.notes,
        zone: city(theirs.name()),
        own_zone: city(viewer.zone.name()),
        same_zone: theirs.name() == viewer.zone.name(),
    })
}

/// The job that a form would make, or make of one that stands. Nothing is written.
pub(super) async fn tried(
    api: &Api,
    viewer: &Viewer,
    job: Option<&Job>,
    draft: JobDraft,
) -> Result<(Arc<Job>, Option<preview::Difference>), Problem> {
    let Some(job) = job else {
        let made = jobs::create(api, viewer.caller, draft, None, Mode::Dry).await?;
        return Ok((made.job, None));
    };
    let expect = Expect::Existing;
    let changed = jobs::patch(api, viewer.caller, job.id, draft, &expect, Mode::Dry).await?;
    Ok((changed.job, changed.slots))
}

/// What differs between a job and the one that a form would make of it. A form that cannot be saved has no plan.
pub(super) async fn plan(
    api: &Api,
    viewer: &Viewer,
    job: &Job,
    draft: Result<JobDraft, Problem>,
) -> Option<Plan> {
    let (after, slots) = tried(api, viewer, Some(job), draft.ok()?).await.ok()?;
    let face = face(viewer);
    let (removed, added) = slots.map(|it| (it.removed, it.added)).unwrap_or_default();
    let mut all: Vec<(Slot, bool)> = removed.into_iter().map(|slot| (slot, true)).collect();
    all.extend(added.into_iter().map(|slot| (slot, false)));
    all.sort_unstable();
    let more = all.len().saturating_sub(2 * SLOTS);
    let shown = all.into_iter().take(2 * SLOTS);
    let shown = shown.map(|(slot, is_gone)| {
        let moment = format!("{}, {}", face.day(slot.0), face.clock(slot.0));
        (is_gone, moment)
    });
    Some(Plan {
        lines: diff::jobs(job, &after),
        slots: shown.collect(),
        more: (more > 0).then(|| format!("and {} more", super::format::count(more as u64))),
    })
}
