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
    /// When it is due.
    pub schedule: ScheduleForm,
    /// Calendars by their names: slots within any of them are skipped.
    pub exclude: Option<Vec<String>>,
    /// Calendars by their names: slots outside of all of them are skipped.
    pub only: Option<Vec<String>>,
    /// Where its runs go.
    pub target: TargetForm,
    /// Any JSON; sent to the target byte for byte.
    pub payload: Option<serde_json::Value>,
    /// When a failed attempt is tried again, and how often.
    pub retry: Option<RetryRequest>,
    /// Of one attempt, such as `30s`, `5m` or `PT5M`. Default 5m.
    pub timeout: Option<String>,
    /// `critical`, `standard` or `batch`.
    pub lane: Option<String>,
    /// What becomes of a slot that is due while a run of the job lives. `skip` by default, `allow` for one-offs.
    pub overlap: Option<OverlapForm>,
    /// Which slots run that passed while no node could fire them. `latest` by default.
    pub catch_up: Option<CatchUpForm>,
    /// A fixed offset within this span, so that midnight is not one moment.
    pub spread: Option<String>,
    /// `at_least_once` or `at_most_once`.
    pub delivery: Option<String>,
    /// A run that starts later than this after it was due is marked with `late_by`, counted and logged.
    pub start_within: Option<String>,
    /// A run that has not ended so long after its first dispatch is marked with `long_by`, counted and logged.
    pub finish_within: Option<String>,
    /// Names and values of your own, to find jobs by.
    pub labels: Option<BTreeMap<String, Option<String>>>,
}

/// What an edit does not mention stays as it is, also within `schedule`, `target`, `retry`, `overlap` and `catch_up`;
/// `null` removes a field or sets it back to its default. Headers and labels are merged by name. `exclude`, `only` and
/// `payload` are replaced whole.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"timeout": "30s", "labels": {"team": "ops", "old": null}}))]
pub struct JobPatch {
    /// Another name of your own; unique among your jobs.
    pub key: Option<String>,
    /// When it is due; what is not mentioned stays.
    pub schedule: Option<ScheduleForm>,
    /// Calendars by their names: slots within any of them are skipped.
    pub exclude: Option<Vec<String>>,
    /// Calendars by their names: slots outside of all of them are skipped.
    pub only: Option<Vec<String>>,
    /// Where its runs go; what is not mentioned stays.
    pub target: Option<TargetPatchForm>,
    /// Any JSON; sent to the target byte for byte.
    pub payload: Option<serde_json::Value>,
    /// When a failed attempt is tried again, and how often; what is not mentioned stays.
    pub retry: Option<RetryRequest>,
    /// Of one attempt, such as `30s`, `5m` or `PT5M`.
    pub timeout: Option<String>,
    /// The class of service.
    pub lane: Option<String>,
    /// What becomes of a slot that is due while a run of the job lives.
    pub overlap: Option<OverlapForm>,
    /// Which slots run that passed while no node could fire them.
    pub catch_up: Option<CatchUpForm>,
    /// A fixed offset within this span, so that midnight is not one moment.
    pub spread: Option<String>,
    /// Whether an attempt whose fate is unknown is made again.
    pub delivery: Option<String>,
    /// A run that starts later than this after it was due is marked with `late_by`, counted and logged.
    pub start_within: Option<String>,
    /// A run that has not ended so long after its first dispatch is marked with `long_by`, counted and logged.
    pub finish_within: Option<String>,
    /// Merged by name; `null` takes a label away.
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
    /// A cron expression, or several whose union it is.
    pub cron: Option<ExpressionsForm>,
    /// `15m` or `PT15M` is elapsed time, `P1D` or `P1M` is calendar time.
    pub every: Option<String>,
    /// The moment of a one-off.
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

/// One cron expression, or several: their union.
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

/// Where runs go.
#[derive(Debug, Serialize, ToSchema)]
pub struct TargetRequest {
    /// A request over HTTP.
    pub http: HttpRequest,
}

/// A request over HTTP.
#[derive(Debug, Serialize, ToSchema)]
pub struct HttpRequest {
    /// With `http://` or `https://`, and without a user name or password.
    pub url: String,
    /// GET, POST (the default), PUT, PATCH, DELETE or HEAD.
    pub method: Option<String>,
    /// Sent besides our own, which cannot be set.
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

/// What is to change about the target.
#[derive(Debug, Serialize, ToSchema)]
pub struct TargetPatch {
    /// A request over HTTP; what is not mentioned stays.
    pub http: HttpPatch,
}

/// What is to change about a request over HTTP.
#[derive(Debug, Serialize, ToSchema)]
pub struct HttpPatch {
    /// Another address.
    pub url: Option<String>,
    /// GET, POST, PUT, PATCH, DELETE or HEAD.
    pub method: Option<String>,
    /// Merged by name; `null` takes a header away.
    pub headers: Option<BTreeMap<String, Option<String>>>,
    /// Bytes of the answer that are kept: 65536 at most.
    pub output_max: Option<u32>,
}

/// When a failed attempt is tried again, and how often.
#[derive(Debug, Serialize, ToSchema)]
pub struct RetryRequest {
    /// 1 to 100; 4 by default.
    pub attempts_max: Option<u32>,
    /// `exponential`, `linear` or `fixed`.
    pub backoff: Option<String>,
    /// The wait after the first attempt, from 1ms to 24h; 1s by default.
    pub delay_first: Option<String>,
    /// No wait is longer, from 1ms to 24h; 5m by default.
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

/// A policy with its bound.
#[derive(Debug, Serialize, ToSchema)]
pub struct OverlapRequest {
    /// What becomes of the slot.
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

/// A policy with its window and its bound.
#[derive(Debug, Serialize, ToSchema)]
pub struct CatchUpRequest {
    /// Which missed slots run.
    pub policy: Option<String>,
    /// How old a missed slot may be and still run, up to 30d; 1h by default for periods under a day, else 24h.
    pub window: Option<String>,
    /// How many missed slots `all` runs at most: the newest. 100 by default.
    pub max: Option<u32>,
}

/// Why a job is paused.
#[derive(Debug, Serialize, ToSchema)]
pub struct PauseBody {
    /// Stands beside every slot that passes meanwhile.
    pub note: Option<String>,
}

/// How a job goes on.
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
    /// What it is for.
    pub note: Option<String>,
    /// The zone its dates are meant in; that of the job by default.
    pub timezone: Option<String>,
    /// Whole days, such as `2026-12-25`.
    pub dates: Option<Vec<String>>,
    /// Whole days of every year, such as `12-25`, month first.
    pub yearly: Option<Vec<String>>,
    /// Days of every week, such as `SAT-SUN` or `MON-FRI 09:00-17:00`.
    pub weekly: Option<Vec<String>>,
    /// Stretches of local time.
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
    /// The first moment, by the clock on the wall.
    pub from: String,
    /// The last moment, by the clock on the wall.
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

/// A schedule to look at.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"schedule": "30 2 * * *", "timezone": "Europe/Berlin", "count": 3}))]
pub struct PreviewBody {
    /// As of a job.
    pub schedule: ScheduleForm,
    /// Bounds stand here or within the schedule.
    pub starts_at: Option<MomentForm>,
    /// There is no slot after it.
    pub ends_at: Option<MomentForm>,
    /// As of a job.
    pub runs_max: Option<u32>,
    /// Calendars by their names, as of a job.
    pub exclude: Option<Vec<String>>,
    /// Calendars by their names: slots outside of all of them are left out.
    pub only: Option<Vec<String>>,
    /// Slots strictly after this moment; now by default.
    pub from: Option<MomentForm>,
    /// 1 to 1000; 10 by default.
    pub count: Option<u32>,
    /// An IANA name; stands here or within the schedule.
    pub timezone: Option<String>,
    /// Stands here or within the schedule.
    pub dialect: Option<String>,
    /// Stands here or within the schedule.
    pub dst_gap: Option<String>,
    /// Stands here or within the schedule.
    pub dst_overlap: Option<String>,
}

/// A key that is to be made.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"role": "operator", "label": "on call", "expires_in": "90d"}))]
pub struct KeyRequest {
    /// Whose it is, by name; that of the key which asks for it, unless this one is root.
    pub tenant: Option<String>,
    /// What it allows; not more than the key that asks for it.
    pub role: String,
    /// What it is for.
    pub label: Option<String>,
    /// From when on it opens nothing, RFC 3339 or epoch seconds. It does not expire unless this or `expires_in` is said.
    pub expires_at: Option<String>,
    /// The same from now on, such as `90d`.
    pub expires_in: Option<String>,
}

/// A tenant that is to be made.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"name": "team-search", "note": "owned by Ann"}))]
pub struct TenantRequest {
    /// Lower-case letters, digits and dashes; begins with a letter.
    pub name: String,
    /// What it is for.
    pub note: Option<String>,
}

/// What is to change of a tenant.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"note": "owned by Bob"}))]
pub struct TenantPatch {
    /// What it is for; `null` takes it away.
    pub note: Option<String>,
}

/// One line of a batch's answer: the job that was made, or the problem with that line.
#[derive(Debug, Serialize, ToSchema)]
pub struct BatchLine {
    /// The number of the line, from 1.
    pub line: u64,
    /// What it would have been answered alone: 201, or that of its problem.
    pub status: u16,
    /// The job that was made.
    pub id: Option<String>,
    /// The job had been made by an earlier request with this key.
    pub replayed: Option<bool>,
    /// Why no job was made.
    pub error: Option<ProblemBody>,
}

/// RFC 9457.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProblemBody {
    /// What kind of problem it is: a page of this server.
    #[schema(example = "/problems/schedule-invalid")]
    pub r#type: String,
    /// The kind in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong here, and how to put it right.
    pub detail: String,
    /// The path of the field that is at fault.
    #[schema(example = "schedule.cron")]
    pub field: Option<String>,
}
