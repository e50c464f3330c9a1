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
/// Of every run that is asked for.
const OF_START: &[Kind] = &[Kind::OverlapRefused, Kind::QuotaExceeded];
/// Of every write of a job's definition.
const OF_JOB: &[Kind] = &[
    Kind::JobRefused,
    Kind::EgressRefused,
    Kind::CommandRefused,
    Kind::NodeTooOld,
    Kind::QuotaExceeded,
];

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
        if status == Kind::RateExceeded.status().as_u16() {
            operation["responses"][status.to_string()]["headers"] = headers_of_rates();
        }
    }
}

/// The headers that say how fast a client may go.
fn headers_of_rates() -> Value {
    let text =
        |description: &str| json!({"description": description, "schema": {"type": "string"}});
    json!({
        "Retry-After": {
            "description": "Seconds until this may be sent again",
            "schema": {"type": "integer", "minimum": 1},
        },
        "RateLimit": text("Which bound it is, and how many requests may come at once: \"key\";r=0;t=1"),
        "RateLimit-Policy": text("How many requests a second it takes: \"key\";q=10000;w=1"),
    })
}

/// Whether no key is needed.
pub(super) fn is_open(path: &str) -> bool {
    ["/healthz", "/readyz"].contains(&path)
}

fn kinds(method: &str, path: &str, operation: &Value) -> Vec<Kind> {
    let mut kinds = OF_ALL.to_vec();
    if !is_open(path) {
        kinds.extend([
            Kind::Unauthorized,
            Kind::RoleInsufficient,
            Kind::RateExceeded,
        ]);
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
        ("/v1/replays/", Kind::ReplayNotFound),
        ("/v1/calendars/", Kind::CalendarNotFound),
        ("/v1/alerts/", Kind::AlertNotFound),
        ("/v1/keys/", Kind::AccessKeyNotFound),
        ("/v1/tenants/", Kind::TenantNotFound),
        ("/v1/secrets/", Kind::SecretNotFound),
        ("/v1/signing-secrets/", Kind::SigningSecretNotFound),
        ("/v1/users/", Kind::UserNotFound),
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
        "revert_job" => [
            &definition[..],
            &[Kind::Contended, Kind::StateConflict, Kind::VersionNotFound],
        ]
        .concat(),
        "get_version_of_job" => vec![Kind::VersionNotFound],
        "delete_job" | "delete_job_by_key" => vec![Kind::Contended],
        "pause_job" | "resume_job" => vec![Kind::Contended, Kind::StateConflict],
        "run_job" => [OF_START, &[Kind::StateConflict]].concat(),
        "replay_job" => [OF_START, &[Kind::NoDeadRun, Kind::JobGone]].concat(),
        "replay_run" => [OF_START, &[Kind::RunAlive, Kind::JobGone]].concat(),
        "create_replay" => vec![Kind::ReplaysFull, Kind::JobNotFound, Kind::ReplayNotFound],
        "backfill_job" => vec![Kind::ReplaysFull, Kind::ReplayNotFound],
        "cancel_run" => vec![Kind::RunEnded],
        "wake_run" => vec![Kind::RunEnded, Kind::RunNotWaiting],
        "report_run" | "heartbeat_run" => vec![Kind::AttemptEnded, Kind::NotReady],
        "append_log_of_run" | "get_checkpoint_of_run" => vec![Kind::AttemptEnded],
        "list_runs" | "group_runs" => vec![Kind::JobNotFound],
        "watch_events" => vec![Kind::RunNotFound],
        "preview_schedule" => OF_SCHEDULE.to_vec(),
        "create_calendar" => vec![
            Kind::CalendarExists,
            Kind::CalendarsFull,
            Kind::ScheduleInvalid,
        ],
        "put_calendar" => vec![Kind::CalendarsFull, Kind::Contended, Kind::ScheduleInvalid],
        "delete_calendar" => vec![Kind::CalendarInUse, Kind::Contended],
        "put_alert" => [
            OF_JOB,
            &[
                Kind::AlertsFull,
                Kind::AlertNotFound,
                Kind::JobNotFound,
                Kind::Contended,
            ],
        ]
        .concat(),
        "delete_alert" | "mute_alert" => vec![Kind::Contended],
        "test_alert" => vec![Kind::AlertBusy, Kind::Contended],
        "healthz" => vec![Kind::Unwell],
        "readyz" => vec![Kind::NotReady],
        _ => of_access(operation),
    }
}

/// The same, of what says who may do what.
fn of_access(operation: &str) -> Vec<Kind> {
    match operation {
        "create_tenant" => vec![
            Kind::TenantExists,
            Kind::TenantsFull,
            Kind::EgressRefused,
            Kind::MasterKeyMissing,
            Kind::NodeTooOld,
        ],
        "patch_tenant" => vec![
            Kind::EgressRefused,
            Kind::SecretsFull,
            Kind::MasterKeyMissing,
            Kind::Contended,
            Kind::NodeTooOld,
        ],
        "delete_tenant" => vec![Kind::TenantInUse, Kind::LastRootKey],
        "create_secret" => vec![
            Kind::SecretExists,
            Kind::SecretsFull,
            Kind::MasterKeyMissing,
            Kind::SecretNotFound,
        ],
        "put_secret" => vec![
            Kind::SecretsFull,
            Kind::MasterKeyMissing,
            Kind::Contended,
            Kind::SecretNotFound,
        ],
        "create_signing_secret" => vec![
            Kind::SigningSecretsFull,
            Kind::SecretsFull,
            Kind::MasterKeyMissing,
            Kind::NodeTooOld,
            Kind::SecretNotFound,
        ],
        "create_user" => vec![Kind::UserExists, Kind::UsersFull],
        "rewrap_secrets" => vec![Kind::MasterKeyMissing],
        "create_key" => vec![Kind::AccessKeysFull, Kind::TenantNotFound],
        "list_keys" | "list_audit" | "export_audit" => {
            vec![Kind::TenantNotFound, Kind::AccessKeyNotFound]
        }
        "get_key" => vec![Kind::TenantNotFound],
        "revoke_key" => vec![Kind::LastRootKey, Kind::TenantNotFound],
        _ => Vec::new(),
    }
}
