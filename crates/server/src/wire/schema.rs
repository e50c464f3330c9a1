//! Requests as the contract describes them. They are read by hand (see `read`), so that every refusal
//! can name its field; a test holds these descriptions against what is read.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

pub use super::schema_access::*;
pub use super::schema_target::*;

/// A job, in full or in short. Only `schedule` and `target` must be there; `null` means the default.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"schedule": "@daily", "target": "https://example.com/hook"}))]
pub struct JobRequest {
    /// A name of your own; unique among your jobs.
    pub key: Option<String>,
    /// Who it belongs to. By default whoever creates it: the label of the key, or its id. Replacing a job keeps it.
    pub owner: Option<String>,
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
    /// `answer`: the target's answer completes an attempt. `callback`: a target that answers 202 reports later, with the token
    /// that it was sent.
    pub completion: Option<String>,
    /// With `callback`: how long the target may be silent before its attempt is lost. 5m by default, never beyond `timeout`.
    pub heartbeat_within: Option<String>,
    /// A run that starts later than this after it was due is marked with `late_by`, counted and logged.
    pub start_within: Option<String>,
    /// A run that has not ended so long after its first dispatch is marked with `long_by`, counted and logged.
    pub finish_within: Option<String>,
    /// Pauses the job after so many runs in a row that ended dead, and says why in its note. A success and a resume set the count to zero;
    /// runs that were skipped, missed or cancelled say nothing.
    pub pause_after_failures: Option<u32>,
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
    /// Who it belongs to; `null` makes it yours.
    pub owner: Option<String>,
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
    /// `answer`: the target's answer completes an attempt. `callback`: a target that answers 202 reports later, with the token
    /// that it was sent.
    pub completion: Option<String>,
    /// With `callback`: how long the target may be silent before its attempt is lost. 5m by default, never beyond `timeout`.
    pub heartbeat_within: Option<String>,
    /// A run that starts later than this after it was due is marked with `late_by`, counted and logged.
    pub start_within: Option<String>,
    /// A run that has not ended so long after its first dispatch is marked with `long_by`, counted and logged.
    pub finish_within: Option<String>,
    /// Pauses the job after so many runs in a row that ended dead, and says why in its note. A success and a resume set the count to zero;
    /// runs that were skipped, missed or cancelled say nothing.
    pub pause_after_failures: Option<u32>,
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

/// To which version a job goes back.
#[derive(Debug, Serialize, ToSchema)]
pub struct RevertBody {
    /// The version's number.
    #[schema(minimum = 1, maximum = 4_294_967_295_u32)]
    pub to: u32,
}

/// How a job goes on.
#[derive(Debug, Serialize, ToSchema)]
pub struct ResumeBody {
    /// Go on from where the pause began, as `catch_up` of the job says, instead of from now.
    pub catch_up: Option<bool>,
}

/// A rule that says who is to hear of what: about one of `job`, `owner` and `label`, or about every job.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"label": "team=ops", "on": "dead", "url": "https://ops.example.com/alerts", "repeat": "4h"}))]
pub struct AlertRequest {
    /// A job: its id, or `key:` and its key.
    pub job: Option<String>,
    /// Whoever the jobs belong to.
    pub owner: Option<String>,
    /// `name=value`, of the jobs as they stand when something happens.
    pub label: Option<String>,
    /// What makes it fire: a run that failed or was lost for good (`failed`), one that is `dead`, slots that were `missed`, or
    /// so many in a row that were `skipped`.
    pub on: String,
    /// Of `skipped`: how many slots in a row.
    pub count: Option<u32>,
    /// What it is written as: `webhook`, our own JSON and the default, or `slack`.
    pub channel: Option<String>,
    /// Where it is sent. Its path may be a template that names secrets. Left out, it stays as it is.
    pub url: Option<String>,
    /// Whether it is also sent that a job has recovered, which is the default.
    pub recovered: Option<bool>,
    /// How often it is sent again while it fires, such as `4h`; never by default.
    pub repeat: Option<String>,
    /// Off, nothing is noticed; on by default.
    pub enabled: Option<bool>,
}

/// Until when an alert is muted.
#[derive(Debug, Serialize, ToSchema)]
pub struct MuteBody {
    /// Until then nothing is sent; left out, everything is again.
    #[schema(format = DateTime)]
    pub until: Option<String>,
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

/// Runs that are to be replayed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"filter": {"from": "2026-11-16T05:00:00Z", "error": "cannot be reached"}, "rate": 20}))]
pub struct ReplayRequest {
    /// Which runs; `{}` is every dead one.
    pub filter: FilterRequest,
    /// Instead of the payload that each run had.
    pub payload: Option<serde_json::Value>,
    /// Runs a second; 10 by default.
    pub rate: Option<u32>,
    /// Runs that are started at most; 1,000,000 by default.
    pub limit: Option<u64>,
}

/// Which runs are meant: those that all of it fits.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"from": "2026-11-16T05:00:00Z", "error": "cannot be reached"}))]
pub struct FilterRequest {
    /// Runs of one job: its id, or `key:` and its key.
    pub job: Option<String>,
    /// A state, or a list of them: dead by default, else cancelled or succeeded.
    #[schema(value_type = Option<WordsForm>)]
    pub state: Option<WordsForm>,
    /// Slots from this moment on, or runs asked for since.
    pub from: Option<MomentForm>,
    /// And before this moment; now by default.
    pub to: Option<MomentForm>,
    /// A reason, or a list of them.
    #[schema(value_type = Option<WordsForm>)]
    pub reason: Option<WordsForm>,
    /// A part of the last attempt's error or of its group's name, in any case.
    pub error: Option<String>,
    /// All of these labels, of the job as it stands.
    pub labels: Option<BTreeMap<String, String>>,
    /// The host that the job as it stands calls, with or without its port.
    pub target: Option<String>,
}

/// One word, or several.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum WordsForm {
    /// One.
    One(String),
    /// Any of these.
    Many(Vec<String>),
}

/// Slots that are to be run after all.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"from": "2024-12-01T00:00:00Z", "to": "2025-02-01T00:00:00Z"}))]
pub struct BackfillBody {
    /// Slots from this moment on.
    pub from: MomentForm,
    /// Up to but not including this moment; now by default, and at the latest.
    pub to: Option<MomentForm>,
    /// Runs a second; 10 by default.
    pub rate: Option<u32>,
    /// Runs that are started at most; all of them by default, up to 100,000.
    pub limit: Option<u64>,
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

/// How an attempt went that its target took over.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"outcome": "failed", "error": "no such bucket", "retry": "never"}))]
pub struct ReportBody {
    /// `succeeded` or `failed`.
    pub outcome: String,
    /// Why it failed, in one line.
    pub error: Option<String>,
    /// What it brought: kept with the attempt as far as its target's answers would be.
    pub output: Option<String>,
    /// `usual` (as the job's policy has it), `never`, or a span such as `30s` that the next attempt waits at least.
    pub retry: Option<String>,
}

/// Whoever has an attempt lives.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"progress": 0.4, "checkpoint": "row 40000"}))]
pub struct HeartbeatBody {
    /// How far the work is: a share from 0 to 1, or a line of text.
    pub progress: Option<serde_json::Value>,
    /// Where the next attempt goes on if this one is lost: any text.
    pub checkpoint: Option<String>,
}
