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
    /// Calendars by their names: slots within any of them are skipped.
    pub exclude: Option<Vec<String>>,
    /// Calendars by their names: slots outside of all of them are skipped.
    pub only: Option<Vec<String>>,
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
    /// A run that starts later than this after it was due is marked with `late_by`, counted and logged.
    pub start_within: Option<String>,
    /// A run that has not ended so long after its first dispatch is marked with `long_by`, counted and logged.
    pub finish_within: Option<String>,
    pub labels: Option<BTreeMap<String, Option<String>>>,
}

/// What an edit does not mention stays as it is, also within `schedule`, `target`, `retry`, `overlap` and `catch_up`;
/// `null` removes a field or sets it back to its default. Headers and labels are merged by name. `exclude`, `only` and
/// `payload` are replaced whole.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"timeout": "30s", "labels": {"team": "ops", "old": null}}))]
pub struct JobPatch {
    pub key: Option<String>,
    pub schedule: Option<ScheduleForm>,
    pub exclude: Option<Vec<String>>,
    pub only: Option<Vec<String>>,
    pub target: Option<TargetPatchForm>,
    pub payload: Option<serde_json::Value>,
    pub retry: Option<RetryRequest>,
    pub timeout: Option<String>,
    pub lane: Option<String>,
    pub overlap: Option<OverlapForm>,
    pub catch_up: Option<CatchUpForm>,
    pub spread: Option<String>,
    pub delivery: Option<String>,
    /// A run that starts later than this after it was due is marked with `late_by`, counted and logged.
    pub start_within: Option<String>,
    /// A run that has not ended so long after its first dispatch is marked with `long_by`, counted and logged.
    pub finish_within: Option<String>,
    pub labels: Option<BTreeMap<String, Option<String>>>,
}

/// A cron expression, a macro or `@every 90s`; or an object that says what kind it is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum ScheduleForm {
    Short(String),
    Full(Box<ScheduleRequest>),
}

/// Exactly one of `cron`, `every`, `at` and `in`; an edit that leaves them out changes what stands beside them.
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
    /// Slot 0 of an interval; `starts_at` by default, or now.
    pub anchor: Option<MomentForm>,
    /// Of an interval: a slot is a period after the end of the run before it. False by default.
    pub after_completion: Option<bool>,
    /// There is no slot before it; one at this very moment is the first. Of `cron` and `every`.
    pub starts_at: Option<MomentForm>,
    /// There is no slot after it; one at this very moment is the last. Of `cron` and `every`.
    pub ends_at: Option<MomentForm>,
    /// After so many runs of its slots the job is finished. Of `cron` and `every`.
    pub runs_max: Option<u32>,
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

/// Another address, or an object with what is to change about the target.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum TargetPatchForm {
    Short(String),
    Full(TargetPatch),
}

#[derive(Debug, Serialize, ToSchema)]
pub struct TargetPatch {
    pub http: HttpPatch,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct HttpPatch {
    pub url: Option<String>,
    pub method: Option<String>,
    /// Merged by name; `null` takes a header away.
    pub headers: Option<BTreeMap<String, Option<String>>>,
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
    pub policy: Option<String>,
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

#[derive(Debug, Serialize, ToSchema)]
pub struct ResumeBody {
    /// Go on from where the pause began, as `catch_up` of the job says, instead of from now.
    pub catch_up: Option<bool>,
}

/// A named set of local times: the union of its entries, of which there is at least one.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"name": "holidays", "yearly": ["01-01", "12-25"], "dates": ["2027-03-26"]}))]
pub struct CalendarRequest {
    /// 1 to 128 letters, digits or any of . _ -; in the path when a calendar is put.
    pub name: Option<String>,
    pub note: Option<String>,
    /// The zone its dates are meant in; that of the job by default.
    pub timezone: Option<String>,
    /// Whole days, such as `2026-12-25`.
    pub dates: Option<Vec<String>>,
    /// Whole days of every year, such as `12-25`, month first.
    pub yearly: Option<Vec<String>>,
    /// Days of every week, such as `SAT-SUN` or `MON-FRI 09:00-17:00`.
    pub weekly: Option<Vec<String>>,
    pub ranges: Option<Vec<RangeForm>>,
}

/// `2026-12-24/2027-01-02`, both days included; or an object with its ends.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum RangeForm {
    Short(String),
    Full(RangeRequest),
}

/// From one local time to another; a date alone means the whole of it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"from": "2026-12-24T18:00", "to": "2026-12-27T06:00"}))]
pub struct RangeRequest {
    pub from: String,
    pub to: String,
}

/// What a manual run or a replay may carry.
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
    /// Bounds stand here or within the schedule.
    pub starts_at: Option<MomentForm>,
    pub ends_at: Option<MomentForm>,
    pub runs_max: Option<u32>,
    /// Calendars by their names, as of a job.
    pub exclude: Option<Vec<String>>,
    pub only: Option<Vec<String>>,
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
