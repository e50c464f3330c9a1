//! A job's definition as it is stored.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::policy::{CatchUp, CatchUpPolicy, Delivery, Overlap};
use model::retry::{Backoff, RetryPolicy};
use model::schedule::Kind;
use model::target::HttpTarget;
use model::time::millis;
use model::{
    Calendar, CalendarName, Completion, Definition, FailuresMax, JobId, Lane, Redirects, Schedule,
    Target, limits,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::DocError;
use super::python::PythonDoc;
use super::schedule::ScheduleDoc;
use super::shell::ShellDoc;
use super::success::SuccessDoc;
use super::tls::TlsDoc;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DefinitionDoc<'a> {
    /// JSON by itself, so that one that cannot be read any more stays as it is.
    #[serde(borrow)]
    schedule: Cow<'a, RawValue>,
    #[serde(borrow)]
    target: TargetDoc<'a>,
    #[serde(default, skip_serializing_if = "RetryDoc::is_default")]
    retry: RetryDoc<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout: Option<u64>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    lane: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    overlap: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    queue_max: Option<u32>,
    #[serde(default, skip_serializing_if = "CatchUpDoc::is_default")]
    catch_up: CatchUpDoc<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spread: Option<u64>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    delivery: Option<Cow<'a, str>>,
    /// Only where attempts complete by a report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    callback: Option<CallbackDoc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start_within: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    finish_within: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pause_after_failures: Option<u32>,
    #[serde(borrow, default, skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallbackDoc {
    heartbeat_within: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TargetDoc<'a> {
    #[serde(borrow)]
    Http(HttpDoc<'a>),
    #[serde(borrow)]
    Shell(ShellDoc<'a>),
    #[serde(borrow)]
    Python(PythonDoc<'a>),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HttpDoc<'a> {
    #[serde(borrow)]
    url: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    path: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    headers: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    body: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_max: Option<usize>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    keep_headers: Vec<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    success: Option<SuccessDoc<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    redirects: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    tls: Option<TlsDoc<'a>>,
}

#[derive(Serialize, Deserialize, Default, PartialEq)]
#[serde(deny_unknown_fields)]
struct RetryDoc<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempts_max: Option<u32>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    backoff: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delay_first: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delay_max: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    jitter: Option<u16>,
}

#[derive(Serialize, Deserialize, Default, PartialEq)]
#[serde(deny_unknown_fields)]
struct CatchUpDoc<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    policy: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    window: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max: Option<u32>,
}

impl RetryDoc<'_> {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl CatchUpDoc<'_> {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The value, unless it is the default.
pub(super) fn other<T: PartialEq>(value: T, default: T) -> Option<T> {
    (value != default).then_some(value)
}

fn word<'a>(value: &'static str, default: &str) -> Option<Cow<'a, str>> {
    (value != default).then_some(Cow::Borrowed(value))
}

fn ms(span: Duration) -> u64 {
    u64::try_from(millis(span)).unwrap_or(0)
}

fn span(stored: Option<u64>, default: Duration) -> Duration {
    stored.map_or(default, Duration::from_millis)
}

/// A name of one of our enums, or its default when it was left out.
pub(super) fn named<T>(
    what: &str,
    text: Option<Cow<'_, str>>,
    default: T,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, DocError> {
    match text {
        None => Ok(default),
        Some(text) => parse(&text).ok_or_else(|| DocError::unknown(what, &text)),
    }
}

/// What is assumed of a schedule's policies when a form leaves them out. Unlike the defaults that
/// clients see, these depend only on whether the job is a one-off, and never change.
fn policies(recurring: bool) -> (Overlap, Duration) {
    if recurring {
        (Overlap::Skip, Duration::from_secs(3_600))
    } else {
        (Overlap::Allow, Duration::from_secs(86_400))
    }
}

/// The stored form of a definition. The payload is apart: it is bytes, not JSON of ours.
pub fn encode_definition(job: JobId, def: &Definition) -> Result<Vec<u8>, DocError> {
    let Definition {
        schedule,
        target,
        payload: _,
        retry,
        catch_up,
        overlap,
        ..
    } = def;
    let (overlap_default, window) = policies(schedule.is_recurring());
    let usual = RetryPolicy::default();
    let doc = DefinitionDoc {
        schedule: schedule_json(job, schedule)?,
        target: target_doc(target)?,
        retry: RetryDoc {
            attempts_max: other(retry.attempts_max, usual.attempts_max),
            backoff: word(retry.backoff.as_str(), usual.backoff.as_str()),
            delay_first: other(ms(retry.delay_first), ms(usual.delay_first)),
            delay_max: other(ms(retry.delay_max), ms(usual.delay_max)),
            jitter: other(retry.jitter, usual.jitter),
        },
        timeout: other(ms(def.timeout), ms(Definition::TIMEOUT_DEFAULT)),
        lane: word(def.lane.as_str(), Lane::Standard.as_str()),
        overlap: word(overlap.as_str(), overlap_default.as_str()),
        queue_max: match overlap {
            Overlap::QueueAll { max } => other(*max, Overlap::QUEUE_MAX),
            Overlap::Skip | Overlap::QueueOne | Overlap::CancelRunning | Overlap::Allow => None,
        },
        catch_up: CatchUpDoc {
            policy: word(catch_up.policy.as_str(), CatchUpPolicy::Latest.as_str()),
            window: other(ms(catch_up.window), ms(window)),
            max: other(catch_up.max, CatchUp::MAX_DEFAULT),
        },
        spread: other(ms(def.spread), 0),
        delivery: word(def.delivery.as_str(), Delivery::AtLeastOnce.as_str()),
        callback: def.completion.heartbeat_within().map(|within| CallbackDoc {
            heartbeat_within: ms(within),
        }),
        start_within: def.start_within.map(ms),
        finish_within: def.finish_within.map(ms),
        pause_after_failures: def.pause_after_failures.map(FailuresMax::get),
        labels: def
            .labels
            .iter()
            .map(|(name, value)| (Cow::Borrowed(name.as_str()), Cow::Borrowed(value.as_str())))
            .collect(),
    };
    let mut bytes = Vec::with_capacity(160);
    serde_json::to_writer(&mut bytes, &doc)?;
    Ok(bytes)
}

fn schedule_json(job: JobId, schedule: &Schedule) -> Result<Cow<'static, RawValue>, DocError> {
    let text = match &schedule.kind {
        Kind::Broken(broken) => broken.stored.clone(),
        Kind::Cron(_) | Kind::Every(_) | Kind::Once(_) => {
            serde_json::to_string(&ScheduleDoc::of(job, schedule))?
        }
    };
    Ok(Cow::Owned(RawValue::from_string(text)?))
}

/// A definition from its stored form, its payload, and the calendars it names as they stand. A schedule
/// that cannot be read any more does not hide the rest: it comes as `Kind::Broken`.
pub fn decode_definition(
    job: JobId,
    bytes: &[u8],
    payload: Option<Bytes>,
    calendars: &dyn Fn(&CalendarName) -> Option<Arc<Calendar>>,
) -> Result<Definition, DocError> {
    let doc: DefinitionDoc<'_> = serde_json::from_slice(bytes)?;
    let schedule = ScheduleDoc::read(job, doc.schedule.get(), calendars)?;
    let (overlap, window) = policies(schedule.is_recurring());
    let usual = RetryPolicy::default();
    let overlap = match named("overlap", doc.overlap, overlap, Overlap::parse)? {
        Overlap::QueueAll { max } => Overlap::QueueAll {
            max: doc.queue_max.unwrap_or(max),
        },
        single @ (Overlap::Skip | Overlap::QueueOne | Overlap::CancelRunning | Overlap::Allow) => {
            single
        }
    };
    let policy = doc.catch_up.policy;
    Ok(Definition {
        schedule,
        target: target_of(doc.target)?,
        payload,
        retry: RetryPolicy {
            attempts_max: doc.retry.attempts_max.unwrap_or(usual.attempts_max),
            backoff: named("backoff", doc.retry.backoff, usual.backoff, Backoff::parse)?,
            delay_first: span(doc.retry.delay_first, usual.delay_first),
            delay_max: span(doc.retry.delay_max, usual.delay_max),
            jitter: doc.retry.jitter.unwrap_or(usual.jitter),
        },
        timeout: span(doc.timeout, Definition::TIMEOUT_DEFAULT),
        lane: named("lane", doc.lane, Lane::Standard, |text| text.parse().ok())?,
        overlap,
        catch_up: CatchUp {
            policy: named(
                "catch_up",
                policy,
                CatchUpPolicy::Latest,
                CatchUpPolicy::parse,
            )?,
            window: span(doc.catch_up.window, window),
            max: doc.catch_up.max.unwrap_or(CatchUp::MAX_DEFAULT),
        },
        spread: span(doc.spread, Duration::ZERO),
        delivery: named(
            "delivery",
            doc.delivery,
            Delivery::AtLeastOnce,
            Delivery::parse,
        )?,
        completion: doc
            .callback
            .map_or(Completion::Answer, |callback| Completion::Callback {
                heartbeat_within: Duration::from_millis(callback.heartbeat_within),
            }),
        start_within: doc.start_within.map(Duration::from_millis),
        finish_within: doc.finish_within.map(Duration::from_millis),
        pause_after_failures: doc.pause_after_failures.map(failures_max).transpose()?,
        labels: doc
            .labels
            .into_iter()
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect(),
    })
}

fn failures_max(count: u32) -> Result<FailuresMax, DocError> {
    let unknown = || DocError::unknown("pause_after_failures", &count.to_string());
    FailuresMax::new(count).ok_or_else(unknown)
}

fn target_doc(target: &Target) -> Result<TargetDoc<'_>, DocError> {
    let http = match target {
        Target::Http(http) => http,
        Target::Shell(shell) => return Ok(TargetDoc::Shell(ShellDoc::of(shell))),
        Target::Python(python) => return Ok(TargetDoc::Python(PythonDoc::of(python))),
    };
    let mut headers = Vec::with_capacity(http.headers.len());
    for (name, value) in &http.headers {
        let text = value.to_str().map_err(|_| {
            DocError(format!(
                "the header {name} holds characters that cannot be stored"
            ))
        })?;
        headers.push((Cow::Borrowed(name.as_str()), Cow::Borrowed(text)));
    }
    Ok(TargetDoc::Http(HttpDoc {
        url: Cow::Owned(http.url.to_string()),
        path: http.path.as_deref().map(Cow::Borrowed),
        body: http.body.as_deref().map(Cow::Borrowed),
        method: match http.method.as_str() {
            "POST" => None,
            method => Some(Cow::Borrowed(method)),
        },
        headers,
        output_max: other(http.output_max, limits::OUTPUT_DEFAULT),
        keep_headers: (http.keep_headers.iter())
            .map(|name| Cow::Borrowed(name.as_str()))
            .collect(),
        success: http.success.as_ref().map(SuccessDoc::of).transpose()?,
        redirects: word(http.redirects.as_str(), Redirects::None.as_str()),
        tls: http.tls.as_ref().map(TlsDoc::of),
    }))
}

fn target_of(doc: TargetDoc<'_>) -> Result<Target, DocError> {
    let http = match doc {
        TargetDoc::Http(http) => http,
        TargetDoc::Shell(shell) => return Ok(Target::Shell(shell.read())),
        TargetDoc::Python(python) => return Ok(Target::Python(python.read())),
    };
    // The checks of a new target are not made again: rules for what is accepted may grow, and what
    // was accepted before still runs.
    let bad = |what: &str, text: &str| DocError::unknown(what, text);
    let mut headers = Vec::with_capacity(http.headers.len());
    for (name, value) in &http.headers {
        let value = value.parse().map_err(|_| bad("header value", value))?;
        headers.push((name.parse().map_err(|_| bad("header", name))?, value));
    }
    let method = http.method.as_deref().unwrap_or("POST");
    Ok(Target::Http(HttpTarget {
        url: http.url.parse().map_err(|_| bad("url", &http.url))?,
        path: http.path.map(Cow::into_owned),
        body: http.body.map(Cow::into_owned),
        method: method.parse().map_err(|_| bad("method", method))?,
        headers,
        output_max: http.output_max.unwrap_or(limits::OUTPUT_DEFAULT),
        keep_headers: (http.keep_headers.iter())
            .map(|name| name.parse().map_err(|_| bad("header", name)))
            .collect::<Result<_, _>>()?,
        success: http.success.map(SuccessDoc::read).transpose()?,
        redirects: named(
            "redirects",
            http.redirects,
            Redirects::None,
            Redirects::parse,
        )?,
        tls: http.tls.map(TlsDoc::read).transpose()?,
    }))
}
