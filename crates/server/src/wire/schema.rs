//! Requests as the contract describes them. They are read by hand (see `read`), so that every refusal
//! can name its field; a test holds these descriptions against what is read.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

/// A job, in full or in short. Only `schedule` and `target` must be there; `null` means the default.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"schedule": "@daily", "target": "https://example.com/hook"}))]
pub struct JobRequest {
    /// A name of your own; unique among your jobs.
    pub key: Option<String>,
    pub schedule: ScheduleForm,
    pub target: TargetForm,
    /// Any JSON; sent to the target byte for byte.
    pub payload: Option<serde_json::Value>,
    pub retry: Option<RetryRequest>,
    /// Of one attempt, such as `30s`, `5m` or `PT5M`. Default 5m.
    pub timeout: Option<String>,
    /// `critical`, `standard` or `batch`.
    pub lane: Option<String>,
    pub overlap: Option<OverlapForm>,
    pub catch_up: Option<CatchUpForm>,
    /// A fixed offset within this span, so that midnight is not one moment.
    pub spread: Option<String>,
    /// `at_least_once` or `at_most_once`.
    pub delivery: Option<String>,
    pub start_within: Option<String>,
    pub finish_within: Option<String>,
    pub labels: Option<BTreeMap<String, Option<String>>>,
}

/// What an edit speaks of changes; `null` sets a field back to its default. `retry`, `catch_up` and `labels`
/// are merged, `schedule`, `target` and `payload` are replaced whole.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"timeout": "30s", "labels": {"team": "ops", "old": null}}))]
pub struct JobPatch {
    pub key: Option<String>,
    pub schedule: Option<ScheduleForm>,
    pub target: Option<TargetForm>,
    pub payload: Option<serde_json::Value>,
    pub retry: Option<RetryRequest>,
    pub timeout: Option<String>,
    pub lane: Option<String>,
    pub overlap: Option<OverlapForm>,
    pub catch_up: Option<CatchUpForm>,
    pub spread: Option<String>,
    pub delivery: Option<String>,
    pub start_within: Option<String>,
    pub finish_within: Option<String>,
    pub labels: Option<BTreeMap<String, Option<String>>>,
}

/// A cron expression, a macro or `@every 90s`; or an object that says what kind it is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum ScheduleForm {
    Short(String),
    Full(ScheduleRequest),
}

/// Exactly one of `cron`, `every`, `at` and `in`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"cron": "0 9 * * MON-FRI", "timezone": "Europe/Berlin"}))]
pub struct ScheduleRequest {
    pub cron: Option<ExpressionsForm>,
    /// `15m` or `PT15M` is elapsed time, `P1D` or `P1M` is calendar time.
    pub every: Option<String>,
    pub at: Option<MomentForm>,
    /// From now.
    pub r#in: Option<String>,
    /// An IANA name; UTC by default.
    pub timezone: Option<String>,
    /// `unix` or `quartz`.
    pub dialect: Option<String>,
    /// `run_after` or `skip`.
    pub dst_gap: Option<String>,
    /// `first` or `both`.
    pub dst_overlap: Option<String>,
    /// Slot 0 of an interval; now by default.
    pub anchor: Option<MomentForm>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum ExpressionsForm {
    One(String),
    Several(Vec<String>),
}

/// RFC 3339 with an offset, or epoch seconds or milliseconds.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum MomentForm {
    Text(String),
    Epoch(i64),
}

/// An address, or an object that says what kind it is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum TargetForm {
    Short(String),
    Full(TargetRequest),
}

#[derive(Debug, Serialize, ToSchema)]
pub struct TargetRequest {
    pub http: HttpRequest,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct HttpRequest {
    pub url: String,
    /// GET, POST (the default), PUT, PATCH, DELETE or HEAD.
    pub method: Option<String>,
    pub headers: Option<BTreeMap<String, String>>,
    /// Bytes of the answer that are kept: 4096 by default, 65536 at most.
    pub output_max: Option<u32>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct RetryRequest {
    /// 1 to 100; 4 by default.
    pub attempts_max: Option<u32>,
    /// `exponential`, `linear` or `fixed`.
    pub backoff: Option<String>,
    pub delay_first: Option<String>,
    pub delay_max: Option<String>,
    /// The share of a delay that chance may add, from 0 to 1.
    pub jitter: Option<f64>,
}

/// `skip`, `queue_one`, `queue_all`, `cancel_running` or `allow`; an object where a bound is given.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum OverlapForm {
    Short(String),
    Full(OverlapRequest),
}

#[derive(Debug, Serialize, ToSchema)]
pub struct OverlapRequest {
    pub policy: String,
    /// How many runs may wait; of `queue_all` only.
    pub max: Option<u32>,
}

/// `none`, `latest` or `all`; an object where a window or a bound is given.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum CatchUpForm {
    Short(String),
    Full(CatchUpRequest),
}

#[derive(Debug, Serialize, ToSchema)]
pub struct CatchUpRequest {
    pub policy: Option<String>,
    pub window: Option<String>,
    pub max: Option<u32>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct PauseBody {
    pub note: Option<String>,
}

/// What a manual run, a replay or a retry may carry.
#[derive(Debug, Serialize, ToSchema)]
pub struct StartBody {
    /// Instead of the job's own.
    pub payload: Option<serde_json::Value>,
    /// Start whatever else of the job is alive.
    pub force: Option<bool>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"schedule": "30 2 * * *", "timezone": "Europe/Berlin", "count": 3}))]
pub struct PreviewBody {
    pub schedule: ScheduleForm,
    /// Slots strictly after this moment; now by default.
    pub from: Option<MomentForm>,
    /// 1 to 1000; 10 by default.
    pub count: Option<u32>,
    pub timezone: Option<String>,
    pub dialect: Option<String>,
    pub dst_gap: Option<String>,
    pub dst_overlap: Option<String>,
}

/// One line of a batch's answer: the job that was made, or the problem with that line.
#[derive(Debug, Serialize, ToSchema)]
pub struct BatchLine {
    pub line: u64,
    pub status: u16,
    pub id: Option<String>,
    /// The job had been made by an earlier request with this key.
    pub replayed: Option<bool>,
    pub error: Option<ProblemBody>,
}

/// RFC 9457.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProblemBody {
    #[schema(example = "/problems/schedule-invalid")]
    pub r#type: String,
    pub title: String,
    pub status: u16,
    pub detail: String,
    /// The path of the field that is at fault.
    #[schema(example = "schedule.cron")]
    pub field: Option<String>,
}

/// What is wrong, and how to put it right.
#[derive(Debug, utoipa::IntoResponses)]
#[response(status = "4XX", content_type = "application/problem+json")]
pub struct Refused(#[expect(dead_code, reason = "it stands in the contract only")] ProblemBody);
