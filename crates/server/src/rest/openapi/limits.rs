//! Which words a field takes, and how much of something there may be: from the model, so that the contract says what is
//! checked.

use model::user::USER_ROLES;
use model::{
    Backoff, CatchUp, CatchUpPolicy, Channel, Completion, Condition, Delivery, JobState, Lane,
    Outcome, Overlap, Quota, Reason, Redirects, Role, RunKind, RunState, limits,
};
use serde_json::{Value, json};
use store::ReplayState;

use super::{limits_of_alerts, limits_of_commands, texts};
use crate::ops::{forecast, rush};

/// A field is named by its schema, `Job.state`; a form of several by its place, `OverlapForm#0`.
pub(super) fn add(contract: &mut Value) {
    for (words, fields) in WORDS {
        for field in *fields {
            set(contract, field, "enum", &json!(words()));
        }
    }
    for (member, bound, fields) in BOUNDS
        .iter()
        .chain(limits_of_commands::BOUNDS)
        .chain(limits_of_alerts::BOUNDS)
        .chain(texts::BOUNDS)
    {
        for field in *fields {
            set(contract, field, member, &json!(bound));
        }
    }
    for (member, form, fields) in texts::FORMS {
        for field in *fields {
            set(contract, field, member, &json!(form));
        }
    }
}

fn set(contract: &mut Value, field: &str, member: &str, value: &Value) {
    // A test fails when a field is named that is not there.
    let Some(schema) = contract.pointer_mut(&pointer(field)) else {
        return;
    };
    let mut value = value.clone();
    let null = Value::from("null");
    let nullable = schema["type"]
        .as_array()
        .is_some_and(|types| types.contains(&null));
    if let (true, Some(words)) = (nullable && member == "enum", value.as_array_mut()) {
        words.push(Value::Null);
    }
    schema[member] = value;
}

fn pointer(field: &str) -> String {
    let path = match field.split_once('#') {
        Some((schema, form)) => format!("{schema}/oneOf/{}", form.replace('.', "/")),
        None => field.replacen('.', "/properties/", 1).replace('.', "/"),
    };
    format!("/components/schemas/{path}")
}

type Fields = &'static [&'static str];

type Words = fn() -> Vec<&'static str>;

/// Which words stand in which fields.
const WORDS: &[(Words, Fields)] = &[
    (
        || JobState::ALL.map(JobState::as_str).to_vec(),
        &["Job.state"],
    ),
    (
        || RunState::ALL.map(RunState::as_str).to_vec(),
        &[
            "Run.state",
            "SlotRun.state",
            "AlertOfJob.run_state",
            "ReplayFilter.state.items",
        ],
    ),
    (|| RunKind::ALL.map(RunKind::as_str).to_vec(), &["Run.kind"]),
    (
        || Outcome::ALL.map(Outcome::as_str).to_vec(),
        &["Run.outcome", "Attempt.outcome", "SlotRun.outcome"],
    ),
    (
        || Reason::ALL.map(Reason::as_str).to_vec(),
        &[
            "Run.reason",
            "SlotEntry.reason",
            "RunGroup.reason",
            "AlertOfJob.reason",
            "ReplayFilter.reason.items",
        ],
    ),
    (
        || Lane::ALL.map(Lane::as_str).to_vec(),
        &[
            "Job.lane",
            "Run.lane",
            "JobRequest.lane",
            "JobPatch.lane",
            "OverviewLane.lane",
            "ForecastLane.lane",
            "ForecastJob.lane",
        ],
    ),
    (
        || Role::ALL.map(Role::as_str).to_vec(),
        &["AccessKey.role", "KeyRequest.role"],
    ),
    (
        || USER_ROLES.map(Role::as_str).to_vec(),
        &[
            "UserRequest.role",
            "UserRequest.roles.additionalProperties",
            "UserPatch.role",
            "UserPatch.roles.additionalProperties",
        ],
    ),
    (
        || Delivery::ALL.map(Delivery::as_str).to_vec(),
        &["Job.delivery", "JobRequest.delivery", "JobPatch.delivery"],
    ),
    (
        || Redirects::ALL.map(Redirects::as_str).to_vec(),
        &[
            "HttpTarget.redirects",
            "HttpRequest.redirects",
            "HttpPatch.redirects",
        ],
    ),
    (
        || Completion::WORDS.to_vec(),
        &[
            "Job.completion",
            "JobRequest.completion",
            "JobPatch.completion",
        ],
    ),
    (
        || crate::wire::OUTCOMES.to_vec(),
        &["ReportBody.outcome", "ReportAnswer.outcome"],
    ),
    (
        || Backoff::ALL.map(Backoff::as_str).to_vec(),
        &["Retry.backoff", "RetryRequest.backoff"],
    ),
    (
        || CatchUpPolicy::ALL.map(CatchUpPolicy::as_str).to_vec(),
        &["CatchUp.policy", "CatchUpRequest.policy", "CatchUpForm#0"],
    ),
    (
        || OVERLAPS.map(Overlap::as_str).to_vec(),
        &["OverlapRequest.policy", "OverlapForm#0", "Overlap#0"],
    ),
    (
        || vec!["unix", "quartz"],
        &[
            "Schedule.dialect",
            "ScheduleRequest.dialect",
            "PreviewBody.dialect",
        ],
    ),
    (
        || vec!["run_after", "skip"],
        &[
            "Schedule.dst_gap",
            "ScheduleRequest.dst_gap",
            "PreviewBody.dst_gap",
        ],
    ),
    (
        || vec!["first", "both"],
        &[
            "Schedule.dst_overlap",
            "ScheduleRequest.dst_overlap",
            "PreviewBody.dst_overlap",
        ],
    ),
    (
        || vec!["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"],
        &[
            "HttpTarget.method",
            "HttpRequest.method",
            "HttpPatch.method",
        ],
    ),
    (
        || vec!["api", "schedule", "execute"],
        &["Node.parts.items", "VersionAnswer.parts.items"],
    ),
    (
        || vec!["ran", "skipped", "missed", "planned", "unknown"],
        &["SlotEntry.fate", "Explained.fate"],
    ),
    (
        || Condition::WORDS.to_vec(),
        &["Alert.on", "AlertRequest.on"],
    ),
    (
        || Channel::ALL.map(Channel::as_str).to_vec(),
        &["Alert.channel", "AlertRequest.channel"],
    ),
    (|| vec!["firing", "recovered"], &["AlertOfJob.state"]),
    (|| vec!["replay", "backfill"], &["Replay.kind"]),
    (
        || ReplayState::ALL.map(ReplayState::as_str).to_vec(),
        &["Replay.state"],
    ),
    (|| vec!["1h", "6h", "24h", "7d"], &["Overview.span"]),
    (|| vec!["1h", "24h"], &["Forecast.reach"]),
    (|| vec!["utf8", "base64"], &["Attempt.output_encoding"]),
    (|| vec!["well", "held"], &["HealthAnswer.status"]),
    (|| vec!["ready"], &["ReadyAnswer.status"]),
];

const OVERLAPS: [Overlap; 5] = [
    Overlap::Skip,
    Overlap::QueueOne,
    Overlap::QueueAll { max: 1 },
    Overlap::CancelRunning,
    Overlap::Allow,
];

/// How much of something there may be.
const BOUNDS: &[(&str, usize, Fields)] = &[
    (
        "minimum",
        1,
        &[
            "Retry.attempts_max",
            "RetryRequest.attempts_max",
            "CatchUp.max",
            "CatchUpRequest.max",
            "OverlapRequest.max",
            "Job.pause_after_failures",
            "JobRequest.pause_after_failures",
            "JobPatch.pause_after_failures",
            "ScheduleRequest.runs_max",
            "PreviewBody.runs_max",
            "PreviewBody.count",
            "BatchLine.line",
            "Attempt.no",
            "ReplayRequest.rate",
            "ReplayRequest.limit",
            "BackfillBody.rate",
            "BackfillBody.limit",
        ],
    ),
    (
        "maximum",
        limits::ATTEMPTS_MAX as usize,
        &["Retry.attempts_max", "RetryRequest.attempts_max"],
    ),
    (
        "maximum",
        CatchUp::MAX_MAX as usize,
        &["CatchUp.max", "CatchUpRequest.max"],
    ),
    (
        "maximum",
        limits::FAILURES_MAX as usize,
        &[
            "Job.pause_after_failures",
            "JobRequest.pause_after_failures",
            "JobPatch.pause_after_failures",
        ],
    ),
    (
        "maximum",
        Overlap::QUEUE_MAX as usize,
        &["OverlapRequest.max"],
    ),
    (
        "maximum",
        u32::MAX as usize,
        &["ScheduleRequest.runs_max", "PreviewBody.runs_max"],
    ),
    ("maximum", limits::PREVIEW_MAX, &["PreviewBody.count"]),
    (
        "maximum",
        limits::REPLAY_RATE_MAX as usize,
        &["ReplayRequest.rate", "BackfillBody.rate"],
    ),
    (
        "maximum",
        limits::REPLAY_RUNS_MAX as usize,
        &["ReplayRequest.limit"],
    ),
    (
        "maximum",
        limits::BACKFILL_SLOTS_MAX as usize,
        &["BackfillBody.limit"],
    ),
    ("maxLength", limits::ERROR_MAX, &["FilterRequest.error"]),
    ("maxLength", limits::URL_MAX, &["FilterRequest.target"]),
    ("maxItems", limits::GROUP_JOBS_MAX, &["RunGroup.jobs"]),
    ("maxItems", limits::GROUPS_MAX, &["RunGroups.items"]),
    ("maxItems", forecast::HOT_MAX, &["Forecast.hot"]),
    ("maxItems", rush::JOBS_MAX, &["ForecastSecond.items"]),
    (
        "maximum",
        limits::OUTPUT_MAX,
        &[
            "HttpTarget.output_max",
            "HttpRequest.output_max",
            "HttpPatch.output_max",
        ],
    ),
    (
        "maxLength",
        limits::TEMPLATE_MAX,
        &["HttpRequest.body", "HttpPatch.body"],
    ),
    (
        "maxItems",
        limits::KEEP_HEADERS_MAX,
        &[
            "HttpTarget.keep_headers",
            "HttpRequest.keep_headers",
            "HttpPatch.keep_headers",
        ],
    ),
    (
        "maxItems",
        limits::STATUSES_MAX,
        &["Success.status", "StatusesForm#2"],
    ),
    (
        "maxLength",
        limits::SUCCESS_JSON_MAX,
        &["JsonEqualsRequest.pointer"],
    ),
    ("minimum", 0, &["Retry.jitter", "RetryRequest.jitter"]),
    ("maximum", 1, &["Retry.jitter", "RetryRequest.jitter"]),
    (
        "maximum",
        Quota::HistoryDays.highest() as usize,
        &["QuotasRequest.history_days_max"],
    ),
    ("minimum", 1, &["QuotasRequest.history_days_max"]),
    (
        "maximum",
        Quota::Jobs.highest() as usize,
        &["QuotasRequest.jobs_max"],
    ),
    (
        "maximum",
        Quota::RunsDay.highest() as usize,
        &["QuotaMax#0"],
    ),
    (
        "maximum",
        Quota::PayloadBytes.highest() as usize,
        &["QuotasRequest.payload_bytes_max"],
    ),
    ("minimum", 400, &["ProblemBody.status"]),
    ("maximum", 599, &["ProblemBody.status", "BatchLine.status"]),
    (
        "minLength",
        1,
        &[
            "JobRequest.key",
            "JobPatch.key",
            "JobRequest.owner",
            "JobPatch.owner",
            "CalendarRequest.name",
            "KeyRequest.label",
            "KeyRequest.tenant",
            "TenantRequest.name",
            "SecretRequest.name",
            "UserRequest.name",
        ],
    ),
    (
        "maxLength",
        limits::USER_NAME_MAX,
        &["User.name", "UserRequest.name", "UserPatch.name"],
    ),
    (
        "minLength",
        limits::PASSWORD_MIN,
        &["UserRequest.password", "UserPatch.password"],
    ),
    (
        "maxProperties",
        limits::MEMBERS_MAX,
        &["UserRequest.roles", "UserPatch.roles"],
    ),
    (
        "minLength",
        limits::SECRET_MIN,
        &["SecretRequest.value", "SecretPatch.value"],
    ),
    (
        "maxLength",
        limits::SECRET_MAX,
        &["SecretRequest.value", "SecretPatch.value"],
    ),
    (
        "maxLength",
        limits::SECRET_NAME_MAX,
        &["SecretRequest.name", "SecretPatch.name"],
    ),
    ("minItems", 1, &["SecretRequest.hosts", "SecretPatch.hosts"]),
    (
        "maxItems",
        limits::HOSTS_MAX,
        &["SecretRequest.hosts", "SecretPatch.hosts"],
    ),
    ("minItems", 1, &["KeyRequest.queues"]),
    ("maxItems", limits::QUEUES_MAX, &["KeyRequest.queues"]),
    (
        "maxLength",
        limits::TENANT_NAME_MAX,
        &["KeyRequest.tenant", "TenantRequest.name"],
    ),
    (
        "maxLength",
        limits::OWNER_MAX,
        &["Job.owner", "JobRequest.owner", "JobPatch.owner"],
    ),
    (
        "maxLength",
        limits::NAME_MAX,
        &[
            "Job.key",
            "JobRequest.key",
            "JobPatch.key",
            "CalendarRequest.name",
            "Calendar.name",
            "KeyRequest.label",
            "JobRequest.labels.additionalProperties",
            "JobPatch.labels.additionalProperties",
        ],
    ),
    (
        "maxLength",
        limits::URL_MAX,
        &["HttpTarget.url", "HttpRequest.url", "HttpPatch.url"],
    ),
    (
        "maxLength",
        limits::PROXY_MAX,
        &["TenantRequest.proxy", "TenantPatch.proxy"],
    ),
    ("maxLength", limits::ERROR_MAX, &["Attempt.error"]),
    (
        "maxLength",
        limits::NOTE_MAX,
        &[
            "PauseBody.note",
            "CalendarRequest.note",
            "TenantRequest.note",
            "TenantPatch.note",
            "SecretRequest.note",
            "SecretPatch.note",
        ],
    ),
    (
        "maxProperties",
        limits::LABELS_MAX,
        &["Job.labels", "JobRequest.labels"],
    ),
    (
        "maxProperties",
        limits::HEADERS_MAX,
        &["HttpTarget.headers", "HttpRequest.headers"],
    ),
    (
        "maxItems",
        limits::CALENDARS_OF_JOB_MAX,
        &[
            "JobRequest.exclude",
            "JobRequest.only",
            "JobPatch.exclude",
            "JobPatch.only",
            "PreviewBody.exclude",
            "PreviewBody.only",
        ],
    ),
    (
        "maxItems",
        limits::CALENDAR_ENTRIES_MAX,
        &[
            "CalendarRequest.dates",
            "CalendarRequest.yearly",
            "CalendarRequest.weekly",
            "CalendarRequest.ranges",
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_that_is_named_is_there() {
        let contract: Value = serde_json::from_str(&crate::openapi_json()).unwrap();
        let bounded = BOUNDS
            .iter()
            .chain(limits_of_commands::BOUNDS)
            .chain(limits_of_alerts::BOUNDS)
            .chain(texts::BOUNDS);
        let bounded = bounded.flat_map(|(_, _, fields)| *fields);
        let formed = texts::FORMS.iter().flat_map(|(_, _, fields)| *fields);
        let fields = WORDS.iter().flat_map(|(_, fields)| *fields);
        let fields = fields.chain(bounded).chain(formed);
        let gone: Vec<_> = fields
            .filter(|field| contract.pointer(&pointer(field)).is_none())
            .collect();
        assert!(gone.is_empty(), "{gone:?}");
    }
}
