//! Which problems an operation may answer with. Most follow from what the operation is made of; the tests of the
//! server hold every answer that they get against the contract.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::problem::Kind;

/// Of every request.
const OF_ALL: &[Kind] = &[
    Kind::HostUnknown,
    Kind::HeadTooLarge,
    Kind::Internal,
    Kind::TimedOut,
];
/// Of every request that reads or changes something.
const OF_API: &[Kind] = &[
    Kind::ParameterInvalid,
    Kind::NotApi,
    Kind::StoreUnavailable,
    Kind::StorageFull,
    Kind::Overloaded,
];
/// Of every request that may have a body.
const OF_BODY: &[Kind] = &[
    Kind::BodyUnreadable,
    Kind::TooDeep,
    Kind::BodySlow,
    Kind::BodyTooLarge,
    Kind::MediaTypeUnsupported,
    Kind::FieldUnknown,
    Kind::FieldMissing,
    Kind::FieldDuplicate,
    Kind::FieldInvalid,
];
/// Of every body that holds a schedule.
const OF_SCHEDULE: &[Kind] = &[
    Kind::ScheduleInvalid,
    Kind::ScheduleNever,
    Kind::CalendarUnknown,
    Kind::InPast,
];
/// Of every write of a job's definition.
const OF_JOB: &[Kind] = &[Kind::JobRefused, Kind::NodeTooOld];

pub(super) fn add(method: &str, path: &str, operation: &mut Value) {
    let mut by_status = BTreeMap::<u16, Vec<Kind>>::new();
    for kind in kinds(method, path, operation) {
        by_status
            .entry(kind.status().as_u16())
            .or_default()
            .push(kind);
    }
    for (status, kinds) in by_status {
        let one = |kind: &Kind| {
            format!(
                "[{name}](/problems/{name}): {}",
                kind.title(),
                name = kind.name()
            )
        };
        let description: Vec<String> = kinds.iter().map(one).collect();
        operation["responses"][status.to_string()] = json!({
            "description": description.join("; "),
            "content": {
                "application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemBody"}}
            }
        });
    }
}

/// Whether no key is needed.
pub(super) fn is_open(path: &str) -> bool {
    ["/healthz", "/readyz"].contains(&path)
}

fn kinds(method: &str, path: &str, operation: &Value) -> Vec<Kind> {
    let mut kinds = OF_ALL.to_vec();
    if !is_open(path) {
        kinds.extend([Kind::Unauthorized, Kind::RoleInsufficient]);
    }
    if path.starts_with("/v1/") {
        kinds.extend(OF_API);
    }
    if ["post", "put", "patch"].contains(&method) {
        kinds.extend(OF_BODY);
    }
    if path.contains("{key}") || path.contains("{name}") {
        kinds.push(Kind::FieldInvalid);
    }
    kinds.extend(missing(method, path));
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    for parameter in parameters {
        match parameter["name"].as_str() {
            Some("If-Match") => kinds.extend([Kind::HeaderInvalid, Kind::VersionConflict]),
            Some("If-None-Match") if path.starts_with("/v1/jobs/") => kinds.push(Kind::JobExists),
            Some("Idempotency-Key") => {
                kinds.extend([Kind::HeaderInvalid, Kind::IdempotencyMismatch])
            }
            Some(_) | None => {}
        }
    }
    kinds.extend(own(operation["operationId"].as_str().unwrap_or_default()));
    kinds.sort_by_key(|kind| (kind.status(), kind.name()));
    kinds.dedup();
    kinds
}

/// What a path names may not be there.
fn missing(method: &str, path: &str) -> Option<Kind> {
    if !path.contains('{') || method == "put" {
        return None;
    }
    let kinds = [
        ("/v1/jobs/", Kind::JobNotFound),
        ("/v1/runs/", Kind::RunNotFound),
        ("/v1/calendars/", Kind::CalendarNotFound),
        ("/v1/keys/", Kind::AccessKeyNotFound),
        ("/v1/tenants/", Kind::TenantNotFound),
    ];
    kinds
        .into_iter()
        .find(|(start, _)| path.starts_with(start))
        .map(|(_, kind)| kind)
}

/// What an operation has for itself.
fn own(operation: &str) -> Vec<Kind> {
    let definition = [OF_SCHEDULE, OF_JOB, &[Kind::KeyTaken]].concat();
    match operation {
        "create_job" => [&definition[..], &[Kind::JobGone]].concat(),
        "put_job_by_key" | "patch_job" => {
            [&definition[..], &[Kind::Contended, Kind::StateConflict]].concat()
        }
        "delete_job" | "delete_job_by_key" => vec![Kind::Contended],
        "pause_job" | "resume_job" => vec![Kind::Contended, Kind::StateConflict],
        "run_job" => vec![Kind::StateConflict, Kind::OverlapRefused],
        "replay_job" => vec![Kind::NoDeadRun, Kind::OverlapRefused, Kind::JobGone],
        "replay_run" => vec![Kind::RunAlive, Kind::OverlapRefused, Kind::JobGone],
        "cancel_run" => vec![Kind::RunEnded],
        "list_runs" => vec![Kind::JobNotFound],
        "preview_schedule" => OF_SCHEDULE.to_vec(),
        "create_calendar" => vec![
            Kind::CalendarExists,
            Kind::CalendarsFull,
            Kind::ScheduleInvalid,
        ],
        "put_calendar" => vec![Kind::CalendarsFull, Kind::Contended, Kind::ScheduleInvalid],
        "delete_calendar" => vec![Kind::CalendarInUse, Kind::Contended],
        "create_tenant" => vec![Kind::TenantExists, Kind::TenantsFull],
        "delete_tenant" => vec![Kind::TenantInUse],
        "create_key" => vec![Kind::AccessKeysFull, Kind::TenantNotFound],
        "list_keys" | "get_key" => vec![Kind::FieldInvalid, Kind::AccessKeyNotFound],
        "revoke_key" => vec![Kind::LastRootKey, Kind::FieldInvalid],
        "healthz" => vec![Kind::Unwell],
        "readyz" => vec![Kind::NotReady],
        _ => Vec::new(),
    }
}
